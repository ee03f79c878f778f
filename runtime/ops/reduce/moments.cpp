// Variance and standard deviation, by Welford's update: one pass, no cancellation.
#include "runtime/kernels/moments.h"

#include <cmath>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/common_calls.h"
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

Pair withMean(const char* op, bool root, const Tensor& self, const Dims& dims, double correction,
              bool keepdim) {
  Tensor first = moments(op, root, self, dims, correction, keepdim);
  return {first, ops::meanDims(self, dims.value_or(DimVector()), keepdim)};
}

// The operators over `kCompute`, one of those above.
template <auto kCompute, bool kRoot>
struct Moments {
  static constexpr const char* kOp = std::is_same_v<decltype(kCompute), decltype(&withMean)>
                                         ? (kRoot ? "std_mean" : "var_mean")
                                         : (kRoot ? "std" : "var");
  static auto ofAll(const Tensor& self, bool unbiased) { return along(self, {}, unbiased, false); }
  static auto along(const Tensor& self, const Dims& dim, bool unbiased, bool keepdim) {
    return kCompute(kOp, kRoot, self, dim, unbiased ? 1 : 0, keepdim);
  }
  static auto corrected(const Tensor& self, const Dims& dim, const Correction& correction,
                        bool keepdim) {
    return kCompute(kOp, kRoot, self, dim, correction ? correction->toDouble() : 1, keepdim);
  }
};

#define WICK_MOMENTS(name, result, forms, rule, ...)                                        \
  {"aten::" name "(Tensor self, bool unbiased=True) -> " result,                            \
   WICK_KERNEL((Moments<__VA_ARGS__>::ofAll)), kNoFlags, ops::shapes::rule},                \
      {"aten::" name                                                                        \
       ".dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> " result, \
       WICK_KERNEL((Moments<__VA_ARGS__>::along)), forms, ops::shapes::rule},               \
  {                                                                                         \
    "aten::" name                                                                           \
    ".correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool "          \
    "keepdim=False) -> " result,                                                            \
        WICK_KERNEL((Moments<__VA_ARGS__>::corrected)), forms, ops::shapes::rule            \
  }

constexpr OperatorRecord kMomentsRecords[] = {
    WICK_MOMENTS("var", "Tensor", kOutForm, reducedReal, &moments, false),
    WICK_MOMENTS("std", "Tensor", kOutForm, reducedReal, &moments, true),
    WICK_MOMENTS("var_mean", "(Tensor, Tensor)", kNoFlags, reducedRealTwice, &withMean, false),
    WICK_MOMENTS("std_mean", "(Tensor, Tensor)", kNoFlags, reducedRealTwice, &withMean, true),
};

const RegisterOperators kMomentsRegistered(kMomentsRecords);

}  // namespace
}  // namespace wick
