#include "codegen/scalar/orthogonal_polynomials.h"

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/budget.h"

namespace wick::math {
namespace {

constexpr int64_t kLargestDegree = 100000;
// From here on the clock is looked at, which takes less time than the polynomial.
constexpr int64_t kLongDegree = 256;

// The whole part; nullopt where every family is 0.
template <class T>
std::optional<int64_t> degreeOf(T n) {
  if (!(n > T(-1) && n < T(0x1p63))) return std::nullopt;  // also NaN
  return static_cast<int64_t>(n);
}

bool isEven(int64_t n) {
  return n % 2 == 0;
}

// p(n) of a family with p(k+1) = next(k, p(k), p(k-1)).
template <class T, class F>
T recurrence(int64_t degree, T p0, T p1, F&& next) {
  if (degree > kLargestDegree) return std::numeric_limits<T>::quiet_NaN();
  // A degree of 100,000 for each of some thousand elements takes seconds. Nobody sees the NaN: the
  // loop over the elements throws when it looks at the budget.
  if (degree >= kLongDegree) {
    const Budget* budget = currentBudget();
    if (budget && budget->exhausted()) return std::numeric_limits<T>::quiet_NaN();
  }
  if (degree == 0) return p0;
  T before = p0, now = p1;
  for (int64_t k = 1; k < degree && !std::isnan(now); ++k) {
    T after = next(static_cast<T>(k), now, before);
    before = now;
    now = after;
  }
  return now;
}

// All four Chebyshev families have the recurrence 2 x p - q and differ in p(1).
template <class T>
T chebyshevRecurrence(T x, int64_t degree, T first) {
  return recurrence(degree, T(1), first, [x](T, T p, T q) { return (x + x) * p - q; });
}

// From these degrees on, and strictly inside of the interval, the trigonometric form is used.
constexpr int64_t kTrigonometricT = 7;
constexpr int64_t kTrigonometricUVW = 9;

template <class T>
bool isTrigonometric(T x, int64_t degree, int64_t from) {
  return degree >= from && std::abs(x) < T(1);
}

}  // namespace

template <class T>
T chebyshevT(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  if (std::abs(x) == T(1)) return x > T(0) || isEven(*degree) ? T(1) : T(-1);
  if (isTrigonometric(x, *degree, kTrigonometricT)) return std::cos(T(*degree) * std::acos(x));
  return chebyshevRecurrence(x, *degree, x);
}

template <class T>
T chebyshevU(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  T next = T(*degree) + T(1);
  if (std::abs(x) == T(1)) return x > T(0) || isEven(*degree) ? next : -next;
  if (isTrigonometric(x, *degree, kTrigonometricUVW)) {
    T angle = std::acos(x), sine = std::sin(angle);
    return sine != T(0) ? std::sin(next * angle) / sine : next * std::cos(next * angle) / x;
  }
  return chebyshevRecurrence(x, *degree, x + x);
}

template <class T>
T chebyshevV(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  T limit = T(*degree) + T(*degree) + T(1);  // at -1, up to its sign
  T at_minus_one = isEven(*degree) ? limit : -limit;
  if (std::abs(x) == T(1)) return x > T(0) ? T(1) : at_minus_one;
  if (isTrigonometric(x, *degree, kTrigonometricUVW)) {
    T angle = std::acos(x);
    if (std::sin(angle / T(2)) == T(1)) return at_minus_one;
    return std::cos((T(*degree) + T(0.5)) * angle) / std::cos(angle / T(2));
  }
  return chebyshevRecurrence(x, *degree, x + x - T(1));
}

template <class T>
T chebyshevW(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  T at_one = T(*degree) + T(*degree) + T(1);
  if (std::abs(x) == T(1)) return x > T(0) ? at_one : isEven(*degree) ? T(1) : T(-1);
  if (isTrigonometric(x, *degree, kTrigonometricUVW)) {
    T angle = std::acos(x);
    if (std::cos(angle / T(2)) == T(1)) return at_one;
    return std::sin((T(*degree) + T(0.5)) * angle) / std::sin(angle / T(2));
  }
  return chebyshevRecurrence(x, *degree, x + x + T(1));
}

template <class T>
T hermiteH(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  return recurrence(*degree, T(1), x + x, [x](T k, T p, T q) { return (x + x) * p - (k + k) * q; });
}

template <class T>
T hermiteHe(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  return recurrence(*degree, T(1), x, [x](T k, T p, T q) { return x * p - k * q; });
}

template <class T>
T laguerreL(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  if (x == T(0)) return T(1);
  return recurrence(*degree, T(1), T(1) - x,
                    [x](T k, T p, T q) { return ((k + k + (T(1) - x)) * p - k * q) / (k + T(1)); });
}

template <class T>
T legendreP(T x, T n) {
  std::optional<int64_t> degree = degreeOf(n);
  if (!degree) return T(0);
  if (std::abs(x) == T(1)) return x > T(0) || isEven(*degree) ? T(1) : T(-1);
  return recurrence(*degree, T(1), x,
                    [x](T k, T p, T q) { return ((k + k + T(1)) * x * p - k * q) / (k + T(1)); });
}

#define WICK_POLYNOMIAL(name)        \
  template float name(float, float); \
  template double name(double, double);
WICK_POLYNOMIAL(chebyshevT)
WICK_POLYNOMIAL(chebyshevU)
WICK_POLYNOMIAL(chebyshevV)
WICK_POLYNOMIAL(chebyshevW)
WICK_POLYNOMIAL(hermiteH)
WICK_POLYNOMIAL(hermiteHe)
WICK_POLYNOMIAL(laguerreL)
WICK_POLYNOMIAL(legendreP)
#undef WICK_POLYNOMIAL

}  // namespace wick::math
