// Records of what devices did, as a library that stands in for CUPTI gives them.
#include "runtime/cuda/activities.h"

#include <gtest/gtest.h>

#include "tests/cuda/fake_cupti.h"
#include "tests/error_text.h"

namespace wick::cuda::activities_test {
namespace {

using std::chrono::nanoseconds;
using testing_errors::errorOf;

cupti::KernelRecord kernel(const char* name, uint64_t start, uint64_t end, uint32_t correlation) {
  cupti::KernelRecord r{};
  r.kind = cupti::kKernel;
  r.name = name;
  r.start = start;
  r.end = end;
  r.device = 1;
  r.stream = 7;
  r.correlation = correlation;
  return r;
}

TEST(Activities, KernelsCopiesAndFillsAreTold) {
  FakeCupti fake;
  ActivityRecording recording;
  EXPECT_EQ(fake.enabled(), 5);
  fake.add(kernel("second", 2'000, 2'500, 11));
  cupti::CopyRecord copy{};
  copy.kind = cupti::kCopy;
  copy.copy_kind = 2;
  copy.bytes = 4096;
  copy.start = 1'000;
  copy.end = 1'700;
  copy.correlation = 12;
  fake.add(copy);
  cupti::FillRecord fill{};
  fill.kind = cupti::kFill;
  fill.bytes = 64;
  fill.start = 3'000;
  fill.end = 2'000;  // clocks of devices may jump
  fake.add(fill);
  cupti::CallRecord call{};
  call.kind = cupti::kDriverCall;
  call.start = 900;
  call.thread = 77;
  call.correlation = 12;
  fake.add(call);
  call.kind = 99;  // something newer
  fake.add(call);
  const std::vector<Activity> all = recording.end();
  EXPECT_EQ(fake.enabled(), 0);
  EXPECT_EQ(recording.leftOut(), 0u);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "copy from device");
  EXPECT_EQ(all[0].kind, Activity::Kind::Copy);
  EXPECT_EQ(all[0].bytes, 4096);
  EXPECT_TRUE(all[0].is_queued);
  EXPECT_EQ(all[0].thread, 77u);
  EXPECT_EQ(all[0].begin - all[0].queued, nanoseconds(100));
  EXPECT_EQ(all[0].end - all[0].begin, nanoseconds(700));
  EXPECT_EQ(all[1].name, "second");
  EXPECT_EQ(all[1].device, 1u);
  EXPECT_EQ(all[1].stream, 7u);
  EXPECT_FALSE(all[1].is_queued);
  EXPECT_EQ(all[2].kind, Activity::Kind::Fill);
  EXPECT_EQ(all[2].end, all[2].begin);
  // On the clock of the rest of the program, up to the time between two readings.
  const auto shift = all[1].begin.time_since_epoch() - nanoseconds(2'000 + kCuptiBehind);
  EXPECT_LT(std::chrono::abs(shift), std::chrono::seconds(5));
}

TEST(Activities, OneAtATime) {
  FakeCupti fake;
  ActivityRecording first;
  EXPECT_NE(errorOf([] { ActivityRecording second; }).find("recorded already"), std::string::npos);
  fake.add(kernel("of the first", 1, 2, 3));
  EXPECT_EQ(first.end().size(), 1u);
  ActivityRecording second;
  EXPECT_EQ(second.end().size(), 0u);
}

TEST(Activities, WhatTheLibraryRefusesIsAnError) {
  FakeCupti fake;
  fake.answerEnabling(35);
  const std::string error = errorOf([] { ActivityRecording recording; });
  EXPECT_NE(error.find("CUPTI says it is not allowed (error 35)"), std::string::npos) << error;
  EXPECT_EQ(fake.enabled(), 0);
  fake.answerEnabling(0);
  ActivityRecording again;
  EXPECT_EQ(fake.enabled(), 5);
}

}  // namespace
}  // namespace wick::cuda::activities_test
