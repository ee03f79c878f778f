#include "tools/bisect.h"

#include <gtest/gtest.h>

namespace wick::cli::bisect_test {
namespace {

TEST(BisectTest, FindsTheFirstWrongNumberInFewTrials) {
  for (uint64_t last : {1u, 2u, 3u, 100u, 1000u}) {
    for (uint64_t wrong : {uint64_t{1}, (last + 1) / 2, last}) {
      int trials = 0;
      EXPECT_EQ(firstWrong(last,
                           [&](uint64_t n) {
                             ++trials;
                             return n < wrong;
                           }),
                wrong);
      EXPECT_LE(trials, 10);
    }
  }
}

}  // namespace
}  // namespace wick::cli::bisect_test
