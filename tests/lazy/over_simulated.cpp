// With this file a test of lazy tensors has their data on a simulated device.
#include <gtest/gtest.h>

#include "lazy/lazy.h"
#include "tests/lazy/lazy_testing.h"
#include "tests/lazy/simulated_device.h"

namespace wick {
namespace {

class OverSimulated : public testing::Environment {
 public:
  void SetUp() override {
    static SimulatedDevice& device = *new SimulatedDevice;  // statics of tests may outlive main
    static_cast<void>(device);
    lazy::setDevice({DeviceType::CUDA, -1});
  }
  void TearDown() override { EXPECT_GT(SimulatedDevice::state().calls, 0u); }
};
const auto* const environment = testing::AddGlobalTestEnvironment(new OverSimulated);

}  // namespace
}  // namespace wick
