// Pinned memory and copies that are not waited for, without a GPU.
#include "runtime/cuda/pinned.h"

#include <gtest/gtest.h>

#include "core/device_backend.h"
#include "core/pinned_memory.h"
#include "frontend/compile.h"
#include "runtime/call.h"
#include "runtime/cuda/device.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::pinned_test {
namespace {

using testing_errors::errorOf;

constexpr Device kCuda{DeviceType::CUDA, -1};

Tensor numbers(std::vector<double> values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())}).clone();
}

class Pinned : public testing::Test {
 protected:
  IValue call(const std::string& source, std::vector<IValue> arguments) {
    unit_ = compileSource(source);
    return callFunction(*unit_->functions().front(), std::move(arguments));
  }
  std::shared_ptr<CompilationUnit> unit_;
};

TEST_F(Pinned, ScriptsPinMemory) {
  FakeDriver driver;
  const IValue r = call(R"(
def f(x: Tensor):
    a = x.pin_memory()
    b = torch.zeros([2, 3], pin_memory=True)
    c = torch.arange(4, pin_memory=True)
    d = torch.rand([2], pin_memory=True)
    e = torch.empty_like(x, pin_memory=True)
    return [x.is_pinned(), a.is_pinned(), b.is_pinned(), c.is_pinned(), d.is_pinned(),
            e.is_pinned(), a[1:].is_pinned(), torch.zeros([2], pin_memory=False).is_pinned(),
            a.pin_memory().is_set_to(a), bool((a == x).all()), int(c.sum()) == 6]
)",
                        {IValue(numbers({1, 2, 3}))});
  std::vector<bool> got;
  for (const IValue& v : r.elements()) got.push_back(v.toBool());
  EXPECT_EQ(
      got, (std::vector<bool>{false, true, true, true, true, true, true, false, true, true, true}));
}

TEST_F(Pinned, CopiesWaitUnlessTheyNeedNot) {
  FakeDriver driver;
  const Tensor plain = numbers({1, 2, 3}), fixed = pinned(plain);
  const auto waitsOf = [&](const char* source, const Tensor& a, const Tensor& b) {
    const uint64_t before = driver.state().synchronizations;
    call(source, {IValue(a), IValue(b)});
    return driver.state().synchronizations - before;
  };
  const Tensor there = moveTo(plain, kCuda);
  constexpr const char* kCopy = "def f(a: Tensor, b: Tensor):\n    return a.copy_(b)\n";
  constexpr const char* kUnwaited =
      "def f(a: Tensor, b: Tensor):\n    return a.copy_(b, non_blocking=True)\n";
  EXPECT_EQ(waitsOf(kCopy, there, fixed), 1u);
  EXPECT_EQ(waitsOf(kUnwaited, there, fixed), 0u);
  EXPECT_EQ(waitsOf(kCopy, fixed, there), 1u);
  EXPECT_EQ(waitsOf(kUnwaited, fixed, there), 0u);
  EXPECT_EQ(waitsOf(kUnwaited, plain, there), 1u);
  // What comes is pinned, so that nobody waits.
  const uint64_t before = driver.state().synchronizations;
  const Tensor here = call(R"(
def f(a: Tensor):
    return a.to("cpu", non_blocking=True)
)",
                           {IValue(there)})
                          .toTensor();
  EXPECT_EQ(driver.state().synchronizations, before);
  EXPECT_TRUE(isPinned(here));
  EXPECT_EQ(here.data<double>()[2], 3);
  EXPECT_FALSE(isPinned(moveTo(there, Device())));
}

TEST_F(Pinned, BlocksAreUsedAgainWhenCopiesHaveEnded) {
  FakeDriver driver;
  driver.state().work_is_done = false;
  const void* first = nullptr;
  {
    const Tensor t = pinned(numbers({1, 2, 3}));
    first = t.rawData();
    moveUnwaited(t, kCuda);
  }
  const Tensor second = pinned(numbers({1, 2, 3}));
  EXPECT_NE(second.rawData(), first);
  EXPECT_EQ(pinnedStatistics().driver_calls, 2u);
  EXPECT_EQ(pinnedStatistics().reused, 0u);
  driver.state().work_is_done = true;
  const Tensor third = pinned(numbers({4}));
  EXPECT_EQ(third.rawData(), first);
  EXPECT_EQ(pinnedStatistics().driver_calls, 2u);
  EXPECT_EQ(pinnedStatistics().reused, 1u);
  EXPECT_EQ(pinnedStatistics().allocated, 8192u);
}

TEST_F(Pinned, WhatCannotBePinnedSaysSo) {
  {
    FakeDriver driver;
    const std::string error =
        errorOf([&] { pinned(Tensor::zeros(DimVector{2}, DType::Float, kCuda)); });
    EXPECT_NE(error.find("cannot pin float32[2] on cuda:0: only dense CPU tensors can be pinned"),
              std::string::npos)
        << error;
    EXPECT_EQ(pinned(Tensor::zeros(DimVector{0}, DType::Float)).numel(), 0);
  }
  if (deviceCount() > 0) GTEST_SKIP() << "there is a GPU here";
  const std::string error = errorOf([&] { pinned(Tensor::zeros(DimVector{2}, DType::Float)); });
  EXPECT_NE(error.find("CUDA"), std::string::npos) << error;
  EXPECT_FALSE(isPinned(Tensor::zeros(DimVector{2}, DType::Float)));
}

}  // namespace
}  // namespace wick::cuda::pinned_test
