#include "frontend/environment.h"

#include <fmt/format.h>

#include "core/error.h"
#include "core/suggestions.h"
#include "frontend/builtin_table.h"
#include "frontend/convert_to_ssa.h"
#include "frontend/parser.h"
#include "frontend/schema_matching.h"

namespace wick {

Value* asSimple(const SugaredValuePtr& value) {
  auto* simple = dynamic_cast<SimpleValue*>(value.get());
  return simple ? simple->value() : nullptr;
}

void checkTypeSize(const SourceRange& range, const TypePtr& type) {
  if (type->contained().empty()) return;
  struct Visit {
    const Type* type;
    size_t depth;
  };
  std::vector<Visit> open = {{type.get(), 1}};
  while (!open.empty()) {
    auto [current, depth] = open.back();
    open.pop_back();
    if (depth > kMaxNesting) {
      throwCompileError(range, "the type of this value nests deeper than {} levels", kMaxNesting);
    }
    for (const TypePtr& inner : current->contained()) open.push_back({inner.get(), depth + 1});
  }
}

Environment::Environment(GraphFunction& fn, ResolverPtr resolver, Block* block,
                         std::shared_ptr<Environment> parent, std::shared_ptr<size_t> names)
    : fn_(fn),
      resolver_(std::move(resolver)),
      block_(block),
      parent_(std::move(parent)),
      outer_(parent_ && parent_->isEmpty() && parent_->outer_ ? parent_->outer_ : parent_.get()) {
  names_ = parent_ ? parent_->names_ : std::move(names);
  if (!names_) names_ = std::make_shared<size_t>(0);
  scope_ = parent_ ? parent_->scope_ : this;
  depth_ = outer_ ? outer_->depth_ + 1 : 0;
  noteFarFrames();
}

// A frame of depth d knows of as many frames as the lowest bit of d says, so a lookup takes steps for
// the logarithm of the depth.
void Environment::noteFarFrames() {
  constexpr size_t kFewFrames = 16;
  constexpr size_t kNamesOfFrame = 32;
  const size_t frames = depth_ & (~depth_ + 1);
  if (frames < kFewFrames) return;
  auto far = std::make_unique<Far>();
  size_t names = 0;
  Environment* e = outer_;
  for (size_t i = 1; i < frames; ++i, e = e->outer_) {
    names += e->values_.size() + e->types_.size() + e->wider_.size() + e->errors_.size() +
             e->hints_.size() + e->locals_.size();
    // A frame with very many names is asked rather than copied.
    if (names > kNamesOfFrame * frames) return;
    far->loops = far->loops || e->loop_;
    const auto note = [&](const auto& entries) {
      for (const auto& [name, entry] : entries) far->names.insert(name);
    };
    note(e->values_);
    note(e->types_);
    note(e->wider_);
    note(e->errors_);
    note(e->hints_);
    note(e->locals_);
  }
  far->next = e;
  far_ = std::move(far);
}

void Environment::declareLocal(const std::string& name) {
  // No program can spell it, and no other frame has it.
  locals_[name] = fmt::format("{}'{}", name, ++*names_);
}

std::string Environment::storeName(const std::string& name) const {
  for (const Environment* e = this; e; e = e->outside(name)) {
    auto it = e->locals_.find(name);
    if (it != e->locals_.end()) return it->second;
  }
  return name;
}

void Environment::set(const SourceRange& range, const std::string& name, Value* value) {
  set(range, name, std::make_shared<SimpleValue>(value));
}

void Environment::set(const SourceRange& range, const std::string& name,
                      const SugaredValuePtr& value, const TypePtr& annotated) {
  Value* simple = asSimple(value);
  Graph& graph = *fn_.graph();
  if (simple && !simple->hasDebugName() && isMeaningfulName(name) &&
      simple->node()->block() == block_ && simple->node()->kind() != prim::Load) {
    simple->setDebugName(name);
  }
  // What an inner block assigns must be a first-class value, because which assignment holds
  // afterwards depends on control flow.
  if (SugaredValuePtr outer = findInParentFrame(name)) {
    if (annotated) {
      throwCompileError(range,
                        "Attempting to declare and annotate the type of variable '{}' that is "
                        "already defined in an outer block",
                        name);
    }
    if (!simple) {
      throwCompileError(range,
                        "Cannot re-assign '{}' to a value of type {}: only reassignments to "
                        "first-class values are allowed",
                        name, value->kind());
    }
    Value* before = asSimple(outer);
    if (!before) {
      throwCompileError(range,
                        "Cannot re-assign '{}' because it has type {}, which is not a first-class "
                        "value. Only reassignments to first-class values are allowed",
                        name, outer->kind());
    }
    TypePtr type = unshapedType(before->type());
    TypePtr wider = widerType(name);
    simple = tryConvertToType(range, graph, type, simple, ImplicitConversions::All);
    if (simple->type()->isSubtypeOf(*type)) {
      wider = nullptr;
    } else if (wider) {
      simple = tryConvertToType(range, graph, wider, simple, ImplicitConversions::All);
    }
    if (wider && simple->type()->isSubtypeOf(*wider)) {
      wider_[name] = wider;
    } else if (!simple->type()->isSubtypeOf(*type)) {
      std::string hint;
      if (type->kind() == TypeKind::List && simple->type()->kind() == TypeKind::List) {
        hint =
            "\nEmpty lists default to List[Tensor]. Annotate the variable to create an empty "
            "list of another type";
      }
      throwCompileError(range,
                        "Variable '{}' previously had type '{}' but is now being assigned to a "
                        "value of type '{}'{}",
                        name, type->annotation(), simple->type()->annotation(), hint);
    }
  }
  errors_.erase(name);
  refined_.erase(name);
  if (!simple) {
    types_.erase(name);
    values_[name] = value;
    return;
  }
  if (annotated && !simple->type()->isSubtypeOf(*annotated)) {
    throwCompileError(range,
                      "Variable '{}' is annotated with type {} but is being assigned to a value of "
                      "type {}",
                      name, annotated->annotation(), simple->type()->annotation());
  }
  checkTypeSize(range, simple->type());
  RangeGuard at(&graph, range);
  graph.insertNode(graph.createStore(storeName(name), simple));
  values_.erase(name);
  types_[name] = annotated ? annotated : simple->type();
  auto wider = wider_.find(name);
  if (wider != wider_.end() && !types_[name]->isSubtypeOf(*wider->second)) wider_.erase(wider);
}

void Environment::refine(const SourceRange& range, const std::string& name, Value* value,
                         const TypePtr& before) {
  const TypePtr wider = widerType(name);
  const bool only_refined = types_.count(name) == 0 || isOnlyRefined(name);
  set(range, name, value);
  wider_[name] = wider ? wider : before;
  if (only_refined) refined_.insert(name);
}

TypePtr Environment::widerType(const std::string& name) const {
  for (const Environment* e = this; e;) {
    auto wider = e->wider_.find(name);
    if (wider != e->wider_.end()) return wider->second;
    if (e->types_.count(name) != 0 || e->loop_ || e->isBoundary(name)) break;
    e = e->far_ && e->far_->loops ? e->outer_ : e->outside(name);
  }
  return nullptr;
}

void Environment::setType(const std::string& name, TypePtr type, const TypePtr& wider) {
  errors_.erase(name);
  refined_.erase(name);
  if (wider) wider_[name] = wider;
  types_[name] = std::move(type);
}

void Environment::setError(const SourceRange& where, const std::string& name, std::string message) {
  errors_[name] = {where, std::move(message)};
}

void Environment::setHint(const SourceRange& where, const std::string& name, std::string message) {
  hints_[name] = {where, std::move(message)};
}

void Environment::remove(const SourceRange& range, const std::string& name) {
  if (!findInAnyFrame(name)) failUndefined(range, name);
  if (findInThisFrame(name)) {
    values_.erase(name);
    types_.erase(name);
    refined_.erase(name);
    errors_[name] = {range, "it was deleted"};
  }
}

SugaredValuePtr Environment::findInThisFrame(const std::string& name) {
  auto value = values_.find(name);
  if (value != values_.end()) return value->second;
  auto type = types_.find(name);
  if (type == types_.end()) return nullptr;
  Graph& graph = *fn_.graph();
  Node* load = graph.insertNode(graph.createLoad(storeName(name), type->second));
  return std::make_shared<SimpleValue>(load->output());
}

SugaredValuePtr Environment::findInParentFrame(const std::string& name) {
  for (Environment* e = this; !e->isBoundary(name) && e->outer_;) {
    e = e->outside(name);
    if (SugaredValuePtr found = e->findInThisFrame(name)) return found;
  }
  return nullptr;
}

SugaredValuePtr Environment::findInAnyFrame(const std::string& name) {
  if (SugaredValuePtr found = findInThisFrame(name)) return found;
  return findInParentFrame(name);
}

const Environment::Absence* Environment::findAbsence(Absences Environment::*kind,
                                                     const std::string& name) const {
  for (const Environment* e = this; e; e = e->outside(name)) {
    auto it = (e->*kind).find(name);
    if (it != (e->*kind).end()) return &it->second;
    if (e->isBoundary(name)) break;
  }
  return nullptr;
}

const SugaredValue* Environment::findSugared(const std::string& name) const {
  for (const Environment* e = this; e; e = e->outside(name)) {
    auto value = e->values_.find(name);
    if (value != e->values_.end()) return value->second.get();
    if (e->types_.count(name) != 0 || e->isBoundary(name)) break;
  }
  return nullptr;
}

TypePtr Environment::typeOf(const std::string& name) const {
  for (const Environment* e = this; e; e = e->outside(name)) {
    auto type = e->types_.find(name);
    if (e->values_.count(name) == 0 && type != e->types_.end()) return type->second;
    if (e->values_.count(name) != 0 || e->isBoundary(name)) break;
  }
  return nullptr;
}

bool Environment::isVisible(const std::string& name) const {
  for (const Environment* e = this; e; e = e->outside(name)) {
    if (e->values_.count(name) != 0 || e->types_.count(name) != 0) return true;
    if (e->isBoundary(name)) break;
  }
  return false;
}

SugaredValuePtr Environment::get(const SourceRange& range, const std::string& name, bool required) {
  if (SugaredValuePtr found = findInAnyFrame(name)) return found;
  if (!findAbsence(&Environment::errors_, name)) {
    if (SugaredValuePtr found = resolver_ ? resolver_->resolveValue(name, fn_, range) : nullptr) {
      return found;
    }
    if (SugaredValuePtr found = builtinValue(name, fn_)) return found;
  }
  if (required) failUndefined(range, name);
  return nullptr;
}

Value* Environment::getValue(const SourceRange& range, const std::string& name) {
  return get(range, name)->asValue(range, fn_);
}

std::set<std::string> Environment::definedVariables() const {
  std::set<std::string> out;
  for (const auto& [name, type] : types_) out.insert(name);
  return out;
}

std::set<std::string> Environment::visibleNames() const {
  std::set<std::string> out;
  for (const Environment* e = this; e; e = e->outer_) {
    for (const auto& [name, type] : e->types_) out.insert(name);
    for (const auto& [name, value] : e->values_) out.insert(name);
  }
  return out;
}

void Environment::failUndefined(const SourceRange& range, const std::string& name) {
  const Absence* absence = findAbsence(&Environment::errors_, name);
  if (!absence) absence = findAbsence(&Environment::hints_, name);
  if (absence) {
    CompileError error(range, fmt::format("{} is not defined here: {}", name, absence->message));
    error.append(CompileError(absence->where, "this is the statement"));
    throw error;
  }
  if (isPythonOnly(name)) {
    throwCompileError(range, "undefined value {}: Python's '{}' is not in TorchScript", name, name);
  }
  if (resolver_) resolver_->checkBroken(name);
  std::set<std::string> names = visibleNames();
  for (const std::string& builtin : builtinNames()) names.insert(builtin);
  if (resolver_) names.merge(resolver_->knownNames());
  throwCompileError(range, "undefined value {}{}", name, didYouMean(name, names));
}

}  // namespace wick
