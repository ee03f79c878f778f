// The tuple is taken apart on the way in and put together again on the way out; the simple lowering
// then removes the pairs of constructs and unpacks that meet.
//
//   %t = prim::If(%c)                          %a, %b = prim::If(%c)
//     block0():                                  block0():
//       %u = prim::TupleConstruct(%x, %y)          -> (%x, %y)
//       -> (%u)                          →       block1():
//     block1():                                    -> (%y, %x)
//       %v = prim::TupleConstruct(%y, %x)
//       -> (%v)                                %t = prim::TupleConstruct(%a, %b)
#include "passes/lower_tuples.h"

#include "core/optimization_limit.h"
#include "ir/dead_code.h"
#include "ir/simple_tuples.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

const Node* constructOf(const Value* v, const TypePtr& type) {
  const Node* n = v->node();
  bool constructs = n->kind() == prim::TupleConstruct || n->kind() == prim::NamedTupleConstruct;
  return constructs && sameType(unshapedType(v->type()), unshapedType(type)) ? n : nullptr;
}

std::shared_ptr<const TupleType> tupleType(const Value* v) {
  return std::dynamic_pointer_cast<const TupleType>(v->type());
}

// Puts the elements, which are outputs of `node` from `first` on, together behind it.
void rejoin(Node* node, Value* whole, size_t first, const std::shared_ptr<const TupleType>& type) {
  Graph* graph = node->graph();
  std::vector<Value*> elements;
  for (size_t k = 0; k < type->contained().size(); ++k) {
    elements.push_back(node->output(first + k));
  }
  Node* tuple = graph->createTuple(elements, type->isNamed() ? type : nullptr)->insertAfter(node);
  tuple->output()->setType(type);
  whole->replaceAllUsesWith(tuple->output());
}

bool splitBranch(Node* node) {
  bool changed = false;
  for (size_t i = node->outputs().size(); i-- > 0;) {
    Value* whole = node->output(i);
    std::shared_ptr<const TupleType> type = tupleType(whole);
    if (!type || !constructOf(node->blocks()[0]->outputs()[i], type) ||
        !constructOf(node->blocks()[1]->outputs()[i], type) ||
        !WICK_MAY_OPTIMIZE("takes the result {} apart", whole->debugName())) {
      continue;
    }
    size_t n = type->contained().size();
    for (Block* b : node->blocks()) {
      const Node* tuple = b->outputs()[i]->node();
      for (size_t k = 0; k < n; ++k) b->insertOutput(i + 1 + k, tuple->input(k));
    }
    for (size_t k = 0; k < n; ++k) node->insertOutput(i + 1 + k, type->contained()[k]);
    rejoin(node, whole, i + 1, type);
    for (Block* b : node->blocks()) b->eraseOutput(i);
    node->eraseOutput(i);
    changed = true;
  }
  return changed;
}

bool splitLoop(Node* node) {
  bool changed = false;
  Block* body = node->blocks()[0];
  for (size_t i = node->outputs().size(); i-- > 0;) {
    Value* whole = node->output(i);
    std::shared_ptr<const TupleType> type = tupleType(whole);
    if (!type || !constructOf(node->input(i + 2), type) ||
        !constructOf(body->outputs()[i + 1], type) ||
        !sameType(unshapedType(body->inputs()[i + 1]->type()), unshapedType(type)) ||
        !WICK_MAY_OPTIMIZE("takes the carried {} apart", whole->debugName())) {
      continue;
    }
    size_t n = type->contained().size();
    const Node* start = node->input(i + 2)->node();
    const Node* next = body->outputs()[i + 1]->node();
    std::vector<Value*> inner;
    for (size_t k = 0; k < n; ++k) {
      const TypePtr& element = type->contained()[k];
      node->insertInput(i + 3 + k, start->input(k));
      inner.push_back(body->insertInput(i + 2 + k, element));
      body->insertOutput(i + 2 + k, next->input(k));
      node->insertOutput(i + 1 + k, element);
    }
    Graph* graph = node->graph();
    Node* tuple = graph->createTuple(inner, type->isNamed() ? type : nullptr);
    body->prependNode(tuple)->output()->setType(type);
    body->inputs()[i + 1]->replaceAllUsesWith(tuple->output());
    rejoin(node, whole, i + 1, type);
    body->eraseOutput(i + 1);
    body->eraseInput(i + 1);
    node->removeInput(i + 2);
    node->eraseOutput(i);
    changed = true;
  }
  return changed;
}

}  // namespace

bool lowerTuples(Graph& graph) {
  bool changed = forEachNode(graph.block(), [](Node* node) {
                   if (node->kind() == prim::If) return splitBranch(node);
                   return node->kind() == prim::Loop && splitLoop(node);
                 }) != 0;
  changed |= lowerSimpleTuples(
      graph, [](const Node* n) { return WICK_MAY_OPTIMIZE("takes apart for {}", n->str()); });
  if (changed) removeDeadValues(graph);
  return changed;
}

}  // namespace wick
