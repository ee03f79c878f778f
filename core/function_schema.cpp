// Schemas as text. The parser is in schema_parser.cpp.
#include "core/function_schema.h"

#include <fmt/format.h>

#include <algorithm>

namespace wick {

namespace {

bool writes(const AliasInfo& alias) {
  return alias.is_write || std::any_of(alias.contained.begin(), alias.contained.end(), writes);
}

std::string joinSets(const std::vector<std::string>& sets) {
  return fmt::format("{}", fmt::join(sets, "|"));
}

std::string formatAlias(const AliasInfo* alias) {
  if (!alias || alias->before.empty()) return "";
  std::string out = "(" + joinSets(alias->before) + (alias->is_write ? "!" : "");
  if (alias->after != alias->before) out += " -> " + joinSets(alias->after);
  return out + ")";
}

const AliasInfo* containedAlias(const AliasInfo* alias, size_t i) {
  return alias && i < alias->contained.size() ? &alias->contained[i] : nullptr;
}

std::string formatType(const Type& type, const AliasInfo* alias, std::optional<int32_t> size) {
  if (const auto* optional = type.as<OptionalType>()) {
    return formatType(*optional->element(), alias, size) + "?";
  }
  if (const auto* list = type.as<ListType>()) {
    return formatType(*list->element(), containedAlias(alias, 0), std::nullopt) +
           (size ? fmt::format("[{}]", *size) : "[]") + formatAlias(alias);
  }
  if (type.kind() == TypeKind::Tuple && !type.as<TupleType>()->isNamed()) {
    std::string out;
    for (size_t i = 0; i < type.contained().size(); ++i) {
      if (i) out += ", ";
      out += formatType(*type.contained()[i], containedAlias(alias, i), std::nullopt);
    }
    return "(" + out + ")" + formatAlias(alias);
  }
  if (const auto* dict = type.as<DictType>()) {
    return "Dict(" + formatType(*dict->key(), containedAlias(alias, 0), std::nullopt) + ", " +
           formatType(*dict->value(), containedAlias(alias, 1), std::nullopt) + ")" +
           formatAlias(alias);
  }
  return type.str() + formatAlias(alias);
}

std::string quoteDefault(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
      case '\'':
      case '\\':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\f':
        out += "\\f";
        break;
      case '\v':
        out += "\\v";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
          out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string formatDefault(const IValue& value, bool fixed_size) {
  if (value.isString()) return quoteDefault(value.toString());
  if (value.isDevice()) return quoteDefault(value.toDevice().str());
  if (!value.isList()) return value.printed();
  const auto& elements = value.elements();
  bool uniform = fixed_size && !elements.empty() &&
                 std::all_of(elements.begin(), elements.end(),
                             [&](const IValue& e) { return e.isSame(elements[0]); });
  if (uniform) return formatDefault(elements[0], false);
  std::string out;
  for (const IValue& e : elements) {
    if (!out.empty()) out += ", ";
    out += formatDefault(e, false);
  }
  return "[" + out + "]";
}

std::string formatArgument(const Argument& a) {
  std::string out = formatType(*a.type, a.alias.get(), a.fixed_size);
  if (!a.name.empty()) out += " " + a.name;
  if (a.default_value) out += "=" + formatDefault(*a.default_value, a.fixed_size.has_value());
  return out;
}

}  // namespace

bool FunctionSchema::isMutable() const {
  return std::any_of(arguments_.begin(), arguments_.end(),
                     [](const Argument& a) { return a.alias && writes(*a.alias); });
}

std::optional<size_t> FunctionSchema::argumentIndex(std::string_view name) const {
  for (size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].name == name) return i;
  }
  return std::nullopt;
}

std::string FunctionSchema::str() const {
  std::string out = name_;
  if (!overload_.empty()) out += "." + overload_;
  out += "(";
  bool first = true;
  bool seen_star = false;
  auto separate = [&] {
    if (!first) out += ", ";
    first = false;
  };
  for (const Argument& a : arguments_) {
    if (a.kwarg_only && !seen_star) {
      separate();
      out += "*";
      seen_star = true;
    }
    separate();
    out += formatArgument(a);
  }
  if (is_vararg_) {
    separate();
    out += "...";
  }
  out += ") -> ";
  std::string returns;
  for (const Argument& r : returns_) {
    if (!returns.empty()) returns += ", ";
    returns += formatArgument(r);
  }
  if (is_varret_) returns += returns.empty() ? "..." : ", ...";
  // A single return that begins with a parenthesis would read as a list of returns.
  bool single = returns_.size() + (is_varret_ ? 1 : 0) == 1 && returns[0] != '(';
  return out + (single ? returns : "(" + returns + ")");
}

}  // namespace wick
