// A column is fitted by terms that sizes commonly have: products of sizes, their quotients rounded down, and
// comparisons of products. What fits is looked at for every position, exactly, before it is taken.
#include "aot/size_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.h"

namespace wick::aot {

namespace {

bool isIdentifier(char c) {
  return c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}
bool isDigit(char c) {
  return c >= '0' && c <= '9';
}

// The end of the number that begins at `at`: with a sign behind the exponent.
size_t endOfNumber(std::string_view text, size_t at) {
  const bool hex = text.substr(at, 2) == "0x";
  size_t end = at;
  for (; end < text.size(); ++end) {
    const char c = text[end], before = end > at ? text[end - 1] : ' ';
    const bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
    if (!isIdentifier(c) && c != '.' && !((c == '+' || c == '-') && exponent)) break;
  }
  return end;
}

// What kind of number this is; nullopt for those that are not cut out, as 0x3c00u.
std::optional<CutText::Kind> kindOf(std::string_view number) {
  if (std::ranges::all_of(number, isDigit)) return CutText::Kind::Integer;
  if (number.find_first_of(".p") == std::string_view::npos) return std::nullopt;
  return number.back() == 'f' ? CutText::Kind::Float : CutText::Kind::Double;
}

// A product of sizes or a quotient, with its value at each position.
struct Term {
  std::string text;
  std::vector<int64_t> values;
};
constexpr int64_t kLargest = int64_t{1} << 61;

Term timesOf(const Term& a, const Term& b) {
  Term product{a.text.empty() ? b.text : a.text + " * " + b.text, {}};
  for (size_t i = 0; i < a.values.size(); ++i) {
    product.values.push_back(a.values[i] * b.values[i]);
  }
  return product;
}

// Whether the sum of coefficients times terms is the numbers, and no part of it overflows.
bool gives(const std::vector<int64_t>& coefficients, const std::vector<const Term*>& terms,
           const std::vector<int64_t>& numbers) {
  for (size_t i = 0; i < numbers.size(); ++i) {
    __int128 sum = 0;
    for (size_t t = 0; t < terms.size(); ++t) {
      const __int128 part = static_cast<__int128>(coefficients[t]) * terms[t]->values[i];
      sum += part;
      if (part > kLargest || part < -kLargest || sum > kLargest || sum < -kLargest) return false;
    }
    if (sum != numbers[i]) return false;
  }
  return true;
}

// Coefficients with which the terms, the earlier ones preferred, give the numbers.
std::optional<std::vector<int64_t>> fit(const std::vector<const Term*>& terms,
                                        const std::vector<int64_t>& numbers) {
  constexpr size_t kRows = 48;
  const size_t width = terms.size(), count = std::min(numbers.size(), kRows);
  const size_t stride = width + 1;
  // One allocation: thousands of fits are tried.
  std::vector<long double> rows(count * stride);
  const auto at = [&](size_t row, size_t column) -> long double& {
    return rows[row * stride + column];
  };
  for (size_t r = 0; r < count; ++r) {
    const size_t i = count > 1 ? r * (numbers.size() - 1) / (count - 1) : 0;
    long double largest = 1;
    for (size_t t = 0; t < width; ++t) {
      at(r, t) = static_cast<long double>(terms[t]->values[i]);
      largest = std::max(largest, std::fabs(at(r, t)));
    }
    at(r, width) = static_cast<long double>(numbers[i]);
    for (size_t c = 0; c <= width; ++c) at(r, c) /= largest;
  }
  // By Gauss and Jordan, term after term.
  std::vector<size_t> pivots(width, count);
  size_t next = 0;
  for (size_t t = 0; t < width && next < count; ++t) {
    size_t best = next;
    for (size_t r = next; r < count; ++r) {
      if (std::fabs(at(r, t)) > std::fabs(at(best, t))) best = r;
    }
    if (std::fabs(at(best, t)) < 1e-12L) continue;
    if (best != next) std::swap_ranges(&at(next, 0), &at(next, 0) + stride, &at(best, 0));
    for (size_t r = 0; r < count; ++r) {
      if (r == next || at(r, t) == 0) continue;
      const long double factor = at(r, t) / at(next, t);
      for (size_t c = t; c <= width; ++c) at(r, c) -= factor * at(next, c);
    }
    pivots[t] = next++;
  }
  std::vector<int64_t> coefficients(width, 0);
  for (size_t t = 0; t < width; ++t) {
    if (pivots[t] == count) continue;
    const long double c = std::round(at(pivots[t], width) / at(pivots[t], t));
    if (!(std::fabs(c) < 1e15L)) return std::nullopt;
    coefficients[t] = static_cast<int64_t>(c);
  }
  if (!gives(coefficients, terms, numbers)) return std::nullopt;
  return coefficients;
}

std::string sumText(const std::vector<int64_t>& coefficients,
                    const std::vector<const Term*>& terms) {
  std::string text;
  for (size_t t = 0; t < terms.size(); ++t) {
    const int64_t c = coefficients[t];
    if (c == 0) continue;
    const std::string& name = terms[t]->text;
    const int64_t size = std::abs(c);
    const std::string part = name.empty() ? fmt::format("{}", size)
                             : size == 1  ? name
                                          : fmt::format("{} * {}", size, name);
    text += text.empty() ? (c < 0 ? "-" : "") : (c < 0 ? " - " : " + ");
    text += part;
  }
  return text.empty() ? "0" : text;
}

// The terms that numbers may consist of, at some positions.
class Terms {
 public:
  Terms(const SizeSpace& space, const std::vector<size_t>& positions) {
    one_.values.assign(positions.size(), 1);
    for (size_t s = 0; s < space.symbols().size(); ++s) {
      Term& size = sizes_.emplace_back();
      size.text = "size_" + space.symbols()[s].name;
      for (size_t p : positions) size.values.push_back(space.at(p)[s]);
    }
    for (size_t a = 0; a < sizes_.size(); ++a) {
      for (size_t b = a; b < sizes_.size(); ++b) {
        pairs_.push_back(timesOf(sizes_[a], sizes_[b]));
        for (size_t c = b; c < sizes_.size(); ++c) {
          triples_.push_back(timesOf(pairs_.back(), sizes_[c]));
        }
      }
    }
  }

  std::optional<std::string> sum(const std::vector<int64_t>& numbers) const {
    std::vector<const Term*> terms{&one_};
    for (const std::vector<Term>* more : {&sizes_, &pairs_, &triples_}) {
      for (const Term& t : *more) terms.push_back(&t);
      if (const auto c = fit(terms, numbers)) return sumText(*c, terms);
    }
    return std::nullopt;
  }

  // Of what lies between zero and one.
  std::optional<std::string> comparison(const std::vector<int64_t>& numbers) const {
    if (std::ranges::any_of(numbers, [](int64_t n) { return n != 0 && n != 1; })) {
      return std::nullopt;
    }
    for (const std::vector<Term>* some : {&sizes_, &pairs_, &triples_}) {
      for (const Term& t : *some) {
        for (const int64_t above : {1, 0}) {
          int64_t least = INT64_MAX, most = INT64_MIN;  // of those at or above the bound, and below
          for (size_t i = 0; i < numbers.size(); ++i) {
            if (numbers[i] == above) {
              least = std::min(least, t.values[i]);
            } else {
              most = std::max(most, t.values[i]);
            }
          }
          if (most < least) {
            return fmt::format("{} {} {} ? 1 : 0", t.text, above == 1 ? ">=" : "<", least);
          }
        }
      }
    }
    return std::nullopt;
  }

  // With one quotient: a multiple of it, or together with other terms.
  std::optional<std::string> quotient(const std::vector<int64_t>& numbers, bool alone) const {
    constexpr int64_t kWhole = 16;
    for (size_t s = 0; s < sizes_.size(); ++s) {
      for (const int64_t d : {2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 32, 64, 128}) {
        for (int64_t b = 0; b < d; b += d <= kWhole ? 1 : d - 1) {
          Term q{b == 0 ? fmt::format("({} / {})", sizes_[s].text, d)
                        : fmt::format("(({} + {}) / {})", sizes_[s].text, b, d),
                 {}};
          for (const int64_t v : sizes_[s].values) q.values.push_back((v + b) / d);
          if (alone) {
            const std::vector<const Term*> terms{&one_, &q};
            if (const auto c = fit(terms, numbers)) return sumText(*c, terms);
            continue;
          }
          std::vector<Term> more{timesOf(q, sizes_[s]), timesOf(q, q)};
          std::vector<const Term*> terms{&one_, &sizes_[s], &q};
          for (size_t o = 0; o < sizes_.size(); ++o) {
            if (o == s) continue;
            terms.push_back(&sizes_[o]);
            more.push_back(timesOf(sizes_[o], q));
            more.push_back(timesOf(sizes_[o], sizes_[s]));
            more.push_back(timesOf(more[more.size() - 2], q));
          }
          for (const Term& t : more) terms.push_back(&t);
          if (const auto c = fit(terms, numbers)) return sumText(*c, terms);
        }
      }
    }
    return std::nullopt;
  }

 private:
  Term one_;
  std::vector<Term> sizes_, pairs_, triples_;
};

}  // namespace

CutText cutAtNumbers(std::string_view text) {
  CutText cut;
  cut.pieces.emplace_back();
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c == '"') {
      size_t end = at + 1;
      while (end < text.size() && text[end] != '"') end += text[end] == '\\' ? 2 : 1;
      end = std::min(end + 1, text.size());
      cut.pieces.back() += text.substr(at, end - at);
      at = end;
    } else if (isDigit(c)) {
      const size_t end = endOfNumber(text, at);
      const std::string_view number = text.substr(at, end - at);
      const std::optional<CutText::Kind> kind = kindOf(number);
      const bool of_template = at > 0 && text[at - 1] == '<';
      if (kind && !of_template) {
        cut.numbers.push_back({std::string(number), *kind});
        cut.pieces.emplace_back();
      } else {
        cut.pieces.back() += number;
      }
      at = end;
    } else if (isIdentifier(c)) {
      size_t end = at;
      while (end < text.size() && isIdentifier(text[end])) ++end;
      cut.pieces.back() += text.substr(at, end - at);
      at = end;
    } else {
      cut.pieces.back() += c;
      ++at;
    }
  }
  return cut;
}

void CutText::appendForm(std::string& form) const {
  for (size_t i = 0; i < pieces.size(); ++i) {
    form += pieces[i];
    if (i < numbers.size()) form += static_cast<char>(1 + static_cast<int>(numbers[i].kind));
  }
  form += '\4';
}

SizeSpace::SizeSpace(std::vector<Symbol> symbols, size_t most) : symbols_(std::move(symbols)) {
  WICK_CHECK(symbols_.size() <= kMostSymbols, "expected at most {} names of sizes, got {}",
             kMostSymbols, symbols_.size());
  for (const Symbol& s : symbols_) {
    WICK_CHECK(s.minimum >= 0 && s.minimum <= s.maximum && s.step >= 1,
               "sizes {}: expected a range from a minimum up to a maximum, got {} to {} by {}",
               s.name, s.minimum, s.maximum, s.step);
    constexpr int64_t kLargestSize = int64_t{1} << 20;
    WICK_CHECK(s.maximum <= kLargestSize, "sizes {}: expected at most {}, got {}", s.name,
               kLargestSize, s.maximum);
    count_ *= static_cast<size_t>(s.count());
    WICK_CHECK(
        count_ <= most,
        "more than {} combinations of sizes; each is looked at while building. Smaller ranges "
        "or larger steps have fewer",
        most);
  }
}

std::vector<int64_t> SizeSpace::at(size_t position) const {
  std::vector<int64_t> sizes(symbols_.size());
  for (size_t s = symbols_.size(); s-- > 0;) {
    const auto n = static_cast<size_t>(symbols_[s].count());
    sizes[s] = symbols_[s].minimum + static_cast<int64_t>(position % n) * symbols_[s].step;
    position /= n;
  }
  return sizes;
}

size_t SizeSpace::positionOf(const std::vector<int64_t>& sizes) const {
  size_t position = 0;
  for (size_t s = 0; s < symbols_.size(); ++s) {
    const Symbol& symbol = symbols_[s];
    position = position * static_cast<size_t>(symbol.count()) +
               static_cast<size_t>((sizes[s] - symbol.minimum) / symbol.step);
  }
  return position;
}

std::string SizeSpace::describe(size_t position) const {
  const std::vector<int64_t> sizes = at(position);
  std::string text;
  for (size_t s = 0; s < sizes.size(); ++s) {
    text += fmt::format("{}{}={}", s == 0 ? "" : ", ", symbols_[s].name, sizes[s]);
  }
  return text;
}

void Column::add(const CutText::Number& number, size_t index) {
  if (index == 0) {
    first = number;
    kind = number.kind;
    return;
  }
  if (!varies) {
    if (number == first) return;
    varies = true;
    others.assign(index, first);
  }
  others.push_back(number);
}

const std::string& SizeTables::add(const std::string& type,
                                   const std::vector<std::string>& entries) {
  std::string list;
  for (const std::string& e : entries) list += (list.empty() ? "" : ", ") + e;
  const auto [known, added] = names_.try_emplace(type + " " + list);
  if (added) {
    known->second = fmt::format("sized_{}", names_.size());
    text_ += fmt::format("const {} {}[] = {{{}}};\n", type, known->second, list);
    entries_ += entries.size();
  }
  return known->second;
}

std::string SizeExpressions::tableOf(const Column& column, const std::vector<size_t>& positions) {
  std::vector<std::string> entries(space_.count(), "0");
  for (size_t i = 0; i < positions.size(); ++i) entries[positions[i]] = column.others[i].text;
  const char* type = column.kind == CutText::Kind::Integer ? "int64_t"
                     : column.kind == CutText::Kind::Float ? "float"
                                                           : "double";
  return tables_.add(type, entries) + "[position]";
}

std::string SizeExpressions::write(const Column& column, const std::vector<size_t>& positions) {
  if (column.kind != CutText::Kind::Integer) return tableOf(column, positions);
  std::vector<int64_t> numbers;
  for (const CutText::Number& n : column.others) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(n.text.data(), n.text.data() + n.text.size(), value);
    if (error != std::errc() || value > kLargest) return tableOf(column, positions);
    numbers.push_back(value);
  }
  const Terms terms(space_, positions);
  if (auto text = terms.sum(numbers)) return *text;
  if (auto text = terms.comparison(numbers)) return *text;
  if (auto text = terms.quotient(numbers, true)) return *text;
  if (auto text = terms.quotient(numbers, false)) return *text;
  return tableOf(column, positions);
}

}  // namespace wick::aot
