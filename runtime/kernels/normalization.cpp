#include "runtime/kernels/normalization.h"

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

// Fused multiply-adds where PyTorch's own kernel has them: a row of equal elements leaves their
// rounding behind, scaled up by 1 / sqrt(eps).
template <class T>
void normalizeRow(const T* x, T* out, int64_t n, const T* weight, const T* bias, T rstd, T shift) {
  if (weight && bias) {
    for (int64_t i = 0; i < n; ++i)
      out[i] = std::fma(std::fma(x[i], rstd, shift), weight[i], bias[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) {
      T v = std::fma(x[i], rstd, shift);
      if (weight) v *= weight[i];
      out[i] = bias ? v + bias[i] : v;
    }
  }
}

}  // namespace

CountedVector<MeanVariance> channelStatistics(const char* op, const Tensor& x) {
  std::vector<bool> mask(static_cast<size_t>(x.dim()), true);
  mask[1] = false;
  return statistics(op, x, mask);
}

CountedVector<MeanVariance> rowStatistics(const char* op, const Tensor& x, int64_t rows) {
  return statistics(op, x.view(DimVector{rows, rows == 0 ? 0 : x.numel() / rows}), {false, true});
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
                      SumsOp op_row{static_cast<double>(width)};
                      auto acc = op_row.init();
                      reduce::reduceRow(op_row, acc, p, width, 1);
                      s = op_row.finish(acc);
                    }
                    // In the row's precision: a row of equal elements shows the last bit.
                    T r = T(1) / std::sqrt(static_cast<T>(s.variance) + static_cast<T>(eps));
                    T m = static_cast<T>(s.mean);
                    normalizeRow(p, out.data<T>() + row * width, width, w, b, r, -r * m);
                    if (mean.defined()) mean.data<T>()[row] = m;
                    if (rstd.defined()) rstd.data<T>()[row] = r;
                  }
                });
  });
}

}  // namespace wick::normalization
