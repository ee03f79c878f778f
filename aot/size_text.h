// Texts that differ in numbers alone, and the numbers as expressions of sizes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace wick::aot {

// A size that a call's arguments tell: one of minimum, minimum + step, … up to maximum.
struct Symbol {
  std::string name;
  int64_t minimum = 1, maximum = 64, step = 1;

  int64_t count() const { return (maximum - minimum) / step + 1; }
};

// A text cut at the numbers in it: integers and floating point numbers as C has them, outside of
// identifiers, strings and template arguments.
struct CutText {
  enum class Kind : uint8_t { Integer, Float, Double };
  struct Number {
    std::string text;
    Kind kind = Kind::Integer;
    friend bool operator==(const Number&, const Number&) = default;
  };
  std::vector<std::string> pieces;  // around the numbers; one more than those
  std::vector<Number> numbers;

  // What texts have in common that differ in numbers alone.
  void appendForm(std::string& form) const;
};
CutText cutAtNumbers(std::string_view text);

// Names of sizes that one program may have: WICK_AOT_MAX_SYMBOLS of the runtime.
inline constexpr size_t kMostSymbols = 8;
// Combinations of sizes that one program may have.
inline constexpr size_t kMostSizes = 4096;

// Sizes by position: all combinations of the symbols' values, the last symbol's fastest.
class SizeSpace {
 public:
  // RuntimeError for too many symbols, ranges that are too large, or too many combinations.
  explicit SizeSpace(std::vector<Symbol> symbols, size_t most = kMostSizes);
  const std::vector<Symbol>& symbols() const { return symbols_; }
  size_t count() const { return count_; }
  std::vector<int64_t> at(size_t position) const;
  size_t positionOf(const std::vector<int64_t>& sizes) const;
  // "N=3, L=5"
  std::string describe(size_t position) const;

 private:
  std::vector<Symbol> symbols_;
  size_t count_ = 1;
};

// A number at some of the positions of a space.
struct Column {
  CutText::Kind kind = CutText::Kind::Integer;
  bool varies = false;
  CutText::Number first;
  std::vector<CutText::Number> others{};  // when it varies: at each position that was added

  // At the position that is number `index` of those that were added.
  void add(const CutText::Number& number, size_t index);
};

// Tables of the numbers that no expression gives, each once.
class SizeTables {
 public:
  // The name of the table of this C++ type with these entries.
  const std::string& add(const std::string& type, const std::vector<std::string>& entries);
  const std::string& text() const { return text_; }
  // Of all tables.
  size_t entries() const { return entries_; }

 private:
  std::map<std::string, std::string> names_;  // by definition
  std::string text_;
  size_t entries_ = 0;
};

// Writes columns as expressions of C++ over variables size_NAME and `position`. An expression is taken only
// when it gives the number at every position; where none is found the numbers become a table.
class SizeExpressions {
 public:
  SizeExpressions(const SizeSpace& space, SizeTables& tables) : space_(space), tables_(tables) {}

  // The expression of a column that varies, whose numbers are those at `positions`.
  std::string write(const Column& column, const std::vector<size_t>& positions);

 private:
  std::string tableOf(const Column& column, const std::vector<size_t>& positions);

  const SizeSpace& space_;
  SizeTables& tables_;
};

}  // namespace wick::aot
