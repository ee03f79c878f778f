// The mathematical functions that scalar definitions call. A builder offers each of them by its
// name; compiled code calls those that it has no arithmetic for (functionAddress() in
// expression.h).
#pragma once

// _(name): functions of one float that an engine without them calls.
#define WICK_FORALL_CALLED_UNARY_FUNCTIONS(_) \
  _(exp2)                                     \
  _(log2)                                     \
  _(log10)                                    \
  _(sin)                                      \
  _(cos)                                      \
  _(tan)                                      \
  _(asin)                                     \
  _(acos)                                     \
  _(atan)                                     \
  _(sinh)                                     \
  _(cosh)                                     \
  _(asinh)                                    \
  _(acosh)                                    \
  _(atanh)                                    \
  _(erfc)                                     \
  _(erfcx)                                    \
  _(erfinv)                                   \
  _(lgamma)                                   \
  _(digamma)                                  \
  _(i0)                                       \
  _(i0e)                                      \
  _(i1)                                       \
  _(i1e)                                      \
  _(k0)                                       \
  _(k0e)                                      \
  _(k1)                                       \
  _(k1e)                                      \
  _(besselJ0)                                 \
  _(besselJ1)                                 \
  _(besselY0)                                 \
  _(besselY1)                                 \
  _(airyAi)                                   \
  _(ndtri)                                    \
  _(logNdtr)

// _(name): functions of one float that have float32 arithmetic in float_functions.h.
#define WICK_FORALL_COMPOSED_FUNCTIONS(_) \
  _(exp)                                  \
  _(expm1)                                \
  _(log)                                  \
  _(log1p)                                \
  _(tanh)                                 \
  _(erf)                                  \
  _(rsqrt)                                \
  _(sigmoid)

// _(name): functions of one float; the last ones are single instructions.
#define WICK_FORALL_UNARY_FUNCTIONS(_)  \
  WICK_FORALL_CALLED_UNARY_FUNCTIONS(_) \
  WICK_FORALL_COMPOSED_FUNCTIONS(_)     \
  _(sqrt)                               \
  _(floor)                              \
  _(ceil)                               \
  _(trunc)                              \
  _(rint)

// _(name): functions of two floats that an engine without them calls.
#define WICK_FORALL_CALLED_BINARY_FUNCTIONS(_) \
  _(pow)                                       \
  _(fmod)                                      \
  _(atan2)                                     \
  _(hypot)                                     \
  _(nextafter)                                 \
  _(zeta)                                      \
  _(polygamma)                                 \
  _(igamma)                                    \
  _(igammac)                                   \
  _(chebyshevT)                                \
  _(chebyshevU)                                \
  _(chebyshevV)                                \
  _(chebyshevW)                                \
  _(hermiteH)                                  \
  _(hermiteHe)                                 \
  _(laguerreL)                                 \
  _(legendreP)

// _(name): functions of two floats.
#define WICK_FORALL_BINARY_FUNCTIONS(_)  \
  WICK_FORALL_CALLED_BINARY_FUNCTIONS(_) \
  _(copysign)
