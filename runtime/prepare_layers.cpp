#include "runtime/prepare_layers.h"

#include <algorithm>
#include <unordered_set>

#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/gemm.h"

namespace wick {

namespace {

std::unordered_set<Symbol> kindsOf(std::initializer_list<const char*> names) {
  std::unordered_set<Symbol> kinds;
  for (const char* name : names) kinds.insert(Symbol::fromQualString(name));
  return kinds;
}

bool isConvolution(const Node* n) {
  static const auto* kKinds =
      new auto(kindsOf({"aten::conv1d", "aten::conv2d", "aten::conv3d", "aten::conv_transpose1d",
                        "aten::conv_transpose2d", "aten::conv_transpose3d", "aten::convolution",
                        "aten::_convolution", "wick::conv2d_fused"}));
  return kKinds->count(n->kind()) != 0;
}

bool isProduct(const Node* n) {
  static const auto* kKinds = new auto(
      kindsOf({"aten::linear", "aten::mm", "aten::addmm", "aten::matmul", "aten::bmm",
               "aten::baddbmm", "aten::lstm", "aten::lstm_cell", "aten::gru", "aten::gru_cell",
               "aten::scaled_dot_product_attention", "wick::linear_fused"}));
  return kKinds->count(n->kind()) != 0;
}

// The weight that a node reads, when it is a constant.
std::optional<Tensor> weightOf(const Node* n) {
  const std::optional<IValue> weight = constantOf(n->input(1));
  if (!weight || !weight->isTensor() || !weight->toTensor().defined()) return std::nullopt;
  return weight->toTensor();
}

// Of wick::conv2d_fused(input, weight, bias, residual, stride, padding, dilation, groups,
// activation, in_place), if all that matters is constant and right; what is wrong raises when the
// node runs.
void packFusedConvolution(const Node* n) {
  const std::optional<Tensor> weight = weightOf(n);
  const auto stride = intsOf(n->input(4), 2), padding = intsOf(n->input(5), 2);
  const auto dilation = intsOf(n->input(6), 2);
  const std::optional<int64_t> groups = intOf(n->input(7));
  const std::optional<IValue> activation = constantOf(n->input(8));
  if (!weight || weight->dim() != 4 || weight->numel() == 0 || !stride || !padding || !dilation ||
      !groups || !activation || !activation->isString()) {
    return;
  }
  constexpr int64_t kLargest = 1 << 10;
  auto inRange = [](const std::vector<int64_t>& values, int64_t least) {
    return std::all_of(values.begin(), values.end(),
                       [&](int64_t v) { return v >= least && v <= kLargest; });
  };
  ConvolutionParams params;
  params.groups = *groups;
  if (!inRange(*stride, 1) || !inRange(*padding, 0) || !inRange(*dilation, 1) ||
      params.groups < 1 || weight->size(0) % params.groups != 0) {
    return;
  }
  params.stride = DimVector(stride->begin(), stride->end());
  params.padding = params.padding_after = DimVector(padding->begin(), padding->end());
  params.dilation = DimVector(dilation->begin(), dilation->end());
  params.output_padding = DimVector(2, 0);
  packConvolutionWeight(*weight, !isNoneConstant(n->input(2)), params, !isNoneConstant(n->input(3)),
                        activationFromName(activation->toString()));
}

void prepareBlock(const Block* block) {
  static const auto* kLinears = new auto(kindsOf({"aten::linear", "wick::linear_fused"}));
  static const Symbol kFusedConvolution = Symbol::fromQualString("wick::conv2d_fused");
  for (const Node* n : block->nodes()) {
    for (const Block* inner : n->blocks()) prepareBlock(inner);
    if (isConvolution(n)) startConvolutions();
    if (isProduct(n)) startProducts();
    if (n->kind() == kFusedConvolution) packFusedConvolution(n);
    if (kLinears->count(n->kind()) == 0) continue;
    if (const std::optional<Tensor> weight = weightOf(n)) packLinearWeight(*weight);
  }
}

}  // namespace

void prepareLayers(const Graph& graph) {
  withStackFor(graph, [&] { prepareBlock(graph.block()); });
}

}  // namespace wick
