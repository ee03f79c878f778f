// Softmax, its logarithm, and log-sum-exp.
#include "runtime/kernels/softmax.h"

#include <cmath>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "ir/device_kernels.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

Tensor run(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype,
           bool logarithm) {
  Tensor x = dtype ? self.to(*dtype) : self;
  int64_t d = wrapDim(dim, x.dim());
  WICK_CHECK(isFloating(x.dtype()), "{}: no kernel for dtype {}", op, toString(x.dtype()));
  return softmaxAlong(x, d, logarithm);
}

Tensor softmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return run("softmax", self, dim, dtype, false);
}
Tensor logSoftmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return run("log_softmax", self, dim, dtype, true);
}

// Rows of nothing but -inf give zeros.
Tensor safeSoftmax(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  const Tensor out = ops::softmax(self, dim, dtype);
  const Tensor hidden = ops::allDim(ops::eqScalar(self, -HUGE_VAL), dim, true);
  return ops::maskedFill(out, hidden, 0.0);
}

Tensor softmaxInternal(const Tensor& self, int64_t dim, bool half_to_float) {
  WICK_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  return run("_softmax", self, dim, std::nullopt, false);
}
Tensor logSoftmaxInternal(const Tensor& self, int64_t dim, bool half_to_float) {
  WICK_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  return run("_log_softmax", self, dim, std::nullopt, true);
}

// Elements whose mask is true take no part.
Tensor maskedSoftmax(const Tensor& self, const Tensor& mask, std::optional<int64_t> dim,
                     std::optional<int64_t> mask_type) {
  WICK_CHECK(mask.dtype() == DType::Bool, "_masked_softmax: mask should be a boolean tensor");
  Tensor m = mask;
  if (mask_type && *mask_type == 1 && self.dim() == 4 && mask.dim() == 2) {
    m = mask.unsqueeze(1).unsqueeze(1);  // padding: batch x keys
  }
  Tensor hidden = ops::maskedFill(self, m.expand(self.sizes()), -HUGE_VAL);
  return ops::softmax(hidden, dim.value_or(self.dim() - 1), IValue());
}

// The sum of exp(v - max) beside the running maximum.
template <class T>
struct LogSumExpOp {
  struct Acc {
    double max;
    double sum;
  };
  Acc init() const { return {-HUGE_VAL, 0}; }
  void step(Acc& a, T v) const { merge(a, {static_cast<double>(v), 1}); }
  void merge(Acc& a, const Acc& b) const {
    if (b.sum == 0) return;
    double larger = b.max > a.max || b.max != b.max ? b.max : a.max;
    // Infinite maxima subtract to NaN; their terms are exactly 1.
    auto scaled = [&](const Acc& x) {
      return x.sum == 0 ? 0 : x.max == larger ? x.sum : x.sum * std::exp(x.max - larger);
    };
    a = {larger, scaled(a) + scaled(b)};
  }
  T finish(const Acc& a) const { return convert<T>(a.max + std::log(a.sum)); }
};

// The largest real part is taken out of the sum; an infinite one is not.
Tensor complexLogSumExp(const Tensor& x, const DimVector& dim, bool keepdim) {
  Tensor most = ops::amax(ops::real(x), dim, true);
  most = ops::maskedFill(most, ops::isInf(most), 0.0);
  const Tensor sum = ops::sumDims(ops::exp(ops::sub(x, most)), dim, true);
  const Tensor out = ops::add(ops::log(sum), most);
  return keepdim ? out : ops::sumDims(out, dim, false);
}

Tensor logsumexp(const Tensor& self, const DimVector& dim, bool keepdim) {
  if (self.numel() == 0) return ops::log(ops::sumDims(ops::exp(self), dim, keepdim));
  if (isComplex(self.dtype())) return complexLogSumExp(self, dim, keepdim);
  Tensor x = isIntegral(self.dtype(), true) ? self.to(defaultDType()) : self;
  if (!x.device().isCpu()) {
    static const OperatorHandle kLogSumExp("aten::logsumexp", "");
    if (x.isSame(self)) throw NotOnDevice();  // not even a loop form has it
    return kLogSumExp(x, dim, keepdim);
  }
  std::vector<bool> mask = reduce::dimMask("logsumexp", x, dim);
  // Rows of neighbours take vectors; a transposition costs less than exponentials one by one.
  if (x.dtype() == DType::Float && dim.size() == 1 && x.dim() > 0) {
    const int64_t d = wrapDim(dim[0], x.dim()), n = x.size(d);
    if (n >= 8 && x.numel() > 0) {
      const Tensor rows = x.transpose(d, -1).contiguous();
      DimVector sizes(rows.sizes());
      sizes.back() = 1;
      Tensor out = Tensor::empty(sizes, x.dtype());
      logSumExpRows(rows.data<float>(), out.data<float>(), out.numel(), n);
      out = out.transpose(d, -1).contiguous();
      return keepdim ? out : out.squeeze(d);
    }
  }
  return dispatch<kAnyFloat>("logsumexp", x.dtype(), [&]<class T>() {
    return reduce::apply<T, T>(LogSumExpOp<T>(), x, mask, keepdim);
  });
}

#define WICK_DIM_DTYPE "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
#define WICK_INTERNAL "(Tensor self, int dim, bool half_to_float) -> Tensor"

// Low precision is widened for the time of the computation, so that a gradient flows through.
Tensor narrowed(const Tensor& t, DType dtype) {
  return t.dtype() == dtype ? t : ops::toDType(t, dtype);
}
Tensor widened(const Tensor& t) {
  return isReducedFloat(t.dtype()) ? narrowed(t, DType::Float) : t;
}

// What a gradient of the result is for the argument.
Tensor softmaxBackward(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  const Tensor g = widened(grad), y = widened(output);
  const Tensor sum = ops::sumDims(ops::mul(g, y), DimVector{dim}, true);
  return narrowed(ops::mul(ops::sub(g, sum), y), dtype);
}
Tensor logSoftmaxBackward(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  const Tensor g = widened(grad), y = widened(output);
  const Tensor sum = ops::sumDims(g, DimVector{dim}, true);
  return narrowed(ops::sub(g, ops::mul(ops::exp(y), sum)), dtype);
}

#define WICK_GIVEN_GRADIENT \
  "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"

constexpr OperatorRecord kSoftmaxRecords[] = {
    {"aten::_softmax_backward_data" WICK_GIVEN_GRADIENT, WICK_KERNEL(softmaxBackward),
     kNeutralLast},
    {"aten::_log_softmax_backward_data" WICK_GIVEN_GRADIENT, WICK_KERNEL(logSoftmaxBackward),
     kNeutralLast},
    {"aten::softmax.int" WICK_DIM_DTYPE, WICK_KERNEL(softmax),
     kOutForm | kOutSame | kCastFullOnCuda | kKeepsOrder, ops::shapes::likeFirst},
    {"aten::log_softmax.int" WICK_DIM_DTYPE, WICK_KERNEL(logSoftmax),
     kOutForm | kOutSame | kCastFullUnlessTold | kKeepsOrder, ops::shapes::likeFirst},
    {"aten::special_softmax" WICK_DIM_DTYPE, WICK_KERNEL(softmax), kNoFlags,
     ops::shapes::likeFirst},
    {"aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(logSoftmax), kNoFlags, ops::shapes::likeFirst},
    {"aten::_softmax" WICK_INTERNAL, WICK_KERNEL(softmaxInternal), kOutForm | kOutSame,
     ops::shapes::likeFirst},
    {"aten::_log_softmax" WICK_INTERNAL, WICK_KERNEL(logSoftmaxInternal), kOutForm | kOutSame,
     ops::shapes::likeFirst},
    {"aten::_safe_softmax" WICK_DIM_DTYPE, WICK_KERNEL(safeSoftmax), kNeutral,
     ops::shapes::likeFirst},
    {"aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> "
     "Tensor",
     WICK_KERNEL(maskedSoftmax), kOutForm | kNeutral, ops::shapes::likeFirst},
    {"aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     WICK_KERNEL(logsumexp), kOutForm | kOutReal | kNeutralLast | kCastFull,
     ops::shapes::reducedFloating},
};

constexpr OperatorAlias kSoftmaxAliases[] = {{"aten::special_logsumexp", "aten::logsumexp"}};

const RegisterOperators kSoftmaxRegistered(kSoftmaxRecords, kSoftmaxAliases);

}  // namespace
}  // namespace wick
