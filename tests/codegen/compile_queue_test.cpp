#include "runtime/compile_queue.h"

#include <gtest/gtest.h>

#include <atomic>

#include "runtime/jit_mode.h"

namespace wick {
namespace {

using Clock = std::chrono::steady_clock;

class CompileQueue : public testing::Test {
 protected:
  void TearDown() override { setJitMode(JitMode::Background); }
};

TEST_F(CompileQueue, WhatIsWaitedForStartsNow) {
  setJitMode(JitMode::Background);
  int jobs = 0;
  auto begin = Clock::now();
  // With the grace of each this would last two seconds.
  for (int i = 0; i < 100; ++i) {
    submitCompile([&] { ++jobs; }, CompileStart::Later);
    waitForCompiles();
    EXPECT_EQ(jobs, i + 1);
  }
  EXPECT_LT(Clock::now() - begin, 50 * kCompileGrace);
}

TEST_F(CompileQueue, LaterJobsStartByThemselvesAndNotBeforeTheirTime) {
  setJitMode(JitMode::Background);
  auto begin = Clock::now();
  std::atomic<bool> done{false};
  Clock::time_point started;
  submitCompile(
      [&] {
        started = Clock::now();
        done = true;
        done.notify_all();
      },
      CompileStart::Later);
  done.wait(false);
  EXPECT_GE(started - begin, kCompileGrace);
}

TEST_F(CompileQueue, SyncRunsJobsWhereTheyAreSubmitted) {
  setJitMode(JitMode::Sync);
  bool done = false;
  submitCompile([&] { done = true; }, CompileStart::Later);
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace wick
