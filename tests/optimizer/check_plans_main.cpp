// checks that plans change no result, on random graphs:
//   bazel run -c opt //tests/optimizer:check_plans -- [COUNT [FIRST_SEED]]
// Prints the seeds that fail with their graphs; the exit code is 1 when there are any.
#include <fmt/core.h>

#include <cstdlib>

#include "core/error.h"
#include "tests/optimizer/check_plans.h"

int main(int argc, char** argv) {
  uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  constexpr uint64_t kMaxShown = 3;
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string failure;
    try {
      failure = wick::checkPlansOfSeed(seed);
    } catch (const wick::Error& e) {
      failure = fmt::format("seed {}: {}", seed, e.what());
    }
    if (failure.empty()) continue;
    ++failures;
    if (failures <= kMaxShown) fmt::print("{}\n", failure);
  }
  fmt::print("{} programs, {} failures\n", count, failures);
  return failures == 0 ? 0 : 1;
}
