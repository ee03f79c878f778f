// Frozen steps: the same bits without recording, and every way to break the promise.
#include <gmock/gmock.h>

#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "wick_ops.h"

namespace wick::frozen_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Frozen : public Lazy {
 protected:
  void TearDown() override { lazy::thawStep(); }
};

TEST_F(Frozen, StepsAreFollowed) {
  Tensor w = lazyOf(numbers({5, 3}, 1)), want = numbers({5, 3}, 1);
  lazy::freezeStep();
  for (int i = 0; i < 6; ++i) {
    // Other data, another size, another number, a view and a write.
    const Tensor x = numbers({4 + i, 5}, 10 + i);
    const auto step = [&](const Tensor& weight, const Tensor& in) {
      static const OperatorHandle kSub("aten::sub_", "Tensor");
      const Tensor y = ops::tanh(ops::matmul(in.slice(0, 1, 4), weight));
      const Tensor change = ops::matmul(in.slice(0, 1, 4).transpose(0, 1), y);
      kSub(weight, change, Scalar(0.5 / (i + 1)));
      return y;
    };
    const Tensor got = step(w, lazyOf(x));
    lazy::markStep();
    expectSame(got, step(want, x));
    expectSame(w, want);
  }
  EXPECT_EQ(lazy::counters().followed, 5u);
  EXPECT_EQ(lazy::counters().compiled + lazy::counters().found, 1u);
}

TEST_F(Frozen, AStepMayBeSeveralGraphs) {
  lazy::freezeStep();
  for (int i = 0; i < 4; ++i) {
    const Tensor x = numbers({6}, i);
    const Tensor a = ops::mul(lazyOf(x), Scalar(3));
    expectSame(a, ops::mul(x, Scalar(3)));  // looks at it
    const Tensor b = ops::exp(a);
    lazy::markStep();
    lazy::markStep();  // an empty one is no step
    expectSame(b, ops::exp(ops::mul(x, Scalar(3))));
  }
  EXPECT_EQ(lazy::counters().followed, 6u);
}

TEST_F(Frozen, ABrokenPromiseIsRaisedAndLosesNothing) {
  const Tensor x = numbers({3, 3});
  lazy::freezeStep();
  for (int i = 0; i < 2; ++i) {
    const Tensor t = ops::add(ops::neg(lazyOf(x)), lazyOf(x), Scalar(2.5));
    lazy::markStep();
  }
  const Tensor first = ops::neg(lazyOf(x));
  EXPECT_THAT(errorOf([&] { ops::exp(first); }),
              AllOf(HasSubstr("freeze_step"), HasSubstr("this is aten::exp"),
                    HasSubstr("What came here before was aten::add")));
  // The call may be made again, and what came before it is there.
  const Tensor again = ops::exp(first);
  lazy::markStep();
  expectSame(again, ops::exp(ops::neg(x)));
  expectSame(first, ops::neg(x));
}

TEST_F(Frozen, BrokenByConstantsKindsAndEnds) {
  const Tensor x = numbers({3, 3});
  const auto steps = [&](auto usual, auto other) {
    lazy::thawStep();
    lazy::markStep();
    lazy::freezeStep();
    for (int i = 0; i < 2; ++i) {
      usual();
      lazy::markStep();
    }
    return errorOf([&] {
      other();
      lazy::markStep();
    });
  };
  Tensor kept, more;
  static const OperatorHandle kSum("aten::sum", "dim_IntList");
  const auto sum = [&](int64_t dim) {
    return [&, dim] { kept = kSum(lazyOf(x), DimVector{dim}, false); };
  };
  EXPECT_THAT(steps(sum(0), sum(1)), HasSubstr("another constant"));
  const auto scaled = [&](double by) {
    return [&, by] { kept = ops::mul(lazyOf(x), Scalar(by)); };
  };
  EXPECT_EQ(steps(scaled(3), scaled(1)), "no error");  // computes, where another graph elides
  expectSame(kept, x);
  EXPECT_THAT(steps(scaled(1), scaled(3)), HasSubstr("another constant"));
  const auto swapped = [&](bool swap) {
    return [&, swap] {
      const Tensor a = lazyOf(x), b = ops::neg(a);
      kept = swap ? ops::sub(b, a) : ops::sub(a, b);
    };
  };
  EXPECT_THAT(steps(swapped(false), swapped(true)), HasSubstr("another tensor"));
  EXPECT_THAT(steps(scaled(3), [&] { kept = ops::mul(lazyOf(x.to(DType::Double)), Scalar(3.0)); }),
              HasSubstr("another dtype"));
  EXPECT_THAT(steps(scaled(3),
                    [&] {
                      kept = ops::mul(lazyOf(x), Scalar(3.0));
                      more = ops::neg(kept);
                    }),
              HasSubstr("aten::neg"));
  EXPECT_THAT(steps(
                  [&] {
                    const Tensor t = ops::mul(lazyOf(x), Scalar(3.0));
                    kept = ops::neg(t);
                  },
                  [&] {
                    more = ops::mul(lazyOf(x), Scalar(3.0));
                    kept = ops::neg(more);
                  }),
              HasSubstr("lives at its end"));
  EXPECT_EQ(errorOf([] { lazy::markStep(); }), "no error");
  expectSame(more, ops::mul(x, Scalar(3.0)));
  expectSame(kept, ops::neg(ops::mul(x, Scalar(3.0))));
  EXPECT_THAT(steps([&] { kept = ops::neg(ops::mul(lazyOf(x), Scalar(3.0))); },
                    [&] { kept = ops::mul(lazyOf(x), Scalar(3.0)); }),
              HasSubstr("before all calls are made"));
  expectSame(kept, ops::mul(x, Scalar(3.0)));
}

TEST_F(Frozen, AFailedStepLosesNothingAndTheNextOneIsFollowed) {
  static const OperatorHandle kSelect("aten::index_select", "");
  lazy::freezeStep();
  const Tensor x = numbers({3, 4});
  for (int i = 0; i < 4; ++i) {
    const int64_t index = i == 2 ? 7 : 1;
    const Tensor a = lazyOf(x);
    const Tensor right = ops::mul(a, Scalar(2.5 + i));
    const Tensor picked = kSelect(a, 0, lazyOf(Tensor::from(std::vector<int64_t>{index})));
    const std::string message = errorOf([] { lazy::markStep(); });
    EXPECT_THAT(message, HasSubstr(i == 2 ? "index" : "no error"));
    expectSame(right, ops::mul(x, Scalar(2.5 + i)));
    if (i == 2) {
      EXPECT_THAT(errorOf([&] { moveTo(picked, Device()); }), HasSubstr("index"));
    } else {
      expectSame(picked, x.slice(0, 1, 2));
    }
  }
  EXPECT_EQ(lazy::counters().followed, 3u);
}

TEST_F(Frozen, WhatMakesTensorsIsFollowed) {
  static const OperatorHandle kFill("aten::fill_", "Scalar"), kTo("aten::to", "device");
  for (int step = 0; step < 5; ++step) {
    const Tensor x = numbers({3, 4}, step), a = lazyOf(x);
    const Tensor made = Tensor::empty({3, 4}, DType::Float, kOnLazy);
    kFill(made, Scalar(2.5));
    const Tensor sum = kTo(ops::add(a, made), kOnLazy, DType::Float, false, true, IValue());
    const Tensor strided = Tensor::emptyStrided({3, 4}, {1, 3}, DType::Float, kOnLazy);
    strided.copyFrom(sum);
    lazy::markStep();
    expectSame(strided, ops::add(x, Scalar(2.5)));
    if (step == 1) lazy::freezeStep();
  }
  EXPECT_EQ(lazy::counters().followed, 2u);
  lazy::thawStep();
}

TEST_F(Frozen, ThawedStepsAreRecorded) {
  lazy::freezeStep();
  const Tensor x = numbers({3, 4});
  Tensor t;
  for (int i = 0; i < 2; ++i) {
    t = ops::mul(lazyOf(x), Scalar(3.0));
    lazy::markStep();
  }
  const Tensor half = ops::mul(lazyOf(x), Scalar(3.0));
  EXPECT_THAT(lazy::dump(), HasSubstr("aten::mul"));
  lazy::thawStep();
  expectSame(ops::exp(half), ops::exp(ops::mul(x, Scalar(3.0))));
  EXPECT_EQ(lazy::counters().followed, 1u);
}

}  // namespace
}  // namespace wick::frozen_test
