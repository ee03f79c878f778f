// Random modules (random_module.h) that are compiled ahead of time: the library's results are those of the plain run, and
// those that cannot be compiled are refused.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>

#include "aot/build.h"
#include "aot/recording.h"
#include "runtime/inference.h"
#include "tests/aot/compiled.h"
#include "tests/environment.h"
#include "tests/strangers/outcome.h"

namespace wick::strangers {
namespace {

constexpr uint64_t kTogether = 25;  // models of one library

struct Counts {
  int compared = 0, raised = 0;
  std::map<std::string, int> refused;  // by the reason
};

std::string firstLine(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// Writes the model of a module; nothing when it was refused or raised as the module does.
std::optional<std::string> write(const RandomModule& made, uint64_t seed, const Outcome& want,
                                 testing_aot::Workshop& workshop, Counts& counts) {
  try {
    const PreparedMethod fast = optimizeForInference(made.module);
    workshop.add(fmt::format("m{}", seed), *fast.function(), {made.inputs[0]});
  } catch (const RuntimeError& error) {
    if (aot::isNotAhead(error)) {
      ++counts.refused[firstLine(error.brief())];
    } else {
      EXPECT_TRUE(want.raised) << "seed " << seed << ": " << error.what() << made.source;
      ++counts.raised;
    }
    return std::nullopt;
  }
  EXPECT_FALSE(want.raised) << "seed " << seed << " was compiled: " << want.error << made.source;
  return fmt::format("m{}", seed);
}

std::optional<std::string> faultOf(const testing_aot::Workshop::Model& model,
                                   const std::string& weights, const RandomModule& made,
                                   const Outcome& want) {
  wick_aot_state state{};
  if (model.init(&state, weights.c_str()) != WICK_AOT_OK) return fmt::format("{}", state.error);
  std::optional<std::string> fault;
  for (size_t i = 0; i < made.inputs.size() && !fault; ++i) {
    const std::vector<Tensor> inputs{made.inputs[i]};
    const std::vector<Tensor> outputs = testing_aot::outputsFor(model, state, inputs);
    const std::string error = testing_aot::call(model, state, inputs, outputs);
    if (!error.empty()) {
      fault = error;
    } else if (outputs.size() != 1) {
      fault = fmt::format("{} results", outputs.size());
    } else {
      fault = difference(outputs[0], want.results[i], toleranceOf(made), made.noise);
    }
  }
  model.free(&state);
  return fault;
}

void compareTogether(uint64_t first, uint64_t count, Counts& counts) {
  testing_aot::Workshop workshop(fmt::format("strangers{}", first));
  std::vector<uint64_t> seeds;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const RandomModule made = randomModule(seed);
    if (made.trains) continue;
    const Outcome want = plainOutcomeOf(made);
    if (write(made, seed, want, workshop, counts)) seeds.push_back(seed);
  }
  if (seeds.empty()) return;
  ASSERT_EQ(workshop.compile(), "");
  for (const uint64_t seed : seeds) {
    const RandomModule made = randomModule(seed);
    const Outcome want = plainOutcomeOf(made);
    if (want.raised) continue;
    const std::string name = fmt::format("m{}", seed);
    const auto fault = faultOf(workshop.load(name), workshop.weightsOf(name), made, want);
    EXPECT_FALSE(fault) << "seed " << seed << ": " << *fault << "\n" << made.source;
    ++counts.compared;
  }
}

// WICK_STRANGERS_COUNT=1000 WICK_STRANGERS_SEED=7 tries others.
TEST(Strangers, CompiledModelsAgree) {
  const uint64_t first = numberFromEnvironment("WICK_STRANGERS_SEED", 0),
                 count = numberFromEnvironment("WICK_STRANGERS_COUNT", 10);
  Counts counts;
  for (uint64_t done = 0; done < count; done += kTogether) {
    compareTogether(first + done, std::min(kTogether, count - done), counts);
  }
  RecordProperty("compared", counts.compared);
  fmt::print("{} compared, {} raised\n", counts.compared, counts.raised);
  for (const auto& [reason, times] : counts.refused) {
    fmt::print("{} refused: {}\n", times, reason);
  }
  EXPECT_GT(counts.compared, static_cast<int>(count / 4));
}

}  // namespace
}  // namespace wick::strangers
