#include "codegen/scalar/promotion.h"

namespace wick {

DType combineCategories(DType higher, DType lower) {
  if (isComplex(higher)) return higher;
  if (isFloating(higher)) return isComplex(lower) ? toComplexType(higher) : higher;
  if (higher == DType::Bool || isFloating(lower) || isComplex(lower)) {
    return promoteTypes(higher, lower);
  }
  return higher;
}

std::optional<DType> OperandTypes::get() const {
  std::optional<DType> type = numbers_;
  for (const std::optional<DType>& higher : {zero_dims_, dims_}) {
    if (!higher) continue;
    type = type ? combineCategories(*higher, *type) : *higher;
  }
  return type;
}

ComputeTypes chooseTypes(const ScalarDefinition& definition, std::optional<DType> operands,
                         bool& accepted) {
  ComputeTypes t{};
  t.common = operands.value_or(DType::Bool);
  if (definition.promotion == Promotion::Float && isIntegral(t.common, true)) {
    t.common = defaultDType();
  }
  bool reduced = isReducedFloat(t.common);
  t.compute = reduced ? DType::Float : t.common;
  const ScalarDefinition::Entry& entry = definition.entry(t.compute);
  accepted = entry.loop && (!reduced || definition.reduced_floats);
  t.written = entry.result;
  t.result = t.written == t.compute ? t.common : t.written;
  return t;
}

}  // namespace wick
