// Rounding of floats to bytes, thirty-two at a time: what Rounding (values.h) computes for one.
#pragma once

#include <immintrin.h>

#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

class ByteLanes {
 public:
  static constexpr int64_t kCount = 32;

  // `at_least` is where results are cut off below, the range's own end or above it (the zero point
  // after relu).
  ByteLanes(float zero_point, const IntegerRange& range, float at_least)
      : zero_point_(_mm256_set1_ps(zero_point)),
        least_(_mm256_set1_ps(static_cast<float>(range.least))),
        at_least_(_mm256_set1_ps(at_least)),
        most_(_mm256_set1_ps(static_cast<float>(range.most))),
        is_signed_(range.least < 0) {}

  // zero_point + rint(steps) of kCount floats, cut off. What is no number, or 2^63 and more, counts
  // as the range's least.
  __m256i round(const __m256 (&steps)[4]) const {
    const __m256i a = _mm256_packs_epi32(whole(steps[0]), whole(steps[1]));
    const __m256i b = _mm256_packs_epi32(whole(steps[2]), whole(steps[3]));
    const __m256i bytes = is_signed_ ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
    // Packing goes on within each half.
    return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  }

 private:
  __m256i whole(__m256 steps) const {
    const __m256 huge = _mm256_set1_ps(0x1p63f);
    __m256 v = _mm256_add_ps(zero_point_,
                             _mm256_round_ps(steps, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
    v = _mm256_blendv_ps(least_, v, _mm256_cmp_ps(v, huge, _CMP_LT_OQ));
    return _mm256_cvtps_epi32(_mm256_min_ps(_mm256_max_ps(v, at_least_), most_));
  }

  __m256 zero_point_, least_, at_least_, most_;
  bool is_signed_;
};

}  // namespace wick::ops::quantized
