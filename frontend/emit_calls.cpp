// Calls, and the special forms that look like calls.
#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "core/suggestions.h"
#include "frontend/ir_emitter.h"

namespace wick {

void Emitter::expectInputs(const Apply& apply, const char* name, size_t least, size_t most) {
  size_t count = apply.inputs().size();
  if (!apply.attributes().empty()) {
    throwCompileError(apply.range(), "{} takes no keyword arguments", name);
  }
  if (count >= least && count <= most) return;
  if (least == most) {
    throwCompileError(apply.range(), "{} expected exactly {} arguments but found {}", name, least,
                      count);
  }
  throwCompileError(apply.range(), "{} expected {} to {} arguments but found {}", name, least, most,
                    count);
}

SugaredValuePtr Emitter::emitApply(const Apply& apply, size_t num_binders,
                                   const TypePtr& type_hint) {
  SugaredValuePtr callee = emitSugared(apply.callee());
  if (auto* form = dynamic_cast<SpecialForm*>(callee.get())) {
    return emitSpecialForm(form->form(), apply, callee, type_hint);
  }
  if (auto function = std::dynamic_pointer_cast<LocalFunction>(callee)) {
    return callLocal(apply.range(), *function, emitSugaredArguments(apply));
  }
  if (SugaredValuePtr sorted = emitSortMethod(callee, apply)) return sorted;
  std::vector<NamedValue> args = emitArguments(apply.inputs());
  std::vector<NamedValue> kwargs = emitKeywords(apply.attributes());
  return callee->call(apply.range(), fn_, std::move(args), std::move(kwargs), num_binders);
}

SugaredValuePtr Emitter::emitSpecialForm(Symbol form, const Apply& apply,
                                         const SugaredValuePtr& callee, const TypePtr& type_hint) {
  const SourceRange& range = apply.range();
  if (form == prim::Print) {
    if (!apply.attributes().empty()) {
      throwCompileError(range, "print doesn't accept any keyword arguments");
    }
    std::vector<Value*> values;
    for (const NamedValue& v : emitArguments(apply.inputs())) values.push_back(v.value);
    graph_.insertNode(graph_.create(prim::Print, values, 0));
    return simple(graph_.insertConstant(IValue(), types::None()));
  }
  if (form == prim::isinstance || form == prim::HasAttr) return simple(emitCond(apply).value);
  if (form == Symbol::prim("annotate")) return simple(emitAnnotate(apply, false));
  if (form == prim::unchecked_cast) return simple(emitAnnotate(apply, true));
  if (form == prim::Uninitialized) {
    expectInputs(apply, "uninitialized", 1, 1);
    return simple(
        graph_.insertNode(graph_.createUninitialized(typeOf(apply.inputs()[0])))->output());
  }
  if (form == prim::tolist) return simple(emitToList(apply, callee, type_hint));
  if (form == prim::GetAttr) return emitGetAttr(apply, type_hint);
  if (form == prim::fork) return emitFork(apply);
  if (form == Symbol::prim("checkpoint")) return emitCheckpoint(apply);
  if (form == Symbol::prim("custom_function")) return emitCustomFunction(apply);
  if (form == Symbol::prim("zip")) return emitZip(apply);
  if (form == Symbol::prim("enumerate")) return emitEnumerate(apply);
  if (form == Symbol::prim("range")) return emitRange(apply);
  if (form == Symbol::prim("reversed")) return emitReversed(apply);
  if (form == Symbol::prim("slice")) return emitSliceCall(apply);
  if (form == Symbol::prim("list")) return emitListCall(apply, type_hint);
  if (form == Symbol::prim("dict")) return emitDictCall(apply, type_hint);
  if (form == Symbol::prim("fromkeys")) return emitFromKeys(apply);
  if (form == Symbol::prim("tuple")) return emitTupleCall(apply, type_hint);
  if (form == prim::CreateObject) {
    // C.__new__(C), as printed programs make objects.
    expectInputs(apply, "__new__", 1, 1);
    auto type = std::dynamic_pointer_cast<ClassValue>(emitSugared(apply.inputs()[0]));
    if (!type) throwCompileError(range, "__new__ needs a class");
    return simple(graph_.insertNode(graph_.createObject(type->type()))->output());
  }
  if (isBuiltinForm(form)) return emitBuiltinForm(form, apply);
  if (form == Symbol::prim("super")) {
    // super().__init__() of a class whose base has nothing to initialize.
    return callee;
  }
  throwCompileError(range, "{} cannot be used here", form.name());
}

Value* Emitter::emitAnnotate(const Apply& apply, bool unchecked) {
  expectInputs(apply, unchecked ? "unchecked_cast" : "annotate", 2, 2);
  TypePtr type = typeOf(apply.inputs()[0]);
  Expr expr = apply.inputs()[1];
  // Given the hint Any, emitExpr would make a cast of its own.
  if (unchecked && type->kind() == TypeKind::Any) return uncheckedCast(emitExpr(expr), type);
  Value* value = emitExpr(expr, type);
  if (unchecked) return checkedCast(apply.range(), value, type);
  value = tryConvertToType(apply.range(), graph_, type, value, ImplicitConversions::All);
  std::string why;
  if (!value->type()->isSubtypeOf(*type, &why)) {
    throwCompileError(apply.inputs()[0].range(), "expected an expression of type {} but found {}",
                      type->annotation(), value->type()->annotation());
  }
  // None of an Optional, and anything of a union, needs the wider type from here on.
  if (sameType(value->type(), type)) return value;
  switch (type->kind()) {
    case TypeKind::Optional:
    case TypeKind::Union:
    case TypeKind::Any:
    case TypeKind::Interface:
      return uncheckedCast(value, type);
    default:
      return value;
  }
}

Value* Emitter::checkedCast(const SourceRange& range, Value* value, const TypePtr& type) {
  if (value->type()->isSubtypeOf(*type)) return uncheckedCast(value, type);
  const RangeGuard at(&graph_, range);
  const auto* optional = value->type()->as<OptionalType>();
  if (optional && optional->element()->isSubtypeOf(*type)) {
    return uncheckedCast(builtin(range, Symbol::aten("_unwrap_optional"), {value}), type);
  }
  std::vector<TypePtr> candidates;
  if (const auto* either = type->as<OptionalType>()) {
    candidates = {either->element(), types::None()};
  } else if (type->kind() == TypeKind::Union) {
    candidates = type->contained();
  } else {
    candidates = {type};
  }
  Node* test = graph_.insertNode(graph_.create(prim::isinstance, {value}));
  test->setAttribute(attr::types, std::move(candidates));
  test->output()->setType(types::Bool());
  return emitValueIf(
      range, {test->output(), RefinementSet(), std::nullopt},
      [&] { return uncheckedCast(value, type); },
      [&] {
        Value* message = constant(
            IValue(fmt::format("unchecked_cast: the value is not of type {}", type->annotation())));
        Value* class_name = constant(IValue("builtins.RuntimeError"));
        graph_.insertNode(graph_.create(prim::RaiseException, {message, class_name}, 0));
        return graph_.insertNode(graph_.createUninitialized(type))->output();
      },
      type);
}

Value* Emitter::emitToList(const Apply& apply, const SugaredValuePtr& callee,
                           const TypePtr& type_hint) {
  const SourceRange& range = apply.range();
  if (!apply.inputs().empty() || !apply.attributes().empty()) {
    throwCompileError(range, "tolist accepts no arguments");
  }
  if (!type_hint) throwCompileError(range, "Expected type hint for result of tolist()");
  Value* tensor = static_cast<const SpecialForm&>(*callee).receiver();
  TypePtr element = type_hint;
  int64_t dims = 0;
  while (const auto* list = element->as<ListType>()) {
    element = list->element();
    ++dims;
  }
  int64_t kind = 0;
  switch (element->kind()) {
    case TypeKind::Int:
      kind = 0;
      break;
    case TypeKind::Float:
      kind = 1;
      break;
    case TypeKind::Bool:
      kind = 2;
      break;
    case TypeKind::Complex:
      kind = 3;
      break;
    default:
      throwCompileError(range,
                        "{} is not one of the supported element types for tolist: int, float, "
                        "complex, bool",
                        element->annotation());
  }
  Node* n = graph_.create(prim::tolist, {tensor, constant(IValue(dims)), constant(IValue(kind))});
  n->output()->setType(type_hint);
  return graph_.insertNode(n)->output();
}

Value* Emitter::makeCallClosure(const Apply& apply) {
  const SourceRange& range = apply.range();
  SugaredValuePtr forked = emitSugared(apply.inputs()[0]);
  std::vector<Expr> rest;
  for (size_t i = 1; i < apply.inputs().size(); ++i) rest.push_back(apply.inputs()[i]);
  std::vector<NamedValue> args = emitArguments(List<Expr>::create(range, rest));
  std::vector<NamedValue> kwargs = emitKeywords(apply.attributes());
  std::function<SugaredValuePtr()> call = [&] { return forked->call(range, fn_, args, kwargs, 1); };
  if (dynamic_cast<SpecialForm*>(forked.get())) {
    // What is compiled from the tree of its call finds the values under names that no program has.
    std::vector<Expr> inputs;
    for (const NamedValue& arg : args) {
      const std::string name = fmt::format("fork'{}", ++*env_->names());
      env_->set(arg.range, name, arg.value);
      inputs.push_back(Var::create(arg.range, Ident::create(arg.range, name)));
    }
    call = [&, form = Apply::create(range, apply.inputs()[0], List<Expr>::create(range, inputs),
                                    apply.attributes())] { return emitApply(form, 1, nullptr); };
  }
  return makeClosure([&](Block* block) { block->registerOutput(call()->asValue(range, fn_)); });
}

SugaredValuePtr Emitter::emitFork(const Apply& apply) {
  if (apply.inputs().empty()) {
    throwCompileError(apply.range(),
                      "fork expected a function and its arguments but found nothing");
  }
  Value* closure = makeCallClosure(apply);
  TypePtr type = closure->node()->blocks()[0]->outputs().at(0)->type();
  Node* n = graph_.insertNode(graph_.create(prim::fork, {closure}));
  n->output()->setType(types::Future(type));
  return simple(n->output());
}

SugaredValuePtr Emitter::emitZip(const Apply& apply) {
  if (!apply.attributes().empty())
    throwCompileError(apply.range(), "zip takes no keyword arguments");
  if (apply.inputs().empty()) {
    throwCompileError(apply.range(), "zip expected at least 1 arguments, got 0");
  }
  std::vector<SugaredValuePtr> children;
  for (const Expr& e : apply.inputs()) {
    children.push_back(emitSugared(e)->iterate(e.range(), fn_));
  }
  return std::make_shared<IterableTree>(std::move(children));
}

SugaredValuePtr Emitter::emitEnumerate(const Apply& apply) {
  const SourceRange& range = apply.range();
  Value* start = nullptr;
  size_t count = apply.inputs().size();
  if (count == 2) start = emitExpr(apply.inputs()[1]);
  for (const Attribute& a : apply.attributes()) {
    if (a.name().name() != "start" || start) {
      throwCompileError(a.range(), "enumerate has no parameter '{}'{}", a.name().name(),
                        didYouMean(a.name().name(), {"start"}));
    }
    start = emitExpr(a.value());
  }
  if (count < 1 || count > 2) {
    throwCompileError(range, "enumerate expected 1 to 2 arguments but found {}", count);
  }
  if (start && start->type()->kind() != TypeKind::Int) {
    throwCompileError(range, "enumerate needs an int to start at, found {}",
                      start->type()->annotation());
  }
  SugaredValuePtr iterable =
      emitSugared(apply.inputs()[0])->iterate(apply.inputs()[0].range(), fn_);
  std::optional<size_t> length = iterable->staticLength();
  std::vector<Value*> bounds;
  if (start) {
    // Counted up to the largest int; the other iterable ends first.
    bounds = {start, constant(IValue(std::numeric_limits<int64_t>::max()))};
  }
  auto numbers = std::make_shared<RangeValue>(range, fn_, std::move(bounds), length);
  return std::make_shared<IterableTree>(std::vector<SugaredValuePtr>{numbers, iterable});
}

SugaredValuePtr Emitter::emitRange(const Apply& apply) {
  expectInputs(apply, "range", 1, 3);
  std::vector<Value*> bounds;
  for (const NamedValue& v : emitArguments(apply.inputs())) {
    Value* value =
        tryConvertToType(v.range, graph_, types::Int(), v.value, ImplicitConversions::All);
    if (value->type()->kind() != TypeKind::Int) {
      throwCompileError(v.range, "range() arguments must be ints, found {}",
                        v.type()->annotation());
    }
    bounds.push_back(value);
  }
  return std::make_shared<RangeValue>(apply.range(), fn_, std::move(bounds));
}

SugaredValuePtr Emitter::emitSliceCall(const Apply& apply) {
  expectInputs(apply, "slice", 1, 3);
  std::vector<Value*> bounds;
  for (const Expr& e : apply.inputs()) bounds.push_back(emitExpr(e));
  if (bounds.size() == 1) bounds.insert(bounds.begin(), nullptr);
  bounds.resize(3, nullptr);
  return std::make_shared<SliceValue>(bounds[0], bounds[1], bounds[2]);
}

SugaredValuePtr Emitter::emitReversed(const Apply& apply) {
  expectInputs(apply, "reversed", 1, 1);
  const SourceRange& range = apply.range();
  SugaredValuePtr iterable = emitSugared(apply.inputs()[0])->iterate(range, fn_);
  if (iterable->shouldUnroll()) {
    std::vector<SugaredValuePtr> elements = iterable->asTuple(range, fn_);
    return std::make_shared<SugaredTuple>(
        std::vector<SugaredValuePtr>(elements.rbegin(), elements.rend()));
  }
  Value* list = collectIntoList(range, iterable, nullptr);
  builtin(range, Symbol::aten("reverse"), {list});
  return simple(list);
}

SugaredValuePtr Emitter::emitGetAttr(const Apply& apply, const TypePtr&) {
  expectInputs(apply, "getattr", 2, 3);
  Expr name = apply.inputs()[1];
  if (name.kind() != TK_STRINGLITERAL) {
    throwCompileError(name.range(), "getattr's second argument must be a string literal");
  }
  const std::string& field = StringLiteral(name.tree()).text();
  SugaredValuePtr object = emitSugared(apply.inputs()[0]);
  if (apply.inputs().size() == 2 || object->hasAttr(apply.range(), fn_, field)) {
    return emitMember(object, apply.range(), field);
  }
  return emitSugared(apply.inputs()[2]);
}

}  // namespace wick
