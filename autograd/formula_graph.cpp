#include "autograd/formula_graph.h"

#include <algorithm>

namespace wick::autograd {

using Source = GradientFunction::Source;

uint64_t coveredInputs(const Rule& rule, const wick::Node* node) {
  uint64_t covered = 0;
  for (size_t i = 0; i < node->inputs().size() && i < 64; ++i) {
    const bool tensor = node->input(i)->type()->kind() == TypeKind::Tensor;
    if ((tensor || isTensorList(node->input(i))) && rule.covers(i)) covered |= uint64_t{1} << i;
  }
  return covered;
}

bool isTensorList(const Value* v) {
  return v->type()->kind() == TypeKind::List &&
         v->type()->contained()[0]->kind() == TypeKind::Tensor;
}

const wick::Node* gradientsIn(const GradientFunction& gradients, bool lists) {
  for (const Source& source : gradients.sources) {
    const bool kept = source.part == Source::Part::Value || source.part == Source::Part::Size;
    const bool list = source.kind == Source::Kind::Gradients;
    if ((list && !lists) || source.optional || !kept) return nullptr;
  }
  const Graph& graph = *gradients.function->graph();
  if (graph.outputs().size() != 1) return nullptr;
  const wick::Node* tuple = graph.outputs()[0]->node();
  if (tuple->kind() != prim::TupleConstruct) return nullptr;
  const bool tensors = std::ranges::all_of(tuple->inputs(), [&](const Value* v) {
    return v->type()->kind() == TypeKind::Tensor || (lists && isTensorList(v));
  });
  return tensors ? tuple : nullptr;
}

namespace {

void replaceIn(Block* block, Value* never) {
  static const Symbol kConj = Symbol::aten("conj"), kIsComplex = Symbol::aten("is_complex");
  for (wick::Node* node : block->nodes()) {
    if (node->kind() == kConj) node->output()->replaceAllUsesWith(node->input(0));
    if (node->kind() == kIsComplex) node->output()->replaceAllUsesWith(never);
    for (Block* inner : node->blocks()) replaceIn(inner, never);
  }
}

}  // namespace

void withoutComplexNumbers(Graph& graph) {
  Value* never = graph.block()->prependNode(graph.createConstant(IValue(false)))->output();
  replaceIn(graph.block(), never);
}

}  // namespace wick::autograd
