// One walk with a table of the constants seen so far.
//
//   %a : int = prim::Constant[value=1]()           %a : int = prim::Constant[value=1]()
//   %y = prim::If(%c)                              %y = prim::If(%c)
//     block0():                               →      block0():
//       %b : int = prim::Constant[value=1]()           -> (%a)
//       -> (%b)
#include "passes/constant_pooling.h"

#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

struct ConstantHash {
  // Copies share it.
  std::shared_ptr<ConstantHashes> known = std::make_shared<ConstantHashes>();
  size_t operator()(const Node* n) const {
    return hashAttributes(n, known.get()) * 31 + static_cast<size_t>(n->output()->type()->kind());
  }
};

struct ConstantEqual {
  bool operator()(const Node* a, const Node* b) const {
    return sameType(a->output()->type(), b->output()->type()) && sameAttributes(a, b);
  }
};

// Whether nobody can tell the object from an equal one.
bool isInterchangeable(const Node* n) {
  const Value* v = n->output();
  return !AliasDb::isMutable(v->type()) || isOnlyRead(v);
}

bool isOneObject(const Node* a, const Node* b) {
  std::optional<IValue> x = constantOf(a->output());
  std::optional<IValue> y = constantOf(b->output());
  return x->isSame(*y);
}

class Pool {
 public:
  bool block(Block* b, Node* front) {
    bool merged = false;
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      for (Block* sub : n->blocks()) merged |= block(sub, front);
      if (n->kind() != prim::Constant) continue;
      auto [found, inserted] = seen_.insert(n);
      Node* kept = *found;
      if (inserted || !mayMerge(kept, n) || !WICK_MAY_OPTIMIZE("merges {}", n->str())) {
        place(n, front);
        continue;
      }
      replaceValue(n->output(), kept->output());
      n->destroy();
      merged = true;
    }
    return merged;
  }

 private:
  // Whether two constants can be told apart is asked once for the one that is kept: merging adds
  // users, all of which only read.
  bool mayMerge(const Node* kept, const Node* n) {
    if (isOneObject(kept, n)) return true;
    auto [it, inserted] = interchangeable_.try_emplace(kept, false);
    if (inserted) it->second = isInterchangeable(kept);
    return it->second && isInterchangeable(n);
  }

  void place(Node* n, Node* front) {
    Node* after = last_ ? last_ : front;
    if (n->prev() != after) n->moveAfter(after);
    last_ = n;
  }

  std::unordered_set<Node*, ConstantHash, ConstantEqual> seen_;
  std::unordered_map<const Node*, bool> interchangeable_;
  Node* last_ = nullptr;  // of the constants at the beginning
};

}  // namespace

bool poolConstants(Graph& graph) {
  // The Return node closes the circle of a block's list: its successor is the first node.
  return Pool().block(graph.block(), graph.returnNode());
}

}  // namespace wick
