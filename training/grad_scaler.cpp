#include "training/grad_scaler.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "autograd/tape.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "core/grad_mode.h"
#include "runtime/ops/common_calls.h"

namespace wick {
namespace {

const OperatorHandle kUnscale("aten::_amp_foreach_non_finite_check_and_unscale_", "");
const OperatorHandle kUpdate("aten::_amp_update_scale_", "");

void checkFactors(double growth, double backoff, int64_t interval) {
  if (!(growth > 1)) throw UsageError("GradScaler: the growth factor must be > 1.0.");
  if (!(backoff < 1)) throw UsageError("GradScaler: the backoff factor must be < 1.0.");
  if (interval < 1) throw UsageError("GradScaler: the growth interval must be 1 or more.");
}

}  // namespace

GradScaler::GradScaler(GradScalerSettings settings)
    : settings_(settings), first_scale_(settings.init_scale) {
  if (settings_.enabled) {
    checkFactors(settings_.growth_factor, settings_.backoff_factor, settings_.growth_interval);
  }
}

void GradScaler::begin(Device device) {
  scale_ = Tensor::full(DimVector{}, first_scale_, DType::Float, device);
  tracker_ = Tensor::full(DimVector{}, static_cast<double>(first_tracker_), DType::Int, device);
}

Tensor GradScaler::scale(const Tensor& loss) {
  if (!settings_.enabled) return loss;
  WICK_CHECK(loss.defined(), "GradScaler: the loss is no tensor");
  if (!scale_.defined()) begin(loss.device());
  return ops::mul(loss, loss.device() == scale_.device() ? scale_ : moveTo(scale_, loss.device()));
}

void GradScaler::unscaleInto(Optimizer& optimizer, OfOptimizer& state) {
  const GradModeGuard unrecorded(false);
  std::vector<Tensor> gradients;
  for (const Tensor& p : optimizer.parameters()) {
    const Tensor gradient = autograd::gradientOf(p);
    if (!gradient.defined()) continue;
    WICK_CHECK(gradient.kind() == TensorKind::Dense, "GradScaler: a gradient is not dense");
    WICK_CHECK(gradient.dtype() != DType::Half, "Attempting to unscale FP16 gradients.");
    gradients.push_back(gradient.detach());
  }
  // The inverse is computed in double: a scale may be small.
  const double inverse = 1 / static_cast<double>(scale_.item<float>());
  Tensor found;
  while (!gradients.empty()) {
    const Device device = gradients[0].device();
    std::vector<Tensor> here;
    std::erase_if(gradients, [&](const Tensor& g) {
      if (g.device() != device) return false;
      here.push_back(g);
      return true;
    });
    const Tensor found_here = Tensor::zeros(DimVector{}, DType::Float, device);
    kUnscale.all(here, found_here, Tensor::full(DimVector{}, inverse, DType::Float, device));
    const Tensor there = moveTo(found_here, scale_.device());
    found = found.defined() ? ops::maximum(found, there) : there;
  }
  state.found_inf = found;
}

void GradScaler::unscale(Optimizer& optimizer) {
  if (!settings_.enabled) return;
  WICK_CHECK(scale_.defined(), "GradScaler: unscale() before a loss was scaled");
  OfOptimizer& state = optimizers_[&optimizer];
  WICK_CHECK(state.stage != Stage::Unscaled,
             "unscale_() has already been called on this optimizer since the last update().");
  WICK_CHECK(state.stage != Stage::Stepped, "unscale_() is being called after step().");
  unscaleInto(optimizer, state);
  state.stage = Stage::Unscaled;
}

bool GradScaler::step(Optimizer& optimizer) {
  if (!settings_.enabled) {
    optimizer.step();
    return true;
  }
  WICK_CHECK(scale_.defined(), "GradScaler: step() before a loss was scaled");
  OfOptimizer& state = optimizers_[&optimizer];
  WICK_CHECK(state.stage != Stage::Stepped,
             "step() has already been called since the last update().");
  if (state.stage == Stage::Ready) unscaleInto(optimizer, state);
  WICK_CHECK(state.found_inf.defined(), "No inf checks were recorded for this optimizer.");
  const bool fits = state.found_inf.item<float>() == 0;
  if (fits) optimizer.step();
  state.stage = Stage::Stepped;
  return fits;
}

void GradScaler::update() {
  if (!settings_.enabled) return;
  WICK_CHECK(scale_.defined(), "GradScaler: update() before a loss was scaled");
  const GradModeGuard unrecorded(false);
  Tensor found;
  for (const auto& [optimizer, state] : optimizers_) {
    if (!state.found_inf.defined()) continue;
    found = found.defined() ? ops::maximum(found, state.found_inf) : state.found_inf;
  }
  WICK_CHECK(found.defined(), "No inf checks were recorded prior to update.");
  kUpdate(scale_, tracker_, found, settings_.growth_factor, settings_.backoff_factor,
          settings_.growth_interval);
  optimizers_.clear();
}

void GradScaler::update(double new_scale) {
  if (!settings_.enabled) return;
  WICK_CHECK(scale_.defined(), "GradScaler: update() before a loss was scaled");
  scale_.fill(new_scale);
  optimizers_.clear();
}

double GradScaler::currentScale() const {
  if (!settings_.enabled) return 1;
  return scale_.defined() ? static_cast<double>(scale_.item<float>()) : first_scale_;
}

IValue GradScaler::stateDict() const {
  auto dict = makeRef<DictObject>(types::String(), types::Any());
  if (!settings_.enabled) return IValue(std::move(dict));
  dict->set(IValue("scale"), IValue(currentScale()));
  dict->set(IValue("growth_factor"), IValue(settings_.growth_factor));
  dict->set(IValue("backoff_factor"), IValue(settings_.backoff_factor));
  dict->set(IValue("growth_interval"), IValue(settings_.growth_interval));
  dict->set(IValue("_growth_tracker"),
            IValue(tracker_.defined() ? int64_t{tracker_.item<int32_t>()} : first_tracker_));
  return IValue(std::move(dict));
}

void GradScaler::loadStateDict(const IValue& state) {
  if (!settings_.enabled) return;
  const auto refuse = [](const std::string& reason) {
    throw UsageError("GradScaler: the state: " + reason);
  };
  if (!state.isDict()) refuse(fmt::format("expected a dict, got {}", state.tagName()));
  const auto entry = [&](const char* name) -> IValue {
    const IValue* found = state.toDict().find(IValue(name));
    if (!found) refuse(fmt::format("there is no '{}'; was the scaler not enabled?", name));
    return *found;
  };
  const auto number = [&](const char* name) {
    const IValue value = entry(name);
    if (!value.isDouble() && !value.isInt()) {
      refuse(fmt::format("'{}' is {}, expected a number", name, value.tagName()));
    }
    return value.numberToDouble();
  };
  const auto count = [&](const char* name) {
    const IValue value = entry(name);
    const bool fits =
        value.isInt() && value.toInt() >= 0 && value.toInt() < std::numeric_limits<int32_t>::max();
    if (!fits) refuse(fmt::format("'{}' is {}, expected a count", name, value.shortRepr()));
    return value.toInt();
  };
  GradScalerSettings read = settings_;
  read.growth_factor = number("growth_factor");
  read.backoff_factor = number("backoff_factor");
  read.growth_interval = count("growth_interval");
  const double scale = number("scale");
  const int64_t tracker = count("_growth_tracker");
  checkFactors(read.growth_factor, read.backoff_factor, read.growth_interval);
  settings_ = read;
  first_scale_ = scale;
  first_tracker_ = tracker;
  if (scale_.defined()) begin(scale_.device());
}

}  // namespace wick
