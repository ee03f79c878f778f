// bazel run -c opt //tests/native:compare_native -- COUNT [FIRST]
#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

#include "runtime/native/native_compiler.h"
#include "tests/native/compare_native.h"

int main(int argc, char** argv) {
  // Programs that never come back would only fill the disk.
  setenv("WICK_CACHE_DIR", "", 1);
  uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string difference = wick::compareNative(seed);
    if (!difference.empty()) {
      fmt::print("{}\n", difference);
      return 1;
    }
    if ((seed + 1 - first) % 500 != 0) continue;
    fmt::print("{} programs agree\n", seed + 1 - first);
    std::fflush(stdout);
  }
  auto statistics = wick::native::nativeStatistics();
  fmt::print("{} programs agree; {} functions compiled, {} failed\n", count, statistics.compiled,
             statistics.failed);
  return 0;
}
