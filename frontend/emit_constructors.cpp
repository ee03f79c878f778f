// list(…), dict(…) and tuple(…).
#include <fmt/format.h>

#include "core/error.h"
#include "frontend/ir_emitter.h"

namespace wick {

SugaredValuePtr Emitter::emitListCall(const Apply& apply, const TypePtr& type_hint) {
  expectInputs(apply, "list", 0, 1);
  const SourceRange& range = apply.range();
  if (apply.inputs().empty()) {
    return simple(
        emitListLiteral(ListLiteral::create(range, List<Expr>::create(range)), type_hint));
  }
  Expr input = apply.inputs()[0];
  const TypePtr hint = hintedContainer(range, type_hint, TypeKind::List);
  SugaredValuePtr iterable = emitSugared(input, 1, hint)->iterate(input.range(), fn_);
  if (Value* value = asSimple(iterable)) {
    if (value->type()->kind() == TypeKind::List || value->type()->kind() == TypeKind::String) {
      bool same = !hint || sameType(hint, value->type());
      if (same) return simple(builtin(range, Symbol::aten("list"), {value}));
    }
  }
  return simple(collectIntoList(range, iterable, type_hint));
}

SugaredValuePtr Emitter::emitTupleCall(const Apply& apply, const TypePtr& type_hint) {
  expectInputs(apply, "tuple", 0, 1);
  const SourceRange& range = apply.range();
  if (apply.inputs().empty()) return simple(graph_.insertNode(graph_.createTuple({}))->output());
  std::optional<size_t> size;
  if (type_hint) {
    if (const auto* tuple = type_hint->as<TupleType>()) size = tuple->contained().size();
  }
  Expr input = apply.inputs()[0];
  SugaredValuePtr value = emitSugared(input);
  Value* plain = asSimple(value);
  if (plain && plain->type()->kind() == TypeKind::Tuple) return value;
  if (!size) size = literalSize(value);
  std::vector<Value*> elements;
  for (const SugaredValuePtr& v : value->asTuple(range, fn_, size)) {
    elements.push_back(v->asValue(range, fn_));
  }
  return simple(graph_.insertNode(graph_.createTuple(elements))->output());
}

SugaredValuePtr Emitter::emitFromKeys(const Apply& apply) {
  expectInputs(apply, "fromkeys", 1, 2);
  SugaredValuePtr keys = emitSugared(apply.inputs()[0]);
  SugaredValuePtr value = apply.inputs().size() == 2
                              ? emitSugared(apply.inputs()[1])
                              : simple(graph_.insertConstant(IValue(), types::None()));
  return callGeneric(apply.range(), "dict_from_keys", {keys, value});
}

SugaredValuePtr Emitter::emitDictCall(const Apply& apply, const TypePtr& type_hint) {
  const SourceRange& range = apply.range();
  List<Expr> inputs = apply.inputs();
  if (inputs.size() > 1) {
    throwCompileError(range, "dict expected at most 1 positional argument but found {}",
                      inputs.size());
  }
  TypePtr dict_hint;
  if (type_hint && type_hint->kind() == TypeKind::Union) {
    size_t dicts = 0;
    for (const TypePtr& t : type_hint->contained()) dicts += t->kind() == TypeKind::Dict ? 1 : 0;
    if (dicts > 1) {
      throwCompileError(range,
                        "There are multiple candidate Dict types in the Union type annotation "
                        "`{}`, and full type inference is not yet supported for the `dict()` "
                        "constructor.",
                        type_hint->annotation());
    }
  }
  dict_hint = hintedContainer(range, type_hint, TypeKind::Dict);

  // dict(a=1): the keywords are a literal of their own.
  auto keywords = [&](const TypePtr& hint) {
    std::vector<Expr> keys;
    std::vector<Expr> values;
    for (const Attribute& a : apply.attributes()) {
      keys.push_back(StringLiteral::create(a.range(), a.name().name()));
      values.push_back(a.value());
    }
    return emitDictLiteral(DictLiteral::create(range, List<Expr>::create(range, keys),
                                               List<Expr>::create(range, values)),
                           hint);
  };
  if (inputs.empty()) return simple(keywords(dict_hint));

  Value* dict = nullptr;
  Expr input = inputs[0];
  if (input.kind() == TK_DICT_LITERAL || input.kind() == TK_DICT_COMP) {
    dict = emitExpr(input, dict_hint);
  } else if (input.kind() == TK_LIST_LITERAL && ListLiteral(input.tree()).inputs().empty()) {
    std::vector<Expr> none;
    dict = emitDictLiteral(DictLiteral::create(range, List<Expr>::create(range, none),
                                               List<Expr>::create(range, none)),
                           dict_hint);
  } else {
    TypePtr pair_list;
    if (dict_hint) {
      const auto* hint = dict_hint->as<DictType>();
      pair_list = types::List(types::Tuple({hint->key(), hint->value()}));
    }
    SugaredValuePtr source = emitSugared(input, 1, pair_list);
    Value* plain = asSimple(source);
    if (plain && plain->type()->kind() == TypeKind::Dict) {
      dict = builtin(range, Symbol::aten("dict"), {plain});
    } else {
      Value* pairs = plain && plain->type()->kind() == TypeKind::List
                         ? plain
                         : collectIntoList(range, source->iterate(input.range(), fn_), pair_list);
      const auto* list = pairs->type()->as<ListType>();
      const TupleType* pair = list ? list->element()->as<TupleType>() : nullptr;
      if (!pair || pair->contained().size() != 2) {
        throwCompileError(range, "dict needs pairs of key and value, found {}",
                          pairs->type()->annotation());
      }
      dict = builtin(range, Symbol::aten("dict"), {pairs});
    }
  }
  if (!apply.attributes().empty()) {
    Value* more = keywords(dict->type());
    builtin(range, Symbol::aten("update"), {dict, more});
  }
  return simple(dict);
}

}  // namespace wick
