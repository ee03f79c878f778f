// One walk over the graph: an unpack is reached after the construct that it takes apart, so the
// construct's elements are final by then.
#include "ir/simple_tuples.h"

namespace wick {
namespace {

bool isConstruct(const Node* n) {
  return n->kind() == prim::TupleConstruct || n->kind() == prim::NamedTupleConstruct;
}

// An output's type may be wider than its element's; readers rely on it.
bool replaceable(const Value* output, const Value* element) {
  return sameType(unshapedType(output->type()), unshapedType(element->type()));
}

bool lowerUnpack(Node* node, Node* tuple) {
  if (node->outputs().size() != tuple->inputs().size()) return false;
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    if (!replaceable(node->output(i), tuple->input(i))) return false;
  }
  for (size_t i = 0; i < node->outputs().size(); ++i) {
    node->output(i)->replaceAllUsesWith(tuple->input(i));
  }
  return true;
}

bool lowerIndex(Node* node, Node* tuple) {
  std::optional<IValue> index = constantOf(node->input(1));
  if (!index || !index->isInt()) return false;
  auto size = static_cast<int64_t>(tuple->inputs().size());
  int64_t i = index->toInt() < 0 ? index->toInt() + size : index->toInt();
  if (i < 0 || i >= size || !replaceable(node->output(), tuple->input(i))) return false;
  node->output()->replaceAllUsesWith(tuple->input(i));
  return true;
}

bool lowerSlice(Node* node, Node* tuple) {
  const IValue& first = node->ivalue(Symbol::attr("beg"));
  const IValue& last = node->ivalue(Symbol::attr("end"));
  auto size = static_cast<int64_t>(tuple->inputs().size());
  if (first.toInt() < 0 || last.toInt() > size || first.toInt() > last.toInt()) return false;
  const auto& elements = tuple->inputs();
  std::vector<Value*> taken(elements.begin() + first.toInt(), elements.begin() + last.toInt());
  Graph* graph = node->graph();
  RangeGuard range(graph, node->range());
  Node* made = graph->createTuple(taken)->insertBefore(node);
  if (!replaceable(node->output(), made->output())) {
    made->destroy();
    return false;
  }
  node->output()->replaceAllUsesWith(made->output());
  return true;
}

using MayLower = bool (*)(const Node* node);

bool lowerIn(Block* block, MayLower may_lower) {
  bool changed = false;
  for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (Block* sub : node->blocks()) changed |= lowerIn(sub, may_lower);
    Symbol kind = node->kind();
    if (kind != prim::TupleUnpack && kind != prim::TupleIndex && kind != prim::TupleSlice) continue;
    Node* tuple = node->input(0)->node();
    if (!isConstruct(tuple) || (may_lower && !may_lower(node))) continue;
    bool lowered = kind == prim::TupleUnpack  ? lowerUnpack(node, tuple)
                   : kind == prim::TupleIndex ? lowerIndex(node, tuple)
                                              : lowerSlice(node, tuple);
    if (!lowered) continue;
    changed = true;
    node->destroy();
    if (!tuple->output()->hasUses()) tuple->destroy();
  }
  return changed;
}

}  // namespace

bool lowerSimpleTuples(Graph& graph, MayLower may_lower) {
  return lowerIn(graph.block(), may_lower);
}

}  // namespace wick
