// The definition's inputs are the operator's arguments in their order; promotion follows
// runtime/kernels/pointwise.cpp.
#include "passes/pointwise_types.h"

#include "codegen/scalar/definition.h"
#include "ir/operand_promotion.h"
#include "ir/shape_facts.h"

namespace wick {

namespace {

// The dtype of the result, as far as all operands that take part are known.
std::optional<DType> resultDType(const ScalarDefinition& def, const Node& node) {
  OperandPromotion promotion;
  for (size_t i = 0; i < def.num_inputs && i < node.inputs().size(); ++i) {
    if (((def.mask_inputs | def.param_inputs) >> i & 1) == 0) promotion.add(node.input(i));
  }
  if (!promotion.isKnown()) return std::nullopt;
  DType common = promotion.empty() ? DType::Bool : promotion.get();
  if (def.promotion == Promotion::Float && isIntegral(common, true)) common = defaultDType();
  DType compute = isReducedFloat(common) ? DType::Float : common;
  const ScalarDefinition::Entry& entry = def.entry(compute);
  if (!entry.loop) return std::nullopt;  // the call raises
  return entry.result == compute ? common : entry.result;
}

}  // namespace

std::vector<TypePtr> pointwiseTypes(const Node& node) {
  const ScalarDefinition& def = *node.getOperator().record().scalar;
  TensorFacts result;
  result.dtype = resultDType(def, node);
  std::optional<Sizes> sizes = Sizes();
  bool same_device = true;
  for (size_t i = 0; i < node.inputs().size(); ++i) {
    const TensorFacts* facts = factsOf(node.input(i));
    if (!facts) continue;
    std::optional<Sizes> mine = sizesOf(*facts);
    if (sizes && mine) {
      sizes = broadcastSizes(*sizes, *mine);
    } else {
      sizes.reset();
    }
    same_device =
        same_device && facts->device && (!result.device || result.device == facts->device);
    result.device = facts->device;
  }
  if (!same_device) result.device.reset();
  setSizes(result, std::move(sizes));
  return oneTensor(std::move(result));
}

}  // namespace wick
