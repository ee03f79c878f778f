// Random modules (random_module.h), each run in every way in which a user may run it within a process: results and gradients
// are those of the plain run, in which no pass changes a graph and no kernel is made.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <sstream>

#include "core/device_backend.h"
#include "lazy/lazy.h"
#include "passes/pipeline.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "tests/environment.h"
#include "tests/strangers/outcome.h"

namespace wick::strangers {
namespace {

Ready asItIs(const Module& module) {
  return {[module](const Tensor& x) { return module({x}); }, module};
}
// Frozen modules are not trained: no walk back.
Ready frozenly(const Module& module) {
  return {[module](const Tensor& x) { return module({x}); }};
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
  std::function<Ready(const Module&)> prepare;
  bool only_evaluated = false;
  bool rounds = false;  // folds weights, which changes the last bits
  bool freezes = false;
};

const std::vector<Way>& ways() {
  using enum OptimizationLevel;
  static const std::vector<Way> all = {
      {"optimized", Default, JitMode::Off, asItIs},
      {"with kernels", Default, JitMode::Sync, asItIs, false, true},
      {"stressed", Stress, JitMode::Sync, asItIs, false, true},
      {"saved", Default, JitMode::Off, [](const Module& m) { return asItIs(reread(m)); }},
      {"lazy", Default, JitMode::Sync,
       [](const Module& m) {
         const Device lazy{kLazy, -1};
         m.to(lazy);
         return Ready{[m, lazy](const Tensor& x) { return m({moveTo(x, lazy)}); }, m};
       },
       false, true},
      {"prepared", Default, JitMode::Sync,
       [](const Module& m) {
         const PreparedMethod fast = optimizeForInference(m);
         return Ready{[fast](const Tensor& x) { return fast({x}); }};
       },
       true, true},
      {"frozen", Default, JitMode::Off, [](const Module& m) { return frozenly(reread(freeze(m))); },
       true, true, true},
      {"frozen and optimized", Default, JitMode::Sync,
       [](const Module& m) {
         FreezeOptions options;
         options.optimize = true;
         return frozenly(reread(freeze(m, options)));
       },
       true, true, true},
  };
  return all;
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

Outcome withoutGradients(Outcome outcome) {
  outcome.walk_raised = false;
  outcome.gradients.clear();
  return outcome;
}

std::optional<std::string> faultOf(const std::string& name, double tolerance, const Outcome& got,
                                   const Outcome& want, bool walks) {
  const auto d = difference(got, walks ? want : withoutGradients(want), tolerance);
  return d ? std::optional(name + ": " + *d) : std::nullopt;
}

std::optional<std::string> faultIn(const Way& way, uint64_t seed, const Outcome& want) {
  const RandomModule made = randomModule(seed);
  const WithSettings settings(way.level, way.jit);
  bool walks = false;
  const Outcome got = outcomeOf(made, [&](const Module& module) {
    Ready ready = way.prepare(module);
    walks = ready.trained.has_value();
    return ready;
  });
  // A leaf that the program makes is none of the parameters.
  if (way.freezes && got.trains && !made.leaf) return fmt::format("{}: results train", way.name);
  return faultOf(way.name, way.rounds ? toleranceOf(made) : 0, got, want, walks);
}

// A trace keeps the branches of its example, so it is run with that one alone. It is made of the prepared function, because
// modules cannot be part of a trace of C++ code.
std::optional<std::string> faultOfTrace(uint64_t seed, const Outcome& want) {
  RandomModule made = randomModule(seed);
  if (made.keeps_state || made.leaf || made.trains || want.raised) return std::nullopt;
  const WithSettings settings(OptimizationLevel::Default, JitMode::Sync);
  made.inputs.resize(1);
  Outcome first = withoutGradients(want);
  first.results.resize(1);
  const Outcome got = outcomeOf(made, [&](const Module& module) {
    const PreparedMethod fast = optimizeForInference(module);
    const Program program =
        trace([fast](const std::vector<IValue>& inputs) { return fast(inputs); }, {made.inputs[0]});
    return Ready{[program](const Tensor& x) { return program.call("traced", {x}); }};
  });
  return faultOf("traced", toleranceOf(made), got, first, false);
}

// WICK_STRANGERS_COUNT=10000 WICK_STRANGERS_SEED=7 tries others.
TEST(Strangers, AllWaysOfRunningAgree) {
  const uint64_t first = numberFromEnvironment("WICK_STRANGERS_SEED", 0),
                 count = numberFromEnvironment("WICK_STRANGERS_COUNT", 40);
  int found = 0;
  for (uint64_t seed = first; seed < first + count && found < 10; ++seed) {
    const RandomModule made = randomModule(seed);
    const Outcome want = plainOutcomeOf(made);
    const auto expectNone = [&](const std::optional<std::string>& fault) {
      if (!fault) return;
      ++found;
      ADD_FAILURE() << "seed " << seed << ", " << *fault << "\nx: " << made.inputs[0].describe()
                    << (made.trains ? ", training" : "") << "\n"
                    << made.source;
    };
    for (const Way& way : ways()) {
      if (way.only_evaluated && made.trains) continue;
      try {
        expectNone(faultIn(way, seed, want));
      } catch (const std::exception& error) {
        expectNone(fmt::format("{} ends with {}", way.name, error.what()));
      }
    }
    try {
      expectNone(faultOfTrace(seed, want));
    } catch (const std::exception& error) {
      expectNone(fmt::format("traced, ends with {}", error.what()));
    }
  }
}

}  // namespace
}  // namespace wick::strangers
