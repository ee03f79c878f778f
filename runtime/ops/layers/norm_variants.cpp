// Root-mean-square normalization, and the names under which newer versions of PyTorch call batch
// normalization: each says whether it trains and whether there are statistics to update.
#include <limits>

#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {
namespace {

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;

// The result, and what the input was multiplied with.
Pair rmsNormalize(const char* op, const Tensor& input, const DimVector& shape, const Tensor& weight,
                  std::optional<double> eps) {
  const int64_t n = static_cast<int64_t>(shape.size()), leading = input.dim() - n;
  WICK_CHECK(n >= 1, "{}: Expected normalized_shape to be at least 1-dimensional", op);
  WICK_CHECK(leading >= 0 &&
                 std::ranges::equal(input.sizes().subspan(static_cast<size_t>(leading)), shape),
             "{}: Given normalized_shape={}, expected input with the same trailing sizes, but got "
             "input of size {}",
             op, formatInts(shape), formatInts(input.sizes()));
  WICK_CHECK(!weight.defined() || std::ranges::equal(weight.sizes(), shape),
             "{}: Expected weight to be of same shape as normalized_shape {}, but got {}", op,
             formatInts(shape), weight.defined() ? formatInts(weight.sizes()) : "");
  WICK_CHECK(isFloating(input.dtype()) || isComplex(input.dtype()),
             "{}: expected a floating or complex input, got {}", op, input.describe());
  const DType dtype = input.dtype();
  const Tensor x = isReducedFloat(dtype) ? ops::toDType(input, DType::Float) : input;
  DimVector dims;
  for (int64_t d = leading; d < input.dim(); ++d) dims.push_back(d);
  const double smallest = toRealType(x.dtype()) == DType::Double
                              ? std::numeric_limits<double>::epsilon()
                              : std::numeric_limits<float>::epsilon();
  const Tensor squares = ops::meanDims(ops::powScalar(x, Scalar(2)), dims, true);
  const Tensor factor = ops::rsqrt(ops::addScalar(squares, Scalar(eps.value_or(smallest))));
  Tensor out = ops::mul(x, factor);
  if (weight.defined()) out = ops::mul(out, weight);
  return {out.dtype() == dtype ? out : ops::toDType(out, dtype), factor};
}

Tensor rmsNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
               std::optional<double> eps) {
  return std::get<0>(rmsNormalize("rms_norm", input, shape, weight, eps));
}
Pair fusedRmsNorm(const Tensor& input, const DimVector& shape, const Tensor& weight,
                  std::optional<double> eps) {
  return rmsNormalize("_fused_rms_norm", input, shape, weight, eps);
}

Triple normalize(const Tensor& input, const Tensor& weight, const Tensor& bias,
                 const Tensor& running_mean, const Tensor& running_var, bool training,
                 double momentum, double eps) {
  const std::vector<IValue> all = ops::nativeBatchNorm.all(input, weight, bias, running_mean,
                                                           running_var, training, momentum, eps);
  return {all[0].toTensor(), all[1].toTensor(), all[2].toTensor()};
}
// What a backward pass on other devices would keep; nothing here.
Tensor reserve() {
  return Tensor::empty(DimVector{0}, DType::Byte);
}

Triple withoutStatistics(const Tensor& input, const Tensor& weight, const Tensor& bias,
                         bool training, double momentum, double eps) {
  return normalize(input, weight, bias, Tensor(), Tensor(), training, momentum, eps);
}
Triple withoutTraining(const Tensor& input, const Tensor& weight, const Tensor& bias,
                       const Tensor& running_mean, const Tensor& running_var, double momentum,
                       double eps) {
  return normalize(input, weight, bias, running_mean, running_var, false, momentum, eps);
}
Four withUpdate(const Tensor& input, const Tensor& weight, const Tensor& bias,
                const Tensor& running_mean, const Tensor& running_var, double momentum,
                double eps) {
  auto [out, mean, rstd] =
      normalize(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, rstd, reserve()};
}
Four withoutUpdate(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Tensor& running_mean, const Tensor& running_var, double momentum,
                   double eps) {
  auto [out, mean, rstd] =
      normalize(input, weight, bias, running_mean, running_var, false, momentum, eps);
  return {out, mean, rstd, reserve()};
}

// Forms that give the statistics back instead of writing to them.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> functional(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, bool training, double momentum, double eps) {
  const Tensor mean_out = running_mean.clone(), var_out = running_var.clone();
  auto [out, mean, rstd] =
      normalize(input, weight, bias, mean_out, var_out, training, momentum, eps);
  return {out, mean, rstd, mean_out, var_out};
}
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor, Tensor> functionalUpdate(
    const Tensor& input, const Tensor& weight, const Tensor& bias, const Tensor& running_mean,
    const Tensor& running_var, double momentum, double eps) {
  auto [out, mean, rstd, mean_out, var_out] =
      functional(input, weight, bias, running_mean, running_var, true, momentum, eps);
  return {out, mean, rstd, reserve(), mean_out, var_out};
}

#define WICK_RMS "(Tensor input, int[] normalized_shape, "
#define WICK_PARAMETERS "(Tensor input, Tensor? weight, Tensor? bias, "
#define WICK_RUNNING "Tensor running_mean, Tensor running_var, "
#define WICK_WRITTEN "Tensor(a!) running_mean, Tensor(b!) running_var, "
#define WICK_RATE "float momentum, float eps) -> "

constexpr OperatorRecord kNormVariantsRecords[] = {
    {"aten::rms_norm" WICK_RMS "Tensor? weight=None, float? eps=None) -> Tensor",
     WICK_KERNEL(rmsNorm), kNeutral, ops::shapes::normalized},
    {"aten::_fused_rms_norm" WICK_RMS "Tensor? weight, float? eps) -> (Tensor, Tensor)",
     WICK_KERNEL(fusedRmsNorm), kNeutral},
    {"aten::_native_batch_norm_legit" WICK_PARAMETERS WICK_WRITTEN "bool training, " WICK_RATE
     "(Tensor, Tensor, Tensor)",
     WICK_KERNEL(normalize), kNeutral},
    {"aten::_native_batch_norm_legit.no_stats" WICK_PARAMETERS "bool training, " WICK_RATE
     "(Tensor, Tensor, Tensor)",
     WICK_KERNEL(withoutStatistics), kNeutral},
    {"aten::_native_batch_norm_legit_no_training" WICK_PARAMETERS WICK_RUNNING WICK_RATE
     "(Tensor, Tensor, Tensor)",
     WICK_KERNEL(withoutTraining), kNeutral},
    {"aten::_native_batch_norm_legit_functional" WICK_PARAMETERS WICK_RUNNING
     "bool training, " WICK_RATE
     "(Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
     WICK_KERNEL(functional), kNeutral},
    {"aten::_batch_norm_with_update" WICK_PARAMETERS WICK_WRITTEN WICK_RATE
     "(Tensor, Tensor, Tensor, Tensor)",
     WICK_KERNEL(withUpdate), kNeutral},
    {"aten::_batch_norm_with_update_functional" WICK_PARAMETERS WICK_RUNNING WICK_RATE
     "(Tensor, Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
     WICK_KERNEL(functionalUpdate), kNeutral},
    {"aten::_batch_norm_no_update" WICK_PARAMETERS
     "Tensor? running_mean, Tensor? running_var, " WICK_RATE "(Tensor, Tensor, Tensor, Tensor)",
     WICK_KERNEL(withoutUpdate), kNeutral},
};

const RegisterOperators kNormVariantsRegistered(kNormVariantsRecords);

}  // namespace
}  // namespace wick
