#include "serialization/exported/size_fit.h"

#include <algorithm>
#include <random>

#include "runtime/ops/arithmetic.h"

namespace wick::exported {
namespace {

// More sizes near a number are not looked at.
constexpr size_t kMostNear = 64;

// The example whose value is another one than that of the first example; the number of examples where there is none.
size_t otherExample(const std::vector<int64_t>& values) {
  size_t other = 1;
  while (other < values.size() && values[other] == values[0]) ++other;
  return other;
}

// {a, b} such that values = a·of + b and a is not zero.
std::optional<std::pair<int64_t, int64_t>> lineThrough(const std::vector<int64_t>& of,
                                                       const std::vector<int64_t>& values) {
  // Two examples that differ decide, and all others must agree.
  const size_t other = otherExample(of);
  if (other == of.size()) return std::nullopt;
  using Wide = __int128;
  const Wide run = static_cast<Wide>(of[other]) - of[0];
  const Wide rise = static_cast<Wide>(values[other]) - values[0];
  if (rise % run != 0 || rise == 0) return std::nullopt;
  const auto factor = static_cast<int64_t>(rise / run);
  const Wide rest = values[0] - static_cast<Wide>(factor) * of[0];
  if (factor != rise / run || rest != static_cast<int64_t>(rest)) return std::nullopt;
  for (size_t e = 0; e < of.size(); ++e) {
    if (values[e] != static_cast<Wide>(factor) * of[e] + rest) return std::nullopt;
  }
  return std::pair(factor, static_cast<int64_t>(rest));
}

}  // namespace

bool SizeFit::gives(const SizeExpression& expression, const std::vector<int64_t>& values) const {
  for (size_t e = 0; e < count(); ++e) {
    if (SizeArithmetic::valueAt(expression, examples_[e]) != values[e]) return false;
  }
  return true;
}

std::optional<SizeFit::Base> SizeFit::baseOf(const SizeExpression& expression) const {
  Base base{expression, {}};
  for (const std::vector<int64_t>& example : examples_) {
    const std::optional<int64_t> value = SizeArithmetic::valueAt(expression, example);
    if (!value) return std::nullopt;
    base.values.push_back(*value);
  }
  return base;
}

std::optional<SizeExpression> SizeFit::affine(const std::vector<int64_t>& values,
                                              const Base& base) const {
  const auto line = lineThrough(base.values, values);
  if (!line) return std::nullopt;
  return arithmetic_.sum(arithmetic_.product(SizeArithmetic::number(line->first), base.expression),
                         SizeArithmetic::number(line->second));
}

std::optional<SizeExpression> SizeFit::expressionOf(const std::vector<int64_t>& values,
                                                    const std::vector<SizeVector>& near) const {
  if (otherExample(values) == values.size()) return SizeArithmetic::number(values[0]);
  std::vector<Base> symbols;
  for (size_t k = 0; k < examples_[0].size(); ++k) {
    symbols.push_back(*baseOf(SizeArithmetic::symbol(k)));
  }
  std::vector<Base> bases;
  for (const SizeVector& sizes : near) {
    for (const SizeExpression& size : sizes) {
      if (size.kind == SizeExpression::Kind::Number || bases.size() == kMostNear) continue;
      std::optional<Base> base = baseOf(size);
      if (base && base->values == values) return size;
      if (base && otherExample(base->values) < count()) bases.push_back(std::move(*base));
    }
  }
  bases.insert(bases.begin(), symbols.begin(), symbols.end());
  for (const Base& symbol : symbols) {
    if (auto out = affine(values, symbol)) return out;
  }
  for (size_t a = 0; a < symbols.size(); ++a) {
    for (size_t b = a; b < symbols.size(); ++b) {
      const auto both = baseOf(arithmetic_.product(symbols[a].expression, symbols[b].expression));
      if (auto out = both ? affine(values, *both) : std::nullopt) return out;
    }
  }
  if (auto out = productOfNeighbours(values, near)) return out;
  if (auto out = extremeOf(values, bases)) return out;
  std::vector<SizeExpression> candidates;
  for (const Base& base : bases) {
    if (auto out = affine(values, base)) candidates.push_back(std::move(*out));
  }
  if (!candidates.empty()) return onlyOne(candidates);
  // Sizes that are near come before those of the arguments.
  std::ranges::rotate(bases, bases.begin() + static_cast<std::ptrdiff_t>(symbols.size()));
  for (const Base& base : bases) {
    candidates.clear();
    addQuotients(values, base, candidates);
    if (auto out = onlyOne(candidates)) return out;
  }
  candidates.clear();
  addProductsOfQuotients(values, candidates);
  return onlyOne(candidates);
}

// The product of some sizes side by side, times a fraction, as views have it.
std::optional<SizeExpression> SizeFit::productOfNeighbours(
    const std::vector<int64_t>& values, const std::vector<SizeVector>& near) const {
  size_t seen = 0;
  for (const SizeVector& sizes : near) {
    for (size_t begin = 0; begin < sizes.size(); ++begin) {
      SizeExpression product = SizeArithmetic::number(1);
      for (size_t end = begin; end < sizes.size() && seen < kMostNear * 4; ++end, ++seen) {
        product = arithmetic_.product(product, sizes[end]);
        const std::optional<Base> base = baseOf(product);
        if (!base || base->values[0] == 0 || values[0] == 0) continue;
        // values / product = values[0] / product[0]
        bool fits = true;
        for (size_t e = 0; e < count() && fits; ++e) {
          fits = static_cast<__int128>(values[e]) * base->values[0] ==
                 static_cast<__int128>(base->values[e]) * values[0];
        }
        if (!fits) continue;
        if (values[0] % base->values[0] == 0) {
          return arithmetic_.product(SizeArithmetic::number(values[0] / base->values[0]), product);
        }
        if (base->values[0] % values[0] == 0) {
          return arithmetic_.quotient(product, SizeArithmetic::number(base->values[0] / values[0]));
        }
      }
    }
  }
  return std::nullopt;
}

// The lesser or the greater of two sizes, or of a size and the number that several examples end at.
std::optional<SizeExpression> SizeFit::extremeOf(const std::vector<int64_t>& values,
                                                 const std::vector<Base>& bases) const {
  std::vector<Base> all = bases;
  for (const int64_t end : {std::ranges::min(values), std::ranges::max(values)}) {
    if (std::ranges::count(values, end) > 1) {
      all.push_back({SizeArithmetic::number(end), std::vector<int64_t>(count(), end)});
    }
  }
  std::vector<SizeExpression> candidates;
  for (size_t a = 0; a < all.size(); ++a) {
    for (size_t b = a + 1; b < all.size(); ++b) {
      bool is_least = true;
      bool is_most = true;
      for (size_t e = 0; e < count(); ++e) {
        is_least = is_least && values[e] == std::min(all[a].values[e], all[b].values[e]);
        is_most = is_most && values[e] == std::max(all[a].values[e], all[b].values[e]);
      }
      if (is_least) candidates.push_back(arithmetic_.least(all[a].expression, all[b].expression));
      if (is_most) candidates.push_back(arithmetic_.most(all[a].expression, all[b].expression));
    }
  }
  return onlyOne(candidates);
}

void SizeFit::addQuotients(const std::vector<int64_t>& values, const Base& base,
                           std::vector<SizeExpression>& into) const {
  constexpr int64_t kMostDivisor = 64;
  for (int64_t divisor = 2; divisor <= kMostDivisor; ++divisor) {
    for (int64_t shift = 0; shift < divisor; ++shift) {
      const auto quotient = [&](size_t e) {
        return ops::floorDiv(ops::wrapAdd(base.values[e], shift), divisor);
      };
      const int64_t rest = ops::wrapSub(values[0], quotient(0));
      bool fits = true;
      for (size_t e = 0; e < count() && fits; ++e) {
        fits = values[e] == ops::wrapAdd(quotient(e), rest);
      }
      if (!fits) continue;
      into.push_back(arithmetic_.sum(
          arithmetic_.quotient(arithmetic_.sum(base.expression, SizeArithmetic::number(shift)),
                               SizeArithmetic::number(divisor)),
          SizeArithmetic::number(rest)));
    }
  }
}

// factor · Π (s + b) // d, as the number of elements after convolutions and pooling is.
void SizeFit::addProductsOfQuotients(const std::vector<int64_t>& values,
                                     std::vector<SizeExpression>& into) const {
  constexpr size_t kMostSymbols = 3;
  const size_t symbols = examples_[0].size();
  if (symbols == 0 || symbols > kMostSymbols) return;
  std::vector<std::vector<Base>> choices(symbols);
  for (size_t k = 0; k < symbols; ++k) {
    const auto add = [&](int64_t divisor, int64_t shift) {
      const SizeExpression shifted =
          arithmetic_.sum(SizeArithmetic::symbol(k), SizeArithmetic::number(shift));
      choices[k].push_back(*baseOf(arithmetic_.quotient(shifted, SizeArithmetic::number(divisor))));
    };
    choices[k].push_back(*baseOf(SizeArithmetic::number(1)));
    add(1, 0);
    for (const int64_t divisor : {2, 3, 4, 8, 16, 32}) {
      for (const int64_t shift : {int64_t{0}, int64_t{1}, divisor - 1}) add(divisor, shift);
    }
  }
  std::vector<size_t> at(symbols, 0);
  while (true) {
    std::vector<int64_t> product(count(), 1);
    for (size_t k = 0; k < symbols; ++k) {
      const Base& part = choices[k][at[k]];
      for (size_t e = 0; e < count(); ++e) product[e] = ops::wrapMul(product[e], part.values[e]);
    }
    const int64_t factor = product[0] == 0 ? 0 : ops::floorDiv(values[0], product[0]);
    bool fits = factor != 0;
    for (size_t e = 0; e < count() && fits; ++e)
      fits = values[e] == ops::wrapMul(factor, product[e]);
    if (fits) {
      SizeExpression out = SizeArithmetic::number(factor);
      for (size_t k = 0; k < symbols; ++k) {
        out = arithmetic_.product(out, choices[k][at[k]].expression);
      }
      into.push_back(std::move(out));
    }
    size_t k = 0;
    while (k < symbols && ++at[k] == choices[k].size()) at[k++] = 0;
    if (k == symbols) return;
  }
}

// Returns the first one if all give the same, wherever one looks.
std::optional<SizeExpression> SizeFit::onlyOne(
    const std::vector<SizeExpression>& candidates) const {
  if (candidates.empty()) return std::nullopt;
  for (const std::vector<int64_t>& probe : probes()) {
    const std::optional<int64_t> value = SizeArithmetic::valueAt(candidates[0], probe);
    for (const SizeExpression& other : candidates) {
      if (SizeArithmetic::valueAt(other, probe) != value) return std::nullopt;
    }
  }
  return candidates[0];
}

// Sizes within the ranges: each of one symbol up to 4096 in turn, and chosen ones of several.
const std::vector<std::vector<int64_t>>& SizeFit::probes() const {
  if (!probes_.empty()) return probes_;
  constexpr int64_t kMost = 4096;
  const std::vector<OpenRange>& ranges = arithmetic_.ranges();
  std::mt19937_64 random(1);
  for (int64_t i = 0; i < kMost; ++i) {
    std::vector<int64_t> probe;
    for (const OpenRange& range : ranges) {
      const int64_t size = range.most - range.least + 1;
      if (ranges.size() > 1 || size > kMost) {
        std::uniform_int_distribution<int64_t> any(range.least, range.most);
        probe.push_back(any(random));
      } else {
        probe.push_back(range.least + i % size);
      }
    }
    probes_.push_back(std::move(probe));
  }
  return probes_;
}

}  // namespace wick::exported
