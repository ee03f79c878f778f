// Gradients for applications: the walk back from a loss, and what it leaves at the parameters.
#pragma once

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick {

// Adds the gradients of a loss of one element to those of all leaves that it depends on.
// RuntimeError when the loss is no scalar, when it depends on nothing that requires a gradient, and
// for what goes wrong in derivatives. Recording must have been on (core/grad_mode.h), as it is
// unless switched off. Thread-safe for losses that do not share leaves.
void backward(const Tensor& loss);
// What was accumulated at a leaf; undefined for nothing.
Tensor gradientOf(const Tensor& leaf);
// Replaces it; an undefined one takes it away.
void setGradient(const Tensor& leaf, Tensor gradient);

}  // namespace wick

#pragma GCC visibility pop
