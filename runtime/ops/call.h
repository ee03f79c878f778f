// Calls one operator from another's kernel:
//
//   static const OperatorHandle kMul("aten::mul", "Tensor");
//   Tensor product = kMul(a, b);
//
// Arguments are given in the schema's order; what is left out at the end takes its default.
#pragma once

#include <atomic>

#include "runtime/ops/boxing.h"

namespace wick {

class OperatorHandle {
 public:
  constexpr OperatorHandle(const char* name, const char* overload)
      : name_(name), overload_(overload) {}

  // Looked up once; RuntimeError when there is no such operator. Thread-safe.
  const Operator& op() const {
    const Operator* found = op_.load(std::memory_order_acquire);
    return found ? *found : lookUp();
  }

  // The only result, a tensor.
  template <class... Args>
  Tensor operator()(Args&&... args) const {
    return all(std::forward<Args>(args)...)[0].toTensor();
  }
  // All results.
  template <class... Args>
  std::vector<IValue> all(Args&&... args) const {
    std::vector<IValue> boxed;
    boxed.reserve(op().schema().arguments().size());
    (boxed.push_back(toValue(std::forward<Args>(args))), ...);
    return call(std::move(boxed));
  }

 private:
  template <class T>
  static IValue toValue(T&& v) {
    if constexpr (std::is_same_v<std::decay_t<T>, IntSpan>) {
      return IValue(makeIntList(v));
    } else if constexpr (std::is_same_v<std::decay_t<T>, int>) {
      return IValue(static_cast<int64_t>(v));
    } else {
      return boxing::box(std::forward<T>(v));
    }
  }
  const Operator& lookUp() const;
  std::vector<IValue> call(std::vector<IValue> args) const;

  const char* name_;
  const char* overload_;
  mutable std::atomic<const Operator*> op_{nullptr};
};

}  // namespace wick
