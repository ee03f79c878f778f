// Devices that stand for others.
#include "lazy/stand_in.h"

#include <gtest/gtest.h>

#include "core/error_types.h"
#include "core/tensor.h"
#include "tests/lazy/simulated_device.h"

namespace wick::lazy {
namespace {

TEST(StandIn, StandsForOneDevice) {
  const SimulatedDevice simulated;
  for (const Device device : {Device(), Device("cuda:0")}) {
    EXPECT_EQ(standInFor(device).type, DeviceType::Meta);
    EXPECT_EQ(stoodFor(standInFor(device)), device);
  }
  EXPECT_EQ(stoodFor(standInFor(Device("cuda"))), Device("cuda:0"));
  EXPECT_EQ(stoodFor(Device("cuda:0")), Device("cuda:0"));
  EXPECT_EQ(stoodFor(Device("meta")), Device());
}

TEST(StandIn, TextsGiveNone) {
  for (const char* text : {"meta", "meta:0", "meta:3"}) {
    EXPECT_EQ(Tensor::empty({2}, DType::Float, Device(text)).device(), Device("meta")) << text;
  }
}

TEST(StandIn, OtherDevicesHaveNone) {
  EXPECT_THROW(standInFor(Device("lazy")), RuntimeError);
  const SimulatedDevice simulated;
  EXPECT_THROW(standInFor(Device("cuda:1")), RuntimeError);
}

TEST(StandIn, TensorsMoveBetweenThem) {
  const SimulatedDevice simulated;
  const Device cuda = standInFor(Device("cuda"));
  const Tensor t = Tensor::empty({2, 3}, DType::Float, cuda);
  EXPECT_EQ(t.device(), cuda);
  const Tensor moved = t.to(Device("meta"));
  EXPECT_EQ(moved.device(), Device("meta"));
  EXPECT_FALSE(moved.sharesStorage(t));
  EXPECT_TRUE(t.to(cuda).isSame(t));
}

}  // namespace
}  // namespace wick::lazy
