#include "tests/autograd/random_gradients.h"

#include <gtest/gtest.h>

namespace wick::random_gradients_test {
namespace {

TEST(RandomGradients, AgreeWithDifferences) {
  using Outcome = GradientComparison::Outcome;
  int agree = 0;
  // tests/autograd:check_gradients tries more.
  const uint64_t count = 100;
  for (uint64_t seed = 0; seed < count; ++seed) {
    const std::string program = randomGradientProgram(seed);
    const GradientComparison found = compareGradients(program, seed % 4 == 3);
    EXPECT_NE(found.outcome, Outcome::Differs) << "seed " << seed << ": " << found.text << "\n"
                                               << program;
    if (found.outcome == Outcome::Agrees) ++agree;
  }
  // The rest is refused, rightly, or says nothing.
  EXPECT_GT(agree, static_cast<int>(count * 2 / 3));
}

}  // namespace
}  // namespace wick::random_gradients_test
