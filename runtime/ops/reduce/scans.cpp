// Cumulative sums and products, differences, trapezoids.
#include <cmath>

#include "core/budget.h"
#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/pointwise/complex_logarithms.h"
#include "runtime/ops/reduce/computed_in.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

// out[k] = running result of elements 0 … k along dimension d. `step(acc, v)` updates Acc.
template <class T, class Acc, class Step>
void scanLanes(const Tensor& x, const Tensor& out, int64_t d, Acc init, Step&& step) {
  ops::DimSplit s = ops::splitAt(x.sizes(), d);
  const T* from = x.data<T>();
  T* to = out.data<T>();
  parallelFor(s.outer * s.inner, kGrainSize / std::max<int64_t>(1, s.size),
              [&](int64_t begin, int64_t end) {
                for (int64_t lane = begin; lane < end; ++lane) {
                  int64_t i = lane / s.inner * s.size * s.inner + lane % s.inner;
                  Acc acc = init;
                  for (int64_t k = 0; k < s.size; ++k, i += s.inner) {
                    step(acc, convert<Acc>(from[i]));
                    to[i] = convert<T>(acc);
                  }
                }
              });
}

// Integers become int64 unless a dtype is given, and wrap.
template <class Step>
Tensor scan(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype,
            int64_t init, Step&& step) {
  DType result = dtype ? *dtype : isIntegral(self.dtype(), true) ? DType::Long : self.dtype();
  int64_t d = wrapDim(dim, self.dim());
  Tensor x = self.to(result).contiguous();
  Tensor out = Tensor::empty(x.sizes(), result, x.device());
  if (x.numel() == 0) return out;
  dispatch<kAnyDType & ~kBool>(op, result, [&]<class T>() {
    using Acc = std::conditional_t<std::is_integral_v<T>, uint64_t, typename reduce::Wide<T>::type>;
    scanLanes<T, Acc>(x, out, d, Acc(static_cast<double>(init)), step);
  });
  return out;
}

Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return scan("cumsum", self, dim, dtype, 0, [](auto& acc, const auto& v) { acc += v; });
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return scan("cumprod", self, dim, dtype, 1, [](auto& acc, const auto& v) { acc *= v; });
}

Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  int64_t d = wrapDim(dim, self.dim());
  Tensor x = self.contiguous();
  Tensor out = Tensor::empty(x.sizes(), x.dtype(), x.device());
  if (x.numel() == 0) return out;
  if (isComplex(x.dtype())) {
    dispatch<kComplexes>("logcumsumexp", x.dtype(), [&]<class T>() -> void {
      constexpr auto kNothing = -std::numeric_limits<typename T::value_type>::infinity();
      scanLanes<T, T>(x, out, d, T(kNothing),
                      [](T& acc, T v) { acc = ops::ComplexLogAddExp()(v, acc); });
    });
    return out;
  }
  dispatch<kAnyFloat>("logcumsumexp", x.dtype(), [&]<class T>() {
    scanLanes<T, double>(x, out, d, -HUGE_VAL, [](double& acc, double v) {
      double low = v < acc || v != v ? v : acc, high = v < acc || v != v ? acc : v;
      // Equal infinities subtract to NaN; the larger term alone decides then.
      if (low != high || std::isfinite(low)) {
        acc = std::log1p(std::exp(low - high)) + high;
      } else {
        acc = v;
      }
    });
  });
  return out;
}

Tensor diff(const Tensor& self, int64_t n, int64_t dim, const Tensor& prepend,
            const Tensor& append) {
  WICK_CHECK(self.dim() > 0, "diff expects input to be at least one-dimensional");
  WICK_CHECK(n >= 0, "order must be non-negative but got {}", n);
  int64_t d = wrapDim(dim, self.dim());
  if (n == 0) return self.clone();  // what would be joined to it is not looked at
  Tensor x = self;
  if (prepend.defined() || append.defined()) {
    std::vector<Tensor> parts;
    for (const Tensor* t : {&prepend, &self, &append}) {
      if (!t->defined()) continue;
      WICK_CHECK(t->dim() == self.dim(),
                 "diff expects prepend or append to be the same dimension as input");
      parts.push_back(*t);
    }
    x = ops::cat(parts, d);
  }
  static const OperatorHandle kXor("aten::logical_xor", "");
  int64_t rounds = std::min(n, x.size(d));
  // A dimension is as long as it likes where there are no elements.
  if (x.numel() == 0) return x.slice(d, rounds, x.size(d)).clone();
  for (int64_t i = 0; i < rounds; ++i) {
    checkBudget();
    int64_t size = x.size(d);
    Tensor later = x.slice(d, 1, size), earlier = x.slice(d, 0, size - 1);
    x = x.dtype() == DType::Bool ? kXor(later, earlier) : ops::sub(later, earlier);
  }
  return rounds == 0 ? x.clone() : x;
}

// The step sizes between neighbours of x, shaped to multiply slices of y along dimension d.
Tensor spacingOf(const Tensor& y, const Tensor& x, int64_t d) {
  Tensor points = x;
  if (x.dim() == 1) {
    WICK_CHECK(x.size(0) == y.size(d),
               "trapezoid: There must be one `x` value for each sample point");
    DimVector shape(static_cast<size_t>(y.dim()), 1);
    shape[static_cast<size_t>(d)] = x.size(0);
    points = x.view(shape);
  } else {
    while (points.dim() < y.dim()) points = points.unsqueeze(0);
  }
  int64_t size = points.size(d);
  return ops::sub(points.slice(d, 1, size), points.slice(d, 0, size - 1));
}

Tensor neighbourSums(const Tensor& y, int64_t d) {
  int64_t size = y.size(d);
  return ops::add(y.slice(d, 1, size), y.slice(d, 0, size - 1));
}

Tensor integrate(const char* op, const Tensor& y, const Tensor& x, const Scalar& dx, int64_t dim,
                 bool cumulative) {
  int64_t d = wrapDim(dim, y.dim());
  WICK_CHECK(y.dim() > 0, "{}: expected a tensor of one or more dimensions", op);
  WICK_CHECK(!dx.isBool() && !dx.isComplex(), "{}: Currently, we only support dx as a real number.",
             op);
  if (y.size(d) == 0) {
    if (cumulative) return y;
    DimVector sizes(y.sizes());
    sizes.erase(static_cast<size_t>(d));
    return Tensor::zeros(sizes, y.dtype(), y.device());
  }
  WICK_CHECK(y.dtype() != DType::Bool && (!x.defined() || x.dtype() != DType::Bool),
             "{}: received a bool input for `x` or `y`, but bool is not supported", op);
  if (x.defined()) {
    // An `x` of more dimensions than `y` counts them from the left too.
    Tensor areas = ops::mul(spacingOf(y, x, d), neighbourSums(y, d));
    Tensor total = cumulative ? ops::cumsum(areas, d) : ops::sumDims(areas, DimVector{d});
    return ops::divScalar(total, 2.0);
  }
  if (cumulative) {
    return ops::cumsum(ops::mulScalar(neighbourSums(y, d), dx.toDouble() / 2), d);
  }
  Tensor ends = ops::mulScalar(ops::add(y.select(d, 0), y.select(d, -1)), 0.5);
  return ops::mulScalar(ops::sub(ops::sumDims(y, DimVector{d}), ends), dx.toDouble());
}

Tensor trapezoidX(const Tensor& y, const Tensor& x, int64_t dim) {
  return integrate("trapezoid", y, x, 1, dim, false);
}
Tensor trapezoidDx(const Tensor& y, const Scalar& dx, int64_t dim) {
  return integrate("trapezoid", y, {}, dx, dim, false);
}
Tensor trapzDx(const Tensor& y, double dx, int64_t dim) {
  return integrate("trapz", y, {}, dx, dim, false);
}
Tensor cumulativeTrapezoidX(const Tensor& y, const Tensor& x, int64_t dim) {
  return integrate("cumulative_trapezoid", y, x, 1, dim, true);
}
Tensor cumulativeTrapezoidDx(const Tensor& y, const Scalar& dx, int64_t dim) {
  return integrate("cumulative_trapezoid", y, {}, dx, dim, true);
}

// An in-place form cannot change the dtype.
template <auto kScan>
Tensor checkedScan(const Tensor& self, int64_t dim, std::optional<DType> dtype, Out out) {
  WICK_CHECK(!out || !out.tensor->isSame(self) || !dtype || *dtype == self.dtype(),
             "Bad in-place call: input tensor dtype {} and output tensor dtype {} should match",
             toString(self.dtype()), toString(*dtype));
  return kScan(self, dim, ops::computedIn(dtype, out));
}

constexpr OperatorRecord kScansRecords[] = {
    {"aten::cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(checkedScan<cumsum>),
     kInplaceForm | kOutForm | kRefusesPartialOverlap | kCastFullUnlessTold | kSavesNothing,
     ops::shapes::likeFirstAccumulated},
    {"aten::cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(checkedScan<cumprod>),
     kInplaceForm | kOutForm | kRefusesPartialOverlap | kCastFullUnlessTold,
     ops::shapes::likeFirstAccumulated},
    {"aten::logcumsumexp(Tensor self, int dim) -> Tensor", WICK_KERNEL(logcumsumexp),
     kOutForm | kRefusesPartialOverlap | kOutSame, ops::shapes::likeFirst},
    {"aten::_logcumsumexp(Tensor self, int dim) -> Tensor", WICK_KERNEL(logcumsumexp),
     kOutForm | kRefusesPartialOverlap, ops::shapes::likeFirst},
    {"aten::diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None) -> "
     "Tensor",
     WICK_KERNEL(diff), kOutForm | kNeutral | kSavesNothing},
    {"aten::trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", WICK_KERNEL(trapezoidX),
     kNeutral},
    {"aten::trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor", WICK_KERNEL(trapezoidDx),
     kNeutral},
    {"aten::trapz.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor", WICK_KERNEL(trapezoidX),
     kNeutral},
    {"aten::trapz.dx(Tensor y, *, float dx=1., int dim=-1) -> Tensor", WICK_KERNEL(trapzDx),
     kNeutral},
    {"aten::cumulative_trapezoid.x(Tensor y, Tensor x, *, int dim=-1) -> Tensor",
     WICK_KERNEL(cumulativeTrapezoidX), kNeutral},
    {"aten::cumulative_trapezoid.dx(Tensor y, *, Scalar dx=1, int dim=-1) -> Tensor",
     WICK_KERNEL(cumulativeTrapezoidDx), kNeutral},
};

const RegisterOperators kScansRegistered(kScansRecords);

}  // namespace
}  // namespace wick
