#include "tests/optimizer/check_plans.h"

#include <gtest/gtest.h>

namespace wick::check_plans_test {
namespace {

// The command //tests/optimizer:check_plans runs ten thousand and more.
TEST(RandomGraphs, PlansChangeNoResult) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::string failure = checkPlansOfSeed(seed);
    ASSERT_EQ(failure, "");
  }
}

}  // namespace
}  // namespace wick::check_plans_test
