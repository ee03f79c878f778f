// Random modules (random_module.h), each run in every way in which a user may run it: the results are those of the plain
// run, in which no pass changes a graph and no kernel is made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <functional>
#include <optional>
#include <sstream>

#include "core/device_backend.h"
#include "core/error.h"
#include "lazy/lazy.h"
#include "passes/pipeline.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "tests/strangers/random_module.h"

namespace wick::strangers {
namespace {

// The results of the calls, or the error that the first one of them ends with.
struct Outcome {
  std::vector<Tensor> results;
  bool raised = false;
  std::string error;
};

using Call = std::function<IValue(const Tensor&)>;

Outcome outcomeOf(const RandomModule& made, const std::function<Call(const Module&)>& prepare) {
  Outcome out;
  try {
    const Call call = prepare(made.module);
    for (const Tensor& x : made.inputs) {
      out.results.push_back(moveTo(call(x.clone()).toTensor().detach(), Device()).clone());
    }
  } catch (const RuntimeError& error) {
    out.raised = true;
    out.error = error.what();
  }
  return out;
}

Call plainly(const Module& module) {
  return [module](const Tensor& x) { return module({x}); };
}
Module reread(const Module& module) {
  std::stringstream stream;
  module.save(stream);
  return load(stream);
}

struct Way {
  const char* name;
  OptimizationLevel level;
  JitMode jit;
  std::function<Call(const Module&)> prepare;
  bool only_evaluated = false;
  bool rounds = false;  // folds weights, which changes the last bits
};

const std::vector<Way>& ways() {
  using enum OptimizationLevel;
  static const std::vector<Way> all = {
      {"optimized", Default, JitMode::Off, plainly},
      {"with kernels", Default, JitMode::Sync, plainly, false, true},
      {"stressed", Stress, JitMode::Sync, plainly, false, true},
      {"saved", Default, JitMode::Off, [](const Module& m) { return plainly(reread(m)); }},
      {"lazy", Default, JitMode::Sync,
       [](const Module& m) {
         const Device lazy{kLazy, -1};
         m.to(lazy);
         return Call([m, lazy](const Tensor& x) { return m({moveTo(x, lazy)}); });
       },
       false, true},
      {"prepared", Default, JitMode::Sync,
       [](const Module& m) {
         const PreparedMethod fast = optimizeForInference(m);
         return Call([fast](const Tensor& x) { return fast({x}); });
       },
       true, true},
      {"frozen", Default, JitMode::Off, [](const Module& m) { return plainly(reread(freeze(m))); },
       true, true},
      {"frozen and optimized", Default, JitMode::Sync,
       [](const Module& m) {
         FreezeOptions options;
         options.optimize = true;
         return plainly(reread(freeze(m, options)));
       },
       true, true},
  };
  return all;
}

// A number that was rounded otherwise: relative to the largest one of the tensor, because a sum may cancel.
std::optional<std::string> difference(const Tensor& got, const Tensor& want, bool rounds) {
  if (got.describe() != want.describe()) {
    return fmt::format("{} instead of {}", got.describe(), want.describe());
  }
  const Tensor a = got.to(DType::Double).contiguous(), b = want.to(DType::Double).contiguous();
  double largest = 0;
  for (int64_t i = 0; i < b.numel(); ++i) {
    const double w = std::abs(b.data<double>()[i]);
    if (std::isfinite(w)) largest = std::max(largest, w);
  }
  for (int64_t i = 0; i < a.numel(); ++i) {
    const double g = a.data<double>()[i], w = b.data<double>()[i];
    if (g == w || (std::isnan(g) && std::isnan(w))) continue;
    if (rounds && std::abs(g - w) <= 2e-3 * largest + 1e-30) continue;
    return fmt::format("element {} is {} instead of {}", i, g, w);
  }
  return std::nullopt;
}

class WithSettings {
 public:
  WithSettings(OptimizationLevel level, JitMode jit)
      : level_(optimizationLevel()), jit_(jitMode()) {
    setOptimizationLevel(level);
    setJitMode(jit);
  }
  ~WithSettings() {
    setOptimizationLevel(level_);
    setJitMode(jit_);
  }

 private:
  const OptimizationLevel level_;
  const JitMode jit_;
};

std::optional<std::string> fault(uint64_t seed, const Way& way, const Outcome& want) {
  const RandomModule made = randomModule(seed);
  const WithSettings settings(way.level, way.jit);
  const Outcome got = outcomeOf(made, way.prepare);
  if (got.raised != want.raised) {
    return got.raised ? "raises: " + got.error : "does not raise: " + want.error;
  }
  for (size_t i = 0; i < std::min(got.results.size(), want.results.size()); ++i) {
    if (const auto d = difference(got.results[i], want.results[i], way.rounds)) {
      return fmt::format("call {}: {}", i, *d);
    }
  }
  return std::nullopt;
}

uint64_t numberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

// WICK_STRANGERS_COUNT=10000 WICK_STRANGERS_SEED=7 tries others.
TEST(Strangers, AllWaysOfRunningAgree) {
  const uint64_t first = numberFromEnvironment("WICK_STRANGERS_SEED", 0),
                 count = numberFromEnvironment("WICK_STRANGERS_COUNT", 40);
  int found = 0;
  for (uint64_t seed = first; seed < first + count && found < 10; ++seed) {
    const RandomModule made = randomModule(seed);
    Outcome want;
    {
      const WithSettings settings(OptimizationLevel::None, JitMode::Off);
      want = outcomeOf(made, plainly);
    }
    for (const Way& way : ways()) {
      if (way.only_evaluated && made.trains) continue;
      std::optional<std::string> wrong;
      try {
        wrong = fault(seed, way, want);
      } catch (const std::exception& error) {
        wrong = fmt::format("ends with {}", error.what());
      }
      if (!wrong) continue;
      ++found;
      ADD_FAILURE() << "seed " << seed << ", " << way.name << ": " << *wrong
                    << "\nx: " << made.inputs[0].describe() << (made.trains ? ", training" : "")
                    << "\n"
                    << made.source;
    }
  }
}

}  // namespace
}  // namespace wick::strangers
