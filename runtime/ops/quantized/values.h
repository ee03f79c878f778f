// Between real numbers and the integers of quantized tensors, as PyTorch computes it: rounding half
// to even, what is no number or too large for 64 bits becoming the least integer.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/parallel.h"
#include "core/quantizer.h"
#include "runtime/ops/boxing.h"

namespace wick::ops::quantized {

// RuntimeError unless all tensors of the call are on the CPU, whose memory kernels read and where quantized
// tensors and packed weights lie.
void checkOnCpu(const CallFrame& frame);
// The kernel of an operator that works on tensors of any kind: it is called with tensors of any device, too.
template <auto kKernel>
void onCpu(CallFrame& frame) {
  checkOnCpu(frame);
  kKernel(frame);
}
#define WICK_CPU_KERNEL(function) (&::wick::ops::quantized::onCpu<WICK_KERNEL(function)>)

// Where results go: what operators are given as output_scale and output_zero_point.
struct Grid {
  double scale = 1;
  int64_t zero_point = 0;
};
inline Grid gridOf(const Quantizer& q) {
  return {q.scale(), q.zeroPoint()};
}
// RuntimeError when the zero point is no integer of the dtype.
void checkGrid(const char* op, const Grid& grid, DType dtype);

// What rounds to integers of [least, most]. `value * inverse` is in float32, as in PyTorch.
struct Rounding {
  Rounding(const Grid& grid, DType dtype)
      : inverse(1.0f / static_cast<float>(grid.scale)),
        zero_point(static_cast<float>(grid.zero_point)),
        range(rangeOf(dtype)) {}
  int64_t operator()(float value) const {
    const float rounded = zero_point + std::rint(value * inverse);
    if (!(rounded >= -0x1p63f && rounded < 0x1p63f)) return range.least;
    return std::clamp(static_cast<int64_t>(rounded), range.least, range.most);
  }
  float inverse;
  float zero_point;
  IntegerRange range;
};

// In float32, as PyTorch's vectors compute it: what is rounded to another grid depends on the last
// bit where it lies in the middle of two integers.
inline float realOf(int64_t integer, double scale, int64_t zero_point) {
  return (static_cast<float>(integer) - static_cast<float>(zero_point)) * static_cast<float>(scale);
}

// Calls f<T>() with the C++ type of the integers.
template <class F>
decltype(auto) dispatchIntegers(DType dtype, F&& f) {
  switch (dtype) {
    case DType::QInt8:
      return f.template operator()<int8_t>();
    case DType::QInt32:
      return f.template operator()<int32_t>();
    default:
      return f.template operator()<uint8_t>();
  }
}

template <class T>
T* integers(const Tensor& q) {
  return static_cast<T*>(q.rawData());
}

// Values of 8-bit integers: entry i stands for the integer i as an unsigned byte.
std::array<float, 256> realTable(const Tensor& q, const Quantizer& quantizer);

// `n` values, side by side.
void roundRun(const float* from, void* to, int64_t n, const Grid& grid, DType dtype);

// A float32 tensor on the grid, in its layout. RuntimeError for other dtypes.
Tensor quantize(const char* op, const Tensor& x, const Grid& grid, DType dtype);
Tensor quantizePerChannel(const char* op, const Tensor& x, Ref<Quantizer> quantizer, DType dtype);
// float32, in the tensor's layout.
Tensor dequantize(const char* op, const Tensor& q);

// The elements in the order of the layout that PyTorch would give results: row-major or channels
// last. A copy only when they lie otherwise.
Tensor inSomeOrder(const Tensor& q);
// As contiguous(), clone() and copyFrom() of tensors do, which take no quantized ones.
Tensor contiguous(const Tensor& q, MemoryFormat format = MemoryFormat::Contiguous);
Tensor clone(const Tensor& q, MemoryFormat format = MemoryFormat::Preserve);
// What aten::copy_ does: quantizes floating values to the destination's own grid; integers of
// quantized ones are copied, and the destination takes over their quantizer.
void copyInto(const char* op, const Tensor& destination, const Tensor& source);

// Each element's real number through f(float) -> float onto a grid. PyTorch takes 64 bytes at once, whose real numbers
// are scale * integer + shift, rounded once; what is left behind them is computed one by one. On ties that is
// another integer.
template <class F>
Tensor mapReal(const char* op, const Tensor& q, const Grid& out, F&& f) {
  const Quantizer& from = perTensorQuantizerOf(op, q);
  checkGrid(op, out, q.dtype());
  const Tensor x = inSomeOrder(q);
  Tensor result = emptyQuantizedLike(x, q.dtype(), Quantizer::perTensor(out.scale, out.zero_point));
  const Rounding rounding(out, q.dtype());
  const auto scale = static_cast<float>(from.scale());
  const float shift = scale * -static_cast<float>(from.zeroPoint());
  dispatchIntegers(q.dtype(), [&]<class T>() {
    const T* in = integers<T>(x);
    T* to = integers<T>(result);
    const auto at_once = [&](int64_t i) {
      return static_cast<T>(rounding(f(std::fma(scale, static_cast<float>(i), shift))));
    };
    const auto alone = [&](int64_t i) {
      return static_cast<T>(rounding(f(realOf(i, from.scale(), from.zeroPoint()))));
    };
    constexpr int64_t kAtOnce = 64 / sizeof(T);
    const int64_t first_alone = x.numel() / kAtOnce * kAtOnce;
    const auto each = [&](auto&& first, auto&& last) {
      parallelFor(x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
        const int64_t middle = std::clamp(first_alone, begin, end);
        for (int64_t i = begin; i < middle; ++i) to[i] = first(in[i]);
        for (int64_t i = middle; i < end; ++i) to[i] = last(in[i]);
      });
    };
    if constexpr (sizeof(T) == 1) {
      const auto tableOf = [](bool needed, auto&& one) {
        std::array<T, 256> table{};
        for (int i = 0; needed && i < 256; ++i) {
          table[static_cast<size_t>(i)] = one(static_cast<T>(i));
        }
        return [table](T i) { return table[static_cast<uint8_t>(i)]; };
      };
      each(tableOf(first_alone > 0, at_once), tableOf(first_alone < x.numel(), alone));
    } else {
      each(at_once, alone);
    }
  });
  return result;
}

// Each integer through f(int64_t) -> int64_t, which stays in the dtype's range; the grid stays.
template <class F>
Tensor mapIntegers(const char* op, const Tensor& q, F&& f) {
  perTensorQuantizerOf(op, q);
  const Tensor x = inSomeOrder(q);
  Tensor result = Tensor::emptyLike(x, q.dtype());
  result.impl()->become(TensorKind::Quantized, q.form());
  dispatchIntegers(q.dtype(), [&]<class T>() {
    const T* in = integers<T>(x);
    T* to = integers<T>(result);
    parallelFor(x.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = static_cast<T>(f(static_cast<int64_t>(in[i])));
    });
  });
  return result;
}

}  // namespace wick::ops::quantized
