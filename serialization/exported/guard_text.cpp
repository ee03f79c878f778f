#include "serialization/exported/guard_text.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace wick::exported {
namespace {

constexpr size_t kMaxGuard = 16384;
constexpr int kMaxGuardDepth = 64;

// Functions of Python and what TorchScript calls them.
struct GuardFunction {
  std::string_view name;
  std::string_view text;
};
constexpr GuardFunction kGuardFunctions[] = {
    {"math.trunc", "int"},
    {"math.floor", "math.floor"},
    {"math.ceil", "math.ceil"},
    {"math.sqrt", "math.sqrt"},
    {"torch.sym_float", "float"},
    {"torch.sym_int", "int"},
    {"torch.sym_max", "max"},
    {"torch.sym_min", "min"},
    {"torch.sym_not", "not "},
    {"torch._sym_sqrt", "math.sqrt"},
    {"float", "float"},
    {"int", "int"},
    {"max", "max"},
    {"min", "min"},
    {"abs", "abs"},
    {"round", "round"},
};
constexpr std::string_view kOperatorsOfTwo[] = {"==", "!=", "<=", ">=", "//", "**",   "<",  ">",
                                                "+",  "-",  "*",  "/",  "%",  "and ", "or "};

// Operands and operators between them are copied; the order in which they are computed is that of Python, as in TorchScript.
class GuardParser {
 public:
  GuardParser(std::string_view text, const GuardVariable& variable)
      : rest_(text), variable_(variable) {}

  std::optional<std::string> whole() {
    std::optional<std::string> out = expression(0);
    skipSpace();
    return rest_.empty() ? out : std::nullopt;
  }

 private:
  void skipSpace() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
  }
  bool take(std::string_view text) {
    skipSpace();
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }
  std::string_view takeWhile(bool (*belongs)(char)) {
    size_t length = 0;
    while (length < rest_.size() && belongs(rest_[length])) ++length;
    const std::string_view out = rest_.substr(0, length);
    rest_.remove_prefix(length);
    return out;
  }
  static bool isDigit(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
  static bool isOfNumber(char c) { return isDigit(c) || c == '.'; }
  static bool isOfName(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
  }

  std::optional<std::string> expression(int depth) {
    if (depth > kMaxGuardDepth) return std::nullopt;
    std::string out;
    while (true) {
      skipSpace();
      while (take("not ")) out += "not ";
      while (take("-")) out += "-";
      const std::optional<std::string> operand = primary(depth);
      if (!operand) return std::nullopt;
      out += *operand;
      const auto* found =
          std::ranges::find_if(kOperatorsOfTwo, [&](std::string_view op) { return take(op); });
      if (found == std::end(kOperatorsOfTwo)) return out;
      out += ' ';
      out += *found;
      out += ' ';
    }
  }

  std::optional<std::string> primary(int depth) {
    skipSpace();
    if (take("(")) {
      const auto inner = expression(depth + 1);
      if (!inner || !take(")")) return std::nullopt;
      return "(" + *inner + ")";
    }
    if (!rest_.empty() && isDigit(rest_[0])) return number();
    if (rest_.starts_with("L[")) return argument();
    const std::string_view name = takeWhile(isOfName);
    if (name == "True" || name == "False") return std::string(name);
    const auto* found = std::ranges::find(kGuardFunctions, name, &GuardFunction::name);
    if (found == std::end(kGuardFunctions) || !take("(")) return std::nullopt;
    std::string out = std::string(found->text) + "(";
    do {
      const auto value = expression(depth + 1);
      if (!value) return std::nullopt;
      out += *value + ", ";
    } while (take(","));
    if (!take(")")) return std::nullopt;
    out.resize(out.size() - 2);
    return out + ")";
  }

  std::optional<std::string> number() {
    std::string text(takeWhile(isOfNumber));
    if (rest_.starts_with('e') || rest_.starts_with('E')) {
      text += rest_[0];
      rest_.remove_prefix(1);
      if (rest_.starts_with('-') || rest_.starts_with('+')) {
        text += rest_[0];
        rest_.remove_prefix(1);
      }
      text += takeWhile(isDigit);
    }
    return std::ranges::count(text, '.') <= 1 ? std::optional(text) : std::nullopt;
  }

  // L['x'][0].size()[1]
  std::optional<std::string> argument() {
    GuardPath path;
    take("L");
    while (take("[")) {
      if (take("'")) {
        const size_t end = rest_.find('\'');
        if (end == std::string_view::npos) return std::nullopt;
        path.steps.emplace_back(rest_.substr(0, end));
        rest_.remove_prefix(end + 1);
      } else {
        const std::string_view index = takeWhile(isDigit);
        if (index.empty()) return std::nullopt;
        path.steps.emplace_back(index);
      }
      if (!take("]")) return std::nullopt;
    }
    std::optional<std::string> variable = variable_(path);
    if (!variable) return std::nullopt;
    for (const std::string_view property : {".size()[", ".stride()["}) {
      if (!take(property)) continue;
      const std::string_view index = takeWhile(isDigit);
      if (index.empty() || !take("]")) return std::nullopt;
      return *variable + std::string(property.substr(0, property.size() - 2)) + std::string(index) +
             ")";
    }
    if (take(".storage_offset()")) return *variable + ".storage_offset()";
    if (take(".numel()")) return *variable + ".numel()";
    if (take(".dim()")) return *variable + ".dim()";
    return variable;
  }

  std::string_view rest_;
  const GuardVariable& variable_;
};

}  // namespace

std::optional<std::string> guardText(const std::string& guard, const GuardVariable& variable) {
  if (guard.size() > kMaxGuard) return std::nullopt;
  return GuardParser(guard, variable).whole();
}

}  // namespace wick::exported
