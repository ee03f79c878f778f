// Arithmetic on numbers that are not tensors, with Python's signs and TorchScript's overflow: ints
// wrap, float division by zero gives infinities.
#pragma once

#include <cmath>
#include <complex>
#include <cstdint>

#include "core/error.h"

namespace wick::ops {

using Complex = std::complex<double>;

[[noreturn]] inline void throwZeroDivision(const char* what) {
  throw RuntimeError(what, "ZeroDivisionError");
}

inline int64_t wrapAdd(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapSub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapMul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
inline int64_t wrapNeg(int64_t a) {
  return wrapSub(0, a);
}

// The quotient rounded towards minus infinity. INT64_MIN / -1 wraps.
inline int64_t floorDiv(int64_t a, int64_t b) {
  if (b == 0) throwZeroDivision("integer division or modulo by zero");
  if (b == -1) return wrapNeg(a);
  int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}
// The remainder with the sign of the divisor.
inline int64_t floorMod(int64_t a, int64_t b) {
  if (b == 0) throwZeroDivision("integer division or modulo by zero");
  if (b == -1) return 0;
  int64_t r = a % b;
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
inline double floorDiv(double a, double b) {
  return std::floor(a / b);
}
inline double floorMod(double a, double b) {
  return std::fmod(std::fmod(a, b) + b, b);
}

// The shifts of the processor: the count is taken modulo 64.
inline int64_t shiftLeft(int64_t a, int64_t n) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) << (n & 63));
}
inline int64_t shiftRight(int64_t a, int64_t n) {
  return a >> (n & 63);
}

// Python's float power: the one case in which it refuses what C++ computes.
inline double floatPow(double base, double exponent) {
  if (base == 0 && exponent < 0) throwZeroDivision("0.0 cannot be raised to a negative power");
  return std::pow(base, exponent);
}

// base ** exponent modulo 2^64; a negative exponent gives the fraction truncated to an int.
inline int64_t intPow(int64_t base, int64_t exponent) {
  if (exponent < 0) {
    if (base == 1 || base == -1) return exponent % 2 == 0 ? 1 : base;
    if (base == 0) throwZeroDivision("0 cannot be raised to a negative power");
    return 0;
  }
  int64_t result = 1;
  for (; exponent > 0; exponent >>= 1) {
    if (exponent & 1) result = wrapMul(result, base);
    base = wrapMul(base, base);
  }
  return result;
}

// A float with an integral value as an int; RuntimeError when it does not fit.
inline int64_t exactInt(double v) {
  WICK_CHECK(v >= -0x1p63 && v < 0x1p63, "Cannot convert float {} to integer", v);
  return static_cast<int64_t>(v);
}
}  // namespace wick::ops
