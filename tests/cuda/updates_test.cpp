// Optimizers on CUDA devices: their kernels compile, and many parameters are one launch. What they
// compute is compared on a GPU (check_updates.cpp).
#include <gtest/gtest.h>

#include "autograd/tape.h"
#include "runtime/cuda/compiler.h"
#include "tests/cuda/fake_driver.h"
#include "training/optimizer.h"

namespace wick::updates_test {
namespace {

constexpr Device kCuda{DeviceType::CUDA, -1};

std::vector<Tensor> parameters(size_t count, DType dtype, int64_t size = 7) {
  std::vector<Tensor> made;
  for (size_t i = 0; i < count; ++i) {
    made.push_back(Tensor::zeros(DimVector{size}, dtype, kCuda));
    made.back().setRequiresGrad(true);
    autograd::setGradient(made.back(), Tensor::zeros(DimVector{size}, dtype, kCuda));
  }
  return made;
}

// Of a step behind the first, which makes buffers and compiles.
uint64_t launchesOfStep(cuda::FakeDriver& driver, Optimizer& optimizer) {
  optimizer.step();
  optimizer.step();
  const uint64_t before = driver.state().launches;
  optimizer.step();
  return driver.state().launches - before;
}

TEST(CudaUpdates, ManyParametersAreOneLaunch) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  cuda::FakeDriver driver;
  Optimizer few(parameters(60, DType::Float), Adam{});
  EXPECT_EQ(launchesOfStep(driver, few), 1);
  Optimizer many(parameters(160, DType::Float), AdamW{});
  EXPECT_EQ(launchesOfStep(driver, many), 3);
  // Nothing to do for those without elements, nor waiting, copies or memory of its own.
  Optimizer empty(parameters(3, DType::Float, 0), Adam{});
  EXPECT_EQ(launchesOfStep(driver, empty), 0);
  const cuda::FakeState before = driver.state();
  many.step();
  EXPECT_EQ(driver.state().allocations, before.allocations);
  EXPECT_EQ(driver.state().synchronizations, before.synchronizations);
  EXPECT_EQ(driver.state().copies_to_device, before.copies_to_device);
  EXPECT_EQ(driver.state().copies_on_device, before.copies_on_device);
}

TEST(CudaUpdates, DTypesAndSettingsAreLaunchesOfTheirOwn) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  cuda::FakeDriver driver;
  std::vector<Tensor> mixed = parameters(2, DType::Float);
  for (const DType dtype : {DType::Double, DType::Half, DType::BFloat16, DType::ComplexFloat}) {
    for (Tensor& p : parameters(2, dtype)) mixed.push_back(p);
  }
  // Complex numbers are pairs of real ones, and go with these.
  Optimizer optimizer(mixed, Sgd{.momentum = 0.9});
  EXPECT_EQ(launchesOfStep(driver, optimizer), 4);
  optimizer.addGroup(parameters(2, DType::Float), Sgd{.lr = 0.5, .momentum = 0.9});
  EXPECT_EQ(launchesOfStep(driver, optimizer), 5);
}

TEST(CudaUpdates, ParametersWithGapsOrSharedMemory) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  cuda::FakeDriver driver;
  const Tensor whole = Tensor::zeros(DimVector{4, 6}, DType::Float, kCuda);
  const auto parameterOf = [&](const Tensor& t) {
    const Tensor p = t.detach();
    p.setRequiresGrad(true);
    autograd::setGradient(p, Tensor::zeros(p.sizes(), DType::Float, kCuda));
    return p;
  };
  Optimizer gaps({parameterOf(whole.select(1, 0))}, Sgd{});
  EXPECT_EQ(launchesOfStep(driver, gaps), 3);  // the update between two copies
  // One after another, so that each begins with what the one before left.
  Optimizer shared({parameterOf(whole), parameterOf(whole)}, Sgd{});
  EXPECT_EQ(launchesOfStep(driver, shared), 2);
}

TEST(CudaUpdates, EveryRuleCompiles) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  cuda::FakeDriver driver;
  const std::vector<UpdateRule> rules = {
      Sgd{},
      Sgd{.momentum = 0.9, .dampening = 0.1, .weight_decay = 0.1},
      Sgd{.momentum = 0.9, .nesterov = true, .maximize = true},
      Adam{},
      Adam{.weight_decay = 0.1, .amsgrad = true},
      AdamW{},
      RmsProp{},
      RmsProp{.weight_decay = 0.1, .momentum = 0.9, .centered = true},
      Adagrad{.weight_decay = 0.1},
  };
  for (const UpdateRule& rule : rules) {
    Optimizer optimizer(parameters(2, DType::Float), rule);
    EXPECT_EQ(launchesOfStep(driver, optimizer), 1) << ruleName(rule);
  }
}

}  // namespace
}  // namespace wick::updates_test
