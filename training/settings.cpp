#include "training/settings.h"

#include <fmt/format.h>

#include "core/error.h"

namespace wick {

const char* ruleName(const UpdateRule& rule) {
  constexpr const char* kNames[] = {"SGD", "Adam", "AdamW", "RMSprop", "Adagrad"};
  return kNames[rule.index()];
}

namespace training {

std::array<const char*, 3> bufferNames(const UpdateRule& rule) {
  constexpr std::array<const char*, 3> kNames[] = {
      {"momentum_buffer", nullptr, nullptr},
      {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
      {"exp_avg", "exp_avg_sq", "max_exp_avg_sq"},
      {"square_avg", "momentum_buffer", "grad_avg"},
      {"sum", nullptr, nullptr},
  };
  return kNames[rule.index()];
}

void checkSettings(const UpdateRule& rule) {
  const auto refuse = [&](const char* name, const std::string& value, const char* expected) {
    throw UsageError(
        fmt::format("{}: {} is {}, expected {}", ruleName(rule), name, value, expected));
  };
  std::visit(
      [&]<class Rule>(const Rule& known) {
        forEachSetting(known, [&]<class T>(const char* name, const T& value) {
          if constexpr (std::is_same_v<T, double>) {
            // Negative ones would do, but that of dampening no number is wrong in PyTorch.
            if (!(value >= 0) && std::string_view(name) != "dampening") {
              refuse(name, fmt::format("{}", value), "a number that is not negative");
            }
          } else if constexpr (std::is_same_v<T, std::array<double, 2>>) {
            for (double beta : value) {
              if (!(beta >= 0 && beta < 1)) {
                refuse(name, fmt::format("({}, {})", value[0], value[1]),
                       "two numbers from 0 to below 1");
              }
            }
          }
        });
        if constexpr (std::is_same_v<Rule, Sgd>) {
          if (known.nesterov && (known.momentum <= 0 || known.dampening != 0)) {
            throw UsageError("SGD: Nesterov momentum requires a momentum and zero dampening");
          }
        }
      },
      rule);
}

}  // namespace training
}  // namespace wick
