// Kernels that the compiler refuses, without a GPU: for an architecture that it does not know. They are
// remembered for the driver's device, so other tests are not concerned.
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::compile_failure_test {
namespace {

using testing_errors::errorOf;

class Refused : public testing::Test {
 protected:
  void SetUp() override {
    if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
    driver_.state().major = 1;
  }
  // What a call says, twice: compiling is not tried again.
  static void expectError(const std::string& name, const std::function<void()>& call) {
    for (int i = 0; i < 2; ++i) {
      const std::string error = errorOf(call);
      EXPECT_NE(error.find(name + ": its kernel cannot be compiled for cuda:0: CUDA: a kernel does "
                                  "not compile: "),
                std::string::npos)
          << error;
      EXPECT_NE(error.find("gpu-architecture"), std::string::npos) << error;
    }
  }
  FakeDriver driver_;
};

TEST_F(Refused, TheErrorHasTheCompilersWords) {
  static const OperatorHandle kMul{"aten::mul", "Tensor"}, kSum{"aten::sum", ""};
  const Tensor t = Tensor::zeros(DimVector{3, 4}, DType::Float, {DeviceType::CUDA, -1});
  const Tensor c = Tensor::zeros(DimVector{3, 4}, DType::ComplexFloat, {DeviceType::CUDA, -1});
  expectError("aten::mul", [&] { kMul(t, t); });
  expectError("mul", [&] { kMul(c, c); });
  expectError("aten::sum", [&] { kSum(t); });
  EXPECT_EQ(driver_.state().launches, 0u);
}

TEST_F(Refused, WithFallbackTheCpuComputes) {
  static const OperatorHandle kSum{"aten::sum", ""};
  const double numbers[] = {1, 2, 3};
  const Tensor t = moveTo(Tensor::fromData(numbers, DimVector{3}), {DeviceType::CUDA, -1});
  setDeviceFallback(true);
  const Tensor sum = moveTo(kSum(t), Device());
  setDeviceFallback(false);
  EXPECT_EQ(sum.item<double>(), 6);
}

}  // namespace
}  // namespace wick::cuda::compile_failure_test
