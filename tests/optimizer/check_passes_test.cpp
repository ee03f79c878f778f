#include "tests/optimizer/check_passes.h"

#include <gtest/gtest.h>

namespace wick::check_passes_test {
namespace {

// The command //tests/optimizer:check_passes runs ten thousand and more.
TEST(RandomGraphs, PassesChangeNoResult) {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    std::string failure = checkSeed(seed);
    ASSERT_EQ(failure, "");
  }
}

}  // namespace
}  // namespace wick::check_passes_test
