#include "serialization/python_names.h"

#include <cctype>

namespace wick {
namespace {

const std::unordered_set<std::string>& reservedNames() {
  static const std::unordered_set<std::string> names = {
      // What printed source gives a meaning to.
      "_", "aten", "attribute", "CONSTANTS", "fork", "getattr", "inf", "nan", "infj", "nanj", "ops",
      "__torch__", "uninitialized", "unchecked_cast",
      // Python's keywords.
      "False", "None", "True", "and", "as", "assert", "async", "await", "break", "class",
      "continue", "def", "del", "elif", "else", "except", "finally", "for", "from", "global", "if",
      "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass", "raise", "return", "try",
      "while", "with", "yield"};
  return names;
}

bool isIdentifierChar(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

}  // namespace

bool isValidIdentifier(std::string_view name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (char c : name) {
    if (!isIdentifierChar(c)) return false;
  }
  return true;
}

std::string makeValidIdentifier(std::string_view candidate) {
  std::string name;
  if (candidate.empty() || std::isdigit(static_cast<unsigned char>(candidate[0])) != 0) name = "_";
  for (char c : candidate) name += isIdentifierChar(c) ? c : '_';
  return name;
}

std::string NameGenerator::unique(const std::string& candidate) {
  std::string name = candidate;
  if (!used_.contains(name) && !reservedNames().contains(name)) {
    used_.insert(name);
    return name;
  }
  size_t& next = next_[candidate];
  while (used_.contains(name) || reservedNames().contains(name)) {
    name = candidate + std::to_string(next++);
  }
  used_.insert(name);
  return name;
}

}  // namespace wick
