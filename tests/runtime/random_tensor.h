// Operands whose products float32 adds up exactly, in every order.
#pragma once

#include <random>

#include "core/tensor.h"

namespace wick {

// Multiples of a quarter between -2 and 2, of any floating dtype.
inline Tensor randomQuarters(const DimVector& sizes, DType dtype, std::mt19937& rng) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  std::uniform_int_distribution<int> quarters(-8, 8);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>(quarters(rng)) / 4;
  }
  return t.to(dtype);
}

}  // namespace wick
