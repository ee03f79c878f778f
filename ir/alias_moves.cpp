// Moving a node past others. The walk from the node to its destination collects a working set:
// what depends on the node or on something collected already and therefore has to move along.
//
//   a = neg(x)         move a behind d          d = relu(y)
//   b = relu(a)             →                   a = neg(x)
//   d = relu(y)                                 b = relu(a)
//
// When the node ends on the far side of its destination, everything that was collected ends there
// behind it. When it stays on the near side (an `a` before `d` that is to stand right before `d`),
// what was collected goes to the far side instead, and only that has to be free to pass `d`.
#include <algorithm>

#include "core/error.h"
#include "ir/alias_db.h"

namespace wick {

class WorkingSet {
 public:
  WorkingSet(const AliasDb& db, Node* node) : db_(db) { add(node); }

  void add(Node* n) {
    nodes_.push_back(n);
    noteValues(n);
    std::vector<AliasDb::Location> locations;
    db_.collectWrites(n, locations);
    written_.insert(locations.begin(), locations.end());
    locations.clear();
    reads_all_ |= db_.collectReads(n, locations);
    read_.insert(locations.begin(), locations.end());
    effects_ |= db_.hasOrderedEffects(n);
    leaves_ |= mayLeave(n);
  }

  // The set without the node it began with.
  WorkingSet withoutFirst() const {
    WorkingSet rest(db_);
    for (size_t i = 1; i < nodes_.size(); ++i) rest.add(nodes_[i]);
    return rest;
  }

  // Whether `n` must keep its place relative to something in the set.
  bool dependsOn(const Node* n) const {
    if (readsDefined(n)) return true;
    for (const Value* v : n->outputs()) {
      if (used_.count(v) != 0) return true;
    }
    if (effects_ && db_.hasOrderedEffects(n)) return true;
    // Whoever goes on elsewhere must find all earlier writes made, and no later one.
    if ((leaves_ && db_.writes(n)) || (!written_.empty() && mayLeave(n))) return true;
    std::vector<AliasDb::Location> locations;
    db_.collectWrites(n, locations);
    if (reads_all_ && !locations.empty()) return true;
    for (AliasDb::Location l : locations) {
      if (read_.count(l) != 0 || written_.count(l) != 0) return true;
    }
    if (written_.empty()) return false;
    locations.clear();
    if (db_.collectReads(n, locations)) return true;
    return std::any_of(locations.begin(), locations.end(),
                       [&](AliasDb::Location l) { return written_.count(l) != 0; });
  }

  const std::vector<Node*>& nodes() const { return nodes_; }

 private:
  explicit WorkingSet(const AliasDb& db) : db_(db) {}

  void noteValues(const Node* n) {
    used_.insert(n->inputs().begin(), n->inputs().end());
    defined_.insert(n->outputs().begin(), n->outputs().end());
    for (const Block* b : n->blocks()) {
      for (const Node* inner : b->nodes()) noteValues(inner);
      noteValues(b->returnNode());
    }
  }

  bool readsDefined(const Node* n) const {
    for (const Value* v : n->inputs()) {
      if (defined_.count(v) != 0) return true;
    }
    for (const Block* b : n->blocks()) {
      for (const Node* inner : b->nodes()) {
        if (readsDefined(inner)) return true;
      }
      if (readsDefined(b->returnNode())) return true;
    }
    return false;
  }

  static bool mayLeave(const Node* n) {
    static const Symbol kBailOut = Symbol::prim("BailOut");
    static const Symbol kGuard = Symbol::prim("Guard");
    if (n->kind() == kBailOut || n->kind() == kGuard) return true;
    for (const Block* b : n->blocks()) {
      for (const Node* inner : b->nodes()) {
        if (mayLeave(inner)) return true;
      }
    }
    return false;
  }

  const AliasDb& db_;
  std::vector<Node*> nodes_;
  std::unordered_set<const Value*> used_;
  std::unordered_set<const Value*> defined_;
  std::unordered_set<AliasDb::Location> read_;
  std::unordered_set<AliasDb::Location> written_;
  bool reads_all_ = false;
  bool effects_ = false;
  bool leaves_ = false;
};

bool AliasDb::tryMove(Node* node, Node* point, Side side, bool dry_run) {
  WICK_ASSERT(node->block() == point->block(), "moving {} to another block",
              node->kind().qualString());
  if (node == point) return true;
  for (const Node* n : {node, point}) {
    if (n->kind() == prim::Param || n->kind() == prim::Return) return false;
  }
  const bool forwards = node->isBefore(point);
  WorkingSet set(*this, node);
  for (Node* n = forwards ? node->next() : node->prev(); n != point;
       n = forwards ? n->next() : n->prev()) {
    if (set.dependsOn(n)) set.add(n);
  }
  const bool near = forwards == (side == Side::Before);
  std::vector<Node*> followers(set.nodes().begin() + 1, set.nodes().end());
  bool blocked = near ? set.withoutFirst().dependsOn(point) : set.dependsOn(point);
  if (blocked) return false;
  if (dry_run) return true;
  side == Side::Before ? node->moveBefore(point) : node->moveAfter(point);
  Node* at = near ? point : node;
  // Followers keep their order, away from the node in the direction of the walk.
  for (Node* n : followers) {
    forwards ? n->moveAfter(at) : n->moveBefore(at);
    at = n;
  }
  return true;
}

bool AliasDb::moveAfterTopologicallyValid(Node* node, Node* point) {
  return tryMove(node, point, Side::After, /*dry_run=*/false);
}
bool AliasDb::moveBeforeTopologicallyValid(Node* node, Node* point) {
  return tryMove(node, point, Side::Before, /*dry_run=*/false);
}
bool AliasDb::couldMoveAfterTopologically(Node* node, Node* point) {
  return tryMove(node, point, Side::After, /*dry_run=*/true);
}
bool AliasDb::couldMoveBeforeTopologically(Node* node, Node* point) {
  return tryMove(node, point, Side::Before, /*dry_run=*/true);
}

}  // namespace wick
