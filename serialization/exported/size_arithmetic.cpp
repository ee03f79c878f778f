#include "serialization/exported/size_arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "runtime/ops/arithmetic.h"

namespace wick::exported {
namespace {

using Kind = SizeExpression::Kind;

// Numbers beyond these are as good as endless.
constexpr int64_t kEndless = int64_t{1} << 62;

int64_t clamped(__int128 value) {
  return static_cast<int64_t>(std::clamp<__int128>(value, -kEndless, kEndless));
}

bool isNumber(const SizeExpression& expression) {
  return expression.kind == Kind::Number;
}

SizeExpression make(Kind kind, std::vector<SizeExpression> operands) {
  SizeExpression out;
  out.kind = kind;
  out.operands = std::move(operands);
  return out;
}

// A sum as factors of its terms, and a number.
class Terms {
 public:
  void add(const SizeExpression& expression, int64_t factor) {
    if (expression.kind == Kind::Number) {
      rest_ = ops::wrapAdd(rest_, ops::wrapMul(factor, expression.number));
    } else if (expression.kind == Kind::Sum) {
      for (const SizeExpression& operand : expression.operands) add(operand, factor);
    } else if (expression.kind == Kind::Product && isNumber(expression.operands[0])) {
      std::vector<SizeExpression> others(expression.operands.begin() + 1,
                                         expression.operands.end());
      add(others.size() == 1 ? others[0] : make(Kind::Product, std::move(others)),
          ops::wrapMul(factor, expression.operands[0].number));
    } else {
      auto [found, fresh] = terms_.try_emplace(expression.notation(), expression, 0);
      found->second.second = ops::wrapAdd(found->second.second, factor);
    }
  }

  // Whether all factors and the number are multiples.
  bool isMultipleOf(int64_t divisor) const {
    return rest_ % divisor == 0 && std::ranges::all_of(terms_, [&](const auto& term) {
             return term.second.second % divisor == 0;
           });
  }

  SizeExpression sum(int64_t divisor = 1) const {
    std::vector<SizeExpression> operands;
    for (const auto& [text, term] : terms_) {
      const auto& [expression, times] = term;
      const int64_t factor = times / divisor;
      if (factor == 0) continue;
      if (factor == 1) {
        operands.push_back(expression);
        continue;
      }
      std::vector<SizeExpression> parts = {SizeArithmetic::number(factor)};
      if (expression.kind == Kind::Product) {
        parts.insert(parts.end(), expression.operands.begin(), expression.operands.end());
      } else {
        parts.push_back(expression);
      }
      operands.push_back(make(Kind::Product, std::move(parts)));
    }
    if (rest_ != 0 || operands.empty()) operands.push_back(SizeArithmetic::number(rest_ / divisor));
    return operands.size() == 1 ? operands[0] : make(Kind::Sum, std::move(operands));
  }

 private:
  std::map<std::string, std::pair<SizeExpression, int64_t>> terms_;
  int64_t rest_ = 0;
};

}  // namespace

SizeExpression SizeArithmetic::number(int64_t value) {
  SizeExpression out;
  out.number = value;
  return out;
}

SizeExpression SizeArithmetic::symbol(size_t index) {
  SizeExpression out;
  out.kind = Kind::Symbol;
  out.number = static_cast<int64_t>(index);
  out.symbol = fmt::format("s{}", index);
  return out;
}

SizeExpression SizeArithmetic::sum(const SizeExpression& a, const SizeExpression& b) const {
  Terms terms;
  terms.add(a, 1);
  terms.add(b, 1);
  return terms.sum();
}

SizeExpression SizeArithmetic::difference(const SizeExpression& a, const SizeExpression& b) const {
  Terms terms;
  terms.add(a, 1);
  terms.add(b, -1);
  return terms.sum();
}

SizeExpression SizeArithmetic::product(const SizeExpression& a, const SizeExpression& b) const {
  if (isNumber(a) || isNumber(b)) {
    Terms terms;
    terms.add(isNumber(a) ? b : a, isNumber(a) ? a.number : b.number);
    return terms.sum();
  }
  int64_t factor = 1;
  std::vector<SizeExpression> operands;
  for (const SizeExpression* part : {&a, &b}) {
    if (part->kind != Kind::Product) {
      operands.push_back(*part);
      continue;
    }
    for (const SizeExpression& operand : part->operands) {
      if (isNumber(operand)) {
        factor = ops::wrapMul(factor, operand.number);
      } else {
        operands.push_back(operand);
      }
    }
  }
  std::ranges::sort(operands, {}, &SizeExpression::notation);
  if (factor != 1) operands.insert(operands.begin(), number(factor));
  return make(Kind::Product, std::move(operands));
}

SizeExpression SizeArithmetic::quotient(const SizeExpression& a, const SizeExpression& b) const {
  if (!isNumber(b) || b.number == 0) return make(Kind::FloorQuotient, {a, b});
  if (b.number == -1) return product(b, a);
  if (isNumber(a)) return number(ops::floorDiv(a.number, b.number));
  Terms terms;
  terms.add(a, 1);
  if (terms.isMultipleOf(b.number)) return terms.sum(b.number);
  int64_t both = 0;
  if (a.kind == Kind::FloorQuotient && isNumber(a.operands[1]) && a.operands[1].number > 0 &&
      b.number > 0 && !__builtin_mul_overflow(a.operands[1].number, b.number, &both)) {
    return quotient(a.operands[0], number(both));
  }
  return make(Kind::FloorQuotient, {a, b});
}

SizeExpression SizeArithmetic::remainder(const SizeExpression& a, const SizeExpression& b) const {
  if (isNumber(b) && (b.number == 1 || b.number == -1)) return number(0);
  if (isNumber(a) && isNumber(b) && b.number != 0) {
    return number(ops::floorMod(a.number, b.number));
  }
  return make(Kind::Remainder, {a, b});
}

SizeExpression SizeArithmetic::least(const SizeExpression& a, const SizeExpression& b) const {
  const auto [least_a, most_a] = bounds(a);
  const auto [least_b, most_b] = bounds(b);
  const auto [least, most] = bounds(difference(a, b));
  if (most_a <= least_b || most <= 0) return a;
  if (most_b <= least_a || least >= 0) return b;
  return make(Kind::Least, isNumber(b) ? std::vector{b, a} : std::vector{a, b});
}

SizeExpression SizeArithmetic::most(const SizeExpression& a, const SizeExpression& b) const {
  const auto [least_a, most_a] = bounds(a);
  const auto [least_b, most_b] = bounds(b);
  const auto [least, most] = bounds(difference(a, b));
  if (least_a >= most_b || least >= 0) return a;
  if (least_b >= most_a || most <= 0) return b;
  return make(Kind::Most, isNumber(b) ? std::vector{b, a} : std::vector{a, b});
}

std::pair<int64_t, int64_t> SizeArithmetic::bounds(const SizeExpression& expression) const {
  using Bounds = std::pair<int64_t, int64_t>;
  constexpr Bounds kAny{-kEndless, kEndless};
  if (expression.kind == Kind::Number) return {expression.number, expression.number};
  if (expression.kind == Kind::Symbol) {
    const auto index = static_cast<size_t>(expression.number);
    return index < ranges_.size() ? Bounds{ranges_[index].least, ranges_[index].most} : kAny;
  }
  Bounds out = bounds(expression.operands[0]);
  for (size_t i = 1; i < expression.operands.size(); ++i) {
    const Bounds next = bounds(expression.operands[i]);
    switch (expression.kind) {
      case Kind::Sum:
        out = {clamped(static_cast<__int128>(out.first) + next.first),
               clamped(static_cast<__int128>(out.second) + next.second)};
        break;
      case Kind::Product: {
        const auto times = [](int64_t a, int64_t b) { return static_cast<__int128>(a) * b; };
        const auto [low, high] =
            std::minmax({times(out.first, next.first), times(out.first, next.second),
                         times(out.second, next.first), times(out.second, next.second)});
        out = {clamped(low), clamped(high)};
        break;
      }
      case Kind::FloorQuotient:
        if (next.first != next.second || next.first <= 0) return kAny;
        out = {ops::floorDiv(out.first, next.first), ops::floorDiv(out.second, next.first)};
        break;
      case Kind::Remainder:
        if (next.first <= 0) return kAny;
        out = {0, next.second - 1};
        break;
      case Kind::Least:
        out = {std::min(out.first, next.first), std::min(out.second, next.second)};
        break;
      default:
        out = {std::max(out.first, next.first), std::max(out.second, next.second)};
    }
  }
  return out;
}

bool SizeArithmetic::mayOverflow(const SizeExpression& expression) const {
  constexpr int64_t kMostSize = 1 << 20;
  std::vector<OpenRange> ranges = ranges_;
  for (OpenRange& range : ranges)
    range.most = std::max(range.least, std::min(range.most, kMostSize));
  const auto [least, most] = SizeArithmetic(std::move(ranges)).bounds(expression);
  return least <= -kEndless || most >= kEndless;
}

std::optional<int64_t> SizeArithmetic::valueAt(const SizeExpression& expression,
                                               const std::vector<int64_t>& sizes) {
  if (expression.kind == Kind::Number) return expression.number;
  if (expression.kind == Kind::Symbol) return sizes.at(static_cast<size_t>(expression.number));
  std::optional<int64_t> out = valueAt(expression.operands[0], sizes);
  for (size_t i = 1; i < expression.operands.size() && out; ++i) {
    const std::optional<int64_t> next = valueAt(expression.operands[i], sizes);
    if (!next) return std::nullopt;
    int64_t result = 0;
    bool fails = false;
    switch (expression.kind) {
      case Kind::Sum:
        fails = __builtin_add_overflow(*out, *next, &result);
        break;
      case Kind::Product:
        fails = __builtin_mul_overflow(*out, *next, &result);
        break;
      case Kind::FloorQuotient:
      case Kind::Remainder:
        fails = *next == 0;
        if (fails) break;
        result = expression.kind == Kind::Remainder ? ops::floorMod(*out, *next)
                                                    : ops::floorDiv(*out, *next);
        break;
      case Kind::Least:
        result = std::min(*out, *next);
        break;
      default:
        result = std::max(*out, *next);
    }
    if (fails) return std::nullopt;
    out = result;
  }
  return out;
}

}  // namespace wick::exported
