// Executors: signatures, plans for them, profiles and bail-outs, from many threads.
#include <gtest/gtest.h>

#include <thread>

#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/call.h"
#include "runtime/executor/execution_plan.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/interpreter/slow_paths.h"

namespace wick::executor_test {
namespace {

Tensor filled(IntSpan sizes, DType dtype = DType::Float, double value = 1.0) {
  return Tensor::full(sizes, value, dtype);
}

std::shared_ptr<GraphFunction> function(const std::string& text) {
  return std::make_shared<GraphFunction>("__torch__.f", parseGraph(text));
}

class Caller {
 public:
  explicit Caller(const std::string& text) : function_(function(text)), executor_(*function_) {}
  IValue operator()(std::vector<IValue> arguments) {
    const Code& code = executor_.codeFor(arguments);
    return runCode(code, std::move(arguments));
  }
  const Code& code(std::vector<IValue> arguments) { return executor_.codeFor(arguments); }
  GraphExecutor::Statistics statistics() const { return executor_.statistics(); }
  GraphExecutor& executor() { return executor_; }

 private:
  std::shared_ptr<GraphFunction> function_;
  GraphExecutor executor_;
};

class ExecutorTest : public ::testing::Test {
 protected:
  void TearDown() override { setOptimizationLevel(OptimizationLevel::Default); }
};

// ---- signatures ----

std::string signature(const std::string& text, std::vector<IValue> arguments) {
  auto graph = parseGraph(text);
  return ArgumentSpec(ArgumentPlaces(*graph), arguments).str();
}

bool same(const std::string& text, std::vector<IValue> a, std::vector<IValue> b) {
  auto graph = parseGraph(text);
  ArgumentPlaces places(*graph);
  ArgumentSpec first(places, a);
  ArgumentSpec second(places, b);
  EXPECT_EQ(first == second, first.hash() == second.hash());
  return first == second;
}

const char* const kOne = "graph(%x : Tensor):\n  return (%x)\n";
const char* const kOptional = "graph(%x : Tensor?, %n : int):\n  return (%x)\n";
const char* const kList = "graph(%x : Tensor[]):\n  return (%x)\n";
const char* const kTuple = "graph(%x : (Tensor, int, (Tensor, Tensor?))):\n  return (%x)\n";

TEST_F(ExecutorTest, SignaturesIgnoreSizes) {
  EXPECT_TRUE(same(kOne, {filled({2, 3})}, {filled({7, 1})}));
  EXPECT_TRUE(same(kOne, {filled({0})}, {filled({5})}));
}

TEST_F(ExecutorTest, SignaturesTellPropertiesApart) {
  IValue x = filled({2, 3});
  EXPECT_FALSE(same(kOne, {x}, {filled({2, 3}, DType::Double)}));
  EXPECT_FALSE(same(kOne, {x}, {filled({6})}));
  EXPECT_FALSE(same(kOne, {x}, {filled({3, 2}).transpose(0, 1)}));
  Tensor grad = filled({2, 3});
  grad.setRequiresGrad(true);
  EXPECT_FALSE(same(kOne, {x}, {grad}));
  EXPECT_FALSE(same(kOptional, {x, 1}, {IValue(), 1}));
  EXPECT_TRUE(same(kOptional, {x, 1}, {x, 2}));
  IValue image = filled({2, 3, 4, 5});
  IValue last = filled({2, 3, 4, 5}).contiguous(MemoryFormat::ChannelsLast);
  EXPECT_FALSE(same(kOne, {image}, {last}));
  EXPECT_TRUE(same(kOne, {last}, {filled({3, 2, 7, 5}).contiguous(MemoryFormat::ChannelsLast)}));
  EXPECT_FALSE(same(kOne, {last}, {filled({2, 3, 5, 4}).transpose(2, 3)}));
}

TEST_F(ExecutorTest, SignaturesOfContainers) {
  auto list = [](std::vector<Tensor> tensors) { return IValue(makeTensorList(tensors)); };
  Tensor f = filled({2});
  Tensor d = filled({2}, DType::Double);
  EXPECT_TRUE(same(kList, {list({f})}, {list({f, f, f})}));
  EXPECT_FALSE(same(kList, {list({f})}, {list({d})}));
  EXPECT_FALSE(same(kList, {list({f})}, {list({f, d})}));
  // Of a mixed list it is only known what is common.
  EXPECT_EQ(signature(kList, {list({f, d})}), "(Tensor(*, requires_grad=0, device=cpu))");
  EXPECT_EQ(signature(kList, {list({})}), "(Any)");
  auto tuple = [](IValue a, IValue b, IValue c) {
    return IValue(makeTuple({a, 3, IValue(makeTuple({b, c}))}));
  };
  EXPECT_EQ(signature(kTuple, {tuple(f, d, IValue())}),
            "(Float(*, requires_grad=0, device=cpu), Double(*, requires_grad=0, device=cpu), "
            "NoneType)");
  EXPECT_FALSE(same(kTuple, {tuple(f, d, IValue())}, {tuple(f, d, d)}));
}

TEST_F(ExecutorTest, SignaturesHoldTheSlotsThatAreReadAndNeverSet) {
  auto type = std::make_shared<ClassType>("__torch__.M", true);
  type->addAttribute("weight", types::Tensor());
  type->addAttribute("unused", types::Tensor());
  type->addAttribute("count", types::Tensor());
  auto graph = std::make_shared<Graph>();
  Value* self = graph->addInput("self", type);
  Value* weight = graph->insertNode(graph->createGetAttr(self, "weight"))->output();
  graph->insertNode(graph->createGetAttr(self, "count"));
  graph->insertNode(graph->createSetAttr(self, "count", weight));
  graph->registerOutput(weight);
  ArgumentPlaces places(*graph);
  EXPECT_EQ(places.size(), 1u);
  auto object = makeRef<Object>(type, nullptr);
  object->setAttr("weight", filled({3}, DType::Half));
  std::vector<IValue> arguments{IValue(object)};
  ArgumentSpec spec(places, arguments);
  places.refine(*graph, spec.keys());
  EXPECT_EQ(weight->type()->as<TensorType>()->facts().dtype, DType::Half);
}

// ---- plans ----

const char* const kAsks = R"(graph(%x : Tensor):
  %six : int = prim::Constant[value=6]()
  %d : int = prim::dtype(%x)
  %float : bool = aten::eq(%d, %six)
  %y : Tensor = prim::If(%float)
    block0():
      %a : Tensor = aten::neg(%x)
      -> (%a)
    block1():
      %b : Tensor = aten::relu(%x)
      -> (%b)
  return (%y)
)";

TEST_F(ExecutorTest, PlansFoldWhatTheSignatureSays) {
  Caller call(kAsks);
  EXPECT_EQ(call({filled({2})}).toTensor().data<float>()[0], -1.0f);
  EXPECT_EQ(call({filled({2}, DType::Double)}).toTensor().data<double>()[0], 1.0);
  for (const auto& x : {filled({2}), filled({2}, DType::Double)}) {
    for (const Node* n : call.code({x}).graph()->nodes()) EXPECT_NE(n->kind(), prim::If);
  }
  EXPECT_EQ(call.statistics().plans, 2u);
}

TEST_F(ExecutorTest, SizesMakeNoPlans) {
  Caller call(kAsks);
  for (int64_t batch = 0; batch < 100; ++batch) call({filled({batch, 3})});
  GraphExecutor::Statistics statistics = call.statistics();
  EXPECT_EQ(statistics.plans, 1u);
  EXPECT_EQ(statistics.codes, 1u);
  EXPECT_EQ(statistics.hits, 99u);
}

TEST_F(ExecutorTest, PlansAreBounded) {
  Caller call(kAsks);
  for (size_t rank = 0; rank < 2 * GraphExecutor::kMaxPlans; ++rank) {
    Tensor x = filled(DimVector(rank, 1));
    EXPECT_EQ(call({x}).toTensor().data<float>()[0], -1.0f) << rank;
  }
  EXPECT_EQ(call.statistics().plans, GraphExecutor::kMaxPlans);
}

TEST_F(ExecutorTest, GraphsThatAskNothingHaveOneCode) {
  Caller call("graph(%x : Tensor):\n  %y : Tensor = aten::relu(%x)\n  return (%y)\n");
  const Code& code = call.code({filled({2})});
  EXPECT_EQ(&call.code({filled({2}, DType::Double)}), &code);
  EXPECT_EQ(&call.executor().code(), &code);
  EXPECT_EQ(call.statistics().plans, 0u);
}

TEST_F(ExecutorTest, GraphsThatChangeTensorsInPlaceHaveOneCode) {
  Caller call(R"(graph(%x : Tensor):
  %zero : int = prim::Constant[value=0]()
  %y : Tensor = aten::unsqueeze_(%x, %zero)
  %d : int = aten::dim(%x)
  return (%d)
)");
  for (int i = 0; i < 3; ++i) EXPECT_EQ(call({filled({2})}).toInt(), 2);
  EXPECT_EQ(call.statistics().plans, 0u);
}

TEST_F(ExecutorTest, APlanThatGainsNothingIsTheGeneralCode) {
  Caller call(R"(graph(%x : Tensor, %y : Tensor):
  %d : int = prim::dtype(%x)
  %z : Tensor = aten::relu(%y)
  return (%z)
)");
  std::vector<IValue> arguments{filled({2}), filled({2})};
  EXPECT_EQ(&call.code(arguments), &call.executor().code());
}

TEST_F(ExecutorTest, AbsentTensorsDecideBranches) {
  Caller call(R"(graph(%x : Tensor?, %y : Tensor):
  %none : NoneType = prim::Constant()
  %absent : bool = aten::__is__(%x, %none)
  %z : Tensor = prim::If(%absent)
    block0():
      -> (%y)
    block1():
      %u : Tensor = prim::unchecked_cast(%x)
      %s : Tensor = aten::mul(%u, %y)
      -> (%s)
  return (%z)
)");
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(call({IValue(), filled({1})}).toTensor().data<float>()[0], 1.0f);
    Tensor three = filled({1}, DType::Float, 3);
    EXPECT_EQ(call({three, three}).toTensor().data<float>()[0], 9.0f);
  }
  for (const IValue& x : {IValue(), IValue(filled({1}))}) {
    for (const Node* n : call.code({x, filled({1})}).graph()->nodes()) {
      EXPECT_NE(n->kind(), prim::If);
    }
  }
}

// What the signature rules out is gone before anything is profiled.
TEST_F(ExecutorTest, DecidedBranchesNeedNoProfile) {
  Caller call(R"(graph(%x : Tensor, %y : Tensor?):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %given : bool = aten::__isnot__(%y, %none)
  %z : Tensor = prim::If(%given)
    block0():
      %u : Tensor = prim::unchecked_cast(%y)
      %s : Tensor = aten::add(%x, %u, %one)
      -> (%s)
    block1():
      -> (%x)
  %d : int = aten::dim(%z)
  return (%d)
)");
  EXPECT_EQ(call({filled({1, 2}), IValue()}).toInt(), 2);
  EXPECT_EQ(call({filled({1, 2}), filled({1, 1, 1})}).toInt(), 3);
  EXPECT_EQ(call.statistics().codes, 2u);
  EXPECT_EQ(call.statistics().profiled, 0u);
}

TEST_F(ExecutorTest, WithoutOptimizationThereAreNoPlans) {
  setOptimizationLevel(OptimizationLevel::None);
  Caller call(kAsks);
  EXPECT_EQ(call({filled({2})}).toTensor().data<float>()[0], -1.0f);
  EXPECT_EQ(call.statistics().plans, 0u);
}

// ---- profiles and bail-outs ----

// The dtype of what a dict holds follows from no signature.
const char* const kAsksTheUnknown = R"(graph(%d : Dict(str, Tensor), %n : int):
  %true : bool = prim::Constant[value=True]()
  %key : str = prim::Constant[value="x"]()
  %six : int = prim::Constant[value=6]()
  %one : int = prim::Constant[value=1]()
  %start : Tensor = aten::__getitem__(%d, %key)
  %r : Tensor = prim::Loop(%n, %true, %start)
    block0(%i : int, %p : Tensor):
      %x : Tensor = aten::__getitem__(%d, %key)
      %t : int = prim::dtype(%x)
      %float : bool = aten::eq(%t, %six)
      %q : Tensor = prim::If(%float)
        block0():
          %a : Tensor = aten::add(%p, %x, %one)
          -> (%a)
        block1():
          %b : Tensor = aten::add(%p, %i, %one)
          -> (%b)
      -> (%true, %q)
  return (%r)
)";

IValue dict(const Tensor& x) {
  auto object = makeRef<DictObject>(types::String(), types::Tensor());
  object->set(IValue("x"), IValue(x));
  return IValue(object);
}

double first(const IValue& v) {
  return v.toTensor().to(DType::Double).flatten().data<double>()[0];
}

TEST_F(ExecutorTest, ProfilesThenSupposesThenLeaves) {
  Caller call(kAsksTheUnknown);
  EXPECT_EQ(first(call({dict(filled({2})), 4})), 5);
  EXPECT_EQ(call.statistics().profiled, 1u);
  EXPECT_EQ(first(call({dict(filled({2})), 4})), 5);
  EXPECT_EQ(call.statistics().profiled, 1u);
  EXPECT_EQ(call.statistics().bail_outs, 0u);
  // 1 + (0 + 1 + 2 + 3)
  EXPECT_EQ(first(call({dict(filled({2}, DType::Double)), 4})), 7);
  EXPECT_EQ(call.statistics().bail_outs, 1u);
  EXPECT_EQ(first(call({dict(filled({3})), 4})), 5);
  EXPECT_EQ(call.statistics().plans, 1u);
}

TEST_F(ExecutorTest, GivesUpWhatFailsTooOften) {
  Caller call(kAsksTheUnknown);
  for (int i = 0; i < 40; ++i) {
    DType dtype = i % 2 == 0 ? DType::Float : DType::Double;
    EXPECT_EQ(first(call({dict(filled({2}, dtype)), 4})), i % 2 == 0 ? 5 : 7);
  }
  EXPECT_LE(call.statistics().bail_outs, ExecutionPlan::kMaxBailOuts);
}

// The second turn sees another dtype than the first: leaves in the middle of the loop.
const char* const kChangesWithinALoop = R"(graph(%xs : Tensor[], %n : int):
  %true : bool = prim::Constant[value=True]()
  %zero : int = prim::Constant[value=0]()
  %six : int = prim::Constant[value=6]()
  %one : int = prim::Constant[value=1]()
  %r : int = prim::Loop(%n, %true, %zero)
    block0(%i : int, %p : int):
      %x : Tensor = aten::__getitem__(%xs, %i)
      = prim::Print(%i)
      %t : int = prim::dtype(%x)
      %float : bool = aten::eq(%t, %six)
      %q : int = prim::If(%float)
        block0():
          %a : int = aten::add(%p, %one)
          -> (%a)
        block1():
          %h : int = aten::mul(%i, %six)
          %b : int = aten::add(%p, %h)
          -> (%b)
      -> (%true, %q)
  return (%r)
)";

TEST_F(ExecutorTest, LeavesInTheMiddleOfALoop) {
  Caller call(kChangesWithinALoop);
  Tensor f = filled({2});
  Tensor d = filled({2}, DType::Double);
  auto run = [&](std::vector<Tensor> xs) {
    auto n = static_cast<int64_t>(xs.size());
    return call({IValue(makeTensorList(xs)), n}).toInt();
  };
  // Mixed lists have one signature; what is in them is profiled.
  std::string printed;
  setPrintHandler([&](const std::string& line) { printed += line; });
  EXPECT_EQ(run({f, f, d, f}), 15);
  EXPECT_EQ(run({f, d, f}), 8);
  EXPECT_EQ(run({d, d, f, f}), 8);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(run({f, f, d, f}), 15);
  setPrintHandler(nullptr);
  EXPECT_EQ(printed.substr(0, 22), "0\n1\n2\n3\n0\n1\n2\n0\n1\n2\n3\n");
}

// ---- threads ----

TEST_F(ExecutorTest, ThreadsShareThePlans) {
  for (OptimizationLevel level : {OptimizationLevel::Default, OptimizationLevel::Stress}) {
    setOptimizationLevel(level);
    Caller call(kAsksTheUnknown);
    Caller asks(kAsks);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 60; ++i) {
          bool is_float = (i / 5 + t) % 2 == 0;
          DType dtype = is_float ? DType::Float : DType::Double;
          wrong += first(call({dict(filled({i % 3 + 1}, dtype)), 4})) != (is_float ? 5 : 7);
          wrong += first(asks({filled({i % 3 + 1}, dtype)})) != (is_float ? -1 : 1);
        }
      });
    }
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(asks.statistics().plans, 2u);
  }
}

// What is packed for a loop must not outlive it: the application may write the weight's memory.
TEST_F(ExecutorTest, LoopsMultiplyByWeightsAsTheyAre) {
  const auto text = [](const char* condition) {
    return std::string("graph(%x : Tensor, %w : Tensor, %n : int, ") + condition +
           R"( : bool):
  %y : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %a : Tensor = aten::t(%w)
      %m : Tensor = aten::mm(%p, %a)
      %q : Tensor = aten::tanh(%m)
      -> (%t, %q)
  return (%y)
)";
  };
  std::string counted = text("%unused");
  counted.insert(counted.find("  %y"), "  %t : bool = prim::Constant[value=True]()\n");
  const auto optimized = parseGraph(counted);
  runPipeline(*optimized);
  ASSERT_NE(optimized->str().find("wick::mm_weight"), std::string::npos);
  Caller packed(counted), plain(text("%t"));
  const auto numbers = [](int64_t rows, int64_t columns, int64_t seed) {
    Tensor t = Tensor::empty({rows, columns}, DType::Float);
    for (int64_t i = 0; i < t.numel(); ++i) {
      t.data<float>()[i] = static_cast<float>((i * 7919 + seed) % 101 - 50) / 200;
    }
    return t;
  };
  const Tensor x = numbers(8, 128, 3), w = numbers(128, 128, 11);
  const auto compare = [&](const Tensor& input, const Tensor& weight, int64_t turns) {
    const std::vector<IValue> arguments{IValue(input), IValue(weight), IValue(turns), IValue(true)};
    const Tensor a = packed(arguments).toTensor(), b = plain(arguments).toTensor();
    ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes()));
    for (int64_t i = 0; i < a.numel(); ++i) {
      EXPECT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-5) << i << " after " << turns;
    }
  };
  for (int64_t turns : {0, 1, 5, 6, 20}) compare(x, w, turns);
  for (int64_t i = 0; i < w.numel(); ++i) w.data<float>()[i] *= -0.75f;
  compare(x, w, 20);
  compare(x, w.transpose(0, 1), 20);
  compare(numbers(2, 128, 5), w, 20);
  compare(numbers(8, 3, 5), numbers(3, 3, 1), 20);
  // mm's own errors.
  EXPECT_THROW(compare(numbers(8, 64, 1), w, 20), RuntimeError);
  EXPECT_THROW(compare(x, numbers(128, 64, 1), 20), RuntimeError);
  EXPECT_THROW(compare(x.select(0, 0), w, 20), RuntimeError);
}

}  // namespace
}  // namespace wick::executor_test
