// Stream graphs of methods and functions.
#include "streams/from_method.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/function.h"
#include "streams/balance.h"
#include "streams/text.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::streams::from_method_test {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing_errors::errorOf;

StreamGraph streamOf(const std::string& source, const Overrides& overrides = {}) {
  // Stream graphs keep their program, not its unit.
  static std::vector<Program> programs;
  programs.push_back(compile(source));
  return fromMethod(inlinedFunction(programs.back().function("main"), nullptr), nullptr, nullptr,
                    overrides);
}

std::vector<std::string> namesOf(const StreamGraph& graph) {
  std::vector<std::string> names;
  for (const Filter& filter : graph.filters) names.push_back(filter.name);
  return names;
}

TEST(FromMethodTest, LayersOfAModelAreFilters) {
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = module.method("forward");
  const auto prepared = optimizeForInference(module.object(), forward, /*for_any_rank=*/false);
  const StreamGraph graph = fromMethod(prepared, &forward, &module);
  const std::string text = printStream(graph);
  EXPECT_EQ(printStream(parseStream(text)), text);
  EXPECT_GE(graph.filters.size(), 3u) << text;
  EXPECT_THAT(text, HasSubstr("state weight = float32["));
  // The layers of the program, by their paths.
  std::vector<std::string> layers;
  for (const auto& [name, inner] : module.modules()) {
    if (inner.children().empty()) layers.push_back(name);
  }
  EXPECT_THAT(layers, testing::Contains(graph.filters[0].name)) << text;
  const Balance b = balance(graph);
  for (int64_t firings : b.firings) EXPECT_EQ(firings, 1);
}

const char* const kBlock = R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    a = x @ w
    b = a @ w
    c = b @ w
    return (c + a) @ w
)";

TEST(FromMethodTest, ResidualsAreSplitJoins) {
  const StreamGraph graph = streamOf(kBlock);
  const std::string text = printStream(graph);
  EXPECT_EQ(namesOf(graph),
            (std::vector<std::string>{"matmul", "matmul_1", "matmul_2", "add", "matmul_3"}))
      << text;
  EXPECT_EQ(printStream(parseStream(text)), text);
}

TEST(FromMethodTest, WhatOneKernelComputesStaysTogether) {
  const StreamGraph graph = streamOf(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    y = torch.softmax(x * 2.0 + 1.0, -1) * 3.0
    return torch.relu(y @ w) + 1.0
)");
  ASSERT_EQ(graph.filters.size(), 3u) << printStream(graph);
}

TEST(FromMethodTest, ValuesOfAnyTypeFlow) {
  const StreamGraph graph = streamOf(R"(
def main(x: Tensor, n: int) -> Tuple[Tensor, int, List[int]]:
    y = x @ x
    sizes = [y.size(0), n]
    z = y @ y
    return z, n + sizes[0], sizes
)");
  const std::string text = printStream(graph);
  EXPECT_THAT(text, HasSubstr("(x : Tensor, n : int) -> ("));
  EXPECT_THAT(text, HasSubstr(" : Tuple[Tensor, int, List[int]])"));
  EXPECT_EQ(printStream(parseStream(text)), text);
}

TEST(FromMethodTest, WhatOutlivesACallIsOneStatefulFilter) {
  const StreamGraph graph = streamOf(R"(
def main(x: Tensor) -> Tensor:
    a = x @ x
    b = torch.rand(2, 2) @ a
    c = b @ b
    d = torch.rand(2, 2) + c
    return d @ d
)");
  size_t stateful = 0;
  for (const Filter& filter : graph.filters) stateful += filter.stateful ? 1 : 0;
  EXPECT_EQ(stateful, 1u) << printStream(graph);
  EXPECT_FALSE(graph.filters.front().stateful);
  EXPECT_FALSE(graph.filters.back().stateful);
}

TEST(FromMethodTest, RecurrencesAreFeedback) {
  const StreamGraph graph = streamOf(R"(
def main(x: Tensor, h: Tensor, w: Tensor) -> Tensor:
    y = x @ w
    for i in range(y.size(0)):
        h = torch.tanh(h @ w + y[i])
    return h @ w
)");
  const std::string text = printStream(graph);
  EXPECT_THAT(text, HasSubstr("feedback ("));
  EXPECT_EQ(printStream(parseStream(text)), text);
}

Overrides rules(const std::string& json) {
  return parseOverrides("{\"layers\": [" + json + "]}");
}

TEST(FromMethodTest, OverridesChangeFilters) {
  const StreamGraph graph = streamOf(
      kBlock, rules(R"({"operator": "aten::matmul", "filter_name": "product", "replicas": 2},
                       {"operator": "aten::add", "grain": "before"})"));
  EXPECT_EQ(namesOf(graph),
            (std::vector<std::string>{"product", "product_1", "product_2", "product_3"}))
      << printStream(graph);
  EXPECT_EQ(graph.filters[0].most_replicas, 2);
  EXPECT_THAT(errorOf([] { streamOf(kBlock, rules(R"({"operator": "aten::conv2d"})")); }),
              HasSubstr("rule 1: no layer of"));
  EXPECT_THAT(errorOf([] { streamOf(kBlock, rules(R"({"operator": "aten::add", "srcs": 3})")); }),
              HasSubstr("filter 'add': the overrides expect 3 srcs, the model has 2"));
}

TEST(FromMethodTest, AModuleAsOneFilter) {
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = module.method("forward");
  const auto prepared = optimizeForInference(module.object(), forward, /*for_any_rank=*/false);
  const StreamGraph whole =
      fromMethod(prepared, &forward, &module, rules(R"({"layer": "*", "grain": "module"})"));
  const StreamGraph plain = fromMethod(prepared, &forward, &module);
  EXPECT_LE(whole.filters.size(), plain.filters.size()) << printStream(whole);
}

}  // namespace
}  // namespace wick::streams::from_method_test
