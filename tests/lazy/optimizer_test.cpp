// Optimizers on lazy parameters: the numbers of the CPU's loops but for their rounding, which fuses
// products with sums, and a training that is one program.
#include "training/optimizer.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "core/device_backend.h"
#include "runtime/ops/call.h"
#include "serialization/torch_save.h"
#include "tests/lazy/lazy_testing.h"
#include "training/backward.h"
#include "training/clip.h"

namespace wick::optimizer_test {
namespace {

using testing::HasSubstr;

Tensor leaf(const Tensor& t) {
  t.setRequiresGrad(true);
  return t;
}

using Place = std::function<Tensor(const Tensor&)>;

Tensor onCpu(const Tensor& t) {
  return t.clone();
}

constexpr const char* kLoss = R"(
def loss(x: Tensor, y: Tensor, w: Tensor, b: Tensor, v: Tensor) -> Tensor:
    hidden = torch.relu(torch.nn.functional.linear(x, w, b))
    return torch.nn.functional.mse_loss(hidden @ v, y)
)";

struct Trained {
  std::vector<Tensor> weights;
  IValue state;
};

// Steps whose batches grow, with a rate that falls.
Trained train(const Place& place, const UpdateRule& rule, DType dtype, int steps) {
  static const Program program = compile(kLoss);
  const auto start = [&](IntSpan sizes, int seed) { return place(numbers(sizes, seed).to(dtype)); };
  // The last one's elements lie in another order.
  std::vector<Tensor> weights = {start({6, 4}, 1), start({6}, 2),
                                 place(numbers({2, 6}, 3).to(dtype).transpose(0, 1))};
  for (const Tensor& w : weights) w.setRequiresGrad(true);
  Optimizer optimizer(weights, rule);
  for (int i = 0; i < steps; ++i) {
    const Tensor x = start({10 + i, 4}, 4 + i), y = start({10 + i, 2}, 5 + i);
    optimizer.zeroGrad();
    optimizer.groups()[0].setLr(0.1 / (i + 1));
    backward(program.call("loss", {x, y, weights[0], weights[1], weights[2]}).tensor());
    optimizer.step();
    if (!weights[0].device().isCpu()) lazy::markStep();
  }
  return {weights, optimizer.stateDict()};
}

std::vector<std::pair<std::string, UpdateRule>> rules() {
  return {
      {"sgd", Sgd{}},
      {"momentum", Sgd{.momentum = 0.9}},
      {"nesterov", Sgd{.momentum = 0.9, .weight_decay = 0.01, .nesterov = true}},
      {"maximize", Sgd{.momentum = 0.9, .weight_decay = 0.01, .maximize = true}},
      {"adam", Adam{}},
      {"amsgrad", Adam{.weight_decay = 0.1, .amsgrad = true}},
      {"adamw", AdamW{}},
      {"rmsprop", RmsProp{}},
      {"centered", RmsProp{.weight_decay = 0.1, .momentum = 0.5, .centered = true}},
      {"adagrad", Adagrad{.lr_decay = 0.1, .initial_accumulator_value = 0.5}},
  };
}

void expectNearState(const IValue& got, const IValue& want, const std::string& what) {
  const DictObject& all = want["state"].toDict();
  EXPECT_EQ(got["state"].toDict().size(), all.size()) << what;
  for (const auto& [number, entries] : all.items()) {
    for (const auto& [name, value] : entries.toDict().items()) {
      if (!value.isTensor()) continue;
      const IValue* found = got["state"].toDict().find(number)->toDict().find(name);
      ASSERT_TRUE(found) << what;
      expectNear(found->toTensor(), value.toTensor(), what + " " + name.repr());
    }
  }
}

TEST_F(Lazy, OptimizersComputeInOneProgram) {
  for (const DType dtype : {DType::Float, DType::Double}) {
    for (const auto& [name, rule] : rules()) {
      lazy::resetCounters();
      const std::string what = fmt::format("{} {}", name, toString(dtype));
      const Trained got = train(lazyOf, rule, dtype, 5), want = train(onCpu, rule, dtype, 5);
      EXPECT_EQ(lazy::counters().compiled, 1u) << what << "\n" << lazy::report();
      EXPECT_EQ(lazy::counters().found, 4u) << what;
      EXPECT_EQ(lazy::counters().evaluations, 5u) << what;
      EXPECT_TRUE(lazy::counters().immediate.empty()) << what << "\n" << lazy::report();
      for (size_t i = 0; i < want.weights.size(); ++i) {
        expectNear(got.weights[i].detach(), want.weights[i].detach(), what);
      }
      expectNearState(got.state, want.state, what);
    }
  }
}

// The first step of a momentum that takes less than the whole gradient is another computation.
TEST_F(Lazy, DampenedMomentumBeginsWithTheGradient) {
  const Sgd rule{.momentum = 0.9, .dampening = 0.5};
  const Trained got = train(lazyOf, rule, DType::Float, 4);
  EXPECT_EQ(lazy::counters().compiled, 2u);
  const Trained want = train(onCpu, rule, DType::Float, 4);
  for (size_t i = 0; i < 3; ++i) expectNear(got.weights[i].detach(), want.weights[i].detach());
}

TEST_F(Lazy, OptimizersOfComplexNumbers) {
  for (const auto& [name, rule] : rules()) {
    const auto run = [&](const Place& place) {
      const Tensor w = leaf(place(numbers({5, 2}, 1).to(DType::ComplexFloat)));
      Optimizer optimizer({w}, rule);
      for (int i = 0; i < 3; ++i) {
        setGradient(w, place(numbers({5, 2}, 2 + i).to(DType::ComplexFloat)));
        optimizer.step();
      }
      return w.detach();
    };
    expectNear(run(lazyOf), run(onCpu), name);
  }
}

TEST_F(Lazy, StatesGoBothWays) {
  const Tensor w = leaf(lazyOf(numbers({4, 3})));
  const Tensor u = leaf(numbers({4, 3}));
  Optimizer there({w}, Adam{}), here({u}, Adam{});
  const auto step = [](Optimizer& optimizer, const Tensor& p, const Tensor& gradient) {
    setGradient(p, gradient);
    optimizer.step();
  };
  const auto gradient = [](int i) { return numbers({4, 3}, 10 + i); };
  step(there, w, lazyOf(gradient(0)));
  step(here, u, gradient(0));
  here.loadStateDict(there.stateDict());
  there.loadStateDict(here.stateDict());
  step(there, w, lazyOf(gradient(1)));
  step(here, u, gradient(1));
  expectNear(w.detach(), u.detach());
  expectNearState(there.stateDict(), here.stateDict(), "adam");
}

TEST_F(Lazy, WrongGradientsAndParametersAreRefused) {
  const Tensor w = leaf(lazyOf(numbers({4, 3})));
  Optimizer optimizer({w}, Sgd{});
  setGradient(w, lazyOf(numbers({4, 3})));
  optimizer.zeroGrad(false);
  expectSame(gradientOf(w), Tensor::zeros({4, 3}, DType::Float));
  EXPECT_THAT(errorOf([&] {
                const Tensor m = Tensor::empty({3}, DType::Float, Device{DeviceType::Meta, -1});
                Optimizer({leaf(m)}, Sgd{});
              }),
              HasSubstr("tensors of this device have only sizes"));
}

TEST_F(Lazy, ClippedGradients) {
  const std::vector<Tensor> gradients = {numbers({4, 3}, 1), numbers({7}, 2).transpose(0, 0),
                                         numbers({3, 5}, 3).transpose(0, 1)};
  const auto clipped = [&](const Place& place, const std::function<double(std::vector<Tensor>)>& f,
                           double& norm) {
    std::vector<Tensor> parameters, made;
    for (const Tensor& g : gradients) {
      parameters.push_back(leaf(place(Tensor::zeros(g.sizes(), DType::Float))));
      setGradient(parameters.back(), place(g));
    }
    norm = f(parameters);
    for (const Tensor& p : parameters) made.push_back(gradientOf(p));
    return made;
  };
  const auto compare = [&](const std::function<double(std::vector<Tensor>)>& f, double within) {
    double got_norm = 0, want_norm = 0;
    const auto got = clipped(lazyOf, f, got_norm), want = clipped(onCpu, f, want_norm);
    EXPECT_NEAR(got_norm, want_norm, within * std::abs(want_norm));
    for (size_t i = 0; i < want.size(); ++i) {
      const Tensor a = moveTo(got[i], Device()).contiguous(), b = want[i].contiguous();
      for (int64_t k = 0; k < b.numel(); ++k) {
        const float x = b.span<float>()[static_cast<size_t>(k)];
        EXPECT_NEAR(a.span<float>()[static_cast<size_t>(k)], x, within * std::abs(x));
      }
    }
  };
  for (const double p : {1.0, 2.0, 3.0, HUGE_VAL}) {
    for (const double most : {0.5, 1e6}) {
      compare([&](const auto& all) { return clipGradNorm(all, most, p); }, 1e-6);
    }
  }
  for (const double p : {1.0, 2.0, HUGE_VAL}) {
    for (const double most : {0.5, 1e6}) {
      compare(
          [&](const auto& all) {
            if (all[0].device().isCpu()) return clipGradNorm(all, most, p);
            const uint64_t before = lazy::counters().evaluations;
            const Tensor norm = clipGradNormThere(all, most, p);
            EXPECT_EQ(lazy::counters().evaluations, before);
            return static_cast<double>(moveTo(norm, Device()).item<float>());
          },
          1e-6);
    }
  }
  compare(
      [](const auto& all) {
        clipGradValue(all, 0.25);
        return 0.0;
      },
      0);
}

TEST_F(Lazy, ClippingThereNeedsOneDevice) {
  EXPECT_FALSE(clipGradNormThere({leaf(lazyOf(numbers({3})))}, 1).defined());
  const Tensor here = leaf(numbers({3}));
  setGradient(here, numbers({3}));
  EXPECT_THAT(errorOf([&] { clipGradNormThere({here}, 1); }), HasSubstr("clipGradNorm"));
}

}  // namespace
}  // namespace wick::optimizer_test
