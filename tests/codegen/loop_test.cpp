// Kernels in loop form: what lowering makes, and the reference evaluator against machine code.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/loop/evaluate.h"
#include "codegen/loop/lowering.h"
#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"

namespace wick {
namespace {

// The only group of a graph, single operators included.
struct Group {
  explicit Group(const std::string& text) : graph(parseGraph(text)) {
    FusionOptions options;
    options.kind_of = kernelKindOf;
    options.min_computing_nodes = 1;
    formFusionGroups(*graph, options);
    for (const Node* n : graph->nodes()) {
      if (n->kind() == prim::FusionGroup) node = n;
    }
  }
  const Graph& body() const { return *node->subgraph(attr::Subgraph); }
  std::shared_ptr<Graph> graph;
  const Node* node = nullptr;
};

std::vector<loop::ArgumentInfo> describe(const std::vector<Tensor>& arguments) {
  std::vector<loop::ArgumentInfo> infos;
  for (const Tensor& t : arguments) {
    loop::ArgumentInfo info{.dtype = t.dtype(), .rank = static_cast<uint8_t>(t.dim())};
    for (int64_t d = 0; d < t.dim(); ++d) {
      if (t.size(d) == 1) info.ones |= static_cast<uint8_t>(1u << (t.dim() - 1 - d));
    }
    infos.push_back(info);
  }
  return infos;
}

std::vector<Tensor> evaluateGroup(const Group& group, const std::vector<Tensor>& arguments) {
  loop::Program program = loop::lowerGroup(group.body(), describe(arguments));
  std::vector<Tensor> outputs(program.outputs.size());
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    const loop::Kernel& kernel = program.kernels[k];
    const size_t loads = kernel.accesses.size() - kernel.stores.size();
    std::array<int64_t, loop::kMaxRank> sizes;
    sizes.fill(1);
    for (size_t a = 0; a < loads; ++a) {
      for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
        int from = kernel.accesses[a].dims[d];
        if (from >= 0) sizes[d] = arguments[kernel.accesses[a].argument].size(from);
      }
    }
    std::vector<loop::Place> places;
    for (size_t a = 0; a < kernel.accesses.size(); ++a) {
      const loop::Access& access = kernel.accesses[a];
      if (a >= loads) {
        const loop::OutputInfo& info = program.outputs[access.argument];
        DimVector shape;
        for (size_t d = 0; d < info.rank; ++d) {
          shape.push_back(info.dims[d] < 0 ? 1 : sizes[static_cast<size_t>(info.dims[d])]);
        }
        outputs[access.argument] = Tensor::empty(shape, info.dtype);
      }
      const Tensor& t = a < loads ? arguments[access.argument] : outputs[access.argument];
      loop::Place place{static_cast<char*>(t.rawData()), {}};
      for (size_t d = 0; d < static_cast<size_t>(kernel.rank); ++d) {
        int from = access.dims[d];
        place.steps[d] = from < 0 ? 0 : t.stride(from) * static_cast<int64_t>(t.itemSize());
      }
      places.push_back(place);
    }
    loop::evaluate(kernel, std::span<const int64_t>(sizes.data(), sizes.size()), places, {});
  }
  return outputs;
}

std::vector<Tensor> runGroup(const Group& group, const std::vector<Tensor>& arguments) {
  setJitMode(JitMode::Sync);
  FusionSite site(*group.node);
  std::vector<IValue> values(arguments.begin(), arguments.end());
  std::vector<IValue> results(group.node->outputs().size());
  EXPECT_TRUE(site.run(values.data(), values.size(), results.data()));
  std::vector<Tensor> outputs;
  for (const IValue& r : results) outputs.push_back(r.toTensor());
  return outputs;
}

Tensor randomTensor(IntSpan sizes, uint64_t seed) {
  std::mt19937_64 twister(seed);
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>(static_cast<double>(twister() >> 11) * 0x1p-53 * 8 - 4);
  }
  return t;
}

void expectClose(const Tensor& a, const Tensor& b, double tolerance) {
  ASSERT_EQ(a.describe(), b.describe());
  Tensor x = a.contiguous(), y = b.contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    double u = x.data<float>()[i], v = y.data<float>()[i];
    ASSERT_LE(std::fabs(u - v), tolerance * (1 + std::fabs(v))) << "element " << i;
  }
}

void compare(const std::string& text, const std::vector<Tensor>& arguments, double tolerance) {
  Group group(text);
  ASSERT_NE(group.node, nullptr);
  std::vector<Tensor> expected = evaluateGroup(group, arguments);
  std::vector<Tensor> got = runGroup(group, arguments);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i) expectClose(got[i], expected[i], tolerance);
}

constexpr const char* kPointwise = R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::tanh(%x)
  %2 : Tensor = aten::add(%1, %y, %one)
  %3 : Tensor = aten::sigmoid(%2)
  %4 : Tensor = aten::sin(%3)
  return (%4, %1)
)";

TEST(LoopTest, PointwiseIsTheSameInBoth) {
  for (int64_t n : {1, 2, 7, 16, 33, 100}) {
    compare(kPointwise, {randomTensor({3, n}, 1), randomTensor({n}, 2)}, 0);
    compare(kPointwise, {randomTensor({n, 3}, 3).transpose(0, 1), randomTensor({3, 1}, 4)}, 0);
  }
}

constexpr const char* kSoftmax = R"(graph(%x : Tensor, %y : Tensor):
  %dim : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::softmax(%1, %dim, %none)
  %3 : Tensor = aten::mul(%2, %x)
  return (%3)
)";

TEST(LoopTest, SoftmaxIsOneKernel) {
  Group group(kSoftmax);
  Tensor x = randomTensor({5, 40}, 1), y = randomTensor({40}, 2);
  loop::Program program = loop::lowerGroup(group.body(), describe({x, y}));
  ASSERT_EQ(program.kernels.size(), 1u);
  EXPECT_EQ(program.kernels[0].reductions.size(), 2u);
  EXPECT_EQ(loop::makeSchedule(program.kernels[0]).passes, 3);
  for (int64_t n : {1, 3, 16, 64, 65, 300}) {
    compare(kSoftmax, {randomTensor({9, n}, 3), randomTensor({n}, 4)}, 1e-6);
  }
}

constexpr const char* kMean = R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=0]()
  %dims : int[] = prim::ListConstruct(%dim)
  %keep : bool = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mean(%x, %dims, %keep, %none)
  %2 : Tensor = aten::sub(%x, %1, %one)
  %3 : Tensor = aten::mul(%2, %2)
  return (%3, %1)
)";

TEST(LoopTest, LanesMayBeNeighbouringRows) {
  for (int64_t rows : {1, 5, 8, 33}) {
    for (int64_t columns : {1, 7, 8, 16, 70}) {
      compare(kMean, {randomTensor({rows, columns}, 5)}, 1e-5);
    }
  }
}

TEST(LoopTest, AnEmptyRowStillSums) {
  Group group(R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%dim)
  %keep : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %1 : Tensor = aten::exp(%x)
  %2 : Tensor = aten::sum(%1, %dims, %keep, %none)
  return (%2)
)");
  std::vector<Tensor> outputs = evaluateGroup(group, {Tensor::empty({3, 0}, DType::Float)});
  EXPECT_EQ(outputs[0].describe(), "float32[3]");
  EXPECT_EQ(outputs[0].data<float>()[2], 0);
}

TEST(LoopTest, WhatHasNoLoopFormSaysWhy) {
  Group group(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::bitwise_and(%x, %y)
  return (%1)
)");
  Tensor x = randomTensor({3}, 1);
  EXPECT_THROW(loop::lowerGroup(group.body(), describe({x, x})), loop::Unsupported);
}

TEST(LoopTest, TheTextSaysEverything) {
  Group group(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  return (%1)
)");
  Tensor x = randomTensor({2, 3}, 1), y = randomTensor({3}, 1);
  EXPECT_EQ(loop::toString(loop::lowerGroup(group.body(), describe({x, y})).kernels[0]),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = load x0[0:i0, 1:i1] float32\n"
            "  %1 = load x1[0:i1] float32\n"
            "  %2 = mul float32 %0, %1\n"
            "  store y0[0:i0, 1:i1] float32 = %2\n");
}

}  // namespace
}  // namespace wick
