#include "tests/native/compare_native.h"

#include "frontend/compile.h"
#include "runtime/call.h"
#include "runtime/jit_mode.h"
#include "tests/native/random_scalar_program.h"

namespace wick {
namespace {

struct Case {
  std::vector<IValue> arguments;
  uint64_t max_steps;
};

std::vector<Case> casesOf(uint64_t seed) {
  std::mt19937_64 random(seed * 7 + 1);
  const int64_t ints[] = {
      0, 1, -1, 5, 12, -7, 1000, int64_t{1} << 40, std::numeric_limits<int64_t>::min()};
  const double floats[] = {0.0, -0.0, 1.5, -2.25, 1e19, 1e-300};
  std::vector<Case> cases;
  for (int i = 0; i < 4; ++i) {
    Case c;
    c.arguments = {ints[random() % std::size(ints)], ints[random() % std::size(ints)],
                   floats[random() % std::size(floats)], random() % 2 == 0};
    // Some runs end at a step in the middle.
    c.max_steps = i == 3 ? random() % 600 : 200000;
    cases.push_back(std::move(c));
  }
  return cases;
}

std::string outcome(GraphFunction& function, const Case& c, const std::shared_ptr<void>& owner) {
  RunOptions options;
  options.owner = owner;
  options.max_steps = c.max_steps;
  options.max_depth = 100;
  try {
    return callFunction(function, c.arguments, {}, options).repr();
  } catch (const InternalError&) {
    throw;
  } catch (const Error& error) {
    return error.what();
  }
}

// Each mode gets Codes of its own. `units` keeps them, so that the same machine code is not made
// twice.
std::vector<std::string> outcomes(const std::string& program, const std::vector<Case>& cases,
                                  JitMode mode, uint64_t threshold,
                                  std::vector<std::shared_ptr<CompilationUnit>>& units) {
  setJitMode(mode);
  setJitThreshold(threshold);
  std::shared_ptr<CompilationUnit> unit = compileSource(program, "random.py");
  units.push_back(unit);
  std::vector<std::string> results;
  for (const Case& c : cases) {
    results.push_back(outcome(*unit->functions().back(), c, unit));
  }
  return results;
}

}  // namespace

std::string compareNative(uint64_t seed) {
  std::string program = RandomScalarProgram(seed).make();
  std::vector<Case> cases = casesOf(seed);
  std::vector<std::string> expected;
  std::vector<std::shared_ptr<CompilationUnit>> units;
  try {
    expected = outcomes(program, cases, JitMode::Off, 0, units);
    // With a threshold machine code is entered in the middle of a loop.
    for (uint64_t threshold : {0, 2}) {
      std::vector<std::string> found = outcomes(program, cases, JitMode::Sync, threshold, units);
      for (size_t i = 0; i < cases.size(); ++i) {
        if (found[i] == expected[i]) continue;
        std::string arguments;
        for (const IValue& a : cases[i].arguments) arguments += a.repr() + " ";
        return fmt::format(
            "seed {}, arguments {}, {} steps, threshold {}\n--- interpreter\n{}\n--- machine "
            "code\n{}\n--- program\n{}",
            seed, arguments, cases[i].max_steps, threshold, expected[i], found[i], program);
      }
    }
  } catch (const Error& error) {
    return fmt::format("seed {}: {}\n{}", seed, error.what(), program);
  }
  return "";
}

}  // namespace wick
