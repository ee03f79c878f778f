// Scales of losses and gradients: the operators on both devices, and the class.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/grad_mode.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"
#include "training/backward.h"
#include "training/grad_scaler.h"

namespace wick::scaling_test {
namespace {

const OperatorHandle kUnscale{"aten::_amp_foreach_non_finite_check_and_unscale_", ""};
const OperatorHandle kUnscaled{"aten::_amp_foreach_non_finite_check_and_unscale", ""};
const OperatorHandle kUpdate{"aten::_amp_update_scale_", ""};
const OperatorHandle kUpdated{"aten::_amp_update_scale", ""};
constexpr float kInfinity = std::numeric_limits<float>::infinity();

Tensor number(double v, DType type = DType::Float) {
  return Tensor::full(DimVector{}, v, type);
}

TEST(Scaling, GradientsAreDividedAndLookedAt) {
  for (const DType type : {DType::Half, DType::BFloat16, DType::Float, DType::Double}) {
    const Tensor a = Tensor::from({2.f, -4.f, 8.f}).to(type);
    const Tensor b = Tensor::from({1.f, 2.f, 3.f, 4.f}, DimVector{2, 2}).to(type).transpose(0, 1);
    const Tensor gaps = Tensor::from({1.f, 9.f, 3.f, 9.f}, DimVector{2, 2}).to(type).select(1, 0);
    const Tensor found = number(0);
    kUnscale.all(std::vector<Tensor>{a, b, gaps}, found, number(0.5));
    EXPECT_EQ(a.to(DType::Float).select(0, 2).item<float>(), 4);
    EXPECT_EQ(b.to(DType::Float).select(0, 0).select(0, 1).item<float>(), 1.5f);
    EXPECT_EQ(gaps.to(DType::Float).select(0, 1).item<float>(), 1.5f);
    EXPECT_EQ(found.item<float>(), 0);
    for (const double bad : {static_cast<double>(kInfinity), std::nan("")}) {
      const Tensor c = Tensor::full(DimVector{3}, bad, type), before = number(0);
      kUnscale.all(std::vector<Tensor>{a, c}, before, number(1));
      EXPECT_EQ(before.item<float>(), 1);
      EXPECT_EQ(a.to(DType::Float).select(0, 2).item<float>(), 4);
    }
  }
  // The functional form leaves what it is given.
  const Tensor x = Tensor::from({kInfinity, 2.f}), found = number(0);
  const auto all = kUnscaled.all(std::vector<Tensor>{x}, found, number(0.5));
  EXPECT_EQ(all[0].elements()[0].toTensor().select(0, 1).item<float>(), 1);
  EXPECT_EQ(all[1].toTensor().item<float>(), 1);
  EXPECT_EQ(found.item<float>(), 0);
  EXPECT_EQ(x.select(0, 1).item<float>(), 2);
  EXPECT_ERROR(kUnscale.all(std::vector<Tensor>{x}, number(0, DType::Int), number(1)),
               "found_inf: expected one number of dtype float32");
}

TEST(Scaling, TheScaleFollowsWhatOverflowed) {
  const Tensor scale = number(8), tracker = number(0, DType::Int);
  const auto update = [&](double found) {
    kUpdate(scale, tracker, number(found), 2.0, 0.5, int64_t{2});
    return std::pair(scale.item<float>(), tracker.item<int32_t>());
  };
  EXPECT_EQ(update(0), std::pair(8.f, 1));
  EXPECT_EQ(update(0), std::pair(16.f, 0));
  EXPECT_EQ(update(0), std::pair(16.f, 1));
  EXPECT_EQ(update(1), std::pair(8.f, 0));
  scale.fill(std::numeric_limits<float>::max());
  update(0);
  EXPECT_EQ(update(0), std::pair(std::numeric_limits<float>::max(), 0));
  const auto both = kUpdated.all(scale, tracker, number(1), 2.0, 0.25, int64_t{2});
  EXPECT_EQ(both[0].toTensor().item<float>(), std::numeric_limits<float>::max() * 0.25f);
  EXPECT_EQ(scale.item<float>(), std::numeric_limits<float>::max());
}

TEST(Scaling, OnDevicesManyGradientsAreOneLaunch) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  cuda::FakeDriver driver;
  constexpr Device kCuda{DeviceType::CUDA, -1};
  std::vector<Tensor> gradients;
  for (int i = 0; i < 150; ++i)
    gradients.push_back(Tensor::zeros(DimVector{7}, DType::Float, kCuda));
  const Tensor found = Tensor::zeros({}, DType::Float, kCuda);
  const Tensor inverse = Tensor::zeros({}, DType::Float, kCuda);
  const auto launches = [&](auto call) {
    call();
    const uint64_t before = driver.state().launches;
    call();
    return driver.state().launches - before;
  };
  EXPECT_EQ(launches([&] { kUnscale.all(gradients, found, inverse); }), 1);
  for (int i = 0; i < 100; ++i) gradients.push_back(gradients[0]);
  gradients.push_back(Tensor::zeros(DimVector{2}, DType::BFloat16, kCuda));
  EXPECT_EQ(launches([&] { kUnscale.all(gradients, found, inverse); }), 3);
  const Tensor tracker = Tensor::zeros({}, DType::Int, kCuda);
  EXPECT_EQ(launches([&] { kUpdate(found, tracker, inverse, 2.0, 0.5, int64_t{9}); }), 1);
  const uint64_t waits = driver.state().synchronizations;
  EXPECT_EQ(kUnscaled.all(gradients, found, inverse).size(), 2u);
  EXPECT_EQ(driver.state().synchronizations, waits);
}

// Four steps with PyTorch's numbers, one of which overflows.
TEST(Scaling, TheClassDoesWhatPyTorchsDoes) {
  const Tensor w = Tensor::from({1.f, 2.f});
  w.setRequiresGrad(true);
  Optimizer optimizer({w}, Sgd{.lr = 0.5});
  GradScaler scaler({.init_scale = 1024, .growth_interval = 2});
  static const OperatorHandle kMul{"aten::mul", "Tensor"}, kSum{"aten::sum", ""};
  const auto step = [&](float x) {
    const GradModeGuard recorded(true);
    optimizer.zeroGrad();
    const Tensor loss = kSum(kMul(w, Tensor::from({x, 1.f})), std::optional<DType>());
    backward(scaler.scale(loss));
    const bool done = scaler.step(optimizer);
    scaler.update();
    return std::tuple(done, w.detach().select(0, 0).item<float>(), scaler.currentScale());
  };
  EXPECT_EQ(step(1), std::tuple(true, 0.5f, 1024.0));
  EXPECT_EQ(step(1), std::tuple(true, 0.f, 2048.0));
  EXPECT_EQ(step(kInfinity), std::tuple(false, 0.f, 1024.0));
  EXPECT_EQ(step(2), std::tuple(true, -1.f, 1024.0));
  const IValue state = scaler.stateDict();
  EXPECT_EQ(state.toDict().find(IValue("scale"))->toDouble(), 1024);
  EXPECT_EQ(state.toDict().find(IValue("_growth_tracker"))->toInt(), 1);
  GradScaler other;
  other.loadStateDict(state);
  EXPECT_EQ(other.currentScale(), 1024);
  EXPECT_TRUE(other.stateDict().equals(state));
  EXPECT_ERROR(other.loadStateDict(IValue(int64_t{1})), "expected a dict");
  EXPECT_ERROR(other.loadStateDict(GradScaler({.enabled = false}).stateDict()),
               "there is no 'growth_factor'");
}

TEST(Scaling, WrongUse) {
  const Tensor w = Tensor::from({1.f});
  w.setRequiresGrad(true);
  Optimizer optimizer({w}, Sgd{.lr = 0.5});
  GradScaler scaler;
  EXPECT_ERROR(scaler.step(optimizer), "before a loss was scaled");
  const GradModeGuard recorded(true);
  const Tensor loss = scaler.scale(w);
  EXPECT_ERROR(scaler.update(), "No inf checks were recorded prior to update.");
  EXPECT_ERROR(scaler.step(optimizer), "No inf checks were recorded for this optimizer.");
  backward(loss);
  scaler.update(4);
  scaler.unscale(optimizer);
  EXPECT_ERROR(scaler.unscale(optimizer), "unscale_() has already been called");
  EXPECT_TRUE(scaler.step(optimizer));
  EXPECT_ERROR(scaler.unscale(optimizer), "unscale_() is being called after step()");
  EXPECT_ERROR(scaler.step(optimizer), "step() has already been called");
  EXPECT_ERROR(GradScaler({.growth_factor = 1}), "the growth factor must be > 1.0");
  // One that is off changes nothing.
  GradScaler off({.enabled = false});
  EXPECT_TRUE(off.scale(loss).isSame(loss));
  EXPECT_TRUE(off.step(optimizer));
  off.update();
  EXPECT_EQ(off.currentScale(), 1);
}

}  // namespace
}  // namespace wick::scaling_test
