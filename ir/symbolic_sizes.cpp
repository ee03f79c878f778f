// An expression is kept as a polynomial over symbols that are free or quotients, so that equal
// expressions have equal forms. A symbol that stands for a sum never occurs inside of another
// expression: it is expanded there.
#include "ir/symbolic_sizes.h"

#include <fmt/format.h>

#include <algorithm>

namespace wick {

namespace {

constexpr size_t kMaxTerms = 16;
constexpr size_t kMaxDegree = 8;
constexpr int64_t kMaxCoefficient = int64_t{1} << 40;

thread_local SymbolicSizes* current_sizes = nullptr;

bool inRange(__int128 v) {
  return v <= kMaxCoefficient && v >= -kMaxCoefficient;
}

Size narrow(__int128 v) {
  if (v < 0 || v > INT64_MAX) return std::nullopt;
  return static_cast<int64_t>(v);
}

bool isNumber(Size s) {
  return s && *s >= 0;
}

}  // namespace

SymbolicSizes* SymbolicSizes::current() {
  return current_sizes;
}

SymbolicSizes::Scope::Scope(SymbolicSizes& sizes) : outer_(current_sizes) {
  current_sizes = &sizes;
}

SymbolicSizes::Scope::~Scope() {
  current_sizes = outer_;
}

SymbolicSizes::Polynomial SymbolicSizes::expand(int64_t s) const {
  if (s == 0) return {};
  if (s > 0) return {{{}, s}};
  auto it = meaning_.find(s);
  return it == meaning_.end() ? Polynomial{{{s}, 1}} : it->second;
}

Size SymbolicSizes::symbolFor(Polynomial p) {
  std::erase_if(p, [](const auto& term) { return term.second == 0; });
  if (p.empty()) return 0;
  if (p.size() > kMaxTerms) return std::nullopt;
  for (const auto& [monomial, coefficient] : p) {
    if (monomial.size() > kMaxDegree || !inRange(coefficient)) return std::nullopt;
  }
  const auto& [monomial, coefficient] = *p.begin();
  if (p.size() == 1 && monomial.empty()) return narrow(coefficient);
  if (p.size() == 1 && monomial.size() == 1 && coefficient == 1) return monomial[0];
  auto [it, added] = sums_.emplace(p, 0);
  if (added) {
    it->second = fresh();
    meaning_.emplace(it->second, std::move(p));
  }
  return it->second;
}

Size SymbolicSizes::add(Size a, Size b) {
  if (!a || !b) return std::nullopt;
  if (*a >= 0 && *b >= 0) return narrow(__int128{*a} + *b);
  Polynomial sum = expand(*a);
  for (const auto& [monomial, coefficient] : expand(*b)) {
    if (!inRange(coefficient)) return std::nullopt;
    sum[monomial] += coefficient;
  }
  return symbolFor(std::move(sum));
}

Size SymbolicSizes::subtract(Size a, Size b) {
  if (!a || !b) return std::nullopt;
  if (*a >= 0 && *b >= 0) return narrow(__int128{*a} - *b);
  Polynomial difference = expand(*a);
  for (const auto& [monomial, coefficient] : expand(*b)) {
    if (!inRange(coefficient)) return std::nullopt;
    difference[monomial] -= coefficient;
  }
  return symbolFor(std::move(difference));
}

Size SymbolicSizes::multiply(Size a, Size b) {
  if (a == Size(0) || b == Size(0)) return 0;
  if (!a || !b) return std::nullopt;
  if (*a >= 0 && *b >= 0) return narrow(__int128{*a} * *b);
  Polynomial product;
  for (const auto& [x, cx] : expand(*a)) {
    for (const auto& [y, cy] : expand(*b)) {
      if (x.size() + y.size() > kMaxDegree || !inRange(__int128{cx} * cy)) return std::nullopt;
      Monomial both;
      std::merge(x.begin(), x.end(), y.begin(), y.end(), std::back_inserter(both));
      product[both] += cx * cy;
    }
  }
  return symbolFor(std::move(product));
}

Size SymbolicSizes::floorDivide(Size a, Size b) {
  if (!a || !b || *b == 0 || !neverNegative(b)) return std::nullopt;
  if (*a >= 0 && *b > 0) return *a / *b;
  if (*a == *b) return 1;
  Polynomial n = expand(*a);
  Polynomial d = expand(*b);
  if (d.size() == 1) {
    const auto& [divisor, factor] = *d.begin();
    Polynomial quotient;
    bool exact = true;
    for (const auto& [monomial, coefficient] : n) {
      exact = exact && coefficient % factor == 0 &&
              std::includes(monomial.begin(), monomial.end(), divisor.begin(), divisor.end());
      if (!exact) break;
      Monomial rest;
      std::set_difference(monomial.begin(), monomial.end(), divisor.begin(), divisor.end(),
                          std::back_inserter(rest));
      quotient[rest] += coefficient / factor;
    }
    if (exact) return symbolFor(std::move(quotient));
  }
  auto [it, added] = quotients_.emplace(Quotient(n, d), 0);
  if (added) {
    it->second = fresh();
    quotient_meaning_.emplace(it->second, Quotient(std::move(n), std::move(d)));
  }
  return it->second;
}

bool SymbolicSizes::neverNegative(Size a) const {
  return a && (*a >= 0 || neverNegative(expand(*a)));
}

bool SymbolicSizes::neverNegative(const Polynomial& p) const {
  for (const auto& [monomial, coefficient] : p) {
    if (coefficient < 0) return false;
    for (int64_t symbol : monomial) {
      auto it = quotient_meaning_.find(symbol);  // the divisor is not negative
      if (it != quotient_meaning_.end() && !neverNegative(it->second.first)) return false;
    }
  }
  return true;
}

std::vector<SymbolicSizes::Term> SymbolicSizes::termsOf(const Polynomial& p) {
  std::vector<Term> all;
  for (const auto& [monomial, coefficient] : p) all.push_back({coefficient, monomial});
  return all;
}

std::vector<SymbolicSizes::Term> SymbolicSizes::terms(int64_t size) const {
  return termsOf(expand(size));
}

std::optional<std::pair<std::vector<SymbolicSizes::Term>, std::vector<SymbolicSizes::Term>>>
SymbolicSizes::quotient(int64_t symbol) const {
  const auto found = quotient_meaning_.find(symbol);
  if (found == quotient_meaning_.end()) return std::nullopt;
  return std::pair(termsOf(found->second.first), termsOf(found->second.second));
}

std::string SymbolicSizes::text(const Polynomial& p) const {
  std::string out;
  for (auto term = p.rbegin(); term != p.rend(); ++term) {
    const auto& [monomial, coefficient] = *term;
    if (!out.empty()) out += " + ";
    if (monomial.empty() || coefficient != 1) out += fmt::format("{}", coefficient);
    for (size_t i = 0; i < monomial.size(); ++i) {
      if (i > 0 || coefficient != 1) out += "*";
      auto it = quotient_meaning_.find(monomial[i]);
      out += it == quotient_meaning_.end()
                 ? fmt::format("SS({})", monomial[i])
                 : fmt::format("(({}) // ({}))", text(it->second.first), text(it->second.second));
    }
  }
  return out.empty() ? "0" : out;
}

std::string SymbolicSizes::str(Size s) const {
  return s ? text(expand(*s)) : "*";
}

std::optional<int64_t> SymbolicSizes::evaluate(
    Size s, const std::function<std::optional<int64_t>(int64_t symbol)>& free) const {
  if (!s) return std::nullopt;
  return evaluate(expand(*s), free);
}

std::optional<int64_t> SymbolicSizes::evaluate(
    const Polynomial& p, const std::function<std::optional<int64_t>(int64_t symbol)>& free) const {
  int64_t sum = 0;
  for (const auto& [monomial, coefficient] : p) {
    int64_t product = coefficient;
    for (int64_t symbol : monomial) {
      std::optional<int64_t> value;
      if (auto it = quotient_meaning_.find(symbol); it != quotient_meaning_.end()) {
        std::optional<int64_t> n = evaluate(it->second.first, free);
        std::optional<int64_t> d = evaluate(it->second.second, free);
        if (!n || !d || *d <= 0) return std::nullopt;
        value = *n / *d - (*n % *d < 0 ? 1 : 0);
      } else {
        value = free(symbol);
      }
      if (!value || __builtin_mul_overflow(product, *value, &product)) return std::nullopt;
    }
    if (__builtin_add_overflow(sum, product, &sum)) return std::nullopt;
  }
  return sum;
}

namespace {
template <Size (SymbolicSizes::*operation)(Size, Size)>
Size compute(Size a, Size b) {
  if (SymbolicSizes* sizes = SymbolicSizes::current()) return (sizes->*operation)(a, b);
  if ((a && *a < 0) || (b && *b < 0)) return std::nullopt;
  SymbolicSizes numbers;
  return (numbers.*operation)(a, b);
}
}  // namespace

Size addSizes(Size a, Size b) {
  if (a == Size(0)) return b;
  if (b == Size(0)) return a;
  return compute<&SymbolicSizes::add>(a, b);
}

Size subtractSizes(Size a, Size b) {
  if (b == Size(0)) return a;
  return compute<&SymbolicSizes::subtract>(a, b);
}

Size multiplySizes(Size a, Size b) {
  if (a == Size(1)) return b;
  if (b == Size(1)) return a;
  return compute<&SymbolicSizes::multiply>(a, b);
}

Size divideSizes(Size a, Size b) {
  if (b == Size(1)) return a;
  return compute<&SymbolicSizes::floorDivide>(a, b);
}

bool isNeverNegative(Size a) {
  if (isNumber(a)) return true;
  const SymbolicSizes* sizes = SymbolicSizes::current();
  return sizes && sizes->neverNegative(a);
}

Size productOf(const Sizes& sizes) {
  Size product = 1;
  for (Size s : sizes) product = multiplySizes(product, s);
  return product;
}

}  // namespace wick
