// Which operator's work a device did, and how long.
#include "tools/device_times.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <thread>

#include "core/device_backend.h"
#include "ir/graph.h"
#include "tests/cuda/fake_cupti.h"
#include "tests/cuda/fake_driver.h"

namespace wick::cli::device_times_test {
namespace {

using std::chrono::microseconds;
using Time = std::chrono::steady_clock::time_point;

constexpr Device kCuda{DeviceType::CUDA, -1};

uint64_t onDevice(Time time) {
  const auto ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch());
  return static_cast<uint64_t>(ns.count() - cuda::kCuptiBehind);
}

// Work of 10 us times its number, queued at the time by a thread.
void addWork(cuda::FakeCupti& fake, const char* name, uint32_t number, Time queued,
             uint32_t thread) {
  cuda::cupti::KernelRecord kernel{};
  kernel.kind = cuda::cupti::kKernel;
  kernel.name = name;
  kernel.start = onDevice(queued + microseconds(1000));
  kernel.end = onDevice(queued + microseconds(1000 + 10 * number));
  kernel.correlation = number;
  fake.add(kernel);
  cuda::cupti::CallRecord call{};
  call.kind = cuda::cupti::kDriverCall;
  call.start = onDevice(queued);
  call.thread = thread;
  call.correlation = number;
  fake.add(call);
}
uint32_t thisThread() {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pthread_self()));
}

TEST(DeviceTimes, OfTheCpuThereAreNone) {
  EXPECT_EQ(DeviceTimes::make(Device()), nullptr);
}

TEST(DeviceTimes, WorkBelongsToTheInnermostCallOfItsThread) {
  cuda::FakeDriver driver;
  cuda::FakeCupti fake;
  Graph graph;
  const Node* const outer = graph.insertConstant(IValue(int64_t{1}))->node();
  const Node* const inner = graph.insertConstant(IValue(int64_t{2}))->node();
  const Node* const other = graph.insertConstant(IValue(int64_t{3}))->node();
  const auto times = DeviceTimes::make(kCuda);
  const Time t = std::chrono::steady_clock::now();
  // Calls are told when they end.
  times->called({*inner, nullptr, t + microseconds(200), t + microseconds(300), 0, false});
  times->called({*outer, nullptr, t + microseconds(100), t + microseconds(900), 0, false});
  uint32_t another = 0;
  std::thread([&] {
    another = thisThread();
    times->called({*other, nullptr, t + microseconds(100), t + microseconds(900), 0, false});
  }).join();
  addWork(fake, "_Z5firstIfEvPT_", 1, t + microseconds(250), thisThread());
  addWork(fake, "second", 2, t + microseconds(400), thisThread());
  addWork(fake, "second", 3, t + microseconds(250), another);
  addWork(fake, "nobody's", 4, t + microseconds(950), thisThread());
  times->end();
  EXPECT_NEAR(times->usOf(inner), 10, 1e-3);
  EXPECT_NEAR(times->usOf(outer), 20, 1e-3);
  EXPECT_NEAR(times->usOf(other), 30, 1e-3);
  const std::vector<DeviceRow> rows = times->rows();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "second");
  EXPECT_EQ(rows[0].calls, 2u);
  EXPECT_NEAR(rows[0].us, 50, 1e-3);
  EXPECT_EQ(rows[1].name, "nobody's");
  EXPECT_EQ(rows[2].name, "first");
  EXPECT_EQ(times->spans().size(), 4u);
  EXPECT_EQ(times->note(), "the device worked for 100.0 us, 40.0 us of that for no operator");
}

TEST(DeviceTimes, EventsTellWhereTheLibraryIsRefused) {
  cuda::FakeDriver driver;
  cuda::FakeCupti fake;
  fake.answerEnabling(35);
  Graph graph;
  const Node* const node = graph.insertConstant(IValue(int64_t{1}))->node();
  const auto times = DeviceTimes::make(kCuda);
  const Time t = std::chrono::steady_clock::now();
  const uint64_t before = driver.state().events_recorded;
  for (int i = 0; i < 3; ++i) times->called({*node, nullptr, t, t, 0, false});
  EXPECT_EQ(driver.state().events_recorded, before + 3);
  times->end();
  EXPECT_GE(times->usOf(node), 0);
  EXPECT_TRUE(times->rows().empty());
  EXPECT_NE(times->note().find("waits included"), std::string::npos) << times->note();
  EXPECT_NE(times->note().find("it is not allowed"), std::string::npos) << times->note();
}

}  // namespace
}  // namespace wick::cli::device_times_test
