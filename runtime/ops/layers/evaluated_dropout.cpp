// Dropout that drops nothing, of tensors that are not dense: quantized networks keep their layers of
// dropout in evaluation.
#include "core/error.h"
#include "ir/kind_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/random/checks.h"

namespace wick::ops {

namespace {

Tensor unchanged(const Tensor& input, double p, bool train) {
  checkDropout(p);
  WICK_CHECK(!train || p == 0 || input.numel() == 0,
             "dropout: not available for {} tensors in training", toString(input.kind()));
  return input;
}

const KindKernel kEvaluatedDropoutKernels[] = {
    {"aten::dropout", WICK_KERNEL(unchanged)},
    {"aten::dropout_", WICK_KERNEL(unchanged)},
    {"aten::feature_dropout", WICK_KERNEL(unchanged)},
    {"aten::alpha_dropout", WICK_KERNEL(unchanged)},
    {"aten::feature_alpha_dropout", WICK_KERNEL(unchanged)},
};
const RegisterKindKernels registered_quantized(TensorKind::Quantized, kEvaluatedDropoutKernels);
const RegisterKindKernels registered_sparse(TensorKind::Sparse, kEvaluatedDropoutKernels);

}  // namespace

}  // namespace wick::ops
