// The settings of update rules by the names that torch.optim gives them. Inside of this room only.
#pragma once

#include "training/optimizer.h"

namespace wick::training {

// f(name, field) for each setting, a double, a bool or a pair of doubles, in PyTorch's order.
template <class Rule, class F>
void forEachSetting(Rule& rule, F&& f) {
  using Plain = std::remove_const_t<Rule>;
  f("lr", rule.lr);
  if constexpr (std::is_same_v<Plain, Sgd>) {
    f("momentum", rule.momentum);
    f("dampening", rule.dampening);
    f("weight_decay", rule.weight_decay);
    f("nesterov", rule.nesterov);
  } else if constexpr (std::is_same_v<Plain, RmsProp>) {
    f("momentum", rule.momentum);
    f("alpha", rule.alpha);
    f("eps", rule.eps);
    f("centered", rule.centered);
    f("weight_decay", rule.weight_decay);
  } else if constexpr (std::is_same_v<Plain, Adagrad>) {
    f("lr_decay", rule.lr_decay);
    f("eps", rule.eps);
    f("weight_decay", rule.weight_decay);
    f("initial_accumulator_value", rule.initial_accumulator_value);
  } else {
    f("betas", rule.betas);
    f("eps", rule.eps);
    f("weight_decay", rule.weight_decay);
    f("amsgrad", rule.amsgrad);
  }
  f("maximize", rule.maximize);
}

// What the three buffers of a parameter are called under the rule; null where it has fewer.
std::array<const char*, 3> bufferNames(const UpdateRule& rule);
// UsageError for settings that PyTorch refuses.
void checkSettings(const UpdateRule& rule);

}  // namespace wick::training
