//   %y : Tensor = aten::matmul(%x, %c)          %z : Tensor = aten::linear(%x, %w, %b)
//   %z : Tensor = aten::add(%y, %b, %one)   →
//
// with %w the transpose of %c, which is a view.
#include "passes/form_linears.h"

#include "core/optimization_limit.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

const Symbol& linearKind() {
  static const Symbol kLinear = Symbol::aten("linear");
  return kLinear;
}

// A constant floating tensor on the CPU with elements and this many dimensions.
std::optional<Tensor> constantTensor(const Value* v, int64_t dim) {
  const std::optional<IValue> c = constantOf(v);
  if (!c || !c->isTensor() || !c->toTensor().defined()) return std::nullopt;
  const Tensor t = c->toTensor();
  const bool fits = t.dim() == dim && t.numel() > 0 && isFloating(t.dtype()) && t.device().isCpu();
  return fits ? std::optional<Tensor>(t) : std::nullopt;
}

bool isBiasOf(const std::optional<Tensor>& bias, int64_t rows, DType dtype) {
  return bias && bias->size(0) == rows && bias->dtype() == dtype;
}

bool isOne(const Value* v) {
  return floatOf(v) == 1.0;
}

// Replaces `node` by a layer with this weight [N, K]; a null bias means no bias.
void replaceByLayer(Graph& graph, Node* node, Value* input, const Tensor& weight, Value* bias) {
  InsertPointGuard guard(node);
  RangeGuard range(&graph, node->range());
  Value* w = graph.insertConstant(IValue(weight));
  Value* b = bias ? bias : graph.insertNode(graph.createNone())->output();
  Node* layer = graph.insertNode(graph.create(linearKind(), {input, w, b}));
  node->output()->replaceAllUsesWith(layer->output());
  node->destroy();
}

bool formFromProduct(Graph& graph, Node* node) {
  static const Symbol kMm = Symbol::aten("mm");
  static const Symbol kMatmul = Symbol::aten("matmul");
  static const Symbol kAddmm = Symbol::aten("addmm");
  const bool adds = node->kind() == kAddmm && node->inputs().size() == 5;
  if (!adds && ((node->kind() != kMm && node->kind() != kMatmul) || node->inputs().size() != 2)) {
    return false;
  }
  const size_t first = adds ? 1 : 0;
  const std::optional<Tensor> matrix = constantTensor(node->input(first + 1), 2);
  if (!matrix) return false;
  Value* bias = adds ? node->input(0) : nullptr;
  if (adds && (!isOne(node->input(3)) || !isOne(node->input(4)) ||
               !isBiasOf(constantTensor(bias, 1), matrix->size(1), matrix->dtype()))) {
    return false;
  }
  if (!WICK_MAY_OPTIMIZE("forms a layer from {}", node->str())) return false;
  replaceByLayer(graph, node, node->input(first), matrix->transpose(0, 1), bias);
  return true;
}

// add(layer, vector), add(vector, layer) and, into a layer that nobody else reads, add_.
bool takeBias(Graph& graph, Node* sum) {
  const bool in_place = sum->kind() == aten::add_;
  if ((sum->kind() != aten::add && !in_place) || sum->inputs().size() != 3) return false;
  if (!isOne(sum->input(2))) return false;
  for (size_t i = 0; i < (in_place ? 1 : 2); ++i) {
    Node* layer = sum->input(i)->node();
    if (layer->kind() != linearKind() || layer->output()->uses().size() != 1) continue;
    if (!isNoneConstant(layer->input(2)) || layer->block() != sum->block()) continue;
    const std::optional<Tensor> weight = constantTensor(layer->input(1), 2);
    Value* bias = sum->input(1 - i);
    if (!weight || !isBiasOf(constantTensor(bias, 1), weight->size(0), weight->dtype())) continue;
    if (!WICK_MAY_OPTIMIZE("adds a bias to {}", layer->str())) return false;
    // The vector may be defined behind the layer.
    InsertPointGuard guard(layer);
    layer->replaceInput(2, graph.insertConstant(*constantOf(bias)));
    sum->output()->replaceAllUsesWith(layer->output());
    sum->destroy();
    return true;
  }
  return false;
}

}  // namespace

size_t formLinears(Graph& graph) {
  return forEachNode(graph.block(), [&](Node* node) {
    return formFromProduct(graph, node) || takeBias(graph, node);
  });
}

}  // namespace wick
