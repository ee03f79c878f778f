// Devices, memory and dispatch without a GPU: the driver is a fake one.
#include <gtest/gtest.h>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/allocator.h"
#include "runtime/cuda/device.h"
#include "runtime/device_moves.h"
#include "runtime/ops/common_calls.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::backend_test {
namespace {

using testing_errors::errorOf;

constexpr Device kCuda{DeviceType::CUDA, -1};
constexpr Device kSecond{DeviceType::CUDA, 1};

TEST(Allocator, GivesFreedMemoryAgain) {
  FakeDriver driver;
  Allocator allocator;
  const Address a = allocator.allocate(1000, nullptr);
  allocator.free(a, nullptr);
  for (int i = 0; i < 100; ++i) {
    const Address b = allocator.allocate(900, nullptr);
    EXPECT_EQ(b, a);
    allocator.free(b, nullptr);
  }
  EXPECT_EQ(driver.state().allocations, 1);
  EXPECT_EQ(allocator.statistics().allocated, 0);
  EXPECT_EQ(allocator.statistics().peak_allocated, 1024);
}

TEST(Allocator, JoinsFreeNeighbours) {
  FakeDriver driver;
  Allocator allocator;
  std::vector<Address> blocks;
  for (int i = 0; i < 4; ++i) blocks.push_back(allocator.allocate(size_t{512} << 10, nullptr));
  EXPECT_EQ(driver.state().allocations, 1);
  for (const size_t i : {1u, 3u, 0u, 2u}) allocator.free(blocks[i], nullptr);
  EXPECT_EQ(allocator.allocate(size_t{1} << 20, nullptr), blocks[0]);
}

TEST(Allocator, KeepsStreamsApart) {
  FakeDriver driver;
  Allocator allocator;
  const Stream other = reinterpret_cast<Stream>(uintptr_t{3});
  const Address a = allocator.allocate(512, nullptr);
  allocator.free(a, nullptr);
  EXPECT_NE(allocator.allocate(512, other), a);
  EXPECT_EQ(allocator.allocate(512, nullptr), a);
}

TEST(Allocator, WaitsForStreamsThatUseWhatIsFreed) {
  FakeDriver driver;
  Allocator allocator;
  const Stream owner = reinterpret_cast<Stream>(uintptr_t{3});
  const Stream user = reinterpret_cast<Stream>(uintptr_t{4});
  const Address a = allocator.allocate(512, owner);
  driver.state().work_is_done = false;
  allocator.free(a, user);
  EXPECT_EQ(driver.state().events_recorded, 1);
  EXPECT_EQ(allocator.statistics().allocated, 0);
  const Address b = allocator.allocate(512, owner);
  EXPECT_NE(b, a);
  driver.state().work_is_done = true;
  EXPECT_EQ(allocator.allocate(512, owner), a);
  // The stream that all threads share waits for the others, as they do for it.
  allocator.free(b, nullptr);
  EXPECT_EQ(allocator.allocate(512, owner), b);
  EXPECT_EQ(driver.state().events_recorded, 1);
}

TEST(Allocator, ReleasesWhatIsKeptBeforeItGivesUp) {
  FakeDriver driver;
  Allocator allocator;
  const Address large = allocator.allocate(size_t{150} << 20, nullptr);
  allocator.free(large, nullptr);
  allocator.allocate(size_t{200} << 20, nullptr);
  EXPECT_EQ(driver.state().live_allocations, 1);
  const std::string error = errorOf([&] { allocator.allocate(size_t{100} << 20, nullptr); });
  EXPECT_NE(error.find("CUDA out of memory"), std::string::npos) << error;
  // It works afterwards.
  allocator.allocate(size_t{20} << 20, nullptr);
}

TEST(Allocator, KeepsItsLimit) {
  FakeDriver driver;
  Allocator allocator;
  allocator.setLimit(size_t{32} << 20);
  allocator.allocate(size_t{30} << 20, nullptr);
  const std::string error = errorOf([&] { allocator.allocate(size_t{8} << 20, nullptr); });
  EXPECT_NE(error.find("the limit is 33554432"), std::string::npos) << error;
}

TEST(Backend, CudaIsTheCurrentDevice) {
  FakeDriver driver;
  const Tensor t = Tensor::zeros(DimVector{2, 3}, DType::Float, kCuda);
  EXPECT_EQ(t.device().str(), "cuda:0");
  EXPECT_EQ(placeOf(kCuda).index, 0);
  EXPECT_TRUE(moveTo(t, kCuda).isSame(t));
  const std::string error = errorOf([] { Tensor::zeros({}, DType::Float, {DeviceType::CUDA, 5}); });
  EXPECT_NE(error.find("there are 2 such devices"), std::string::npos) << error;
}

TEST(Backend, BytesComeBack) {
  FakeDriver driver;
  const Tensor t = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, DimVector{2, 3}).transpose(0, 1);
  const Tensor there = moveTo(t, kCuda);
  EXPECT_EQ(DimVector(there.strides()), DimVector(t.strides()));
  const Tensor back = moveTo(there, Device());
  EXPECT_EQ(back.select(0, 1).select(0, 1).item<float>(), 5);
  EXPECT_EQ(moveTo(there, kSecond).device().str(), "cuda:1");
  EXPECT_EQ(driver.state().launches, 0);
}

TEST(Backend, ConvertingCopiesAreKernels) {
  FakeDriver driver;
  const Tensor t = Tensor::zeros(DimVector{4, 5}, DType::Float, kCuda);
  if (errorOf([&] { t.to(DType::Half); }) != "no error") {
    GTEST_SKIP() << "there is no compiler for CUDA kernels";
  }
  EXPECT_EQ(driver.state().launches, 1);
  EXPECT_EQ(t.clone().device(), t.device());
  EXPECT_EQ(driver.state().launches, 1);  // a plain copy needs none
}

TEST(Backend, PrintsWhatIsOnADevice) {
  FakeDriver driver;
  const Tensor t = moveTo(Tensor::from({1.f, 2.f}), kCuda);
  EXPECT_EQ(IValue(t).str(), "tensor([1., 2.], device='cuda:0')");
  EXPECT_EQ(t.select(0, 1).item<float>(), 2);
}

TEST(Backend, MovedTensorsShareMemoryStill) {
  FakeDriver driver;
  const Tensor base = Tensor::zeros(DimVector{4}, DType::Float);
  const Tensor view = base.narrow(0, 1, 2);
  const IValue both[] = {IValue(base), IValue(view)};
  moveTensors(both, kCuda);
  EXPECT_TRUE(base.device().isCuda());
  EXPECT_TRUE(base.sharesStorage(view));
  EXPECT_EQ(driver.state().copies_to_device, 1);
}

TEST(Dispatch, OperatorsOfSeveralDevicesRefuse) {
  FakeDriver driver;
  const Tensor here = Tensor::zeros(DimVector{2}, DType::Float);
  const Tensor there = moveTo(here, kCuda), elsewhere = moveTo(here, kSecond);
  const std::string error = errorOf([&] { ops::add(there, here, Scalar(1)); });
  EXPECT_NE(error.find("Expected all tensors to be on the same device, but found at least two "
                       "devices, cuda:0 and cpu!"),
            std::string::npos)
      << error;
  EXPECT_NE(errorOf([&] { ops::add(there, elsewhere, Scalar(1)); }).find("cuda:0 and cuda:1!"),
            std::string::npos);
}

TEST(Dispatch, WithoutAKernelTheOperatorIsNamed) {
  FakeDriver driver;
  const Tensor t = Tensor::zeros(DimVector{3}, DType::Float, kCuda);
  static const OperatorHandle kPoisson{"aten::poisson", ""};
  const std::string error = errorOf([&] { kPoisson(t); });
  EXPECT_NE(error.find("aten::poisson: not available on device cuda:0"), std::string::npos)
      << error;
  setDeviceFallback(true);
  EXPECT_EQ(kPoisson(t).device().str(), "cuda:0");
  setDeviceFallback(false);
  ASSERT_FALSE(deviceFallbacks().empty());
  EXPECT_EQ(deviceFallbacks().back().op, "aten::poisson");
}

// Where neither a kernel nor a loop form takes a dtype or a shape, the CPU's words are used, if it refuses them too.
TEST(Dispatch, WhatNoLoopFormTakesIsToldAsOnTheCpu) {
  FakeDriver driver;
  const auto zeros = [](const DimVector& sizes, DType dtype) {
    return Tensor::zeros(sizes, dtype, kCuda);
  };
  const Tensor complex = zeros({2, 3}, DType::ComplexFloat), labels = zeros({2}, DType::Long);
  static const OperatorHandle kSoftmax{"aten::softmax", "int"}, kMax{"aten::max", "dim"},
      kNorm{"aten::group_norm", ""}, kLoss{"aten::nll_loss_nd", ""},
      kLogSumExp{"aten::logsumexp", ""};
  EXPECT_EQ(errorOf([&] { kSoftmax(complex, int64_t{0}, IValue()); }),
            "softmax: no kernel for dtype complex64");
  EXPECT_EQ(errorOf([&] { kMax(complex, int64_t{0}, false); }),
            "max(): does not support complex input");
  EXPECT_EQ(errorOf([&] {
              kNorm(zeros({2, 4, 3}, DType::Long), int64_t{2}, Tensor(), Tensor(), 1e-5, false);
            }),
            "group_norm: no kernel for dtype int64");
  EXPECT_EQ(errorOf([&] {
              kLoss(zeros({2, 3}, DType::Long), labels, Tensor(), int64_t{1}, int64_t{-100});
            }),
            "nll_loss: no kernel for dtype int64");
  const Tensor deep = zeros(DimVector(10, 2), DType::Float);
  EXPECT_EQ(errorOf([&] {
              kLogSumExp(deep, DimVector{0, 2, 4, 6, 8}, false);
            }),
            "aten::logsumexp: not available on device cuda:0");
}

TEST(Device, UnknownComplaintsOfKernelsAreErrors) {
  FakeDriver driver;
  CudaDevice& device = deviceAt(0);
  *reinterpret_cast<int64_t*>(device.flagAddress()) = 1 << 30;
  EXPECT_NE(errorOf([&] { device.synchronizeAll(); }).find("CUDA: a kernel found an unknown error"),
            std::string::npos);
  device.synchronizeAll();
}

TEST(Dispatch, ViewsAreNoWork) {
  FakeDriver driver;
  const Tensor t = Tensor::zeros(DimVector{3, 4}, DType::Float, kCuda);
  static const OperatorHandle kTranspose{"aten::transpose", "int"};
  const Tensor view = kTranspose(t, 0, 1);
  EXPECT_TRUE(view.sharesStorage(t));
  EXPECT_EQ(driver.state().launches, 0);
}

TEST(Meta, SizesWithoutNumbers) {
  const Device meta{DeviceType::Meta, -1};
  const Tensor a = Tensor::zeros(DimVector{3, 1}, DType::Float, meta);
  const Tensor b = Tensor::zeros(DimVector{4}, DType::Half, meta);
  const Tensor sum = ops::add(a, b, Scalar(1));
  EXPECT_EQ(sum.describe(), "float32[3, 4] on meta");
  const std::string error = errorOf([&] { sum.select(0, 0).select(0, 0).item<float>(); });
  EXPECT_NE(error.find("Cannot copy out of meta tensor; no data!"), std::string::npos) << error;
}

}  // namespace
}  // namespace wick::cuda::backend_test
