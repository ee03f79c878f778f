// Compiling takes time in proportion to the program, whatever its shape.
#include <sys/resource.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "tests/frontend/generated_programs.h"
#include "tests/frontend/robustness_testing.h"

namespace wick::linearity_test {
namespace {

constexpr int kAttempts = 8;

// Returns the processor's time in this process, without the system's: giving fresh memory takes some systems
// a hundred times as long as others.
double userSeconds() {
  rusage used;
  getrusage(RUSAGE_SELF, &used);
  return static_cast<double>(used.ru_utime.tv_sec) +
         static_cast<double>(used.ru_utime.tv_usec) * 1e-6;
}

// Returns how long `work` takes. Other work on the machine counts a little (caches, shared units, a clock that
// changes), hence several attempts.
double secondsOf(const std::function<void()>& work) {
  const double start = userSeconds();
  work();
  return userSeconds() - start;
}

class Linearity : public testing::TestWithParam<GeneratedShape> {};

TEST_P(Linearity, TwentyThousandLines) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "times of a sanitized build say nothing";
#endif
  const std::string eighth = GetParam().make(2'500);
  const std::string whole = GetParam().make(20'000);
  compileSource("def main(t: Tensor):\n    return torch.relu(t + 1)\n");  // fills the registry
  // One long program takes a little more time than eight short ones, because of caches. A quadratic step takes
  // eight times as much. Noise only adds, so the shortest of the runs counts. They take turns, so that a slow
  // moment meets both.
  double small = std::numeric_limits<double>::infinity();
  double large = small;
  const auto proportional = [&] { return large < 3 * small + 0.2; };
  for (int attempt = 0; attempt < kAttempts && !proportional(); ++attempt) {
    small = std::min(small, secondsOf([&] {
                       for (int i = 0; i < 8; ++i) compileSource(eighth);
                     }));
    large = std::min(large, secondsOf([&] { compileSource(whole); }));
  }
  EXPECT_TRUE(proportional()) << "eight times 2,500 lines: " << small
                              << " s, 20,000 lines: " << large << " s";
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linearity, testing::ValuesIn(generatedShapes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wick::linearity_test
