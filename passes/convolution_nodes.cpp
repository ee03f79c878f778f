#include "passes/convolution_nodes.h"

namespace wick {

namespace {
bool isConstantInts(const Value* v) {
  std::optional<IValue> c = constantOf(v);
  return c && (c->isList() || c->isInt());
}
}  // namespace

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
