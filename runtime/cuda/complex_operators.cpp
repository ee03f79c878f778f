// Operators on complex numbers, on CUDA devices, that are not pointwise: each is made of operators
// on the two parts, or of others on complex numbers.
#include <cmath>

#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

using OptDType = std::optional<DType>;
using OptDims = std::optional<DimVector>;

void needComplex(const Tensor& t) {
  if (!isComplex(t.dtype())) throw NotOnDevice();
}

// ---- reductions ----

DimVector allOr(const Tensor& t, const OptDims& dims) {
  DimVector all;
  if (dims && !dims->empty()) {
    for (const int64_t d : *dims) all.push_back(wrapDim(d, t.dim()));
  } else {
    for (int64_t d = 0; d < t.dim(); ++d) all.push_back(d);
  }
  return all;
}
template <class F>
Tensor byParts(const Tensor& self, OptDType dtype, F&& reduce) {
  const Tensor t = dtype ? self.to(*dtype) : self;
  needComplex(t);
  return ops::viewAsComplex(reduce(ops::viewAsReal(t)).contiguous());
}
Tensor sumDims(const Tensor& self, const OptDims& dims, bool keepdim, OptDType dtype) {
  if (self.dim() == 0) return dtype ? self.to(*dtype).clone() : (needComplex(self), self.clone());
  return byParts(self, dtype,
                 [&](const Tensor& t) { return ops::sumDims(t, allOr(self, dims), keepdim); });
}
Tensor sum(const Tensor& self, OptDType dtype) {
  return sumDims(self, std::nullopt, false, dtype);
}
Tensor meanDims(const Tensor& self, const OptDims& dims, bool keepdim, OptDType dtype) {
  if (self.dim() == 0) return dtype ? self.to(*dtype).clone() : (needComplex(self), self.clone());
  return byParts(self, dtype,
                 [&](const Tensor& t) { return ops::meanDims(t, allOr(self, dims), keepdim); });
}
Tensor mean(const Tensor& self, OptDType dtype) {
  return meanDims(self, std::nullopt, false, dtype);
}
// The last of the products from the beginning.
Tensor prodDim(const Tensor& self, int64_t dim, bool keepdim, OptDType dtype) {
  const Tensor t = dtype ? self.to(*dtype) : self;
  needComplex(t);
  if (t.dim() == 0) return t.clone();
  const int64_t d = wrapDim(dim, t.dim()), n = t.size(d);
  if (n == 0) {
    DimVector sizes(t.sizes());
    if (keepdim) {
      sizes[static_cast<size_t>(d)] = 1;
    } else {
      sizes.erase(static_cast<size_t>(d));
    }
    const Tensor ones = Tensor::zeros(sizes, t.dtype(), t.device());
    ops::fillWith(ones, Scalar(1));
    return ones;
  }
  const Tensor last = ops::cumprod(t, d).narrow(d, n - 1, 1);
  return (keepdim ? last : last.squeeze(d)).contiguous();
}
Tensor prod(const Tensor& self, OptDType dtype) {
  return prodDim(self.reshape(DimVector{-1}), 0, false, dtype);
}
template <bool kAll>
Tensor anyOf(const Tensor& self) {
  needComplex(self);
  return (kAll ? ops::all : ops::any)(ops::neScalar(self, 0));
}
template <bool kAll>
Tensor anyOfDim(const Tensor& self, int64_t dim, bool keepdim) {
  needComplex(self);
  return (kAll ? ops::allDim : ops::anyDim)(ops::neScalar(self, 0), dim, keepdim);
}

template <bool kAll>
Tensor anyOfDims(const Tensor& self, const OptDims& dims, bool keepdim) {
  static const OperatorHandle kAny{"aten::any", "dims"}, kEvery{"aten::all", "dims"};
  needComplex(self);
  return (kAll ? kEvery : kAny)(ops::neScalar(self, 0),
                                dims ? IValue(makeIntList(IntSpan(*dims))) : IValue(), keepdim);
}

// ---- triangles, casts ----

template <bool kUpper>
Tensor triangle(const Tensor& self, int64_t diagonal) {
  needComplex(self);
  const Tensor parts = ops::viewAsReal(self.contiguous());
  const Tensor out = Tensor::empty(parts.sizes(), parts.dtype(), parts.device());
  for (int64_t i = 0; i < 2; ++i) {
    out.select(-1, i).copyFrom((kUpper ? ops::triu : ops::tril)(parts.select(-1, i), diagonal));
  }
  return ops::viewAsComplex(out);
}
template <bool kLog>
Tensor softmax(const Tensor& self, int64_t dim, OptDType dtype) {
  if (self.numel() == 0 && isFloating(dtype.value_or(self.dtype()))) {
    wrapDim(dim, self.dim());
    return Tensor::empty(self.sizes(), dtype.value_or(self.dtype()), self.device());
  }
  needComplex(self);
  if (!dtype || isComplex(*dtype)) throw NotOnDevice();
  return (kLog ? ops::logSoftmax : ops::softmax)(self.to(*dtype), dim);
}
Tensor logicalNot(const Tensor& self) {
  needComplex(self);
  return ops::eqScalar(self, 0);
}

// ---- variances; those of two parts add ----

bool isWhole(double correction) {
  return std::abs(correction) < 0x1p53 && correction == std::floor(correction);
}
// Of real numbers. Loop forms have whole corrections.
Tensor varianceOf(const Tensor& t, const DimVector& dims, double correction, bool keepdim) {
  if (isWhole(correction)) {
    return ops::var(t, dims, Scalar(static_cast<int64_t>(correction)), keepdim);
  }
  double n = 1;
  for (const int64_t d : dims) n *= static_cast<double>(t.size(d));
  const Tensor wide = isReducedFloat(t.dtype()) ? t.to(DType::Float) : t;
  const Tensor plain = ops::var(wide, dims, Scalar(int64_t{0}), keepdim);
  return ops::mulScalar(plain, Scalar(n / std::max(0.0, n - correction))).to(t.dtype());
}
// The variance, or its root, and the mean.
Pair moments(const Tensor& self, const OptDims& dims, double correction, bool keepdim, bool root) {
  const DimVector all = allOr(self, dims);
  Tensor variance;
  if (isComplex(self.dtype())) {
    const Tensor parts = ops::viewAsReal(self);
    variance = ops::add(varianceOf(parts.select(-1, 0), all, correction, keepdim),
                        varianceOf(parts.select(-1, 1), all, correction, keepdim));
  } else {
    variance = varianceOf(self, all, correction, keepdim);
  }
  return {root ? ops::sqrt(variance) : variance, ops::meanDims(self, all, keepdim)};
}
using Correction = std::optional<Scalar>;
double of(const Correction& correction) {
  return correction ? correction->toDouble() : 1;
}
template <bool kRoot>
Tensor momentCorrection(const Tensor& self, const OptDims& dims, const Correction& correction,
                        bool keepdim) {
  if (isWhole(of(correction))) needComplex(self);
  return std::get<0>(moments(self, dims, of(correction), keepdim, kRoot));
}
template <bool kRoot>
Tensor momentDim(const Tensor& self, const OptDims& dims, bool unbiased, bool keepdim) {
  needComplex(self);
  return std::get<0>(moments(self, dims, unbiased ? 1 : 0, keepdim, kRoot));
}
template <bool kRoot>
Tensor momentAll(const Tensor& self, bool unbiased) {
  needComplex(self);
  return std::get<0>(moments(self, std::nullopt, unbiased ? 1 : 0, false, kRoot));
}
template <bool kRoot>
Pair bothCorrection(const Tensor& self, const OptDims& dims, const Correction& correction,
                    bool keepdim) {
  return moments(self, dims, of(correction), keepdim, kRoot);
}
template <bool kRoot>
Pair bothDim(const Tensor& self, const OptDims& dims, bool unbiased, bool keepdim) {
  return moments(self, dims, unbiased ? 1 : 0, keepdim, kRoot);
}
template <bool kRoot>
Pair bothAll(const Tensor& self, bool unbiased) {
  return moments(self, std::nullopt, unbiased ? 1 : 0, false, kRoot);
}

const DeviceKernel kComplexOperatorsLast[] = {
    {"aten::sum", WICK_KERNEL(sum)},
    {"aten::sum.dim_IntList", WICK_KERNEL(sumDims)},
    {"aten::mean", WICK_KERNEL(mean)},
    {"aten::mean.dim", WICK_KERNEL(meanDims)},
    {"aten::prod", WICK_KERNEL(prod)},
    {"aten::prod.dim_int", WICK_KERNEL(prodDim)},
    {"aten::any", WICK_KERNEL(anyOf<false>)},
    {"aten::all", WICK_KERNEL(anyOf<true>)},
    {"aten::any.dim", WICK_KERNEL(anyOfDim<false>)},
    {"aten::all.dim", WICK_KERNEL(anyOfDim<true>)},
    {"aten::any.dims", WICK_KERNEL(anyOfDims<false>)},
    {"aten::all.dims", WICK_KERNEL(anyOfDims<true>)},
    {"aten::triu", WICK_KERNEL(triangle<true>)},
    {"aten::tril", WICK_KERNEL(triangle<false>)},
    {"aten::softmax.int", WICK_KERNEL(softmax<false>)},
    {"aten::log_softmax.int", WICK_KERNEL(softmax<true>)},
    {"aten::logical_not", WICK_KERNEL(logicalNot)},
    {"aten::var", WICK_KERNEL(momentAll<false>)},
    {"aten::var.dim", WICK_KERNEL(momentDim<false>)},
    {"aten::var.correction", WICK_KERNEL(momentCorrection<false>)},
    {"aten::std", WICK_KERNEL(momentAll<true>)},
    {"aten::std.dim", WICK_KERNEL(momentDim<true>)},
    {"aten::std.correction", WICK_KERNEL(momentCorrection<true>)},
    {"aten::var_mean", WICK_KERNEL(bothAll<false>)},
    {"aten::var_mean.dim", WICK_KERNEL(bothDim<false>)},
    {"aten::var_mean.correction", WICK_KERNEL(bothCorrection<false>)},
    {"aten::std_mean", WICK_KERNEL(bothAll<true>)},
    {"aten::std_mean.dim", WICK_KERNEL(bothDim<true>)},
    {"aten::std_mean.correction", WICK_KERNEL(bothCorrection<true>)},
};
const RegisterDeviceKernels kComplexOperatorsLastRegistered(DeviceType::CUDA, kComplexOperatorsLast,
                                                            TableRule::Last);

}  // namespace

}  // namespace wick::cuda
