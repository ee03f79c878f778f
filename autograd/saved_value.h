// What a node keeps of a call for its gradient.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "autograd/tape.h"
#include "core/error.h"
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
  // An argument, or anything but a tensor. RuntimeError for lists of tensors that nest too deeply.
  static SavedValue argument(const IValue& value);
  // Result `index` of the node that saves it.
  static SavedValue result(const IValue& value, uint32_t index);

  // The value again, with its history when gradients are recorded now. `node` is who saved it.
  // RuntimeError when it was let go of.
  IValue unpack(Node& node) const;
  bool isTensor() const { return value_.isTensor() || !elements_.empty(); }
  // Whether memory was written to since the value was saved.
  bool isStale() const;
  // Throws RuntimeError when it is stale. `made_by`: the node whose result `index` it is; empty for
  // an argument.
  void check(const std::string& made_by = "", int64_t index = 0) const;
  // Lets go of a tensor. Returns it, to be destroyed.
  SavedValue release();
  bool isReleased() const { return released_; }

 private:
  static SavedValue argument(const IValue& value, int depth, size_t& parts);

  IValue value_;
  Edge edge_;             // of a tensor that was an argument
  int64_t result_ = -1;   // of a tensor that was a result: which
  uint32_t version_ = 0;  // of its memory
  bool released_ = false;
  std::vector<SavedValue> elements_;  // of a list of tensors
};

// All that a node keeps of a call. Several threads may walk over the node at a time.
class SavedValues {
 public:
  explicit SavedValues(size_t count = 0) : values_(count) {}
  // While the node is made.
  void resize(size_t count) { values_.resize(count); }
  size_t size() const { return values_.size(); }
  size_t bytes() const { return values_.capacity() * sizeof(SavedValue); }
  void set(size_t i, SavedValue value) { values_[i] = std::move(value); }

  // Calls `f` with a function that gives value i as SavedValue::unpack() does. RuntimeError when
  // a walk has let go of the values.
  template <class F>
  void read(Node& node, F&& f) const {
    std::lock_guard lock(mutex_);
    f([&](size_t i) { return values_[i].unpack(node); });
  }
  // Lets go of the tensors.
  void release();

 private:
  mutable std::mutex mutex_;
  std::vector<SavedValue> values_;
};

}  // namespace wick::autograd
