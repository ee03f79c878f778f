#include "tests/autograd/random_gradients.h"

#include <gtest/gtest.h>

#include <string>

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

TEST(RandomGradients, PutNoTensorIntoItself) {
  int puts = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const std::string program = randomGradientProgram(seed);
    const std::string index = "[torch.tensor([1, 0])] = ";
    for (size_t at = 0; (at = program.find(index, at)) != std::string::npos; at += index.size()) {
      ++puts;
      const size_t begin = program.rfind(' ', at) + 1;
      const std::string target = program.substr(begin, at - begin);
      EXPECT_NE(program.substr(at + index.size(), target.size() + 1), target + "\n")
          << "seed " << seed << "\n"
          << program;
    }
  }
  EXPECT_GT(puts, 100);
}

}  // namespace
}  // namespace wick::random_gradients_test
