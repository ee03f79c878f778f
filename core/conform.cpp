#include "core/conform.h"

#include <cmath>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "core/error.h"
#include "core/keyed_hash.h"

namespace wick {
namespace {

// Deeper values come from nowhere but a program that means harm.
constexpr int kMaxDepth = 2000;

// Containers that a walk meets before it begins to remember those that fit: most values are small.
constexpr size_t kUnremembered = 256;

// What fitted to which type: values share their parts, as many times as they like.
class Fitted {
 public:
  // What became of `value`, or null.
  const IValue* find(const IValue& value, const Type* type, bool convert) const {
    auto it = known_.find({value.rawObject(), type, convert});
    return it == known_.end() ? nullptr : &it->second.became;
  }
  // Keeps the value, whose address is part of the key.
  void add(const IValue& value, const Type* type, bool convert, const IValue& became) {
    if (++met_ <= kUnremembered) return;
    known_.try_emplace({value.rawObject(), type, convert}, Entry{value, became});
  }

 private:
  using Key = std::tuple<const RefCounted*, const Type*, bool>;
  struct KeyHash {
    size_t operator()(const Key& k) const {
      return keyedHash(reinterpret_cast<uintptr_t>(std::get<0>(k)),
                       reinterpret_cast<uintptr_t>(std::get<1>(k)) | std::get<2>(k));
    }
  };
  struct Entry {
    IValue value;
    IValue became;
  };
  std::unordered_map<Key, Entry, KeyHash> known_;
  size_t met_ = 0;
};

class Conformer {
 public:
  Conformer(Conversions conversions, Fitted& fitted)
      : convert_(conversions == Conversions::Python), fitted_(fitted) {}

  // Sets the reason and the path when the result is false.
  bool conform(IValue& value, const TypePtr& type) {
    WICK_CHECK(depth_ < kMaxDepth, "values nest deeper than {}", kMaxDepth);
    ++depth_;
    const bool fits = dispatch(value, type);
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
        return true;
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
        return value.isList();
      case TypeKind::AnyTuple:
        return value.isTuple();
      case TypeKind::AnyClass:
        return value.isObject();
      case TypeKind::AnyEnum:
        return value.isEnum();
      case TypeKind::Future:
        return value.isFuture();
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
    if (tensor.numel() != 1 || !tensor.device().isCpu()) return;
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

  // The first member that fits without conversion, else with.
  bool conformUnion(IValue& value, const Type& type) {
    for (bool convert : {false, true}) {
      if (convert && !convert_) break;
      for (const TypePtr& member : type.contained()) {
        Conformer attempt(convert ? Conversions::Python : Conversions::None, fitted_);
        attempt.depth_ = depth_;
        if (attempt.conform(value, member)) return true;
      }
    }
    return false;
  }

  bool conformContainer(IValue& value, const TypePtr& type) {
    if (const IValue* known = fitted_.find(value, type.get(), convert_);
        known && stillFits(*known, *type)) {
      value = *known;
      return true;
    }
    const IValue before = value;
    const bool fits = type->kind() == TypeKind::List
                          ? conformList(value, type->as<ListType>()->element())
                      : type->kind() == TypeKind::Dict
                          ? conformDict(value, *type->as<DictType>())
                          : conformTuple(value, std::static_pointer_cast<const TupleType>(type));
    if (fits) fitted_.add(before, type.get(), convert_, value);
    return fits;
  }

  // A container that stands in two places with two types may have been changed for the other since.
  static bool stillFits(const IValue& value, const Type& type) {
    const std::vector<TypePtr>& wanted = type.contained();
    if (value.isList()) return value.toList().element_type == wanted[0];
    if (value.isDict()) {
      return value.toDict().key_type == wanted[0] && value.toDict().value_type == wanted[1];
    }
    return true;
  }

  bool conformPart(IValue& part, const TypePtr& type, size_t index) {
    if (conform(part, type)) return true;
    path_ = fmt::format("[{}]{}", index, path_);
    return false;
  }

  bool conformList(IValue& value, const TypePtr& element) {
    if (convert_ && value.isTuple()) value = makeList(element, value.elements());
    if (!value.isList()) return false;
    ListObject& list = value.toList();
    for (size_t i = 0; i < list.elements.size(); ++i) {
      if (!conformPart(list.elements[i], element, i)) return false;
    }
    list.element_type = element;
    return true;
  }

  bool conformDict(IValue& value, const DictType& type) {
    if (!value.isDict()) return false;
    DictObject& dict = value.toDict();
    size_t index = 0;
    bool new_keys = false;
    auto items = dict.items();
    for (auto& [key, element] : items) {
      IValue old = key;
      if (!conformPart(key, type.key(), index) || !conformPart(element, type.value(), index)) {
        return false;
      }
      new_keys |= old.tag() != key.tag();
      ++index;
    }
    if (new_keys) dict.clear();
    for (auto& [key, element] : items) dict.set(std::move(key), std::move(element));
    dict.key_type = type.key();
    dict.value_type = type.value();
    return true;
  }

  bool conformTuple(IValue& value, const std::shared_ptr<const TupleType>& type) {
    if (!value.isTuple() && !(convert_ && value.isList())) return false;
    const std::vector<TypePtr>& types = type->contained();
    std::vector<IValue> elements = value.elements();
    if (elements.size() != types.size()) {
      why_ = fmt::format("expected {}, got a tuple of {}", type->annotation(), elements.size());
      return false;
    }
    for (size_t i = 0; i < elements.size(); ++i) {
      if (!conformPart(elements[i], types[i], i)) return false;
    }
    value = makeTuple(std::move(elements), type->isNamed() ? type : nullptr);
    return true;
  }

  const bool convert_;
  Fitted& fitted_;
  int depth_ = 0;
  std::string why_;
  std::string path_;
};

}  // namespace

IValue conform(IValue value, const TypePtr& type, Conversions conversions) {
  Fitted fitted;
  Conformer conformer(conversions, fitted);
  if (!conformer.conform(value, type)) throw RuntimeError(conformer.message());
  return value;
}

}  // namespace wick
