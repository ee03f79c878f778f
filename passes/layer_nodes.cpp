#include "passes/layer_nodes.h"

#include "ir/shape_facts.h"

namespace wick {

namespace {
bool isConstantInts(const Value* v) {
  std::optional<IValue> c = constantOf(v);
  return c && (c->isList() || c->isInt());
}
}  // namespace

std::optional<LinearNode> LinearNode::match(Node* node) {
  static const Symbol kLinear = Symbol::aten("linear");
  if (node->kind() != kLinear || node->inputs().size() != 3) return std::nullopt;
  const std::optional<IValue> weight = constantOf(node->input(1));
  if (!weight || !weight->isTensor() || weight->toTensor().dim() != 2) return std::nullopt;
  LinearNode layer{node, weight->toTensor(), std::nullopt};
  if (!isFloating(layer.weight.dtype())) return std::nullopt;
  if (isNoneConstant(node->input(2))) return layer;
  const std::optional<IValue> bias = constantOf(node->input(2));
  if (!bias || !bias->isTensor()) return std::nullopt;
  layer.bias = bias->toTensor();
  const bool fits = layer.bias->dim() == 1 && layer.bias->size(0) == layer.weight.size(0) &&
                    layer.bias->dtype() == layer.weight.dtype();
  return fits ? std::optional(layer) : std::nullopt;
}

std::optional<ConvolutionNode> ConvolutionNode::match(Node* node) {
  size_t groups;
  if (node->kind() == aten::conv2d) {
    groups = 6;
  } else if (node->kind() == aten::_convolution && node->inputs().size() > 8) {
    // (input, weight, bias, stride, padding, dilation, transposed, output_padding, groups, …)
    std::optional<IValue> transposed = constantOf(node->input(6));
    if (!transposed || transposed->toBool()) return std::nullopt;
    groups = 8;
  } else {
    return std::nullopt;
  }
  std::optional<IValue> weight = constantOf(node->input(1));
  if (!weight || !weight->isTensor() || weight->toTensor().dim() != 4) return std::nullopt;
  for (size_t i : {3, 4, 5}) {
    if (!isConstantInts(node->input(i))) return std::nullopt;
  }
  return ConvolutionNode(node, groups);
}

}  // namespace wick
