// Functions, their arguments and returns, and closures.
#include "frontend/ir_emitter.h"

#include <fmt/format.h>

#include "core/error.h"
#include "frontend/convert_to_ssa.h"
#include "frontend/exit_transforms.h"
#include "ir/dead_code.h"
#include "ir/depth.h"
#include "ir/function_capsule.h"
#include "ir/simple_tuples.h"

namespace wick {

namespace {

// All uses have been seen: what was an untyped `[]` is a list like any other.
void forgetEmptyLiterals(Block* block) {
  for (Node* n : block->nodes()) {
    if (n->kind() == prim::ListConstruct) n->removeAttribute(Symbol::attr("empty_literal"));
    for (Block* b : n->blocks()) forgetEmptyLiterals(b);
  }
}

}  // namespace

Emitter::Emitter(GraphFunction& fn, const Def& def, ResolverPtr resolver, const Self* self)
    : fn_(fn), graph_(*fn.graph()), resolver_(std::move(resolver)) {
  RangeGuard at(&graph_, def.range());
  graph_.setInsertPoint(graph_.block());
  pushFrame(graph_.block());
  fn.setSchema(emitDef(def, self, graph_.block()));
  popFrame();
  convertToSSA(fn.graph());
  transformExits(fn.graph());
  withStackFor(graph_, [&] {
    dissolveCalls(graph_);
    liftClosures(graph_);
    lowerSimpleTuples(graph_);
    removeDeadValues(graph_);
    forgetEmptyLiterals(graph_.block());
  });
}

void Emitter::pushFrame(Block* block) {
  env_ = std::make_shared<Environment>(fn_, resolver_, block, env_);
}

std::shared_ptr<Environment> Emitter::popFrame() {
  std::shared_ptr<Environment> top = env_;
  env_ = env_->parent();
  return top;
}

FunctionSchema Emitter::emitDef(const Def& def, const Self* self, Block* block) {
  FunctionSchema declared = TypeResolver(resolver_).schemaOf(def, self != nullptr);
  DefFrame frame;
  if (!declared.returns().empty()) frame.declared_return = declared.returns()[0].type;
  frame.is_closure = block != graph_.block();
  defs_.push_back(std::move(frame));
  std::vector<wick::Argument> arguments = emitArguments(def, self, declared, block);
  if (defs_.back().declared_return && !defs_.back().is_closure) {
    // Named inside of its own body, as by a recursive call, the function has this signature.
    fn_.setSchema(FunctionSchema(def.name().name(), "", arguments, declared.returns()));
  }
  wick::Argument returned;
  returned.type = finishBody(def, block)->type();
  return FunctionSchema(def.name().name(), "", std::move(arguments), {std::move(returned)});
}

// The statements of the innermost function, and the value that it returns.
Value* Emitter::finishBody(const Def& def, Block* block) {
  emitStatements(def.statements());
  emitImplicitReturn(def, block);
  // Lowering the prim::ReturnStmts sets the value that is returned; until then a value of the right
  // type stands for it.
  TypePtr result = defs_.back().merged_return;
  Value* returned = graph_.insertNode(graph_.createUninitialized(result))->output();
  block->registerOutput(returned);
  defs_.pop_back();
  return returned;
}

std::vector<wick::Argument> Emitter::emitArguments(const Def& def, const Self* self,
                                                   const FunctionSchema& declared, Block* block) {
  List<Param> params = def.decl().params();
  if (self && params.empty()) throwCompileError(def.range(), "methods must have a self argument");
  std::vector<wick::Argument> arguments = declared.arguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    wick::Argument& argument = arguments[i];
    bool is_self = self && i == 0;
    if (is_self) argument.type = self->classType();
    Value* value = block->addInput(argument.type, argument.name);
    SugaredValuePtr sugared = is_self ? self->makeSugared(value) : simple(value);
    bool is_plain = asSimple(sugared) != nullptr;
    env_->set(params[i].range(), argument.name, sugared, is_plain ? argument.type : nullptr);
  }
  return arguments;
}

void Emitter::emitImplicitReturn(const Def& def, Block* block) {
  DefFrame& frame = defs_.back();
  if (!hasExited(block)) {
    if (frame.declared_return && frame.declared_return->kind() != TypeKind::None) {
      throwCompileError(def.range(),
                        "Function was not annotated as having type None, but does not return along "
                        "all paths");
    }
    emitReturn(Return::create(def.range(), Expr(Tree::create(TK_NONE, def.range()))));
  } else if (!frame.merged_return) {
    // It always raises.
    frame.merged_return = frame.declared_return ? frame.declared_return : types::None();
  }
}

void Emitter::emitReturn(const Return& stmt) {
  TypePtr declared = defs_.back().declared_return;
  Value* value = emitExpr(stmt.expr(), declared);
  TypePtr merged;
  if (declared) {
    value = tryConvertToType(stmt.range(), graph_, declared, value, ImplicitConversions::All);
    std::string why;
    if (!value->type()->isSubtypeOf(*declared, &why)) {
      throwCompileError(stmt.range(),
                        "Return value was annotated as having type {} but is actually of type {}",
                        declared->annotation(), value->type()->annotation());
    }
    merged = declared;
  } else {
    TypePtr before = defs_.back().merged_return;
    if (!before) before = value->type();
    auto unified = unifyTypes(before, value->type());
    if (!unified) {
      throwCompileError(stmt.range(),
                        "Previous return statement returned a value of type {} but this return "
                        "statement returns a value of type {}",
                        before->annotation(), value->type()->annotation());
    }
    merged = *unified;
  }
  checkTypeSize(stmt.range(), merged);
  defs_.back().merged_return = merged;
  if (merged->kind() == TypeKind::Any && value->type()->kind() != TypeKind::Any) {
    value = uncheckedCast(value, merged);
  }
  graph_.insertNode(graph_.create(prim::ReturnStmt, {value}, 0));
  exits_.insert(env_->block());
}

Value* Emitter::makeClosure(const std::function<void(Block*)>& emit_body) {
  Node* closure = graph_.insertNode(graph_.create(prim::Closure));
  closure->output()->setType(types::None());
  Block* block = closure->addBlock();
  LoopGuard no_loop(*this, LoopStatus::kNone);
  InsertPointGuard inside(block);
  FrameGuard frame(*this, block);
  emit_body(block);
  return closure->output();
}

Value* Emitter::builtin(const SourceRange& range, Symbol name, const std::vector<Value*>& args) {
  return emitBuiltin(range, graph_, name, args);
}

Value* Emitter::uncheckedCast(Value* value, const TypePtr& type) {
  Node* n = graph_.insertNode(graph_.create(prim::unchecked_cast, {value}));
  return n->output()->setType(type);
}

namespace {

// The values that a block uses and does not define, in order of first use.
class Captures {
 public:
  explicit Captures(const Block* block) : block_(block) { collect(block); }
  const std::vector<Value*>& values() const { return values_; }

 private:
  void collect(const Block* b) {
    for (Node* n : b->nodes()) {
      add(n);
      for (const Block* sub : n->blocks()) collect(sub);
    }
    add(b->returnNode());
  }
  void add(const Node* n) {
    for (Value* v : n->inputs()) {
      if (v->node()->isInside(block_) || !seen_.insert(v).second) continue;
      values_.push_back(v);
    }
  }

  const Block* block_;
  std::unordered_set<const Value*> seen_;
  std::vector<Value*> values_;
};

void liftFork(Node* fork) {
  Graph& outer = *fork->graph();
  const Block* body = fork->input(0)->node()->blocks().at(0);
  auto lifted = std::make_shared<Graph>();
  std::unordered_map<Value*, Value*> map;
  std::vector<Value*> captured;
  Captures captures(body);
  for (Value* v : captures.values()) {
    if (v->node()->kind() == prim::Constant) {
      // Constants move in instead of being passed.
      Node* copy = lifted->createClone(v->node(), {});
      lifted->block()->appendNode(copy);
      map[v] = copy->output();
      continue;
    }
    map[v] = lifted->addInput(v->hasDebugName() ? v->debugNameBase() : "", v->type());
    captured.push_back(v);
  }
  lifted->block()->cloneFrom(body, map);
  liftClosures(*lifted);
  InsertPointGuard at(fork);
  if (fork->kind() == checkpointKind()) {
    Ref<FunctionCapsule> part = makeRef<FunctionCapsule>("checkpointed", lifted);
    Value* constant = outer.insertConstant(IValue::capsule(part), types::Capsule());
    captured.insert(captured.begin(), {constant, fork->input(1)});
  }
  Node* n = outer.create(fork->kind(), captured);
  n->setRange(fork->range());
  n->setAttribute(attr::Subgraph, lifted);
  n->output()->setType(fork->output()->type());
  outer.insertNode(n);
  fork->output()->replaceAllUsesWith(n->output());
  const std::string name = fork->output()->hasDebugName() ? fork->output()->debugNameBase() : "";
  fork->destroy();
  if (!name.empty()) n->output()->setDebugName(name);
}

void liftForks(Block* block) {
  for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
    Node* n = *it;
    ++it;
    // Forks inside of a closure are lifted with the closure's own graph.
    if (n->kind() == prim::Closure) continue;
    for (Block* sub : n->blocks()) liftForks(sub);
    const bool runs_closure = n->kind() == prim::fork || n->kind() == checkpointKind();
    if (runs_closure && !n->hasAttribute(attr::Subgraph)) liftFork(n);
  }
}

void removeClosures(Block* block) {
  std::vector<Node*> nodes;
  for (Node* n : block->nodes()) nodes.push_back(n);
  for (Node* n : nodes) {
    if (n->kind() == prim::Closure && !n->output()->hasUses()) {
      n->destroy();
      continue;
    }
    for (Block* sub : n->blocks()) removeClosures(sub);
  }
}

}  // namespace

void liftClosures(Graph& graph) {
  liftForks(graph.block());
  removeClosures(graph.block());
}

}  // namespace wick
