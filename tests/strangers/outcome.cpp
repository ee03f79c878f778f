#include "tests/strangers/outcome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/device_backend.h"
#include "core/error.h"
#include "passes/pipeline.h"
#include "runtime/jit_mode.h"

namespace wick::strangers {
namespace {

// Adds gradients of the sum of a result to the parameters, and returns them.
void walkBack(const Tensor& result, const Module& module, Outcome& out) {
  // With weights of its own for each element: the sum of a softmax has no gradient.
  static const Program program = compile(
      "def walk(x: Tensor):\n"
      "    y = x.to(torch.float64).flatten()\n"
      "    w = torch.cos(torch.arange(y.numel(), dtype=torch.float64, device=y.device))\n"
      "    (y * w).sum().backward()\n");
  try {
    program.call("walk", {result});
  } catch (const RuntimeError&) {
    out.walk_raised = true;
    return;
  }
  for (const auto& [name, parameter] : module.parameters()) {
    const Tensor gradient = gradientOf(parameter);
    if (gradient.defined()) out.gradients.emplace(name, moveTo(gradient, Device()));
  }
}

// Returns the largest finite number of a contiguous float64 tensor, without its sign.
double largestOf(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double number = std::abs(t.data<double>()[i]);
    if (std::isfinite(number)) largest = std::max(largest, number);
  }
  return largest;
}

}  // namespace

Outcome outcomeOf(const RandomModule& made, const std::function<Ready(const Module&)>& prepare) {
  Outcome out;
  out.noise = made.noise;
  try {
    const Ready ready = prepare(made.module);
    Tensor last;
    for (const Tensor& x : made.inputs) {
      last = ready.call(x.clone()).toTensor();
      out.trains |= last.requiresGrad();
      out.results.push_back(moveTo(last.detach(), Device()).clone());
    }
    if (ready.trained && made.doubles && last.requiresGrad()) walkBack(last, *ready.trained, out);
  } catch (const RuntimeError& error) {
    out.raised = true;
    out.error = error.what();
  }
  return out;
}

Outcome plainOutcomeOf(const RandomModule& made) {
  const OptimizationLevel level = optimizationLevel();
  const JitMode jit = jitMode();
  setOptimizationLevel(OptimizationLevel::None);
  setJitMode(JitMode::Off);
  Outcome out = outcomeOf(made, [](const Module& module) {
    return Ready{[module](const Tensor& x) { return module({x}); }, module};
  });
  setOptimizationLevel(level);
  setJitMode(jit);
  return out;
}

double toleranceOf(const RandomModule& made) {
  return made.coarse ? 1e-2 : made.doubles ? 1e-6 : 2e-3;
}

std::optional<std::string> difference(const Tensor& got, const Tensor& want, double tolerance,
                                      double noise) {
  if (got.describe() != want.describe()) {
    return fmt::format("{} instead of {}", got.describe(), want.describe());
  }
  const Tensor a = got.to(DType::Double).contiguous(), b = want.to(DType::Double).contiguous();
  const double bound = tolerance * largestOf(b) + noise + 1e-30;
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double g = a.data<double>()[i], w = b.data<double>()[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (tolerance > 0 && std::abs(g - w) <= bound) continue;
    return fmt::format("element {} is {} instead of {}", i, g, w);
  }
  return std::nullopt;
}

std::optional<std::string> difference(const Outcome& got, const Outcome& want, double tolerance) {
  if (got.raised != want.raised) {
    return got.raised ? "raises: " + got.error : "does not raise: " + want.error;
  }
  for (size_t i = 0; i < std::min(got.results.size(), want.results.size()); ++i) {
    if (const auto d = difference(got.results[i], want.results[i], tolerance, want.noise)) {
      return fmt::format("call {}: {}", i, *d);
    }
  }
  if (got.walk_raised != want.walk_raised) {
    return got.walk_raised ? "the walk back raises" : "the walk back does not raise";
  }
  // A gradient may be nothing but noise: that of a bias before a batch normalization.
  double noise = 1e-9;
  for (const auto& [name, gradient] : want.gradients) {
    noise = std::max(noise, 1e-7 * largestOf(gradient.to(DType::Double).contiguous()));
  }
  for (const auto& [name, gradient] : want.gradients) {
    const auto found = got.gradients.find(name);
    if (found == got.gradients.end()) return fmt::format("{} has no gradient", name);
    if (const auto d = difference(found->second, gradient, std::max(tolerance, 1e-6), noise)) {
      return fmt::format("gradient of {}: {}", name, *d);
    }
  }
  if (got.gradients.size() > want.gradients.size()) return "more parameters have gradients";
  return std::nullopt;
}

}  // namespace wick::strangers
