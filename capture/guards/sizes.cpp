#include "capture/guards/sizes.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/guards/graph_break.h"
#include "core/error.h"

namespace wick::capture {
namespace {

constexpr size_t kMaxTerms = 16;
constexpr size_t kMaxDegree = 6;
constexpr int64_t kMaxCoefficient = int64_t{1} << 40;
constexpr int64_t kLeastOpen = 2;  // 0 and 1 are entries of their own

int64_t floorOf(int64_t a, int64_t b) {
  return a / b - ((a % b != 0 && (a % b < 0) != (b < 0)) ? 1 : 0);
}

bool addTerm(SizeExpression& sum, const std::vector<int>& atoms, int64_t coefficient) {
  if (atoms.size() > kMaxDegree) return false;
  int64_t& at = sum[atoms];
  if (__builtin_add_overflow(at, coefficient, &at) || at > kMaxCoefficient ||
      at < -kMaxCoefficient) {
    return false;
  }
  if (at == 0) sum.erase(atoms);
  return sum.size() <= kMaxTerms;
}

SizeRelation opposite(SizeRelation relation) {
  switch (relation) {
    case SizeRelation::kEqual:
      return SizeRelation::kNotEqual;
    case SizeRelation::kNotEqual:
      return SizeRelation::kEqual;
    case SizeRelation::kLess:
      return SizeRelation::kAtLeast;
    default:
      return SizeRelation::kLess;
  }
}

bool isTrue(int64_t value, SizeRelation relation) {
  switch (relation) {
    case SizeRelation::kEqual:
      return value == 0;
    case SizeRelation::kNotEqual:
      return value != 0;
    case SizeRelation::kLess:
      return value < 0;
    default:
      return value >= 0;
  }
}

// Sums and products of bounds, which stay at the ends of the numbers.
constexpr int64_t kLowest = std::numeric_limits<int64_t>::min();
constexpr int64_t kHighest = std::numeric_limits<int64_t>::max();

int64_t boundOf(__int128 value) {
  return value >= kHighest ? kHighest : value <= kLowest ? kLowest : static_cast<int64_t>(value);
}

int64_t boundSum(int64_t a, int64_t b) {
  if (a == kLowest || b == kLowest) return kLowest;
  if (a == kHighest || b == kHighest) return kHighest;
  return boundOf(__int128{a} + b);
}

int64_t boundProduct(int64_t a, int64_t b) {
  return boundOf(__int128{a} * b);
}

}  // namespace

SizeExpression numberExpression(int64_t number) {
  if (number == 0) return {};
  return {{{}, number}};
}

std::optional<int64_t> numberIn(const SizeExpression& expression) {
  if (expression.empty()) return 0;
  if (expression.size() == 1 && expression.begin()->first.empty()) {
    return expression.begin()->second;
  }
  return std::nullopt;
}

int SizeTable::addSymbol(int64_t hint) {
  const int symbol = numSymbols();
  symbols_.push_back({hint, {kLeastOpen, kMost}, fmt::format("s{}", symbol)});
  atom_of_symbol_.push_back(static_cast<int>(atoms_.size()));
  atoms_.push_back({symbol, {}, {}});
  return symbol;
}

int SizeTable::addDecided(int64_t hint, int64_t least) {
  const int symbol = addSymbol(hint);
  Symbol& made = symbols_.back();
  made.name = fmt::format("u{}", symbol);
  made.range = {least, kMost};
  made.decided = true;
  return symbol;
}

void SizeTable::noteInGraph(int symbol) {
  symbols_[static_cast<size_t>(symbol)].in_graph = true;
  if (!guesses_all_ || !isHintTrue(symbol)) return;
  if (const Result difference = add(this->symbol(symbol), numberExpression(hintOf(symbol)), -1)) {
    holds(*difference, SizeRelation::kEqual);
  }
}

int64_t SizeTable::nextHint(bool element) const {
  if (symbols_.size() < hints_.size() && hints_[symbols_.size()] >= 0) {
    return hints_[symbols_.size()];
  }
  // Such as indices are in small tensors.
  if (element) return 1;
  // Such as few sizes are.
  constexpr int64_t kHints[] = {7, 11, 13, 17, 19, 23, 29, 31};
  return kHints[symbols_.size() % std::size(kHints)];
}

bool SizeTable::hasDecided(const SizeExpression& expression) const {
  return std::ranges::any_of(symbolsIn(expression), [&](int each) { return isDecided(each); });
}

bool SizeTable::hasAnyDecided() const {
  return std::ranges::any_of(symbols_, &Symbol::decided);
}

bool SizeTable::isAllFixed() const {
  for (int i = 0; i < numSymbols(); ++i) {
    if (!isFixed(i)) return false;
  }
  return true;
}

SizeExpression SizeTable::symbol(int symbol) const {
  if (isFixed(symbol)) return numberExpression(range(symbol).first);
  return {{{atom_of_symbol_[static_cast<size_t>(symbol)]}, 1}};
}

SizeTable::Result SizeTable::add(const SizeExpression& a, const SizeExpression& b, int64_t factor) {
  SizeExpression sum = a;
  for (const auto& [atoms, coefficient] : b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(coefficient, factor, &product)) return std::nullopt;
    if (!addTerm(sum, atoms, product)) return std::nullopt;
  }
  return sum;
}

SizeTable::Result SizeTable::multiply(const SizeExpression& a, const SizeExpression& b) {
  SizeExpression product;
  for (const auto& [x, cx] : a) {
    for (const auto& [y, cy] : b) {
      std::vector<int> both;
      std::ranges::merge(x, y, std::back_inserter(both));
      int64_t coefficient = 0;
      if (__builtin_mul_overflow(cx, cy, &coefficient)) return std::nullopt;
      if (!addTerm(product, both, coefficient)) return std::nullopt;
    }
  }
  return product;
}

SizeTable::Result SizeTable::floorDivide(const SizeExpression& dividend,
                                         const SizeExpression& divisor) {
  const SizeExpression a = simplified(dividend), b = simplified(divisor);
  const std::optional<int64_t> value = hint(b);
  if (!value || *value == 0) return std::nullopt;
  const auto number = numberIn(a), by = numberIn(b);
  if (number && by) return numberExpression(floorOf(*number, *by));
  // Terms that the divisor's only term divides leave the quotient.
  SizeExpression whole, rest = a;
  if (b.size() == 1) {
    const auto& [atoms, coefficient] = *b.begin();
    for (const auto& [of, times] : a) {
      if (times % coefficient != 0 || !std::ranges::includes(of, atoms)) continue;
      std::vector<int> left;
      std::ranges::set_difference(of, atoms, std::back_inserter(left));
      whole[left] = times / coefficient;
      rest.erase(of);
    }
  } else if (a == b) {
    return numberExpression(1);
  }
  // The divisor is not 0: dividing by it would have raised an error.
  if (!by && !whole.empty()) holds(b, SizeRelation::kEqual);
  if (rest.empty()) return whole;
  if (!whole.empty()) {
    const Result more = floorDivide(rest, b);
    return more ? add(whole, *more) : std::nullopt;
  }
  const auto [known, added] =
      quotients_.try_emplace(std::pair(rest, b), static_cast<int>(atoms_.size()));
  if (added) atoms_.push_back({-1, rest, b});
  return SizeExpression{{{known->second}, 1}};
}

SizeTable::Result SizeTable::remainder(const SizeExpression& a, const SizeExpression& b) {
  const Result quotient = floorDivide(a, b);
  const Result product = quotient ? multiply(*quotient, b) : std::nullopt;
  return product ? add(a, *product, -1) : std::nullopt;
}

std::optional<int64_t> SizeTable::hint(const SizeExpression& expression) const {
  std::vector<int64_t> hints;
  hints.reserve(symbols_.size());
  for (const Symbol& each : symbols_) hints.push_back(each.hint);
  return evaluate(expression, hints);
}

std::optional<int64_t> SizeTable::evaluate(const SizeExpression& expression,
                                           std::span<const int64_t> sizes) const {
  int64_t sum = 0;
  for (const auto& [atoms, coefficient] : expression) {
    int64_t product = coefficient;
    for (const int at : atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(at)];
      int64_t value = 0;
      if (atom.symbol >= 0) {
        value = sizes[static_cast<size_t>(atom.symbol)];
      } else {
        const auto a = evaluate(atom.dividend, sizes), b = evaluate(atom.divisor, sizes);
        if (!a || !b || *b == 0) return std::nullopt;
        value = floorOf(*a, *b);
      }
      if (__builtin_mul_overflow(product, value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

SizeExpression SizeTable::simplified(const SizeExpression& expression) const {
  SizeExpression made;
  for (const auto& [atoms, coefficient] : expression) {
    std::vector<int> left;
    int64_t factor = coefficient;
    for (const int at : atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(at)];
      std::optional<int64_t> number;
      if (atom.symbol >= 0) {
        if (isFixed(atom.symbol)) number = range(atom.symbol).first;
      } else {
        const auto a = numberIn(simplified(atom.dividend)), b = numberIn(simplified(atom.divisor));
        if (a && b && *b != 0) number = floorOf(*a, *b);
      }
      if (!number) {
        left.push_back(at);
      } else if (__builtin_mul_overflow(factor, *number, &factor)) {
        return expression;
      }
    }
    if (factor != 0 && !addTerm(made, left, factor)) return expression;
  }
  return made;
}

// ---- conditions ----

SizeTable::Range SizeTable::rangeOfAtom(int at) const {
  const Atom& atom = atoms_[static_cast<size_t>(at)];
  if (atom.symbol >= 0) return range(atom.symbol);
  const Range a = rangeOf(atom.dividend), b = rangeOf(atom.divisor);
  if (a.first < 0 || b.first < 1) return {kLeast, kMost};
  return {b.second == kMost ? 0 : a.first / b.second,
          a.second == kMost ? kMost : a.second / b.first};
}

SizeTable::Range SizeTable::rangeOf(const SizeExpression& expression) const {
  Range sum{0, 0};
  for (const auto& [atoms, coefficient] : expression) {
    Range product{1, 1};
    for (const int at : atoms) {
      const Range factor = rangeOfAtom(at);
      // Products of what may be negative are not followed.
      if (factor.first < 0 || product.first < 0) return {kLeast, kMost};
      product = {boundProduct(product.first, factor.first),
                 boundProduct(product.second, factor.second)};
    }
    const int64_t a = boundProduct(product.first, coefficient),
                  b = boundProduct(product.second, coefficient);
    // An end that is open on one side stays so.
    sum = {boundSum(sum.first, std::min(a, b)), sum.second == kMost || std::max(a, b) == kMost
                                                    ? kMost
                                                    : boundSum(sum.second, std::max(a, b))};
  }
  return sum;
}

std::optional<bool> SizeTable::answered(const Range& range, SizeRelation relation) {
  switch (relation) {
    case SizeRelation::kEqual:
      if (range.first == 0 && range.second == 0) return true;
      if (range.first > 0 || range.second < 0) return false;
      return std::nullopt;
    case SizeRelation::kLess:
      if (range.second < 0) return true;
      if (range.first >= 0) return false;
      return std::nullopt;
    default: {
      const std::optional<bool> other = answered(range, opposite(relation));
      return other ? std::optional(!*other) : std::nullopt;
    }
  }
}

bool SizeTable::narrow(const SizeExpression& expression, SizeRelation relation, bool truth) {
  if (!truth) return narrow(expression, opposite(relation), true);
  // factor * symbol + offset
  int64_t offset = 0, factor = 0;
  int symbol = -1;
  for (const auto& [atoms, coefficient] : expression) {
    if (atoms.empty()) {
      offset = coefficient;
    } else if (atoms.size() == 1 && symbol < 0) {
      symbol = atoms_[static_cast<size_t>(atoms[0])].symbol;
      factor = coefficient;
      if (symbol < 0) return false;
    } else {
      return false;
    }
  }
  if (symbol < 0) return false;
  Range& known = symbols_[static_cast<size_t>(symbol)].range;
  switch (relation) {
    case SizeRelation::kEqual:
      known = {hintOf(symbol), hintOf(symbol)};
      return true;
    case SizeRelation::kLess:  // factor * symbol < -offset
      if (factor > 0) known.second = std::min(known.second, floorOf(-offset - 1, factor));
      if (factor < 0) known.first = std::max(known.first, floorOf(offset, -factor) + 1);
      return true;
    case SizeRelation::kAtLeast:  // factor * symbol >= -offset
      if (factor > 0) known.first = std::max(known.first, -floorOf(offset, factor));
      if (factor < 0) known.second = std::min(known.second, floorOf(offset, -factor));
      return true;
    default:
      return false;
  }
}

bool SizeTable::holds(const SizeExpression& expression, SizeRelation relation) {
  const SizeExpression simple = simplified(expression);
  const std::optional<int64_t> value = hint(simple);
  if (!value) {
    for (const int each : symbolsIn(expression)) fixSymbol(each);
    throw InternalError(__FILE__, __LINE__, "a size without a value");
  }
  const bool truth = isTrue(*value, relation);
  if (const auto answer = answered(rangeOf(simple), relation)) return *answer;
  const bool guessed = hasDecided(simple);
  if (guessed) checkGuess(simple, relation, truth);
  if (!guessed && narrow(simple, relation, truth)) return truth;
  SizeCondition condition{simple, truth ? relation : opposite(relation), guessed, numSymbols()};
  const bool known = std::ranges::any_of(conditions_, [&](const SizeCondition& each) {
    return each.relation == condition.relation && each.expression == condition.expression;
  });
  // From here on a number that is guessed exactly is that number.
  if (guessed && condition.relation == SizeRelation::kEqual) narrow(simple, relation, truth);
  if (!known) conditions_.push_back(std::move(condition));
  return truth;
}

int64_t SizeTable::fix(const SizeExpression& expression) {
  const std::optional<int64_t> value = hint(expression);
  if (!value) throw InternalError(__FILE__, __LINE__, "a size without a value");
  if (hasDecided(simplified(expression))) throw UnknownSize(text(expression));
  if (const auto difference = add(expression, numberExpression(*value), -1)) {
    holds(*difference, SizeRelation::kEqual);
  } else {
    for (const int each : symbolsIn(expression)) fixSymbol(each);
  }
  return *value;
}

void SizeTable::fixSymbol(int symbol) {
  if (isDecided(symbol)) throw UnknownSize(nameOf(symbol));
  symbols_[static_cast<size_t>(symbol)].range = {hintOf(symbol), hintOf(symbol)};
}

void SizeTable::collectSymbols(const SizeExpression& expression, std::vector<int>& symbols) const {
  for (const auto& [atoms, coefficient] : expression) {
    for (const int at : atoms) {
      const Atom& atom = atoms_[static_cast<size_t>(at)];
      if (atom.symbol >= 0) {
        symbols.push_back(atom.symbol);
      } else {
        collectSymbols(atom.dividend, symbols);
        collectSymbols(atom.divisor, symbols);
      }
    }
  }
}

std::vector<int> SizeTable::symbolsIn(const SizeExpression& expression) const {
  std::vector<int> symbols;
  collectSymbols(expression, symbols);
  std::ranges::sort(symbols);
  const auto again = std::ranges::unique(symbols);
  symbols.erase(again.begin(), again.end());
  return symbols;
}

bool SizeTable::matches(std::span<const int64_t> sizes) const {
  for (size_t i = 0; i < symbols_.size(); ++i) {
    const Range& range = symbols_[i].range;
    if (symbols_[i].decided) continue;
    if (sizes[i] < range.first || sizes[i] > range.second) return false;
  }
  return std::ranges::all_of(conditions_, [&](const SizeCondition& each) {
    return each.guessed || holdsCondition(each, sizes);
  });
}

bool SizeTable::holdsCondition(const SizeCondition& condition,
                               std::span<const int64_t> sizes) const {
  const std::optional<int64_t> value = evaluate(condition.expression, sizes);
  return value && isTrue(*value, condition.relation);
}

bool SizeTable::hasGuesses() const {
  return std::ranges::any_of(conditions_, &SizeCondition::guessed);
}

std::vector<int> SizeTable::guessedSymbols() const {
  std::vector<int> symbols;
  for (const SizeCondition& each : conditions_) {
    if (each.guessed) collectSymbols(each.expression, symbols);
  }
  std::ranges::sort(symbols);
  const auto again = std::ranges::unique(symbols);
  symbols.erase(again.begin(), again.end());
  return symbols;
}

bool SizeTable::isGuessedExactly(int symbol) const {
  return std::ranges::any_of(conditions_, [&](const SizeCondition& each) {
    if (!each.guessed || each.relation != SizeRelation::kEqual) return false;
    const std::vector<int> symbols = symbolsIn(each.expression);
    return std::ranges::find(symbols, symbol) != symbols.end();
  });
}

bool SizeTable::guessesHold(std::span<const int64_t> sizes) const {
  return std::ranges::all_of(conditions_, [&](const SizeCondition& each) {
    return !each.guessed || holdsCondition(each, sizes);
  });
}

size_t SizeTable::numBeforeWrongGuess(std::span<const int64_t> sizes) const {
  size_t count = symbols_.size();
  for (const SizeCondition& each : conditions_) {
    if (!each.guessed || holdsCondition(each, sizes)) continue;
    count = std::min(count, static_cast<size_t>(each.symbols));
  }
  return count;
}

bool SizeTable::isMeasured(const SizeExpression& expression) const {
  return std::ranges::all_of(symbolsIn(expression),
                             [&](int each) { return !isDecided(each) || isHintTrue(each); });
}

// Throws UnknownSize where the answer for the hints is no guess: for equal numbers, and for elements, the hints
// must be those of a run, and the graph must know the numbers.
void SizeTable::checkGuess(const SizeExpression& expression, SizeRelation relation,
                           bool truth) const {
  const std::vector<int> symbols = symbolsIn(expression);
  const bool known = std::ranges::all_of(
      symbols, [&](int each) { return symbols_[static_cast<size_t>(each)].in_graph; });
  const bool equal = truth ? relation == SizeRelation::kEqual : relation == SizeRelation::kNotEqual;
  const bool element = std::ranges::any_of(symbols, [&](int each) { return isElement(each); });
  if (!may_guess_ || !known || ((equal || element) && !isMeasured(expression)))
    throw UnknownSize(text(expression));
}

// ---- texts ----

std::string SizeTable::atomText(int at) const {
  const Atom& atom = atoms_[static_cast<size_t>(at)];
  if (atom.symbol >= 0) return symbols_[static_cast<size_t>(atom.symbol)].name;
  return fmt::format("(({}) // ({}))", text(atom.dividend), text(atom.divisor));
}

std::string SizeTable::text(const SizeExpression& expression) const {
  std::string all;
  for (auto term = expression.rbegin(); term != expression.rend(); ++term) {
    const auto& [atoms, coefficient] = *term;
    std::string product;
    for (const int at : atoms) product += (product.empty() ? "" : " * ") + atomText(at);
    const int64_t times = all.empty() ? coefficient : std::abs(coefficient);
    if (!all.empty()) all += coefficient < 0 ? " - " : " + ";
    if (product.empty()) {
      all += fmt::format("{}", times);
    } else {
      all += times == 1 ? product : fmt::format("{} * {}", times, product);
    }
  }
  return all.empty() ? "0" : all;
}

std::vector<std::string> SizeTable::lines() const {
  std::vector<std::string> lines;
  for (const Symbol& each : symbols_) {
    if (each.decided) continue;
    const auto [first, last] = each.range;
    if (first == last) {
      lines.push_back(fmt::format("{} == {}", each.name, first));
    } else if (last != kMost) {
      lines.push_back(fmt::format("{} <= {} <= {}", first, each.name, last));
    } else {
      lines.push_back(fmt::format("{} <= {}", first, each.name));
    }
  }
  static constexpr const char* kSigns[] = {"==", "!=", "<", ">="};
  for (const SizeCondition& each : conditions_) {
    lines.push_back(fmt::format("{} {} 0{}", text(each.expression),
                                kSigns[static_cast<size_t>(each.relation)],
                                each.guessed ? ", asked when the graph has run" : ""));
  }
  return lines;
}

}  // namespace wick::capture
