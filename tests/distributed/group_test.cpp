// Groups over a transport of the test's own: what operators reduce, what lazy graphs keep of them, how
// gradients are exchanged, and what happens when something goes wrong. tests/python/distributed_test.py
// runs two processes of MPI.
#include "distributed/group.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "core/budget.h"
#include "core/grad_mode.h"
#include "distributed/gradient_exchange.h"
#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "training/backward.h"
#include "training/optimizer.h"
#include "wick_ops.h"

namespace wick::group_test {
namespace {

using distributed::GradientExchange;
using distributed::Group;
using distributed::Reduction;
using testing::ElementsAre;
using testing::HasSubstr;

const OperatorHandle kReduce("wick::all_reduce", ""), kBegin("wick::all_reduce_begin", ""),
    kEnd("wick::all_reduce_end", ""), kBeginBundle("wick::all_reduce_begin", "bundle"),
    kEndBundle("wick::all_reduce_end", "bundle");

// What the other one of two processes has: this process's numbers times `other`.
struct Partner {
  double other = 1;
  std::atomic<bool> answers{true};
  std::string breaks_with;
  std::vector<int64_t> counts;
};

class FakeTransport : public distributed::Transport {
 public:
  explicit FakeTransport(Partner& partner) : partner_(partner) {}
  int rank() const override { return 1; }
  int size() const override { return 2; }
  void allReduce(void* numbers, int64_t count, DType dtype, Reduction reduction) override {
    while (!partner_.answers) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    if (!partner_.breaks_with.empty()) throw RuntimeError(partner_.breaks_with);
    partner_.counts.push_back(count);
    const auto reduce = [&]<class T>(T* at) {
      for (int64_t i = 0; i < count; ++i) {
        const T theirs = static_cast<T>(static_cast<double>(at[i]) * partner_.other);
        at[i] = reduction == Reduction::Sum   ? static_cast<T>(at[i] + theirs)
                : reduction == Reduction::Max ? std::max(at[i], theirs)
                                              : std::min(at[i], theirs);
      }
    };
    if (dtype == DType::Float) return reduce(static_cast<float*>(numbers));
    if (dtype == DType::Double) return reduce(static_cast<double*>(numbers));
    if (dtype == DType::Long) return reduce(static_cast<int64_t*>(numbers));
    if (dtype == DType::Int) return reduce(static_cast<int32_t*>(numbers));
    FAIL() << toString(dtype);
  }
  void broadcast(void* bytes, size_t count, int root) override {
    if (root == 0) std::memset(bytes, 0, count);
  }
  void barrier() override {}

 private:
  Partner& partner_;
};

class Groups : public Lazy {
 protected:
  void SetUp() override {
    Lazy::SetUp();
    join();
  }
  void TearDown() override {
    partner.answers = true;
    distributed::setCurrentGroup(nullptr);
  }
  void join() {
    distributed::setCurrentGroup(
        std::make_shared<Group>([this] { return std::make_unique<FakeTransport>(partner); }));
  }
  Partner partner;
};

TEST_F(Groups, ReduceOverProcesses) {
  EXPECT_EQ(distributed::theGroup()->rank(), 1);
  EXPECT_EQ(distributed::theGroup()->size(), 2);
  partner.other = 3;
  const Tensor x = numbers({4, 5});
  expectSame(kReduce(x, "sum"), ops::mul(x, Scalar(4)));
  expectSame(kReduce(x, "mean"), ops::mul(x, Scalar(2)));
  expectSame(kReduce(x.transpose(0, 1)), ops::mul(x, Scalar(2)).transpose(0, 1));
  for (const DType dtype : {DType::Double, DType::Half, DType::BFloat16, DType::ComplexFloat}) {
    expectSame(kReduce(x.to(dtype)), ops::mul(x.to(dtype), Scalar(2)),
               std::string(toString(dtype)));
  }
  const Tensor whole = Tensor::from(std::vector<int64_t>{-3, 0, 5});
  EXPECT_THAT(kReduce(whole, "max").span<int64_t>(), ElementsAre(-3, 0, 15));
  EXPECT_THAT(kReduce(whole, "min").span<int64_t>(), ElementsAre(-9, 0, 5));
  EXPECT_THAT(kReduce(whole.to(DType::Short), "sum").to(DType::Long).span<int64_t>(),
              ElementsAre(-12, 0, 20));
  EXPECT_EQ(kReduce(Tensor::empty({0, 3}, DType::Float)).numel(), 0);
  distributed::theGroup()->barrier();
  const Tensor lazily = lazyOf(x);
  distributed::theGroup()->broadcast(lazily, 0);
  expectSame(lazily, Tensor::zeros({4, 5}, DType::Float));
}

TEST_F(Groups, BundlesTravelAsOne) {
  for (const DType dtype : {DType::Float, DType::BFloat16, DType::ComplexDouble}) {
    partner.counts.clear();
    const std::vector<Tensor> given = {numbers({2, 3}).to(dtype), numbers({0, 4}).to(dtype),
                                       numbers({16}, 1).to(dtype),
                                       numbers({4, 5}, 2).to(dtype).transpose(0, 1)};
    const std::vector<IValue> done =
        kEndBundle.all(given, kBeginBundle(given, "sum"))[0].elements();
    ASSERT_EQ(done.size(), given.size());
    for (size_t i = 0; i < given.size(); ++i) {
      expectSame(done[i].toTensor(), ops::mul(given[i], Scalar(2)), std::string(toString(dtype)));
      EXPECT_TRUE(done[i].toTensor().isContiguous());
    }
    // Each part begins at a multiple of 16.
    EXPECT_THAT(partner.counts, ElementsAre(52 * (isComplex(dtype) ? 2 : 1)));
  }
  const Tensor one = numbers({2});
  EXPECT_THAT(errorOf([&] {
                kBeginBundle(std::vector<Tensor>{one, one.to(DType::Double)}, "sum");
              }),
              HasSubstr("of one dtype"));
  EXPECT_THAT(errorOf([&] { kBeginBundle(std::vector<Tensor>{}, "sum"); }),
              HasSubstr("at least one"));
  const Tensor ticket = kBeginBundle(std::vector<Tensor>{one, one}, "sum");
  EXPECT_THAT(errorOf([&] { kEndBundle.all(std::vector<Tensor>{one}, ticket); }),
              HasSubstr("2 tensors were begun, not 1"));
}

TEST_F(Groups, WrongCalls) {
  const Tensor whole = Tensor::from(std::vector<int64_t>{1});
  EXPECT_THAT(errorOf([&] { kReduce(whole, "median"); }), HasSubstr("got 'median'"));
  EXPECT_THAT(errorOf([&] { kReduce(whole, "mean"); }), HasSubstr("the mean of int64"));
  EXPECT_THAT(errorOf([&] { kReduce(numbers({2}).to(DType::ComplexFloat), "max"); }),
              HasSubstr("no order"));
  EXPECT_THAT(errorOf([&] { kEnd(whole, whole); }), HasSubstr("nothing is under way"));
  EXPECT_THAT(errorOf([&] { distributed::theGroup()->broadcast(whole, 2); }),
              HasSubstr("no process 2 among 2"));
  const Tensor ticket = kBegin(numbers({2}), "sum");
  EXPECT_THAT(errorOf([&] { kEnd(numbers({3}), ticket); }), HasSubstr("what was begun is"));
  distributed::setCurrentGroup(nullptr);
  EXPECT_THAT(errorOf([&] { kReduce(whole, "sum"); }), HasSubstr("belongs to no group"));
}

TEST_F(Groups, AnErrorEndsTheGroup) {
  partner.breaks_with = "the cable is out";
  const Tensor x = numbers({2});
  EXPECT_THAT(errorOf([&] { kReduce(x); }), HasSubstr("the cable is out"));
  partner.breaks_with.clear();
  EXPECT_THAT(errorOf([&] { kReduce(x); }), HasSubstr("the cable is out"));
  EXPECT_THAT(errorOf([&] {
                Group([]() -> std::unique_ptr<distributed::Transport> {
                  throw RuntimeError("nobody there");
                });
              }),
              HasSubstr("nobody there"));
}

TEST_F(Groups, WaitingEndsWithTheTimeAndMayBeTriedAgain) {
  partner.answers = false;
  const Tensor x = numbers({2}), ticket = kBegin(x, "sum");
  {
    Budget::Bounds bounds;
    bounds.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(30);
    Budget budget(bounds);
    const BudgetScope limited(&budget);
    EXPECT_THAT(errorOf([&] { kEnd(x, ticket); }), HasSubstr("time"));
  }
  partner.answers = true;
  expectSame(kEnd(x, ticket), ops::mul(x, Scalar(2)));
}

// Between its halves the program computes: what begins first is served first.
TEST_F(Groups, HalvesKeepTheirOrder) {
  std::vector<Tensor> inputs, tickets;
  for (int i = 1; i < 6; ++i) {
    inputs.push_back(numbers({i}));
    tickets.push_back(kBegin(inputs.back(), "sum"));
  }
  for (size_t i = inputs.size(); i-- > 0;) {
    expectSame(kEnd(inputs[i], tickets[i]), ops::mul(inputs[i], Scalar(2)));
  }
  EXPECT_THAT(partner.counts, ElementsAre(1, 2, 3, 4, 5));
}

TEST_F(Groups, LazyGraphsHoldReductionsInTheirOrder) {
  for (int step = 0; step < 3; ++step) {
    partner.counts.clear();
    const Tensor x = numbers({4, 3}, step), a = lazyOf(x);
    const Tensor ticket = kBegin(ops::mul(a, Scalar(3)), "sum");
    // Nobody wants the result; the other process waits for it all the same.
    kReduce(ops::exp(a.select(0, 0)), "sum");
    const Tensor done = ops::relu(kEnd(a, ticket));
    EXPECT_EQ(partner.counts.size(), 0u);
    lazy::markStep();
    EXPECT_THAT(partner.counts, ElementsAre(12, 3));
    expectSame(done, ops::relu(ops::mul(x, Scalar(6))));
  }
  EXPECT_EQ(lazy::counters().compiled, 1u);
  EXPECT_EQ(lazy::counters().evaluations, 3u);
  // Also when nothing else is wanted.
  partner.counts.clear();
  kReduce(lazyOf(numbers({7})), "sum");
  lazy::markStep();
  EXPECT_THAT(partner.counts, ElementsAre(7));
}

// A run that failed is tried record by record; others must not be asked twice.
TEST_F(Groups, ReductionsOfAFailedRunAreNotRepeated) {
  static const OperatorHandle kSelect("aten::index_select", "");
  const Tensor a = lazyOf(numbers({3}));
  const Tensor reduced = kReduce(a, "sum"), right = ops::neg(a);
  const Tensor wrong = kSelect(a, 0, lazyOf(Tensor::from(std::vector<int64_t>{7})));
  EXPECT_THAT(errorOf([] { lazy::markStep(); }), testing::Not("no error"));
  EXPECT_LE(partner.counts.size(), 1u);
  expectSame(right, ops::neg(numbers({3})));
  EXPECT_THAT(errorOf([&] { moveTo(reduced, Device()); }), HasSubstr("ended it"));
}

constexpr const char* kLoss = R"(
def loss(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return (torch.relu(x @ w) @ v).mean()
)";

TEST_F(Groups, GradientsBecomeMeans) {
  const Program program = compile(kLoss);
  const auto train = [&](const std::function<Tensor(const Tensor&)>& place, bool grouped) {
    std::vector<Tensor> weights = {place(numbers({4, 6}, 1)), place(numbers({6, 2}, 2))};
    for (const Tensor& w : weights) w.setRequiresGrad(true);
    std::optional<GradientExchange> exchange;
    if (grouped) exchange.emplace(weights);
    // The fake partner broadcast zeros.
    const GradModeGuard unrecorded(false);
    if (grouped) expectSame(weights[0].detach(), Tensor::zeros({4, 6}, DType::Float));
    weights[0].detach().copyFrom(place(numbers({4, 6}, 1)));
    weights[1].detach().copyFrom(place(numbers({6, 2}, 2)));
    const GradModeGuard recorded(true);
    Optimizer optimizer(weights, Sgd{.lr = 0.1, .momentum = 0.5});
    for (int i = 0; i < 4; ++i) {
      optimizer.zeroGrad();
      backward(program.call("loss", {place(numbers({5, 4}, i)), weights[0], weights[1]}).tensor());
      if (exchange) exchange->finish();
      optimizer.step();
      if (!weights[0].device().isCpu()) lazy::markStep();
    }
    return weights;
  };
  const auto onCpu = [](const Tensor& t) { return t.clone(); };
  const auto want = train(onCpu, false), eager = train(onCpu, true);
  lazy::resetCounters();
  const auto lazily = train(lazyOf, true);
  // Broadcasts look at the weights; then each step is one graph, found from the second on.
  EXPECT_LE(lazy::counters().compiled, 2u) << lazy::report();
  EXPECT_TRUE(lazy::counters().immediate.empty()) << lazy::report();
  for (size_t i = 0; i < want.size(); ++i) {
    expectSame(eager[i].detach(), want[i].detach());
    expectNear(lazily[i].detach(), want[i].detach());
  }
}

// What is in a bundle follows from the order of the walk, which comes from the last operators to the first,
// from dtypes and from sizes.
TEST_F(Groups, GradientsTravelInBundles) {
  static const OperatorHandle kTo("aten::to", "dtype");
  const auto train = [&](const std::function<Tensor(const Tensor&)>& place) {
    std::vector<Tensor> weights;
    for (const int64_t size : {3, 20, (1 << 20) + 7, 5, 2}) {
      weights.push_back(place(numbers({size})));
    }
    weights.push_back(place(numbers({4}).to(DType::Double)));
    weights.push_back(place(numbers({6})));
    for (const Tensor& w : weights) w.setRequiresGrad(true);
    GradientExchange exchange(weights);
    for (int step = 0; step < 2; ++step) {
      partner.counts.clear();
      for (const Tensor& w : weights) setGradient(w, Tensor());
      Tensor loss = place(Tensor::scalar(0.0f));
      for (size_t i = 0; i < weights.size(); ++i) {
        if (step == 1 && i == 1) continue;  // which does not hold up what is there
        const Tensor x = place(numbers({weights[i].size(0)}, step + 1).to(weights[i].dtype()));
        const Tensor part = ops::sum(ops::mul(weights[i], x));
        loss = ops::add(loss, kTo(part, static_cast<int64_t>(DType::Float)));
      }
      backward(loss);
      exchange.finish();
      if (!weights[0].device().isCpu()) lazy::markStep();
      // 6; the double; 2 and 5; the large one; 20 and 3.
      EXPECT_THAT(partner.counts, ElementsAre(6, 4, 21, (1 << 20) + 7, step == 0 ? 35 : 3));
      for (size_t i = 0; i < weights.size(); ++i) {
        if (step == 1 && i == 1) {
          EXPECT_FALSE(gradientOf(weights[i]).defined());
          continue;
        }
        const Tensor x = numbers({weights[i].size(0)}, step + 1).to(weights[i].dtype());
        expectSame(moveTo(gradientOf(weights[i]), Device()), ops::mul(x, Scalar(0.5)));
      }
    }
  };
  partner.other = 0;
  train([](const Tensor& t) { return t.clone(); });
  train(lazyOf);
}

TEST_F(Groups, GradientsOfSeveralBatches) {
  const Tensor w = numbers({3}), x = numbers({3}, 2);
  w.setRequiresGrad(true);
  GradientExchange exchange({w});
  partner.other = 3;
  const auto walk = [&] { backward(ops::sum(ops::mul(w, x))); };
  exchange.setActive(false);
  walk();
  EXPECT_EQ(partner.counts.size(), 0u);
  exchange.setActive(true);
  walk();
  EXPECT_THAT(errorOf(walk), HasSubstr("before finish()"));
  setGradient(w, ops::mul(x, Scalar(2)));
  exchange.finish();
  expectSame(gradientOf(w), ops::mul(x, Scalar(4)));
  const Tensor computed = ops::mul(w, Scalar(2));
  EXPECT_THAT(errorOf([&] { GradientExchange({computed}); }), HasSubstr("no leaf"));
}

}  // namespace
}  // namespace wick::group_test
