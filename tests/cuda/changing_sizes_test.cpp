// Calls whose sizes are never the same need no more memory, and no more code, than the first ones.
#include <gtest/gtest.h>

#include "frontend/compile.h"
#include "runtime/call.h"
#include "runtime/cuda/compiler.h"
#include "runtime/cuda/device.h"
#include "runtime/jit_mode.h"
#include "tests/cuda/fake_driver.h"

namespace wick::cuda::changing_sizes_test {
namespace {

TEST(ChangingSizes, MemoryAndCodeStayWhatTheyAre) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  setJitMode(JitMode::Sync);
  setJitThreshold(0);
  const auto unit = compileSource(R"(
def f(x: Tensor, b: Tensor):
    y = torch.relu(x * 2 + b)
    return torch.softmax(y, -1) * 2, y.sum(-1)
)");
  GraphFunction& f = *unit->findFunction("__torch__.f");
  const Device device{DeviceType::CUDA, -1};
  const auto call = [&](int64_t i) {
    // 10,000 different pairs, all of them below 200.
    const int64_t rows = 1 + i * 7919 % 10000 / 100, columns = 100 + i * 7919 % 100;
    const Tensor x = Tensor::zeros(DimVector{rows, columns}, DType::Float, device);
    const Tensor b = Tensor::zeros(DimVector{columns}, DType::Float, device);
    callFunction(f, {IValue(x), IValue(b)});
  };
  constexpr int64_t kWarmUp = 5000, kCalls = 10000;
  for (int64_t i = 0; i < kWarmUp; ++i) call(i);
  const Allocator& allocator = deviceAt(0).allocator();
  const AllocatorStatistics before = allocator.statistics();
  const uint64_t compiled = compileStatistics().compiled + compileStatistics().from_disk;
  const size_t counted = countedBytes();
  for (int64_t i = kWarmUp; i < kCalls; ++i) call(i);
  const AllocatorStatistics after = allocator.statistics();
  EXPECT_EQ(after.driver_calls, before.driver_calls);
  EXPECT_EQ(after.reserved, before.reserved);
  // A layout that few sizes have may come late.
  EXPECT_LE(compileStatistics().compiled + compileStatistics().from_disk, compiled + 4);
  // What threads count apart may not have been added up yet.
  EXPECT_LT(countedBytes(), counted + (size_t{1} << 20));
  EXPECT_GT(driver.state().launches, 10000u);
}

}  // namespace
}  // namespace wick::cuda::changing_sizes_test
