#include "serialization/exported/size_expression.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string_view>

namespace wick::exported {
namespace {

constexpr size_t kMaxText = 4096;
constexpr int kMaxExpressionDepth = 32;

using ExpressionKind = SizeExpression::Kind;

// The functions of SymPy and PyTorch that sizes are made of.
struct FunctionName {
  std::string_view name;
  ExpressionKind kind;
};
constexpr FunctionName kFunctions[] = {
    {"Add", ExpressionKind::Sum},
    {"Mul", ExpressionKind::Product},
    {"FloorDiv", ExpressionKind::FloorQuotient},
    {"CleanDiv", ExpressionKind::FloorQuotient},
    {"Mod", ExpressionKind::Remainder},
    {"PythonMod", ExpressionKind::Remainder},
    {"Min", ExpressionKind::Least},
    {"Max", ExpressionKind::Most},
};

class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : rest_(text) {}

  std::optional<SizeExpression> whole() {
    std::optional<SizeExpression> out = expression(0);
    return rest_.empty() ? out : std::nullopt;
  }

 private:
  std::optional<SizeExpression> expression(int depth) {
    if (depth > kMaxExpressionDepth) return std::nullopt;
    const std::string_view name = word();
    if (!take("(")) return std::nullopt;
    if (name == "Integer") return integer();
    if (name == "Symbol") return symbol();
    if (name == "Pow") return power(depth);
    const auto* found = std::ranges::find(kFunctions, tail(name), &FunctionName::name);
    if (found == std::end(kFunctions)) return std::nullopt;
    SizeExpression out;
    out.kind = found->kind;
    do {
      std::optional<SizeExpression> operand = expression(depth + 1);
      if (!operand) return std::nullopt;
      out.operands.push_back(std::move(*operand));
    } while (take(", "));
    const bool of_two =
        out.kind == ExpressionKind::FloorQuotient || out.kind == ExpressionKind::Remainder;
    if (!take(")") || (of_two && out.operands.size() != 2)) return std::nullopt;
    return out;
  }

  // Pow(x, Integer(2)) is a product; the base is a symbol, so that powers of powers do not grow.
  std::optional<SizeExpression> power(int depth) {
    constexpr int64_t kMostPower = 8;
    const std::optional<SizeExpression> base = expression(depth + 1);
    if (!base || base->kind != ExpressionKind::Symbol || !take(", Integer(")) return std::nullopt;
    const std::optional<SizeExpression> exponent = integer();
    if (!exponent || !take(")") || exponent->number < 1 || exponent->number > kMostPower) {
      return std::nullopt;
    }
    SizeExpression out;
    out.kind = ExpressionKind::Product;
    out.operands.assign(static_cast<size_t>(exponent->number), *base);
    return out;
  }

  std::optional<SizeExpression> integer() {
    SizeExpression out;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), out.number);
    if (error != std::errc()) return std::nullopt;
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return take(")") ? std::optional(out) : std::nullopt;
  }

  // Symbol('s0', positive=True, integer=True): the assumptions are not looked at.
  std::optional<SizeExpression> symbol() {
    if (!take("'")) return std::nullopt;
    SizeExpression out;
    out.kind = ExpressionKind::Symbol;
    out.symbol = word();
    if (out.symbol.empty() || !take("'")) return std::nullopt;
    while (take(", ")) {
      if (word().empty() || !take("=") || word().empty()) return std::nullopt;
    }
    return take(")") ? std::optional(out) : std::nullopt;
  }

  std::string_view word() {
    size_t length = 0;
    while (length < rest_.size() && (std::isalnum(static_cast<unsigned char>(rest_[length])) ||
                                     rest_[length] == '_' || rest_[length] == '.')) {
      ++length;
    }
    const std::string_view out = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return out;
  }

  static std::string_view tail(std::string_view name) {
    return name.substr(name.rfind('.') + 1);  // npos + 1 is 0
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  std::string_view rest_;
};

void collectSymbols(const SizeExpression& expression, std::vector<std::string>& into) {
  if (expression.kind == ExpressionKind::Symbol &&
      std::ranges::find(into, expression.symbol) == into.end()) {
    into.push_back(expression.symbol);
  }
  for (const SizeExpression& operand : expression.operands) collectSymbols(operand, into);
}

}  // namespace

std::vector<std::string> SizeExpression::symbols() const {
  std::vector<std::string> out;
  collectSymbols(*this, out);
  return out;
}

std::string SizeExpression::text(const KeyedMap<std::string, std::string>& symbols) const {
  const auto joined = [&](const char* between) {
    std::string out = "(";
    for (size_t i = 0; i < operands.size(); ++i) {
      if (i > 0) out += between;
      out += operands[i].text(symbols);
    }
    return out + ")";
  };
  switch (kind) {
    case Kind::Number:
      return number < 0 ? fmt::format("({})", number) : fmt::format("{}", number);
    case Kind::Symbol:
      return symbols.at(symbol);
    case Kind::Sum:
      return joined(" + ");
    case Kind::Product:
      return joined(" * ");
    case Kind::FloorQuotient:
      return joined(" // ");
    case Kind::Remainder:
      return joined(" % ");
    case Kind::Least:
    case Kind::Most: {
      std::string out = operands[0].text(symbols);
      for (size_t i = 1; i < operands.size(); ++i) {
        out = fmt::format("{}({}, {})", kind == Kind::Least ? "min" : "max", out,
                          operands[i].text(symbols));
      }
      return out;
    }
  }
  return "";
}

std::string SizeExpression::notation() const {
  if (kind == Kind::Number) return fmt::format("Integer({})", number);
  if (kind == Kind::Symbol) return fmt::format("Symbol('{}', positive=True, integer=True)", symbol);
  constexpr std::pair<Kind, const char*> kNames[] = {{Kind::Sum, "Add"},
                                                     {Kind::Product, "Mul"},
                                                     {Kind::FloorQuotient, "FloorDiv"},
                                                     {Kind::Remainder, "PythonMod"},
                                                     {Kind::Least, "Min"},
                                                     {Kind::Most, "Max"}};
  std::string out = std::ranges::find(kNames, kind, &std::pair<Kind, const char*>::first)->second;
  for (size_t i = 0; i < operands.size(); ++i) {
    out += (i == 0 ? "(" : ", ") + operands[i].notation();
  }
  return out + ")";
}

std::optional<std::pair<int64_t, int64_t>> SizeExpression::linearIn(
    const std::string& symbol) const {
  using Line = std::pair<int64_t, int64_t>;
  switch (kind) {
    case Kind::Number:
      return Line{0, number};
    case Kind::Symbol:
      if (this->symbol != symbol) return std::nullopt;
      return Line{1, 0};
    case Kind::Sum: {
      Line sum{0, 0};
      for (const SizeExpression& operand : operands) {
        const auto line = operand.linearIn(symbol);
        if (!line || __builtin_add_overflow(sum.first, line->first, &sum.first) ||
            __builtin_add_overflow(sum.second, line->second, &sum.second)) {
          return std::nullopt;
        }
      }
      return sum;
    }
    case Kind::Product: {
      Line product{0, 1};
      for (const SizeExpression& operand : operands) {
        const auto line = operand.linearIn(symbol);
        if (!line || (line->first != 0 && product.first != 0)) return std::nullopt;
        Line next;
        int64_t other = 0;
        if (__builtin_mul_overflow(product.first, line->second, &next.first) ||
            __builtin_mul_overflow(product.second, line->first, &other) ||
            __builtin_add_overflow(next.first, other, &next.first) ||
            __builtin_mul_overflow(product.second, line->second, &next.second)) {
          return std::nullopt;
        }
        product = next;
      }
      return product;
    }
    default:
      return std::nullopt;
  }
}

std::optional<SizeExpression> parseSizeExpression(const std::string& text) {
  if (text.size() > kMaxText) return std::nullopt;
  return ExpressionParser(text).whole();
}

}  // namespace wick::exported
