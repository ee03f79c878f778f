// Tensors on the fake driver's devices, and what calls with them raise.
#pragma once

#include "core/ivalue.h"
#include "core/tensor.h"
#include "tests/error_text.h"

#define EXPECT_ERROR(call, text)                                                          \
  EXPECT_NE(::wick::testing_errors::errorOf([&] { call; }).find(text), std::string::npos) \
      << ::wick::testing_errors::errorOf([&] { call; })

namespace wick::cuda {

inline constexpr Device kCuda{DeviceType::CUDA, -1};

inline Tensor zeros(const DimVector& sizes, DType type = DType::Float) {
  return Tensor::zeros(sizes, type, kCuda);
}
inline DimVector sizesOf(const Tensor& t) {
  return DimVector(t.sizes());
}
inline DimVector sizesOf(const IValue& v) {
  return sizesOf(v.toTensor());
}

}  // namespace wick::cuda
