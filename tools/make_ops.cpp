// Writes wick_ops.h: a C++ function for every overload of every operator on tensors, made from the
// registered schemas.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/operator.h"

namespace wick {
namespace {

constexpr const char* kHead =
    R"head(// Operators as C++ functions, made from their schemas: wick::ops::matmul(a, b). Argument names,
// order, defaults and results are the schema's. In-place forms end in an underscore and write to
// their first argument, forms that write to a given tensor end in _out and take it last. Nothing is
// fused or optimized: compile a function (wick.h) for what runs often.
#pragma once

#if __cplusplus < 202002L
#error "Wick needs C++20: compile with -std=c++20 (GCC 12, clang 14 or later)"
#else

#include "runtime/typed_operator.h"

namespace wick::ops {
)head";

struct CppType {
  std::string parameter;
  std::string result;
};

// What C++ calls a type of a schema; nullopt for those that applications have no use for. `text` is
// the schema's own word, which tells what the number of an int means.
std::optional<CppType> cppType(const Type& type, std::string_view text) {
  const auto plain = [](std::string name) { return CppType{name, name}; };
  switch (type.kind()) {
    case TypeKind::Tensor:
      return CppType{"const Tensor&", "Tensor"};
    case TypeKind::Int:
      if (text.starts_with("ScalarType")) return plain("DType");
      if (text.starts_with("MemoryFormat")) return plain("MemoryFormat");
      return plain("int64_t");
    case TypeKind::Float:
      return plain("double");
    case TypeKind::Bool:
      return plain("bool");
    case TypeKind::Number:
      return CppType{"const Scalar&", "Scalar"};
    case TypeKind::String:
      return CppType{"std::string_view", "std::string"};
    case TypeKind::Device:
      return plain("Device");
    case TypeKind::Generator:
      return plain("IValue");
    case TypeKind::Optional: {
      const Type& element = *type.contained()[0];
      if (element.kind() == TypeKind::Generator) return plain("IValue");
      if (element.kind() == TypeKind::List && element.contained()[0]->kind() == TypeKind::Int) {
        return CppType{"OptionalInts", "std::optional<std::vector<int64_t>>"};
      }
      auto inner = cppType(element, text);
      if (!inner) return std::nullopt;
      const std::string name = "std::optional<" + inner->result + ">";
      return CppType{"const " + name + "&", name};
    }
    case TypeKind::List: {
      const Type& element = *type.contained()[0];
      if (element.kind() == TypeKind::Int) return CppType{"IntSpan", "std::vector<int64_t>"};
      if (element.kind() == TypeKind::Number) return std::nullopt;
      auto inner = cppType(element, text);
      if (!inner) return std::nullopt;
      const std::string name = "std::vector<" + inner->result + ">";
      return CppType{"const " + name + "&", name};
    }
    default:
      return std::nullopt;
  }
}

bool holdsTensor(const Type& type) {
  if (type.kind() == TypeKind::Tensor) return true;
  return std::any_of(type.contained().begin(), type.contained().end(),
                     [](const TypePtr& t) { return holdsTensor(*t); });
}

// A default as C++ writes it; nullopt for one that it cannot.
std::optional<std::string> cppDefault(const IValue& value, const Argument& argument,
                                      const std::string& type) {
  if (value.isNone()) return type == "IValue" ? "IValue()" : "std::nullopt";
  if (value.isBool()) return value.toBool() ? "true" : "false";
  if (type == "IntSpan" || type == "OptionalInts") {
    std::vector<int64_t> numbers;
    if (value.isInt()) {
      numbers.assign(static_cast<size_t>(argument.fixed_size.value_or(1)), value.toInt());
    } else if (value.isList()) {
      for (const IValue& number : value.elements()) numbers.push_back(number.toInt());
    } else {
      return std::nullopt;
    }
    return fmt::format("IntSpan({{{}}})", fmt::join(numbers, ", "));
  }
  if (type.find("DType") != std::string::npos || type.find("MemoryFormat") != std::string::npos) {
    if (!value.isInt()) return std::nullopt;
    return fmt::format("static_cast<{}>({})",
                       type.find("DType") != std::string::npos ? "DType" : "MemoryFormat",
                       value.toInt());
  }
  if (value.isInt()) return std::to_string(value.toInt());
  if (value.isDouble()) {
    std::string text = formatDouble(value.toDouble());
    if (text.find_first_not_of("0123456789.e+-") != std::string::npos) return std::nullopt;
    return text;
  }
  if (value.isString()) {
    const std::string& text = value.toString();
    if (text.find_first_of("\"\\\n") != std::string::npos) return std::nullopt;
    return "\"" + text + "\"";
  }
  return std::nullopt;
}

bool isIdentifier(std::string_view name) {
  static const std::set<std::string_view> kKeywords = {
      "and",    "or",      "not",      "xor",       "bool",     "int",       "float",
      "double", "char",    "long",     "short",     "signed",   "unsigned",  "default",
      "delete", "new",     "operator", "template",  "class",    "struct",    "union",
      "enum",   "for",     "while",    "if",        "else",     "return",    "switch",
      "case",   "break",   "continue", "do",        "goto",     "const",     "static",
      "extern", "public",  "private",  "protected", "virtual",  "this",      "throw",
      "try",    "catch",   "typedef",  "typename",  "using",    "namespace", "true",
      "false",  "auto",    "register", "inline",    "volatile", "explicit",  "export",
      "friend", "mutable", "sizeof",   "asm",       "compl",    "bitand",    "bitor"};
  return !name.empty() && !kKeywords.contains(name) && !name.starts_with("__") &&
         !(name[0] >= 'A' && name[0] <= 'Z');
}

// The schema's own word for an argument's type: "ScalarType? dtype" has "ScalarType?".
std::string_view wordFor(std::string_view schema, const std::string& argument) {
  for (size_t at = schema.find(" " + argument); at != std::string_view::npos;
       at = schema.find(" " + argument, at + 1)) {
    const size_t end = at + 1 + argument.size();
    if (end < schema.size() && (schema[end] == '_' || std::isalnum(schema[end]))) continue;
    const size_t begin = schema.find_last_of("( ,", at - 1);
    return schema.substr(begin + 1, at - begin - 1);
  }
  return "";
}

struct Parameter {
  std::string type;
  std::string name;
  std::string value;  // the default; empty: none
};

struct Function {
  std::string name;
  std::string result;
  std::vector<Parameter> parameters;
  std::string schema;
  std::string operator_name;
  std::string overload;

  // How many arguments a call gives at least.
  size_t required() const {
    size_t count = parameters.size();
    while (count > 0 && !parameters[count - 1].value.empty()) --count;
    return count;
  }
  void require(size_t count) {
    for (size_t i = 0; i < count; ++i) parameters[i].value.clear();
  }

  std::string text() const {
    std::string list;
    std::string names;
    for (const Parameter& p : parameters) {
      list += fmt::format("{}{} {}{}", list.empty() ? "" : ", ", p.type, p.name,
                          p.value.empty() ? "" : " = " + p.value);
      names += (names.empty() ? "" : ", ") + p.name;
    }
    return fmt::format(
        "\n// {}\ninline {} {}({}) {{\n"
        "  static const TypedOperator op(\"{}\", \"{}\");\n"
        "  return op.call<{}>({});\n}}\n",
        schema, result, name, list, operator_name, overload, result, names);
  }
};

// Whether C++ can tell the functions apart. Where a call could mean both because of defaults, one
// of them loses some.
bool tellApart(Function& earlier, Function& later) {
  const size_t shorter = std::min(earlier.parameters.size(), later.parameters.size());
  size_t same = 0;
  while (same < shorter && earlier.parameters[same].type == later.parameters[same].type) ++same;
  if (same == earlier.parameters.size() && same == later.parameters.size()) return false;
  if (earlier.required() > same || later.required() > same) return true;
  Function& longer = same == later.parameters.size() ? earlier : later;
  longer.require(same + 1);
  return true;
}

std::optional<std::string> resultType(const Operator& op) {
  const auto& returns = op.schema().returns();
  if (op.schema().isVarret()) return std::nullopt;
  if (returns.empty()) return "void";
  std::vector<std::string> types;
  for (const Argument& result : returns) {
    auto type = cppType(*result.type, "");
    if (!type) return std::nullopt;
    types.push_back(type->result);
  }
  if (types.size() == 1) return types[0];
  return fmt::format("std::tuple<{}>", fmt::join(types, ", "));
}

std::optional<Function> functionFor(const Operator& op) {
  const FunctionSchema& schema = op.schema();
  if (schema.isVararg()) return std::nullopt;
  const std::string_view raw = op.record().schema;
  auto result = resultType(op);
  if (!result) return std::nullopt;
  Function function;
  function.name = schema.name().substr(schema.name().find("::") + 2);
  function.result = *result;
  function.schema = schema.str();
  function.operator_name = schema.name();
  function.overload = schema.overload();
  bool has_tensor = false;
  bool has_out = false;
  for (const Argument& a : schema.returns()) has_tensor |= holdsTensor(*a.type);
  for (const Argument& argument : schema.arguments()) {
    auto type = cppType(*argument.type, wordFor(raw, argument.name));
    if (!type) return std::nullopt;
    has_tensor |= holdsTensor(*argument.type);
    has_out |= argument.kwarg_only && argument.alias && argument.alias->is_write;
    std::optional<std::string> value;
    if (argument.default_value)
      value = cppDefault(*argument.default_value, argument, type->parameter);
    // In C++ whatever follows a default has one too.
    if (!value) function.require(function.parameters.size());
    function.parameters.push_back(
        {type->parameter, isIdentifier(argument.name) ? argument.name : argument.name + "_",
         value.value_or("")});
  }
  if (!has_tensor) return std::nullopt;
  if (has_out) function.name += "_out";
  if (!isIdentifier(function.name)) return std::nullopt;
  return function;
}

int writeHeader(const char* path) {
  std::string text = kHead;
  std::map<std::string, std::vector<Function>> functions;
  for (const std::string& name : OperatorRegistry::instance().names()) {
    if (!name.starts_with("aten::")) continue;
    const Symbol symbol = Symbol::fromQualString(name);
    for (const Operator* op : OperatorRegistry::instance().overloads(symbol)) {
      auto function = functionFor(*op);
      if (!function) continue;
      std::vector<Function>& known = functions[function->name];
      const bool distinct = std::all_of(known.begin(), known.end(), [&](Function& earlier) {
        return tellApart(earlier, *function);
      });
      if (distinct) known.push_back(*std::move(function));
    }
  }
  size_t count = 0;
  for (const auto& [name, overloads] : functions) {
    for (const Function& function : overloads) text += function.text();
    count += overloads.size();
  }
  text += "\n}  // namespace wick::ops\n\n#endif  // C++20\n";
  FILE* file = std::fopen(path, "wb");
  const bool written = file && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (!file || std::fclose(file) != 0 || !written) {
    std::fprintf(stderr, "make_ops: %s cannot be written\n", path);
    return 1;
  }
  std::fprintf(stderr, "make_ops: %zu functions\n", count);
  return 0;
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_ops FILE\n");
    return 2;
  }
  try {
    return wick::writeHeader(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "make_ops: %s\n", error.what());
    return 1;
  }
}
