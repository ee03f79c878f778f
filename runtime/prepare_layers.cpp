#include "runtime/prepare_layers.h"

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
  static const auto* kKinds =
      new auto(kindsOf({"aten::linear", "aten::mm", "aten::addmm", "aten::matmul", "aten::bmm",
                        "aten::baddbmm", "aten::lstm", "aten::lstm_cell", "aten::gru",
                        "aten::gru_cell", "aten::scaled_dot_product_attention"}));
  return kKinds->count(n->kind()) != 0;
}

void prepareBlock(const Block* block) {
  static const Symbol kLinear = Symbol::aten("linear");
  for (const Node* n : block->nodes()) {
    for (const Block* inner : n->blocks()) prepareBlock(inner);
    if (isConvolution(n)) startConvolutions();
    if (isProduct(n)) startProducts();
    if (n->kind() != kLinear) continue;
    const std::optional<IValue> weight = constantOf(n->input(1));
    if (weight && weight->isTensor()) packLinearWeight(weight->toTensor());
  }
}

}  // namespace

void prepareLayers(const Graph& graph) {
  withStackFor(graph, [&] { prepareBlock(graph.block()); });
}

}  // namespace wick
