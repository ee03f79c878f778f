// Sizes of inputs that an entry leaves open, sizes that elements decide, expressions of both, and what an
// entry supposes of these.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace wick::capture {

// A sum of products of atoms: by the sorted numbers of its atoms, each product's coefficient, never 0.
using SizeExpression = std::map<std::vector<int>, int64_t>;

// Returns the expression of a number.
SizeExpression numberExpression(int64_t number);
// Returns the number, if the expression is one.
std::optional<int64_t> numberIn(const SizeExpression& expression);

enum class SizeRelation : uint8_t { kEqual, kNotEqual, kLess, kAtLeast };

// A relation of an expression to 0.
struct SizeCondition {
  SizeExpression expression;
  SizeRelation relation = SizeRelation::kEqual;
  bool guessed = false;  // it depends on what elements decide
  int symbols = 0;       // how many symbols there were when it was asked
};

// The open sizes of one attempt. Each has the size of the example as its hint, and is at least 2. All
// that is asked about an expression is answered for the hints; what the answer supposes is noted.
//
// A number that elements decide (a count of nonzero elements) is known only when the graph has run. If
// a question about it has no answer for all its values, that for its hint is a guess, which is checked then;
// UnknownSize where guesses are forbidden, and where nobody can guess the exact value.
class SizeTable {
 public:
  // Returns the symbol of one more open size.
  int addSymbol(int64_t hint);
  // Returns the symbol of one more number that elements decide, at least `least`. Its hint is a number
  // that stands for it while the graph is recorded.
  int addDecided(int64_t hint, int64_t least);
  bool isDecided(int symbol) const { return symbols_[static_cast<size_t>(symbol)].decided; }
  bool hasDecided(const SizeExpression& expression) const;
  bool hasAnyDecided() const;
  // Returns a hint for the next such size, or for an element of a tensor.
  int64_t nextHint(bool element = false) const;
  // Returns whether the number is any, and not a size.
  bool isElement(int symbol) const {
    return isDecided(symbol) && symbols_[static_cast<size_t>(symbol)].range.first < 0;
  }
  // Forbids such sizes.
  void forbidDecided() { may_decide_ = false; }
  bool mayDecide() const { return may_decide_; }
  void allowGuesses() { may_guess_ = true; }
  bool hasGuesses() const;
  // Returns the symbols that guesses depend on.
  std::vector<int> guessedSymbols() const;
  // Says that the number is known where the graph runs.
  void noteInGraph(int symbol);
  // Takes the hints from a table with the same symbols.
  void useHints(std::vector<int64_t> hints) { hints_ = std::move(hints); }
  // Says that the hints were true in a run, so that exact values may be guessed.
  void trustHints() { hints_are_true_ = true; }
  // Guesses that all numbers that elements decide are what they were in that run.
  void guessAll() { guesses_all_ = true; }
  // Asks the graph for all numbers that elements decide, not only for those that are guessed.
  void askAll() { asks_all_ = true; }
  bool asksAll() const { return asks_all_; }
  // Returns whether a run has told the numbers that elements decide and that the expression depends on.
  bool isMeasured(const SizeExpression& expression) const;
  // Returns whether a guess says what the number is.
  bool isGuessedExactly(int symbol) const;
  int numSymbols() const { return static_cast<int>(symbols_.size()); }
  int64_t hintOf(int symbol) const { return symbols_[static_cast<size_t>(symbol)].hint; }
  bool isFixed(int symbol) const { return range(symbol).first == range(symbol).second; }

  bool isAllFixed() const;

  SizeExpression symbol(int symbol) const;
  // None of these returns an expression that became too large.
  using Result = std::optional<SizeExpression>;
  static Result add(const SizeExpression& a, const SizeExpression& b, int64_t factor = 1);
  static Result multiply(const SizeExpression& a, const SizeExpression& b);
  // The quotient rounded down, as Python's `//`.
  Result floorDivide(const SizeExpression& dividend, const SizeExpression& divisor);
  Result remainder(const SizeExpression& a, const SizeExpression& b);

  // Returns the value for the hints; nothing on overflow and division by 0.
  std::optional<int64_t> hint(const SizeExpression& expression) const;
  // Returns the value for other sizes, one for each symbol.
  std::optional<int64_t> evaluate(const SizeExpression& expression,
                                  std::span<const int64_t> sizes) const;
  // Returns the expression with numbers for the symbols that are fixed.
  SizeExpression simplified(const SizeExpression& expression) const;

  // Returns whether the relation holds for the hints, and supposes the same of all other sizes.
  bool holds(const SizeExpression& expression, SizeRelation relation);
  // Supposes that the expression has the value that it has for the hints, and returns it.
  int64_t fix(const SizeExpression& expression);
  void fixSymbol(int symbol);
  // A symbol, or a quotient rounded down.
  struct Atom {
    int symbol = -1;
    SizeExpression dividend, divisor;
  };
  const Atom& atom(int atom) const { return atoms_[static_cast<size_t>(atom)]; }
  // Returns the symbols that the expression depends on.
  std::vector<int> symbolsIn(const SizeExpression& expression) const;

  // Returns whether everything that was supposed holds for these sizes; without guesses.
  bool matches(std::span<const int64_t> sizes) const;
  // Returns whether all guesses are right for these sizes.
  bool guessesHold(std::span<const int64_t> sizes) const;
  // Returns how many symbols were made before a guess that is wrong for these sizes: behind it the
  // program makes others.
  size_t numBeforeWrongGuess(std::span<const int64_t> sizes) const;
  // Returns a line for each condition.
  std::vector<std::string> lines() const;
  // Names of symbols for texts.
  void name(int symbol, std::string text) {
    symbols_[static_cast<size_t>(symbol)].name = std::move(text);
  }
  const std::string& nameOf(int symbol) const { return symbols_[static_cast<size_t>(symbol)].name; }
  std::string text(const SizeExpression& expression) const;

 private:
  using Range = std::pair<int64_t, int64_t>;
  static constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  static constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

  struct Symbol {
    int64_t hint;
    Range range;
    std::string name;
    bool decided = false;
    bool in_graph = false;
  };

  const Range& range(int symbol) const { return symbols_[static_cast<size_t>(symbol)].range; }
  Range rangeOf(const SizeExpression& expression) const;
  Range rangeOfAtom(int atom) const;
  static std::optional<bool> answered(const Range& range, SizeRelation relation);
  // Narrows the range of the symbol, if the expression is linear in it alone.
  bool narrow(const SizeExpression& expression, SizeRelation relation, bool truth);
  bool holdsCondition(const SizeCondition& condition, std::span<const int64_t> sizes) const;
  // Returns whether the hint is that of a run.
  bool isHintTrue(int symbol) const {
    const auto at = static_cast<size_t>(symbol);
    return hints_are_true_ && at < hints_.size() && hints_[at] >= 0;
  }
  void checkGuess(const SizeExpression& expression, SizeRelation relation, bool truth) const;
  void collectSymbols(const SizeExpression& expression, std::vector<int>& symbols) const;
  std::string atomText(int atom) const;

  std::vector<Symbol> symbols_;
  std::vector<Atom> atoms_;
  std::vector<int> atom_of_symbol_;
  std::map<std::pair<SizeExpression, SizeExpression>, int> quotients_;
  std::vector<SizeCondition> conditions_;
  std::vector<int64_t> hints_;
  bool may_decide_ = true;
  bool may_guess_ = false;
  bool hints_are_true_ = false;
  bool asks_all_ = false, guesses_all_ = false;
};

}  // namespace wick::capture
