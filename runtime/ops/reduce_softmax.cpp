// Softmax, its logarithm, and log-sum-exp.
#include <cmath>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/softmax.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shape_rules.h"

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
  return run("_masked_softmax", hidden, dim.value_or(self.dim() - 1), std::nullopt, false);
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

Tensor logsumexp(const Tensor& self, const DimVector& dim, bool keepdim) {
  Tensor x = isIntegral(self.dtype(), true) ? self.to(defaultDType()) : self;
  std::vector<bool> mask = reduce::dimMask("logsumexp", x, dim);
  return dispatch<kAnyFloat>("logsumexp", x.dtype(), [&]<class T>() {
    return reduce::apply<T, T>(LogSumExpOp<T>(), x, mask, keepdim);
  });
}

#define WICK_DIM_DTYPE "(Tensor self, int dim, ScalarType? dtype=None) -> Tensor"
#define WICK_INTERNAL "(Tensor self, int dim, bool half_to_float) -> Tensor"

// What a gradient of the result is for the argument.
Tensor softmaxBackward(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  const Tensor sum = ops::sumDims(ops::mul(grad, output), DimVector{dim}, true);
  return ops::mul(ops::sub(grad, sum), output).to(dtype);
}
Tensor logSoftmaxBackward(const Tensor& grad, const Tensor& output, int64_t dim, DType dtype) {
  const Tensor sum = ops::sumDims(grad, DimVector{dim}, true);
  return ops::sub(grad, ops::mul(ops::exp(output), sum)).to(dtype);
}

#define WICK_GIVEN_GRADIENT \
  "(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor"

constexpr OperatorRecord kRecords[] = {
    {"aten::_softmax_backward_data" WICK_GIVEN_GRADIENT, WICK_KERNEL(softmaxBackward), kComposite},
    {"aten::_log_softmax_backward_data" WICK_GIVEN_GRADIENT, WICK_KERNEL(logSoftmaxBackward),
     kComposite},
    {"aten::softmax.int" WICK_DIM_DTYPE, WICK_KERNEL(softmax), kOutForm, ops::shapes::likeFirst},
    {"aten::log_softmax.int" WICK_DIM_DTYPE, WICK_KERNEL(logSoftmax), kOutForm,
     ops::shapes::likeFirst},
    {"aten::special_softmax" WICK_DIM_DTYPE, WICK_KERNEL(softmax), kNoFlags,
     ops::shapes::likeFirst},
    {"aten::special_log_softmax(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(logSoftmax), kNoFlags, ops::shapes::likeFirst},
    {"aten::_softmax" WICK_INTERNAL, WICK_KERNEL(softmaxInternal), kOutForm,
     ops::shapes::likeFirst},
    {"aten::_log_softmax" WICK_INTERNAL, WICK_KERNEL(logSoftmaxInternal), kOutForm,
     ops::shapes::likeFirst},
    {"aten::_masked_softmax(Tensor self, Tensor mask, int? dim=None, int? mask_type=None) -> "
     "Tensor",
     WICK_KERNEL(maskedSoftmax), kOutForm, ops::shapes::likeFirst},
    {"aten::logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     WICK_KERNEL(logsumexp), kOutForm, ops::shapes::reducedFloating},
};

constexpr OperatorAlias kAliases[] = {{"aten::special_logsumexp", "aten::logsumexp"}};

const RegisterOperators kRegistered(kRecords, kAliases);

}  // namespace
}  // namespace wick
