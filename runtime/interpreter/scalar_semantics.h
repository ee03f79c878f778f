// What the scalar instructions compute, once for every engine that runs them.
#pragma once

#include <cmath>
#include <cstdint>

#include "core/convert.h"
#include "core/error.h"

namespace wick::scalar {

// Two's complement wrap-around, as PyTorch's int64 arithmetic.
inline int64_t add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
// Whether both are in [0, 2^32): division of 32-bit numbers takes a fraction of the time, and needs
// no rounding.
inline bool areSmall(int64_t a, int64_t b) {
  return (static_cast<uint64_t>(a | b) >> 32) == 0;
}
// The quotient that wraps (INT64_MIN / -1) is a negation, which the processor's division is not.
inline int64_t floorDivide(int64_t a, int64_t b) {
  WICK_CHECK(b != 0, "division by 0");
  if (areSmall(a, b)) return static_cast<uint32_t>(a) / static_cast<uint32_t>(b);
  if (b == -1) return sub(0, a);
  int64_t quotient = a / b;
  return quotient - ((a % b != 0) & ((a < 0) != (b < 0)));
}
inline int64_t modulo(int64_t a, int64_t b) {
  WICK_CHECK(b != 0, "modulo by 0");
  if (areSmall(a, b)) return static_cast<uint32_t>(a) % static_cast<uint32_t>(b);
  if (b == -1) return 0;
  int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}
inline double modulo(double a, double b) {
  return std::fmod(b + std::fmod(a, b), b);
}

}  // namespace wick::scalar

// _(instruction, result, expression) where I(x), D(x) and B(x) read operand x (b or c) as int,
// float and bool.
#define WICK_FORALL_SCALAR_SEMANTICS(_)                                     \
  _(ADD_INT, int64_t, scalar::add(I(b), I(c)))                              \
  _(SUB_INT, int64_t, scalar::sub(I(b), I(c)))                              \
  _(MUL_INT, int64_t, scalar::mul(I(b), I(c)))                              \
  _(FLOORDIV_INT, int64_t, scalar::floorDivide(I(b), I(c)))                 \
  _(MOD_INT, int64_t, scalar::modulo(I(b), I(c)))                           \
  _(DIV_INT, double, static_cast<double>(I(b)) / static_cast<double>(I(c))) \
  _(AND_INT, int64_t, I(b) & I(c))                                          \
  _(OR_INT, int64_t, I(b) | I(c))                                           \
  _(XOR_INT, int64_t, I(b) ^ I(c))                                          \
  _(AND_BOOL, bool, B(b) && B(c))                                           \
  _(OR_BOOL, bool, B(b) || B(c))                                            \
  _(XOR_BOOL, bool, B(b) != B(c))                                           \
  _(NEG_INT, int64_t, scalar::sub(0, I(b)))                                 \
  _(ADD_FLOAT, double, D(b) + D(c))                                         \
  _(SUB_FLOAT, double, D(b) - D(c))                                         \
  _(MUL_FLOAT, double, D(b) * D(c))                                         \
  _(DIV_FLOAT, double, D(b) / D(c))                                         \
  _(FLOORDIV_FLOAT, double, std::floor(D(b) / D(c)))                        \
  _(MOD_FLOAT, double, scalar::modulo(D(b), D(c)))                          \
  _(NEG_FLOAT, double, -D(b))                                               \
  _(LT_INT, bool, I(b) < I(c))                                              \
  _(LE_INT, bool, I(b) <= I(c))                                             \
  _(EQ_INT, bool, I(b) == I(c))                                             \
  _(NE_INT, bool, I(b) != I(c))                                             \
  _(LT_FLOAT, bool, D(b) < D(c))                                            \
  _(LE_FLOAT, bool, D(b) <= D(c))                                           \
  _(EQ_FLOAT, bool, D(b) == D(c))                                           \
  _(NE_FLOAT, bool, D(b) != D(c))                                           \
  _(NOT, bool, !B(b))                                                       \
  _(INT_TO_FLOAT, double, static_cast<double>(I(b)))                        \
  _(FLOAT_TO_INT, int64_t, truncateTo<int64_t>(D(b)))                       \
  _(BOOL_TO_INT, int64_t, I(b))                                             \
  _(INT_TO_BOOL, bool, I(b) != 0)                                           \
  _(FLOAT_TO_BOOL, bool, D(b) != 0)

// _(instruction, condition) on operands a and b.
#define WICK_FORALL_COMPARE_JUMPS(_)       \
  _(JUMP_IF_LT_INT, I(a) < I(b))           \
  _(JUMP_IF_LE_INT, I(a) <= I(b))          \
  _(JUMP_IF_EQ_INT, I(a) == I(b))          \
  _(JUMP_IF_NE_INT, I(a) != I(b))          \
  _(JUMP_IF_LT_FLOAT, D(a) < D(b))         \
  _(JUMP_IF_LE_FLOAT, D(a) <= D(b))        \
  _(JUMP_IF_EQ_FLOAT, D(a) == D(b))        \
  _(JUMP_UNLESS_LT_FLOAT, !(D(a) < D(b)))  \
  _(JUMP_UNLESS_LE_FLOAT, !(D(a) <= D(b))) \
  _(JUMP_UNLESS_EQ_FLOAT, !(D(a) == D(b)))
