// Schedules of learning rates, with PyTorch's formulas and numbers.
//
//   wick::Scheduler schedule(optimizer, wick::CosineAnnealingLr{.t_max = 100});
//   for (int step = 0; step < 100; ++step) {
//     …
//     optimizer.step();
//     schedule.step();
//   }
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "core/ivalue.h"
#include "training/optimizer.h"

#pragma GCC visibility push(default)

namespace wick {

// The rules, each with the settings of torch.optim.lr_scheduler's class of that name. An "epoch" is
// a call of step().
struct StepLr {
  int64_t step_size = 1;
  double gamma = 0.1;
};
struct MultiStepLr {
  std::vector<int64_t> milestones;
  double gamma = 0.1;
};
struct ExponentialLr {
  double gamma = 0.9;
};
struct CosineAnnealingLr {
  int64_t t_max = 1;
  double eta_min = 0;
};
// Linear warm-up, by default from a third.
struct LinearLr {
  double start_factor = 1.0 / 3;
  double end_factor = 1;
  int64_t total_iters = 5;
};
struct ConstantLr {
  double factor = 1.0 / 3;
  int64_t total_iters = 5;
};
struct PolynomialLr {
  int64_t total_iters = 5;
  double power = 1;
};
struct OneCycleLr {
  double max_lr = 0.1;
  int64_t total_steps = 1;
  double pct_start = 0.3;
  bool cosine = true;  // else linear
  bool cycle_momentum = true;
  double base_momentum = 0.85;
  double max_momentum = 0.95;
  double div_factor = 25;
  double final_div_factor = 1e4;
  bool three_phase = false;
};
// The first rate times what the function says of the epoch.
struct LambdaLr {
  std::function<double(int64_t epoch)> factor;
};
using RateRule = std::variant<StepLr, MultiStepLr, ExponentialLr, CosineAnnealingLr, LinearLr,
                              ConstantLr, PolynomialLr, OneCycleLr, LambdaLr>;

// Changes the rates of all groups of an optimizer, which must outlive it; making one sets those of
// epoch 0. Like the optimizer, used by one thread at a time. Several may work on one optimizer, as
// in PyTorch: each multiplies what it finds.
class Scheduler {
 public:
  // UsageError for settings that have no meaning.
  Scheduler(Optimizer& optimizer, RateRule rule);
  // To the next epoch.
  void step();
  // To this one, by the formula that does not build on the rate before, where the rule has one.
  void stepTo(int64_t epoch);
  int64_t lastEpoch() const { return last_epoch_; }
  // Of each group, as they were set last.
  const std::vector<double>& lastRates() const { return last_rates_; }

  // What PyTorch's scheduler of that name loads, and gives (but the function of a LambdaLr).
  IValue stateDict() const;
  // UsageError when it does not fit; then nothing is changed.
  void loadStateDict(const IValue& state);

 private:
  friend class SequentialScheduler;
  void initialStep();
  void setRates(bool closed_form);
  double rate(ParameterGroup& group, size_t index, bool closed_form);
  double oneCycleRate(const OneCycleLr& rule, ParameterGroup& group) const;
  void beginOneCycle(const OneCycleLr& rule);

  Optimizer* optimizer_;
  RateRule rule_;
  std::vector<double> base_rates_;
  std::vector<double> last_rates_;
  int64_t last_epoch_ = -1;
  int64_t step_count_ = 0;
};

// Several at a time.
class ChainedScheduler {
 public:
  ChainedScheduler(Optimizer& optimizer, std::vector<RateRule> rules);
  void step();
  IValue stateDict() const;
  void loadStateDict(const IValue& state);

 private:
  std::vector<Scheduler> parts_;
};

// One after another: the next one begins at each milestone, which are one fewer.
class SequentialScheduler {
 public:
  SequentialScheduler(Optimizer& optimizer, std::vector<RateRule> rules,
                      std::vector<int64_t> milestones);
  void step();
  int64_t lastEpoch() const { return last_epoch_; }
  IValue stateDict() const;
  void loadStateDict(const IValue& state);

 private:
  std::vector<Scheduler> parts_;
  std::vector<int64_t> milestones_;
  std::vector<double> last_rates_;
  int64_t last_epoch_ = 0;
};

}  // namespace wick

#pragma GCC visibility pop
