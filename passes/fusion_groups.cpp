// Blocks are walked from their ends. A node that computes opens a group; then the producers of the
// group's inputs are moved in front of it and taken in, the latest first, until none joins; then
// nodes that read what the group reads, with their producers. Groups that stayed too small are
// dissolved at the end:
//
//   %a = aten::mul(%x, %y)
//   %b = aten::tanh(%a)            →   %b = prim::FusionGroup_0(%x, %y)
//   return (%b)                        with prim::FusionGroup_0 = graph(%x, %y): mul, tanh
#include "passes/fusion_groups.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

// Uses of a value that are looked at, and nodes that a producer may pass on its way to the group, so
// that the pass stays linear.
constexpr size_t kMaxUses = 16;
constexpr size_t kMaxDistance = 128;

// How many nodes a node holds in its blocks, and how many prim::Ifs it is and holds.
struct Extent {
  size_t nodes = 0;
  size_t branches = 0;
};
void addExtent(const Node* node, Extent& extent) {
  extent.branches += node->kind() == prim::If;
  for (const Block* block : node->blocks()) {
    for (const Node* inner : block->nodes()) {
      ++extent.nodes;
      addExtent(inner, extent);
    }
  }
}
Extent extentOf(const Node* node) {
  Extent extent;
  addExtent(node, extent);
  return extent;
}

void addCaptured(const Block* block, std::unordered_set<const Value*>& inside,
                 std::vector<Value*>& captured) {
  const auto read = [&](Value* v) {
    if (inside.insert(v).second) captured.push_back(v);
  };
  for (const Node* node : block->nodes()) {
    for (Value* v : node->inputs()) read(v);
    for (const Block* inner : node->blocks()) addCaptured(inner, inside, captured);
    inside.insert(node->outputs().begin(), node->outputs().end());
  }
  for (Value* v : block->outputs()) read(v);
}

// What a node reads, also in its blocks.
std::vector<Value*> readBy(const Node* node) {
  std::vector<Value*> values(node->inputs().begin(), node->inputs().end());
  if (node->blocks().empty()) return values;
  std::unordered_set<const Value*> inside(values.begin(), values.end());
  for (const Block* block : node->blocks()) addCaptured(block, inside, values);
  return values;
}

// A group that is being gathered. `inputs[i]` of the node is input i of its body.
class Group {
 public:
  Group(Node* seed, Symbol kind)
      : node_(seed->graph()->create(kind, 0)), body_(std::make_shared<Graph>()) {
    node_->setRange(seed->range());
    node_->setInlinedFrom(seed->inlinedFrom());
    node_->insertAfter(seed);
    node_->setAttribute(attr::Subgraph, body_);
  }

  Node* node() const { return node_; }
  size_t size() const { return size_; }
  size_t branches() const { return branches_; }
  bool reads(const Value* v) const { return inputs_.count(v) != 0; }

  // Inputs and outputs after `node` joined.
  size_t valuesWith(const Node* node) const {
    size_t count = node_->inputs().size() + node_->outputs().size();
    for (const Value* v : node->outputs()) {
      count -= reads(v);
      count += isUsedElsewhere(v);
    }
    for (const Value* v : readBy(node)) count += !reads(v) && v->node()->kind() != prim::Constant;
    return count;
  }
  bool isUsedElsewhere(const Value* v) const {
    return std::any_of(v->uses().begin(), v->uses().end(),
                       [&](const Use& use) { return use.user != node_; });
  }

  // Takes in a node that stands right in front of the group, and destroys it.
  void join(Node* node, AliasDb& aliases) {
    Node* copy = cloneInside(node);
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      replace(node->output(i), copy->output(i), aliases);
    }
    aliases.removeNode(node);
    node->destroy();
  }

  // Makes the list that a node outside makes too.
  void joinCopy(const Node* list) { takeOver(list->output(), cloneInside(list)->output()); }

 private:
  Node* cloneInside(const Node* node) {
    std::unordered_map<Value*, Value*> map;
    for (Value* v : readBy(node)) map[v] = inside(v);
    Node* copy = body_->createClone(node, map);
    if (last_constant_) {
      copy->insertAfter(last_constant_);
    } else {
      body_->block()->prependNode(copy);
    }
    const Extent extent = extentOf(node);
    size_ += 1 + extent.nodes;
    branches_ += extent.branches;
    return copy;
  }

  // The body's value for an outer one: a constant's copy, which goes to the front, or an input.
  Value* inside(Value* v) {
    if (v->node()->kind() == prim::Constant) {
      auto [it, added] = constants_.emplace(v, nullptr);
      if (added) {
        Node* copy = body_->block()->prependNode(body_->createClone(v->node(), {}));
        it->second = copy->output();
        if (!last_constant_) last_constant_ = copy;
      }
      return it->second;
    }
    auto [it, added] = inputs_.emplace(v, nullptr);
    if (added) {
      it->second = body_->block()->addInput(v->type());
      node_->addInput(v);
    }
    return it->second;
  }

  // What was an input is computed inside.
  void takeOver(const Value* outer, Value* inner) {
    auto it = inputs_.find(outer);
    if (it == inputs_.end()) return;
    it->second->replaceAllUsesWith(inner);
    const size_t i = it->second->offset();
    body_->block()->eraseInput(i);
    node_->removeInput(i);
    inputs_.erase(it);
  }

  void replace(Value* outer, Value* inner, AliasDb& aliases) {
    takeOver(outer, inner);
    if (!outer->hasUses()) return;
    body_->registerOutput(inner);
    Value* result = node_->addOutput(outer->type());
    aliases.addFresh(result);
    aliases.takesOver(result, outer);
    replaceValue(outer, result);
  }

  Node* node_;
  std::shared_ptr<Graph> body_;
  size_t size_ = 0;
  size_t branches_ = 0;
  std::unordered_map<const Value*, Value*> inputs_;
  std::unordered_map<const Value*, Value*> constants_;
  Node* last_constant_ = nullptr;  // constants stand in front of all other nodes
};

class Fuser {
 public:
  Fuser(Graph& graph, const FusionOptions& options) : options_(options), aliases_(graph) {}

  void block(Block* b) {
    for (Node* node = b->returnNode()->prev(); node != b->returnNode();) {
      const bool computing = computes(node);
      if (!computing) {
        for (Block* sub : node->blocks()) block(sub);
      }
      if (!computing || !WICK_MAY_OPTIMIZE("groups around {}", node->str())) {
        node = node->prev();
        continue;
      }
      Group group(node, options_.group_kind);
      Node* const behind = node->next();
      group.join(node, aliases_);
      grow(group);
      // What made way for nodes that joined stands behind the group now, and may be groups too.
      node = behind->prev();
    }
  }

 private:
  bool joins(const Node* node) const {
    if (node->kind() == prim::If) return isJoiningBranch(node);
    if (!node->blocks().empty() || aliases_.writes(node) || hasOtherEffects(node)) return false;
    // Nobody writes to what became a constant (passes/constant_propagation.h).
    const auto changes = [&](const Value* v) {
      return v->type()->kind() == TypeKind::List && v->node()->kind() != prim::Constant &&
             aliases_.hasWriters(v);
    };
    if (std::any_of(node->inputs().begin(), node->inputs().end(), changes)) return false;
    return options_.kind_of(node) != FusionKind::None;
  }
  // Whether the node has effects that a group cannot have.
  bool hasOtherEffects(const Node* node) const {
    if (!aliases_.hasOrderedEffects(node)) return false;
    return !options_.may_draw || !node->isNondeterministic() || node->hasSideEffects();
  }
  bool computes(const Node* node) const {
    if (node->kind() == prim::If) return joins(node);
    FusionKind kind = options_.kind_of(node);
    return (kind == FusionKind::Pointwise || kind == FusionKind::Reduction ||
            kind == FusionKind::Indexed || kind == FusionKind::Composite) &&
           joins(node);
  }
  // Whether all of the blocks may be in a group. Asked again and again, so the answer is kept.
  bool isJoiningBranch(const Node* node) const {
    if (options_.max_branches == 0) return false;
    const auto known = branches_.find(node);
    if (known != branches_.end()) return known->second;
    return branches_[node] = looksLikeJoiningBranch(node);
  }
  bool looksLikeJoiningBranch(const Node* node) const {
    const Extent extent = extentOf(node);
    if (extent.branches > options_.max_branches || extent.nodes > options_.max_nodes ||
        aliases_.writes(node) || aliases_.hasOrderedEffects(node)) {
      return false;
    }
    for (const Block* block : node->blocks()) {
      for (const Node* inner : block->nodes()) {
        const bool fits =
            inner->kind() == prim::Constant ||
            (inner->kind() == prim::ListConstruct && !aliases_.hasWriters(inner->output())) ||
            joins(inner);
        if (!fits) return false;
      }
      for (const Value* v : block->outputs()) {
        if (!mayHandOn(v, block)) return false;
      }
    }
    return std::ranges::none_of(node->outputs(),
                                [&](const Value* v) { return isOutside(v) && isExposed(v); });
  }
  // Whether a block may have this result: a tensor that it computes or that is there before.
  bool mayHandOn(const Value* v, const Block* block) const {
    if (v->type()->kind() != TypeKind::Tensor) return false;
    const Node* node = v->node();
    if (node->block() == block) return node->kind() != prim::Constant && computes(node);
    return options_.kind_of(node) != FusionKind::View;
  }
  // Whether a result of an If may be a value from outside of it.
  static bool isOutside(const Value* result) {
    return std::ranges::any_of(result->node()->blocks(), [&](const Block* block) {
      const Value* v = block->outputs()[result->offset()];
      return v->node()->block() != block || (v->node()->kind() == prim::If && isOutside(v));
    });
  }
  bool isExposed(const Value* v) const {
    if (!options_.exposes) return false;
    return v->uses().size() > kMaxUses || std::ranges::any_of(v->uses(), [&](const Use& use) {
             const Node* around = use.user->block()->owningNode();
             if (use.user->kind() == prim::Return && around && around->kind() == prim::If) {
               return isExposed(around->output(use.offset));
             }
             return options_.exposes(use.user);
           });
  }

  // What a kernel does not make an object of must stay inside: views and the list that a cat reads.
  bool mayJoin(const Node* node, const Group& group) const {
    if (options_.exposes && isExposed(node, group)) return false;
    if (computes(node)) return true;
    if (node->kind() == prim::ListConstruct) {
      return !group.isUsedElsewhere(node->output()) || !aliases_.hasWriters(node->output());
    }
    if (!joins(node)) return false;
    return std::none_of(node->outputs().begin(), node->outputs().end(),
                        [&](const Value* v) { return group.isUsedElsewhere(v); });
  }

  // Whether a result that the group reads is, or might be, read by others that may not do so then.
  bool isExposed(const Node* node, const Group& group) const {
    return std::ranges::any_of(node->outputs(), [&](const Value* v) {
      if (!group.reads(v)) return false;
      return v->uses().size() > kMaxUses || std::ranges::any_of(v->uses(), [&](const Use& use) {
               return use.user != group.node() && options_.exposes(use.user);
             });
    });
  }

  void grow(Group& group) {
    std::unordered_set<const Node*> refused;
    while (group.size() < options_.max_nodes) {
      Node* producer = nextProducer(group, refused);
      if (!producer) producer = nextSibling(group, refused);
      if (!producer) return;
      const bool shared_list =
          producer->kind() == prim::ListConstruct && group.isUsedElsewhere(producer->output());
      const bool fits = group.valuesWith(producer) <= options_.max_values &&
                        group.branches() + extentOf(producer).branches <= options_.max_branches;
      if (!fits) {
        refused.insert(producer);
      } else if (shared_list) {
        group.joinCopy(producer);
      } else if (isNear(producer, group.node()) &&
                 aliases_.moveBeforeTopologicallyValid(producer, group.node())) {
        group.join(producer, aliases_);
      } else {
        refused.insert(producer);
      }
    }
  }

  // `node` stands in front of `group`. What switches recording for gradients on or off is a wall.
  bool isNear(const Node* node, const Node* group) const {
    size_t steps = 0;
    while (node != group && steps++ <= kMaxDistance && !mayChangeGradMode(node)) {
      node = node->next();
    }
    return node == group;
  }

  // The latest node of the block that gives the group an input and may join: nodes that stand
  // between it and the group and read it have been tried before.
  Node* nextProducer(const Group& group, const std::unordered_set<const Node*>& refused) const {
    Node* best = nullptr;
    for (const Value* v : group.node()->inputs()) {
      Node* node = v->node();
      if (node->block() != group.node()->block() || node->kind() == prim::Param) continue;
      if (refused.count(node) || !mayJoin(node, group)) continue;
      if (!best || best->isBefore(node)) best = node;
    }
    return best;
  }

  // The latest node in front of the group that computes from a tensor which the group reads.
  Node* nextSibling(const Group& group, const std::unordered_set<const Node*>& refused) const {
    Node* best = nullptr;
    for (const Value* v : group.node()->inputs()) {
      if (v->type()->kind() != TypeKind::Tensor || v->uses().size() > kMaxUses) continue;
      for (const Use& use : v->uses()) {
        Node* node = use.user;
        if (node->block() != group.node()->block() || node->kind() == prim::FusionGroup ||
            refused.count(node) || !node->isBefore(group.node()) || !computes(node) ||
            (options_.exposes && isExposed(node, group))) {
          continue;
        }
        if (!best || best->isBefore(node)) best = node;
      }
    }
    return best;
  }

  const FusionOptions& options_;
  AliasDb aliases_;
  mutable std::unordered_map<const Node*, bool> branches_;  // prim::Ifs: whether they may join
};

// Lists that could not join spoil the group: they are not arguments of kernels.
bool readsLists(const Node& group) {
  return std::any_of(group.inputs().begin(), group.inputs().end(),
                     [](const Value* v) { return v->type()->kind() == TypeKind::List; });
}

// Adds what the nodes of a block compute, up to what is enough.
void addComputing(const Block* block, const FusionOptions& options, size_t& computing) {
  for (const Node* node : block->nodes()) {
    const FusionKind kind = options.kind_of(node);
    computing += kind == FusionKind::Pointwise || kind == FusionKind::Reduction ||
                 kind == FusionKind::Indexed;
    if (kind == FusionKind::Composite) computing += 2;
    if (kind == FusionKind::Pointwise && computing < options.min_computing_nodes &&
        options.suffices && options.suffices(node)) {
      computing = options.min_computing_nodes;
    }
    for (const Block* inner : node->blocks()) addComputing(inner, options, computing);
  }
}

bool computesEnough(const Block* block, const FusionOptions& options) {
  size_t computing = 0;
  addComputing(block, options, computing);
  return computing >= options.min_computing_nodes;
}

void dissolve(const Graph& graph, Symbol kind, const std::function<bool(const Node&)>& which) {
  forEachNode(graph.block(), [&](Node* node) {
    if (node->kind() != kind || !which(*node)) return;
    InsertPointGuard guard(node);
    std::vector<Value*> results =
        inlineGraph(*node->graph(), *node->subgraph(attr::Subgraph), node->inputs());
    for (size_t i = 0; i < results.size(); ++i) replaceValue(node->output(i), results[i]);
    node->destroy();
  });
}

}  // namespace

void formFusionGroups(Graph& graph, const FusionOptions& options) {
  Fuser(graph, options).block(graph.block());
  dissolve(graph, options.group_kind, [&](const Node& group) {
    return readsLists(group) || !computesEnough(group.subgraph(attr::Subgraph)->block(), options);
  });
}

void dissolveFusionGroups(Graph& graph) {
  const auto all = [](const Node&) { return true; };
  dissolve(graph, prim::FusionGroup, all);
  dissolve(graph, prim::DifferentiableGraph, all);
}

}  // namespace wick
