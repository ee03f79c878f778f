#include "runtime/fusion/form_loop_graphs.h"

#include <algorithm>
#include <memory>
#include <unordered_set>
#include <vector>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "passes/node_traits.h"
#include "runtime/fusion/outline.h"

namespace wick {

namespace {

// Uses of a value that are looked at.
constexpr size_t kMaxUses = 16;
// What one plan may return (autograd/region_plan.h).
constexpr size_t kMaxResults = 31;

bool isTrue(const Value* v) {
  const std::optional<IValue> c = constantOf(v);
  return c && c->isBool() && c->toBool();
}

bool isTensor(const Value* v) {
  return v->type()->kind() == TypeKind::Tensor;
}

bool isTensorList(const Value* v) {
  const auto* list = v->type()->as<ListType>();
  return list && list->element()->kind() == TypeKind::Tensor;
}

bool isAppend(const Node* node) {
  static const Symbol kAppend = Symbol::aten("append");
  return node->kind() == kAppend && node->inputs().size() == 2 && isTensorList(node->input(0)) &&
         isTensor(node->input(1)) &&
         std::ranges::none_of(node->outputs(), [](const Value* v) { return v->hasUses(); });
}

// Arithmetic with the number of the iteration.
bool isIntArithmetic(const Node* node) {
  static const std::unordered_set<Symbol> kKinds = {aten::__derive_index, Symbol::aten("add"),
                                                    Symbol::aten("sub"), Symbol::aten("mul"),
                                                    Symbol::aten("neg")};
  const auto isInt = [](const Value* v) { return v->type()->kind() == TypeKind::Int; };
  return kKinds.count(node->kind()) != 0 && std::ranges::all_of(node->inputs(), isInt) &&
         std::ranges::all_of(node->outputs(), isInt);
}

// One loop.
class Candidate {
 public:
  Candidate(Node* loop, const FusionOptions& options, const AliasDb& aliases)
      : loop_(loop), body_(loop->blocks()[0]), options_(options), aliases_(aliases) {}

  bool fits() {
    if (loop_->inputs().size() != loop_->outputs().size() + 2 || !isTrue(loop_->input(1)) ||
        !isTrue(body_->outputs()[0]) || !std::ranges::all_of(loop_->outputs(), isTensor)) {
      return false;
    }
    if (!holdsOnlyWhatJoins(body_) || computing_ < options_.min_computing_nodes) return false;
    const size_t results = loop_->outputs().size() + appends_.size();
    if (results > kMaxResults || nodes_ > options_.max_nodes || branches_ > options_.max_branches) {
      return false;
    }
    for (size_t k = 1; k < body_->outputs().size(); ++k) {
      if (!mayHandOn(body_->outputs()[k])) return false;
    }
    findCaptured(body_);
    if (loop_->inputs().size() + captured_.size() + results > options_.max_values) return false;
    return listsFit() && resultsFit();
  }

  // Puts the loop into a graph.
  void outline() {
    // What comes from another loop is a result of that one's graph by now.
    captured_.clear();
    lists_.clear();
    seen_.clear();
    findCaptured(body_);
    Graph& graph = *loop_->graph();
    Outline group(graph, options_.group_kind, loop_);
    group.node->insertBefore(loop_);
    for (Value* v : loop_->inputs()) group.read(v);
    for (Value* v : captured_) group.read(v);
    for (Value* list : lists_) {
      group.inside[list] =
          group.body->insertNode(group.body->createList(types::Tensor(), {}))->output();
    }
    group.copy(loop_);
    for (Value* v : loop_->outputs()) group.handOut(v);
    static const Symbol kExtend = Symbol::aten("extend");
    for (Value* list : lists_) {
      group.body->registerOutput(group.inside.at(list));
      Value* made = group.node->addOutput(list->type());
      Node* extend = graph.create(kExtend, {list, made}, 0);
      extend->setRange(appends_.front()->range());
      extend->setInlinedFrom(appends_.front()->inlinedFrom());
      extend->insertBefore(loop_);
    }
    group.node->setAttribute(attr::Subgraph, group.body);
    loop_->destroy();
  }

 private:
  bool holdsOnlyWhatJoins(const Block* block) {
    for (const Node* node : block->nodes()) {
      if (node->kind() == prim::Constant) continue;
      ++nodes_;
      if (node->kind() == prim::If) {
        if (!isJoiningBranch(node)) return false;
      } else if (isAppend(node) && block == body_) {
        appends_.push_back(node);
      } else if (!joins(node)) {
        return false;
      }
    }
    return true;
  }

  // Branches whose condition is known before the loop begins.
  bool isJoiningBranch(const Node* node) {
    ++branches_;
    if (isInside(node->input(0))) return false;
    for (const Block* block : node->blocks()) {
      if (!holdsOnlyWhatJoins(block)) return false;
      for (const Value* v : block->outputs()) {
        if (!mayHandOn(v)) return false;
      }
    }
    return true;
  }

  bool joins(const Node* node) {
    if (!node->blocks().empty() || aliases_.writes(node)) return false;
    if (aliases_.hasOrderedEffects(node) &&
        (!options_.may_draw || !node->isNondeterministic() || node->hasSideEffects())) {
      return false;
    }
    for (const Value* v : node->inputs()) {
      const bool list = v->type()->kind() == TypeKind::List;
      if (list && v->node()->kind() != prim::Constant && (!isInside(v) || aliases_.hasWriters(v))) {
        return false;
      }
    }
    if (node->kind() == prim::ListConstruct) return !aliases_.hasWriters(node->output());
    if (isIntArithmetic(node)) return true;
    const FusionKind kind = options_.kind_of(node);
    computing_ += computes(kind);
    return kind != FusionKind::None;
  }
  static bool computes(FusionKind kind) {
    return kind == FusionKind::Pointwise || kind == FusionKind::Reduction ||
           kind == FusionKind::Indexed || kind == FusionKind::Composite;
  }

  // Whether a block may have this result: a tensor that it computes, or that is there before. What
  // views give is left to the tape, which knows of what they are views.
  bool mayHandOn(const Value* v) const {
    if (!isTensor(v) || v->node()->kind() == prim::Constant) return false;
    const Node* node = v->node();
    if (node->kind() == prim::Param || !isInside(v)) return true;
    // That of an If has been looked at.
    if (node->kind() == prim::If) return true;
    return computes(options_.kind_of(node));
  }

  bool isInside(const Value* v) const {
    for (const Block* b = v->node()->block(); b;) {
      if (b == body_) return true;
      const Node* owner = b->owningNode();
      b = owner ? owner->block() : nullptr;
    }
    return false;
  }

  void findCaptured(const Block* block) {
    const auto read = [&](Value* v) {
      if (!isInside(v) && seen_.insert(v).second) captured_.push_back(v);
    };
    for (const Node* node : block->nodes()) {
      if (isAppend(node)) {
        if (seen_.insert(node->input(0)).second) lists_.push_back(node->input(0));
        read(node->input(1));
        continue;
      }
      for (Value* v : node->inputs()) read(v);
      for (const Block* inner : node->blocks()) findCaptured(inner);
    }
    for (Value* v : block->outputs()) read(v);
  }

  bool listsFit() const {
    for (Value* list : lists_) {
      if (isInside(list)) return false;
      // Two of which nothing is known might be one.
      if (lists_.size() > 1 && list->node()->kind() != prim::ListConstruct) return false;
    }
    for (const Node* append : appends_) {
      const Value* v = append->input(1);
      if (!mayHandOn(v)) return false;
      const auto carries = [&](const Use& use) { return use.user == body_->returnNode(); };
      const bool read = mayBeRead(v) || std::ranges::any_of(v->uses(), carries);
      if (read && isExposed(append->input(0))) return false;
    }
    return true;
  }

  // Whether the iteration itself may read a result of its, or the one before may have.
  bool mayBeRead(const Value* v) const {
    if (!isInside(v)) return false;
    const Node* node = v->node();
    // Ifs, and dropout that is off, hand on what others read.
    if (node->kind() == prim::Param || node->kind() == prim::If || node->isNondeterministic()) {
      return true;
    }
    return std::ranges::any_of(v->uses(), [&](const Use& use) {
      return use.user != body_->returnNode() && !isAppend(use.user);
    });
  }

  // What the last iteration gives must not be found by others where it was read before.
  bool resultsFit() const {
    for (size_t k = 0; k < loop_->outputs().size(); ++k) {
      if (!mayBeRead(body_->outputs()[k + 1])) continue;
      const auto& uses = loop_->output(k)->uses();
      const auto exposes = [&](const Use& use) {
        if (isAppend(use.user)) return isExposed(use.user->input(0));
        return options_.exposes(use.user);
      };
      if (uses.size() > kMaxUses || std::ranges::any_of(uses, exposes)) return false;
    }
    return true;
  }

  // Whether somebody may take an element out of the list.
  bool isExposed(const Value* list) const {
    static const std::unordered_set<Symbol> kAdding = {Symbol::aten("append"),
                                                       Symbol::aten("extend")};
    static const std::unordered_set<Symbol> kReading = {Symbol::aten("cat"), Symbol::aten("stack"),
                                                        aten::len};
    if (list->node()->kind() != prim::ListConstruct || list->uses().size() > kMaxUses) return true;
    return std::ranges::any_of(list->uses(), [](const Use& use) {
      const Node* reader = use.user;
      if (kAdding.count(reader->kind()) != 0) {
        return use.offset != 0 ||
               std::ranges::any_of(reader->outputs(), [](const Value* v) { return v->hasUses(); });
      }
      return kReading.count(reader->kind()) == 0;
    });
  }

  Node* const loop_;
  const Block* const body_;
  const FusionOptions& options_;
  const AliasDb& aliases_;
  size_t nodes_ = 0, branches_ = 0, computing_ = 0;
  std::vector<const Node*> appends_;
  std::vector<Value*> captured_, lists_;
  std::unordered_set<const Value*> seen_;
};

void findLoops(Block* block, std::vector<Node*>& loops) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) findLoops(inner, loops);
    if (node->kind() == prim::Loop) loops.push_back(node);
  }
}

}  // namespace

void formLoopGraphs(Graph& graph, const FusionOptions& options) {
  std::vector<Node*> loops;
  findLoops(graph.block(), loops);
  if (loops.empty()) return;
  std::vector<std::unique_ptr<Candidate>> found;
  const AliasDb aliases(graph);
  for (Node* loop : loops) {
    auto candidate = std::make_unique<Candidate>(loop, options, aliases);
    if (candidate->fits() && WICK_MAY_OPTIMIZE("a graph of {}", loop->str())) {
      found.push_back(std::move(candidate));
    }
  }
  // None holds another one.
  for (const auto& candidate : found) candidate->outline();
}

bool isLoopGraph(const Node* node) {
  if (node->kind() != prim::DifferentiableGraph) return false;
  return std::ranges::any_of(node->subgraph(attr::Subgraph)->nodes(),
                             [](const Node* inner) { return inner->kind() == prim::Loop; });
}

void forEachLoopGraph(Block* block, const std::function<void(Node*)>& f) {
  for (Node* node : block->nodes()) {
    for (Block* inner : node->blocks()) forEachLoopGraph(inner, f);
    if (isLoopGraph(node)) f(node);
  }
}

}  // namespace wick
