#include "tools/timing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <vector>

namespace wick::cli::timing_test {
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

TEST(Timing, ThreadsCallAtTheSameTime) {
  std::atomic<size_t> calls{0};
  TimingPlan plan;
  plan.warm_up = 2;
  plan.iterations = 9;
  const std::vector<std::function<void()>> callers(3, [&] { ++calls; });
  const TimedTogether together = timeTogether(callers, plan);
  EXPECT_EQ(together.times.count(), 9u);
  EXPECT_EQ(calls, 3 * 2 + 9u);
  EXPECT_GT(together.seconds, 0);
  plan.iterations = 0;
  plan.seconds = 0.01;
  EXPECT_GE(timeTogether(callers, plan).times.count(), 15u);
}

TEST(Timing, WhatAThreadRaisesEndsTheOthers) {
  TimingPlan plan;
  plan.warm_up = 0;
  plan.iterations = 1000000000;
  std::atomic<size_t> calls{0};
  const std::vector<std::function<void()>> callers = {[&] { ++calls; },
                                                      [&] {
                                                        if (calls > 10)
                                                          throw std::runtime_error("enough");
                                                      }};
  EXPECT_THROW(timeTogether(callers, plan), std::runtime_error);
}

TEST(Timing, MillisecondsAreNeverShownAsZero) {
  EXPECT_EQ(formatMilliseconds(12.3456), "12.35");
  EXPECT_EQ(formatMilliseconds(1234.5), "1234.5");
  EXPECT_EQ(formatMilliseconds(0.98765), "0.9877");
  EXPECT_EQ(formatMilliseconds(0.0001234), "0.0001234");
  EXPECT_EQ(formatMilliseconds(0), "0");
}

}  // namespace
}  // namespace wick::cli::timing_test
