// A minimum cut through the values of a graph.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace wick::autograd {

// Finds the set of values of least cost that separates what is there from what is read: each value
// is a pair of vertices, joined by an edge of its cost.
class VertexCut {
 public:
  static constexpr int64_t kNever = int64_t{1} << 56;
  explicit VertexCut(size_t values) : edges_(2 * values + 2), values_(values) {}

  void cost(size_t value, int64_t cost) { connect(2 * value, 2 * value + 1, cost); }
  void isThere(size_t value) { connect(source(), 2 * value, kNever); }
  void isRead(size_t value) { connect(2 * value + 1, sink(), kNever); }
  void computes(size_t from, size_t to) { connect(2 * from + 1, 2 * to, kNever); }

  // False where nothing but values that must not be saved separates them.
  bool find(std::vector<size_t>& saved);

 private:
  struct Edge {
    size_t to;
    int64_t capacity;
    size_t reverse;
  };
  struct Step {
    bool seen = false;
    size_t from = 0, edge = 0;
  };
  size_t source() const { return 2 * values_; }
  size_t sink() const { return 2 * values_ + 1; }
  void connect(size_t from, size_t to, int64_t capacity);
  std::vector<Step> search() const;
  int64_t augment();

  std::vector<std::vector<Edge>> edges_;
  const size_t values_;
};

}  // namespace wick::autograd
