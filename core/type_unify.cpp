// Relations between types: subtyping, unification, and the matching of type variables.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/ivalue.h"
#include "core/type.h"

namespace wick {

namespace {

// The facts that both have.
TypePtr mergeTensors(const TensorType& a, const TensorType& b) {
  const TensorType::Facts& x = a.facts();
  const TensorType::Facts& y = b.facts();
  TensorType::Facts out;
  if (x.dtype == y.dtype) out.dtype = x.dtype;
  if (x.device == y.device) out.device = x.device;
  if (x.requires_grad == y.requires_grad) out.requires_grad = x.requires_grad;
  out.undefined = x.undefined && y.undefined;
  if (x.dim && x.dim == y.dim) {
    out.dim = x.dim;
    if (x.sizes && y.sizes) {
      std::vector<std::optional<int64_t>> sizes(*x.dim);
      for (size_t i = 0; i < sizes.size(); ++i) {
        if ((*x.sizes)[i] == (*y.sizes)[i]) sizes[i] = (*x.sizes)[i];
      }
      out.sizes = std::move(sizes);
    }
    if (x.strides == y.strides) out.strides = x.strides;
  }
  return TensorType::create(std::move(out));
}

void explain(std::string* why, const Type& a, const Type& b) {
  if (why && why->empty())
    *why = fmt::format("'{}' is not a subtype of '{}'", a.annotation(), b.annotation());
}

TypePtr rebuilt(const TypePtr& type, std::vector<TypePtr> inner) {
  switch (type->kind()) {
    case TypeKind::Optional:
      return types::Optional(std::move(inner[0]));
    case TypeKind::List:
      return types::List(std::move(inner[0]));
    case TypeKind::Future:
      return types::Future(std::move(inner[0]));
    case TypeKind::Await:
      return std::make_shared<const AwaitType>(std::move(inner[0]));
    case TypeKind::RRef:
      return std::make_shared<const RRefType>(std::move(inner[0]));
    case TypeKind::Dict:
      return types::Dict(std::move(inner[0]), std::move(inner[1]));
    case TypeKind::Union:
      return unionOf(inner);
    case TypeKind::Tuple: {
      const auto* tuple = type->as<TupleType>();
      if (!tuple->isNamed()) return types::Tuple(std::move(inner));
      return std::make_shared<const TupleType>(tuple->name(), tuple->fields(), std::move(inner),
                                               tuple->defaults());
    }
    default:
      throw InternalError(__FILE__, __LINE__, "type without arguments: " + type->str());
  }
}

std::optional<TypePtr> fail(std::string* why, std::string reason) {
  if (why) *why = std::move(reason);
  return std::nullopt;
}

std::optional<TypePtr> unifyAll(const std::vector<TypePtr>& types) {
  if (types.empty()) return std::nullopt;
  TypePtr result = types[0];
  for (size_t i = 1; i < types.size(); ++i) {
    auto next = unifyTypes(result, types[i]);
    if (!next) return std::nullopt;
    result = *next;
  }
  return result;
}

std::optional<TypePtr> unify(const TypePtr& a, const TypePtr& b) {
  if (a->isSubtypeOf(*b)) return b;
  if (b->isSubtypeOf(*a)) return a;
  if (a->kind() == TypeKind::Tensor && b->kind() == TypeKind::Tensor) {
    return mergeTensors(*a->as<TensorType>(), *b->as<TensorType>());
  }
  if (a->kind() == TypeKind::None) return types::Optional(b);
  if (b->kind() == TypeKind::None) return types::Optional(a);
  if (const auto* optional = a->as<OptionalType>()) {
    if (auto element = unifyTypes(optional->element(), b)) return types::Optional(*element);
    return std::nullopt;
  }
  if (const auto* optional = b->as<OptionalType>()) {
    if (auto element = unifyTypes(a, optional->element())) return types::Optional(*element);
    return std::nullopt;
  }
  if (a->kind() == TypeKind::Tuple && b->kind() == TypeKind::Tuple) {
    const auto& x = a->contained();
    const auto& y = b->contained();
    if (x.size() != y.size()) return std::nullopt;
    std::vector<TypePtr> elements;
    for (size_t i = 0; i < x.size(); ++i) {
      auto element = unifyTypes(x[i], y[i]);
      if (!element) return std::nullopt;
      elements.push_back(*element);
    }
    return types::Tuple(std::move(elements));
  }
  if (a->kind() == TypeKind::Future && b->kind() == TypeKind::Future) {
    if (auto element = unifyTypes(a->contained()[0], b->contained()[0])) {
      return types::Future(*element);
    }
    return std::nullopt;
  }
  // Containers that can be written to are invariant, so only the refinement of tensors may differ.
  TypePtr x = unshapedType(a);
  TypePtr y = unshapedType(b);
  if (x->isSubtypeOf(*y)) return y;
  if (y->isSubtypeOf(*x)) return x;
  return std::nullopt;
}

}  // namespace

bool Type::isSubtypeOf(const Type& other, std::string* why) const {
  if (other.kind_ == TypeKind::Any || *this == other) return true;
  switch (other.kind_) {
    case TypeKind::Number:
      if (isNumeric()) return true;
      break;
    case TypeKind::Optional:
      if (kind_ == TypeKind::None) return true;
      if (isSubtypeOf(*other.contained()[0])) return true;
      break;
    case TypeKind::Union:
      for (const TypePtr& member : other.contained()) {
        if (isSubtypeOf(*member)) return true;
      }
      // number stands for the three together.
      if (kind_ == TypeKind::Number) {
        if (types::Int()->isSubtypeOf(other) && types::Float()->isSubtypeOf(other) &&
            types::Complex()->isSubtypeOf(other)) {
          return true;
        }
      }
      break;
    case TypeKind::AnyTuple:
      if (kind_ == TypeKind::Tuple) return true;
      break;
    case TypeKind::AnyEnum:
      if (kind_ == TypeKind::Enum) return true;
      break;
    default:
      break;
  }
  explain(why, *this, other);
  return false;
}

bool TensorType::isSubtypeOf(const Type& other, std::string* why) const {
  const auto* wanted = other.as<TensorType>();
  if (!wanted) return Type::isSubtypeOf(other, why);
  const Facts& have = facts_;
  const Facts& want = wanted->facts_;
  bool fits = (!want.dtype || have.dtype == want.dtype) &&
              (!want.device || have.device == want.device) && (!want.dim || have.dim == want.dim) &&
              (!want.requires_grad || have.requires_grad == want.requires_grad) &&
              (!want.strides || have.strides == want.strides) &&
              (!want.undefined || have.undefined);
  if (fits && want.sizes) {
    for (size_t i = 0; i < want.sizes->size() && fits; ++i) {
      fits = !(*want.sizes)[i] || (have.sizes && (*have.sizes)[i] == (*want.sizes)[i]);
    }
  }
  if (!fits) explain(why, *this, other);
  return fits;
}

bool ListType::isSubtypeOf(const Type& other, std::string* why) const {
  if (other.kind() == TypeKind::AnyList) return true;
  if (!Type::isSubtypeOf(other, why)) {
    // The refinement of the tensors in a list is not part of what the list may hold.
    const auto* wanted = other.as<ListType>();
    if (wanted && element()->kind() == TypeKind::Tensor && wanted->element() == types::Tensor()) {
      if (why) why->clear();
      return true;
    }
    if (why && wanted && element()->isSubtypeOf(*wanted->element())) {
      *why += fmt::format(
          ": a list can be written to, so its element type must be exactly '{}', not '{}'",
          wanted->element()->annotation(), element()->annotation());
    }
    return false;
  }
  return true;
}

bool OptionalType::isSubtypeOf(const Type& other, std::string* why) const {
  if (Type::isSubtypeOf(other)) return true;
  if (const auto* wanted = other.as<OptionalType>()) {
    return element()->isSubtypeOf(*wanted->element(), why);
  }
  if (other.kind() == TypeKind::Union && other.acceptsNone()) {
    return element()->isSubtypeOf(other, why);
  }
  explain(why, *this, other);
  return false;
}

bool FutureType::isSubtypeOf(const Type& other, std::string* why) const {
  if (Type::isSubtypeOf(other)) return true;
  if (const auto* wanted = other.as<FutureType>()) {
    return element()->isSubtypeOf(*wanted->element(), why);
  }
  explain(why, *this, other);
  return false;
}

bool UnionType::isSubtypeOf(const Type& other, std::string* why) const {
  if (other.kind() == TypeKind::Any || *this == other) return true;
  return std::all_of(contained_.begin(), contained_.end(),
                     [&](const TypePtr& t) { return t->isSubtypeOf(other, why); });
}

bool TupleType::isSubtypeOf(const Type& other, std::string* why) const {
  if (Type::isSubtypeOf(other)) return true;
  const auto* wanted = other.as<TupleType>();
  bool fits = wanted && contained_.size() == wanted->contained_.size();
  if (fits && wanted->isNamed()) {
    // A named tuple needs the same fields; an unnamed one never becomes named by itself.
    fits = isNamed() && name_ == wanted->name_ && fields_ == wanted->fields_;
  }
  for (size_t i = 0; fits && i < contained_.size(); ++i) {
    fits = contained_[i]->isSubtypeOf(*wanted->contained_[i], why);
  }
  if (!fits) explain(why, *this, other);
  return fits;
}

bool EnumType::isSubtypeOf(const Type& other, std::string* why) const {
  return Type::isSubtypeOf(other, why);
}

TypePtr unshapedType(const TypePtr& type) {
  if (type->kind() == TypeKind::Tensor) return types::Tensor();
  if (!type->hasRefinement()) return type;
  std::vector<TypePtr> inner;
  for (const TypePtr& t : type->contained()) inner.push_back(unshapedType(t));
  return rebuilt(type, std::move(inner));
}

std::optional<TypePtr> unifyTypes(const TypePtr& a, const TypePtr& b, bool default_to_union) {
  auto result = unify(a, b);
  if (!result && default_to_union) return unionOf({a, b});
  return result;
}

std::optional<TypePtr> matchTypeVariables(const TypePtr& formal, const TypePtr& actual,
                                          TypeBindings& bindings, std::string* why) {
  if (!formal->hasFreeVariables()) return formal;
  auto mismatch = [&] {
    return fail(
        why, fmt::format("cannot match '{}' to '{}'", formal->annotation(), actual->annotation()));
  };
  switch (formal->kind()) {
    case TypeKind::Var: {
      const std::string& name = formal->as<VarType>()->name();
      auto [it, fresh] = bindings.try_emplace(name, actual);
      if (fresh || unifyTypes(it->second, actual)) return it->second;
      return fail(why, fmt::format("type variable '{}' previously matched to type '{}' is matched "
                                   "to type '{}'",
                                   name, it->second->annotation(), actual->annotation()));
    }
    case TypeKind::List: {
      const TypePtr& element = formal->as<ListType>()->element();
      if (const auto* list = actual->as<ListType>()) {
        auto inner = matchTypeVariables(element, list->element(), bindings, why);
        if (!inner) return std::nullopt;
        return types::List(*inner);
      }
      if (const auto* tuple = actual->as<TupleType>()) {
        auto unified = unifyAll(tuple->contained());
        if (!unified) return mismatch();
        auto inner = matchTypeVariables(element, *unified, bindings, why);
        if (!inner) return std::nullopt;
        return types::List(*inner);
      }
      return mismatch();
    }
    case TypeKind::Optional: {
      const TypePtr& element = formal->as<OptionalType>()->element();
      if (const auto* optional = actual->as<OptionalType>()) {
        auto inner = matchTypeVariables(element, optional->element(), bindings, why);
        if (!inner) return std::nullopt;
        return types::Optional(*inner);
      }
      if (actual->kind() == TypeKind::None) {
        if (auto bound = substituteTypeVariables(element, bindings)) {
          return types::Optional(*bound);
        }
        return fail(why, fmt::format("cannot match '{}' to None: None does not determine the type",
                                     formal->annotation()));
      }
      // A value fits where it may also be absent.
      return matchTypeVariables(element, actual, bindings, why);
    }
    case TypeKind::Tuple:
    case TypeKind::Dict:
    case TypeKind::Future:
    case TypeKind::Await:
    case TypeKind::RRef: {
      const auto& want = formal->contained();
      const auto& have = actual->contained();
      if (actual->kind() != formal->kind() || want.size() != have.size()) return mismatch();
      std::vector<TypePtr> inner;
      for (size_t i = 0; i < want.size(); ++i) {
        auto matched = matchTypeVariables(want[i], have[i], bindings, why);
        if (!matched) return std::nullopt;
        inner.push_back(std::move(*matched));
      }
      return rebuilt(formal, std::move(inner));
    }
    case TypeKind::Union:
      for (const TypePtr& member : formal->contained()) {
        TypeBindings attempt = bindings;
        auto matched = matchTypeVariables(member, actual, attempt, why);
        if (matched && actual->isSubtypeOf(**matched)) {
          bindings = std::move(attempt);
          return substituteTypeVariables(formal, bindings);
        }
      }
      return mismatch();
    default:
      return mismatch();
  }
}

std::optional<TypePtr> substituteTypeVariables(const TypePtr& type, const TypeBindings& bindings) {
  if (const auto* var = type->as<VarType>()) {
    auto it = bindings.find(var->name());
    if (it == bindings.end()) return std::nullopt;
    return it->second;
  }
  if (!type->hasFreeVariables()) return type;
  std::vector<TypePtr> inner;
  for (const TypePtr& t : type->contained()) {
    auto replaced = substituteTypeVariables(t, bindings);
    if (!replaced) return std::nullopt;
    inner.push_back(std::move(*replaced));
  }
  return rebuilt(type, std::move(inner));
}

}  // namespace wick
