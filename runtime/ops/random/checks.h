// Checks of random operators, for every device, and flags of their records.
#pragma once

#include "core/error.h"
#include "core/tensor.h"
#include "ir/operator.h"

namespace wick::ops {

inline constexpr uint64_t kDraw = kNondeterministic | kNotDifferentiable;

inline void checkUniform(double from, double to) {
  WICK_CHECK(from <= to, "uniform_ expects to return a [from, to) range, but found from={} > to={}",
             from, to);
}
inline void checkNormal(double std) {
  WICK_CHECK(std >= 0, "normal expects std >= 0.0, but found std {}", std);
}
inline void checkLogNormal(double std) {
  WICK_CHECK(std > 0, "log_normal_ expects std > 0.0, but found std={}", std);
}
inline void checkBernoulli(double p) {
  WICK_CHECK(p >= 0 && p <= 1, "bernoulli_ expects p to be in [0, 1], but got p={}", p);
}
inline void checkExponential(double lambda) {
  WICK_CHECK(lambda >= 0, "exponential_ expects lambda >= 0.0, but found lambda={}", lambda);
}
inline void checkGeometric(double p) {
  WICK_CHECK(p > 0 && p < 1, "geometric_ expects p to be in (0, 1), but got p={}", p);
}
inline void checkIntegers(const char* op, int64_t from, int64_t to) {
  WICK_CHECK(from < to, "{} expects 'from' to be less than 'to', but got from={} >= to={}", op,
             from, to);
}
inline void checkDropout(double p) {
  WICK_CHECK(p >= 0 && p <= 1, "dropout probability has to be between 0 and 1, but got {}", p);
}

// The sizes of what multinomial draws; RuntimeError when nothing can be drawn so.
DimVector multinomialSizes(const Tensor& self, int64_t samples, bool replacement);

// `t` with its dimensions in the order in which its elements lie in memory.
Tensor inMemoryOrder(const Tensor& t);

}  // namespace wick::ops
