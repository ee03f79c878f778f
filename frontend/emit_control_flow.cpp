// Branches and loops.
#include <fmt/format.h>

#include <limits>
#include <set>

#include "core/error.h"
#include "frontend/ir_emitter.h"

namespace wick {

namespace {

constexpr size_t kMaxUnrolledNodes = 500'000;

// Whether a variable of this type before an If may become a union behind it.
bool joinsToUnion(const TypePtr& outer) {
  return outer && (outer->kind() == TypeKind::Union || outer->isSubtypeOf(*types::Number()));
}

}  // namespace

void Emitter::emitIf(const If& stmt) {
  CondValue cond = emitCond(stmt.cond());
  emitIfElse(
      stmt.range(), cond, [&] { emitStatements(stmt.trueBranch()); },
      [&] { emitStatements(stmt.falseBranch()); });
}

void Emitter::emitIfElse(const SourceRange& range, const CondValue& cond, const Body& true_branch,
                         const Body& false_branch) {
  if (cond.known) {
    // Only the live branch is compiled, in place: it may use what the dead one could not.
    insertRefinements(range, *cond.known ? cond.refinements : !cond.refinements);
    (*cond.known ? true_branch : false_branch)();
    return;
  }
  Node* n = graph_.insertNode(graph_.create(prim::If, {cond.value}, 0));
  Block* true_block = n->addBlock();
  Block* false_block = n->addBlock();
  auto in_true = emitBranch(true_block, cond.refinements, true_branch);
  auto in_false = emitBranch(false_block, !cond.refinements, false_branch);
  if (hasExited(true_block) && hasExited(false_block)) {
    exits_.insert(n->block());
    for (Block* branch : {true_block, false_block}) {
      if (loop_exits_.count(branch) != 0) loop_exits_.insert(n->block());
    }
  }
  joinBranches(range, n, *in_true, *in_false);
}

std::shared_ptr<Environment> Emitter::emitBranch(Block* block, const RefinementSet& refinements,
                                                 const Body& body) {
  pushFrame(block);
  InsertPointGuard inside(block);
  insertRefinements(graph_.currentRange(), refinements);
  body();
  return popFrame();
}

// Whether the branches have at most proved something about the variable, and nothing of it is left
// behind the If. So a long chain of `elif` does not hand each variable out through all its levels.
bool Emitter::isAsBefore(const std::string& name, const Environment& one,
                         const Environment& other) const {
  const TypePtr before = env_->typeOf(name);
  if (!before) return false;
  for (const Environment* branch : {&one, &other}) {
    if (branch->definesVariable(name) && !branch->isOnlyRefined(name)) return false;
  }
  const TypePtr a = one.typeOf(name);
  const TypePtr b = other.typeOf(name);
  if (!a || !b) return false;
  auto unified = unifyTypes(a, b, joinsToUnion(before));
  return unified && sameType(*unified, before);
}

// A variable is visible after the If when every path that gets there has defined it.
void Emitter::joinBranches(const SourceRange& range, Node* node, Environment& in_true,
                           Environment& in_false) {
  Block* true_block = node->blocks()[0];
  Block* false_block = node->blocks()[1];
  bool true_exits = hasExited(true_block);
  bool false_exits = hasExited(false_block);
  if (true_exits && false_exits) return;

  const size_t nodes_before = graph_.nodeCount();
  std::set<std::string> names;
  const bool exits = true_exits || false_exits;
  auto collect = [&](Environment& here, Environment& there, Block* there_block, bool there_exits,
                     const char* where) {
    InsertPointGuard inside(there_block);
    for (const std::string& name : here.definedVariables()) {
      if (!exits && isAsBefore(name, here, there)) continue;
      if (there_exits || there.findInAnyFrame(name)) {
        names.insert(name);
      } else {
        env_->setError(range, name, fmt::format("it is not defined in the {} branch", where));
      }
    }
  };
  collect(in_true, in_false, false_block, false_exits, "false");
  collect(in_false, in_true, true_block, true_exits, "true");

  carried_.add(names.size(), nodes_before - joining_nodes_, range);
  auto load = [&](Environment& env, Block* block, const std::string& name) {
    InsertPointGuard inside(block);
    return asSimple(env.findInAnyFrame(name));
  };
  auto storeUninitialized = [&](Block* block, const std::string& name, const TypePtr& type) {
    InsertPointGuard inside(block);
    Value* v = graph_.insertNode(graph_.createUninitialized(type))->output();
    graph_.insertNode(graph_.createStore(env_->storeName(name), v));
  };
  for (const std::string& name : names) {
    Value* a = true_exits ? nullptr : load(in_true, true_block, name);
    Value* b = false_exits ? nullptr : load(in_false, false_block, name);
    // The exiting branch may have defined what the other has not.
    if (!a && !b) continue;
    if (true_exits || false_exits) {
      TypePtr type = (a ? a : b)->type();
      TypePtr wider = (a ? in_true : in_false).widerType(name);
      Block* exited = a ? false_block : true_block;
      SugaredValuePtr before = env_->findInAnyFrame(name);
      Value* outer = before ? asSimple(before) : nullptr;
      if (outer && loop_exits_.count(exited) != 0 && type->isSubtypeOf(*outer->type())) {
        type = outer->type();
        wider = env_->widerType(name);
      }
      storeUninitialized(exited, name, type);
      env_->setType(name, type, wider);
      continue;
    }
    if (!a || !b) continue;  // not a first-class value on one side
    TypePtr outer;
    if (SugaredValuePtr before = env_->findInAnyFrame(name)) {
      if (Value* v = asSimple(before)) outer = v->type();
    }
    auto unified = unifyTypes(a->type(), b->type(), joinsToUnion(outer));
    if (!unified) {
      std::string types =
          fmt::format("is set to type {} in the true branch and type {} in the false branch",
                      a->type()->annotation(), b->type()->annotation());
      if (outer) throwCompileError(range, "Type mismatch: {} {}", name, types);
      env_->setError(range, name, "Type mismatch: it " + types);
      continue;
    }
    env_->setType(name, *unified);
  }
  joining_nodes_ += graph_.nodeCount() - nodes_before;
}

namespace {

// The names that loops among the statements bind.
void collectInLoops(const List<Stmt>& statements, std::vector<std::string>& out) {
  for (const Stmt& stmt : statements) {
    switch (stmt.kind()) {
      case TK_FOR:
      case TK_WHILE:
        collectAssigned(stmt, out);
        break;
      case TK_IF:
        collectInLoops(If(stmt.tree()).trueBranch(), out);
        collectInLoops(If(stmt.tree()).falseBranch(), out);
        break;
      case TK_WITH:
        collectInLoops(With(stmt.tree()).body(), out);
        break;
      default:
        break;
    }
  }
}

// What holds at the start of the body. A variable that a loop within assigns keeps its wide type,
// or the assignment might not fit.
RefinementSet refinementsOfBody(const While& loop, const RefinementSet& refinements) {
  if (refinements.active().empty()) return refinements;
  std::vector<std::string> found;
  collectInLoops(loop.body(), found);
  const KeyedSet<std::string> assigned(found.begin(), found.end());
  std::vector<Refinement> out;
  for (const Refinement& r : refinements.active().all()) {
    if (!assigned.contains(r.name)) out.push_back(r);
  }
  return RefinementSet(out, {});
}

}  // namespace

void Emitter::emitWhile(const While& stmt) {
  emitLoop(
      stmt.range(), [&] { emitStatements(stmt.body()); }, nullptr, nullptr, &stmt);
}

void Emitter::emitFor(const Expr& target, const SugaredValuePtr& iterable, const SourceRange& range,
                      const Body& body) {
  if (iterable->shouldUnroll()) return emitUnrolled(target, iterable, range, body);
  emitLoop(range, body, iterable, &target, nullptr);
}

void Emitter::emitUnrolled(const Expr& target, const SugaredValuePtr& iterable,
                           const SourceRange& range, const Body& body) {
  if (!iterable->staticLength()) {
    throwCompileError(range,
                      "a loop over modules or a tuple together with an iterable of unknown length "
                      "cannot be unrolled");
  }
  LoopGuard unrolled(*this, LoopStatus::kUnrolled);
  for (size_t i = 0; i < *iterable->staticLength(); ++i) {
    if (hasExited(env_->block())) return;
    Value* index = constant(IValue(static_cast<int64_t>(i)));
    emitTarget(target, iterable->getItem(range, fn_, index), range);
    body();
    // Loops within loops multiply: a few lines could ask for more than fits in memory.
    if (graph_.nodeCount() > kMaxUnrolledNodes) {
      throwCompileError(
          range,
          "the loops over tuples and modules here, which are unrolled, make a function of "
          "more than {} nodes",
          kMaxUnrolledNodes);
    }
  }
}

void Emitter::emitLoop(const SourceRange& range, const Body& body, const SugaredValuePtr& iterable,
                       const Expr* target, const While* loop) {
  Value* trips = iterable ? iterable->length(range, fn_)
                          : constant(IValue(std::numeric_limits<int64_t>::max()));
  Value* always = loop ? nullptr : constant(IValue(true));
  Node* n = graph_.create(prim::Loop, {trips}, 0);
  graph_.insertNode(n);
  Block* body_block = n->addBlock();
  Block* cond_block = n->addBlock();
  RefinementSet refinements;
  if (loop) {
    FrameGuard frame(*this, cond_block);
    InsertPointGuard inside(cond_block);
    CondValue value = emitCond(loop->cond());
    refinements = refinementsOfBody(*loop, value.refinements);
    cond_block->registerOutput(value.value);
  } else {
    cond_block->registerOutput(always);
  }
  LoopGuard in_loop(*this, LoopStatus::kLoop);
  FrameGuard frame(*this, body_block);
  env_->setLoop();
  InsertPointGuard inside(body_block);
  Value* trip = body_block->addInput(types::Int());
  if (iterable) {
    emitTarget(*target, iterable->getItem(range, fn_, trip), target->range());
  }
  insertRefinements(range, refinements);
  body();
  for (const std::string& name : env_->definedVariables()) {
    if (env_->parent()->isVisible(name)) continue;
    env_->parent()->setHint(range, name, "it is defined only in a loop, which may not run");
  }
}

}  // namespace wick
