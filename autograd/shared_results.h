// Which results of a graph on the tape share operators that keep something for their gradients.
//
// When a walk does not retain the tape, the operators that it came through let go of what they kept,
// and another walk through one of them is an error. A graph is one node of the tape, so the node itself
// must tell its operators apart:
//
//   y = sin(x)      a walk from y leaves z alone, which has an operator of its own;
//   z = cos(x)      w can no longer be walked from, because its gradient goes through sin
//   w = exp(y)
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"

namespace wick::autograd {

class SharedResults {
 public:
  // Of a graph without blocks, whose nodes have formulas as far as `needs` says that gradients flow
  // to their outputs. More than 64 results count as one. `carried`: the graph is a loop's body, and
  // that many of its inputs, behind the first one, are results of the iteration before. Then a
  // result stands for those of all iterations.
  SharedResults(std::span<const Value* const> results,
                const std::function<bool(const Value*)>& needs, size_t carried = 0);

  // Those that a walk from `results` leaves nothing for. Bit i: result i.
  uint64_t sharedBy(uint64_t results) const;
  // Those that go through an operator that keeps something.
  uint64_t keeping() const { return keeping_; }

 private:
  std::vector<uint64_t> shared_;  // of each result
  uint64_t keeping_ = 0;
};

// What walks left of one call. Several threads may walk at a time.
class SpentResults {
 public:
  // RuntimeError when an earlier walk left nothing for one of `results`.
  void check(uint64_t results) const;
  // After a walk from `results` that does not retain the tape: whether nothing is left for any.
  bool spend(const SharedResults& shared, uint64_t results);

 private:
  std::atomic<uint64_t> spent_ = 0;
};

}  // namespace wick::autograd
