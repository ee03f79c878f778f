//   %y = prim::Loop(%n, %true, %h)              %c : Tensor = wick::loop_weight(%w, %n)
//     block0(%i, %p):                           %y = prim::Loop(%n, %true, %h)
//       %t : Tensor = aten::t(%w)         →       block0(%i, %p):
//       %q : Tensor = aten::mm(%p, %t)              %t : Tensor = aten::t(%w)
//       -> (%true, %q)                              %q : Tensor = wick::mm_weight(%p, %t, %c)
//                                                   -> (%true, %q)
#include "passes/copy_loop_weights.h"

#include <unordered_map>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

class WeightCopier {
 public:
  explicit WeightCopier(Graph& graph) : graph_(graph), aliases_(graph) {}

  size_t run() {
    return forEachNode(graph_.block(), [&](Node* n) {
      return n->kind() == prim::Loop && isCounted(n) ? loop(n) : size_t{0};
    });
  }

 private:
  // How often a while loop iterates is not known when it begins.
  static bool isCounted(const Node* loop) { return boolOf(loop->input(1)).value_or(false); }

  size_t loop(Node* loop) {
    static const Symbol kMm = Symbol::aten("mm");
    static const Symbol kProduct = Symbol::fromQualString("wick::mm_weight");
    Block* body = loop->blocks()[0];
    std::unordered_map<Value*, Value*> copies;
    size_t changed = 0;
    for (auto it = body->nodes().begin(), end = body->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      if (n->kind() != kMm || n->inputs().size() != 2) continue;
      Value* w = weightOf(n->input(1), body);
      if (!w || !WICK_MAY_OPTIMIZE("keeps the weight of {}", n->str())) continue;
      Value*& copy = copies[w];
      if (!copy) copy = copyBefore(loop, n, w);
      InsertPointGuard guard(n);
      RangeGuard range(&graph_, n->range());
      Node* product = graph_.insertNode(graph_.create(kProduct, {n->input(0), n->input(1), copy}));
      product->output()->setType(n->output()->type());
      n->output()->replaceAllUsesWith(product->output());
      n->destroy();
      ++changed;
    }
    return changed;
  }

  // w of t(w) when it comes from outside of the body and stays as it is; else null.
  Value* weightOf(Value* transposed, const Block* body) const {
    static const Symbol kT = Symbol::aten("t");
    Node* t = transposed->node();
    if (t->kind() != kT || t->inputs().size() != 1) return nullptr;
    Value* w = t->input(0);
    return w->node()->block() != body && !aliases_.hasWriters(w) ? w : nullptr;
  }

  Value* copyBefore(Node* loop, const Node* product, Value* w) {
    static const Symbol kCopy = Symbol::fromQualString("wick::loop_weight");
    InsertPointGuard guard(loop);
    RangeGuard range(&graph_, product->range());
    return graph_.insertNode(graph_.create(kCopy, {w, loop->input(0)}))->output();
  }

  Graph& graph_;
  AliasDb aliases_;
};

}  // namespace

size_t copyLoopWeights(Graph& graph) {
  return WeightCopier(graph).run();
}

}  // namespace wick
