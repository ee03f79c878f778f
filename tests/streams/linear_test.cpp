// Linear filters merged: the same numbers with fewer filters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/type.h"
#include "ir/function.h"
#include "passes/inline_calls.h"
#include "passes/propagate_types.h"
#include "streams/linear/fir.h"
#include "streams/linear/merge.h"
#include "tests/streams/pieces.h"
#include "wick.h"

namespace wick::streams::linear_test {
namespace {

using testing::HasSubstr;
using testing_pieces::numbers;

void expectClose(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes()));
  const Tensor x = a.contiguous(), y = b.contiguous();
  for (int64_t i = 0; i < a.numel(); ++i) {
    ASSERT_NEAR(x.data<float>()[i], y.data<float>()[i], 1e-5) << i;
  }
}

// Merges a program whose arguments behind the first are made constants; returns both results.
struct Merged {
  Merged(const std::string& source, const Tensor& x, const std::vector<Tensor>& weights) {
    const Program program = compile(source);
    GraphFunction& main = program.function("main");
    std::vector<IValue> arguments{x};
    for (const Tensor& w : weights) arguments.emplace_back(w);
    expected = program.call("main", arguments).toTensor();
    const std::shared_ptr<Graph> graph = main.graph()->copy();
    inlineCalls(*graph);
    for (size_t i = weights.size(); i > 0; --i) {
      graph->setInsertPoint(*graph->nodes().begin());
      graph->inputs()[i]->replaceAllUsesWith(graph->insertConstant(IValue(weights[i - 1])));
      graph->block()->eraseInput(i);
    }
    TensorType::Facts facts;
    facts.dtype = x.dtype();
    facts.dim = x.dim();
    graph->inputs()[0]->setType(TensorType::create(facts));
    propagateTypes(*graph);
    report = mergeLinearFilters(*graph);
    for (const Node* node : graph->nodes()) {
      if (node->kind() == Symbol::aten("conv1d")) ++convolutions;
    }
    GraphFunction merged("merged", graph);
    found = callFunction(merged, {x}).toTensor();
  }
  Tensor expected, found;
  MergeReport report;
  size_t convolutions = 0;
};

TEST(MergeTest, AStackOfShortFiltersIsOne) {
  const Merged m(R"(
def main(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    y = torch.conv1d(x, a, None, [1], [3])
    y = torch.conv1d(y, b, None) * 0.5
    return torch.relu(torch.conv1d(y, c, None, [2]))
)",
                 numbers({2, 1, 64}, 1),
                 {numbers({1, 1, 7}, 2), numbers({1, 1, 5}, 3), numbers({1, 1, 3}, 4)});
  EXPECT_EQ(m.convolutions, 1u);
  EXPECT_EQ(m.report.after, 1u);
  expectClose(m.expected, m.found);
}

// An equalizer: bands that are filtered, weighted and added.
TEST(MergeTest, BanksMergeThroughSplitJoins) {
  const Merged m(R"(
def main(x: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
    low = torch.conv1d(torch.conv1d(x, a, None, [1], [8]), b, None)
    high = torch.conv1d(x, c, None, [1], [6])
    bands = torch.cat([low * 2.0, high], 1)
    return torch.conv1d(bands, d, None) - torch.conv1d(x, b, None, [1], [2])
)",
                 numbers({1, 1, 100}, 1),
                 {numbers({1, 1, 13}, 2), numbers({1, 1, 5}, 3), numbers({1, 1, 13}, 4),
                  numbers({1, 2, 1}, 5)});
  EXPECT_EQ(m.convolutions, 1u);
  expectClose(m.expected, m.found);
}

TEST(MergeTest, ResidualsAndBiasesCount) {
  const Merged m(R"(
def main(x: Tensor, a: Tensor, u: Tensor, b: Tensor) -> Tensor:
    y = torch.conv1d(x, a, u, [1], [1]) + x
    return torch.conv1d(y, b, u)
)",
                 numbers({1, 2, 40}, 1),
                 {numbers({2, 2, 3}, 2), numbers({2}, 3), numbers({2, 2, 3}, 4)});
  expectClose(m.expected, m.found);
}

TEST(MergeTest, WhatWouldCostMoreStays) {
  // 64 channels narrowed to one and back: together as expensive as 64 times 64.
  const Merged narrow(R"(
def main(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.conv1d(torch.conv1d(x, a, None), b, None)
)",
                      numbers({1, 64, 40}, 1), {numbers({1, 64, 3}, 2), numbers({64, 1, 3}, 3)});
  EXPECT_EQ(narrow.convolutions, 2u);
  expectClose(narrow.expected, narrow.found);
  // Zeros of a padding inside are not the filter's own.
  const Merged padded(R"(
def main(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.conv1d(torch.conv1d(x, a, None), b, None, [1], [2])
)",
                      numbers({1, 1, 40}, 1), {numbers({1, 1, 3}, 2), numbers({1, 1, 5}, 3)});
  EXPECT_EQ(padded.convolutions, 2u);
  expectClose(padded.expected, padded.found);
}

TEST(MergeTest, ValuesThatOthersReadStay) {
  const Merged m(R"(
def main(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    y = torch.conv1d(x, a, None, [1], [1])
    return torch.relu(y) + torch.conv1d(y, b, None, [1], [1])
)",
                 numbers({1, 1, 40}, 1), {numbers({1, 1, 3}, 2), numbers({1, 1, 3}, 3)});
  EXPECT_EQ(m.convolutions, 2u);
  expectClose(m.expected, m.found);
}

// Filters of random shapes against their definition.
TEST(FirTest, ComposedFiltersComputeWhatBothDo) {
  const auto apply = [](const Fir& f, const std::vector<double>& x) {
    std::vector<double> y;
    const auto length = static_cast<int64_t>(x.size());
    for (int64_t t = 0; t * f.stride - f.padding + f.taps <= length + f.padding; ++t) {
      double sum = f.bias[0];
      for (int64_t k = 0; k < f.taps; ++k) {
        const int64_t at = t * f.stride - f.padding + k;
        if (at >= 0 && at < length) sum += f.at(0, 0, k) * x[static_cast<size_t>(at)];
      }
      y.push_back(sum);
    }
    return y;
  };
  int64_t state = 1;
  const auto next = [&](int64_t n) { return (state = state * 48271 % 2147483647) % n; };
  std::vector<double> x;
  for (int i = 0; i < 60; ++i) x.push_back(static_cast<double>(next(100)) / 50 - 1);
  for (int round = 0; round < 100; ++round) {
    const auto random = [&](int64_t padding) {
      Fir f = *makeFir(1, 1, 1 + next(6));
      for (double& w : f.weight) w = static_cast<double>(next(100)) / 50 - 1;
      f.bias[0] = static_cast<double>(next(10));
      f.stride = 1 + next(3);
      f.padding = padding;
      return f;
    };
    const Fir first = random(next(4)), second = random(0);
    const std::vector<double> expected = apply(second, apply(first, x));
    const std::vector<double> found = apply(*compose(first, second), x);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-9);
  }
}

TEST(FirTest, LargeFiltersAreRefused) {
  EXPECT_FALSE(makeFir(1 << 20, 1 << 20, 1).has_value());
  EXPECT_FALSE(makeFir(int64_t{1} << 62, 8, 1).has_value());
  Fir wide = *makeFir(1, 1, 3);
  wide.stride = int64_t{1} << 60;
  EXPECT_FALSE(compose(wide, *makeFir(1, 1, 3)).has_value());
  Fir padded = *makeFir(1, 1, 3);
  padded.padding = 1;
  EXPECT_FALSE(compose(*makeFir(1, 1, 3), padded).has_value());
}

}  // namespace
}  // namespace wick::streams::linear_test
