// Stages on devices of a driver that is a fake one: copies, marks and what waits for what.
#include "streams/cuda/stage_devices.h"

#include <gtest/gtest.h>

#include "core/device_backend.h"
#include "core/error.h"
#include "runtime/cuda/device.h"
#include "tests/cuda/fake_driver.h"

namespace wick::streams::stage_devices_test {
namespace {

constexpr Device kFirst{DeviceType::CUDA, 0}, kSecond{DeviceType::CUDA, 1};

std::vector<float> numbersOf(const Tensor& tensor) {
  const Tensor there = tensor.contiguous();
  return {there.data<float>(), there.data<float>() + there.numel()};
}

TEST(CudaStages, PacketsGoFromDeviceToDeviceAndBack) {
  cuda::FakeDriver driver;
  const auto devices = cudaStages();
  EXPECT_EQ(devices->count(), 2);
  const auto first = devices->open(kFirst), second = devices->open(kSecond);
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  Packet packet = {x, 7, makeTuple({x, "text"}), makeList(types::Tensor(), {x.narrow(1, 1, 2)})};
  devices->enter(*first);
  EXPECT_EQ(cuda::currentDevice(), 0);
  devices->bring(*first, packet, nullptr, nullptr);
  EXPECT_EQ(packet[0].toTensor().device(), kFirst);
  // The same tensor stays one.
  EXPECT_TRUE(packet[0].toTensor().isSame(packet[2].elements()[0].toTensor()));
  const auto ready = devices->mark(*first);
  const uint64_t to_host = driver.state().copies_to_host, waits = driver.state().waits;
  const uint64_t waited = driver.state().synchronizations;
  devices->enter(*second);
  EXPECT_EQ(cuda::currentDevice(), 1);
  const Tensor held = packet[0].toTensor();
  devices->bring(*second, packet, first.get(), ready.get());
  EXPECT_EQ(packet[0].toTensor().device(), kSecond);
  EXPECT_EQ(packet[3].elements()[0].toTensor().device(), kSecond);
  EXPECT_EQ(packet[1].toInt(), 7);
  // The copy waits for the mark, both devices for the copy, and nobody for a device.
  EXPECT_EQ(driver.state().waits, waits + 3);
  EXPECT_EQ(driver.state().synchronizations, waited);
  EXPECT_EQ(driver.state().copies_to_host, to_host);
  const auto done = devices->mark(*second);
  devices->bringToCpu(packet, *second, *done);
  EXPECT_EQ(numbersOf(packet[0].toTensor()), (std::vector<float>{1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(numbersOf(packet[3].elements()[0].toTensor()), (std::vector<float>{2, 3, 5, 6}));
  EXPECT_EQ(packet[2].elements()[1].repr(), "'text'");
  EXPECT_EQ(held.device(), kFirst);
  cuda::setCurrentDevice(0);
  cuda::setCurrentStream(0, nullptr);
  cuda::setCurrentStream(1, nullptr);
}

TEST(CudaStages, DevicesThatAreNotThere) {
  cuda::FakeDriver driver;
  EXPECT_THROW(cudaStages()->open({DeviceType::CUDA, 5}), RuntimeError);
}

// "cuda" without an index is each thread's own device.
TEST(CudaStages, TheDefaultDeviceFollowsTheThread) {
  cuda::FakeDriver driver;
  setDefaultDevice({DeviceType::CUDA, -1});
  EXPECT_EQ(defaultDevice(), kFirst);
  const auto second = cudaStages()->open(kSecond);
  cudaStages()->enter(*second);
  EXPECT_EQ(defaultDevice(), kSecond);
  setDefaultDevice(kFirst);
  EXPECT_EQ(defaultDevice(), kFirst);
  setDefaultDevice(Device());
  cuda::setCurrentDevice(0);
  cuda::setCurrentStream(1, nullptr);
}

}  // namespace
}  // namespace wick::streams::stage_devices_test
