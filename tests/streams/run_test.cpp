// Running plans: results, order, limits, errors.
#include "streams/schedule/run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "runtime/call.h"
#include "runtime/compile_queue.h"
#include "streams/from_method.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::streams::run_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_errors::errorOf;

// A program with its stream graph.
struct Streamed {
  explicit Streamed(const std::string& source)
      : text(compile(source)), program(inlinedFunction(text.function("main"), nullptr)) {
    graph = fromMethod(program, nullptr, nullptr);
  }
  Program text;
  std::shared_ptr<GraphFunction> program;
  StreamGraph graph;
};

// Each filter a stage, with copies where there is no state.
Plan finePlan(const StreamGraph& graph, int64_t replicas = 1) {
  Plan plan;
  for (size_t i = 0; i < graph.filters.size(); ++i) {
    plan.stages.push_back({i, i + 1, graph.filters[i].stateful ? 1 : replicas, 0, 0});
  }
  plan.queue = 2;
  return plan;
}

ItemSource itemsFrom(const std::vector<std::vector<IValue>>& items) {
  return [&items](int64_t index) -> std::optional<std::vector<IValue>> {
    if (index >= static_cast<int64_t>(items.size())) return std::nullopt;
    return items[static_cast<size_t>(index)];
  };
}

Tensor numbers(int64_t rows, int64_t columns, int64_t seed) {
  Tensor t = Tensor::empty({rows, columns}, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>((i * 7919 + seed * 104729) % 1000) / 1000 - 0.5f;
  }
  return t;
}

void expectSameBits(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.numel(), b.numel());
  const Tensor left = a.contiguous(), right = b.contiguous();
  EXPECT_EQ(std::memcmp(left.data<float>(), right.data<float>(),
                        static_cast<size_t>(a.numel()) * sizeof(float)),
            0);
}

const char* const kNet = R"(
def main(x: Tensor, w: Tensor, scale: float) -> Tuple[Tensor, float]:
    a = torch.relu(x @ w) * scale
    b = torch.softmax(a @ w + a, -1)
    c = torch.tanh(b @ w)
    return torch.layer_norm(c @ w + a, [16]), scale * 2.0
)";

TEST(PipelineTest, ResultsAreThoseOfCallsOneByOne) {
  const Streamed net(kNet);
  ASSERT_GE(net.graph.filters.size(), 4u);
  std::vector<std::vector<IValue>> items;
  for (int64_t i = 0; i < 40; ++i) {
    items.push_back({numbers(8, 16, i), numbers(16, 16, 1), 0.5 + static_cast<double>(i)});
  }
  for (const int64_t replicas : {1, 3}) {
    Pipeline pipeline(net.graph, finePlan(net.graph, replicas));
    std::vector<IValue> results;
    const auto collect = [&](int64_t index, IValue result) {
      EXPECT_EQ(index, static_cast<int64_t>(results.size()));
      results.push_back(std::move(result));
    };
    // Kernels are compiled on the way; their sums may differ from those of operators.
    for (int round = 0; round < 3; ++round) {
      results.clear();
      pipeline.run(itemsFrom(items), collect);
      for (const auto& item : items) callFunction(*net.program, item);
      waitForCompiles();
    }
    results.clear();
    const RunReport report = pipeline.run(itemsFrom(items), collect);
    ASSERT_EQ(results.size(), items.size());
    EXPECT_EQ(report.items, 40);
    EXPECT_EQ(report.latency_milliseconds.size(), 40u);
    for (const StageTimes& times : report.stages) {
      EXPECT_EQ(times.items, 40);
      ASSERT_EQ(times.milliseconds.size(), 40u);
      for (const double time : times.milliseconds) EXPECT_GT(time, 0);
    }
    for (size_t i = 0; i < items.size(); ++i) {
      const IValue expected = callFunction(*net.program, items[i]);
      expectSameBits(expected[0].toTensor(), results[i][0].toTensor());
      EXPECT_EQ(expected[1].toDouble(), results[i][1].toDouble());
    }
  }
}

TEST(PipelineTest, AModelPreparedForInference) {
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = module.method("forward");
  const auto prepared = optimizeForInference(module.object(), forward, /*for_any_rank=*/false);
  const StreamGraph graph = fromMethod(prepared, &forward, &module);
  const Tensor image = Tensor::empty({1, 1, 28, 28}, DType::Float);
  for (int64_t i = 0; i < 784; ++i) image.data<float>()[i] = static_cast<float>(i % 17) / 17;
  const Costs costs = measureCosts(graph, {image}, {0.05, 4});
  ASSERT_EQ(costs.milliseconds.size(), graph.filters.size());
  EXPECT_EQ(costs.bytes[0], 784 * 4);
  EXPECT_GT(costs.whole_milliseconds, 0);
  Pipeline pipeline(graph, partition(graph, costs, 2));
  std::vector<Tensor> results;
  for (int round = 0; round < 3; ++round) {
    results.clear();
    pipeline.run(
        [&](int64_t index) {
          return index < 5 ? std::optional(std::vector<IValue>{image}) : std::nullopt;
        },
        [&](int64_t, IValue result) { results.push_back(result.toTensor()); });
    callFunction(*prepared, {image});
    waitForCompiles();
  }
  const ThreadsScope one(1);
  const Tensor expected = callFunction(*prepared, {image}).toTensor();
  ASSERT_EQ(results.size(), 5u);
  for (const Tensor& result : results) expectSameBits(expected, result);
}

TEST(PipelineTest, TheFirstErrorNamesItemAndStage) {
  const Streamed net(R"(
def main(x: Tensor, n: int) -> Tensor:
    y = x @ x
    if n == 5:
        raise ValueError("five is too much")
    return (y @ y) @ y
)");
  std::vector<std::vector<IValue>> items;
  for (int64_t i = 0; i < 100; ++i) items.push_back({numbers(4, 4, i), i});
  Pipeline pipeline(net.graph, finePlan(net.graph));
  int64_t delivered = 0;
  const std::string error =
      errorOf([&] { pipeline.run(itemsFrom(items), [&](int64_t, IValue) { ++delivered; }); });
  EXPECT_THAT(error, AllOf(HasSubstr("item 5, stage "), HasSubstr("five is too much")));
  EXPECT_LE(delivered, 5);
  // The next run begins anew.
  items.resize(5);
  EXPECT_EQ(pipeline.run(itemsFrom(items), [](int64_t, IValue) {}).items, 5);
}

TEST(PipelineTest, ArgumentsOfAnotherTypeNameTheirItem) {
  const Streamed net("def main(x: Tensor) -> Tensor:\n    return torch.relu(x @ x)\n");
  const std::vector<std::vector<IValue>> items = {{numbers(4, 4, 1)}, {IValue(3)}};
  Pipeline pipeline(net.graph, finePlan(net.graph));
  EXPECT_THAT(
      errorOf([&] { pipeline.run(itemsFrom(items), [](int64_t, IValue) {}); }),
      AllOf(HasSubstr("item 1, stage 1 ("), HasSubstr("Expected a value of type 'Tensor'")));
}

const char* const kLong = R"(
def main(x: Tensor, n: int) -> Tensor:
    y = x @ x
    for i in range(n):
        y = torch.tanh(y @ x)
    return y @ x
)";

TEST(PipelineTest, EndsInTimeWhateverItWaitsFor) {
  const Streamed net(kLong);
  const std::vector<std::vector<IValue>> items = {{numbers(4, 4, 1), int64_t{1} << 40}};
  Pipeline pipeline(net.graph, finePlan(net.graph));
  PipelineOptions options;
  options.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  EXPECT_THAT(errorOf([&] {
                pipeline.run(
                    itemsFrom(items), [](int64_t, IValue) {}, options);
              }),
              HasSubstr("time limit"));
  // The same by the budget of the calling thread.
  Budget budget({std::chrono::steady_clock::now() + std::chrono::milliseconds(50), 0, nullptr});
  const BudgetScope scope(&budget);
  EXPECT_THAT(errorOf([&] { pipeline.run(itemsFrom(items), [](int64_t, IValue) {}); }),
              HasSubstr("time limit"));
}

TEST(PipelineTest, AnInterruptEndsIt) {
  const Streamed net(kLong);
  const std::vector<std::vector<IValue>> items = {{numbers(4, 4, 1), int64_t{1} << 40}};
  Pipeline pipeline(net.graph, finePlan(net.graph));
  PipelineOptions options;
  const auto interrupt = std::make_shared<std::atomic<bool>>(false);
  options.interrupt = interrupt;
  std::thread other([&] { interrupt->store(true); });
  EXPECT_THAT(errorOf([&] {
                pipeline.run(
                    itemsFrom(items), [](int64_t, IValue) {}, options);
              }),
              HasSubstr("interrupt"));
  other.join();
}

TEST(PipelineTest, ItemsUnderWayAreLimited) {
  const Streamed net(kLong);
  Plan plan = finePlan(net.graph);
  plan.in_flight = 2;
  Pipeline pipeline(net.graph, std::move(plan));
  std::atomic<int64_t> given{0};
  std::atomic<int64_t> delivered{0};
  std::atomic<int64_t> most{0};
  pipeline.run(
      [&](int64_t index) -> std::optional<std::vector<IValue>> {
        if (index == 50) return std::nullopt;
        most = std::max(most.load(), ++given - delivered);
        return std::vector<IValue>{numbers(4, 4, index), int64_t{3}};
      },
      [&](int64_t, IValue) { ++delivered; });
  EXPECT_EQ(delivered, 50);
  EXPECT_LE(most, 2);
}

TEST(PipelineTest, StateSeesItemsInOrder) {
  const Streamed net(R"(
def main(x: Tensor) -> Tensor:
    y = (x @ x) @ x
    return torch.rand([4, 4]) @ y
)");
  Pipeline pipeline(net.graph, finePlan(net.graph, 2));
  const std::vector<std::vector<IValue>> items(10, std::vector<IValue>{numbers(4, 4, 1)});
  std::vector<Tensor> expected, results;
  defaultGenerator().seed(3);
  const ThreadsScope one(1);
  for (const auto& item : items) expected.push_back(callFunction(*net.program, item).toTensor());
  defaultGenerator().seed(3);
  pipeline.run(itemsFrom(items),
               [&](int64_t, IValue result) { results.push_back(result.toTensor()); });
  ASSERT_EQ(results.size(), 10u);
  for (size_t i = 0; i < 10; ++i) expectSameBits(expected[i], results[i]);
}

TEST(PipelineTest, ErrorsOfSourceAndSinkEndTheRun) {
  const Streamed net(kLong);
  Pipeline pipeline(net.graph, finePlan(net.graph));
  EXPECT_THAT(
      errorOf([&] {
        pipeline.run(
            [](int64_t) -> std::optional<std::vector<IValue>> { throw UsageError("no more data"); },
            [](int64_t, IValue) {});
      }),
      HasSubstr("no more data"));
  EXPECT_THAT(errorOf([&] {
                pipeline.run(
                    [](int64_t) {
                      return std::optional(std::vector<IValue>{numbers(4, 4, 1), int64_t{1}});
                    },
                    [](int64_t index, IValue) {
                      if (index == 3) throw UsageError("the disk is full");
                    });
              }),
              HasSubstr("the disk is full"));
  EXPECT_THAT(errorOf([&] {
                pipeline.run([](int64_t) { return std::optional(std::vector<IValue>{}); },
                             [](int64_t, IValue) {});
              }),
              HasSubstr("expected 2 arguments, found 0"));
}

}  // namespace
}  // namespace wick::streams::run_test
