// Compiling takes time in proportion to the program, whatever its shape.
#include <algorithm>
#include <ctime>
#include <limits>

#include "tests/frontend/generated_programs.h"
#include "tests/frontend/robustness_testing.h"

namespace wick {
namespace {

constexpr int kAttempts = 4;

// Of the processor, so that other work on the machine does not count. It still does a little
// (caches, shared units), so the shortest of several runs is taken.
double secondsOf(const std::function<void()>& work) {
  double shortest = std::numeric_limits<double>::infinity();
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::clock_t start = std::clock();
    work();
    shortest = std::min(shortest, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return shortest;
}

class Linearity : public testing::TestWithParam<GeneratedShape> {};

TEST_P(Linearity, TwentyThousandLines) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "times of a sanitized build say nothing";
#endif
  const std::string quarter = GetParam().make(5'000);
  const std::string whole = GetParam().make(20'000);
  compileSource("def main(t: Tensor):\n    return torch.relu(t + 1)\n");  // fills the registry
  double small = secondsOf([&] { compileSource(quarter); });
  double large = secondsOf([&] { compileSource(whole); });
  EXPECT_LT(large, 3.0);
  // Four times the lines: caches make it somewhat more than four times the time.
  EXPECT_LT(large, 9 * small + 0.2);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Linearity, testing::ValuesIn(generatedShapes()),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace wick
