#include "runtime/prepare_layers.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "runtime/kernels/gemm.h"

namespace wick {
namespace {

// linear(x, weight) with the weight as a constant, in the branch of a condition.
std::shared_ptr<Graph> layer(const Tensor& weight) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %c : bool):
  %none : NoneType = prim::Constant()
  %y : Tensor = prim::If(%c)
    block0():
      %l : Tensor = aten::linear(%x, %x, %none)
      -> (%l)
    block1():
      -> (%x)
  return (%y)
)");
  graph->setInsertPoint(*graph->block()->nodes().begin());
  Value* constant = graph->insertConstant(IValue(weight));
  for (Node* n : graph->block()->nodes()) {
    for (Block* inner : n->blocks()) {
      for (Node* m : inner->nodes()) m->replaceInput(1, constant);
    }
  }
  return graph;
}

// What the first and the second product of `rows` rows take of memory beyond their results.
std::pair<size_t, size_t> takenBy(const Tensor& weight, int64_t rows) {
  const Tensor x = Tensor::zeros(DimVector{rows, weight.size(1)}, DType::Float);
  size_t taken[2];
  for (size_t& bytes : taken) {
    const size_t before = allocatedBytes();
    linearProduct("linear", x, weight, Tensor());
    bytes = allocatedBytes() - before;
  }
  return {taken[0], taken[1]};
}

Tensor weightOf(int64_t n, int64_t k) {
  return Tensor::zeros(DimVector{n, k}, DType::Float);
}

TEST(PrepareLayers, PacksWeightsForAnyNumberOfRows) {
  startProducts();
  const auto [unprepared, later] = takenBy(weightOf(256, 192), 50);
  EXPECT_GE(unprepared, size_t{256 * 192 * 4});
  EXPECT_LT(later, size_t{256 * 4});
  for (int64_t rows : {1, 5, 50, 3000}) {
    const Tensor weight = weightOf(256, 192);
    const size_t before = allocatedBytes();
    prepareLayers(*layer(weight));
    EXPECT_GE(allocatedBytes() - before, size_t{256 * 192 * 4});
    // Scratch memory may be left, packed weights may not.
    EXPECT_LT(takenBy(weight, rows).second, size_t{256 * 4}) << rows;
    const Tensor again = weightOf(256, 192);
    prepareLayers(*layer(again));
    EXPECT_LT(takenBy(again, rows).first, size_t{256 * 4}) << rows;
  }
}

TEST(PrepareLayers, LeavesWeightsThatNoLibraryReads) {
  const Tensor small = weightOf(64, 64);
  const Tensor whole = Tensor::zeros(DimVector{512, 512}, DType::Long);
  const Tensor doubles = Tensor::zeros(DimVector{512, 512}, DType::Double);
  for (const Tensor& weight : {small, whole, doubles}) {
    const auto graph = layer(weight);
    const size_t before = allocatedBytes();
    prepareLayers(*graph);
    EXPECT_EQ(allocatedBytes(), before) << weight.describe();
  }
}

}  // namespace
}  // namespace wick
