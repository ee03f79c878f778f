// The mathematical functions that scalar definitions call. A builder offers each of them by its
// name; an emitter finds the address of the implementation in special_functions.h or the C library.
#pragma once

// _(name): functions of one float.
#define WICK_FORALL_UNARY_FUNCTIONS(_) \
  _(exp)                               \
  _(exp2)                              \
  _(expm1)                             \
  _(log)                               \
  _(log2)                              \
  _(log10)                             \
  _(log1p)                             \
  _(sin)                               \
  _(cos)                               \
  _(tan)                               \
  _(asin)                              \
  _(acos)                              \
  _(atan)                              \
  _(sinh)                              \
  _(cosh)                              \
  _(tanh)                              \
  _(asinh)                             \
  _(acosh)                             \
  _(atanh)                             \
  _(sqrt)                              \
  _(floor)                             \
  _(ceil)                              \
  _(trunc)                             \
  _(rint)                              \
  _(erf)                               \
  _(erfc)                              \
  _(erfcx)                             \
  _(erfinv)                            \
  _(lgamma)                            \
  _(digamma)                           \
  _(i0)                                \
  _(i0e)                               \
  _(i1)                                \
  _(i1e)                               \
  _(k0)                                \
  _(k0e)                               \
  _(k1)                                \
  _(k1e)                               \
  _(besselJ0)                          \
  _(besselJ1)                          \
  _(besselY0)                          \
  _(besselY1)                          \
  _(airyAi)                            \
  _(ndtri)                             \
  _(logNdtr)

// _(name): functions of two floats.
#define WICK_FORALL_BINARY_FUNCTIONS(_) \
  _(pow)                                \
  _(fmod)                               \
  _(atan2)                              \
  _(hypot)                              \
  _(copysign)                           \
  _(nextafter)                          \
  _(zeta)                               \
  _(polygamma)                          \
  _(igamma)                             \
  _(igammac)                            \
  _(chebyshevT)                         \
  _(chebyshevU)                         \
  _(chebyshevV)                         \
  _(chebyshevW)                         \
  _(hermiteH)                           \
  _(hermiteHe)                          \
  _(laguerreL)                          \
  _(legendreP)
