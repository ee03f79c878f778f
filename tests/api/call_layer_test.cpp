// Layers around calls of operators: what they see, in which order, and that they end with their scope.
#include "ir/call_layer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <mutex>

#include "core/error.h"
#include "wick.h"

namespace wick::call_layer_test {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::IsEmpty;

class Names : public CallLayer {
 public:
  explicit Names(CallLayerSlot slot) : slot_(slot) {}
  void call(const LayerCall& call) override {
    {
      std::lock_guard lock(mutex_);
      names.push_back(call.op.schema().name());
    }
    callBelow(slot_, call);
  }
  std::vector<std::string> names;

 private:
  const CallLayerSlot slot_;
  std::mutex mutex_;
};

const char* const kScript =
    "def f(x: Tensor) -> Tensor:\n"
    "    return torch.matmul(x, x)\n"
    "def loss(x: Tensor, y: Tensor) -> Tensor:\n"
    "    return torch.nn.functional.soft_margin_loss(x, y)\n"
    "def forked(x: Tensor) -> Tensor:\n"
    "    a = torch.jit.fork(f, x)\n"
    "    return torch.jit.wait(a)\n"
    "def wrong(x: Tensor) -> Tensor:\n"
    "    return torch.matmul(x, torch.zeros([7, 7]))\n";

TEST(CallLayers, SeeCallsOfScripts) {
  Program program = compile(kScript);
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  Names layer(CallLayerSlot::Observe);
  for (int i = 0; i < 4; ++i) {
    layer.names.clear();
    CallLayerScope scope(CallLayerSlot::Observe, &layer);
    program.call("f", {x});
    EXPECT_THAT(layer.names, Contains("aten::matmul")) << i;
  }
  layer.names.clear();
  program.call("f", {x});
  EXPECT_THAT(layer.names, IsEmpty());
}

TEST(CallLayers, SeeWhatKernelsCall) {
  Program program = compile(kScript);
  const Tensor x = Tensor::from({1.f, 2.f}), y = Tensor::from({1.f, -1.f});
  Names layer(CallLayerSlot::Observe);
  CallLayerScope scope(CallLayerSlot::Observe, &layer);
  program.call("loss", {x, y});
  EXPECT_GT(layer.names.size(), 1u);
}

TEST(CallLayers, GoWithForks) {
  Program program = compile(kScript);
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  Names layer(CallLayerSlot::Observe);
  CallLayerScope scope(CallLayerSlot::Observe, &layer);
  program.call("forked", {x});
  EXPECT_THAT(layer.names, Contains("aten::matmul"));
}

TEST(CallLayers, ComeInTheirOrder) {
  Program program = compile(kScript);
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  std::vector<int> order;
  class Numbered : public CallLayer {
   public:
    Numbered(CallLayerSlot slot, std::vector<int>& order) : slot_(slot), order_(order) {}
    void call(const LayerCall& call) override {
      order_.push_back(static_cast<int>(slot_));
      // Not what the kernel calls.
      callBelow(slot_, call);
    }

   private:
    const CallLayerSlot slot_;
    std::vector<int>& order_;
  };
  Numbered lazy(CallLayerSlot::Lazy, order), observe(CallLayerSlot::Observe, order);
  CallLayerScope inner(CallLayerSlot::Lazy, &lazy);
  CallLayerScope outer(CallLayerSlot::Observe, &observe);
  const Operator* op = OperatorRegistry::instance().find(Symbol::fromQualString("aten::relu"), "");
  ASSERT_NE(op, nullptr);
  IValue argument(x), result;
  op->call(&argument, 1, &result, 1);
  EXPECT_THAT(order, ElementsAre(0, 2));
}

TEST(CallLayers, MayAnswerThemselves) {
  class Answer : public CallLayer {
   public:
    void call(const LayerCall& call) override {
      CallLayerScope off(CallLayerSlot::Lazy, nullptr);
      call.results[0] = IValue(Tensor::from({42.f}));
    }
  } answer;
  CallLayerScope scope(CallLayerSlot::Lazy, &answer);
  const Operator* op = OperatorRegistry::instance().find(Symbol::fromQualString("aten::relu"), "");
  IValue argument(Tensor::from({-1.f})), result;
  op->call(&argument, 1, &result, 1);
  EXPECT_EQ(result.toTensor().data<float>()[0], 42.f);
}

TEST(CallLayers, StandAboveGradients) {
  Names layer(CallLayerSlot::Observe);
  CallLayerScope scope(CallLayerSlot::Observe, &layer);
  Program program = compile("def f(x: Tensor) -> Tensor:\n    return (x * x).sum()\n");
  Tensor x = Tensor::from({3.f, 4.f});
  x.setRequiresGrad(true);
  Tensor y = program.call("f", {x}).toTensor();
  EXPECT_TRUE(y.requiresGrad());
}

TEST(CallLayers, EndWithTheirScopeAlsoAfterErrors) {
  Program program = compile(kScript);
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f}, {2, 2});
  Names layer(CallLayerSlot::Observe);
  EXPECT_THROW(
      {
        CallLayerScope scope(CallLayerSlot::Observe, &layer);
        program.call("wrong", {x});
      },
      RuntimeError);
  EXPECT_EQ(threadContext().active_layers, 0);
}

}  // namespace
}  // namespace wick::call_layer_test
