// Comparisons of containers by value, where there is no operator for their types: tuples, dicts,
// lists of lists. The types must agree, so that a comparison that can never hold is still refused.
#include "frontend/ir_emitter.h"

namespace wick {

namespace {

bool isNumber(const TypePtr& type) {
  TypeKind kind = type->kind();
  return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool;
}

// Whether == of two values is that of IValue::equals: no object that has its own, no tensor.
bool comparesByValue(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::Complex:
    case TypeKind::String:
    case TypeKind::None:
    case TypeKind::Device:
    case TypeKind::Enum:
      return true;
    case TypeKind::List:
    case TypeKind::Tuple:
    case TypeKind::Dict:
    case TypeKind::Optional:
    case TypeKind::Union:
      for (const TypePtr& t : type->contained()) {
        if (!comparesByValue(t)) return false;
      }
      return true;
    default:
      return false;
  }
}

bool isOrdered(const TypePtr& type) {
  switch (type->kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::String:
      return true;
    case TypeKind::List:
    case TypeKind::Tuple:
      for (const TypePtr& t : type->contained()) {
        if (!isOrdered(t)) return false;
      }
      return true;
    default:
      return false;
  }
}

bool comparable(const TypePtr& a, const TypePtr& b) {
  if (isNumber(a) && isNumber(b)) return true;
  if (a->kind() == TypeKind::Tuple && b->kind() == TypeKind::Tuple) {
    // Tuples of different length are unequal; what they share must be comparable.
    const auto& x = a->contained();
    const auto& y = b->contained();
    for (size_t i = 0; i < std::min(x.size(), y.size()); ++i) {
      if (!comparable(x[i], y[i])) return false;
    }
    return true;
  }
  return a->isSubtypeOf(*b) || b->isSubtypeOf(*a);
}

// Lists that have operators of their own for == and in.
bool hasElementOperators(const TypePtr& element) {
  return isNumber(element) || element->kind() == TypeKind::String ||
         element->kind() == TypeKind::Tensor;
}

}  // namespace

// Null where the operators of the types decide.
Value* Emitter::emitValueComparison(const SourceRange& range, int op, Value* lhs, Value* rhs) {
  const TypePtr& a = lhs->type();
  const TypePtr& b = rhs->type();
  auto call = [&](const char* name, Value* x, Value* y) {
    return builtin(range, Symbol::prim(name), {x, y});
  };
  auto negated = [&](Value* v) { return builtin(range, aten::__not__, {v}); };
  if (op == TK_IN || op == TK_NOTIN) {
    const auto* list = b->as<ListType>();
    if (!list || !comparesByValue(a) || !comparesByValue(b)) return nullptr;
    if (sameType(a, list->element()) && hasElementOperators(a)) return nullptr;
    if (!comparable(a, list->element())) return nullptr;
    Value* in = call("contains", rhs, lhs);
    return op == TK_IN ? in : negated(in);
  }
  // A bool compares with numbers as 0 or 1.
  bool mixed_bool = isNumber(a) && isNumber(b) && a->kind() != b->kind() &&
                    (a->kind() == TypeKind::Bool || b->kind() == TypeKind::Bool);
  bool containers =
      a->kind() == b->kind() &&
      (a->kind() == TypeKind::List || a->kind() == TypeKind::Tuple || a->kind() == TypeKind::Dict);
  if ((!mixed_bool && !containers) || !comparable(a, b)) return nullptr;
  if (op == TK_EQ || op == TK_NE) {
    if (const auto* list = a->as<ListType>(); list && hasElementOperators(list->element())) {
      return nullptr;
    }
    if (!comparesByValue(a) || !comparesByValue(b)) return nullptr;
    Value* equal = call("equal", lhs, rhs);
    return op == TK_EQ ? equal : negated(equal);
  }
  if (!isOrdered(a) || !isOrdered(b)) return nullptr;
  switch (op) {
    case '<':
      return call("less", lhs, rhs);
    case '>':
      return call("less", rhs, lhs);
    case TK_LE:
      return negated(call("less", rhs, lhs));
    case TK_GE:
      return negated(call("less", lhs, rhs));
    default:
      return nullptr;
  }
}

}  // namespace wick
