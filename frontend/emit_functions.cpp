// Local and generic functions: compiled where they are called.
//
// A call makes a frame whose parent is the frame of the scope where the function was defined, as it
// is at the call. Every name that the body assigns is the function's own (Python's rule) and is
// stored under a fresh name. The body of a lambda is an expression and is emitted in place. The
// body of a `def` may return early, so it stands in a block of a prim::Closure until the exits are
// transformed; then dissolveCalls() puts the block where the call was:
//
//   %r : int = prim::Closure[called=1]()        %c : bool = aten::gt(%x, %1)
//     block0():                                 %r : int = prim::If(%c)
//       …                                →        …
//       -> (%value)
#include "core/error.h"
#include "core/suggestions.h"
#include "frontend/ir_emitter.h"

namespace wick {

namespace {

// Calls within calls multiply: a function of a few lines may ask for more code than fits in memory,
// or for a deeper recursion of the emitter than fits on the stack. Bodies that are compiled inside
// of one another may be this high together, and all expanded bodies this large.
constexpr size_t kMaxExpandedHeight = 250;
constexpr size_t kMaxExpandedSize = 200'000;

constexpr const char* kInCall = "this is in a call of the ";

size_t sizeOf(const TreeRef& tree) {
  size_t size = 1;
  for (const TreeRef& child : tree->children()) size += sizeOf(child);
  return size;
}

const Symbol& calledAttribute() {
  static const Symbol kCalled = Symbol::attr("called");
  return kCalled;
}

// The innermost frame of the scope among `frame` and those around it; null when it is not there.
std::shared_ptr<Environment> frameOfScope(std::shared_ptr<Environment> frame,
                                          const Environment* scope) {
  while (frame && frame->scope() != scope) frame = frame->parent();
  return frame;
}

}  // namespace

void collectAssigned(const Stmt& stmt, std::vector<std::string>& out) {
  switch (stmt.kind()) {
    case TK_ASSIGN:
      for (const Expr& target : Assign(stmt.tree()).targets()) collectNames(target, out);
      break;
    case TK_AUG_ASSIGN:
      collectNames(AugAssign(stmt.tree()).target(), out);
      break;
    case TK_FOR:
      collectNames(For(stmt.tree()).target(), out);
      collectAssigned(For(stmt.tree()).body(), out);
      break;
    case TK_WHILE:
      collectAssigned(While(stmt.tree()).body(), out);
      break;
    case TK_IF:
      collectAssigned(If(stmt.tree()).trueBranch(), out);
      collectAssigned(If(stmt.tree()).falseBranch(), out);
      break;
    case TK_WITH:
      for (const WithItem& item : With(stmt.tree()).items()) {
        if (item.target()) collectNames(item.target().get(), out);
      }
      collectAssigned(With(stmt.tree()).body(), out);
      break;
    case TK_DEF:
      out.push_back(Def(stmt.tree()).name().name());
      break;
    default:
      break;
  }
}

void collectAssigned(const List<Stmt>& statements, std::vector<std::string>& out) {
  for (const Stmt& stmt : statements) collectAssigned(stmt, out);
}

void Emitter::emitLocalDef(const Def& def) {
  const std::string name = def.name().name();
  SugaredValuePtr function = makeLocalFunction(name, def.tree(), def.decl());
  env_->set(def.name().range(), name, function);
  // It is compiled even when nobody calls it, so that its errors show.
  if (!isGenericFunction(def)) {
    uncalled_.push_back(std::static_pointer_cast<LocalFunction>(function));
  }
}

SugaredValuePtr Emitter::makeLocalFunction(const std::string& name, const TreeRef& tree,
                                           const Decl& decl) {
  auto function = std::make_shared<LocalFunction>(name, tree, resolver_, env_->scope());
  function->emitter_ = this;
  // Defaults are evaluated now, and kept in variables that no program can name.
  for (const Param& param : decl.params()) {
    std::string variable;
    if (param.defaultValue()) {
      Expr value = param.defaultValue().get();
      variable = "default of " + param.name().name() + "'" + std::to_string(++*env_->names());
      env_->set(value.range(), variable, simple(emitExpr(value)));
    }
    function->defaults_.push_back(std::move(variable));
  }
  return function;
}

std::vector<Emitter::Argument> Emitter::emitSugaredArguments(const Apply& apply) {
  std::vector<Argument> out;
  for (const Expr& e : apply.inputs()) {
    if (e.kind() != TK_STARRED) {
      out.push_back({e.range(), std::nullopt, emitSugared(e)});
      continue;
    }
    Expr unpacked = Starred(e.tree()).expr();
    for (const SugaredValuePtr& v : unpackStarred(unpacked)) {
      out.push_back({unpacked.range(), std::nullopt, v});
    }
  }
  for (const Attribute& a : apply.attributes()) {
    out.push_back({a.range(), a.name().name(), emitSugared(a.value())});
  }
  return out;
}

SugaredValuePtr Emitter::callLocal(const SourceRange& range, LocalFunction& function,
                                   const std::vector<Argument>& arguments) {
  try {
    return emitCalledBody(range, function, [&] { bindParameters(range, function, arguments); });
  } catch (CompileError& error) {
    // The innermost calls say enough.
    const std::string_view message = error.what();
    const size_t first = message.find(kInCall);
    const bool enough = first != message.npos && message.find(kInCall, first + 1) != message.npos;
    if (!enough && error.range().start() != range.start()) {
      error.append(CompileError(range, kInCall + function.kind()));
    }
    throw;
  }
}

// The body, compiled for what `bind` binds in a new frame.
SugaredValuePtr Emitter::emitCalledBody(const SourceRange& range, LocalFunction& function,
                                        const std::function<void()>& bind) {
  if (function.being_compiled_) {
    throwCompileError(range, "the {} is called recursively, which is not supported",
                      function.kind());
  }
  const size_t height = function.tree()->height() + 1;
  expanded_size_ += sizeOf(function.tree());
  if (expanded_height_ + height > kMaxExpandedHeight || expanded_size_ > kMaxExpandedSize) {
    throwCompileError(
        range,
        "the calls of local functions within one another expand to too much, as those of "
        "a recursive function do");
  }
  std::shared_ptr<Environment> parent;
  if (function.home()) {
    // A function that was handed on is at home in the frames of a caller.
    parent = frameOfScope(env_, function.home());
    for (auto it = callers_.rbegin(); !parent && it != callers_.rend(); ++it) {
      parent = frameOfScope(*it, function.home());
    }
    if (!parent) {
      throwCompileError(range,
                        "the {} cannot be used outside of the function in which it was defined",
                        function.kind());
    }
  }
  struct Restore {
    Emitter& emitter;
    LocalFunction& function;
    size_t height;
    std::shared_ptr<Environment> env;
    ResolverPtr resolver;
    ~Restore() {
      emitter.expanded_height_ -= height;
      emitter.env_ = env;
      emitter.resolver_ = resolver;
      emitter.callers_.pop_back();
      function.being_compiled_ = false;
    }
  } restore{*this, function, height, env_, resolver_};
  expanded_height_ += height;
  callers_.push_back(env_);
  function.being_compiled_ = true;
  function.was_called_ = true;
  resolver_ = function.resolver();
  auto enter = [&](Block* block) {
    env_ = std::make_shared<Environment>(fn_, resolver_, block, parent, restore.env->names());
    env_->beginScope();
  };
  if (function.tree()->kind() == TK_LAMBDA) {
    enter(restore.env->block());
    for (const Param& p : function.decl().params()) env_->declareLocal(p.name().name());
    bind();
    Expr body = Lambda(function.tree()).body();
    SugaredValuePtr result = emitSugared(body);
    if (std::dynamic_pointer_cast<LocalFunction>(result)) result->asValue(body.range(), fn_);
    return result;
  }
  Def def(function.tree());
  Node* call = graph_.insertNode(graph_.create(prim::Closure));
  call->setAttribute(calledAttribute(), IValue(true));
  call->setRange(range);
  Block* block = call->addBlock();
  LoopGuard no_loop(*this, LoopStatus::kNone);
  InsertPointGuard inside(block);
  enter(block);
  std::vector<std::string> names;
  for (const Param& p : def.decl().params()) names.push_back(p.name().name());
  collectAssigned(def.statements(), names);
  for (const std::string& name : names) env_->declareLocal(name);
  bind();
  DefFrame frame;
  if (def.decl().returnType()) frame.declared_return = typeOf(def.decl().returnType().get());
  frame.is_closure = true;
  defs_.push_back(std::move(frame));
  call->output()->setType(finishBody(def, block)->type());
  return simple(call->output());
}

void Emitter::bindParameters(const SourceRange& range, LocalFunction& function,
                             const std::vector<Argument>& arguments) {
  List<Param> params = function.decl().params();
  std::vector<const Argument*> bound(params.size(), nullptr);
  KeyedMap<std::string, size_t> by_name;
  for (size_t i = 0; i < params.size(); ++i) by_name.emplace(params[i].name().name(), i);
  size_t next = 0;
  for (const Argument& argument : arguments) {
    size_t i = next;
    if (argument.name) {
      const auto found = by_name.find(*argument.name);
      i = found == by_name.end() ? params.size() : found->second;
      if (i == params.size()) {
        std::set<std::string> names;
        for (const Param& param : params) names.insert(param.name().name());
        throwCompileError(argument.range, "the {} has no parameter '{}'{}", function.kind(),
                          *argument.name, didYouMean(*argument.name, names));
      }
    } else if (next++ >= params.size() || params[i].kwargOnly()) {
      throwCompileError(range, "the {} takes {} positional arguments, but more were given",
                        function.kind(), i);
    }
    if (bound[i]) {
      throwCompileError(argument.range, "the {} was given two values for '{}'", function.kind(),
                        params[i].name().name());
    }
    bound[i] = &argument;
  }
  for (size_t i = 0; i < params.size(); ++i) {
    Param param = params[i];
    if (bound[i]) {
      bindParameter(param, function, *bound[i]);
      continue;
    }
    if (!param.defaultValue()) {
      throwCompileError(range, "the {} needs a value for '{}'", function.kind(),
                        param.name().name());
    }
    Expr value = param.defaultValue().get();
    SugaredValuePtr fallback =
        function.home() ? env_->get(value.range(), function.defaults_[i]) : emitSugared(value);
    bindParameter(param, function, {value.range(), std::nullopt, fallback});
  }
}

void Emitter::bindParameter(const Param& param, const LocalFunction& function,
                            const Argument& argument) {
  const std::string name = param.name().name();
  if (!param.type() || isCallableType(param.type().get())) {
    env_->set(argument.range, name, argument.value);
    return;
  }
  TypePtr type = typeOf(param.type().get());
  Value* value = argument.value->asValue(argument.range, fn_);
  value = tryConvertToType(argument.range, graph_, type, value, ImplicitConversions::All);
  if (!value->type()->isSubtypeOf(*type)) {
    throwCompileError(argument.range, "the parameter '{}' of the {} is of type {}, found {}", name,
                      function.kind(), type->annotation(), value->type()->annotation());
  }
  env_->set(argument.range, name, simple(value), type);
}

void Emitter::checkUncalled(size_t first) {
  while (uncalled_.size() > first) {
    std::shared_ptr<LocalFunction> function = std::move(uncalled_.back());
    uncalled_.pop_back();
    if (function->was_called_) continue;
    // A closure that nobody uses disappears, and so does what stands behind a return.
    makeClosure([&](Block* block) {
      const SourceRange range = function->tree()->range();
      SugaredValuePtr result = emitCalledBody(range, *function, [&] {
        for (const Param& param : function->decl().params()) {
          TypePtr type = param.type() ? typeOf(param.type().get()) : types::Tensor();
          Value* value = graph_.insertNode(graph_.createUninitialized(type))->output();
          env_->set(param.range(), param.name().name(), simple(value), type);
        }
      });
      block->registerOutput(result->asValue(range, fn_));
    });
  }
}

void dissolveCalls(Graph& graph) {
  std::function<void(Block*)> dissolve = [&](Block* block) {
    for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      for (Block* sub : node->blocks()) dissolve(sub);
      if (node->kind() != prim::Closure || !node->hasAttribute(calledAttribute())) continue;
      Block* body = node->blocks().at(0);
      node->output()->replaceAllUsesWith(body->outputs().at(0));
      body->returnNode()->removeAllInputs();
      while (!body->empty()) (*body->nodes().begin())->moveBefore(node);
      node->destroy();
    }
  };
  dissolve(graph.block());
}

}  // namespace wick
