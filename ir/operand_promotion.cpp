#include "ir/operand_promotion.h"

#include "ir/shape_facts.h"

namespace wick {

namespace {

// nullopt when the kind of number is unknown.
std::optional<DType> dtypeOfNumber(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Int:
      return DType::Long;
    case TypeKind::Bool:
      return DType::Bool;
    case TypeKind::Float:
      return defaultDType();
    case TypeKind::Complex:
      return toComplexType(defaultDType());
    default:
      return std::nullopt;
  }
}

}  // namespace

void OperandPromotion::add(const Value* v) {
  if (const TensorFacts* facts = factsOf(v)) {
    if (!facts->dtype) {
      unknown_ = true;
      return;
    }
    // A rank that is unknown matters only among several dtypes, and then isKnown() says no.
    promotion_.addTensor(*facts->dtype, facts->dim.value_or(1) > 0);
    ranks_known_ &= facts->dim.has_value();
    mixed_ |= tensor_ && *tensor_ != *facts->dtype;
    tensor_ = facts->dtype;
  } else if (std::optional<DType> number = dtypeOfNumber(*v->type())) {
    promotion_.addNumber(*number);
  } else {
    unknown_ = true;
  }
}

}  // namespace wick
