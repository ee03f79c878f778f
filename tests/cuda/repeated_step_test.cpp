// Steps of trainings that are repeated as graphs, without a GPU: the fake driver's graphs do what was
// queued, which is copies here.
#include "training/repeated_step.h"

#include <gtest/gtest.h>

#include "autograd/tape.h"
#include "core/device_backend.h"
#include "runtime/cuda/call_graphs.h"
#include "runtime/cuda/device.h"
#include "runtime/device_moves.h"
#include "runtime/module_builder.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"
#include "training/backward.h"

namespace wick::training::repeated_step_test {
namespace {

using cuda::kCuda;

Tensor numbers(const std::vector<float>& values) {
  return cuda::onDevice(values);
}
std::vector<float> read(const Tensor& t) {
  return cuda::elementsOf<float>(t);
}

Module moduleWith(const std::string& body) {
  ModuleBuilder builder("Net");
  builder.registerParameter("w", Tensor::zeros({3}, DType::Float));
  builder.registerBuffer("seen", Tensor::zeros({3}, DType::Float));
  builder.registerAttribute("calls", types::Int(), 0);
  builder.registerAttribute("kept", types::List(types::Int()),
                            IValue(makeIntList(std::vector<int64_t>{})));
  builder.define("def forward(self, x: Tensor) -> Tensor:\n" + body + "    return x\n");
  const Module module = builder.build();
  const IValue object(module.object());
  moveTensors({&object, 1}, kCuda);
  return module;
}

class RepeatedSteps : public testing::Test {
 protected:
  ~RepeatedSteps() override { cuda::dropCallGraphs(cuda::deviceAt(0)); }

  static DataSet batchOf(std::vector<float> x) {
    DataSet batch;
    batch.inputs.emplace_back("x", numbers(x));
    batch.targets = numbers({0});
    return batch;
  }
  // The gradient is the batch, the loss its copy.
  RepeatedStep::Run runFor(const Module& module) {
    return [this, module](const DataSet& batch) {
      ++runs_;
      const Tensor& x = batch.inputs[0].second;
      const Tensor a = Tensor::emptyLike(x, x.dtype()), b = Tensor::emptyLike(x, x.dtype());
      const Tensor gradient = Tensor::emptyLike(x, x.dtype());
      a.copyFrom(x);
      b.copyFrom(a);
      gradient.copyFrom(b);
      if (x.numel() == 3) module.buffers()[0].second.copyFrom(gradient);
      setGradient(module.parameters()[0].second, gradient);
      return RepeatedStep::Result{b, {}};
    };
  }
  // As a trainer does.
  std::vector<float> step(RepeatedStep& repeated, const Module& module, const DataSet& batch) {
    const Tensor parameter = module.parameters()[0].second;
    setGradient(parameter, Tensor());
    std::optional<RepeatedStep::Result> result = repeated.repeat(batch, runFor(module));
    if (!result) {
      EXPECT_FALSE(gradientOf(parameter).defined());
      result = runFor(module)(batch);
    }
    EXPECT_EQ(read(result->loss), read(batch.inputs[0].second));
    return read(gradientOf(parameter));
  }

  cuda::FakeDriver driver_;
  int runs_ = 0;
};

TEST_F(RepeatedSteps, LaterStepsAreLaunched) {
  const Module module = moduleWith("    self.seen.add_(1)\n");
  RepeatedStep repeated(module, module.method("forward"), {module.parameters()[0].second},
                        placeOf(kCuda), "");
  EXPECT_EQ(repeated.refusal(), "");
  std::vector<DataSet> batches;  // at different places
  for (int i = 0; i < 12; ++i) {
    const auto f = static_cast<float>(i);
    batches.push_back(batchOf({f, f + 1, f + 2}));
    EXPECT_EQ(step(repeated, module, batches.back()), (std::vector<float>{f, f + 1, f + 2}));
    EXPECT_EQ(read(module.buffers()[0].second), (std::vector<float>{f, f + 1, f + 2}));
  }
  // Four ordinary steps, then one capture for where the batch lay and one with copies.
  EXPECT_EQ(repeated.repeated(), 8);
  EXPECT_EQ(runs_, 6);
  EXPECT_EQ(driver_.state().graph_launches, 8u);
  // Other sizes are another graph.
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(step(repeated, module, batchOf({5})), std::vector<float>{5});
  }
  EXPECT_EQ(repeated.repeated(), 10);
}

TEST_F(RepeatedSteps, ForgottenOnesAreCapturedAgain) {
  const Module module = moduleWith("");
  RepeatedStep repeated(module, module.method("forward"), {module.parameters()[0].second},
                        placeOf(kCuda), "");
  const DataSet batch = batchOf({1, 2, 3});
  for (int i = 0; i < 6; ++i) step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 2);
  repeated.forget();
  for (int i = 0; i < 4; ++i) step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 2);
  step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 3);
}

TEST_F(RepeatedSteps, OtherNumbersAreAnotherStep) {
  const Module module = moduleWith("    self.seen.add_(self.calls)\n");
  RepeatedStep repeated(module, module.method("forward"), {module.parameters()[0].second},
                        placeOf(kCuda), "");
  const DataSet batch = batchOf({1, 2, 3});
  for (int i = 0; i < 6; ++i) step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 2);
  const int before = runs_;
  module.object()->setAttr("calls", IValue(int64_t{7}));
  step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 2);
  EXPECT_EQ(runs_, before + 1);
  module.object()->setAttr("calls", IValue(int64_t{0}));
  step(repeated, module, batch);
  EXPECT_EQ(repeated.repeated(), 3);
}

TEST_F(RepeatedSteps, WhatDoesMoreThanComputeIsRefused) {
  const auto refusalOf = [](const std::string& body) {
    const Module module = moduleWith(body);
    return RepeatedStep(module, module.method("forward"), {module.parameters()[0].second},
                        placeOf(kCuda), "")
        .refusal();
  };
  EXPECT_EQ(refusalOf("    y = [1]\n    y.append(2)\n    self.seen.add_(y[0])\n"), "");
  EXPECT_EQ(refusalOf("    self.calls = self.calls + 1\n"), "the model sets an attribute");
  EXPECT_EQ(refusalOf("    if x.dim() > 0:\n        print(x)\n"), "the model prints");
  EXPECT_EQ(refusalOf("    if float(torch.rand(1)) < 0.5:\n        self.seen.add_(1)\n"),
            "the model draws random numbers");
  EXPECT_EQ(refusalOf("    self.kept.append(1)\n"),
            "the model changes a List[int] that outlives it");
}

TEST_F(RepeatedSteps, WhatWaitsIsRunEachTime) {
  const Module module = moduleWith("");
  RepeatedStep repeated(module, module.method("forward"), {module.parameters()[0].second},
                        placeOf(kCuda), "");
  const DataSet batch = batchOf({1, 2, 3});
  for (int i = 0; i < 20; ++i) {
    const auto result = repeated.repeat(batch, [&](const DataSet& given) {
      read(given.targets);
      return runFor(module)(given);
    });
    EXPECT_FALSE(result);
    EXPECT_FALSE(gradientOf(module.parameters()[0].second).defined());
  }
  EXPECT_EQ(repeated.repeated(), 0);
  EXPECT_NE(repeated.refusal().find("a copy between devices"), std::string::npos)
      << repeated.refusal();
}

}  // namespace
}  // namespace wick::training::repeated_step_test
