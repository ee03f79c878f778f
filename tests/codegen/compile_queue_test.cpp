#include "runtime/compile_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/jit_mode.h"

namespace wick::compile_queue_test {
namespace {

using Clock = std::chrono::steady_clock;

// A job that notes when it starts.
struct Job {
  std::atomic<bool> done{false};
  Clock::time_point submitted;
  Clock::time_point started;

  void submit() {
    submitted = Clock::now();
    submitCompile(
        [this] {
          started = Clock::now();
          done = true;
          done.notify_all();
        },
        CompileStart::Later);
  }
  void wait() { done.wait(false); }
};

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
  Job job;
  job.submit();
  job.wait();
  EXPECT_GE(job.started - job.submitted, kCompileGrace);
}

TEST_F(CompileQueue, LaterJobsStartAfterTheOutermostHold) {
  setJitMode(JitMode::Background);
  Job job;
  Clock::time_point released;
  {
    const CompileHold hold;
    job.submit();
    { const CompileHold inner; }
    std::this_thread::sleep_for(3 * kCompileGrace);
    released = Clock::now();
  }
  job.wait();
  EXPECT_GE(job.started, released);
}

TEST_F(CompileQueue, AHoldLastsOnlySoLong) {
  setJitMode(JitMode::Background);
  Job job;
  const CompileHold hold;
  job.submit();
  job.wait();
  EXPECT_GE(job.started - job.submitted, kLongestHold);
}

TEST_F(CompileQueue, AHoldIsItsThreadsAlone) {
  setJitMode(JitMode::Background);
  Job held, free;
  const CompileHold hold;
  held.submit();
  std::thread([&] { free.submit(); }).join();
  free.wait();
  held.wait();
  EXPECT_LE(free.started, held.started);
}

TEST_F(CompileQueue, SyncRunsJobsWhereTheyAreSubmitted) {
  setJitMode(JitMode::Sync);
  bool done = false;
  submitCompile([&] { done = true; }, CompileStart::Later);
  EXPECT_TRUE(done);
}

}  // namespace
}  // namespace wick::compile_queue_test
