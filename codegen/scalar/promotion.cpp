#include "codegen/scalar/promotion.h"

namespace wick {

ComputeTypes chooseTypes(const ScalarDefinition& definition, const DTypePromotion& operands,
                         bool& accepted) {
  ComputeTypes t{};
  t.common = operands.empty() ? DType::Bool : operands.get();
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
