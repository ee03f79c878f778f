// Compares random groups as kernels with their operators one by one:
//   bazel run -c opt //tests/codegen:check_fusion -- [COUNT [FIRST_SEED
//   [pointwise|reductions|structures|writes]]]
// Prints those that differ; the exit code is 1 when there are any.
#include <fmt/core.h>

#include <cstdlib>
#include <string_view>

#include "core/error.h"
#include "tests/codegen/check_fusion.h"

int main(int argc, char** argv) {
  uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string_view kind = argc > 3 ? argv[3] : "pointwise";
  auto check_one = kind == "reductions"   ? wick::checkReductions
                   : kind == "structures" ? wick::checkStructures
                   : kind == "writes"     ? wick::checkWrites
                                          : wick::checkPointwise;
  constexpr uint64_t kMaxShown = 5;
  uint64_t failures = 0, fused = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    wick::FusionCheck check;
    try {
      check = check_one(seed);
    } catch (const std::exception& e) {
      check.failure = fmt::format("seed {}: {}", seed, e.what());
    }
    fused += check.fused;
    if (check.failure.empty()) continue;
    if (++failures <= kMaxShown) fmt::print("{}\n", check.failure);
  }
  fmt::print("{} groups, {} of them ran as kernels, {} failures\n", count, fused, failures);
  return failures == 0 ? 0 : 1;
}
