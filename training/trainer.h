// Training a module with a set of samples: batches, steps, validation, and a state from which a
// training goes on as if it had never been interrupted.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/module.h"
#include "training/data_set.h"
#include "training/grad_scaler.h"
#include "training/objective.h"
#include "training/optimizer.h"
#include "training/repeated_step.h"
#include "training/schedule.h"

namespace wick::training {

struct TrainerSettings {
  UpdateRule rule = AdamW{};
  // Makes the schedule, from the number of steps of an epoch and of the training. Rates stay as
  // they are without. The milestones are steps.
  struct Plan {
    std::vector<RateRule> rules;
    std::vector<int64_t> milestones;
  };
  std::function<Plan(int64_t epoch_steps, int64_t all_steps)> schedule;
  std::string method;  // empty: a call of the module
  // The model's result is the loss: it gets the targets as its last argument.
  bool model_gives_loss = false;
  int64_t epochs = 1;
  int64_t batch_size = 32;
  uint64_t seed = 0;
  bool shuffle = true;
  bool drop_last = false;  // leaves out a last batch that is smaller
  double validation = 0;   // share of the samples that are kept for validation
  double clip_norm = 0;    // 0: not
  double clip_value = 0;   // 0: not
  // The model computes in mixed precision (runtime/autocast.h), with float16 also a GradScaler.
  std::optional<DType> autocast;
  bool detect_anomaly = false;  // autograd/anomaly.h
  // A device that can repeats steps as one piece of work (training/repeated_step.h).
  bool repeat = true;
  // Called when a step has moved the parameters; what ends a step on a lazy device.
  std::function<void()> end_step;
};

// Used by one thread; several trainers may work at a time on modules that share no parameters.
// Random numbers of a step (dropout) depend on the seed and the number of the step, so that a state
// needs no generator's.
class Trainer {
 public:
  // Puts the module into training mode. UsageError when it has no parameters that require a
  // gradient, and when numbers in the settings have no meaning.
  Trainer(Module module, DataSet data, Objective objective, TrainerSettings settings);
  // Other samples for validation, instead of a share.
  void setValidation(DataSet data);

  struct Step {
    int64_t number = 0;  // from one on
    int64_t epoch = 0;   // from one on
    int64_t samples = 0;
    double loss = 0;
    double rate = 0;             // of the first group, as it was used
    std::optional<double> norm;  // of the gradients, when they are clipped by it
    bool left_out = false;       // because a scaled gradient overflowed
  };
  // The next batch, on the parameters' device: forward, backward, clipping, update, schedule.
  // RuntimeError that says at which step for what the model raises, and for a loss that is not
  // finite. Then parameters are as the step before left them.
  Step step();

  struct Result {
    double loss = 0;
    std::optional<double> accuracy;
    int64_t samples = 0;
  };
  // Over the samples for validation, in evaluation mode, without gradients; nullopt without any.
  std::optional<Result> validate();
  // Of the steps of the epoch so far.
  Result epochSoFar() const;

  int64_t stepsDone() const { return steps_; }
  int64_t epochSteps() const { return epoch_steps_; }
  int64_t allSteps() const { return epoch_steps_ * settings_.epochs; }
  bool finished() const { return steps_ >= allSteps(); }
  bool endOfEpoch() const { return steps_ > 0 && steps_ % epoch_steps_ == 0; }
  int64_t epoch() const { return steps_ / epoch_steps_; }  // how many are complete
  int64_t trainSamples() const { return static_cast<int64_t>(train_.size()); }
  int64_t validationSamples() const;
  const Module& module() const { return module_; }
  // How many steps the device repeated as one piece of work, and why not the last one.
  int64_t repeatedSteps() const { return repeated_ ? repeated_->repeated() : 0; }
  std::string whyNotRepeated() const { return repeated_ ? repeated_->refusal() : ""; }

  // All that the next steps depend on but the settings: the module's tensors and other attributes,
  // the optimizer's and the schedule's state, the place in the epoch. On the CPU, to be written at
  // once: tensors that are there are not copies.
  IValue state() const;
  // UsageError when it does not fit the module or the data.
  void loadState(const IValue& state);

 private:
  std::vector<int64_t> batchOf(int64_t step);
  IValue runModel(const DataSet& batch, const RunOptions& options);
  Tensor lossOf(const DataSet& batch, const IValue& output) const;
  std::string methodName() const { return settings_.method.empty() ? "forward" : settings_.method; }
  // Of a device that may repeat steps.
  void prepareRepeats();
  [[noreturn]] void failAt(const DataSet& batch, const RuntimeError& error) const;

  Module module_;
  DataSet data_;
  std::optional<DataSet> other_validation_;
  Objective objective_;
  TrainerSettings settings_;
  Optimizer optimizer_;
  std::optional<SequentialScheduler> schedule_;
  Device device_;                        // of the parameters
  std::shared_ptr<GraphFunction> cast_;  // the method in mixed precision
  std::optional<GradScaler> scaler_;
  std::optional<RepeatedStep> repeated_;
  std::vector<int64_t> train_, validation_;  // positions of samples
  std::vector<int64_t> order_;               // of the epoch
  int64_t order_epoch_ = -1;
  int64_t epoch_steps_ = 0;
  int64_t steps_ = 0;
  bool fitted_ = false;  // the targets
  double loss_sum_ = 0;  // of the epoch, each loss times its samples
  int64_t samples_ = 0, right_ = 0, decisions_ = 0;
};

}  // namespace wick::training
