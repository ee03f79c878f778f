// Branches and loops in a recording for wick.compile.
#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "tracing/tracer.h"

namespace wick::python {

// Puts an If or a Loop into the graph that a tracer records on fakes. All functions throw
// capture::GraphBreak for what cannot be recorded.
class BranchRecording {
 public:
  explicit BranchRecording(tracing::Tracer& tracer) : tracer_(tracer) {}

  // Begins the side for a condition that is true. `step` is of the root frame.
  void beginBranch(const Tensor& condition, int64_t step);
  void beginOtherSide();
  // Returns a fake for each pair: the result of the first or the second side.
  std::vector<Tensor> endBranch(const std::vector<std::pair<Tensor, Tensor>>& results);

  // Begins the body of a loop that runs while the condition is `again`. Returns the fakes for
  // `carried` within.
  std::vector<Tensor> beginLoop(const Tensor& condition, bool again,
                                const std::vector<Tensor>& carried, int64_t step);
  // Takes the values at the end of an iteration; returns the fakes for those after the loop.
  std::vector<Tensor> endLoop(const Tensor& condition, const std::vector<Tensor>& carried);

  // Returns whether the tensors are alike in all that a program can ask without their elements.
  static bool canJoin(const Tensor& a, const Tensor& b);

  // Breaks the graph, at the branch, for results that may be an input or share memory with one, if
  // they are written to, or have a gradient and are among the outputs; and for such outputs that may be
  // another output. For recordings whose tensors are not Wick's own.
  void check(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs) const;
  bool any() const { return !joined_.empty(); }
  // Returns whether a side of a branch or the body of a loop is being recorded.
  bool isWithin() const { return !open_.empty(); }
  // Returns whether the tensor is a result that may be another tensor as well.
  bool isJoined(const Tensor& fake) const;

 private:
  struct Open {
    Node* node = nullptr;
    int64_t step = 0;
    bool again = true;            // of a loop
    std::vector<Tensor> carried;  // before the loop
    tracing::Tracer::Scope outer, first;
  };
  struct Joined {
    Tensor fake;
    std::vector<const Storage*> may_be;  // on whose memory it may be
    int64_t step = 0;
  };

  Value* truthOf(const Tensor& condition);
  void checkPure(const Block& block) const;
  // Returns the memories that the tensor may be on.
  std::unordered_set<const Storage*> memoriesOf(const Tensor& fake) const;
  static Tensor join(const Tensor& a, const Tensor& b);

  tracing::Tracer& tracer_;
  std::vector<Open> open_;
  std::vector<Joined> joined_;
};

}  // namespace wick::python
