#include "runtime/kernels/softmax.h"

#include <immintrin.h>

#include <cmath>
#include <limits>

#include "codegen/scalar/lanes.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/reduce_rows.h"

namespace wick {

namespace {

// Of an unordered pair max gives the second: NaN stays.
__m256 expNonPositive(__m256 x) {
  return floats::expInRange(floats::LaneOps(), _mm256_max_ps(_mm256_set1_ps(-104.0f), x));
}

float horizontalSum(__m256 v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

__m256i tailMask(int64_t n) {
  alignas(32) static constexpr int32_t kMask[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kMask + 8 - n));
}

float rowMax(const float* x, int64_t n) {
  float best = -std::numeric_limits<float>::infinity();
  int64_t i = 0;
  if (n >= 8) {
    __m256 m = _mm256_loadu_ps(x);
    for (i = 8; i + 8 <= n; i += 8) m = _mm256_max_ps(m, _mm256_loadu_ps(x + i));
    alignas(32) float lanes[8];
    _mm256_store_ps(lanes, m);
    for (float l : lanes) best = l > best ? l : best;
  }
  for (; i < n; ++i) best = x[i] > best ? x[i] : best;
  return best;
}

// A maximum that missed a NaN does not matter: the NaN makes the sum one.
void softmaxRow(const float* x, float* out, int64_t n, bool logarithm) {
  float max = rowMax(x, n);
  __m256 shift = _mm256_set1_ps(max), sums = _mm256_setzero_ps();
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256 e = expNonPositive(_mm256_sub_ps(_mm256_loadu_ps(x + i), shift));
    sums = _mm256_add_ps(sums, e);
    if (!logarithm) _mm256_storeu_ps(out + i, e);
  }
  if (i < n) {
    __m256i mask = tailMask(n - i);
    __m256 e = expNonPositive(_mm256_sub_ps(_mm256_maskload_ps(x + i, mask), shift));
    e = _mm256_and_ps(e, _mm256_castsi256_ps(mask));
    sums = _mm256_add_ps(sums, e);
    if (!logarithm) _mm256_maskstore_ps(out + i, mask, e);
  }
  float sum = horizontalSum(sums);
  if (logarithm) {
    float log_sum = std::log(sum);
    for (i = 0; i < n; ++i) out[i] = x[i] - max - log_sum;
  } else {
    float scale = 1.0f / sum;
    for (i = 0; i < n; ++i) out[i] *= scale;
  }
}

// Columns of n elements, `step` floats from one row to the next: as many as kStrip, so that they
// stay in the cache.
constexpr int64_t kStrip = 64;
void softmaxColumns(const float* x, float* out, int64_t n, int64_t step, int64_t width,
                    bool logarithm) {
  constexpr int64_t kVectors = kStrip / 8;
  const int64_t vectors = (width + 7) / 8;
  const __m256i mask = tailMask(width - 8 * (vectors - 1));
  const auto get = [&](const float* row, int64_t v) {
    return v + 1 < vectors ? _mm256_loadu_ps(row + 8 * v) : _mm256_maskload_ps(row + 8 * v, mask);
  };
  const auto put = [&](float* row, int64_t v, __m256 value) {
    if (v + 1 < vectors) {
      _mm256_storeu_ps(row + 8 * v, value);
    } else {
      _mm256_maskstore_ps(row + 8 * v, mask, value);
    }
  };
  __m256 max[kVectors], sum[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) {
    max[v] = _mm256_set1_ps(-std::numeric_limits<float>::infinity());
    sum[v] = _mm256_setzero_ps();
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t v = 0; v < vectors; ++v) max[v] = _mm256_max_ps(get(x + i * step, v), max[v]);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t v = 0; v < vectors; ++v) {
      const __m256 e = expNonPositive(_mm256_sub_ps(get(x + i * step, v), max[v]));
      sum[v] = _mm256_add_ps(sum[v], e);
      if (!logarithm) put(out + i * step, v, e);
    }
  }
  for (int64_t v = 0; v < vectors; ++v) {
    sum[v] = logarithm ? __m256(floats::log(floats::LaneOps(), sum[v]))
                       : _mm256_div_ps(_mm256_set1_ps(1.0f), sum[v]);
  }
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t v = 0; v < vectors; ++v) {
      if (logarithm) {
        const __m256 shifted = _mm256_sub_ps(get(x + i * step, v), max[v]);
        put(out + i * step, v, _mm256_sub_ps(shifted, sum[v]));
      } else {
        put(out + i * step, v, _mm256_mul_ps(get(out + i * step, v), sum[v]));
      }
    }
  }
}

// Of float64, without gaps.
void softmaxRow(const double* x, double* out, int64_t n, bool logarithm) {
  using B = DoubleLaneBuilder;
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) max = x[i] > max ? x[i] : max;
  B::V sums{};
  int64_t i = 0;
  for (; i + B::kLanes <= n; i += B::kLanes) {
    const B::V e = B::exp(_mm256_loadu_pd(x + i) - max);
    sums += e;
    if (!logarithm) _mm256_storeu_pd(out + i, e);
  }
  double sum = sums[0] + sums[1] + (sums[2] + sums[3]);
  for (; i < n; ++i) {
    const double e = math::exp(x[i] - max);
    sum += e;
    if (!logarithm) out[i] = e;
  }
  const double log_sum = std::log(sum);
  for (i = 0; i < n; ++i) out[i] = logarithm ? x[i] - max - log_sum : out[i] / sum;
}

// One strided lane.
void softmaxLane(const double* x, double* out, int64_t n, int64_t stride, bool logarithm) {
  double max = -std::numeric_limits<double>::infinity();
  for (int64_t i = 0; i < n; ++i) max = x[i * stride] > max ? x[i * stride] : max;
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += math::exp(x[i * stride] - max);
  const double log_sum = std::log(sum);
  for (int64_t i = 0; i < n; ++i) {
    const double v = x[i * stride] - max;
    out[i * stride] = logarithm ? v - log_sum : math::exp(v) / sum;
  }
}

}  // namespace

Tensor softmaxAlong(const Tensor& input, int64_t dim, bool logarithm) {
  if (isReducedFloat(input.dtype())) {
    return softmaxAlong(input.to(DType::Float), dim, logarithm).to(input.dtype());
  }
  Tensor x = input.contiguous();
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return out;
  int64_t n = x.dim() == 0 ? 1 : x.size(dim), inner = 1;
  for (int64_t d = dim + 1; d < x.dim(); ++d) inner *= x.size(d);
  int64_t lanes = x.numel() / n;
  if (x.dtype() == DType::Float && inner > 1) {
    const int64_t strips = (inner + kStrip - 1) / kStrip;
    const auto strip = [&](int64_t i) {
      const int64_t first = i % strips * kStrip, at = i / strips * n * inner + first;
      softmaxColumns(x.data<float>() + at, out.data<float>() + at, n, inner,
                     std::min(kStrip, inner - first), logarithm);
    };
    parallelFor(lanes / inner * strips, std::max<int64_t>(1, kGrainSize / (8 * kStrip) / n),
                [&](int64_t begin, int64_t end) {
                  for (int64_t i = begin; i < end; ++i) strip(i);
                });
    return out;
  }
  dispatch<kFloats>("softmax", x.dtype(), [&]<class T>() {
    parallelFor(lanes, std::max<int64_t>(1, kGrainSize / 8 / n), [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        int64_t start = lane / inner * n * inner + lane % inner;
        const T* from = x.data<T>() + start;
        T* to = out.data<T>() + start;
        if (std::is_same_v<T, float> || inner == 1) {
          softmaxRow(from, to, n, logarithm);
        } else if constexpr (!std::is_same_v<T, float>) {
          softmaxLane(from, to, n, inner, logarithm);
        }
      }
    });
  });
  return out;
}

void logSumExpRows(const float* x, float* out, int64_t rows, int64_t n) {
  using reduce::rows::Doubles;
  const auto row = [&](const float* p) {
    bool nan = false;
    const float max = reduce::extremeOfRow<true>(p, n, nan);
    if (nan) return std::numeric_limits<float>::quiet_NaN();
    // Infinite maxima would subtract to NaN.
    if (std::isinf(max)) return max;
    const __m256 shift = _mm256_set1_ps(max);
    Doubles sums[2] = {};
    const auto add = [&](__m256 e) {
      sums[0] += reduce::rows::low(e);
      sums[1] += reduce::rows::high(e);
    };
    int64_t i = 0;
    for (; i + 8 <= n; i += 8) add(expNonPositive(_mm256_sub_ps(_mm256_loadu_ps(p + i), shift)));
    if (i < n) {
      const __m256i mask = tailMask(n - i);
      const __m256 e = expNonPositive(_mm256_sub_ps(_mm256_maskload_ps(p + i, mask), shift));
      add(_mm256_and_ps(e, _mm256_castsi256_ps(mask)));
    }
    const Doubles sum = sums[0] + sums[1];
    return static_cast<float>(max + std::log(sum[0] + sum[1] + sum[2] + sum[3]));
  };
  parallelFor(rows, std::max<int64_t>(1, kGrainSize / 8 / n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = row(x + i * n);
  });
}

}  // namespace wick
