// Each copy reads what the one before it gives; the number of the iteration becomes a constant.
//
//   %y = prim::Loop(%two, %true, %x)          %i0 : int = prim::Constant[value=0]()
//     block0(%i, %p):                         %q0 = aten::add(%x, %i0)
//       %q = aten::add(%p, %i)          →     %i1 : int = prim::Constant[value=1]()
//       -> (%true, %q)                        %q1 = aten::add(%q0, %i1)
#include "passes/unroll_loops.h"

#include "core/optimization_limit.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

size_t countNodes(const Block* b, size_t limit) {
  size_t n = 0;
  for (const Node* node : b->nodes()) {
    if (++n > limit) break;
    for (const Block* sub : node->blocks()) n += countNodes(sub, limit);
  }
  return n;
}

// The number of iterations, when the loop always has just that many.
std::optional<int64_t> turnsOf(const Node* loop) {
  std::optional<int64_t> turns = intOf(loop->input(0));
  if (!turns || !boolOf(loop->input(1)).value_or(false)) return std::nullopt;
  if (!boolOf(loop->blocks()[0]->outputs()[0]).value_or(false)) return std::nullopt;
  return std::max<int64_t>(*turns, 0);
}

void unroll(Node* loop, int64_t turns) {
  Graph* graph = loop->graph();
  Block* body = loop->blocks()[0];
  InsertPointGuard guard(loop);
  RangeGuard range(graph, loop->range());
  std::vector<Value*> carried(loop->inputs().begin() + 2, loop->inputs().end());
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::unordered_map<Value*, Value*> map;
    map[body->inputs()[0]] = graph->insertConstant(IValue(turn));
    for (size_t i = 0; i < carried.size(); ++i) map[body->inputs()[i + 1]] = carried[i];
    for (Node* n : body->nodes()) {
      Node* copy = graph->insertNode(graph->createClone(n, map));
      for (size_t i = 0; i < n->outputs().size(); ++i) map[n->output(i)] = copy->output(i);
    }
    for (size_t i = 0; i < carried.size(); ++i) {
      auto found = map.find(body->outputs()[i + 1]);
      carried[i] = found == map.end() ? body->outputs()[i + 1] : found->second;
    }
  }
  for (size_t i = 0; i < carried.size(); ++i) {
    loop->output(i)->replaceAllUsesWith(carried[i]);
  }
  loop->destroy();
}

// Where a carried value is declared wider than what flows in (an Optional that starts as None),
// nodes of the body may rely on the declared type.
bool typesAreKept(const Node* loop) {
  const Block* body = loop->blocks()[0];
  for (size_t i = 0; i < loop->outputs().size(); ++i) {
    const TypePtr& declared = body->inputs()[i + 1]->type();
    auto same = [wanted = unshapedType(declared)](const Value* v) {
      return sameType(unshapedType(v->type()), wanted);
    };
    if (!same(loop->input(i + 2)) || !same(body->outputs()[i + 1]) || !same(loop->output(i))) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool unrollLoop(Node* loop, const UnrollLimits& limits) {
  std::optional<int64_t> turns = turnsOf(loop);
  if (!turns || *turns > limits.turns || !typesAreKept(loop)) return false;
  const auto times = static_cast<size_t>(std::max<int64_t>(*turns, 1));
  size_t size = countNodes(loop->blocks()[0], limits.body_nodes);
  if (size > limits.body_nodes || size > limits.nodes / times) return false;
  if (!WICK_MAY_OPTIMIZE("unrolls {} iterations", *turns)) return false;
  unroll(loop, *turns);
  return true;
}

bool unrollLoops(Graph& graph) {
  return unrollLoopsWithin(graph, {});
}

bool unrollLoopsWithin(Graph& graph, const UnrollLimits& limits) {
  return forEachNode(graph.block(), [&](Node* n) {
           return n->kind() == prim::Loop && unrollLoop(n, limits);
         }) != 0;
}

}  // namespace wick
