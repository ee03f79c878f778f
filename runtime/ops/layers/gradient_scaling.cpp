// What training with gradients of 16 bits needs: losses are multiplied so that small gradients do not
// vanish; gradients are divided again, and the factor follows what overflowed.
#include <atomic>
#include <cmath>
#include <type_traits>

#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"

namespace wick {
namespace {

using ops::markWritten;

constexpr const char* kUnscale = "_amp_foreach_non_finite_check_and_unscale_";
constexpr const char* kUpdate = "_amp_update_scale_";

void checkNumber(const char* op, const char* name, const Tensor& t, DType dtype) {
  WICK_CHECK(t.defined() && t.numel() == 1 && t.dtype() == dtype,
             "{}: {}: expected one number of dtype {}, got {}", op, name, toString(dtype),
             t.describe());
}

void unscale(const std::vector<Tensor>& gradients, const Tensor& found_inf,
             const Tensor& inv_scale) {
  checkNumber(kUnscale, "found_inf", found_inf, DType::Float);
  checkNumber(kUnscale, "inv_scale", inv_scale, DType::Float);
  const auto factor = inv_scale.item<float>();
  std::atomic<bool> found{false};
  for (const Tensor& gradient : gradients) {
    WICK_CHECK(gradient.kind() == TensorKind::Dense && isFloating(gradient.dtype()),
               "{}: expected dense floating-point tensors, got {}", kUnscale, gradient.describe());
    markWritten(kUnscale, gradient);
    const Tensor work =
        gradient.isNonOverlappingAndDense() ? gradient : gradient.clone(MemoryFormat::Contiguous);
    dispatch<kAnyFloat>(kUnscale, work.dtype(), [&]<class T>() {
      using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;
      T* const elements = static_cast<T*>(work.rawData());
      parallelFor(work.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
        bool finite = true;
        for (int64_t i = begin; i < end; ++i) {
          const auto v = static_cast<Wide>(elements[i]);
          finite &= std::isfinite(v);
          elements[i] = static_cast<T>(factor == 1 ? v : v * static_cast<Wide>(factor));
        }
        if (!finite) found.store(true, std::memory_order_relaxed);
      });
    });
    if (!work.isSame(gradient)) gradient.copyFrom(work);
  }
  if (found) {
    markWritten(kUnscale, found_inf);
    found_inf.fill(1);
  }
}

Tensor updateScale(const Tensor& scale, const Tensor& growth_tracker, const Tensor& found_inf,
                   double growth, double backoff, int64_t interval) {
  checkNumber(kUpdate, "the scale", scale, DType::Float);
  checkNumber(kUpdate, "growth_tracker", growth_tracker, DType::Int);
  checkNumber(kUpdate, "found_inf", found_inf, DType::Float);
  markWritten(kUpdate, scale);
  markWritten(kUpdate, growth_tracker);
  const auto now = scale.item<float>();
  const int64_t steps = int64_t{growth_tracker.item<int32_t>()} + 1;
  if (found_inf.item<float>() != 0) {
    scale.fill(static_cast<float>(now * backoff));
    growth_tracker.fill(0);
  } else if (steps == interval) {
    // It never grows beyond what float32 holds.
    const auto grown = static_cast<float>(now * growth);
    if (std::isfinite(grown)) scale.fill(grown);
    growth_tracker.fill(0);
  } else {
    growth_tracker.fill(static_cast<double>(steps));
  }
  return scale;
}

std::tuple<std::vector<Tensor>, Tensor> unscaled(const std::vector<Tensor>& gradients,
                                                 const Tensor& found_inf, const Tensor& inv_scale) {
  static const OperatorHandle kInPlace("aten::_amp_foreach_non_finite_check_and_unscale_", "");
  std::vector<Tensor> made;
  made.reserve(gradients.size());
  for (const Tensor& g : gradients) made.push_back(g.clone());
  const Tensor found = found_inf.clone();
  kInPlace.all(made, found, inv_scale);
  return {made, found};
}

std::tuple<Tensor, Tensor> updatedScale(const Tensor& scale, const Tensor& growth_tracker,
                                        const Tensor& found_inf, double growth, double backoff,
                                        int64_t interval) {
  static const OperatorHandle kInPlace("aten::_amp_update_scale_", "");
  const Tensor made = scale.clone(), tracker = growth_tracker.clone();
  kInPlace(made, tracker, found_inf, growth, backoff, interval);
  return {made, tracker};
}

constexpr OperatorRecord kGradientScalingRecords[] = {
    {"aten::_amp_foreach_non_finite_check_and_unscale_(Tensor(a!)[] self, Tensor(b!) found_inf, "
     "Tensor inv_scale) -> ()",
     WICK_KERNEL(unscale), kNotDifferentiable},
    {"aten::_amp_foreach_non_finite_check_and_unscale(Tensor[] self, Tensor found_inf, Tensor "
     "inv_scale) -> (Tensor[] self_out, Tensor found_inf_out)",
     WICK_KERNEL(unscaled), kNotDifferentiable | kNeutral},
    {"aten::_amp_update_scale_(Tensor(a!) self, Tensor(b!) growth_tracker, Tensor found_inf, float "
     "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> Tensor(a!)",
     WICK_KERNEL(updateScale), kNotDifferentiable},
    {"aten::_amp_update_scale(Tensor self, Tensor growth_tracker, Tensor found_inf, float "
     "scale_growth_factor, float scale_backoff_factor, int growth_interval) -> (Tensor, Tensor "
     "growth_tracker_out)",
     WICK_KERNEL(updatedScale), kNotDifferentiable | kNeutral},
};
const RegisterOperators kGradientScalingRegistered(kGradientScalingRecords);

}  // namespace
}  // namespace wick
