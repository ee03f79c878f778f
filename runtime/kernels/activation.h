// The functions that layers end with when an operator computes a layer together with what follows.
#pragma once

#include <string_view>

#include "core/tensor.h"

namespace wick {

enum class Activation : uint8_t { None, Relu, Sigmoid, Tanh, Gelu, Silu, HardTanh, HardSwish };
// "none" or "", "relu", "sigmoid", "tanh", "gelu", "silu", "relu6", "hardswish"; RuntimeError for
// another name.
Activation activationFromName(std::string_view name);

// What a layer does to its result: activation(result + residual). The residual may be undefined;
// it has the shape and the dtype of the result.
struct Epilogue {
  Tensor residual;
  Activation activation = Activation::None;

  bool empty() const { return !residual.defined() && activation == Activation::None; }
};

// p[i] = activation(p[i]) for n elements.
void activate(Activation activation, float* p, int64_t n);
void activate(Activation activation, double* p, int64_t n);

}  // namespace wick
