#include "runtime/kernels/activation.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/float_functions.h"
#include "core/error.h"

namespace wick {

namespace {

// What the operators of these names compute.
float sigmoid(float x) {
  return math::sigmoid(x);
}
double sigmoid(double x) {
  return math::sigmoid(x);
}
float tanh(float x) {
  return math::tanh(x);
}
double tanh(double x) {
  return math::tanh(x);
}
float erf(float x) {
  return math::erf(x);
}
double erf(double x) {
  return std::erf(x);
}
float exp(float x) {
  return math::exp(x);
}
double exp(double x) {
  return math::exp(x);
}

// The switch stands outside of the loops, so that they vectorize.
template <class T>
void activateAll(Activation activation, T* p, int64_t n) {
  auto each = [&](auto f) {
    for (int64_t i = 0; i < n; ++i) p[i] = f(p[i]);
  };
  switch (activation) {
    case Activation::None:
      return;
    case Activation::Relu:
      return each([](T x) { return x < T(0) ? T(0) : x; });
    case Activation::Sigmoid:
      return each([](T x) { return sigmoid(x); });
    case Activation::Tanh:
      return each([](T x) { return tanh(x); });
    case Activation::Gelu:
      return each(
          [](T x) { return x * T(0.5) * (T(1) + erf(x * (std::numbers::sqrt2_v<T> / 2))); });
    case Activation::Silu:
      return each([](T x) { return x / (T(1) + exp(-x)); });
    case Activation::HardTanh:
      return each([](T x) { return x < T(0) ? T(0) : x > T(6) ? T(6) : x; });
    case Activation::HardSwish:
      return each([](T x) { return x * std::min(std::max(x + T(3), T(0)), T(6)) / T(6); });
  }
}

}  // namespace

void activate(Activation activation, float* p, int64_t n) {
  activateAll(activation, p, n);
}

void activate(Activation activation, double* p, int64_t n) {
  activateAll(activation, p, n);
}

Activation activationFromName(std::string_view name) {
  if (name.empty() || name == "none") return Activation::None;
  if (name == "relu") return Activation::Relu;
  if (name == "sigmoid") return Activation::Sigmoid;
  if (name == "tanh") return Activation::Tanh;
  if (name == "gelu") return Activation::Gelu;
  if (name == "silu") return Activation::Silu;
  if (name == "relu6") return Activation::HardTanh;
  if (name == "hardswish") return Activation::HardSwish;
  throwRuntimeError("expected the name of an activation, got \"{}\"", name);
}

}  // namespace wick
