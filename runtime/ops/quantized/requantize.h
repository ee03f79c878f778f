// From the int32 sums of a product of bytes to real numbers.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cmath>

#include "runtime/ops/quantized/byte_lanes.h"
#include "runtime/ops/quantized/packed_params.h"

namespace wick::ops::quantized {

// result = (sum, corrected for the zero points) * slope + addend, for each output channel.
class Finish {
 public:
  // Of products of `depth` bytes on the grid `input` with the columns of `weight`, in steps of
  // `out_scale`. `column_sums` are those of channels [i * n, (i + 1) * n) for the i-th matrix of n
  // columns.
  Finish(const Grid& input, const ChannelGrid& weight, std::span<const PackedBytes> matrices,
         const Tensor& bias, double out_scale)
      : symmetric_(weight.symmetric) {
    int64_t channel = 0;
    for (const PackedBytes& matrix : matrices) {
      for (int64_t c = 0; c < matrix.columns(); ++c) {
        add(input, weight, channel++, matrix.sums()[c], matrix.depth(), bias, out_scale);
      }
    }
  }
  Finish(const Grid& input, const ChannelGrid& weight, const PackedBytes& matrix,
         const Tensor& bias, double out_scale)
      : Finish(input, weight, std::span(&matrix, 1), bias, out_scale) {}
  explicit Finish(const ChannelGrid& weight) : symmetric_(weight.symmetric) {}

  void add(const Grid& input, const ChannelGrid& weight, int64_t channel, int32_t column_sum,
           int64_t depth, const Tensor& bias, double out_scale) {
    const int64_t zero = weight.zeroPoint(channel);
    constants_.push_back(
        static_cast<int32_t>(static_cast<uint64_t>(input.zero_point) *
                             static_cast<uint64_t>(depth * zero - int64_t{column_sum})));
    slopes_.push_back(static_cast<float>(input.scale * weight.scale(channel) / out_scale));
    addends_.push_back(bias.defined() ? static_cast<float>(bias.data<float>()[channel] / out_scale)
                                      : 0.0f);
    if (!symmetric_) zero_points_.push_back(static_cast<int32_t>(zero));
  }

  // Whether row() wants the sum of the row's own bytes.
  bool needsRowSum() const { return !symmetric_; }
  void row(const int32_t* sums, int64_t first, int64_t count, int32_t row_sum, bool relu,
           float* out) const {
    const int32_t* constants = constants_.data() + first;
    const float* slopes = slopes_.data() + first;
    const float* addends = addends_.data() + first;
    const int32_t* zeros = symmetric_ ? nullptr : zero_points_.data() + first;
    for (int64_t c = 0; c < count; ++c) {
      // Wrapping, as the sums do.
      uint32_t sum = static_cast<uint32_t>(sums[c]) + static_cast<uint32_t>(constants[c]);
      if (zeros) sum -= static_cast<uint32_t>(zeros[c]) * static_cast<uint32_t>(row_sum);
      out[c] = static_cast<float>(static_cast<int32_t>(sum)) * slopes[c] + addends[c];
    }
    if (!relu) return;
    for (int64_t c = 0; c < count; ++c) out[c] = out[c] > 0 ? out[c] : 0;
  }

  // The same in steps of the result's grid, rounded to bytes around `zero_point`.
  void rowOfBytes(const int32_t* sums, int64_t first, int64_t count, int32_t row_sum, bool relu,
                  float zero_point, uint8_t* out) const {
    if (!symmetric_) {
      constexpr int64_t kChunk = 64;
      float values[kChunk];
      for (int64_t at = 0; at < count; at += kChunk) {
        const int64_t n = std::min(kChunk, count - at);
        row(sums + at, first + at, n, row_sum, relu, values);
        for (int64_t c = 0; c < n; ++c) {
          out[at + c] =
              static_cast<uint8_t>(static_cast<int32_t>(roundedByte(values[c], zero_point)));
        }
      }
      return;
    }
    // Below the zero point lies what is negative.
    const float least = relu ? zero_point : 0;
    const ByteLanes lanes(zero_point, rangeOf(DType::QUInt8), least);
    const int32_t* constants = constants_.data() + first;
    const float* slopes = slopes_.data() + first;
    const float* addends = addends_.data() + first;
    int64_t c = 0;
    for (; c + ByteLanes::kCount <= count; c += ByteLanes::kCount) {
      __m256 steps[4];
      for (int64_t k = 0; k < 4; ++k) {
        const int64_t at = c + 8 * k;
        const __m256i sum = _mm256_add_epi32(integersAt(sums + at), integersAt(constants + at));
        steps[k] =
            _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(sum), _mm256_loadu_ps(slopes + at)),
                          _mm256_loadu_ps(addends + at));
      }
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + c), lanes.round(steps));
    }
    for (; c < count; ++c) {
      const uint32_t sum = static_cast<uint32_t>(sums[c]) + static_cast<uint32_t>(constants[c]);
      const float value = static_cast<float>(static_cast<int32_t>(sum)) * slopes[c] + addends[c];
      const float rounded = roundedByte(value, zero_point);
      out[c] = static_cast<uint8_t>(static_cast<int32_t>(rounded > least ? rounded : least));
    }
  }

 private:
  static __m256i integersAt(const int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }

  // As Rounding (values.h) computes it; what is too large for 64 bits becomes 0.
  static float roundedByte(float steps, float zero_point) {
    float v = zero_point + std::rint(steps);
    v = v < 0x1p63f ? v : 0;
    v = v > 0 ? v : 0;
    return v < 255 ? v : 255;
  }

  bool symmetric_;
  CountedVector<int32_t> constants_;
  CountedVector<float> slopes_;
  CountedVector<float> addends_;
  CountedVector<int32_t> zero_points_;
};

inline int32_t sumOf(const uint8_t* bytes, int64_t n) {
  uint32_t sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += bytes[i];
  return static_cast<int32_t>(sum);
}

}  // namespace wick::ops::quantized
