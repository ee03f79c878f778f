// The loops of optimizers over elements. One call updates any number of parameters; inside of this
// room only.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "core/device.h"
#include "core/dtype.h"
#include "training/optimizer.h"

namespace wick::training {

struct Update;
// Updates the elements [begin, end).
using UpdateLoop = void (*)(const Update& update, int64_t begin, int64_t end);

enum class Momentum : uint8_t { None, First, Plain, Nesterov };

// Which of the loops of update_rules.h, but for the dtype.
struct LoopKind {
  enum class Rule : uint8_t { Sgd, Adam, RmsProp, Adagrad };
  Rule rule = Rule::Sgd;
  bool decays = false;                 // a decay of weights is added to the gradient
  bool extra = false;                  // Adam: amsgrad; RMSprop: centered
  bool moves = false;                  // RMSprop: with momentum
  Momentum momentum = Momentum::None;  // SGD
  bool operator==(const LoopKind&) const = default;
};

// Of one step, in double as Python computes them; the loops round them to the dtype as PyTorch does.
// Which of them a rule reads says update_rules.h. Kernels on devices take them in this order.
struct UpdateNumbers {
  double rate = 0;  // what the direction is multiplied with, sign included
  double sign = 1;  // of the gradient: -1 to maximize
  double weight_decay = 0;
  double momentum = 0;
  double fresh = 0;  // share of the new gradient in the first average
  double beta1 = 0;
  double beta2 = 0;
  double fresh2 = 0;  // share of the new square in the second average
  double correction = 1;
  double eps = 0;
  double shrink = 1;  // AdamW: what the parameter is multiplied with first
  bool operator==(const UpdateNumbers&) const = default;
};

// One parameter with what its rule needs. All pointers are to `count` numbers of `dtype`, in the same
// order of memory; a complex number is two.
struct Update {
  void* parameter = nullptr;
  const void* gradient = nullptr;
  std::array<void*, 3> buffers{};  // of the rule; null where it has none
  int64_t count = 0;
  DType dtype = DType::Float;
  LoopKind kind;
  UpdateLoop loop = nullptr;  // of the CPU
  UpdateNumbers numbers;
};

// The loop and the numbers for the `step`-th step (from one on) of a parameter of this dtype.
// `first`: the momentum buffer is new, and begins with the gradient. RuntimeError for a dtype that
// is neither floating-point nor complex.
void prepareUpdate(Update& update, const UpdateRule& rule, DType dtype, int64_t step, bool first);

// Runs all of them, split among threads by elements, not by parameters. Not to be interrupted:
// budgets are not looked at. No two may share memory that is written.
void runUpdates(std::span<const Update> updates);

// Does the same on a device in whose memory all of them lie; queued there. Throws RuntimeError.
using DeviceUpdates = void (*)(Device device, std::span<const Update> updates);
// Set before anything runs. Null, as at first: operators move the parameters of this type of device.
void setDeviceUpdates(DeviceType type, DeviceUpdates run);
DeviceUpdates deviceUpdates(DeviceType type);

}  // namespace wick::training
