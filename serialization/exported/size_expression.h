// Expressions over sizes in SymPy's notation: "Add(Mul(Integer(2), Symbol('s0', positive=True, integer=True)), Integer(1))".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/keyed_hash.h"

namespace wick::exported {

struct SizeExpression {
  enum class Kind : uint8_t { Number, Symbol, Sum, Product, FloorQuotient, Remainder, Least, Most };
  Kind kind = Kind::Number;
  int64_t number = 0;  // of a symbol of SizeArithmetic: its index
  std::string symbol;
  std::vector<SizeExpression> operands;

  // Symbols in the order of their first occurrence.
  std::vector<std::string> symbols() const;
  // In SymPy's notation.
  std::string notation() const;
  // The text of an int in TorchScript, with the given text for each symbol.
  std::string text(const KeyedMap<std::string, std::string>& symbols) const;
  // {a, b} of a·s + b where that is what the expression is, and `symbol` the only one in it.
  std::optional<std::pair<int64_t, int64_t>> linearIn(const std::string& symbol) const;
};

// nullopt for text that is no such expression, for functions that are not known here, and for text that is too long or nests too deep
std::optional<SizeExpression> parseSizeExpression(const std::string& text);

}  // namespace wick::exported
