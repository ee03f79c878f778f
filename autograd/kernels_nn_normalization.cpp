// Batch normalization in training and outside of it as two operators, so that each one's formula
// keeps only what its gradient reads: the running statistics change in every step of training.
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::autograd {

namespace {

Triple train(const Tensor& input, const Tensor& weight, const Tensor& bias,
             const Tensor& running_mean, const Tensor& running_var, double momentum, double eps) {
  const std::vector<IValue> all =
      ops::nativeBatchNorm.all(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {all[0].toTensor(), all[1].toTensor(), all[2].toTensor()};
}

Triple evaluate(const Tensor& input, const Tensor& weight, const Tensor& bias,
                const Tensor& running_mean, const Tensor& running_var, double eps) {
  const std::vector<IValue> all =
      ops::nativeBatchNorm.all(input, weight, bias, running_mean, running_var, false, 0.0, eps);
  return {all[0].toTensor(), all[1].toTensor(), all[2].toTensor()};
}

#define WICK_STATISTICS \
  "Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var"

constexpr OperatorRecord kKernelsNnNormalizationRecords[] = {
    {"wick::batch_norm_train(" WICK_STATISTICS
     ", float momentum, float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(train), kNeutral, nullptr, nullptr, "running_mean running_var"},
    {"wick::batch_norm_evaluate(Tensor input, Tensor? weight, Tensor? bias, Tensor? mean, Tensor? "
     "variance, float eps) -> (Tensor, Tensor, Tensor)",
     WICK_KERNEL(evaluate), kNeutral},
};
const RegisterOperators kKernelsNnNormalizationRegistered(kKernelsNnNormalizationRecords);

}  // namespace

}  // namespace wick::autograd
