#include "runtime/kernels/normalization.h"

#include <immintrin.h>

#include <cmath>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/moments.h"
#include "runtime/kernels/reduce.h"

namespace wick::normalization {

namespace {

// Sums of values and of squares. In float64 nothing that float32 inputs can show cancels.
struct SumsOp {
  struct Acc {
    double sum, squares;
  };
  double count;
  Acc init() const { return {0, 0}; }
  template <class T>
  void step(Acc& a, T v) const {
    double x = static_cast<double>(v);
    a.sum += x;
    a.squares += x * x;
  }
  void merge(Acc& a, const Acc& b) const { a = {a.sum + b.sum, a.squares + b.squares}; }
  MeanVariance finish(const Acc& a) const {
    double mean = a.sum / count;
    double variance = a.squares / count - mean * mean;
    return {mean, variance < 0 ? 0 : variance};  // keeps NaN
  }
};

// For float64 inputs, where that difference would lose digits.
struct WelfordOp {
  using Acc = RunningMoments;
  Acc init() const { return {}; }
  void step(Acc& a, double x) const { a.add(x); }
  void merge(Acc& a, const Acc& b) const { a.merge(b); }
  MeanVariance finish(const Acc& a) const { return {a.mean, a.squares / a.count}; }
};

// Of a stretch of float32, in float64 as SumsOp does.
SumsOp::Acc sumsOf(const float* x, int64_t n) {
  __m256d sum[4], squares[4];
  for (int k = 0; k < 4; ++k) sum[k] = squares[k] = _mm256_setzero_pd();
  int64_t i = 0;
  for (; i + 16 <= n; i += 16) {
    for (int k = 0; k < 4; ++k) {
      const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + i + 4 * k));
      sum[k] = _mm256_add_pd(sum[k], v);
      squares[k] = _mm256_fmadd_pd(v, v, squares[k]);
    }
  }
  double sums[4], products[4];
  _mm256_storeu_pd(sums,
                   _mm256_add_pd(_mm256_add_pd(sum[0], sum[1]), _mm256_add_pd(sum[2], sum[3])));
  _mm256_storeu_pd(products, _mm256_add_pd(_mm256_add_pd(squares[0], squares[1]),
                                           _mm256_add_pd(squares[2], squares[3])));
  SumsOp::Acc all{(sums[0] + sums[1]) + (sums[2] + sums[3]),
                  (products[0] + products[1]) + (products[2] + products[3])};
  for (; i < n; ++i) {
    const auto v = static_cast<double>(x[i]);
    all.sum += v;
    all.squares += v * v;
  }
  return all;
}

// Of planes that lie one behind the other; every `outputs`-th of them belongs together.
CountedVector<MeanVariance> planeStatistics(const Tensor& x, int64_t planes, int64_t outputs) {
  const int64_t length = x.numel() / planes;
  CountedVector<SumsOp::Acc> of_planes(static_cast<size_t>(planes));
  const float* const from = x.data<float>();
  parallelFor(planes, std::max<int64_t>(1, kGrainSize / length), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      of_planes[static_cast<size_t>(p)] = sumsOf(from + p * length, length);
    }
  });
  const SumsOp op{static_cast<double>(x.numel() / outputs)};
  CountedVector<SumsOp::Acc> sums(static_cast<size_t>(outputs), op.init());
  for (int64_t p = 0; p < planes; ++p) {
    op.merge(sums[static_cast<size_t>(p % outputs)], of_planes[static_cast<size_t>(p)]);
  }
  CountedVector<MeanVariance> out;
  for (const SumsOp::Acc& s : sums) out.push_back(op.finish(s));
  return out;
}

// Of each column of `rows` rows of channels, side by side.
void columnSums(const float* x, int64_t rows, int64_t channels, double* sums, double* squares) {
  int64_t c = 0;
  for (; c + 8 <= channels; c += 8) {
    __m256d sum[2], square[2];
    for (int k = 0; k < 2; ++k) sum[k] = square[k] = _mm256_setzero_pd();
    for (int64_t row = 0; row < rows; ++row) {
      for (int k = 0; k < 2; ++k) {
        const __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(x + row * channels + c + 4 * k));
        sum[k] = _mm256_add_pd(sum[k], v);
        square[k] = _mm256_fmadd_pd(v, v, square[k]);
      }
    }
    for (int k = 0; k < 2; ++k) {
      _mm256_storeu_pd(sums + c + 4 * k, sum[k]);
      _mm256_storeu_pd(squares + c + 4 * k, square[k]);
    }
  }
  for (; c < channels; ++c) {
    sums[c] = squares[c] = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const auto v = static_cast<double>(x[row * channels + c]);
      sums[c] += v;
      squares[c] += v * v;
    }
  }
}

// The sums of each plane of a float32 tensor [N, C, pixels…] whose channels are innermost, by
// sample and channel. Blocks of pixels are added one after the other, whatever the threads are.
CountedVector<SumsOp::Acc> sumsOfPlanesLast(const Tensor& x) {
  constexpr int64_t kBlock = 256;
  const int64_t samples = x.size(0), channels = x.size(1), planes = samples * channels;
  const int64_t pixels = x.numel() / planes, blocks = (pixels + kBlock - 1) / kBlock;
  const auto width = static_cast<size_t>(channels);
  CountedVector<double> parts(static_cast<size_t>(samples * blocks * 2) * width);
  const float* const from = x.data<float>();
  const int64_t least = std::max<int64_t>(1, kGrainSize / (std::min(kBlock, pixels) * channels));
  parallelFor(samples * blocks, least, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const int64_t first = b % blocks * kBlock, last = std::min(pixels, first + kBlock);
      double* const sum = parts.data() + static_cast<size_t>(b * 2) * width;
      double* const squares = sum + width;
      columnSums(from + (b / blocks * pixels + first) * channels, last - first, channels, sum,
                 squares);
    }
  });
  CountedVector<SumsOp::Acc> sums(static_cast<size_t>(planes), SumsOp::Acc{0, 0});
  for (int64_t b = 0; b < samples * blocks; ++b) {
    const double* const sum = parts.data() + static_cast<size_t>(b * 2) * width;
    SumsOp::Acc* const to = sums.data() + static_cast<size_t>(b / blocks) * width;
    for (size_t c = 0; c < width; ++c) {
      to[c].sum += sum[c];
      to[c].squares += sum[width + c];
    }
  }
  return sums;
}

// Planes shorter than this are taken together.
constexpr int64_t kPlane = 16;

bool isFloatRows(const Tensor& x) {
  return x.dtype() == DType::Float && x.isContiguous() && x.numel() > 0;
}

bool isFloatLast(const Tensor& x) {
  const MemoryFormat format = x.suggestMemoryFormat();
  return x.dtype() == DType::Float && x.numel() > 0 && format != MemoryFormat::Contiguous &&
         x.isContiguous(format);
}

CountedVector<MeanVariance> statistics(const char* op, const Tensor& x,
                                       const std::vector<bool>& mask) {
  reduce::Plan plan = reduce::makePlan(x, mask);
  CountedVector<MeanVariance> out(static_cast<size_t>(plan.outputs));
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, double>) {
      reduce::run(WelfordOp(), x.data<T>(), out.data(), plan);
    } else {
      reduce::run(SumsOp{static_cast<double>(plan.reduced_count)}, x.data<T>(), out.data(), plan);
    }
  });
  return out;
}

// The mean is taken away first: a row of equal elements becomes exact zeros, where a rounded product
// of mean and 1 / sqrt(eps) would leave its rounding behind.
template <class T>
void normalizeRow(const T* x, T* out, int64_t n, const T* weight, const T* bias, T mean, T rstd) {
  if (weight && bias) {
    for (int64_t i = 0; i < n; ++i) out[i] = std::fma((x[i] - mean) * rstd, weight[i], bias[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T v = (x[i] - mean) * rstd;
      if (weight) v *= weight[i];
      out[i] = bias ? v + bias[i] : v;
    }
  }
}

}  // namespace

CountedVector<MeanVariance> channelStatistics(const char* op, const Tensor& x) {
  const int64_t planes = x.size(0) * x.size(1);
  if (isFloatRows(x) && x.numel() / planes >= kPlane) {
    return planeStatistics(x, planes, x.size(1));
  }
  if (isFloatLast(x)) {
    const SumsOp sums_op{static_cast<double>(x.numel() / x.size(1))};
    const CountedVector<SumsOp::Acc> of_planes = sumsOfPlanesLast(x);
    const auto channels = static_cast<size_t>(x.size(1));
    CountedVector<SumsOp::Acc> sums(channels, sums_op.init());
    for (size_t p = 0; p < of_planes.size(); ++p) sums_op.merge(sums[p % channels], of_planes[p]);
    CountedVector<MeanVariance> out;
    for (const SumsOp::Acc& s : sums) out.push_back(sums_op.finish(s));
    return out;
  }
  std::vector<bool> mask(static_cast<size_t>(x.dim()), true);
  mask[1] = false;
  return statistics(op, x, mask);
}

CountedVector<MeanVariance> rowStatistics(const char* op, const Tensor& x, int64_t rows) {
  if (isFloatRows(x) && x.numel() / rows >= kPlane) return planeStatistics(x, rows, rows);
  return statistics(op, x.view(DimVector{rows, rows == 0 ? 0 : x.numel() / rows}), {false, true});
}

CountedVector<MeanVariance> groupStatistics(const char* op, const Tensor& x, int64_t groups) {
  const int64_t rows = x.size(0) * groups;
  if (!isFloatLast(x)) return rowStatistics(op, x.contiguous(), rows);
  const CountedVector<SumsOp::Acc> of_planes = sumsOfPlanesLast(x);
  const SumsOp sums_op{static_cast<double>(x.numel() / rows)};
  const size_t each = of_planes.size() / static_cast<size_t>(rows);
  CountedVector<MeanVariance> out;
  for (size_t p = 0; p < of_planes.size(); p += each) {
    SumsOp::Acc sum = sums_op.init();
    for (size_t k = 0; k < each; ++k) sums_op.merge(sum, of_planes[p + k]);
    out.push_back(sums_op.finish(sum));
  }
  return out;
}

Tensor scaleChannels(const char* op, const Tensor& input, const CountedVector<double>& scale,
                     const CountedVector<double>& shift) {
  MemoryFormat format = input.suggestMemoryFormat();
  Tensor x = input.contiguous(format);
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device(), format);
  if (x.numel() == 0) return out;
  int64_t samples = x.size(0), channels = x.size(1), inner = x.numel() / (samples * channels);
  bool last = format != MemoryFormat::Contiguous;
  bool each_sample = static_cast<int64_t>(scale.size()) == samples * channels;
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    CountedVector<T> a(scale.begin(), scale.end()), b(shift.begin(), shift.end());
    const T* from = x.data<T>();
    T* to = out.data<T>();
    // Runs of one scale when row-major, of all channels when channels-last.
    int64_t runs = last ? samples * inner : samples * channels;
    int64_t length = last ? channels : inner;
    parallelFor(runs, std::max<int64_t>(1, kGrainSize / length), [&](int64_t begin, int64_t end) {
      for (int64_t run = begin; run < end; ++run) {
        const T* p = from + run * length;
        T* q = to + run * length;
        if (last) {
          int64_t at = each_sample ? run / inner * channels : 0;
          const T *pa = a.data() + at, *pb = b.data() + at;
          for (int64_t i = 0; i < length; ++i) q[i] = p[i] * pa[i] + pb[i];
        } else {
          int64_t at = each_sample ? run : run % channels;
          T sa = a[static_cast<size_t>(at)], sb = b[static_cast<size_t>(at)];
          for (int64_t i = 0; i < length; ++i) q[i] = p[i] * sa + sb;
        }
      }
    });
  });
  return out;
}

void normalizeRows(const char* op, const Tensor& x, int64_t width, const Tensor& weight,
                   const Tensor& bias, double eps, const Tensor& out, const Tensor& mean,
                   const Tensor& rstd) {
  int64_t rows = width == 0 ? 0 : x.numel() / width;
  dispatch<kFloats>(op, x.dtype(), [&]<class T>() {
    const T* w = weight.defined() ? weight.data<T>() : nullptr;
    const T* b = bias.defined() ? bias.data<T>() : nullptr;
    parallelFor(rows, std::max<int64_t>(1, kGrainSize / 4 / std::max<int64_t>(width, 1)),
                [&](int64_t begin, int64_t end) {
                  for (int64_t row = begin; row < end; ++row) {
                    const T* p = x.data<T>() + row * width;
                    MeanVariance s;
                    if constexpr (std::is_same_v<T, double>) {
                      WelfordOp op_row;
                      auto acc = op_row.init();
                      reduce::reduceRow(op_row, acc, p, width, 1);
                      s = op_row.finish(acc);
                    } else {
                      s = SumsOp{static_cast<double>(width)}.finish(sumsOf(p, width));
                    }
                    // In the row's precision: a row of equal elements shows the last bit.
                    T r = T(1) / std::sqrt(static_cast<T>(s.variance) + static_cast<T>(eps));
                    T m = static_cast<T>(s.mean);
                    normalizeRow(p, out.data<T>() + row * width, width, w, b, m, r);
                    if (mean.defined()) mean.data<T>()[row] = m;
                    if (rstd.defined()) rstd.data<T>()[row] = r;
                  }
                });
  });
}

}  // namespace wick::normalization
