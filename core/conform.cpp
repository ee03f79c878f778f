#include "core/conform.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <utility>

#include "core/budget.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/stack.h"

namespace wick {
namespace {

// Deeper values come from nowhere but a program that means harm.
constexpr int kMaxDepth = 1000;
// From this depth on a stack of its own, so that a small stack of the calling thread is enough.
constexpr int kShallow = 50;
constexpr size_t kStack = size_t{kMaxDepth} * 2048;
// Values that were met this often may be many times the same ones: from then on they are
// remembered.
constexpr size_t kFreeVisits = 256;

// The same object, or the same number.
bool identical(const IValue& a, const IValue& b) {
  return a.tag() == b.tag() && a.rawInt() == b.rawInt();
}

// Of element types that a tag tells; None for others.
IValue::Tag tagOf(const Type& type) {
  switch (type.kind()) {
    case TypeKind::Int:
      return IValue::Tag::Int;
    case TypeKind::Float:
      return IValue::Tag::Double;
    case TypeKind::Bool:
      return IValue::Tag::Bool;
    case TypeKind::String:
      return IValue::Tag::String;
    case TypeKind::Tensor:
      return IValue::Tag::Tensor;
    default:
      return IValue::Tag::None;
  }
}

TypePtr ownType(const IValue& container) {
  if (container.isList()) return types::List(container.toList().element_type);
  return types::Dict(container.toDict().key_type, container.toDict().value_type);
}

}  // namespace

class Conformer {
 public:
  explicit Conformer(Conversions conversions, TypeClaims* claims = nullptr)
      : convert_(conversions == Conversions::Python), claims_(claims) {
    if (claims) attempts_[0] = &claims->attempts_;
  }

  // Sets the reason and the path when the result is false.
  bool conform(IValue& value, const TypePtr& type) {
    WICK_CHECK(depth_ < kMaxDepth, "values nest deeper than {}", kMaxDepth);
    pace_.step();
    bool fits = false;
    ++depth_;
    if (depth_ == kShallow) {
      withStack(kStack, [&] { fits = dispatch(value, type); });
    } else {
      fits = dispatch(value, type);
    }
    --depth_;
    if (!fits && why_.empty()) {
      why_ = fmt::format("expected {}, got {}", type->annotation(), describe(value));
    }
    return fits;
  }

  std::string message() const { return path_.empty() ? why_ : path_ + ": " + why_; }

 private:
  static std::string describe(const IValue& value) {
    if (value.isObject()) return value.toObject().type()->name();
    return std::string(value.tagName());
  }

  bool dispatch(IValue& value, const TypePtr& type) {
    switch (type->kind()) {
      case TypeKind::Any:
        return conformToItself(value, type);
      case TypeKind::Int:
        toNumber(value, /*cut=*/true);
        if (convert_ && value.isBool()) value = static_cast<int64_t>(value.toBool());
        return value.isInt();
      case TypeKind::Bool:
        toNumber(value);
        if (convert_ && value.isInt()) value = value.toInt() != 0;
        if (convert_ && value.isDouble()) value = value.toDouble() != 0;
        return value.isBool();
      case TypeKind::String:
        return value.isString();
      case TypeKind::None:
        return value.isNone();
      case TypeKind::Number:
        return value.isNumber();
      case TypeKind::Tensor:
        return value.isTensor();
      case TypeKind::Generator:
        return value.isGenerator();
      case TypeKind::Float:
        toNumber(value);
        if (convert_ && value.isBool()) value = value.toBool() ? 1.0 : 0.0;
        if (convert_ && value.isInt()) value = static_cast<double>(value.toInt());
        return value.isDouble();
      case TypeKind::Complex:
        toNumber(value);
        if (convert_ && value.isBool()) value = value.toBool() ? 1.0 : 0.0;
        if (convert_ && value.isNumber()) value = value.numberToComplex();
        return value.isComplex();
      case TypeKind::Device:
        if (convert_ && value.isString()) value = Device::parse(value.toString());
        return value.isDevice();
      case TypeKind::AnyList:
        return value.isList() && conformToItself(value, type);
      case TypeKind::AnyTuple:
        return value.isTuple() && conformToItself(value, type);
      case TypeKind::AnyClass:
        return value.isObject();
      case TypeKind::AnyEnum:
        return value.isEnum();
      case TypeKind::Future:
        return value.isFuture() && value.toFuture().element_type->isSubtypeOf(
                                       *type->as<FutureType>()->element(), &why_);
      case TypeKind::Optional:
        return value.isNone() || conform(value, type->as<OptionalType>()->element());
      case TypeKind::Union:
        return conformUnion(value, *type);
      case TypeKind::List:
      case TypeKind::Dict:
      case TypeKind::Tuple:
        return conformContainer(value, type);
      case TypeKind::Class:
      case TypeKind::Interface:
        return value.isObject() && value.toObject().type()->isSubtypeOf(*type, &why_);
      case TypeKind::Enum:
        return value.isEnum() && *value.toEnum().type == *type;
      case TypeKind::Storage:
      case TypeKind::Stream:
      case TypeKind::Capsule:
        return value.isCapsule();
      case TypeKind::Await:
      case TypeKind::RRef:
      case TypeKind::Function:
      case TypeKind::Var:
        return false;
    }
    return false;
  }

  // Python takes a tensor of one element where a number is expected; its fraction is cut off for an
  // int.
  void toNumber(IValue& value, bool cut = false) {
    if (!convert_ || !value.isTensor()) return;
    const Tensor tensor = value.toTensor();
    if (tensor.numel() != 1) return;
    const Device device = tensor.device();
    if (!device.isCpu() && !deviceBackend(device.type).holdsData()) return;
    if (isComplex(tensor.dtype())) {
      value = tensor.item<std::complex<double>>();
    } else if (isFloating(tensor.dtype())) {
      const double number = tensor.item<double>();
      const bool fits = std::abs(number) < 9223372036854775808.0;  // false for NaN
      if (!cut) {
        value = number;
      } else if (fits) {
        value = static_cast<int64_t>(number);
      }
    } else if (tensor.dtype() == DType::Bool) {
      value = tensor.item<bool>();
    } else {
      value = tensor.item<int64_t>();
    }
  }

  // What holds no declared type holds at least what its containers claim.
  bool conformToItself(IValue& value, const TypePtr& declared) {
    if (!value.isList() && !value.isDict() && !value.isTuple()) return true;
    if (!claims_ || value.isTuple()) return conformContainer(value, declared);
    return claims_->containers_.contains(value.rawObject()) || claim(value, ownType(value));
  }

  // The member that a container claims to be, else the first that fits without conversion, else
  // with.
  bool conformUnion(IValue& value, const Type& type) {
    const auto& members = type.contained();
    if (value.isList() || value.isDict()) {
      const TypePtr own = ownType(value);
      const auto same = std::ranges::find_if(
          members, [&](const TypePtr& member) { return sameType(member, own); });
      if (claims_ && claims_->containers_.contains(value.rawObject())) {
        return same != members.end() && conform(value, *same);
      }
      if (same != members.end() && attempt(value, *same, false)) return take(value, *same);
    }
    for (bool convert : {false, true}) {
      if (convert && !convert_) break;
      for (const TypePtr& member : members) {
        if (attempt(value, member, convert)) return take(value, member);
      }
    }
    return false;
  }

  // On the side: an attempt that fails must not leave anything changed.
  bool attempt(IValue& value, const TypePtr& member, bool convert) {
    Conformer other(convert ? Conversions::Python : Conversions::None);
    other.depth_ = depth_;
    other.visits_ = kFreeVisits;
    other.attempts_[0] = attempts_[0] ? attempts_[0] : &own_attempts_[0];
    other.attempts_[1] = attempts_[1] ? attempts_[1] : &own_attempts_[1];
    IValue result = value;
    if (!other.conform(result, member)) return false;
    if (!claims_) value = std::move(result);
    return true;
  }
  bool take(IValue& value, const TypePtr& member) { return !claims_ || conform(value, member); }

  // Lists, dicts and tuples, each once for each type.
  bool conformContainer(IValue& value, const TypePtr& type) {
    if (!value.isList() && !value.isDict() && !value.isTuple()) return false;
    if (claims_ && !value.isTuple()) return claim(value, type);
    if (!claims_ && visits_ < kFreeVisits) {
      ++visits_;
      return conformParts(value, type);
    }
    TypeClaims::Memory& memory = claims_ ? claims_->tuples_ : memoryOfAttempts();
    const TypeClaims::Key key{value.rawObject(), type.get()};
    if (auto it = memory.find(key); it != memory.end()) {
      if (it->second.fits) value = it->second.result;
      return it->second.fits;
    }
    IValue result = value;
    const bool fits = conformParts(result, type);
    memory.emplace(key, TypeClaims::Known{value, type, result, fits});
    if (fits) value = std::move(result);
    return fits;
  }

  TypeClaims::Memory& memoryOfAttempts() {
    if (!attempts_[convert_]) attempts_[convert_] = &own_attempts_[convert_];
    return *attempts_[convert_];
  }

  bool claim(IValue& value, const TypePtr& type) {
    auto [it, fresh] =
        claims_->containers_.emplace(value.rawObject(), TypeClaims::Claim{value, type});
    if (fresh) {
      if (conformParts(value, type)) return true;
      claims_->containers_.erase(value.rawObject());
      return false;
    }
    if (it->second.type == type || sameType(it->second.type, type)) return true;
    why_ = fmt::format("the same {} is declared as {} and as {}", value.tagName(),
                       it->second.type->annotation(), type->annotation());
    return false;
  }

  bool conformParts(IValue& value, const TypePtr& type) {
    switch (type->kind()) {
      case TypeKind::List:
        return conformList(value, type->as<ListType>()->element());
      case TypeKind::Dict:
        return conformDict(value, *type->as<DictType>());
      case TypeKind::Tuple:
        return conformTuple(value, std::static_pointer_cast<const TupleType>(type));
      default:  // nothing is declared of its parts
        if (value.isList()) return conformList(value, value.toList().element_type);
        if (value.isDict()) {
          return conformDict(value, DictType(value.toDict().key_type, value.toDict().value_type));
        }
        return conformPlainTuple(value);
    }
  }

  bool conformPart(IValue& part, const TypePtr& type, size_t index) {
    if (conform(part, type)) return true;
    path_ = fmt::format("[{}]{}", index, path_);
    return false;
  }

  // type_of(i) is the type of element i. Sets `changed` to the elements when any is another
  // than before.
  template <class Types>
  bool conformElements(const std::vector<IValue>& elements, const Types& type_of,
                       std::optional<std::vector<IValue>>& changed) {
    for (size_t i = 0; i < elements.size(); ++i) {
      IValue part = elements[i];
      if (!conformPart(part, type_of(i), i)) return false;
      if (identical(part, elements[i])) continue;
      if (!changed) changed = elements;
      (*changed)[i] = std::move(part);
    }
    return true;
  }

  bool conformList(IValue& value, TypePtr element) {
    if (convert_ && value.isTuple()) value = makeList(element, value.elements());
    if (!value.isList()) return false;
    ListObject& list = value.toList();
    std::optional<std::vector<IValue>> changed;
    const IValue::Tag tag = tagOf(*element);
    const bool simple =
        tag != IValue::Tag::None &&
        std::ranges::all_of(list.elements, [&](const IValue& v) { return v.tag() == tag; });
    if (!simple) {
      const auto type_of = [&](size_t) -> const TypePtr& { return element; };
      if (!conformElements(list.elements, type_of, changed)) return false;
    }
    if (claims_) {
      if (changed) list.elements = std::move(*changed);
      list.element_type = element;
    } else if (changed) {
      value = makeList(element, std::move(*changed));
    } else if (!sameType(list.element_type, element)) {
      value = makeList(element, list.elements);
    }
    return true;
  }

  bool conformDict(IValue& value, const DictType& type) {
    if (!value.isDict()) return false;
    DictObject& dict = value.toDict();
    bool new_keys = false;
    bool new_values = false;
    auto items = dict.items();
    for (size_t i = 0; i < items.size(); ++i) {
      auto& [key, element] = items[i];
      const auto before = items[i];
      if (!conformPart(key, type.key(), i) || !conformPart(element, type.value(), i)) return false;
      new_keys |= !identical(before.first, key);
      new_values |= !identical(before.second, element);
    }
    if (claims_) {
      if (new_keys) dict.clear();
      if (new_keys || new_values) {
        for (auto& [key, element] : items) dict.set(std::move(key), std::move(element));
      }
      dict.key_type = type.key();
      dict.value_type = type.value();
    } else if (new_keys || new_values || !sameType(dict.key_type, type.key()) ||
               !sameType(dict.value_type, type.value())) {
      auto copy = makeRef<DictObject>(type.key(), type.value());
      for (auto& [key, element] : items) copy->set(std::move(key), std::move(element));
      value = std::move(copy);
    }
    return true;
  }

  bool conformTuple(IValue& value, const std::shared_ptr<const TupleType>& type) {
    if (!value.isTuple() && !(convert_ && value.isList())) return false;
    const std::vector<TypePtr>& types = type->contained();
    const std::vector<IValue>& elements = value.elements();
    if (elements.size() != types.size()) {
      why_ = fmt::format("expected {}, got a tuple of {}", type->annotation(), elements.size());
      return false;
    }
    std::optional<std::vector<IValue>> changed;
    const auto type_of = [&](size_t i) -> const TypePtr& { return types[i]; };
    if (!conformElements(elements, type_of, changed)) return false;
    const std::shared_ptr<const TupleType> named = type->isNamed() ? type : nullptr;
    if (changed || !value.isTuple() || value.toTuple().named != named) {
      value = makeTuple(changed ? *changed : elements, named);
    }
    return true;
  }

  // A tuple about which nothing is declared, except by a NamedTuple.
  bool conformPlainTuple(IValue& value) {
    if (value.toTuple().named) return conformTuple(value, value.toTuple().named);
    std::optional<std::vector<IValue>> changed;
    const auto type_of = [&](size_t) -> const TypePtr& { return types::Any(); };
    if (!conformElements(value.elements(), type_of, changed)) return false;
    if (changed) value = makeTuple(std::move(*changed));
    return true;
  }

  const bool convert_;
  TypeClaims* const claims_;
  int depth_ = 0;
  size_t visits_ = 0;
  Pace pace_;
  // By whether they convert; shared by the attempts within attempts.
  TypeClaims::Memory* attempts_[2] = {};
  TypeClaims::Memory own_attempts_[2];
  std::string why_;
  std::string path_;
};

TypePtr elementTypeOf(const std::vector<IValue>& values, const TypePtr& of_none) {
  if (values.empty()) return of_none;
  TypePtr common = values[0].type();
  for (const IValue& v : values) {
    std::optional<TypePtr> unified = unifyTypes(common, v.type());
    if (!unified) return types::Any();
    common = std::move(*unified);
  }
  return common;
}

IValue conform(IValue value, const TypePtr& type, Conversions conversions) {
  if (value.tag() == tagOf(*type) && !value.isNone()) return value;
  Conformer conformer(conversions);
  if (!conformer.conform(value, type)) throw RuntimeError(conformer.message());
  return value;
}

IValue TypeClaims::conform(IValue value, const TypePtr& type) {
  Conformer conformer(Conversions::None, this);
  if (!conformer.conform(value, type)) throw RuntimeError(conformer.message());
  return value;
}

}  // namespace wick
