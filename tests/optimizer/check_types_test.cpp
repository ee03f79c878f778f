#include "tests/optimizer/check_types.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/operator.h"

namespace wick::check_types_test {
namespace {

// The command //tests/optimizer:check_types runs thousands of calls of each.
TEST(ShapeRules, SayNothingWrong) {
  std::map<std::string, TypeCheckCounts> counts;
  for (const std::string& name : operatorsWithRules()) {
    std::vector<std::string> failures = checkOperatorTypes(name, 1, 60, counts);
    EXPECT_TRUE(failures.empty()) << failures[0];
  }
}

// What an operator's record does not say no pass knows.
TEST(Operators, WriteOnlyWhatTheySay) {
  uint64_t calls = 0;
  for (const std::string& name : plainOperators()) {
    std::vector<std::string> failures = checkOperatorWrites(name, 1, 30, calls);
    EXPECT_TRUE(failures.empty()) << failures[0];
  }
  EXPECT_GT(calls, 10000u);
}

// These read statistics, and give new ones back where there are any.
bool onlyReadsStatistics(const std::string& name) {
  static const std::set<std::string> names = {
      "aten::_batch_norm_no_update", "aten::_batch_norm_with_update_functional",
      "aten::_native_batch_norm_legit_functional", "aten::_native_batch_norm_legit_no_training"};
  return names.contains(name);
}

// Random arguments seldom fit the layers that keep statistics.
TEST(Operators, StatisticsAreSaidToBeWritten) {
  size_t found = 0;
  OperatorRegistry& registry = OperatorRegistry::instance();
  for (const std::string& name : registry.names()) {
    if (onlyReadsStatistics(name)) continue;
    for (const Operator* op : registry.overloads(Symbol::fromQualString(name))) {
      for (const char* statistic : {"running_mean", "running_var"}) {
        const auto index = op->schema().argumentIndex(statistic);
        if (!index || op->schema().arguments()[*index].alias) continue;
        ++found;
        EXPECT_TRUE(op->unannotatedArguments() >> *index & 1) << op->schema().str();
      }
    }
  }
  EXPECT_GE(found, 12u);
}

}  // namespace
}  // namespace wick::check_types_test
