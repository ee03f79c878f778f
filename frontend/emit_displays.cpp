// List, tuple and dict literals, and comprehensions.
//
// The element type of a literal is the hint's when there is one (an annotation, a parameter, the
// attribute it is assigned to), else what its elements unify to. An empty literal without a hint is
// a List[Tensor] or Dict[str, Tensor].
#include <fmt/format.h>

#include <algorithm>
#include <variant>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "frontend/type_resolver.h"

namespace wick {

namespace {

std::optional<TypePtr> unifyAll(const std::vector<Value*>& values, bool to_union) {
  std::optional<TypePtr> type = values.at(0)->type();
  for (size_t i = 1; i < values.size() && type; ++i) {
    type = unifyTypes(*type, values[i]->type(), to_union);
  }
  return type;
}

}  // namespace

void collectNames(const Expr& target, std::vector<std::string>& out) {
  switch (target.kind()) {
    case TK_VAR:
      out.push_back(Var(target.tree()).name().name());
      break;
    case TK_TUPLE_LITERAL:
      for (const Expr& e : TupleLiteral(target.tree()).inputs()) collectNames(e, out);
      break;
    case TK_LIST_LITERAL:
      for (const Expr& e : ListLiteral(target.tree()).inputs()) collectNames(e, out);
      break;
    case TK_STARRED:
      collectNames(Starred(target.tree()).expr(), out);
      break;
    default:
      break;
  }
}

namespace {

// An empty display has no elements that could choose among several containers of a union.
void checkOneCandidate(const SourceRange& range, const TypePtr& type_hint, TypeKind kind) {
  if (!type_hint || type_hint->kind() != TypeKind::Union) return;
  const auto fits = [&](const TypePtr& member) { return member->kind() == kind; };
  if (std::ranges::count_if(type_hint->contained(), fits) < 2) return;
  const bool list = kind == TypeKind::List;
  throwCompileError(range,
                    "Cannot assign an empty {} to a variable annotated to be type {} because there "
                    "are multiple possible {} type candidates in the Union annotation",
                    list ? "list" : "dict", type_hint->annotation(), list ? "List" : "Dict");
}

}  // namespace

TypePtr Emitter::hintedContainer(const SourceRange& range, const TypePtr& type_hint,
                                 TypeKind kind) {
  if (!type_hint) return nullptr;
  if (type_hint->kind() == kind) return type_hint;
  const char* word = kind == TypeKind::List ? "List" : "Dict";
  if (const auto* optional = type_hint->as<OptionalType>()) {
    return hintedContainer(range, optional->element(), kind);
  }
  if (type_hint->kind() != TypeKind::Union) return nullptr;
  TypePtr only;
  for (const TypePtr& member : type_hint->contained()) {
    if (member->kind() != kind) continue;
    if (only) return nullptr;  // the elements decide
    only = member;
  }
  if (!only && kind == TypeKind::Dict) {
    throwCompileError(range, "Expected an Union type annotation with an inner {} type, but got {}",
                      word, type_hint->annotation());
  }
  return only;
}

Value* Emitter::unifyInto(const SourceRange& range, const TypePtr& type, Value* value) {
  return tryConvertToType(range, graph_, type, value, ImplicitConversions::EmptyLists);
}

Value* Emitter::emitListLiteral(const ListLiteral& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  TypePtr list_hint = hintedContainer(range, type_hint, TypeKind::List);
  TypePtr element_hint = list_hint ? list_hint->as<ListType>()->element() : nullptr;
  for (const Expr& e : expr.inputs()) {
    if (e.kind() == TK_STARRED) return emitStarredList(expr, element_hint);
  }
  std::vector<Value*> values = emitValues(expr.inputs(), element_hint);
  if (values.empty()) {
    checkOneCandidate(range, type_hint, TypeKind::List);
    Node* n = graph_.createList(element_hint ? element_hint : types::Tensor(), {});
    // Until a use says what it holds, the literal fits any list.
    if (!element_hint) n->setAttribute(Symbol::attr("empty_literal"), IValue(true));
    return graph_.insertNode(n)->output();
  }
  TypePtr element = element_hint;
  if (element) {
    for (Value*& v : values) {
      v = unifyInto(range, element, v);
      if (!v->type()->isSubtypeOf(*element)) {
        throwCompileError(range,
                          "Type annotation was inferred to be `{}`, but the type of the elements "
                          "given by the list literal is {}",
                          list_hint->annotation(), v->type()->annotation());
      }
    }
  } else {
    element = *unifyAll(values, /*to_union=*/true);
    if (type_hint && type_hint->kind() == TypeKind::Union) {
      // Several lists in the union: the one that can hold the elements.
      for (const TypePtr& member : type_hint->contained()) {
        const auto* list = member->as<ListType>();
        if (list && element->isSubtypeOf(*list->element())) {
          element = list->element();
          break;
        }
      }
    }
  }
  return graph_.insertNode(graph_.createList(element, values))->output();
}

// [a, *b, c]: the parts that are written out become lists, which are joined with the others.
Value* Emitter::emitStarredList(const ListLiteral& expr, const TypePtr& element_hint) {
  const SourceRange& range = expr.range();
  std::vector<std::variant<Value*, std::vector<Value*>>> parts{std::vector<Value*>()};
  std::vector<TypePtr> types;
  auto add = [&](Value* value) {
    if (!std::holds_alternative<std::vector<Value*>>(parts.back())) {
      parts.emplace_back(std::vector<Value*>());
    }
    std::get<std::vector<Value*>>(parts.back()).push_back(value);
    types.push_back(value->type());
  };
  for (const Expr& e : expr.inputs()) {
    if (e.kind() != TK_STARRED) {
      add(emitExpr(e, element_hint));
      continue;
    }
    Expr unpacked = Starred(e.tree()).expr();
    SugaredValuePtr value =
        emitSugared(unpacked, 1, element_hint ? types::List(element_hint) : nullptr);
    Value* plain = asSimple(value);
    std::optional<size_t> size = literalSize(value);
    if (size || value->shouldUnroll() || (plain && plain->type()->kind() == TypeKind::Tuple)) {
      for (const SugaredValuePtr& v : value->asTuple(unpacked.range(), fn_, size)) {
        add(v->asValue(unpacked.range(), fn_));
      }
      continue;
    }
    Value* list = listOf(unpacked.range(), value);
    parts.emplace_back(list);
    types.push_back(list->type()->as<ListType>()->element());
  }
  TypePtr element = element_hint;
  if (!element) {
    element = types.empty() ? types::Tensor() : types[0];
    for (const TypePtr& t : types) element = *unifyTypes(element, t, /*default_to_union=*/true);
  }
  Value* joined = nullptr;
  for (auto& part : parts) {
    Value* list = nullptr;
    if (auto* whole = std::get_if<Value*>(&part)) {
      list = joined ? *whole : builtin(range, Symbol::aten("list"), {*whole});
    } else {
      auto& values = std::get<std::vector<Value*>>(part);
      if (values.empty() && parts.size() > 1) continue;
      for (Value*& v : values) v = unifyInto(range, element, v);
      list = graph_.insertNode(graph_.createList(element, values))->output();
    }
    joined = joined ? builtin(range, aten::add, {joined, list}) : list;
  }
  return joined;
}

Value* Emitter::emitTupleLiteral(const TupleLiteral& expr, const TypePtr& type_hint) {
  const TupleType* hint = nullptr;
  if (type_hint) {
    TypePtr plain = type_hint;
    if (const auto* optional = plain->as<OptionalType>()) plain = optional->element();
    hint = plain->as<TupleType>();
  }
  List<Expr> inputs = expr.inputs();
  if (!hint || hint->contained().size() != inputs.size()) {
    return graph_.insertNode(graph_.createTuple(emitValues(inputs)))->output();
  }
  std::vector<Value*> values;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].kind() == TK_STARRED) {
      return graph_.insertNode(graph_.createTuple(emitValues(inputs)))->output();
    }
    values.push_back(emitExpr(inputs[i], hint->contained()[i]));
  }
  return graph_.insertNode(graph_.createTuple(values))->output();
}

// {k: v, **other}: the parts become dicts, and later ones are put into the first.
Value* Emitter::emitMergedDict(const DictLiteral& expr, const TypePtr& dict_hint) {
  const SourceRange& range = expr.range();
  List<Expr> keys = expr.keys();
  List<Expr> values = expr.values();
  Value* merged = nullptr;
  for (size_t i = 0; i < keys.size();) {
    Value* part = nullptr;
    TypePtr hint = merged ? merged->type() : dict_hint;
    if (keys[i].kind() == TK_STARRED) {
      Expr other = Starred(keys[i].tree()).expr();
      part = emitExpr(other, hint);
      if (part->type()->kind() != TypeKind::Dict) {
        throwCompileError(other.range(), "only a dict can be unpacked with '**', found {}",
                          part->type()->annotation());
      }
      if (!merged) part = builtin(range, Symbol::aten("dict"), {part});
      ++i;
    } else {
      std::vector<Expr> some_keys;
      std::vector<Expr> some_values;
      for (; i < keys.size() && keys[i].kind() != TK_STARRED; ++i) {
        some_keys.push_back(keys[i]);
        some_values.push_back(values[i]);
      }
      part = emitDictLiteral(DictLiteral::create(range, List<Expr>::create(range, some_keys),
                                                 List<Expr>::create(range, some_values)),
                             hint);
    }
    if (!merged) {
      merged = part;
    } else {
      builtin(range, Symbol::aten("update"), {merged, part});
    }
  }
  return merged;
}

Value* Emitter::emitDictLiteral(const DictLiteral& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  TypePtr dict_hint = hintedContainer(range, type_hint, TypeKind::Dict);
  const DictType* hint = dict_hint ? dict_hint->as<DictType>() : nullptr;
  for (const Expr& key : expr.keys()) {
    if (key.kind() == TK_STARRED) return emitMergedDict(expr, dict_hint);
  }
  // Each value follows its key: both may call what has effects.
  std::vector<Value*> keys, values;
  for (size_t i = 0; i < expr.keys().size(); ++i) {
    keys.push_back(emitExpr(expr.keys()[i], hint ? hint->key() : nullptr));
    values.push_back(emitExpr(expr.values()[i], hint ? hint->value() : nullptr));
  }
  if (keys.empty()) {
    checkOneCandidate(range, type_hint, TypeKind::Dict);
    TypePtr key = hint ? hint->key() : types::String();
    TypePtr value = hint ? hint->value() : types::Tensor();
    return graph_.insertNode(graph_.createDict(key, value, {}, {}))->output();
  }
  auto key = unifyAll(keys, false);
  if (!key) {
    for (size_t i = 1; i < keys.size(); ++i) {
      if (unifyTypes(keys[0]->type(), keys[i]->type())) continue;
      throwCompileError(expr.keys()[i].range(),
                        "the keys of a dict must have one type: expected {} but found {}",
                        keys[0]->type()->annotation(), keys[i]->type()->annotation());
    }
    throwCompileError(range, "the keys of a dict must have one type");
  }
  TypePtr value = *unifyAll(values, true);
  if (hint) {
    for (Value*& v : values) v = unifyInto(range, hint->value(), v);
    if (!(*key)->isSubtypeOf(*hint->key())) {
      throwCompileError(range,
                        "Type annotation was inferred to be `{}`, but the type of keys given by "
                        "the dict literal is {}",
                        dict_hint->annotation(), (*key)->annotation());
    }
    if (!(*unifyAll(values, true))->isSubtypeOf(*hint->value())) {
      throwCompileError(range,
                        "Type annotation was inferred to be `{}`, but the type of values given by "
                        "the dict literal is {}",
                        dict_hint->annotation(), value->annotation());
    }
    key = hint->key();
    value = hint->value();
  } else if (type_hint && type_hint->kind() == TypeKind::Union) {
    const DictType* fitting = nullptr;
    std::string choices;
    for (const TypePtr& member : type_hint->contained()) {
      const auto* dict = member->as<DictType>();
      if (!dict) continue;
      choices += (choices.empty() ? "" : " or ") + member->annotation();
      if (!fitting && (*key)->isSubtypeOf(*dict->key()) && value->isSubtypeOf(*dict->value())) {
        fitting = dict;
      }
    }
    if (!fitting) {
      throwCompileError(range,
                        "Union type annotation `{}` can hold {}, but none of those dict types can "
                        "hold the types of the given keys and values, which were unified to "
                        "Dict[{}, {}]",
                        type_hint->annotation(), choices, (*key)->annotation(),
                        value->annotation());
    }
    key = fitting->key();
    value = fitting->value();
  }
  checkDictKeyType(range, **key);
  return graph_.insertNode(graph_.createDict(*key, value, keys, values))->output();
}

// The loops of a comprehension, one inside the other, with `innermost` in the middle.
SugaredValuePtr Emitter::emitIterable(const Expr& iter) {
  return emitSugared(iter)->iterate(iter.range(), fn_);
}

void Emitter::beginComprehension(const List<CompFor>& generators) {
  env_->beginScope();
  for (const CompFor& generator : generators) {
    std::vector<std::string> names;
    collectNames(generator.target(), names);
    for (const std::string& name : names) env_->declareLocal(name);
  }
}

void Emitter::emitGenerators(const List<CompFor>& generators, size_t index,
                             const SugaredValuePtr& iterable, const Body& innermost) {
  CompFor generator = generators[index];
  emitFor(generator.target(), iterable, generator.range(), [&] {
    // Conditions nest: each guards the ones after it.
    List<Expr> conds = generator.conds();
    std::function<void(size_t)> guarded = [&](size_t i) {
      if (i == conds.size()) {
        const size_t next = index + 1;
        if (next == generators.size()) return innermost();
        return emitGenerators(generators, next, emitIterable(generators[next].iter()), innermost);
      }
      CondValue cond = emitCond(conds[i]);
      emitIfElse(
          conds[i].range(), cond, [&] { guarded(i + 1); }, [] {});
    };
    guarded(0);
  });
}

Value* Emitter::emitListComp(const ListComp& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  TypePtr list_hint = hintedContainer(range, type_hint, TypeKind::List);
  TypePtr element = list_hint ? list_hint->as<ListType>()->element() : nullptr;
  Node* list = graph_.insertNode(graph_.createList(element ? element : types::Tensor(), {}));
  // What the comprehension binds lives and dies with it; its first iterable stands outside.
  SugaredValuePtr iterable = emitIterable(expr.generators()[0].iter());
  FrameGuard frame(*this, env_->block());
  beginComprehension(expr.generators());
  bool first = element == nullptr;
  emitGenerators(expr.generators(), 0, iterable, [&] {
    Value* value = emitExpr(expr.element(), element);
    if (list_hint) {
      value = unifyInto(range, element, value);
    } else if (first) {
      list->output()->setType(types::List(value->type()));
      first = false;
    } else if (!value->type()->isSubtypeOf(*list->output()->type()->as<ListType>()->element())) {
      // An unrolled loop: elements may differ.
      auto unified = unifyTypes(list->output()->type()->as<ListType>()->element(), value->type(),
                                /*default_to_union=*/true);
      list->output()->setType(types::List(*unified));
    }
    builtin(range, aten::append, {list->output(), value});
  });
  return list->output();
}

Value* Emitter::emitDictComp(const DictComp& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  TypePtr dict_hint = hintedContainer(range, type_hint, TypeKind::Dict);
  const DictType* hint = dict_hint ? dict_hint->as<DictType>() : nullptr;
  Node* dict = graph_.insertNode(graph_.createDict(hint ? hint->key() : types::String(),
                                                   hint ? hint->value() : types::Tensor(), {}, {}));
  SugaredValuePtr iterable = emitIterable(expr.generators()[0].iter());
  FrameGuard frame(*this, env_->block());
  beginComprehension(expr.generators());
  bool first = hint == nullptr;
  emitGenerators(expr.generators(), 0, iterable, [&] {
    Value* key = emitExpr(expr.key(), hint ? hint->key() : nullptr);
    Value* value = emitExpr(expr.value(), hint ? hint->value() : nullptr);
    if (first) {
      dict->output()->setType(types::Dict(key->type(), value->type()));
      first = false;
    }
    builtin(range, aten::_set_item, {dict->output(), key, value});
  });
  return dict->output();
}

// [x for x in iterable]
Value* Emitter::collectIntoList(const SourceRange& range, const SugaredValuePtr& iterable,
                                const TypePtr& type_hint) {
  TypePtr list_hint = hintedContainer(range, type_hint, TypeKind::List);
  TypePtr element = list_hint ? list_hint->as<ListType>()->element() : nullptr;
  Node* list = graph_.insertNode(graph_.createList(element ? element : types::Tensor(), {}));
  bool first = element == nullptr;
  auto append = [&](Value* value) {
    if (first) list->output()->setType(types::List(value->type()));
    first = false;
    builtin(range, aten::append, {list->output(), value});
  };
  FrameGuard frame(*this, env_->block());
  if (iterable->shouldUnroll()) {
    for (const SugaredValuePtr& v : iterable->asTuple(range, fn_)) append(v->asValue(range, fn_));
    return list->output();
  }
  // An element that no program can name.
  const std::string name = "list element'";
  env_->declareLocal(name);
  Expr target = Var::create(range, Ident::create(range, name));
  emitLoop(
      range, [&] { append(env_->getValue(range, name)); }, iterable, &target, nullptr);
  return list->output();
}

}  // namespace wick
