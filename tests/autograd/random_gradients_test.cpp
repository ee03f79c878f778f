#include "tests/autograd/random_gradients.h"

#include <gtest/gtest.h>

namespace wick {
namespace {

TEST(RandomGradients, AgreeWithDifferences) {
  using Outcome = GradientComparison::Outcome;
  int agree = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const std::string program = randomGradientProgram(seed);
    const GradientComparison found = compareGradients(program, seed % 4 == 3);
    EXPECT_NE(found.outcome, Outcome::Differs) << "seed " << seed << ": " << found.text << "\n"
                                               << program;
    if (found.outcome == Outcome::Agrees) ++agree;
  }
  // The rest is refused, rightly, or says nothing.
  EXPECT_GT(agree, 200);
}

}  // namespace
}  // namespace wick
