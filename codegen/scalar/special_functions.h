// Mathematical functions that the C library lacks, for float and double, and all of the functions
// of functions.h under one namespace. None of them throws or touches global state.
#pragma once

#include <cmath>
#include <complex>
#include <concepts>

#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/float_functions.h"
#include "codegen/scalar/float_power.h"
#include "codegen/scalar/float_trigonometry.h"
#include "codegen/scalar/orthogonal_polynomials.h"

namespace wick::math {

namespace detail {
// In double precision.
double erfcx(double x);
double erfinv(double y);
double lgamma(double x);
double digamma(double x);
double i0e(double x);
double i1e(double x);
double k0e(double x);
double k1e(double x);
double airyAi(double x);
double ndtri(double p);
double logNdtr(double x);
double zeta(double s, double q);
double polygamma(double n, double x);
double igamma(double a, double x);
double igammac(double a, double x);
}  // namespace detail

#define WICK_STD_UNARY(name)                       \
  template <std::floating_point T>                 \
  inline T name(T x) {                             \
    return std::name(x);                           \
  }                                                \
  template <std::floating_point T>                 \
  inline std::complex<T> name(std::complex<T> x) { \
    return std::name(x);                           \
  }
WICK_STD_UNARY(exp)
WICK_STD_UNARY(log)
WICK_STD_UNARY(log10)
WICK_STD_UNARY(sin)
WICK_STD_UNARY(cos)
WICK_STD_UNARY(tan)
WICK_STD_UNARY(asin)
WICK_STD_UNARY(acos)
WICK_STD_UNARY(atan)
WICK_STD_UNARY(sinh)
WICK_STD_UNARY(cosh)
WICK_STD_UNARY(tanh)
WICK_STD_UNARY(asinh)
WICK_STD_UNARY(acosh)
WICK_STD_UNARY(atanh)
WICK_STD_UNARY(sqrt)
#undef WICK_STD_UNARY

#define WICK_STD_REAL(name)        \
  template <std::floating_point T> \
  inline T name(T x) {             \
    return std::name(x);           \
  }
WICK_STD_REAL(exp2)
WICK_STD_REAL(expm1)
WICK_STD_REAL(log2)
WICK_STD_REAL(log1p)
WICK_STD_REAL(floor)
WICK_STD_REAL(ceil)
WICK_STD_REAL(trunc)
WICK_STD_REAL(rint)
WICK_STD_REAL(erf)
WICK_STD_REAL(erfc)
#undef WICK_STD_REAL

template <std::floating_point T>
inline std::complex<T> log2(std::complex<T> x) {
  return std::log(x) / static_cast<T>(0.6931471805599453094);
}

template <std::floating_point T>
inline T sigmoid(T x) {
  return 1 / (1 + std::exp(-x));
}
template <std::floating_point T>
inline std::complex<T> sigmoid(std::complex<T> x) {
  return T(1) / (T(1) + std::exp(-x));
}
template <std::floating_point T>
inline T rsqrt(T x) {
  return 1 / std::sqrt(x);
}
template <std::floating_point T>
inline std::complex<T> rsqrt(std::complex<T> x) {
  return T(1) / std::sqrt(x);
}

#define WICK_STD_BINARY(name)      \
  template <std::floating_point T> \
  inline T name(T x, T y) {        \
    return std::name(x, y);        \
  }
WICK_STD_BINARY(pow)
WICK_STD_BINARY(fmod)
WICK_STD_BINARY(atan2)
WICK_STD_BINARY(hypot)
WICK_STD_BINARY(copysign)
WICK_STD_BINARY(nextafter)
#undef WICK_STD_BINARY

template <std::floating_point T>
inline std::complex<T> pow(std::complex<T> x, std::complex<T> y) {
  return std::pow(x, y);
}

#define WICK_DETAIL_UNARY(name)                                  \
  template <std::floating_point T>                               \
  inline T name(T x) {                                           \
    return static_cast<T>(detail::name(static_cast<double>(x))); \
  }
WICK_DETAIL_UNARY(erfcx)
WICK_DETAIL_UNARY(erfinv)
WICK_DETAIL_UNARY(lgamma)
WICK_DETAIL_UNARY(digamma)
WICK_DETAIL_UNARY(i0e)
WICK_DETAIL_UNARY(i1e)
WICK_DETAIL_UNARY(k0e)
WICK_DETAIL_UNARY(k1e)
WICK_DETAIL_UNARY(airyAi)
WICK_DETAIL_UNARY(ndtri)
WICK_DETAIL_UNARY(logNdtr)
#undef WICK_DETAIL_UNARY

#define WICK_DETAIL_BINARY(name)                                                         \
  template <std::floating_point T>                                                       \
  inline T name(T x, T y) {                                                              \
    return static_cast<T>(detail::name(static_cast<double>(x), static_cast<double>(y))); \
  }
WICK_DETAIL_BINARY(zeta)
WICK_DETAIL_BINARY(igamma)
WICK_DETAIL_BINARY(igammac)
#undef WICK_DETAIL_BINARY

// The trigamma function of small and negative x is reflected in the arithmetic of the type: at
// negative integers, its poles, PyTorch's finite results follow from the rounding of pi x.
template <std::floating_point T>
inline T polygamma(T n, T x) {
  double wide = static_cast<double>(x);
  if (n != T(1) || !(x < T(0.5))) {
    return static_cast<T>(detail::polygamma(static_cast<double>(n), wide));
  }
  constexpr T kPi = static_cast<T>(3.141592653589793238);
  T sine = std::sin(kPi * x);
  return kPi * kPi / (sine * sine) - static_cast<T>(detail::polygamma(1, 1 - wide));
}
template <std::floating_point T>
inline T i0(T x) {
  double d = std::fabs(static_cast<double>(x));
  return static_cast<T>(detail::i0e(d) * std::exp(d));
}
template <std::floating_point T>
inline T i1(T x) {
  double d = static_cast<double>(x);
  return static_cast<T>(detail::i1e(d) * std::exp(std::fabs(d)));
}
template <std::floating_point T>
inline T k0(T x) {
  double d = static_cast<double>(x);
  return static_cast<T>(detail::k0e(d) * std::exp(-d));
}
template <std::floating_point T>
inline T k1(T x) {
  double d = static_cast<double>(x);
  return static_cast<T>(detail::k1e(d) * std::exp(-d));
}
// PyTorch gives NaN at infinity.
template <std::floating_point T>
inline T besselJ0(T x) {
  return std::isinf(x) ? std::numeric_limits<T>::quiet_NaN()
                       : static_cast<T>(::j0(static_cast<double>(x)));
}
template <std::floating_point T>
inline T besselJ1(T x) {
  return std::isinf(x) ? std::numeric_limits<T>::quiet_NaN()
                       : static_cast<T>(::j1(static_cast<double>(x)));
}
template <std::floating_point T>
inline T besselY0(T x) {
  return std::isinf(x) ? std::numeric_limits<T>::quiet_NaN()
                       : static_cast<T>(::y0(static_cast<double>(x)));
}
template <std::floating_point T>
inline T besselY1(T x) {
  return std::isinf(x) ? std::numeric_limits<T>::quiet_NaN()
                       : static_cast<T>(::y1(static_cast<double>(x)));
}

}  // namespace wick::math
