#include "runtime/ops/device_composites.h"

#include <optional>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops {

namespace {

using OptDims = std::optional<DimVector>;

Tensor countNonzeroDims(const Tensor& self, const DimVector& dims) {
  const Tensor there = ops::neScalar(self, Scalar(int64_t{0}));
  for (const int64_t d : dims) wrapDim(d, self.dim());
  if (self.dim() == 0) return there.to(DType::Long);
  return dims.empty() ? sum(there) : sumDims(there, dims);
}
Tensor countNonzero(const Tensor& self, std::optional<int64_t> dim) {
  return countNonzeroDims(self, dim ? DimVector{*dim} : DimVector());
}

Pair aminmax(const Tensor& self, std::optional<int64_t> dim, bool keepdim) {
  // PyTorch keeps a dimension that a tensor without dimensions never had.
  const Tensor x = dim && keepdim && self.dim() == 0 ? self.unsqueeze(0) : self;
  const DimVector dims = dim ? DimVector{*dim} : DimVector();
  return {ops::amin(x, dims, keepdim), ops::amax(x, dims, keepdim)};
}
Pair aminmaxAll(const Tensor& self) {
  return aminmax(self, std::nullopt, false);
}
Pair aminmaxDim(const Tensor& self, int64_t dim, bool keepdim) {
  return aminmax(self, dim, keepdim);
}

IValue listOf(const OptDims& dims) {
  return dims ? IValue(makeIntList(IntSpan(*dims))) : IValue();
}
// Of elements that are numbers. Integers all are.
Tensor nansum(const Tensor& self, const OptDims& dims, bool keepdim, std::optional<DType> dtype) {
  WICK_CHECK(!isComplex(dtype.value_or(self.dtype())), "nansum does not support complex inputs");
  const Tensor x = dtype ? self.to(*dtype) : self;
  const Tensor numbers = isFloating(x.dtype()) ? maskedFill(x, ops::isNan(x), Scalar(0)) : x;
  return sumDims(numbers, listOf(dims), keepdim, dtype);
}
Tensor nanmean(const Tensor& self, const OptDims& dims, bool keepdim, std::optional<DType> dtype) {
  WICK_CHECK(isFloating(self.dtype()),
             "nanmean(): expected input to have floating point dtype but got {}",
             scalarTypeName(self.dtype()));
  const Tensor x = dtype ? self.to(*dtype) : self;
  const DType wide = isReducedFloat(x.dtype()) ? DType::Float : x.dtype();
  const Tensor count =
      sumDims(ops::logicalNot(ops::isNan(x)).to(wide), listOf(dims), keepdim, IValue());
  return div(nansum(x.to(wide), dims, keepdim, std::nullopt), count).to(x.dtype());
}

// Random slopes when training, their mean otherwise.
Tensor rrelu(const Tensor& self, const Scalar& lower, const Scalar& upper, bool training,
             Generator* g) {
  const double low = lower.toDouble(), high = upper.toDouble();
  WICK_CHECK(low <= high, "Lower bound should be less than or equal to the upper bound");
  if (!training) return ops::leakyRelu(self, Scalar((low + high) / 2));
  WICK_CHECK(isFloating(self.dtype()), "\"rrelu_with_noise\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  const Tensor slopes = Tensor::empty(self.sizes(), DType::Double, self.device());
  ops::uniformInto(slopes, low, high, IValue(GeneratorRef(g)));
  return where(ops::gtScalar(self, Scalar(0)), self, mul(self, slopes.to(self.dtype())));
}

// softmax, or its logarithm.
template <bool Log>
Tensor softmaxOf(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const IValue given = dtype ? boxing::box(*dtype) : IValue();
  return Log ? ops::logSoftmax(self, dim, given) : softmax(self, dim, given);
}
// Of halves its result can be float32.
template <bool Log>
Tensor softmaxOfHalf(const Tensor& self, int64_t dim, bool half_to_float) {
  WICK_CHECK(!half_to_float || self.dtype() == DType::Half,
             "softmax: conversion is supported for Half type only, got {}", self.describe());
  return softmaxOf<Log>(self, dim, half_to_float ? std::optional(DType::Float) : std::nullopt);
}
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  static const OperatorHandle kLogcumsumexp{"aten::logcumsumexp", ""};
  return kLogcumsumexp(self, dim);
}
Tensor isinOfNumber(const Scalar& element, const Tensor& tests, bool, bool invert) {
  const Tensor is_there = ops::any(ops::eqScalar(tests, element));
  return invert ? ops::logicalNot(is_there) : is_there;
}

constexpr DeviceKernel kDeviceCompositesKernels[] = {
    {"aten::count_nonzero", WICK_KERNEL(countNonzero)},
    {"aten::count_nonzero.dim_IntList", WICK_KERNEL(countNonzeroDims)},
    {"aten::aminmax", WICK_KERNEL(aminmax)},
    {"aten::_aminmax", WICK_KERNEL(aminmaxAll)},
    {"aten::_aminmax.dim", WICK_KERNEL(aminmaxDim)},
    {"aten::rrelu", WICK_KERNEL(rrelu)},
    {"aten::_softmax", WICK_KERNEL(softmaxOfHalf<false>)},
    {"aten::_log_softmax", WICK_KERNEL(softmaxOfHalf<true>)},
    {"aten::special_softmax", WICK_KERNEL(softmaxOf<false>)},
    {"aten::special_log_softmax", WICK_KERNEL(softmaxOf<true>)},
    {"aten::_logcumsumexp", WICK_KERNEL(logcumsumexp)},
    {"aten::isin.Scalar_Tensor", WICK_KERNEL(isinOfNumber)},
};
// Where they have no loop form.
constexpr DeviceKernel kDeviceCompositesLast[] = {
    {"aten::nansum", WICK_KERNEL(nansum)},
    {"aten::nanmean", WICK_KERNEL(nanmean)},
};

}  // namespace

RegisterComposites::RegisterComposites(DeviceType type) {
  RegisterDeviceKernels(type, kDeviceCompositesKernels);
  RegisterDeviceKernels(type, kDeviceCompositesLast, TableRule::Last);
}

void checkRenorm(const Tensor& self, const Tensor& indices) {
  WICK_CHECK(self.dim() == 2, "embedding_renorm_: 'self' must be 2-D");
  WICK_CHECK(indices.dtype() == DType::Long || indices.dtype() == DType::Int,
             "embedding_renorm_: Expected dtype int32/int64 for index, got {}",
             toString(indices.dtype()));
  WICK_CHECK(isFloating(self.dtype()), "\"embedding_renorm_\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
}

Tensor limitedRows(const Tensor& rows, double max_norm, double norm_type) {
  const DType dtype = rows.dtype(), wide = isReducedFloat(dtype) ? DType::Float : dtype;
  const Tensor x = rows.to(wide), norm = ops::vectorNorm(x, Scalar(norm_type), DimVector{1}, true);
  const Tensor rounded = norm.to(dtype).to(wide);
  const Tensor scale =
      mulScalar(ops::reciprocal(addScalar(rounded, Scalar(1e-7))), Scalar(max_norm));
  return Tensor(where(ops::gtScalar(norm, Scalar(max_norm)), mul(x, scale), x)).to(dtype);
}

}  // namespace wick::ops
