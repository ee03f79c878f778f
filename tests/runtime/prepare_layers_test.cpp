#include "runtime/prepare_layers.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/gemm.h"

namespace wick::prepare_layers_test {
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

ConvolutionParams padded(int64_t stride, int64_t padding) {
  ConvolutionParams p;
  p.stride = DimVector{stride, stride};
  p.padding = p.padding_after = DimVector{padding, padding};
  p.dilation = DimVector{1, 1};
  p.output_padding = DimVector{0, 0};
  return p;
}

// A convolution and relu with this weight, as the passes for inference make it.
std::shared_ptr<Graph> convolution(const Tensor& weight, int64_t stride, int64_t padding) {
  auto graph = parseGraph(fmt::format(R"(graph(%x : Tensor):
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %ones : int[] = prim::Constant[value=[1, 1]]()
  %stride : int[] = prim::Constant[value=[{}, {}]]()
  %padding : int[] = prim::Constant[value=[{}, {}]]()
  %relu : str = prim::Constant[value="relu"]()
  %false : bool = prim::Constant[value=False]()
  %y : Tensor = wick::conv2d_fused(%x, %x, %none, %none, %stride, %padding, %ones, %one, %relu, %false)
  return (%y)
)",
                                      stride, stride, padding, padding));
  graph->setInsertPoint(*graph->block()->nodes().begin());
  graph->outputs()[0]->node()->replaceInput(1, graph->insertConstant(IValue(weight)));
  return graph;
}

// Whatever layout the library chooses for a size, packing before changes no number, and the first
// call packs no more than the second when it is the one that was foreseen.
TEST(PrepareLayers, PackedConvolutionsKeepTheirNumbers) {
  startConvolutions();
  for (int64_t stride : {1, 2}) {
    for (const DimVector& sizes :
         {DimVector{256, 256, 3, 3}, DimVector{256, 128, 3, 3}, DimVector{512, 256, 1, 1}}) {
      Tensor weight = Tensor::empty(sizes, DType::Float);
      for (int64_t i = 0; i < weight.numel(); ++i) {
        weight.data<float>()[i] = static_cast<float>(i % 17 - 8);
      }
      const Tensor fresh = weight.contiguous(MemoryFormat::ChannelsLast);
      const Tensor prepared = fresh.clone();
      const size_t before = allocatedBytes();
      prepareLayers(*convolution(prepared, stride, sizes[2] / 2));
      const size_t packed = allocatedBytes() - before;
      EXPECT_TRUE(packed == 0 || packed >= prepared.numel() * sizeof(float)) << packed;
      for (int64_t side : {5, 14, 40}) {
        Tensor input = Tensor::empty(DimVector{2, sizes[1], side, side}, DType::Float);
        for (int64_t i = 0; i < input.numel(); ++i) {
          input.data<float>()[i] = static_cast<float>(i % 13 - 6);
        }
        auto run = [&](const Tensor& w) {
          return wick::convolution("test", input, w, Tensor(), padded(stride, sizes[2] / 2),
                                   Tensor(), Activation::Relu)
              .contiguous();
        };
        const Tensor a = run(fresh), b = run(prepared);
        ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes()));
        for (int64_t i = 0; i < a.numel(); ++i) {
          ASSERT_EQ(a.data<float>()[i], b.data<float>()[i]) << side << " " << i;
        }
      }
    }
  }
}

TEST(PrepareLayers, LeavesConvolutionsThatCannotRun) {
  const Tensor weight = Tensor::zeros(DimVector{256, 256, 3, 3}, DType::Float);
  for (auto [stride, padding] : {std::pair{0, 1}, {1, -1}, {-2, 1}, {1 << 30, 1}}) {
    const auto graph = convolution(weight, stride, padding);
    const size_t before = allocatedBytes();
    prepareLayers(*graph);
    EXPECT_EQ(allocatedBytes(), before) << stride << " " << padding;
  }
}

}  // namespace
}  // namespace wick::prepare_layers_test
