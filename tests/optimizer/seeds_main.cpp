#include "tests/optimizer/seeds_main.h"

#include <fmt/core.h>

#include <cstdlib>

#include "core/error.h"

namespace wick {

int checkSeeds(int argc, char** argv, const std::function<std::string(uint64_t)>& check) {
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 10000;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  constexpr uint64_t kMaxShown = 3;
  uint64_t failures = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string failure;
    try {
      failure = check(seed);
    } catch (const Error& e) {
      failure = fmt::format("seed {}: {}", seed, e.what());
    }
    if (failure.empty()) continue;
    ++failures;
    if (failures <= kMaxShown) fmt::print("{}\n", failure);
  }
  fmt::print("{} programs, {} failures\n", count, failures);
  return failures == 0 ? 0 : 1;
}

}  // namespace wick
