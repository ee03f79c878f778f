#include "core/dtype_promotion.h"

#include "core/error.h"

namespace wick {

DType combineCategories(DType higher, DType lower) {
  if (isComplex(higher)) return higher;
  if (isFloating(higher)) return isComplex(lower) ? toComplexType(higher) : higher;
  if (higher == DType::Bool || isFloating(lower) || isComplex(lower)) {
    return promoteTypes(higher, lower);
  }
  return higher;
}

DType DTypePromotion::get() const {
  WICK_ASSERT(!empty(), "the type of no operands");
  DType type = numbers_.value_or(DType::Bool);
  bool found = numbers_.has_value();
  for (const std::optional<DType>& higher : {zero_dims_, dims_}) {
    if (!higher) continue;
    type = found ? combineCategories(*higher, type) : *higher;
    found = true;
  }
  return type;
}

}  // namespace wick
