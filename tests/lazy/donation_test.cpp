// Donation: at a step's end updated weights lie in the memory of the old ones, when nobody else has
// it, and a step that fails or is stopped loses nothing.
#include <gmock/gmock.h>

#include <functional>

#include "core/budget.h"
#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "wick_ops.h"

namespace wick::donation_test {
namespace {

using testing::HasSubstr;

class Donation : public Lazy {};

constexpr int64_t kRows = 1024, kColumns = 2048;
constexpr double kWeight = kRows * kColumns * sizeof(float);

// An update with a gradient that cannot be computed within the same kernel.
void update(const Tensor& w, const Tensor& x) {
  static const OperatorHandle kSub("aten::sub_", "Tensor");
  kSub(w, ops::matmul(x.transpose(0, 1), ops::matmul(x, w)), Scalar(0.001));
}

// Bytes that a step needs at most beyond what is there between steps. Nothing before took more.
double peakOf(const std::function<void()>& step) {
  const size_t before = allocatedBytes();
  step();
  return static_cast<double>(peakAllocatedBytes()) - static_cast<double>(before);
}

TEST_F(Donation, ANewWeightLiesWhereTheOldOneWas) {
  const Tensor x = lazyOf(numbers({4, kRows}, 2)), want = numbers({kRows, kColumns}, 1);
  const Tensor w = lazyOf(want);
  lazy::markStep();
  const double peak = peakOf([&] {
    update(w, x);
    lazy::markStep();
  });
  RecordProperty("peak_in_weights", std::to_string(peak / kWeight));
  // The gradient alone; with the old weight kept it is twice that.
  EXPECT_LT(peak, 1.5 * kWeight);
  update(want, numbers({4, kRows}, 2));
  expectSame(w, want);
}

TEST_F(Donation, WhatOthersSeeStays) {
  const Tensor x = numbers({4, 8}, 2), start = numbers({8, 16}, 1);
  const Tensor w = lazyOf(start);
  const Tensor copy = ops::neg(w), same = w.clone(), row = w.select(0, 2);
  lazy::markStep();
  for (int i = 0; i < 3; ++i) {
    const Tensor before = w.clone();
    const Tensor want = moveTo(before, Device()).clone();
    update(w, lazyOf(x));
    lazy::markStep();
    expectSame(before, want);
    update(want, x);
    expectSame(w, want);
    expectSame(row, want.select(0, 2));
  }
  expectSame(same, start);
  expectSame(copy, ops::neg(start));
}

TEST_F(Donation, AFailedOrStoppedStepLosesNothing) {
  static const OperatorHandle kSelect("aten::index_select", "");
  const Tensor x = numbers({4, 8}, 2), want = numbers({8, 16}, 1);
  const Tensor w = lazyOf(want), v = lazyOf(numbers({4, 16}, 3));
  lazy::markStep();
  {
    // The update of v depends on a wrong index, that of w does not.
    const Tensor picked = kSelect(w, 0, lazyOf(Tensor::from(std::vector<int64_t>{1, 99, 0, 2})));
    update(w, lazyOf(x));
    const Tensor before = v.clone();
    static const OperatorHandle kSub("aten::sub_", "Tensor");
    kSub(v, picked, Scalar(0.5));
    EXPECT_THAT(errorOf([] { lazy::markStep(); }), HasSubstr("index"));
    expectSame(before, numbers({4, 16}, 3));
  }
  update(want, x);
  expectSame(w, want);
  update(w, lazyOf(x));
  {
    Budget stopped({.deadline = {},
                    .memory = 0,
                    .interrupt = std::make_shared<const std::atomic<bool>>(true)});
    const BudgetScope scope(&stopped);
    EXPECT_THAT(errorOf([] { lazy::markStep(); }), HasSubstr("nterrupt"));
  }
  lazy::markStep();
  update(want, x);
  expectSame(w, want);
}

}  // namespace
}  // namespace wick::donation_test
