// The dtype of a result under PyTorch's type promotion.
#pragma once

#include <optional>

#include "core/scalar.h"
#include "core/tensor.h"

namespace wick::ops {

// Collects operands. Tensors with dimensions outrank zero-dim tensors, which outrank numbers,
// unless the lower one is of a higher category (boolean, integer, floating, complex).
class Promotion {
 public:
  Promotion& add(const Tensor& t) {
    join(t.dim() > 0 ? dimensioned_ : zero_dim_, t.dtype());
    return *this;
  }
  Promotion& add(const Scalar& s) {
    join(number_, s.dtype());
    return *this;
  }
  // At least one operand was added.
  DType result() const { return *combine(dimensioned_, combine(zero_dim_, number_)); }

 private:
  static void join(std::optional<DType>& into, DType t) {
    into = into ? promoteTypes(*into, t) : t;
  }
  static int category(DType t) {
    return isComplex(t) ? 3 : isFloating(t) ? 2 : t == DType::Bool ? 0 : 1;
  }
  static std::optional<DType> combine(std::optional<DType> higher, std::optional<DType> lower) {
    if (!higher || !lower) return higher ? higher : lower;
    if (category(*lower) <= category(*higher)) return higher;
    return promoteTypes(*higher, *lower);
  }
  std::optional<DType> dimensioned_;
  std::optional<DType> zero_dim_;
  std::optional<DType> number_;
};

}  // namespace wick::ops
