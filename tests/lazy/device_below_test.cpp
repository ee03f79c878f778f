// Lazy tensors whose data are on another device than the CPU: what is copied where, and what is
// refused. The other tests of lazy tensors run over this device too.
#include <gmock/gmock.h>

#include <functional>

#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "tests/lazy/simulated_device.h"
#include "wick_ops.h"

namespace wick::device_below_test {
namespace {

using testing::HasSubstr;

constexpr Device kCuda{DeviceType::CUDA, 0};

class DeviceBelow : public Lazy {
 protected:
  void SetUp() override {
    Lazy::SetUp();
    before_ = state();
  }
  void TearDown() override { state().lacks.clear(); }
  static SimulatedDevice::State& state() { return SimulatedDevice::state(); }
  uint64_t copiesThere() const { return state().to_device - before_.to_device; }
  uint64_t copiesBack() const { return state().to_host - before_.to_host; }

 private:
  SimulatedDevice::State before_;
};

TEST_F(DeviceBelow, StepsStayThere) {
  const Tensor w = numbers({5, 3}, 7);
  Tensor on_lazy = lazyOf(w), want = w.clone();
  const Tensor x = numbers({8, 5}), a = lazyOf(x);
  const uint64_t moved = copiesThere();
  for (int step = 0; step < 4; ++step) {
    const auto move = [&](const Tensor& t, const Tensor& at) {
      return ops::sub(
          t, ops::mul(ops::matmul(at.transpose(0, 1), ops::matmul(at, t)), Scalar(0.01 + step)));
    };
    on_lazy = move(on_lazy, a);
    want = move(want, x);
    lazy::markStep();
  }
  EXPECT_EQ(copiesThere(), moved);
  EXPECT_EQ(copiesBack(), 0u);
  EXPECT_EQ(lazy::counters().compiled, 1u);
  expectNear(on_lazy, want);
  EXPECT_EQ(copiesBack(), 1u);
  EXPECT_EQ(on_lazy.device().str(), "lazy");
  EXPECT_EQ(lazy::device().str(), "cuda:0");
}

TEST_F(DeviceBelow, WhatTheGraphMakesIsMadeThere) {
  static const OperatorHandle kFill("aten::fill_", "Scalar");
  const Tensor a = lazyOf(numbers({4, 3}));
  const uint64_t moved = copiesThere();
  const Tensor made = Tensor::empty({4, 3}, DType::Float, kOnLazy);
  kFill(made, Scalar(2.5));
  const Tensor sum = ops::add(ops::mul(a, made), Tensor::zeros({4, 3}, DType::Float, kOnLazy));
  const Tensor strided = Tensor::emptyStrided({4, 3}, {1, 4}, DType::Float, kOnLazy);
  strided.copyFrom(sum);
  lazy::markStep();
  EXPECT_LE(copiesThere(), moved + 1);  // the number that fills
  expectSame(strided, ops::mul(numbers({4, 3}), Scalar(2.5)));
  // A number on the CPU joins.
  expectSame(ops::mul(a, Tensor::scalar(2.0f)), ops::mul(numbers({4, 3}), Scalar(2)));
}

TEST_F(DeviceBelow, TensorsOfTheDeviceItself) {
  const Tensor x = numbers({6}), there = moveTo(x, kCuda);
  const uint64_t moved = copiesThere();
  const Tensor a = lazyOf(there), doubled = ops::mul(a, Scalar(2));
  const Tensor back = moveTo(doubled, kCuda);
  EXPECT_EQ(back.device(), kCuda);
  EXPECT_EQ(copiesThere(), moved);
  EXPECT_EQ(copiesBack(), 0u);
  expectSame(back, ops::mul(x, Scalar(2)));
  // As tensors of two devices.
  EXPECT_THAT(errorOf([&] { ops::add(a, there); }), HasSubstr("lazy and cuda:0"));
  EXPECT_THAT(errorOf([&] { ops::add(a, x); }), HasSubstr("lazy and cpu"));
  // Writes to the one are not seen by the other.
  there.fill(0);
  expectSame(a, x);
}

TEST_F(DeviceBelow, WhatItLacksIsAnError) {
  const Tensor x = numbers({6}), a = lazyOf(x);
  state().lacks = {"aten::erfinv"};
  const Tensor wrong = ops::erfinv(a), right = ops::neg(a);
  EXPECT_THAT(errorOf([] { lazy::markStep(); }),
              HasSubstr("aten::erfinv: not available on device cuda:0"));
  EXPECT_EQ(copiesBack(), 0u);
  expectSame(right, ops::neg(x));
  EXPECT_THAT(errorOf([&] { moveTo(wrong, Device()); }), HasSubstr("not available"));
}

TEST_F(DeviceBelow, CallsThatRunAtOnce) {
  static const OperatorHandle kNonzero("aten::nonzero", ""), kRandom("aten::bernoulli_", "float");
  const Tensor x = numbers({6}), a = lazyOf(x);
  const uint64_t calls = state().calls;
  const Tensor found = kNonzero(ops::gt(a, Scalar(0)));
  EXPECT_GT(state().calls, calls);
  EXPECT_EQ(copiesBack(), 0u);
  EXPECT_EQ(found.device().str(), "lazy");
  expectSame(found, kNonzero(ops::gt(x, Scalar(0))));
  const uint64_t back = copiesBack();
  kRandom(a, 1.0, IValue());
  EXPECT_EQ(copiesBack(), back);
  expectSame(a, Tensor::full({6}, 1, DType::Float));
}

TEST_F(DeviceBelow, MemoryThatGrows) {
  const Tensor x = numbers({3}), a = lazyOf(x);
  lazy::markStep();
  a.resize({5});
  const Tensor sum = ops::add(a, Scalar(1));
  const Tensor got = moveTo(sum, Device());
  expectSame(got.asStrided({3}, {1}, 0), ops::add(x, Scalar(1)));
}

TEST_F(DeviceBelow, TheDeviceStaysWhileThereAreData) {
  {
    const Tensor a = lazyOf(numbers({3}));
    EXPECT_THAT(errorOf([] { lazy::setDevice(Device()); }),
                HasSubstr("1 lazy tensor has its data on cuda:0"));
    lazy::setDevice(kCuda);  // where it is
  }
  for (const Device bad : {kOnLazy, Device{DeviceType::Meta, -1}}) {
    EXPECT_THAT(errorOf([&] { lazy::setDevice(bad); }), HasSubstr("cannot be on"));
  }
  EXPECT_THAT(errorOf([] { lazy::setDevice({DeviceType::CUDA, 7}); }), HasSubstr("cuda:7"));
  // One compiled graph serves both.
  const auto compute = [] {
    expectSame(ops::add(ops::relu(lazyOf(numbers({4}))), Scalar(2.5)),
               ops::add(ops::relu(numbers({4})), Scalar(2.5)));
  };
  compute();
  lazy::setDevice(Device());
  const uint64_t moved = copiesThere();
  compute();
  EXPECT_EQ(copiesThere(), moved);
  lazy::setDevice(kCuda);
  compute();
  EXPECT_EQ(lazy::counters().compiled, 1u);
}

// An update with two averages of a gradient that another kernel computes.
struct Weights {
  Tensor w, first, second;
};
void update(const Weights& to, const Tensor& x) {
  static const OperatorHandle kAdd("aten::add_", "Tensor"), kSub("aten::sub_", "Tensor"),
      kMul("aten::mul_", "Scalar");
  const Tensor gradient = ops::matmul(x.transpose(0, 1), ops::matmul(x, to.w));
  kAdd(kMul(to.first, Scalar(0.75)), gradient, Scalar(0.25));
  kAdd(kMul(to.second, Scalar(0.5)), ops::mul(gradient, gradient), Scalar(0.5));
  kSub(to.w, ops::add(to.first, to.second, Scalar(0.125)), Scalar(0.001));
}

class DonationBelow : public DeviceBelow {
 protected:
  static constexpr int64_t kRows = 64, kColumns = 96;
  static constexpr double kWeight = kRows * kColumns * sizeof(float);
  void SetUp() override {
    DeviceBelow::SetUp();
    state().runs_groups = true;
  }
  void TearDown() override {
    state().runs_groups = false;
    DeviceBelow::TearDown();
  }
  // In weights, beyond what is there between steps.
  static double peakOf(const std::function<void()>& step) {
    const size_t before = state().bytes;
    state().peak_bytes = before;
    step();
    return static_cast<double>(state().peak_bytes - before) / kWeight;
  }
  static Weights weights() {
    return {numbers({kRows, kColumns}, 1), numbers({kRows, kColumns}, 3),
            numbers({kRows, kColumns}, 4)};
  }
  static Weights onLazy(const Weights& from) {
    return {lazyOf(from.w), lazyOf(from.first), lazyOf(from.second)};
  }
  static void expectNearAll(const Weights& got, const Weights& want) {
    expectNear(got.w, want.w);
    expectNear(got.first, want.first);
    expectNear(got.second, want.second);
  }
};

TEST_F(DonationBelow, NewWeightsLieWhereTheOldOnesWere) {
  const Tensor x = numbers({4, kRows}, 2), there = lazyOf(x);
  const Weights want = weights(), w = onLazy(want);
  lazy::markStep();
  for (int step = 0; step < 3; ++step) {
    const double peak = peakOf([&] {
      update(w, there);
      lazy::markStep();
    });
    EXPECT_LT(peak, 1.5);  // the gradient alone
    update(want, x);
    expectNearAll(w, want);
  }
  // Another holder keeps the old data, so the new ones lie elsewhere.
  const Tensor before = w.w.clone(), had = moveTo(before, Device());
  const size_t bytes = state().bytes;
  update(w, there);
  lazy::markStep();
  EXPECT_EQ(static_cast<double>(state().bytes - bytes), kWeight);
  expectSame(before, had);
  update(want, x);
  expectNearAll(w, want);
  // And so do all where a value is looked at in the midst of a step.
  update(w, there);
  EXPECT_GT(peakOf([&] { moveTo(w.w.select(0, 1), Device()); }), 1.5);
  update(want, x);
  expectNearAll(w, want);
}

TEST_F(DonationBelow, NotWhereMemoryMayStillBeRead) {
  state().runs_groups = false;  // as on a stream of the program's own
  const Tensor x = numbers({4, kRows}, 2), there = lazyOf(x);
  const Weights want = weights(), w = onLazy(want);
  lazy::markStep();
  const double peak = peakOf([&] {
    update(w, there);
    lazy::markStep();
  });
  EXPECT_GT(peak, 1.5);
  update(want, x);
  expectNearAll(w, want);
}

TEST_F(DonationBelow, AFailedStepLosesNothing) {
  static const OperatorHandle kSelect("aten::index_select", ""), kSub("aten::sub_", "Tensor");
  const Tensor x = numbers({4, kRows}, 2), v = lazyOf(numbers({4, kColumns}, 3));
  const Weights want = weights(), w = onLazy(want);
  lazy::markStep();
  const Tensor picked = kSelect(w.w, 0, lazyOf(Tensor::from(std::vector<int64_t>{1, 999, 0, 2})));
  update(w, lazyOf(x));
  const Tensor before = v.clone();
  kSub(v, picked, Scalar(0.5));
  EXPECT_THAT(errorOf([] { lazy::markStep(); }), HasSubstr("index"));
  expectSame(before, numbers({4, kColumns}, 3));
  update(want, x);
  expectNearAll(w, want);
}

}  // namespace
}  // namespace wick::device_below_test
