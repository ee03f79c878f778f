// Arithmetic on single numbers of models that were compiled ahead of time, with Python's signs and TorchScript's
// overflow: ints wrap. A function writes its result to the last argument, and returns what the call
// ends with where it has none, else null. C++17.
#ifndef WICK_AOT_NUMBERS_H
#define WICK_AOT_NUMBERS_H

#include <cmath>
#include <cstdint>

namespace wick_aot {

// Where the element of a dimension of this size lies, from the end when the index is negative; -1 when there is none.
inline int64_t position(int64_t index, int64_t size) {
  if (index < 0) index += size;
  return index >= 0 && index < size ? index : -1;
}

// Where a slice of a dimension of this size begins or ends.
inline const char* sliceBound(int64_t index, int64_t size, int64_t& to) {
  if (index < 0) index += size;
  to = index < 0 ? 0 : index > size ? size : index;
  return nullptr;
}

// A position that is counted from the end where it is negative. What is no position stays one that is too small or too large.
inline const char* fromEnd(int64_t index, int64_t size, int64_t& to) {
  to = index < 0 ? index + size : index;
  return nullptr;
}
// How far the elements of a dimension are moved on, when behind the last position the first one follows.
inline const char* movedOn(int64_t by, int64_t size, int64_t& to) {
  to = size == 0 ? 0 : by % size;
  if (to < 0) to += size;
  return nullptr;
}
// How often something is repeated.
inline const char* atLeastZero(int64_t count, int64_t& to) {
  to = count < 0 ? 0 : count;
  return nullptr;
}

inline int64_t wrapped(uint64_t v) {
  return static_cast<int64_t>(v);
}

constexpr const char* kDivisionByZero = "integer division or modulo by zero";

inline const char* floorDivide(int64_t a, int64_t b, int64_t& to) {
  if (b == 0) return kDivisionByZero;
  if (b == -1) {
    to = wrapped(0 - static_cast<uint64_t>(a));
  } else {
    to = a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
  }
  return nullptr;
}
inline const char* floorDivide(double a, double b, double& to) {
  to = std::floor(a / b);
  return nullptr;
}
inline const char* floorRemainder(int64_t a, int64_t b, int64_t& to) {
  if (b == 0) return kDivisionByZero;
  const int64_t r = b == -1 ? 0 : a % b;
  to = r != 0 && (r < 0) != (b < 0) ? r + b : r;
  return nullptr;
}
inline const char* floorRemainder(double a, double b, double& to) {
  to = std::fmod(std::fmod(a, b) + b, b);
  return nullptr;
}
inline const char* truncatedQuotient(int64_t a, int64_t b, int64_t& to) {
  if (b == 0) return kDivisionByZero;
  to = b == -1 ? wrapped(0 - static_cast<uint64_t>(a)) : a / b;
  return nullptr;
}
inline const char* power(double base, double exponent, double& to) {
  if (base == 0 && exponent < 0) return "0.0 cannot be raised to a negative power";
  to = std::pow(base, exponent);
  return nullptr;
}
// Of ints; a negative exponent gives the fraction truncated to an int.
inline const char* wholePower(int64_t base, int64_t exponent, int64_t& to) {
  if (exponent < 0) {
    if (base == 0) return "0 cannot be raised to a negative power";
    to = base == 1 || base == -1 ? (exponent % 2 == 0 ? 1 : base) : 0;
    return nullptr;
  }
  uint64_t result = 1, factor = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result *= factor;
    factor *= factor;
  }
  to = wrapped(result);
  return nullptr;
}
// The shifts of the processor: the count is taken modulo 64.
inline const char* shiftLeft(int64_t a, int64_t n, int64_t& to) {
  to = wrapped(static_cast<uint64_t>(a) << (n & 63));
  return nullptr;
}
inline const char* shiftRight(int64_t a, int64_t n, int64_t& to) {
  to = a >> (n & 63);
  return nullptr;
}
inline const char* invert(int64_t a, int64_t& to) {
  to = ~a;
  return nullptr;
}
inline const char* greatestDivisor(int64_t a, int64_t b, int64_t& to) {
  uint64_t x = a < 0 ? 0 - static_cast<uint64_t>(a) : static_cast<uint64_t>(a);
  uint64_t y = b < 0 ? 0 - static_cast<uint64_t>(b) : static_cast<uint64_t>(b);
  while (y != 0) {
    const uint64_t rest = x % y;
    x = y;
    y = rest;
  }
  to = wrapped(x);
  return nullptr;
}
inline const char* rangeLength(int64_t low, int64_t high, int64_t step, int64_t& to) {
  if (step == 0) return "range() arg 3 must not be zero";
  to = 0;
  if (step > 0 ? low >= high : low <= high) return nullptr;
  const uint64_t from = static_cast<uint64_t>(low), end = static_cast<uint64_t>(high);
  const uint64_t distance = step > 0 ? end - from : from - end;
  const uint64_t stride = step > 0 ? static_cast<uint64_t>(step) : 0 - static_cast<uint64_t>(step);
  const uint64_t count = (distance - 1) / stride + 1;
  const auto most = static_cast<uint64_t>(INT64_MAX);
  to = wrapped(count < most ? count : most);
  return nullptr;
}
inline const char* rangeElement(int64_t index, int64_t start, int64_t step, int64_t& to) {
  to = wrapped(static_cast<uint64_t>(start) +
               static_cast<uint64_t>(index) * static_cast<uint64_t>(step));
  return nullptr;
}

// A whole number that an int64 must hold.
inline const char* whole(double a, int64_t& to) {
  if (!(a >= -0x1p63 && a < 0x1p63)) return "cannot convert a float to an integer";
  to = static_cast<int64_t>(a);
  return nullptr;
}
inline const char* roundDown(double a, int64_t& to) {
  return whole(std::floor(a), to);
}
inline const char* roundDown(int64_t a, int64_t& to) {
  to = a;
  return nullptr;
}
inline const char* roundUp(double a, int64_t& to) {
  return whole(std::ceil(a), to);
}
inline const char* roundUp(int64_t a, int64_t& to) {
  return roundDown(a, to);
}

#define WICK_AOT_FUNCTION(name, value)            \
  inline const char* name(double a, double& to) { \
    to = value;                                   \
    return nullptr;                               \
  }
#define WICK_AOT_FUNCTION2(name, value)                     \
  inline const char* name(double a, double b, double& to) { \
    to = value;                                             \
    return nullptr;                                         \
  }
WICK_AOT_FUNCTION(squareRoot, std::sqrt(a))
WICK_AOT_FUNCTION(exponential, std::exp(a))
WICK_AOT_FUNCTION(logarithm, std::log(a))
WICK_AOT_FUNCTION(logarithm10, std::log10(a))
WICK_AOT_FUNCTION(logarithm2, std::log2(a))
WICK_AOT_FUNCTION(logarithm1p, std::log1p(a))
WICK_AOT_FUNCTION(exponentialM1, std::expm1(a))
WICK_AOT_FUNCTION(sine, std::sin(a))
WICK_AOT_FUNCTION(cosine, std::cos(a))
WICK_AOT_FUNCTION(tangent, std::tan(a))
WICK_AOT_FUNCTION(arcSine, std::asin(a))
WICK_AOT_FUNCTION(arcCosine, std::acos(a))
WICK_AOT_FUNCTION(arcTangent, std::atan(a))
WICK_AOT_FUNCTION(hyperbolicSine, std::sinh(a))
WICK_AOT_FUNCTION(hyperbolicCosine, std::cosh(a))
WICK_AOT_FUNCTION(hyperbolicTangent, std::tanh(a))
WICK_AOT_FUNCTION(areaSine, std::asinh(a))
WICK_AOT_FUNCTION(areaCosine, std::acosh(a))
WICK_AOT_FUNCTION(areaTangent, std::atanh(a))
WICK_AOT_FUNCTION(errorFunction, std::erf(a))
WICK_AOT_FUNCTION(errorComplement, std::erfc(a))
WICK_AOT_FUNCTION(gammaFunction, std::tgamma(a))
WICK_AOT_FUNCTION(absolute, std::fabs(a))
WICK_AOT_FUNCTION(degrees, a*(180.0 / 3.141592653589793))
WICK_AOT_FUNCTION(radians, a*(3.141592653589793 / 180.0))
// Halves go to the even neighbour.
WICK_AOT_FUNCTION(nearest, std::nearbyint(a))
WICK_AOT_FUNCTION2(angleOf, std::atan2(a, b))
WICK_AOT_FUNCTION2(withSign, std::copysign(a, b))
WICK_AOT_FUNCTION2(remainderOf, std::fmod(a, b))
WICK_AOT_FUNCTION2(nearestRemainder, std::remainder(a, b))
WICK_AOT_FUNCTION2(hypotenuse, std::hypot(a, b))
WICK_AOT_FUNCTION2(logarithmTo, std::log(a) / std::log(b))
#undef WICK_AOT_FUNCTION
#undef WICK_AOT_FUNCTION2

}  // namespace wick_aot

#endif
