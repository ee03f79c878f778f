// Arithmetic with gradients. What it does is recorded when gradients of gradients are wanted.
#pragma once

#include "autograd/tape.h"

namespace wick::autograd {

// a + b, where either may be undefined. What is returned may be `b` itself, without a copy.
Tensor sumOfGradients(const Tensor& a, const Tensor& b);
// sum = sum + gradient, in the memory of `sum` where nobody can notice. `sum` may be undefined.
void addGradient(Tensor& sum, const Tensor& gradient);
// The gradient in the form that the result has to which it belongs: summed over what was broadcast,
// converted, its real part. RuntimeError when it does not fit. `where` begins the message.
Tensor fitted(const Tensor& gradient, const Shape& shape, const std::string& where);
// Whether a tensor of sizes `from` may be repeated to sizes `to`.
bool broadcastsTo(IntSpan from, IntSpan to);
Tensor zerosFor(const Shape& shape);
// A copy of the elements of a tensor of any kind, without its history.
Tensor copyOf(const Tensor& t);

}  // namespace wick::autograd
