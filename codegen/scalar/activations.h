// Scalar definitions: the activations of neural networks.
#pragma once

#include <numbers>

#include "codegen/scalar/definition.h"

namespace wick::scalar {

struct Relu : RealScalar {
  static constexpr const char* kName = "relu";
  WICK_APPLY1(x) {
    auto zero = b.constant(0);
    return b.select(b.lt(x, zero), zero, x);
  }
};
struct Sigmoid : FloatOrComplexScalar {
  static constexpr const char* kName = "sigmoid_cpu";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) { return b.sigmoid(x); }
};
struct Silu : StrictFloatOrComplexScalar {
  static constexpr const char* kName = "silu_cpu";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) { return b.div(x, b.add(b.constant(1), b.exp(b.neg(x)))); }
};
struct Mish : StrictFloatScalar {
  static constexpr const char* kName = "mish_cpu";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) { return b.mul(x, b.tanh(b.log1p(b.exp(x)))); }
};
struct LeakyRelu : StrictFloatScalar {
  static constexpr const char* kName = "leaky_relu_cpu";
  static constexpr uint8_t kParams = 2;
  WICK_APPLY2(x, slope) { return b.select(b.gt(x, b.constant(0)), x, b.mul(x, slope)); }
};
// The factors of the two branches are separate, so that elu, selu and celu are one definition.
struct Elu : StrictFloatScalar {
  static constexpr const char* kName = "elu_cpu";
  static constexpr uint8_t kParams = 14;
  WICK_APPLY4(x, negative, positive, input) {
    auto below = b.mul(b.expm1(b.mul(x, input)), negative);
    return b.select(b.le(x, b.constant(0)), below, b.mul(x, positive));
  }
};
struct Gelu : StrictFloatScalar {
  static constexpr const char* kName = "GeluKernelImpl";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) {
    auto phi = b.add(b.constant(1), b.erf(b.mul(x, b.constant(std::numbers::sqrt2 / 2))));
    return b.mul(b.mul(x, b.constant(0.5)), phi);
  }
};
struct GeluTanh : StrictFloatScalar {
  static constexpr const char* kName = "GeluKernelImpl";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) {
    auto cube = b.mul(b.mul(x, x), x);
    auto inner = b.mul(b.constant(std::numbers::sqrt2 * std::numbers::inv_sqrtpi),
                       b.add(x, b.mul(b.constant(0.044715), cube)));
    return b.mul(b.mul(b.constant(0.5), x), b.add(b.constant(1), b.tanh(inner)));
  }
};
struct Hardtanh : RealScalar {
  static constexpr const char* kName = "hardtanh";
  static constexpr uint8_t kParams = 6;
  WICK_APPLY3(x, low, high) {
    auto raised = b.select(b.either(b.isNan(x), b.ge(x, low)), x, low);
    return b.select(b.either(b.isNan(raised), b.le(raised, high)), raised, high);
  }
};
// x + 3 limited to [0, 6].
template <class B>
auto hardRamp(B b, typename B::V x) {
  auto zero = b.constant(0);
  auto six = b.constant(6);
  auto shifted = b.add(x, b.constant(3));
  auto raised = b.select(b.lt(shifted, zero), zero, shifted);
  return b.select(b.gt(raised, six), six, raised);
}
struct Hardswish : StrictFloatScalar {
  static constexpr const char* kName = "hardswish_cpu";
  WICK_APPLY1(x) { return b.div(b.mul(x, hardRamp(b, x)), b.constant(6)); }
};
struct Hardsigmoid : StrictFloatScalar {
  static constexpr const char* kName = "hardsigmoid_cpu";
  WICK_APPLY1(x) { return b.div(hardRamp(b, x), b.constant(6)); }
};
struct Softplus : StrictFloatScalar {
  static constexpr const char* kName = "softplus_cpu";
  static constexpr uint8_t kParams = 6;
  WICK_APPLY3(x, beta, threshold) {
    auto scaled = b.mul(x, beta);
    auto soft = b.div(b.log1p(b.exp(scaled)), beta);
    return b.select(b.gt(scaled, threshold), x, soft);
  }
};
struct Softshrink : StrictFloatScalar {
  static constexpr const char* kName = "softshrink_cpu";
  static constexpr uint8_t kParams = 2;
  WICK_APPLY2(x, lambda) {
    auto below = b.select(b.lt(x, b.neg(lambda)), b.add(x, lambda), b.constant(0));
    return b.select(b.gt(x, lambda), b.sub(x, lambda), below);
  }
};
struct Hardshrink : StrictFloatScalar {
  static constexpr const char* kName = "hardshrink_cpu";
  static constexpr uint8_t kParams = 2;
  WICK_APPLY2(x, lambda) {
    auto inside = b.both(b.ge(x, b.neg(lambda)), b.le(x, lambda));
    return b.select(inside, b.constant(0), x);
  }
};
struct Threshold : RealScalar {
  static constexpr const char* kName = "threshold_cpu";
  static constexpr uint8_t kParams = 6;
  WICK_APPLY3(x, threshold, value) { return b.select(b.le(x, threshold), value, x); }
};
struct LogSigmoid : StrictFloatScalar {
  static constexpr const char* kName = "log_sigmoid_cpu";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) {
    auto zero = b.constant(0);
    auto least = b.select(b.gt(x, zero), zero, x);
    return b.sub(least, b.log1p(b.exp(b.neg(b.abs(x)))));
  }
};
struct Prelu : StrictFloatScalar {
  static constexpr const char* kName = "prelu_cpu";
  WICK_APPLY2(x, weight) { return b.select(b.gt(x, b.constant(0)), x, b.mul(weight, x)); }
};
struct Tanhshrink : FloatOrComplexScalar {
  static constexpr const char* kName = "tanhshrink";
  static constexpr bool kOnLanes = true;
  WICK_APPLY1(x) { return b.sub(x, b.tanh(x)); }
};

}  // namespace wick::scalar
