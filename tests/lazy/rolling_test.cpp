// Repetitions run as loops: with the bits of the program that is not rolled, whatever the number of
// trips is, which compiles nothing.
#include <cstdlib>
#include <functional>
#include <random>

#include "runtime/ops/call.h"
#include "tests/lazy/lazy_testing.h"
#include "training/backward.h"
#include "wick_ops.h"

namespace wick::rolling_test {
namespace {

class Rolling : public Lazy {
 protected:
  void TearDown() override { lazy::setRolling(true); }
};

using Tensors = std::vector<Tensor>;
// Computes on the device that its arguments are on.
using Step = std::function<Tensors(const Tensors&, int trips)>;

Tensors onLazy(const Tensors& given) {
  Tensors made;
  for (const Tensor& t : given) made.push_back(lazyOf(t));
  return made;
}
Tensors onCpu(const Tensors& given) {
  Tensors made;
  for (const Tensor& t : given) made.push_back(moveTo(t, Device()).clone());
  return made;
}
Tensors runLazily(const Step& step, const Tensors& given, int trips) {
  const Tensors results = step(onLazy(given), trips);
  lazy::markStep();
  return onCpu(results);
}

// Compares rolled, not rolled and eager runs. `loops`: of each run, or at least one for -1.
void check(const Step& step, const std::function<Tensors(int)>& arguments,
           const std::vector<int>& trips, int64_t loops, uint64_t programs = 1) {
  lazy::resetCounters();
  std::vector<Tensors> rolled;
  for (const int count : trips) rolled.push_back(runLazily(step, arguments(count), count));
  const lazy::Counters counters = lazy::counters();
  EXPECT_EQ(counters.compiled, programs);
  EXPECT_EQ(counters.evaluations, trips.size());
  if (loops >= 0) {
    EXPECT_EQ(counters.rolled, static_cast<uint64_t>(loops) * trips.size());
  } else {
    EXPECT_GE(counters.rolled, trips.size());
  }
  lazy::setRolling(false);
  for (size_t i = 0; i < trips.size(); ++i) {
    const std::string what = std::to_string(trips[i]) + " trips, result ";
    const Tensors plain = runLazily(step, arguments(trips[i]), trips[i]);
    const Tensors eager = step(arguments(trips[i]), trips[i]);
    ASSERT_EQ(rolled[i].size(), plain.size());
    for (size_t r = 0; r < plain.size(); ++r) {
      expectSame(rolled[i][r], plain[r], what + std::to_string(r));
      expectSame(rolled[i][r], eager[r], what + std::to_string(r) + ", eager");
    }
  }
  EXPECT_EQ(lazy::counters().rolled, counters.rolled);
  lazy::setRolling(true);
}

Tensor cell(const Tensor& x, const Tensor& h, const Tensor& w, const Tensor& u) {
  return ops::tanh(ops::add(ops::matmul(x, w), ops::matmul(h, u)));
}
// x, h, w, u
Tensors cellArguments(int trips) {
  return {numbers({trips, 4, 5}, trips), numbers({4, 6}, 2), numbers({5, 6}, 3),
          numbers({6, 6}, 4)};
}

TEST_F(Rolling, ARecurrentCell) {
  const Step step = [](const Tensors& given, int trips) {
    Tensor h = given[1];
    for (int t = 0; t < trips; ++t) h = cell(given[0].select(0, t), h, given[2], given[3]);
    return Tensors{h};
  };
  check(step, cellArguments, {16, 17, 40, 100, 12}, 1);
}

TEST_F(Rolling, StatesThatAreCollected) {
  static const OperatorHandle kStack("aten::stack", "");
  const Step step = [](const Tensors& given, int trips) {
    Tensor h = given[1];
    // Computed rows: each select is a record, the first two with numbers that belong to the text.
    const Tensor x = ops::mul(given[0], Scalar(0.5));
    Tensors states;
    for (int t = 0; t < trips; ++t) {
      h = cell(x.select(0, t), h, given[2], given[3]);
      states.push_back(h);
    }
    Tensors results = {kStack(states, 0), ops::add(states[2], states[states.size() - 2])};
    return results;
  };
  check(step, cellArguments, {16, 23, 40}, 1);
  // And those that live.
  const Step living = [&](const Tensors& given, int trips) {
    Tensor h = given[1];
    Tensors states;
    for (int t = 0; t < trips; ++t) {
      h = cell(given[0].select(0, t), h, given[2], given[3]);
      states.push_back(h);
    }
    return states;
  };
  check(living, cellArguments, {16, 23, 40}, 1);
}

TEST_F(Rolling, PartsOfAListAndTwoStates) {
  static const OperatorHandle kUnbind("aten::unbind", "int"), kSplit("aten::split", "Tensor");
  const Step step = [](const Tensors& given, int trips) {
    static_cast<void>(trips);
    const Tensor x = ops::relu(given[0]);
    Tensor h = given[1], c = ops::neg(given[1]);
    const std::vector<IValue> rows = kUnbind.all(x, 0);
    for (const IValue& row : rows[0].elements()) {
      const Tensor next = cell(row.toTensor(), h, given[2], given[3]);
      const std::vector<IValue> halves = kSplit.all(next, 3, 1);
      c = ops::add(ops::mul(c, Scalar(0.75)), h);
      h = ops::cat({halves[0].elements()[1].toTensor(), halves[0].elements()[0].toTensor()}, 1);
    }
    return Tensors{h, c};
  };
  check(step, cellArguments, {16, 23, 40}, 1);
}

TEST_F(Rolling, WritesAndViews) {
  static const OperatorHandle kAdd("aten::add_", "Tensor"), kMul("aten::mul_", "Scalar");
  const Step step = [](const Tensors& given, int trips) {
    Tensor h = given[1].clone();
    const Tensor out = ops::mul(given[0], Scalar(2));
    for (int t = 0; t < trips; ++t) {
      const Tensor row = out.select(0, trips - 1 - t);
      kAdd(h.slice(1, 1, 4), ops::matmul(row, given[2]).slice(1, 1, 4), Scalar(1));
      kMul(row, Scalar(0.5 + t));
      h.select(0, 1).copyFrom(ops::tanh(h.select(0, 2)));
    }
    return Tensors{h, out};
  };
  check(step, cellArguments, {16, 23, 40}, 1);
}

TEST_F(Rolling, NumbersThatDiffer) {
  const Step step = [](const Tensors& given, int trips) {
    Tensor h = given[1];
    for (int t = 0; t < trips; ++t) {
      h = ops::mul(ops::matmul(h, given[3]), Scalar(1.0 / (t + 1)));
      h = ops::add(h, given[1], Scalar(t));
      h = ops::clamp(h, -2.5, 2.5);
    }
    return Tensors{h};
  };
  check(step, cellArguments, {16, 23, 40}, 1);
}

TEST_F(Rolling, WhatIsNotTheSame) {
  const auto never = [](const Step& step, std::vector<int> trips, uint64_t programs) {
    check(step, cellArguments, trips, 0, programs);
  };
  // Too short.
  never(
      [](const Tensors& given, int trips) {
        Tensor h = given[1];
        for (int t = 0; t < trips; ++t) h = cell(given[0].select(0, t), h, given[2], given[3]);
        return Tensors{h};
      },
      {5, 7}, 2);
  // Another constant in each.
  never(
      [](const Tensors& given, int trips) {
        Tensor h = given[1];
        for (int t = 0; t < trips; ++t) {
          h = ops::matmul(h, given[3]);
          if (t % 7 < 3) h = ops::flip(h, DimVector{t % 2});
          if (t % 5 < 2) h = ops::softmax(h, t % 2);
        }
        return Tensors{h};
      },
      {16}, 1);
  // What each reads was made further and further away.
  never(
      [](const Tensors& given, int trips) {
        Tensors all = {given[1], given[1]};
        for (int t = 0; t < trips; ++t) {
          const size_t at = static_cast<size_t>(t * 7 % (t + 1));
          all.push_back(ops::tanh(ops::matmul(ops::add(all.back(), all[at]), given[3])));
        }
        return Tensors{all.back()};
      },
      {20}, 1);
  // A chain of pointwise operators is one kernel.
  never(
      [](const Tensors& given, int trips) {
        Tensor h = given[1];
        for (int t = 0; t < trips; ++t) h = ops::mul(ops::sin(h), Scalar(1.5));
        return Tensors{h};
      },
      {30}, 1);
}

TEST_F(Rolling, RowsOfOtherSizes) {
  // The inputs' sizes change: only those that are alike are a loop.
  const Step step = [](const Tensors& given, int trips) {
    Tensor sum = given[1];
    for (int t = 0; t < trips; ++t) {
      const Tensor rows = given[0].select(0, t).slice(0, 0, t < trips / 2 ? 4 : 3);
      sum = ops::add(sum, ops::sum(ops::matmul(rows, given[2])));
    }
    return Tensors{sum};
  };
  check(step, cellArguments, {40}, 1);
}

TEST_F(Rolling, TwoLayersAndTwoLoops) {
  const Step step = [](const Tensors& given, int trips) {
    Tensor a = given[1], b = ops::neg(given[1]), c = given[1];
    Tensors states;
    for (int t = 0; t < trips; ++t) {
      a = ops::tanh(ops::matmul(a, given[3]));
      b = ops::tanh(ops::matmul(ops::add(a, b), given[3]));
      states.push_back(b);
    }
    for (int t = trips - 1; t >= 0; --t) {
      c = ops::relu(ops::matmul(ops::sub(states[static_cast<size_t>(t)], c), given[3]));
    }
    return Tensors{a, c};
  };
  check(step, cellArguments, {16, 23, 40}, 2);
}

TEST_F(Rolling, ErrorsAndOtherThingsStay) {
  static const OperatorHandle kSelect("aten::index_select", "");
  const Tensors given = onLazy(cellArguments(3));
  const auto longer = [](const Tensors& from, int64_t wrong) {
    Tensor h = from[1];
    const Tensor index = lazyOf(Tensor::from(std::vector<int64_t>{1, 0, 2, wrong}));
    for (int t = 0; t < 30; ++t) h = ops::tanh(kSelect(h, 0, index));
    return h;
  };
  const Tensor before = longer(given, 3);
  lazy::markStep();
  EXPECT_EQ(lazy::counters().rolled, 1u);
  const Tensor bad = longer(given, 9), fine = ops::neg(given[1]);
  EXPECT_NE(errorOf([] { lazy::markStep(); }).find("index"), std::string::npos);
  expectSame(fine, ops::neg(cellArguments(3)[1]));
  EXPECT_NE(errorOf([&] { moveTo(bad, Device()); }).find("index"), std::string::npos);
  expectSame(before, moveTo(longer(given, 3), Device()));
}

// A training step of a recurrent net, written eagerly. Its walk back is a repetition too.
TEST_F(Rolling, GradientsThroughACell) {
  static const OperatorHandle kStack("aten::stack", "");
  const Step step = [](const Tensors& given, int trips) {
    Tensors weights = {given[2].detach(), given[3].detach()};
    for (const Tensor& w : weights) w.setRequiresGrad(true);
    Tensor h = given[1];
    Tensors states;
    for (int t = 0; t < trips; ++t) {
      h = cell(given[0].select(0, t), h, weights[0], weights[1]);
      states.push_back(h);
    }
    backward(ops::sum(ops::mul(kStack(states, 0), kStack(states, 0))));
    Tensors results = {h.detach()};
    for (const Tensor& w : weights) {
      results.push_back(gradientOf(w));
      results.push_back(ops::sub(w.detach(), gradientOf(w), Scalar(0.01)));
    }
    return results;
  };
  // The cell, the sum of each state's two gradients, and the walk back.
  check(step, cellArguments, {16, 23, 40}, 3);
}

// A block of random calls, run some times, with states, rows of a sequence, writes to views, and
// results that are kept.
class RandomLoop {
 public:
  explicit RandomLoop(unsigned seed) : seed_(seed) {}

  Tensors operator()(const Tensors& given, int trips) {
    std::mt19937 draw(seed_);
    const int calls = 5 + static_cast<int>(draw() % 8);
    const auto block = static_cast<unsigned>(draw());
    states_ = {given[1].clone(), ops::neg(given[1]), ops::matmul(given[1], given[2])};
    kept_ = {};
    const Tensor computed = ops::mul(given[0], Scalar(0.5));
    for (int t = 0; t < trips; ++t) run(block, calls, given, computed, t);
    Tensors results = states_;
    if (!kept_.empty()) {
      static const OperatorHandle kCat("aten::cat", "");
      results.push_back(kCat(kept_, 0));
      if (seed_ % 3 == 0) results.insert(results.end(), kept_.begin(), kept_.end());
      Tensor sum = given[1];
      for (size_t k = kept_.size(); k-- > 0;) {
        sum = ops::tanh(ops::matmul(ops::add(sum, kept_[k]), given[2]));
      }
      results.push_back(sum);
    }
    return results;
  }

 private:
  void run(unsigned seed, int calls, const Tensors& given, const Tensor& computed, int trip) {
    static const OperatorHandle kAdd("aten::add_", "Tensor"), kMul("aten::mul_", "Scalar"),
        kFlip("aten::flip", ""), kCat("aten::cat", ""), kSoftmax("aten::softmax", "int");
    std::mt19937 draw(seed);
    const auto choose = [&](size_t n) { return static_cast<size_t>(draw() % n); };
    for (int i = 0; i < calls; ++i) {
      Tensor& a = states_[choose(states_.size())];
      const Tensor b = states_[choose(states_.size())];
      switch (choose(14)) {
        case 0:
          a = ops::tanh(ops::matmul(a, given[2]));
          break;
        case 1:
          a = ops::add(ops::matmul(a, given[2]), given[0].select(0, trip));
          break;
        case 2:
          a = ops::mul(b, computed.select(0, trip));
          break;
        case 3:
          a = ops::add(a, ops::sin(b), Scalar(0.25 * trip));
          break;
        case 4:
          a.slice(1, 0, 2).copyFrom(ops::cos(b.slice(1, 1, 3)));
          break;
        case 5:
          kMul(a.select(0, 1), Scalar(0.5));
          break;
        case 6:
          a = b.transpose(0, 1);
          break;
        case 7:
          a = kFlip(b, DimVector{1});
          break;
        case 8:
          kept_.push_back(ops::relu(b));
          break;
        case 9:
          a = kCat(Tensors{b.slice(0, 2, 4), a.slice(0, 0, 2)}, 0);
          break;
        case 10:
          kAdd(a, given[1], Scalar(1));
          break;
        case 11:
          a = kept_.empty() ? ops::neg(b) : ops::matmul(kept_.back(), given[2]);
          break;
        case 12:
          a = ops::softmax(b, 1);
          break;
        case 13:
          a = ops::clamp(ops::matmul(b, ops::matmul(given[2], given[1])), -3, 3);
          break;
      }
    }
  }

  unsigned seed_;
  Tensors states_, kept_;
};

// WICK_LAZY_COUNT=10000: more.
TEST_F(Rolling, RandomLoops) {
  const char* asked = std::getenv("WICK_LAZY_COUNT");
  const unsigned count = asked ? static_cast<unsigned>(std::atoi(asked)) : 15;
  const auto arguments = [](int trips) {
    return Tensors{numbers({trips, 4, 4}, trips), numbers({4, 4}, 2), numbers({4, 4}, 3)};
  };
  uint64_t rolled = 0, programs = 0;
  for (unsigned seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    const Step step = RandomLoop(seed);
    for (const int trips : {14, 18, 29}) {
      lazy::resetCounters();
      const Tensors got = runLazily(step, arguments(trips), trips);
      rolled += lazy::counters().rolled;
      programs += lazy::counters().compiled;
      lazy::setRolling(false);
      const Tensors plain = runLazily(step, arguments(trips), trips);
      lazy::setRolling(true);
      ASSERT_EQ(got.size(), plain.size());
      for (size_t r = 0; r < got.size(); ++r) expectSame(got[r], plain[r], std::to_string(r));
      if (HasFailure()) return;
    }
  }
  if (asked) std::printf("%lu loops, %lu programs\n", rolled, programs);
  EXPECT_GE(rolled, count * 2);
  EXPECT_LE(programs, count * 5 / 2);  // of three numbers of trips
}

}  // namespace
}  // namespace wick::rolling_test
