// Largest and smallest elements, with and without their places. NaN wins over every number, the
// first of equals is the one that counts.
#include <array>
#include <limits>

#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/reduce_rows.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/tensors/out_forms.h"
#include "runtime/ops/typed.h"

namespace wick {
namespace {

constexpr unsigned kOrdered = kIntegers | kBool | kFloats | kReducedFloats;

template <class T>
bool isNan(T v) {
  if constexpr (std::is_integral_v<T>) {
    return false;
  } else {
    return v != v;
  }
}

// Whether `v` replaces the best so far.
template <class T, bool kMax>
bool beats(T v, T best) {
  if (isNan(best)) return false;
  return isNan(v) || (kMax ? v > best : v < best);
}

template <class T, bool kMax>
constexpr T worst() {
  if constexpr (std::is_same_v<T, bool>) {
    return !kMax;
  } else if constexpr (std::is_integral_v<T>) {
    return kMax ? std::numeric_limits<T>::min() : std::numeric_limits<T>::max();
  } else {
    return T(kMax ? -std::numeric_limits<float>::infinity()
                  : std::numeric_limits<float>::infinity());
  }
}

template <class T, bool kMax>
struct ExtremeOp {
  using Acc = T;
  Acc init() const { return worst<T, kMax>(); }
  void step(Acc& a, T v) const {
    if (beats<T, kMax>(v, a)) a = v;
  }
  void merge(Acc& a, const Acc& b) const { step(a, b); }
  T finish(const Acc& a) const { return a; }
};

// Floats without a branch: a NaN takes the place of every number, and no comparison with it is true.
template <bool kMax>
struct ExtremeFloatOp {
  using Acc = float;
  Acc init() const { return worst<float, kMax>(); }
  void step(Acc& a, float v) const {
    const bool better = kMax ? v > a : v < a;
    a = (better | (v != v)) ? v : a;
  }
  int64_t row(Acc& a, const float* p, int64_t n) const {
    bool nan = false;
    step(a, reduce::extremeOfRow<kMax>(p, n, nan));
    if (nan) a = std::numeric_limits<float>::quiet_NaN();
    return n;
  }
  void fourRows(Acc* best, const float* row, int64_t stride, int64_t n) const {
    reduce::extremesOfFourRows<kMax>(best, row, stride, n);
  }
  void merge(Acc& a, const Acc& b) const { step(a, b); }
  float finish(const Acc& a) const { return a; }
};

void checkNotEmpty(const char* op, const Tensor& self, const std::vector<bool>& mask) {
  for (int64_t d = 0; d < self.dim(); ++d) {
    WICK_CHECK(!mask[static_cast<size_t>(d)] || self.size(d) != 0,
               "{}(): Expected reduction dim {} to have non-zero size.", op, d);
  }
}

template <bool kMax>
Tensor extreme(const char* op, const Tensor& self, const DimVector& dims, bool keepdim) {
  std::vector<bool> mask = reduce::dimMask(op, self, dims);
  checkNotEmpty(op, self, mask);
  return dispatch<kOrdered>(op, self.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, float>) {
      return reduce::apply<T, T>(ExtremeFloatOp<kMax>(), self, mask, keepdim);
    } else {
      return reduce::apply<T, T>(ExtremeOp<T, kMax>(), self, mask, keepdim);
    }
  });
}

// Returns the zero that PyTorch gives of n elements whose largest or smallest are zeros, whose signs may differ: it compares vectors
// of 256 bits, of equal elements the later one wins, and then the parts of the last vector with each other.
template <class T>
T zeroOfAll(const T* p, int64_t n) {
  constexpr auto kLanes = static_cast<int64_t>(32 / sizeof(T));
  constexpr std::array<int64_t, 8> kOrder = kLanes == 8
                                                ? std::array<int64_t, 8>{7, 3, 5, 1, 6, 2, 4, 0}
                                                : std::array<int64_t, 8>{3, 2, 1, 0};
  const int64_t step = n < kLanes ? 1 : kLanes;
  for (int64_t k = 0; k < step; ++k) {
    const int64_t lane = step == 1 ? 0 : kOrder[static_cast<size_t>(k)];
    for (int64_t i = lane + (n - 1 - lane) / step * step; i >= 0; i -= step) {
      if (p[i] == 0) return p[i];
    }
  }
  return 0;
}

template <bool kMax>
Tensor extremeOfAll(const Tensor& self) {
  const char* op = kMax ? "max" : "min";
  WICK_CHECK(self.numel() > 0,
             "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
             "reduction dim with the 'dim' argument.",
             op);
  Tensor found = extreme<kMax>(op, self, {}, false);
  if (!found.device().isCpu()) return found;
  const auto choose_zero = [&]<class T>(T) {
    T& result = *found.data<T>();
    if (result == 0) result = zeroOfAll(self.contiguous().data<T>(), self.numel());
  };
  if (self.dtype() == DType::Float) choose_zero(0.0F);
  if (self.dtype() == DType::Double) choose_zero(0.0);
  return found;
}
Tensor amax(const Tensor& self, const DimVector& dim, bool keepdim) {
  return extreme<true>("amax", self, dim, keepdim);
}
Tensor amin(const Tensor& self, const DimVector& dim, bool keepdim) {
  return extreme<false>("amin", self, dim, keepdim);
}

Pair aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  DimVector dims = dim ? DimVector{*dim} : DimVector();
  // PyTorch keeps a dimension that a zero-dim tensor never had.
  Tensor x = dim && keepdim && self.dim() == 0 ? self.unsqueeze(0) : self;
  return {extreme<false>("aminmax", x, dims, keepdim), extreme<true>("aminmax", x, dims, keepdim)};
}
Pair aminmaxDim(const Tensor& self, int64_t dim, bool keepdim) {
  return aminmax(self, dim, keepdim);
}

// The extreme elements along one dimension and where they are. `x` is row-major.
template <class T, bool kMax>
void searchDim(const Tensor& x, const ops::DimSplit& s, T* values, int64_t* indices) {
  const T* base = x.data<T>();
  parallelFor(s.outer, kGrainSize / std::max<int64_t>(1, s.size * s.inner),
              [&](int64_t begin, int64_t end) {
                for (int64_t o = begin; o < end; ++o) {
                  const T* p = base + o * s.size * s.inner;
                  T* best = values + o * s.inner;
                  int64_t* at = indices + o * s.inner;
                  if constexpr (std::is_same_v<T, float>) {
                    if (s.inner == 1 && s.size >= 8) {
                      bool nan = false;
                      const T value = reduce::extremeOfRow<kMax>(p, s.size, nan);
                      *at = reduce::findInRow(p, s.size, value, nan);
                      *best = p[*at];
                      continue;
                    }
                  }
                  std::copy(p, p + s.inner, best);
                  std::fill(at, at + s.inner, 0);
                  for (int64_t k = 1; k < s.size; ++k) {
                    const T* row = p + k * s.inner;
                    for (int64_t i = 0; i < s.inner; ++i) {
                      if (beats<T, kMax>(row[i], best[i])) {
                        best[i] = row[i];
                        at[i] = k;
                      }
                    }
                  }
                }
              });
}

template <bool kMax>
Pair extremeDim(const char* op, const Tensor& self, int64_t dim, bool keepdim) {
  WICK_CHECK(!isComplex(self.dtype()), "{}(): does not support complex input", op);
  int64_t d = wrapDim(dim, self.dim());
  if (self.dim() == 0) return {self.clone(), Tensor::zeros({}, DType::Long)};
  std::vector<bool> mask = reduce::dimMask(op, self, DimVector{d});
  checkNotEmpty(op, self, mask);
  DimVector sizes = reduce::reducedSizes(self, mask, keepdim);
  Tensor values = Tensor::empty(sizes, self.dtype(), self.device());
  Tensor indices = Tensor::empty(sizes, DType::Long, self.device());
  if (values.numel() == 0) return {values, indices};
  Tensor x = self.contiguous();
  dispatch<kOrdered>(op, self.dtype(), [&]<class T>() {
    searchDim<T, kMax>(x, ops::splitAt(x.sizes(), d), values.data<T>(), indices.data<int64_t>());
  });
  return {values, indices};
}

template <bool kMax>
Tensor argExtreme(const char* op, const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  if (dim && self.dim() > 0 && self.size(*dim) == 1) {
    // Nothing is compared, so that any dtype will do.
    std::vector<bool> mask = reduce::dimMask(op, self, DimVector{wrapDim(*dim, self.dim())});
    return Tensor::zeros(reduce::reducedSizes(self, mask, keepdim), DType::Long);
  }
  WICK_CHECK(self.dtype() != DType::Bool || self.numel() == 0, "{}: no kernel for dtype bool", op);
  if (dim) return std::get<1>(extremeDim<kMax>(op, self, *dim, keepdim));
  WICK_CHECK(self.numel() > 0,
             "{}(): Expected reduction dim to be specified for input.numel() == "
             "0. Specify the reduction dim with the 'dim' argument.",
             op);
  Tensor index = std::get<1>(extremeDim<kMax>(op, self.flatten(), 0, false));
  return keepdim ? index.view(DimVector(static_cast<size_t>(self.dim()), 1)) : index;
}

Pair maxDim(const Tensor& self, int64_t dim, bool keepdim) {
  return extremeDim<true>("max", self, dim, keepdim);
}
Pair minDim(const Tensor& self, int64_t dim, bool keepdim) {
  return extremeDim<false>("min", self, dim, keepdim);
}
Tensor argmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return argExtreme<true>("argmax", self, dim, keepdim);
}
Tensor argmin(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  return argExtreme<false>("argmin", self, dim, keepdim);
}

// Running extremes: a later equal element replaces the earlier, NaN stays.
template <bool kMax>
constexpr const char* kRunningName = kMax ? "cummax" : "cummin";
template <bool kMax>
Pair running(const Tensor& self, int64_t dim) {
  int64_t d = wrapDim(dim, self.dim());
  Tensor x = self.contiguous();
  Tensor values = Tensor::empty(self.sizes(), self.dtype(), self.device());
  Tensor indices = Tensor::zeros(self.sizes(), DType::Long, self.device());
  if (self.numel() == 0) return {values, indices};
  dispatch<kOrdered>(kRunningName<kMax>, self.dtype(), [&]<class T>() {
    ops::DimSplit s = ops::splitAt(x.sizes(), d);
    parallelFor(s.outer * s.inner, kGrainSize / s.size, [&](int64_t begin, int64_t end) {
      for (int64_t lane = begin; lane < end; ++lane) {
        int64_t start = lane / s.inner * s.size * s.inner + lane % s.inner;
        T best = x.data<T>()[start];
        int64_t at = 0;
        for (int64_t k = 0; k < s.size; ++k) {
          int64_t i = start + k * s.inner;
          T v = x.data<T>()[i];
          if (isNan(v) || (!isNan(best) && (kMax ? v >= best : v <= best))) {
            best = v;
            at = k;
          }
          values.data<T>()[i] = best;
          indices.data<int64_t>()[i] = at;
        }
      }
    });
  });
  return {values, indices};
}

template <bool kMax>
void runningInto(const Tensor& self, const Tensor& values, const Tensor& indices, int64_t dim) {
  const auto [extremes, places] = running<kMax>(self, dim);
  ops::writeOut(kRunningName<kMax>, values, extremes);
  ops::writeOut(kRunningName<kMax>, indices, places);
}

#define WICK_VALUES_INDICES "(Tensor values, Tensor indices)"
#define WICK_WRITTEN "(Tensor(a!) values, Tensor(b!) indices)"

constexpr OperatorRecord kExtremaRecords[] = {
    {"aten::max(Tensor self) -> Tensor", WICK_KERNEL(extremeOfAll<true>), kNoFlags,
     ops::shapes::reduced},
    {"aten::min(Tensor self) -> Tensor", WICK_KERNEL(extremeOfAll<false>), kNoFlags,
     ops::shapes::reduced},
    {"aten::max.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_VALUES_INDICES,
     WICK_KERNEL(maxDim), kNoFlags, ops::shapes::reducedWithIndices},
    {"aten::min.dim(Tensor self, int dim, bool keepdim=False) -> " WICK_VALUES_INDICES,
     WICK_KERNEL(minDim), kNoFlags, ops::shapes::reducedWithIndices},
    {"aten::max.dim_max(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) max, Tensor(b!) "
     "max_values) -> " WICK_WRITTEN,
     &ops::outForm, kOutSame | kNeutral},
    {"aten::min.dim_min(Tensor self, int dim, bool keepdim=False, *, Tensor(a!) min, Tensor(b!) "
     "min_indices) -> " WICK_WRITTEN,
     &ops::outForm, kOutSame | kNeutral},
    {"aten::amax(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", WICK_KERNEL(amax),
     kOutForm | kOutSame, ops::shapes::reduced},
    {"aten::amin(Tensor self, int[1] dim=[], bool keepdim=False) -> Tensor", WICK_KERNEL(amin),
     kOutForm | kOutSame, ops::shapes::reduced},
    {"aten::aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
     WICK_KERNEL(aminmax)},
    {"aten::aminmax.out(Tensor self, *, int? dim=None, bool keepdim=False, Tensor(a!) min, "
     "Tensor(b!) max) -> (Tensor(a!) min, Tensor(b!) max)",
     &ops::outForm, kOutSame | kNeutral},
    {"aten::_aminmax(Tensor self) -> (Tensor, Tensor)",
     WICK_LAMBDA([](const Tensor& self) { return aminmax(self, std::nullopt, false); })},
    {"aten::_aminmax.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor, Tensor)",
     WICK_KERNEL(aminmaxDim)},
    {"aten::argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", WICK_KERNEL(argmax),
     kOutForm | kNotDifferentiable | kOutSame, ops::shapes::reducedLong},
    {"aten::argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor", WICK_KERNEL(argmin),
     kOutForm | kNotDifferentiable | kOutSame, ops::shapes::reducedLong},
    {"aten::cummax(Tensor self, int dim) -> " WICK_VALUES_INDICES, WICK_KERNEL(running<true>),
     kNoFlags, ops::shapes::likeFirstWithIndices},
    {"aten::cummin(Tensor self, int dim) -> " WICK_VALUES_INDICES, WICK_KERNEL(running<false>),
     kNoFlags, ops::shapes::likeFirstWithIndices},
    {"aten::cummax.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) "
     "-> " WICK_WRITTEN,
     &ops::outForm, kOutSame | kNeutral},
    {"aten::cummin.out(Tensor self, int dim, *, Tensor(a!) values, Tensor(b!) indices) "
     "-> " WICK_WRITTEN,
     &ops::outForm, kOutSame | kNeutral},
    {"aten::_cummax_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()",
     WICK_KERNEL(runningInto<true>)},
    {"aten::_cummin_helper(Tensor self, Tensor(a!) values, Tensor(b!) indices, int dim) -> ()",
     WICK_KERNEL(runningInto<false>)},
};

const RegisterOperators kExtremaRegistered(kExtremaRecords);

}  // namespace
}  // namespace wick
