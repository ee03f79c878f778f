// The dtype in which operands of different dtypes are computed together, from dtypes alone.
#pragma once

#include <optional>

#include "core/dtype.h"
#include "core/error.h"

namespace wick {

// What `lower` makes of the dtype `higher` of an operand that outranks it: only a higher category
// (boolean, integer, floating, complex) counts.
DType combineCategories(DType higher, DType lower);

// Collects the dtypes of operands. Tensors with dimensions decide, zero-dim tensors and then
// numbers only where their category is higher.
class DTypePromotion {
 public:
  void addTensor(DType t, bool has_dims) { merge(has_dims ? dims_ : zero_dims_, t); }
  void addNumber(DType t) { merge(numbers_, t); }
  bool empty() const { return !dims_ && !zero_dims_ && !numbers_; }
  // Throws InternalError when nothing was added.
  DType get() const;

 private:
  static void merge(std::optional<DType>& into, DType t) {
    into = into ? promoteTypes(*into, t) : t;
  }
  std::optional<DType> dims_;
  std::optional<DType> zero_dims_;
  std::optional<DType> numbers_;
};

}  // namespace wick
