// Lazy tensors: what is recorded, when it runs, what the cache finds, and that results are those of
// tensors on the CPU, bit for bit.
#include "lazy/lazy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "core/grad_mode.h"
#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "wick.h"
#include "wick_ops.h"

namespace wick::lazy_test {
namespace {

using testing::HasSubstr;

TEST_F(Lazy, NothingRunsBeforeAValueIsLookedAt) {
  const Tensor x = numbers({4, 5}), y = numbers({4, 5}, 2);
  const Tensor a = lazyOf(x), b = lazyOf(y);
  const Tensor sum = ops::relu(ops::add(a, b, Scalar(2.5)));
  EXPECT_EQ(sum.device().str(), "lazy");
  EXPECT_EQ(lazy::counters().evaluations, 0u);
  EXPECT_EQ(lazy::counters().recorded, 2u);
  EXPECT_THAT(lazy::dump(), HasSubstr("aten::relu"));
  expectSame(sum, ops::relu(ops::add(x, y, Scalar(2.5))));
  EXPECT_EQ(lazy::counters().evaluations, 1u);
  EXPECT_EQ(lazy::counters().compiled, 1u);
  ASSERT_EQ(lazy::counters().causes.size(), 1u);
  EXPECT_EQ(lazy::counters().causes[0].what, "copy");
  // Once computed, it is data.
  expectSame(sum, ops::relu(ops::add(x, y, Scalar(2.5))));
  EXPECT_EQ(lazy::counters().evaluations, 1u);
}

TEST_F(Lazy, TheSecondStepIsFound) {
  for (int step = 0; step < 5; ++step) {
    const Tensor x = numbers({8, 3}, step);
    const Tensor y = ops::tanh(ops::mul(lazyOf(x), Scalar(0.5 + step)));
    lazy::markStep();
    expectSame(y, ops::tanh(ops::mul(x, Scalar(0.5 + step))));
  }
  EXPECT_EQ(lazy::counters().compiled, 1u);
  EXPECT_EQ(lazy::counters().found, 4u);
}

TEST_F(Lazy, OtherSizesCompileNothing) {
  const Tensor weight = numbers({7, 5}, 9);
  const Tensor w = lazyOf(weight);
  for (int batch = 2; batch < 202; ++batch) {
    const Tensor x = numbers({batch, 5}, batch);
    const auto f = [&](const Tensor& t, const Tensor& by) {
      static const OperatorHandle kView("aten::view", ""), kExpand("aten::expand", "");
      const Tensor product = ops::matmul(t, by.transpose(0, 1));
      return kView(ops::relu(product), DimVector{batch * 7});
    };
    expectSame(f(lazyOf(x), w), f(x, weight));
  }
  EXPECT_LE(lazy::counters().compiled, 3u);
}

TEST_F(Lazy, WhatNobodyNeedsIsNotComputed) {
  const Tensor a = lazyOf(numbers({4}));
  Tensor kept;
  {
    const Tensor unused = ops::exp(a);
    kept = ops::neg(a);
  }
  lazy::markStep();
  const Tensor b = lazyOf(numbers({4})), again = ops::neg(b);
  lazy::markStep();
  EXPECT_EQ(lazy::counters().compiled, 1u);  // the same graph as without exp
  expectSame(again, kept.device().isCpu() ? kept : moveTo(kept, Device()));
}

// Whether a write over a part of what is read is refused depends on sizes, strides and offsets,
// those of dimensions of one element too.
// A product with one is an expanded gradient itself when nobody looks at its strides; as_strided does.
TEST_F(Lazy, GradientsOfWrittenViewsLieDensely) {
  const Program program = compile(R"(
def main(zeros: Tensor):
    xx = (torch.arange(12, dtype=torch.float64).view(3, 4).to(zeros.device)).requires_grad_()
    yy = (torch.arange(12.0).view(3, 4).to(zeros.device)).requires_grad_()
    mask = xx > 0
    bx = xx.clone()
    by = yy.clone()
    by[mask] = 1.0
    bx.view(-1)[-2:].mul_(2.0)
    bx = bx * 1.0
    s = bx.double().sum() + (by.double() * 2).sum()
    s.backward()
    return xx.grad
)");
  const Tensor lazy_zeros = Tensor::zeros({1}, DType::Float).to(Device{kLazy, -1});
  const IValue found = program.call("main", {lazy_zeros});
  const IValue expected = program.call("main", {Tensor::zeros({1}, DType::Float)});
  EXPECT_EQ(IValue(found.toTensor().to(Device())).repr(), expected.repr());
}

TEST_F(Lazy, OverlappingWritesAreRefusedWhereEagerOnesAre) {
  static const OperatorHandle kAdd("aten::add_", "Tensor"), kOut("aten::mul", "out"),
      kProduct("aten::addcmul_", ""), kCopy("aten::copy_", ""), kMaximum("aten::maximum", "out"),
      kCumsum("aten::cumsum", "out");
  struct View {
    DimVector sizes, strides;
    int64_t offset;
  };
  std::vector<View> views;
  for (const int64_t offset : {0, 1, 3}) {
    for (const int64_t stride : {1, 2, 3, 5}) {
      views.push_back({{3}, {stride}, offset});
      views.push_back({{3, 1}, {stride, 1}, offset});
      views.push_back({{3, 1}, {1, stride}, offset});
      views.push_back({{1, 3}, {stride, 1}, offset});
      views.push_back({{3, 3}, {stride, 1}, offset});
      views.push_back({{3, 3}, {1, stride}, offset});
    }
  }
  // What the memory holds behind the call, or the error.
  const auto outcome = [&](const Tensor& memory, const View& to, const View& from, int which) {
    const Tensor x = memory.asStrided(to.sizes, to.strides, to.offset);
    const Tensor y = memory.asStrided(from.sizes, from.strides, from.offset);
    std::string error = errorOf([&] {
      if (which == 0) kAdd(x, y, Scalar(1));
      if (which == 1) kOut(y, y, x);
      if (which == 2) kProduct(x, y, y, Scalar(2));
      if (which == 3) kCopy(x, y, false);
      if (which == 4) kMaximum(y, x, x);
      if (which == 5) kCumsum(y, 0, IValue(), x);
    });
    for (size_t at = 0; (at = error.find(" on lazy")) != std::string::npos;) error.erase(at, 8);
    return std::make_pair(error, moveTo(memory, Device()));
  };
  const Tensor start = numbers({40});
  int refused = 0;
  for (int which = 0; which < 6; ++which) {
    for (const View& to : views) {
      for (const View& from : views) {
        // What an out= form leaves behind when it changes sizes is another matter.
        const bool out = which == 1 || which == 4 || which == 5;
        if (out && to.sizes != from.sizes) continue;
        const auto [error, want] = outcome(start.clone(), to, from, which);
        const auto [lazy_error, got] = outcome(lazyOf(start), to, from, which);
        const std::string what =
            fmt::format("operator {}, {} {} at {} from {} {} at {}", which, formatInts(to.sizes),
                        formatInts(to.strides), to.offset, formatInts(from.sizes),
                        formatInts(from.strides), from.offset);
        ASSERT_EQ(lazy_error, error) << what;
        expectSame(got, want, what);
        refused += error.find("single memory location") != std::string::npos;
      }
    }
  }
  EXPECT_GT(refused, 100);
}

TEST_F(Lazy, WritesReachViews) {
  static const OperatorHandle kAdd("aten::add_", "Tensor"), kFill("aten::fill_", "Scalar"),
      kCopy("aten::copy_", ""), kSelect("aten::select", "int");
  const auto f = [](const Tensor& start) {
    const Tensor x = ops::mul(start, Scalar(3));
    const Tensor row = kSelect(x, 0, 1), turned = x.transpose(0, 1);
    kAdd(row, start.select(0, 0), Scalar(1));
    kFill(turned.select(0, 2), Scalar(7));
    const Tensor part = x.slice(1, 0, 2);
    kCopy(part, x.slice(1, 2, 4), false);
    const Tensor flat = x.view({-1});
    kAdd(flat, flat, Scalar(1));
    return std::vector<Tensor>{x, row, turned.contiguous(), part, flat};
  };
  const Tensor start = numbers({3, 4});
  const std::vector<Tensor> got = f(lazyOf(start)), want = f(start);
  for (size_t i = 0; i < want.size(); ++i) expectSame(got[i], want[i], std::to_string(i));
  EXPECT_EQ(lazy::counters().evaluations, 1u);
}

// Data that go into a recorded part of a value that does not lie row-major.
TEST_F(Lazy, DataReachViewsOfOtherLayouts) {
  static const OperatorHandle kDiagonal("aten::diagonal", "");
  const Tensor start = numbers({3, 4}), data = numbers({3}, 5);
  const auto f = [&](const Tensor& given) {
    const Tensor x = ops::mul(given.transpose(0, 1), Scalar(3));
    EXPECT_FALSE(x.isContiguous());
    const Tensor line = kDiagonal(x, 0, 0, 1), doubled = ops::mul(line, Scalar(2));
    line.copyFrom(data);
    return std::vector<Tensor>{x, line, doubled, x.transpose(0, 1)};
  };
  const std::vector<Tensor> got = f(lazyOf(start)), want = f(start);
  for (size_t i = 0; i < want.size(); ++i) expectSame(got[i], want[i], std::to_string(i));
}

TEST_F(Lazy, OutIsAWrite) {
  static const OperatorHandle kAdd("aten::add", "out");
  const Tensor x = numbers({3, 4});
  const Tensor a = lazyOf(x), out = Tensor::empty({5}, DType::Double, kOnLazy);
  kAdd(a, a, Scalar(1), out);
  EXPECT_EQ(lazy::counters().evaluations, 0u);
  const Tensor want = Tensor::empty({5}, DType::Double);
  kAdd(x, x, Scalar(1), want);
  expectSame(out, want);
}

TEST_F(Lazy, StatisticsOfBatchNorm) {
  static const OperatorHandle kNorm("aten::batch_norm", "");
  const Tensor x = numbers({4, 3, 5, 5}), weight = numbers({3}, 2), bias = numbers({3}, 3);
  const auto f = [&](const std::function<Tensor(const Tensor&)>& place) {
    const Tensor mean = place(Tensor::zeros({3}, DType::Float));
    const Tensor variance = place(Tensor::full({3}, 1, DType::Float));
    Tensor y = place(x);
    for (int i = 0; i < 2; ++i) {
      y = kNorm(y, place(weight), place(bias), mean, variance, true, 0.1, 1e-5, true);
    }
    return std::vector<Tensor>{y, mean, variance};
  };
  const auto got = f(lazyOf), want = f([](const Tensor&t) { return t; });
  EXPECT_EQ(lazy::counters().evaluations, 0u);
  for (size_t i = 0; i < want.size(); ++i) expectSame(got[i], want[i], std::to_string(i));
}

TEST_F(Lazy, WrongTypesRaiseAtOnceAndWrongValuesLater) {
  static const OperatorHandle kSelect("aten::index_select", "");
  const Tensor a = lazyOf(numbers({3, 4})), b = lazyOf(numbers({5}));
  EXPECT_THAT(errorOf([&] { ops::add(a, b, Scalar(1)); }),
              HasSubstr("The size of tensor a (4) must match the size of tensor b (5)"));
  const Tensor right = ops::neg(a);
  const Tensor wrong = kSelect(a, 0, lazyOf(Tensor::from(std::vector<int64_t>{7})));
  const Tensor next = ops::neg(wrong);
  EXPECT_THAT(errorOf([] { lazy::markStep(); }), HasSubstr("index"));
  // What does not depend on it is there; what does says why it is not.
  expectSame(right, ops::neg(numbers({3, 4})));
  EXPECT_THAT(errorOf([&] { moveTo(next, Device()); }), HasSubstr("index"));
  EXPECT_THAT(errorOf([&] { ops::neg(next); }), HasSubstr("index"));
  EXPECT_EQ(errorOf([] { lazy::markStep(); }), "no error");
}

TEST_F(Lazy, OtherDevicesAreRefused) {
  const Tensor a = lazyOf(numbers({3}));
  EXPECT_THAT(errorOf([&] { ops::add(a, numbers({3}), Scalar(1)); }),
              HasSubstr("at least two devices, lazy and cpu"));
  expectSame(ops::mul(a, Tensor::scalar(2.f)), ops::mul(numbers({3}), Scalar(2)));
}

// Kernels that loop over elements themselves find them, or refuse.
TEST_F(Lazy, ElementsThatKernelsLookAt) {
  const Program program = compile(R"(
def packed(x: Tensor, sizes: Tensor, h: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.ops.aten.rnn_tanh(x, sizes, h, [w, w, b, b], True, 1, 0.0, False, False)[0]

def nested(x: Tensor, sizes: Tensor) -> Tensor:
    return torch.ops.aten._nested_view_from_buffer(x, sizes, sizes, [0])

def sampled(x: Tensor) -> Tensor:
    s = torch.sparse_csr_tensor(torch.tensor([0, 1, 2]), torch.tensor([0, 1]), torch.ones([2]), [2, 2])
    return torch.sparse.sampled_addmm(s, x, x)
)");
  const Tensor x = numbers({4, 2}), h = numbers({1, 2, 2}), w = numbers({2, 2}), b = numbers({2});
  const Tensor sizes = Tensor::from({2.f, 2.f}).to(DType::Long);
  EXPECT_THROW(program.call("packed", {lazyOf(x), lazyOf(sizes), lazyOf(h), lazyOf(w), lazyOf(b)}),
               RuntimeError);
  expectSame(program.call("packed", {x, lazyOf(sizes), h, w, b}).toTensor(),
             program.call("packed", {x, sizes, h, w, b}).toTensor());
  const Tensor table = Tensor::from({1.f}, {1, 1}).to(DType::Long);
  EXPECT_THROW(program.call("nested", {lazyOf(b), lazyOf(table)}), RuntimeError);
  EXPECT_THROW(program.call("sampled", {lazyOf(w)}), RuntimeError);
  // Neither do tensors without memory have any.
  const Device meta = Device::parse("meta");
  const Tensor none = Tensor::empty({2}, DType::Long, meta);
  EXPECT_THROW(program.call("packed", {x, none, h, w, b}), RuntimeError);
  EXPECT_THROW(program.call("nested", {b, Tensor::empty({1, 1}, DType::Long, meta)}), RuntimeError);
}

TEST_F(Lazy, TensorsPassBetweenThreads) {
  const Tensor x = numbers({100});
  Tensor y = ops::exp(lazyOf(x));
  std::thread([&] {
    expectSame(ops::neg(y), ops::neg(ops::exp(x)));
    y = ops::mul(y, Scalar(2));
  }).join();
  expectSame(ops::abs(y), ops::abs(ops::mul(ops::exp(x), Scalar(2))));
}

TEST_F(Lazy, TheCacheIsBounded) {
  lazy::setCacheSize(2);
  const auto step = [](int n) {
    Tensor t = lazyOf(numbers({3}));
    for (int i = 0; i < n; ++i) t = ops::neg(t);
    lazy::markStep();
  };
  for (const int n : {1, 2, 3, 1, 2, 3}) step(n);
  EXPECT_EQ(lazy::counters().compiled, 6u);
  step(3);
  step(2);
  EXPECT_EQ(lazy::counters().compiled, 6u);
  lazy::setCacheSize(512);
  EXPECT_THAT(errorOf([] { lazy::setCacheSize(0); }), HasSubstr("at least one"));
}

// ---- whole programs ----

constexpr const char* kTraining = R"(
def step(x: Tensor, y: Tensor, w: Tensor, b: Tensor, v: Tensor, rate: float) -> Tensor:
    hidden = torch.relu(torch.nn.functional.linear(x, w, b))
    loss = torch.nn.functional.mse_loss(hidden @ v, y)
    grads = torch.autograd.grad([loss], [w, b, v])
    for p, g in zip([w, b, v], grads):
        if g is not None:
            with torch.no_grad():
                p.sub_(g, alpha=rate)
    return loss.detach()
)";

TEST_F(Lazy, ATrainingCompilesOneStep) {
  const Program program = compile(kTraining);
  const auto train = [&](const std::function<Tensor(const Tensor&)>& place, int steps) {
    std::vector<Tensor> weights = {place(numbers({6, 4}, 1)), place(numbers({6}, 2)),
                                   place(numbers({6, 2}, 3))};
    for (const Tensor& w : weights) w.setRequiresGrad(true);
    const Tensor x = place(numbers({10, 4}, 4)), y = place(numbers({10, 2}, 5));
    for (int i = 0; i < steps; ++i) {
      const IValue loss =
          program.call("step", {x, y, weights[0], weights[1], weights[2], 0.1 / (i + 1)});
      if (!loss.tensor().device().isCpu()) {
        lazy::markStep();
        if (i == 0) lazy::resetCounters();
      }
    }
    std::vector<Tensor> made;
    for (const Tensor& w : weights) made.push_back(w.detach());
    return made;
  };
  const auto want = train([](const Tensor& t) { return t.clone(); }, 6);
  const auto got = train(lazyOf, 6);
  EXPECT_EQ(lazy::counters().compiled, 0u);
  EXPECT_EQ(lazy::counters().found, 5u);
  EXPECT_EQ(lazy::counters().immediate.size(), 0u);
  for (size_t i = 0; i < want.size(); ++i) expectSame(got[i], want[i], std::to_string(i));
}

TEST_F(Lazy, BranchesLookAtValues) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    y = x * 2
    if bool((y > 0).all()):
        return y + 1
    n = int(y.sum().item())
    return y - n
)");
  for (const float sign : {1.f, -1.f}) {
    const Tensor x = Tensor::full({3}, sign, DType::Float);
    expectSame(program.call("main", {lazyOf(x)}).tensor(), program.call("main", {x}).tensor());
  }
  EXPECT_GE(lazy::counters().evaluations, 3u);
}

}  // namespace
}  // namespace wick::lazy_test
