// Variance and standard deviation, by Welford's update: one pass, no cancellation.
#include "runtime/kernels/moments.h"

#include <cmath>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/call.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

using Dims = std::optional<DimVector>;
using Correction = std::optional<Scalar>;

template <class T, bool kRoot>
struct VarianceOp {
  using Acc = RunningMoments;
  explicit VarianceOp(double correction) : correction(correction) {}
  Acc init() const { return {}; }
  void step(Acc& a, T v) const { a.add(static_cast<double>(v)); }
  void merge(Acc& a, const Acc& b) const { a.merge(b); }
  T finish(const Acc& a) const {
    double divisor = std::max(a.count - correction, 0.0);
    double variance = a.squares / divisor;
    return convert<T>(kRoot ? std::sqrt(variance) : variance);
  }
  double correction;
};

Tensor componentOf(const Tensor& complex, int64_t part) {
  DType real = toRealType(complex.dtype());
  DimVector sizes(complex.sizes()), strides;
  for (int64_t s : complex.strides()) strides.push_back(2 * s);
  return Tensor::fromStorage(complex.storage(), real, sizes, strides, 2 * complex.offset() + part);
}

Tensor moments(const char* op, bool root, const Tensor& self, const Dims& dims, double correction,
               bool keepdim) {
  WICK_CHECK(isFloating(self.dtype()) || isComplex(self.dtype()),
             "{} only support floating point and complex dtypes", op);
  std::vector<bool> mask = reduce::dimMask(op, self, dims ? IntSpan(*dims) : IntSpan());
  if (isComplex(self.dtype())) {
    // The variances of the two parts add.
    Tensor re = moments(op, false, componentOf(self, 0), dims, correction, keepdim);
    Tensor im = moments(op, false, componentOf(self, 1), dims, correction, keepdim);
    dispatch<kFloats>(op, re.dtype(), [&]<class T>() {
      T* p = re.data<T>();
      for (int64_t i = 0; i < re.numel(); ++i) {
        p[i] += im.data<T>()[i];
        if (root) p[i] = std::sqrt(p[i]);
      }
    });
    return re;
  }
  return dispatch<kAnyFloat>(op, self.dtype(), [&]<class T>() {
    return root ? reduce::apply<T, T>(VarianceOp<T, true>(correction), self, mask, keepdim)
                : reduce::apply<T, T>(VarianceOp<T, false>(correction), self, mask, keepdim);
  });
}

const OperatorHandle kMean{"aten::mean", "dim"};

using Pair = std::tuple<Tensor, Tensor>;

Pair withMean(const char* op, bool root, const Tensor& self, const Dims& dims, double correction,
              bool keepdim) {
  Tensor first = moments(op, root, self, dims, correction, keepdim);
  return {first, kMean(self, dims.value_or(DimVector()), keepdim)};
}

double correctionOf(bool unbiased) {
  return unbiased ? 1 : 0;
}
double correctionOf(const Correction& correction) {
  return correction ? correction->toDouble() : 1;
}

Tensor var(const Tensor& self, bool unbiased) {
  return moments("var", false, self, {}, correctionOf(unbiased), false);
}
Tensor varDim(const Tensor& self, const Dims& dim, bool unbiased, bool keepdim) {
  return moments("var", false, self, dim, correctionOf(unbiased), keepdim);
}
Tensor varCorrection(const Tensor& self, const Dims& dim, const Correction& correction,
                     bool keepdim) {
  return moments("var", false, self, dim, correctionOf(correction), keepdim);
}
Tensor stdAll(const Tensor& self, bool unbiased) {
  return moments("std", true, self, {}, correctionOf(unbiased), false);
}
Tensor stdDim(const Tensor& self, const Dims& dim, bool unbiased, bool keepdim) {
  return moments("std", true, self, dim, correctionOf(unbiased), keepdim);
}
Tensor stdCorrection(const Tensor& self, const Dims& dim, const Correction& correction,
                     bool keepdim) {
  return moments("std", true, self, dim, correctionOf(correction), keepdim);
}
Pair varMean(const Tensor& self, bool unbiased) {
  return withMean("var_mean", false, self, {}, correctionOf(unbiased), false);
}
Pair varMeanDim(const Tensor& self, const Dims& dim, bool unbiased, bool keepdim) {
  return withMean("var_mean", false, self, dim, correctionOf(unbiased), keepdim);
}
Pair varMeanCorrection(const Tensor& self, const Dims& dim, const Correction& correction,
                       bool keepdim) {
  return withMean("var_mean", false, self, dim, correctionOf(correction), keepdim);
}
Pair stdMean(const Tensor& self, bool unbiased) {
  return withMean("std_mean", true, self, {}, correctionOf(unbiased), false);
}
Pair stdMeanDim(const Tensor& self, const Dims& dim, bool unbiased, bool keepdim) {
  return withMean("std_mean", true, self, dim, correctionOf(unbiased), keepdim);
}
Pair stdMeanCorrection(const Tensor& self, const Dims& dim, const Correction& correction,
                       bool keepdim) {
  return withMean("std_mean", true, self, dim, correctionOf(correction), keepdim);
}

#define WICK_PLAIN "(Tensor self, bool unbiased=True) -> "
#define WICK_DIM "(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> "
#define WICK_CORRECTION \
  "(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> "

constexpr OperatorRecord kRecords[] = {
    {"aten::var" WICK_PLAIN "Tensor", WICK_KERNEL(var), kNoFlags, ops::shapes::reducedReal},
    {"aten::var.dim" WICK_DIM "Tensor", WICK_KERNEL(varDim), kOutForm, ops::shapes::reducedReal},
    {"aten::var.correction" WICK_CORRECTION "Tensor", WICK_KERNEL(varCorrection), kOutForm,
     ops::shapes::reducedReal},
    {"aten::std" WICK_PLAIN "Tensor", WICK_KERNEL(stdAll), kNoFlags, ops::shapes::reducedReal},
    {"aten::std.dim" WICK_DIM "Tensor", WICK_KERNEL(stdDim), kOutForm, ops::shapes::reducedReal},
    {"aten::std.correction" WICK_CORRECTION "Tensor", WICK_KERNEL(stdCorrection), kOutForm,
     ops::shapes::reducedReal},
    {"aten::var_mean" WICK_PLAIN "(Tensor, Tensor)", WICK_KERNEL(varMean), kNoFlags,
     ops::shapes::reducedRealTwice},
    {"aten::var_mean.dim" WICK_DIM "(Tensor, Tensor)", WICK_KERNEL(varMeanDim), kNoFlags,
     ops::shapes::reducedRealTwice},
    {"aten::var_mean.correction" WICK_CORRECTION "(Tensor, Tensor)", WICK_KERNEL(varMeanCorrection),
     kNoFlags, ops::shapes::reducedRealTwice},
    {"aten::std_mean" WICK_PLAIN "(Tensor, Tensor)", WICK_KERNEL(stdMean), kNoFlags,
     ops::shapes::reducedRealTwice},
    {"aten::std_mean.dim" WICK_DIM "(Tensor, Tensor)", WICK_KERNEL(stdMeanDim), kNoFlags,
     ops::shapes::reducedRealTwice},
    {"aten::std_mean.correction" WICK_CORRECTION "(Tensor, Tensor)", WICK_KERNEL(stdMeanCorrection),
     kNoFlags, ops::shapes::reducedRealTwice},
};

const RegisterOperators kRegistered(kRecords);

}  // namespace
}  // namespace wick
