// Python's functions on iterables: len, sorted, min, max, sum, any, all, map, filter.
//
// What TorchScript has as an operator is that operator. For other iterables, keys and starts there
// are generic functions written in script (frontend/script_generic.cpp), compiled into the caller.
#include "core/error.h"
#include "core/suggestions.h"
#include "frontend/builtin_functions.h"
#include "frontend/ir_emitter.h"
#include "frontend/magic_methods.h"

namespace wick {

namespace {

bool isNumber(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
      return true;
    default:
      return false;
  }
}

bool isNumberList(const TypePtr& type) {
  const auto* list = type->as<ListType>();
  return list && isNumber(list->element());
}

// Of the arguments that are left when those for `keywords` have been taken.
template <class Argument>
void expectArguments(const SourceRange& range, const char* name, const std::vector<Argument>& left,
                     const std::set<std::string>& keywords, size_t least, size_t most) {
  for (const Argument& a : left) {
    if (!a.name) continue;
    throwCompileError(a.range, "{} has no parameter '{}'{}", name, *a.name,
                      didYouMean(*a.name, keywords));
  }
  if (left.size() >= least && left.size() <= most) return;
  throwCompileError(range, "{} expected {}{} positional arguments but found {}", name,
                    least == most ? "" : "at least ", least, left.size());
}

}  // namespace

bool Emitter::isBuiltinForm(Symbol form) {
  for (const char* name : {"len", "sorted", "min", "max", "sum", "any", "all", "map", "filter"}) {
    if (form == Symbol::prim(name)) return true;
  }
  return false;
}

SugaredValuePtr Emitter::emitBuiltinForm(Symbol form, const Apply& apply) {
  const SourceRange& range = apply.range();
  std::vector<Argument> arguments = emitSugaredArguments(apply);
  if (form == Symbol::prim("len")) {
    expectArguments(range, "len", arguments, {}, 1, 1);
    return emitLength(range, arguments[0]);
  }
  if (form == Symbol::prim("sorted")) return emitSorted(range, std::move(arguments));
  if (form == Symbol::prim("min")) return emitExtremum(range, false, std::move(arguments));
  if (form == Symbol::prim("max")) return emitExtremum(range, true, std::move(arguments));
  if (form == Symbol::prim("sum")) return emitSum(range, std::move(arguments));
  if (form == Symbol::prim("any")) return emitAnyAll(range, true, std::move(arguments));
  if (form == Symbol::prim("all")) return emitAnyAll(range, false, std::move(arguments));
  return emitMapFilter(range, form == Symbol::prim("map"), std::move(arguments));
}

SugaredValuePtr Emitter::takeKeyword(std::vector<Argument>& arguments, const char* name) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i].name != name) continue;
    SugaredValuePtr value = arguments[i].value;
    arguments.erase(arguments.begin() + static_cast<std::ptrdiff_t>(i));
    Value* simple = asSimple(value);
    return simple && simple->type()->kind() == TypeKind::None ? nullptr : value;
  }
  return nullptr;
}

Value* Emitter::listOf(const SourceRange& range, const SugaredValuePtr& iterable) {
  Value* value = asSimple(iterable);
  if (value && value->type()->kind() == TypeKind::List) return value;
  return collectIntoList(range, iterable->iterate(range, fn_), nullptr);
}

SugaredValuePtr Emitter::callGeneric(const SourceRange& range, const char* name,
                                     const std::vector<SugaredValuePtr>& arguments) {
  GenericFunction found = builtinGenericFunction(name);
  LocalFunction function(name, found.def.tree(), found.resolver, nullptr);
  std::vector<Argument> bound;
  for (const SugaredValuePtr& v : arguments) bound.push_back({range, std::nullopt, v});
  return callLocal(range, function, bound);
}

SugaredValuePtr Emitter::emitLength(const SourceRange& range, const Argument& of) {
  if (Value* value = asSimple(of.value)) {
    return simple(emitMagic(range, fn_, "__len__", aten::len, {NamedValue(of.range, value)}));
  }
  return simple(of.value->length(range, fn_));
}

SugaredValuePtr Emitter::emitSorted(const SourceRange& range, std::vector<Argument> arguments) {
  SugaredValuePtr key = takeKeyword(arguments, "key");
  SugaredValuePtr reverse = takeKeyword(arguments, "reverse");
  expectArguments(range, "sorted", arguments, {"key", "reverse"}, 1, 1);
  Value* list = listOf(range, arguments[0].value);
  if (key) {
    if (!reverse) reverse = simple(constant(IValue(false)));
    return callGeneric(range, "sorted_by", {simple(list), key, reverse});
  }
  if (!reverse) return simple(builtin(range, Symbol::aten("sorted"), {list}));
  Value* copy = builtin(range, Symbol::aten("list"), {list});
  builtin(range, Symbol::aten("sort"), {copy, reverse->asValue(range, fn_)});
  return simple(copy);
}

SugaredValuePtr Emitter::emitSortMethod(const SugaredValuePtr& callee, const Apply& apply) {
  auto* method = dynamic_cast<BuiltinFunction*>(callee.get());
  if (!method || method->symbol() != Symbol::aten("sort") || !method->self()) return nullptr;
  if (method->self()->type()->kind() != TypeKind::List) return nullptr;
  const SourceRange& range = apply.range();
  bool keyed = false;
  for (const Attribute& a : apply.attributes()) keyed = keyed || a.name().name() == "key";
  if (!keyed) return nullptr;
  std::vector<Argument> arguments = emitSugaredArguments(apply);
  SugaredValuePtr key = takeKeyword(arguments, "key");
  SugaredValuePtr reverse = takeKeyword(arguments, "reverse");
  expectArguments(range, "sort", arguments, {"key", "reverse"}, 0, 0);
  if (!reverse) reverse = simple(constant(IValue(false)));
  SugaredValuePtr list = simple(method->self()->value);
  if (key) return callGeneric(range, "sort_by", {list, key, reverse});
  return method->call(range, fn_, {}, {NamedValue(range, "reverse", reverse->asValue(range, fn_))},
                      1);
}

SugaredValuePtr Emitter::emitExtremum(const SourceRange& range, bool is_max,
                                      std::vector<Argument> arguments) {
  const char* name = is_max ? "max" : "min";
  Symbol op = Symbol::prim(name);
  SugaredValuePtr key = takeKeyword(arguments, "key");
  SugaredValuePtr fallback = takeKeyword(arguments, "default");
  expectArguments(range, name, arguments, {"key", "default"}, 1,
                  std::numeric_limits<size_t>::max());
  std::vector<Value*> values;
  if (arguments.size() > 1) {
    if (fallback) throwCompileError(range, "{} of several values takes no default", name);
    for (const Argument& a : arguments) values.push_back(a.value->asValue(a.range, fn_));
    const TypePtr& first = values[0]->type();
    bool listed = first->kind() == TypeKind::String || first->kind() == TypeKind::Tuple || key;
    if (!listed) return simple(emitExtremumOf(range, op, values));
    values = {graph_.insertNode(graph_.createList(first, values))->output()};
  } else {
    SugaredValuePtr iterable = arguments[0].value;
    Value* value = asSimple(iterable);
    if (value && value->type()->kind() == TypeKind::Tensor) {
      return simple(builtin(range, op, {value}));
    }
    // A tuple may hold ints and floats together.
    if (value && value->type()->kind() == TypeKind::Tuple && !key && !fallback) {
      bool numbers = !value->type()->contained().empty();
      for (const TypePtr& t : value->type()->contained()) numbers = numbers && isNumber(t);
      if (numbers) {
        for (const SugaredValuePtr& v : iterable->asTuple(range, fn_)) {
          values.push_back(v->asValue(range, fn_));
        }
        return simple(values.size() == 1 ? values[0] : emitExtremumOf(range, op, values));
      }
    }
    values = {listOf(range, iterable)};
  }
  SugaredValuePtr list = simple(values[0]);
  if (fallback) {
    if (!key) return callGeneric(range, is_max ? "max_or" : "min_or", {list, fallback});
    return callGeneric(range, is_max ? "max_by_or" : "min_by_or", {list, key, fallback});
  }
  if (key) return callGeneric(range, is_max ? "max_by" : "min_by", {list, key});
  return simple(builtin(range, op, values));
}

// Of two values or more: of one type as a list, else by twos.
Value* Emitter::emitExtremumOf(const SourceRange& range, Symbol op,
                               const std::vector<Value*>& values) {
  bool alike = true;
  for (const Value* v : values) alike = alike && sameType(v->type(), values[0]->type());
  if (alike || values.size() == 2) return builtin(range, op, values);
  Value* best = values[0];
  for (size_t i = 1; i < values.size(); ++i) best = builtin(range, op, {best, values[i]});
  return best;
}

SugaredValuePtr Emitter::emitSum(const SourceRange& range, std::vector<Argument> arguments) {
  SugaredValuePtr start = takeKeyword(arguments, "start");
  expectArguments(range, "sum", arguments, {"start"}, 1, 2);
  if (arguments.size() == 2) start = arguments[1].value;
  Value* value = asSimple(arguments[0].value);
  if (value && value->type()->kind() == TypeKind::Tensor && !start) {
    return simple(builtin(range, Symbol::aten("sum"), {value}));
  }
  Value* list = listOf(range, arguments[0].value);
  const TypePtr element = list->type()->as<ListType>()->element();
  if (isNumber(element) || element->kind() == TypeKind::Complex) {
    Value* total = builtin(range, Symbol::aten("sum"), {list});
    if (!start) return simple(total);
    Value* from = start->asValue(range, fn_);
    return simple(emitBinary(range, '+', NamedValue(range, from), NamedValue(range, total)));
  }
  if (!start && element->kind() == TypeKind::Tensor) {
    return callGeneric(range, "sum_of_tensors", {simple(list)});
  }
  if (!start) return simple(builtin(range, Symbol::aten("sum"), {list}));
  return callGeneric(range, "sum_from", {simple(list), start});
}

SugaredValuePtr Emitter::emitAnyAll(const SourceRange& range, bool is_any,
                                    std::vector<Argument> arguments) {
  expectArguments(range, is_any ? "any" : "all", arguments, {}, 1, 1);
  Symbol op = Symbol::aten(is_any ? "any" : "all");
  SugaredValuePtr iterable = arguments[0].value;
  Value* value = asSimple(iterable);
  if (value) {
    const TypePtr& type = value->type();
    const auto* list = type->as<ListType>();
    bool strings = is_any && list && list->element()->kind() == TypeKind::String;
    if (type->kind() == TypeKind::Tensor || isNumberList(type) || strings) {
      return simple(builtin(range, op, {value}));
    }
  }
  return callGeneric(range, is_any ? "any_of" : "all_of", {iterable});
}

SugaredValuePtr Emitter::emitMapFilter(const SourceRange& range, bool is_map,
                                       std::vector<Argument> arguments) {
  if (!is_map) {
    expectArguments(range, "filter", arguments, {}, 2, 2);
    Value* test = asSimple(arguments[0].value);
    if (test && test->type()->kind() == TypeKind::None) {
      return callGeneric(range, "filter_true", {arguments[1].value});
    }
    return callGeneric(range, "filter_list", {arguments[0].value, arguments[1].value});
  }
  expectArguments(range, "map", arguments, {}, 2, std::numeric_limits<size_t>::max());
  if (arguments.size() == 2) {
    return callGeneric(range, "map_list", {arguments[0].value, arguments[1].value});
  }
  std::vector<SugaredValuePtr> children;
  for (size_t i = 1; i < arguments.size(); ++i) {
    children.push_back(arguments[i].value->iterate(arguments[i].range, fn_));
  }
  return callGeneric(range, "map_tuples",
                     {arguments[0].value, std::make_shared<IterableTree>(std::move(children))});
}

}  // namespace wick
