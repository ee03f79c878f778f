#include "tests/optimizer/check_types.h"

#include <gtest/gtest.h>

namespace wick {
namespace {

// The command //tests/optimizer:check_types runs thousands of calls of each.
TEST(ShapeRules, SayNothingWrong) {
  std::map<std::string, TypeCheckCounts> counts;
  for (const std::string& name : operatorsWithRules()) {
    std::vector<std::string> failures = checkOperatorTypes(name, 1, 60, counts);
    EXPECT_TRUE(failures.empty()) << failures[0];
  }
}

}  // namespace
}  // namespace wick
