// Tensors on the fake driver's devices, and what calls with them raise.
#pragma once

#include <vector>

#include "core/device_backend.h"
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
template <class T>
Tensor onDevice(const std::vector<T>& values) {
  const DimVector sizes{static_cast<int64_t>(values.size())};
  return moveTo(Tensor::fromData(values.data(), sizes), kCuda);
}
template <class T>
std::vector<T> elementsOf(const Tensor& t) {
  const Tensor here = moveTo(t, Device());
  return {here.data<T>(), here.data<T>() + here.numel()};
}
inline DimVector sizesOf(const Tensor& t) {
  return DimVector(t.sizes());
}
inline DimVector sizesOf(const IValue& v) {
  return sizesOf(v.toTensor());
}

}  // namespace wick::cuda
