#include "serialization/python_constants.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/text_limit.h"

namespace wick {
namespace {

bool isAscii(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

bool containsUnprintable(const IValue& value) {
  if (value.isString()) return !isAscii(value.toString());
  if (value.isList() || value.isTuple()) {
    return std::any_of(value.elements().begin(), value.elements().end(), containsUnprintable);
  }
  if (value.isDict()) {
    for (const auto& [key, element] : value.toDict().items()) {
      if (containsUnprintable(key) || containsUnprintable(element)) return true;
    }
  }
  return false;
}

// Integral values as "1.", others with all digits that tell them apart.
std::string doubleText(double value) {
  constexpr double kShort = 1e10;
  if (std::isfinite(value) && std::abs(value) < kShort && value == std::trunc(value) &&
      (value == 0 || std::isnormal(value))) {
    return fmt::format("{}{}.", std::signbit(value) ? "-" : "",
                       static_cast<int64_t>(std::abs(value)));
  }
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{:.17g}", value);
  // A float must not read back as an int.
  if (text.find_first_of(".e") == std::string::npos) text += '.';
  return text;
}

std::string complexText(std::complex<double> value) {
  std::string im = doubleText(value.imag());
  if (im[0] != '-') im = "+" + im;
  return doubleText(value.real()) + im + "j";
}

class ConstantText {
 public:
  ConstantText(ConstantTable& table, const TypeNamer& name) : table_(table), name_(name) {}

  std::string print(const IValue& v) const {
    if (v.isTensor() || v.isObject() || containsUnprintable(v)) {
      return fmt::format("CONSTANTS.c{}", table_.add(v));
    }
    switch (v.tag()) {
      case IValue::Tag::None:
        return "None";
      case IValue::Tag::Bool:
        return v.toBool() ? "True" : "False";
      case IValue::Tag::Int:
        return std::to_string(v.toInt());
      case IValue::Tag::Double:
        return doubleText(v.toDouble());
      case IValue::Tag::Complex:
        return complexText(v.toComplex());
      case IValue::Tag::String:
        return quotedText(v.toString());
      case IValue::Tag::Device:
        return fmt::format("torch.device({})", quotedText(v.toDevice().str()));
      case IValue::Tag::Enum:
        return fmt::format("{}.{}", name_(*v.toEnum().type), v.toEnum().name);
      case IValue::Tag::List:
        return list(v);
      case IValue::Tag::Tuple:
        return tuple(v);
      case IValue::Tag::Dict:
        return dict(v);
      default:
        throwRuntimeError("print: a {} cannot be a constant", v.tagName());
    }
  }

 private:
  std::string all(const std::vector<IValue>& values) const {
    std::string text;
    for (const IValue& v : values) {
      if (!text.empty()) text += ", ";
      text += print(v);
      checkTextLength("print: a constant", text.size());
    }
    return text;
  }

  std::string list(const IValue& v) const {
    const ListObject& list = v.toList();
    std::string text = "[" + all(list.elements) + "]";
    if (!list.elements.empty() && inferredFromElements(*list.element_type)) return text;
    return fmt::format("annotate({}, {})", name_(*types::List(list.element_type)), text);
  }

  std::string tuple(const IValue& v) const {
    const TupleObject& tuple = v.toTuple();
    return fmt::format("{}({}{})", tuple.named ? name_(*tuple.named) : "", all(tuple.elements),
                       tuple.elements.size() == 1 ? "," : "");
  }

  std::string dict(const IValue& v) const {
    const DictObject& dict = v.toDict();
    std::string text;
    for (const auto& [key, value] : dict.items()) {
      if (!text.empty()) text += ", ";
      text += print(key) + ": " + print(value);
      checkTextLength("print: a constant", text.size());
    }
    text = "{" + text + "}";
    if (dict.size() != 0 && inferredFromElements(*dict.key_type) &&
        inferredFromElements(*dict.value_type)) {
      return text;
    }
    return fmt::format("annotate({}, {})", name_(*types::Dict(dict.key_type, dict.value_type)),
                       text);
  }

  ConstantTable& table_;
  const TypeNamer& name_;
};

}  // namespace

bool ConstantTable::same(const IValue& a, const IValue& b) const {
  if (a.isSame(b)) return true;
  if (a.isString() && b.isString()) return a.toString() == b.toString();
  if (!a.isTensor() || !b.isTensor()) return false;
  // Two handles of one view are one constant.
  const Tensor x = a.toTensor(), y = b.toTensor();
  return x.defined() && y.defined() && x.sharesStorage(y) && x.dtype() == y.dtype() &&
         x.offset() == y.offset() && DimVector(x.sizes()) == DimVector(y.sizes()) &&
         DimVector(x.strides()) == DimVector(y.strides()) && x.requiresGrad() == y.requiresGrad();
}

size_t ConstantTable::add(const IValue& value) {
  size_t hash = 0;
  if (value.isString()) {
    hash = std::hash<std::string>()(value.toString());
  } else if (value.isTensor() && value.toTensor().defined() && value.toTensor().device().isCpu()) {
    hash = std::hash<const void*>()(value.toTensor().storage().get());
  } else if (value.isCounted()) {
    hash = std::hash<const void*>()(value.rawObject());
  }
  const auto [begin, end] = index_.equal_range(hash);
  for (auto it = begin; it != end; ++it) {
    if (same(values_[it->second], value)) return it->second;
  }
  values_.push_back(value);
  index_.emplace(hash, values_.size() - 1);
  return values_.size() - 1;
}

std::string constantText(const IValue& value, ConstantTable& table, const TypeNamer& name) {
  return ConstantText(table, name).print(value);
}

bool inferredFromElements(const Type& element) {
  switch (element.kind()) {
    case TypeKind::Optional:
    case TypeKind::Union:
    case TypeKind::Interface:
    case TypeKind::Any:
      return false;
    default:
      return true;
  }
}

std::string quotedText(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '\\':
        out += "\\\\";
        break;
      case '\'':
        out += "\\'";
        break;
      case '"':
        out += "\\\"";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\v':
        out += "\\v";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7f) {
          out += c;
        } else {
          out += fmt::format("\\{:03o}", static_cast<unsigned char>(c));
        }
    }
  }
  return out + "\"";
}

}  // namespace wick
