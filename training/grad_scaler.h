// Scales of losses and gradients, with which training in float16 keeps small gradients: what
// torch.cuda.amp.GradScaler does, with its numbers.
//
//   wick::GradScaler scaler;
//   for (const Batch& batch : batches) {
//     optimizer.zeroGrad();
//     wick::backward(scaler.scale(loss(batch)));
//     scaler.unscale(optimizer);                        // before gradients are clipped
//     wick::clipGradNorm(optimizer.parameters(), 1.0);
//     scaler.step(optimizer);                           // left out where a gradient overflowed
//     scaler.update();
//   }
#pragma once

#include <cstdint>
#include <unordered_map>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "training/optimizer.h"

#pragma GCC visibility push(default)

namespace wick {

// PyTorch's settings and defaults.
struct GradScalerSettings {
  double init_scale = 65536;
  double growth_factor = 2;        // above 1
  double backoff_factor = 0.5;     // below 1
  int64_t growth_interval = 2000;  // steps without an overflow until the scale grows
  bool enabled = true;             // otherwise losses and steps are what they are
};

// Used by one thread at a time.
class GradScaler {
 public:
  // UsageError for factors that would not grow or shrink.
  explicit GradScaler(GradScalerSettings settings = {});

  // The loss times the scale, recorded for gradients. The scale lies where the first loss does.
  Tensor scale(const Tensor& loss);
  // Divides the gradients of the optimizer's parameters by the scale, in place, and notes whether one
  // is infinite or NaN. RuntimeError when that happened since the last update(), after step(), and
  // for gradients of float16.
  void unscale(Optimizer& optimizer);
  // Unscales unless that happened, then does the optimizer's step unless a gradient is infinite or
  // NaN. Whether it did. RuntimeError when it was called since the last update(), and for an
  // optimizer without gradients.
  bool step(Optimizer& optimizer);
  // Shrinks the scale when a step was left out, grows it after enough that were not. RuntimeError
  // when nothing was unscaled.
  void update();
  // The same, to this scale.
  void update(double new_scale);

  // 1 when it is not enabled. Waits for the device.
  double currentScale() const;
  bool isEnabled() const { return settings_.enabled; }

  // {"scale": …, "growth_factor": …, "backoff_factor": …, "growth_interval": …, "_growth_tracker":
  // …}, as torch.cuda.amp.GradScaler.state_dict(); empty when it is not enabled.
  IValue stateDict() const;
  // UsageError for a state of another kind; then nothing is changed.
  void loadStateDict(const IValue& state);

 private:
  enum class Stage { Ready, Unscaled, Stepped };
  struct OfOptimizer {
    Stage stage = Stage::Ready;
    Tensor found_inf;  // undefined before unscale(), and without gradients
  };
  void begin(Device device);
  void unscaleInto(Optimizer& optimizer, OfOptimizer& state);

  GradScalerSettings settings_;
  double first_scale_;  // before there is a tensor
  int64_t first_tracker_ = 0;
  Tensor scale_, tracker_;  // float32 and int32, of one element
  std::unordered_map<const Optimizer*, OfOptimizer> optimizers_;  // since the last update()
};

}  // namespace wick

#pragma GCC visibility pop
