#include "tools/timing.h"

#include <gtest/gtest.h>

namespace wick::cli {
namespace {

TEST(Timing, QuantilesInterpolate) {
  Timings times({4, 1, 3, 2});
  EXPECT_EQ(times.count(), 4u);
  EXPECT_DOUBLE_EQ(times.min(), 1);
  EXPECT_DOUBLE_EQ(times.median(), 2.5);
  EXPECT_DOUBLE_EQ(times.mean(), 2.5);
  EXPECT_DOUBLE_EQ(times.quantile(1), 4);
  EXPECT_DOUBLE_EQ(Timings({7}).quantile(0.99), 7);
}

TEST(Timing, MakesTheCallsThatArePlanned) {
  size_t calls = 0;
  TimingPlan plan;
  plan.warm_up = 3;
  plan.iterations = 7;
  EXPECT_EQ(timeRepeatedly([&] { ++calls; }, plan).count(), 7u);
  EXPECT_EQ(calls, 10u);
}

TEST(Timing, KeepsToItsDurationButMakesFiveCalls) {
  TimingPlan plan;
  plan.warm_up = 0;
  plan.seconds = 1e-9;
  EXPECT_EQ(timeRepeatedly([] {}, plan).count(), 5u);
  plan.seconds = 0.02;
  EXPECT_GT(timeRepeatedly([] {}, plan).count(), 5u);
}

}  // namespace
}  // namespace wick::cli
