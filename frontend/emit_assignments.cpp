// Assignments to names, attributes, elements and patterns of these; augmented assignments.
#include <fmt/format.h>

#include "core/error.h"
#include "frontend/ir_emitter.h"

namespace wick {

namespace {

// What a variable annotated with `type` holds after `value` was assigned, when the value itself
// says more: x: Optional[int] = 1 is an int until the next assignment.
bool keepsDeclaredType(const TypePtr& type) {
  return type->kind() == TypeKind::Any;
}

}  // namespace

void Emitter::emitAssignment(const Assign& stmt) {
  if (stmt.type()) return emitAnnotated(stmt);
  if (!stmt.value()) throwCompileError(stmt.range(), "an assignment needs a value");
  Expr value = stmt.value().get();
  List<Expr> targets = stmt.targets();
  if (targets.size() == 1) {
    Expr target = targets[0];
    if (target.kind() == TK_SUBSCRIPT) {
      NamedValue v(value.range(), emitExpr(value));
      return emitSubscriptTarget(Subscript(target.tree()), v);
    }
    size_t binders = target.kind() == TK_TUPLE_LITERAL ? TupleLiteral(target.tree()).inputs().size()
                     : target.kind() == TK_LIST_LITERAL ? ListLiteral(target.tree()).inputs().size()
                                                        : 1;
    TypePtr hint;
    if (target.kind() == '.') {
      // The declared type of an attribute types an empty literal that is assigned to it.
      Select select(target.tree());
      if (select.value().kind() == TK_VAR) {
        Value* object = asSimple(emitSugared(select.value()));
        const ClassType* type = object ? object->type()->as<ClassType>() : nullptr;
        if (type) {
          if (auto slot = type->findAttribute(select.selector().name())) {
            hint = type->attributes()[*slot].type;
          }
        }
      }
    }
    return emitTarget(target, emitSugared(value, binders, hint), stmt.range());
  }
  // a = b = value: evaluated once.
  SugaredValuePtr shared = emitSugared(value);
  for (const Expr& target : targets) emitTarget(target, shared, stmt.range());
}

void Emitter::emitAnnotated(const Assign& stmt) {
  TypePtr type = typeOf(stmt.type().get());
  Expr target = stmt.target();
  if (!stmt.value()) return;  // a bare declaration says nothing to a compiler of single assignments
  Expr expr = stmt.value().get();
  switch (target.kind()) {
    case TK_VAR: {
      const std::string& name = Var(target.tree()).name().name();
      Value* value = emitExpr(expr, type);
      value = tryConvertToType(stmt.range(), graph_, type, value, ImplicitConversions::EmptyLists);
      std::string why;
      if (!value->type()->isSubtypeOf(*type, &why)) {
        throwCompileError(stmt.range(),
                          "Variable '{}' is annotated with type {} but is being assigned to a "
                          "value of type {}",
                          name, type->annotation(), value->type()->annotation());
      }
      if (keepsDeclaredType(type) && value->type()->kind() != TypeKind::Any) {
        value = uncheckedCast(value, type);
      }
      env_->set(stmt.range(), name, simple(value), type);
      return;
    }
    case '.': {
      Select select(target.tree());
      Value* value = emitExpr(expr, type);
      value = tryConvertToType(stmt.range(), graph_, type, value, ImplicitConversions::EmptyLists);
      if (!value->type()->isSubtypeOf(*type)) {
        throwCompileError(stmt.range(), "Expected a value of type {} but found {}",
                          type->annotation(), value->type()->annotation());
      }
      // The annotation declares the attribute's type where __init__ creates it.
      if (!sameType(value->type(), type)) value = uncheckedCast(value, type);
      emitSelectTarget(select, value, stmt.range());
      return;
    }
    default:
      throwCompileError(stmt.range(), "only a variable or an attribute can be annotated");
  }
}

void Emitter::emitTarget(const Expr& target, const SugaredValuePtr& value,
                         const SourceRange& range) {
  switch (target.kind()) {
    case TK_VAR:
      env_->set(target.range(), Var(target.tree()).name().name(), value);
      return;
    case TK_TUPLE_LITERAL:
      return emitTupleTarget(target, TupleLiteral(target.tree()).inputs(), value, range);
    case TK_LIST_LITERAL:
      return emitTupleTarget(target, ListLiteral(target.tree()).inputs(), value, range);
    case '.':
      return emitSelectTarget(Select(target.tree()), value->asValue(range, fn_), range);
    case TK_SUBSCRIPT:
      return emitSubscriptTarget(Subscript(target.tree()),
                                 NamedValue(range, value->asValue(range, fn_)));
    default:
      throwCompileError(target.range(), "cannot assign to this expression");
  }
}

void Emitter::emitTupleTarget(const Expr& target, const List<Expr>& targets,
                              const SugaredValuePtr& value, const SourceRange& range) {
  size_t count = targets.size();
  std::optional<size_t> starred;
  for (size_t i = 0; i < count; ++i) {
    if (targets[i].kind() != TK_STARRED) continue;
    if (starred) throwCompileError(targets[i].range(), "only one starred target is allowed");
    starred = i;
  }
  if (starred) {
    Value* list = asSimple(value);
    if (list && list->type()->kind() == TypeKind::String) list = listOf(range, value);
    if (list && list->type()->kind() == TypeKind::List) {
      return emitListTarget(targets, *starred, list, range);
    }
  }
  std::optional<size_t> hint;
  if (!starred) hint = count;
  std::vector<SugaredValuePtr> values = value->asTuple(range, fn_, hint);
  if (starred ? values.size() + 1 < count : values.size() != count) {
    throwCompileError(
        target.range(), "{}: need {}{} values to unpack, found {}",
        values.size() < count ? "not enough values to unpack" : "too many values to unpack",
        starred ? "at least " : "", starred ? count - 1 : count, values.size());
  }
  size_t next = 0;
  for (size_t i = 0; i < count; ++i) {
    if (starred != i) {
      emitTarget(targets[i], values[next++], range);
      continue;
    }
    std::vector<Value*> rest;
    for (size_t n = values.size() - (count - 1); n > 0; --n) {
      rest.push_back(values[next++]->asValue(range, fn_));
    }
    Value* tuple = graph_.insertNode(graph_.createTuple(rest))->output();
    emitTarget(Starred(targets[i].tree()).expr(), simple(tuple), range);
  }
}

void Emitter::emitListTarget(const List<Expr>& targets, size_t starred, Value* list,
                             const SourceRange& range) {
  int64_t count = static_cast<int64_t>(targets.size());
  int64_t after = count - 1 - static_cast<int64_t>(starred);
  list = builtin(range, Symbol::prim("checkUnpack"), {list, constant(IValue(count - 1))});
  for (size_t i = 0; i < targets.size(); ++i) {
    int64_t at = static_cast<int64_t>(i);
    if (i == starred) {
      Value* start = constant(IValue(at));
      Value* end = after > 0 ? constant(IValue(-after)) : nullptr;
      Value* rest = emitSlice(range, list, SliceValue(start, end, nullptr), std::nullopt);
      emitTarget(Starred(targets[i].tree()).expr(), simple(rest), range);
      continue;
    }
    if (i > starred) at -= count;
    Value* element = builtin(range, aten::__getitem__, {list, constant(IValue(at))});
    emitTarget(targets[i], simple(element), range);
  }
}

void Emitter::emitSelectTarget(const Select& target, Value* value, const SourceRange& range) {
  emitSugared(target.value())->setAttr(range, fn_, target.selector().name(), value);
}

// Numbers assigned into a tensor take its dtype and device.
Value* Emitter::asTensorLike(const SourceRange& range, Value* value, Value* like) {
  TypeKind kind = value->type()->kind();
  if (kind == TypeKind::Tensor) return value;
  if (value->type()->isSubtypeOf(*types::Number()) || kind == TypeKind::Bool) {
    Value* dtype = builtin(range, Symbol::prim("dtype"), {like});
    Value* device = builtin(range, Symbol::prim("device"), {like});
    return emitBuiltinCall(
        range, graph_, Symbol::aten("tensor"), {NamedValue(range, value)},
        {NamedValue(range, "dtype", dtype), NamedValue(range, "device", device)});
  }
  throwCompileError(range, "cannot assign a value of type {} into a tensor",
                    value->type()->annotation());
}

// The container and the three bounds of a slice of it, None where they are missing.
std::vector<Value*> Emitter::emitBounds(Value* container, const SliceValue& slice) {
  std::vector<Value*> out{container};
  for (Value* bound : {slice.start, slice.stop, slice.step}) {
    out.push_back(bound ? bound : graph_.insertConstant(IValue(), types::None()));
  }
  return out;
}

void Emitter::emitSubscriptTarget(const Subscript& target, const NamedValue& value) {
  const SourceRange& range = target.range();
  Value* object = emitExpr(target.value());
  std::vector<Index> subscripts = emitIndices(target);
  if (object->type()->kind() == TypeKind::Tensor) {
    TensorIndexing at = emitTensorIndexing(range, object, std::move(subscripts));
    Value* source = asTensorLike(value.range, value.value, at.sliced);
    if (at.indices.empty()) {
      builtin(range, aten::copy_, {at.sliced, source});
      return;
    }
    Value* indices =
        graph_.insertNode(graph_.createList(types::Optional(types::Tensor()), at.indices))
            ->output();
    builtin(range, aten::index_put_, {at.sliced, indices, source});
    return;
  }
  if (subscripts.size() != 1) {
    throwCompileError(range, "Subscripted assignment with several indices needs a tensor, found {}",
                      object->type()->annotation());
  }
  if (subscripts[0].slice && object->type()->kind() == TypeKind::List) {
    Value* list = value.value;
    if (list->type()->kind() != TypeKind::List) list = listOf(value.range, simple(list));
    list = unifyInto(value.range, object->type(), list);
    std::vector<Value*> arguments = emitBounds(object, *subscripts[0].slice);
    arguments.push_back(list);
    builtin(range, Symbol::prim("setSlice"), arguments);
    return;
  }
  if (!subscripts[0].value) {
    throwCompileError(range, "assignment to a slice of a value of type {} is not supported",
                      object->type()->annotation());
  }
  if (object->type()->kind() == TypeKind::Tuple) {
    throwCompileError(range, "a tuple cannot be changed: assignment to an element of {}",
                      object->type()->annotation());
  }
  Value* index = subscripts[0].value;
  if (object->type()->kind() == TypeKind::Class) {
    simple(object)
        ->attr(range, fn_, "__setitem__")
        ->call(range, fn_, {NamedValue(range, index), value}, {}, 0);
    return;
  }
  Value* stored = value.value;
  if (const auto* list = object->type()->as<ListType>()) {
    stored = tryConvertToType(value.range, graph_, list->element(), stored,
                              ImplicitConversions::EmptyLists);
  } else if (const auto* dict = object->type()->as<DictType>()) {
    stored = tryConvertToType(value.range, graph_, dict->value(), stored,
                              ImplicitConversions::EmptyLists);
  }
  builtin(range, aten::_set_item, {object, index, stored});
}

namespace {

struct AugOperator {
  int op;
  const char* inplace;
  const char* method;
};

const AugOperator& augOperator(const AugAssign& stmt) {
  static const AugOperator kOperators[] = {
      {'+', "add_", "__iadd__"},
      {'-', "sub_", "__isub__"},
      {'*', "mul_", "__imul__"},
      {'/', "div_", "__itruediv__"},
      {'%', "fmod_", "__imod__"},
      {'@', nullptr, "__imatmul__"},
      {'&', "__iand__", "__iand__"},
      {'|', "__ior__", "__ior__"},
      {'^', "__ixor__", "__ixor__"},
      {TK_POW, "pow_", "__ipow__"},
      {TK_FLOOR_DIV, "floor_divide_", "__ifloordiv__"},
      {TK_LSHIFT, "__ilshift__", "__ilshift__"},
      {TK_RSHIFT, "__irshift__", "__irshift__"},
  };
  for (const AugOperator& candidate : kOperators) {
    if (candidate.op == stmt.op()) return candidate;
  }
  throwCompileError(stmt.range(), "augmented assignment with '{}' is not supported",
                    kindToString(stmt.op()));
}

}  // namespace

// Tensors and lists change in place; everything else gets a new value.
Value* Emitter::emitAugOperator(const AugAssign& stmt, Value* lhs, Value* rhs) {
  const SourceRange& range = stmt.range();
  const AugOperator& op = augOperator(stmt);
  TypeKind kind = lhs->type()->kind();
  if (kind == TypeKind::Class) {
    const ClassType* type = lhs->type()->as<ClassType>();
    if (type->findMethod(op.method)) {
      return simple(lhs)
          ->attr(range, fn_, op.method)
          ->call(range, fn_, {NamedValue(stmt.value().range(), rhs)}, {}, 1)
          ->asValue(range, fn_);
    }
  } else if (op.inplace && (kind == TypeKind::Tensor ||
                            (kind == TypeKind::List && (op.op == '+' || op.op == '*')))) {
    return builtin(range, Symbol::aten(op.inplace), {lhs, rhs});
  }
  if (op.op == '%' && lhs->type()->isSubtypeOf(*types::Number())) {
    // PyTorch computes the augmented form by fmod, and so gives a float with the dividend's sign.
    return builtin(range, Symbol::aten("fmod"), {lhs, rhs});
  }
  return emitBinary(range, op.op, NamedValue(stmt.target().range(), lhs),
                    NamedValue(stmt.value().range(), rhs));
}

void Emitter::emitAugAssignment(const AugAssign& stmt) {
  Expr target = stmt.target();
  const SourceRange& range = stmt.range();
  switch (target.kind()) {
    case TK_VAR: {
      const std::string& name = Var(target.tree()).name().name();
      Value* lhs = env_->getValue(target.range(), name);
      TypePtr hint = lhs->type()->kind() == TypeKind::List ? lhs->type() : nullptr;
      Value* rhs = emitExpr(stmt.value(), hint);
      env_->set(range, name, emitAugOperator(stmt, lhs, rhs));
      return;
    }
    case '.': {
      Select select(target.tree());
      SugaredValuePtr object = emitSugared(select.value());
      const std::string& field = select.selector().name();
      Value* lhs = object->attr(target.range(), fn_, field)->asValue(target.range(), fn_);
      TypePtr hint = lhs->type()->kind() == TypeKind::List ? lhs->type() : nullptr;
      Value* result = emitAugOperator(stmt, lhs, emitExpr(stmt.value(), hint));
      object->setAttr(range, fn_, field, result);
      return;
    }
    case TK_SUBSCRIPT:
      return emitAugSubscript(stmt, Subscript(target.tree()));
    default:
      throwCompileError(range,
                        "the left-hand side of an augmented assignment must be a name, an "
                        "attribute or an element");
  }
}

void Emitter::emitAugSubscript(const AugAssign& stmt, const Subscript& target) {
  const SourceRange& range = stmt.range();
  Value* object = emitExpr(target.value());
  std::vector<Index> subscripts = emitIndices(target);
  if (object->type()->kind() == TypeKind::Tensor) {
    TensorIndexing at = emitTensorIndexing(range, object, std::move(subscripts));
    Value* rhs = emitExpr(stmt.value());
    if (at.indices.empty()) {
      Value* result = emitAugOperator(stmt, at.sliced, rhs);
      // An operator without an in-place form leaves its result to be copied back.
      if (!augOperator(stmt).inplace) builtin(range, aten::copy_, {at.sliced, result});
      return;
    }
    Value* indices =
        graph_.insertNode(graph_.createList(types::Optional(types::Tensor()), at.indices))
            ->output();
    Value* indexed = builtin(range, aten::index, {at.sliced, indices});
    Value* result = emitAugOperator(stmt, indexed, rhs);
    builtin(range, aten::index_put_, {at.sliced, indices, result});
    return;
  }
  if (subscripts.size() != 1 || !subscripts[0].value) {
    throwCompileError(range,
                      "augmented assignment to a slice of a value of type {} is not supported",
                      object->type()->annotation());
  }
  Value* index = subscripts[0].value;
  NamedValue at(target.range(), index);
  if (object->type()->kind() == TypeKind::Class) {
    SugaredValuePtr sugared = simple(object);
    Value* old = sugared->attr(range, fn_, "__getitem__")
                     ->call(range, fn_, {at}, {}, 1)
                     ->asValue(range, fn_);
    Value* result = emitAugOperator(stmt, old, emitExpr(stmt.value()));
    sugared->attr(range, fn_, "__setitem__")
        ->call(range, fn_, {at, NamedValue(range, result)}, {}, 0);
    return;
  }
  Value* old = builtin(range, aten::__getitem__, {object, index});
  Value* result = emitAugOperator(stmt, old, emitExpr(stmt.value()));
  builtin(range, aten::_set_item, {object, index, result});
}

}  // namespace wick
