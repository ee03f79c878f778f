// Names are taken away from all values first: a name that is still in use would make a new one get
// a suffix.
//
//   %y.3 : int = aten::add(%b, %a)     →     %v.3 : int = aten::add(%v.1, %v.2)
#include "passes/canonicalize.h"

#include <map>

#include "passes/constant_pooling.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

template <class F>
void forEachValue(Block* b, F&& f) {
  for (Value* v : b->inputs()) f(v);
  for (Node* n : b->nodes()) {
    for (Block* sub : n->blocks()) forEachValue(sub, f);
    for (Value* v : n->outputs()) f(v);
  }
}

bool isCommutative(const Node* n) {
  static const std::unordered_set<Symbol> kKinds = {aten::add, aten::mul, aten::eq, aten::ne};
  if (kKinds.count(n->kind()) == 0 || n->inputs().size() != 2) return false;
  for (const Value* v : n->inputs()) {
    TypeKind kind = v->type()->kind();
    if (kind != TypeKind::Int && kind != TypeKind::Float && kind != TypeKind::Bool) return false;
  }
  return sameType(n->input(0)->type(), n->input(1)->type());
}

bool definedBefore(const Value* a, const Value* b) {
  return a->node() == b->node() ? a->offset() < b->offset() : a->node()->isBefore(b->node());
}

void orderOperands(Block* b) {
  for (Node* n : b->nodes()) {
    for (Block* sub : n->blocks()) orderOperands(sub);
    if (!isCommutative(n) || !definedBefore(n->input(1), n->input(0))) continue;
    Value* first = n->input(0);
    Value* second = n->input(1);
    n->replaceInput(0, second);
    n->replaceInput(1, first);
  }
}

size_t countIn(const Block* b) {
  size_t count = 0;
  std::multimap<size_t, const Node*> seen;
  for (const Node* n : b->nodes()) {
    for (const Block* sub : n->blocks()) count += countIn(sub);
    if (!n->blocks().empty() || n->outputs().empty()) continue;
    size_t hash = n->kind().id() * size_t{31} + hashAttributes(n);
    for (const Value* v : n->inputs()) hash = hash * 1099511628211u + v->id();
    bool found = false;
    auto [first, last] = seen.equal_range(hash);
    for (auto it = first; it != last && !found; ++it) {
      found = it->second->kind() == n->kind() && it->second->inputs() == n->inputs() &&
              sameAttributes(it->second, n);
    }
    if (found) {
      ++count;
    } else {
      seen.emplace(hash, n);
    }
  }
  return count;
}

}  // namespace

void canonicalize(Graph& graph) {
  poolConstants(graph);
  orderOperands(graph.block());
  forEachValue(graph.block(), [](Value* v) { v->setDebugName(""); });
  size_t number = 0;
  forEachValue(graph.block(), [&](Value* v) { v->setDebugName("v." + std::to_string(++number)); });
}

size_t countDuplicates(const Graph& graph) {
  return countIn(graph.block());
}

}  // namespace wick
