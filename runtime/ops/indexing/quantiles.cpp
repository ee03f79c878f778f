// Quantiles along a dimension, or of all elements.
#include "runtime/ops/indexing/quantiles.h"

#include <cmath>
#include <limits>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/element_order.h"
#include "runtime/ops/call.h"

namespace wick::ops {

Tensor sortedForQuantiles(const Tensor& self, const Tensor& q, std::optional<int64_t> dim) {
  WICK_CHECK(self.numel() > 0, "quantile() input tensor must be non-empty");
  WICK_CHECK(q.dim() <= 1, "quantile() q must be a scalar or 1D tensor");
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "quantile() input tensor must be either float or double dtype");
  WICK_CHECK(self.dtype() == q.dtype(),
             "quantile() q tensor must be same dtype as the input tensor");
  const int64_t d = wrapDim(dim.value_or(0), self.dim());
  const Tensor input = dim ? self : self.reshape(DimVector{-1});
  static const OperatorHandle kSort{"aten::sort", ""};
  return kSort.all(input.dim() == 0 ? input.unsqueeze(0) : input, d, false)[0]
      .toTensor()
      .transpose(d, -1)
      .contiguous();
}

Tensor quantilesFirst(const Tensor& values, const Tensor& self, const Tensor& q,
                      std::optional<int64_t> dim, bool keepdim) {
  const int64_t d = wrapDim(dim.value_or(0), self.dim());
  Tensor back = values.transpose(d, values.dim() - 1);
  DimVector order{d};
  for (int64_t i = 0; i < back.dim(); ++i) {
    if (i != d) order.push_back(i);
  }
  back = back.permute(order);
  if (keepdim && dim && self.dim() > 0) back = back.unsqueeze(d + 1);
  if (keepdim && !dim) {
    for (int64_t i = 0; i < self.dim(); ++i) back = back.unsqueeze(1);
  }
  return (q.dim() == 0 ? back.select(0, 0) : back).contiguous();
}

namespace {

order::Between interpolationNamed(const std::string& name) {
  constexpr const char* kNames[] = {"linear", "lower", "higher", "midpoint", "nearest"};
  for (int i = 0; i < 5; ++i) {
    if (name == kNames[i]) return static_cast<order::Between>(i);
  }
  throwRuntimeError(
      "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got "
      "{}",
      name);
}

Tensor quantileIn(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                  const std::string& interpolation, bool ignore_nan) {
  const order::Between how = interpolationNamed(interpolation);
  const Tensor moved = sortedForQuantiles(self, q, dim);
  const int64_t length = moved.size(-1);
  const int64_t count = moved.numel() / length;
  const Tensor fractions = q.contiguous();
  const int64_t m = fractions.numel();
  DimVector sizes(moved.sizes());
  sizes.back() = m;
  const Tensor values = Tensor::empty(sizes, self.dtype());
  dispatch<kFloats>("quantile", self.dtype(), [&]<class T>() -> void {
    for (int64_t i = 0; i < m; ++i) {
      T f = fractions.data<T>()[i];
      WICK_CHECK(f >= 0 && f <= 1, "quantile() q values must be in the range [0, 1]");
    }
    for (int64_t r = 0; r < count; ++r) {
      const T* const sorted = moved.data<T>() + r * length;
      int64_t n = length;
      while (n > 0 && std::isnan(sorted[n - 1])) --n;
      const bool spoiled = n == 0 || (!ignore_nan && n < length);
      for (int64_t i = 0; i < m; ++i) {
        values.data<T>()[r * m + i] =
            spoiled ? std::numeric_limits<T>::quiet_NaN()
                    : order::quantileOf(sorted, n, fractions.data<T>()[i], how);
      }
    }
  });
  return quantilesFirst(values, self, q, dim, keepdim);
}
template <bool kIgnoreNan>
Tensor quantile(const Tensor& self, const Tensor& q, std::optional<int64_t> dim, bool keepdim,
                std::string interpolation) {
  return quantileIn(self, q, dim, keepdim, interpolation, kIgnoreNan);
}
template <bool kIgnoreNan>
Tensor quantileNumber(const Tensor& self, double q, std::optional<int64_t> dim, bool keepdim,
                      std::string interpolation) {
  WICK_CHECK(q >= 0 && q <= 1, "quantile() q must be in the range [0, 1] but got {}", q);
  return quantileIn(self, Tensor::scalar<double>(q).to(self.dtype()), dim, keepdim, interpolation,
                    kIgnoreNan);
}

const OperatorRecord kQuantilesRecords[] = {
    {"aten::quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantile<false>), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
    {"aten::quantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantileNumber<false>), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
    {"aten::nanquantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantile<true>), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
    {"aten::nanquantile.scalar(Tensor self, float q, int? dim=None, bool keepdim=False, *, str "
     "interpolation=\"linear\") -> Tensor",
     WICK_KERNEL(quantileNumber<true>), kOutForm | kOutSame | kRaisesByElements | kEagerCastFull},
};

const RegisterOperators kQuantilesRegistered(kQuantilesRecords);

}  // namespace

}  // namespace wick::ops
