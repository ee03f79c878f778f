// What a node keeps of a call for its gradient.
#pragma once

#include "autograd/tape.h"
#include "core/ivalue.h"

namespace wick::autograd {

// What a walk raises that needs what another one let go of.
inline constexpr const char* kAlreadyReleased =
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward.";

// A value as it was when it was saved. Tensors are kept without history, so that a node and its
// result do not keep each other; RuntimeError when their memory was written to since.
class SavedValue {
 public:
  // An argument, or anything but a tensor.
  static SavedValue argument(const IValue& value);
  // Result `index` of the node that saves it.
  static SavedValue result(const IValue& value, uint32_t index);

  // The value again, with its history when gradients are recorded now. `node` is who saved it.
  IValue unpack(Node& node) const;
  bool isTensor() const { return value_.isTensor() || !elements_.empty(); }

 private:
  IValue value_;
  Edge edge_;                         // of a tensor that was an argument
  int64_t result_ = -1;               // of a tensor that was a result: which
  uint32_t version_ = 0;              // of its memory
  std::vector<SavedValue> elements_;  // of a list of tensors
};

}  // namespace wick::autograd
