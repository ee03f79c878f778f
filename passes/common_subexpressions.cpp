// A walk in the order of the graph with a table of the nodes seen, hashed by operator, inputs and
// attributes. Entries of a block are taken out again at its end, so that whatever the table holds
// is in scope.
//
//   %a = aten::relu(%x)           %a = aten::relu(%x)
//   %b = aten::relu(%x)     →
//   %c = aten::mul(%a, %b)        %c = aten::mul(%a, %a)
#include "passes/common_subexpressions.h"

#include <algorithm>
#include <unordered_set>

#include "core/keyed_hash.h"
#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

struct NodeHash {
  size_t operator()(const Node* n) const {
    size_t h = n->kind().id() * size_t{31} + n->outputs().size();
    for (const Value* v : n->inputs()) h = keyedHash(h, v->id());
    return h * 31 + hashAttributes(n);
  }
};

struct NodeEqual {
  bool operator()(const Node* a, const Node* b) const {
    if (a->kind() != b->kind() || a->inputs() != b->inputs() ||
        a->outputs().size() != b->outputs().size()) {
      return false;
    }
    for (size_t i = 0; i < a->outputs().size(); ++i) {
      if (!sameType(unshapedType(a->output(i)->type()), unshapedType(b->output(i)->type()))) {
        return false;
      }
    }
    return sameAttributes(a, b);
  }
};

// How many calls walk back for gradients; two stand for any number.
size_t walksIn(const Block* block) {
  static const Symbol kGrad = Symbol::aten("grad"), kBackward = Symbol::aten("backward");
  size_t walks = 0;
  for (const Node* n : block->nodes()) {
    walks += n->kind() == kGrad || n->kind() == kBackward;
    for (const Block* sub : n->blocks()) {
      walks += walksIn(sub) * (n->kind() == prim::Loop ? 2 : 1);
    }
  }
  return std::min<size_t>(walks, 2);
}

class Eliminator {
 public:
  explicit Eliminator(Graph& graph) : aliases_(graph), walked_apart_(walksIn(graph.block()) > 1) {}

  bool block(Block* b) {
    bool changed = false;
    std::vector<Node*> added;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) changed |= block(sub);
      if (!mayMerge(n)) continue;
      auto [found, inserted] = seen_.insert(n);
      if (inserted) {
        added.push_back(n);
      } else if (safeToMerge(*found, n) && WICK_MAY_OPTIMIZE("merges {}", n->str())) {
        merge(*found, n);
        changed = true;
      }
    }
    for (Node* n : added) seen_.erase(n);
    return changed;
  }

 private:
  bool mayMerge(const Node* n) const {
    Symbol kind = n->kind();
    // Constants are pooled by a pass of their own; a new object is not another new object.
    if (kind == prim::Constant || kind == prim::CreateObject || kind == prim::Uninitialized) {
      return false;
    }
    if (!n->blocks().empty() || n->outputs().empty() || n->hasSideEffects()) return false;
    // After a walk the operators that it came through keep nothing. Another walk may need its own.
    if (walked_apart_ && std::ranges::any_of(n->outputs(), [](const Value* v) {
          return AliasDb::isMutable(v->type());
        })) {
      return false;
    }
    return !aliases_.hasOrderedEffects(n) && !aliases_.hasWriters(n);
  }

  bool safeToMerge(const Node* kept, const Node* dropped) const {
    for (size_t i = 0; i < kept->outputs().size(); ++i) {
      const Value* a = kept->output(i);
      const Value* b = dropped->output(i);
      if (!AliasDb::isMutable(a->type())) continue;
      // Views of one tensor, or attributes of one object, were the same memory before.
      bool same_memory = kept->kind() == prim::GetAttr;
      if (!same_memory && aliases_.escapesScope(a) && aliases_.escapesScope(b)) return false;
      if (identityIsObserved(a) || identityIsObserved(b)) return false;
    }
    return true;
  }

  void merge(Node* kept, Node* dropped) {
    for (size_t i = 0; i < kept->outputs().size(); ++i) {
      aliases_.takesOver(kept->output(i), dropped->output(i));
      replaceValue(dropped->output(i), kept->output(i));
    }
    aliases_.removeNode(dropped);
    dropped->destroy();
  }

  AliasDb aliases_;
  const bool walked_apart_;
  std::unordered_set<Node*, NodeHash, NodeEqual> seen_;
};

}  // namespace

bool eliminateCommonSubexpressions(Graph& graph) {
  if (mayChangeGradMode(graph.block())) return false;
  return Eliminator(graph).block(graph.block());
}

}  // namespace wick
