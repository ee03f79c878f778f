// Short ways to build tensors, call an operator by name and read its result.
#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"
#include "runtime/ops/call.h"

namespace wick::testing {

template <class T>
Tensor tensorOf(std::initializer_list<T> values) {
  return Tensor::fromData(values.begin(), DimVector{static_cast<int64_t>(values.size())});
}
inline Tensor longs(std::initializer_list<int64_t> values) {
  return tensorOf<int64_t>(values);
}
inline Tensor floats(std::initializer_list<float> values) {
  return tensorOf<float>(values);
}
inline Tensor bools(std::initializer_list<bool> values) {
  Tensor t = Tensor::empty(DimVector{static_cast<int64_t>(values.size())}, DType::Bool);
  std::copy(values.begin(), values.end(), t.data<bool>());
  return t;
}
// 0, 1, 2, … of the shape.
inline Tensor iota(IntSpan sizes, DType dtype = DType::Float) {
  Tensor t = Tensor::empty(sizes, DType::Long);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<int64_t>()[i] = i;
  return t.to(dtype);
}

// The elements in row-major order.
inline std::vector<double> values(const Tensor& t) {
  Tensor flat = t.to(DType::Double).contiguous();
  return {flat.data<double>(), flat.data<double>() + flat.numel()};
}
inline std::vector<int64_t> shape(const Tensor& t) {
  return {t.sizes().begin(), t.sizes().end()};
}

// All results of `name.overload`; trailing arguments take their defaults.
template <class... Args>
std::vector<IValue> callAll(const char* name, const char* overload, Args&&... args) {
  return OperatorHandle(name, overload).all(std::forward<Args>(args)...);
}
template <class... Args>
Tensor call(const char* name, const char* overload, Args&&... args) {
  return callAll(name, overload, std::forward<Args>(args)...)[0].toTensor();
}

using Values = std::vector<double>;
using Shape = std::vector<int64_t>;

}  // namespace wick::testing
