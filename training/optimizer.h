// Optimizers: what moves parameters along their gradients, with PyTorch's formulas and numbers.
//
//   wick::Optimizer optimizer(model, wick::AdamW{.lr = 1e-3});
//   for (const Batch& batch : batches) {
//     optimizer.zeroGrad();
//     wick::backward(model({batch.x, batch.y}).tensor());  // training/backward.h
//     wick::clipGradNorm(optimizer.parameters(), 1.0);     // training/clip.h
//     optimizer.step();
//   }
//
// A step is one loop over the elements of all parameters together, split among threads, without
// temporary tensors. On CUDA devices one kernel does the same for many parameters
// (training/cuda/updates.h). On other devices operators move them: on a lazy device a whole step of a
// training is one compiled graph.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "runtime/module.h"

#pragma GCC visibility push(default)

namespace wick {

// The rules, each with the settings of torch.optim's class of that name and its defaults.
struct Sgd {
  double lr = 1e-3;  // PyTorch 1.13 has none
  double momentum = 0;
  double dampening = 0;
  double weight_decay = 0;
  bool nesterov = false;
  bool maximize = false;
};
struct Adam {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  bool amsgrad = false;
  bool maximize = false;
};
struct AdamW {
  double lr = 1e-3;
  std::array<double, 2> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 1e-2;
  bool amsgrad = false;
  bool maximize = false;
};
struct RmsProp {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double weight_decay = 0;
  double momentum = 0;
  bool centered = false;
  bool maximize = false;
};
struct Adagrad {
  double lr = 1e-2;
  double lr_decay = 0;
  double weight_decay = 0;
  double initial_accumulator_value = 0;
  double eps = 1e-10;
  bool maximize = false;
};
using UpdateRule = std::variant<Sgd, Adam, AdamW, RmsProp, Adagrad>;

// "SGD", "Adam", "AdamW", "RMSprop", "Adagrad".
const char* ruleName(const UpdateRule& rule);

// Parameters that share their settings. Settings may be changed between steps.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  UpdateRule rule;
  // What schedulers began with; see training/schedule.h.
  std::optional<double> initial_lr;
  // Further entries of the group's state that Wick does not use, as they were loaded.
  std::vector<std::pair<std::string, IValue>> others;

  double lr() const;
  void setLr(double lr);
};

// The parameters of a module, each once, in the order in which PyTorch numbers them.
std::vector<Tensor> distinctParameters(const Module& module);

// Used by one thread at a time. Several optimizers may work at a time on different parameters.
class Optimizer {
 public:
  // UsageError for a rule with settings that PyTorch refuses (a negative rate), for no parameters,
  // for a parameter twice, and for one that is no leaf, no floating-point or complex tensor, not
  // dense, or on the device meta. Parameters that require no gradient are kept in their places and
  // left alone.
  Optimizer(std::vector<Tensor> parameters, UpdateRule rule);
  Optimizer(const Module& module, UpdateRule rule)
      : Optimizer(distinctParameters(module), rule) {}
  ~Optimizer();
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) noexcept;

  // Further parameters with settings of their own, under the same kind of rule. UsageError as
  // above.
  void addGroup(std::vector<Tensor> parameters, UpdateRule rule);
  std::vector<ParameterGroup>& groups() { return groups_; }
  const std::vector<ParameterGroup>& groups() const { return groups_; }
  // Of all groups, in order.
  std::vector<Tensor> parameters() const;

  // Moves every parameter that has a gradient. RuntimeError for a gradient that does not fit its
  // parameter, for sparse gradients where the rule has no meaning for them, and for parameters in
  // memory that cannot be written. Then nothing is changed: a step is done whole or not at all.
  void step();
  // Takes the gradients away, or sets them to zero.
  void zeroGrad(bool set_to_none = true);

  // {"state": {0: {"step": …, "exp_avg": …}, …}, "param_groups": [{"lr": …, "params": [0, …]}]}:
  // what torch.optim's state_dict() gives, to be written with saveValue() and read by torch.load.
  // Tensors are the optimizer's own, not copies.
  IValue stateDict() const;
  // Takes a state of either kind over; its tensors are copied. UsageError when groups, numbers of
  // parameters, shapes or kinds do not fit, and then nothing is changed.
  void loadStateDict(const IValue& state);

 private:
  // What the rule remembers of one parameter. The buffers are named by the rule, in bufferNames().
  struct Memory {
    int64_t step = 0;
    std::array<Tensor, 3> buffers;
  };
  friend struct OptimizerState;
  void checkParameters(const std::vector<Tensor>& parameters) const;
  void beginMemories(const ParameterGroup& group);

  std::vector<ParameterGroup> groups_;
  std::vector<Memory> memories_;  // of parameters(), in order
};

}  // namespace wick

#pragma GCC visibility pop
