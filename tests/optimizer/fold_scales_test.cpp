// Batch normalization and factors folded into layers, where that gives the same numbers.
#include "passes/fold_scales.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ir/parser.h"
#include "ir/shape_facts.h"
#include "ir/verifier.h"
#include "passes/dead_code_elimination.h"
#include "passes/rank_versions.h"
#include "runtime/interpreter/interpreter.h"

namespace wick::fold_scales_test {
namespace {

Tensor numbers(const DimVector& sizes, double scale) {
  Tensor t = Tensor::empty(sizes, DType::Double);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = std::sin(double(i) * scale + scale);
  return t.to(DType::Float);
}

Tensor run(const Graph& graph, const Tensor& x) {
  return runCode(*Code::build(graph.copy(), "test"), std::vector<IValue>{IValue(x)}).toTensor();
}

void expectNear(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(DimVector(a.sizes()), DimVector(b.sizes()));
  const Tensor x = a.to(DType::Double).contiguous(), y = b.to(DType::Double).contiguous();
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double bound = 1e-5 * std::max(1.0, std::abs(y.data<double>()[i]));
    ASSERT_NEAR(x.data<double>()[i], y.data<double>()[i], bound) << i;
  }
}

size_t count(const Graph& graph, const std::string& text) {
  const std::string all = graph.str();
  size_t n = 0;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
  return n;
}

constexpr const char* kConvHead = R"(graph(%x : Float(*, *, *, *), %r : Tensor):
  %w : Tensor = prim::Constant[value=tensor<float32>[2, 1, 1, 1]{1.0, -2.0}]()
  %n : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %ones : int[] = prim::Constant[value=[1, 1]]()
  %zeros : int[] = prim::Constant[value=[0, 0]]()
  %a : Tensor = aten::conv2d(%x, %w, %n, %ones, %zeros, %ones, %one)
)";

TEST(FoldScales, ScalesWeightsAndShiftsBias) {
  auto graph = parseGraph(std::string(kConvHead) + R"(
  %g : Tensor = prim::Constant[value=tensor<float32>[2]{3.0, 1.0}]()
  %b : Tensor = prim::Constant[value=tensor<float32>[2]{0.5, 0.0}]()
  %m : Tensor = prim::Constant[value=tensor<float32>[2]{1.0, 2.0}]()
  %v : Tensor = prim::Constant[value=tensor<float32>[2]{3.0, 0.25}]()
  %f : bool = prim::Constant[value=False]()
  %e : float = prim::Constant[value=1.0]()
  %y : Tensor = aten::batch_norm(%a, %g, %b, %m, %v, %f, %e, %e, %f)
  return (%y)
)");
  EXPECT_EQ(foldScales(*graph), 1u);
  verify(*graph);
  Node* conv = graph->outputs()[0]->node();
  ASSERT_EQ(conv->kind(), aten::conv2d);
  Tensor w = constantOf(conv->input(1))->toTensor();
  Tensor b = constantOf(conv->input(2))->toTensor();
  EXPECT_FLOAT_EQ(w.data<float>()[0], 1.5f);   // 1 * 3 / sqrt(3 + 1)
  EXPECT_FLOAT_EQ(b.data<float>()[0], -1.0f);  // (0 - 1) * 1.5 + 0.5
  EXPECT_FLOAT_EQ(w.data<float>()[1], -2.0f / std::sqrt(1.25f));
}

// Weights of every floating dtype and layout are scaled in double precision and rounded once.
TEST(FoldScales, RoundsOnce) {
  const std::vector<double> values = {0.1, -3.7, 1e-3, 2.5, 0.33, -0.07, 1.9, 4.4};
  for (DType dtype : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    auto graph = parseGraph(std::string(kConvHead) + R"(
  %g : Tensor = prim::Constant[value=tensor<float32>[2]{0.7, 1.3}]()
  %z : Tensor = prim::Constant[value=tensor<float32>[2]{0.0, 0.0}]()
  %v : Tensor = prim::Constant[value=tensor<float32>[2]{1.25, 2.0}]()
  %f : bool = prim::Constant[value=False]()
  %e : float = prim::Constant[value=0.25]()
  %y : Tensor = aten::batch_norm(%a, %g, %z, %z, %v, %f, %e, %e, %f)
  return (%y)
)");
    const Tensor weight = Tensor::fromData(values.data(), DimVector{2, 2, 2, 1}).to(dtype);
    Node* conv = graph->outputs()[0]->node()->input(0)->node();
    {
      InsertPointGuard guard(conv);
      conv->replaceInput(
          1, graph->insertConstant(IValue(weight.contiguous(MemoryFormat::ChannelsLast))));
    }
    ASSERT_EQ(foldScales(*graph), 1u) << toString(dtype);
    const Tensor folded = constantOf(graph->outputs()[0]->node()->input(1))->toTensor();
    EXPECT_EQ(folded.dtype(), dtype);
    const Tensor exact = weight.to(DType::Double);
    std::vector<double> scaled(8);
    for (size_t i = 0; i < 8; ++i) {
      const double gamma = i < 4 ? 0.7f : 1.3f;
      scaled[i] = exact.data<double>()[i] * (gamma / std::sqrt((i < 4 ? 1.25 : 2.0) + 0.25));
    }
    const Tensor expected =
        Tensor::fromData(scaled.data(), DimVector{8}).to(dtype).to(DType::Double);
    const Tensor got = folded.contiguous().to(DType::Double);
    for (size_t i = 0; i < 8; ++i) {
      EXPECT_EQ(got.data<double>()[i], expected.data<double>()[i]) << toString(dtype) << " " << i;
    }
  }
}

// A convolution of two channels and a norm behind it; `type` is the input's, `between` stands before both,
// and `factor` is the norm's weight.
std::shared_ptr<Graph> convolutionAndNorm(const std::string& type, const std::string& between = "",
                                          const std::string& factor = "2.0") {
  return parseGraph(fmt::format(R"(graph(%x : {}):
  %w : Tensor = prim::Constant[value=tensor<float32>[2, 2, 1, 1]{{1.0, -2.0, 0.5, 3.0}}]()
  %g : Tensor = prim::Constant[value=tensor<float32>[2]{{{}, 0.5}}]()
  %b : Tensor = prim::Constant[value=tensor<float32>[2]{{0.5, -1.0}}]()
  %v : Tensor = prim::Constant[value=tensor<float32>[2]{{1.0, 4.0}}]()
  %n : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %four : int = prim::Constant[value=4]()
  %ones : int[] = prim::Constant[value=[1, 1]]()
  %zeros : int[] = prim::Constant[value=[0, 0]]()
  %f : bool = prim::Constant[value=False]()
  %e : float = prim::Constant[value=0.001]()
{}  %a : Tensor = aten::conv2d(%x, %w, %n, %ones, %zeros, %ones, %one)
  %r : Tensor = aten::relu(%a)
  %c : Tensor = aten::conv2d(%r, %w, %n, %ones, %zeros, %ones, %one)
  %y : Tensor = aten::batch_norm(%c, %g, %b, %b, %v, %f, %e, %e, %f)
  return (%y)
)",
                                type, factor, between));
}

constexpr const char* kRankCheck = R"(  %d : int = aten::dim(%x)
  %bad : bool = aten::ne(%d, %four)
  %message : str = prim::Constant[value="expected 4D input"]()
  %class : str = prim::Constant[value="builtins.ValueError"]()
   = prim::If(%bad)
    block0():
       = prim::RaiseException(%message, %class)
      -> ()
    block1():
      -> ()
)";

// A norm takes the second dimension, which without a batch is not the channels, though it may have as many.
TEST(FoldScales, OnlyBehindConvolutionsOfBatches) {
  struct Case {
    const char* type;
    const char* between;
    size_t folded;
  };
  for (const Case& c : {Case{"Tensor", "", 0}, Case{"Float(*, *, *)", "", 0},
                        Case{"Float(*, *, *, *)", "", 1}, Case{"Tensor", kRankCheck, 1}}) {
    const auto graph = convolutionAndNorm(c.type, c.between);
    const std::string whole = graph->str();
    EXPECT_EQ(foldScales(*graph), c.folded) << whole;
    verify(*graph);
    EXPECT_EQ(count(*graph, "prim::Guard"), 0u);
    const bool batched = c.folded != 0;
    const Tensor x = numbers(batched ? DimVector{1, 2, 2, 3} : DimVector{2, 2, 3}, 0.7);
    expectNear(run(*graph, x), run(*convolutionAndNorm("Tensor"), x));
  }
}

// The check must stand before the layer.
TEST(FoldScales, NotBeforeTheCheck) {
  const auto checked = convolutionAndNorm("Tensor", kRankCheck);
  Node* const y = checked->outputs()[0]->node();
  for (Node* n : checked->nodes()) {
    if (n->kind() == prim::If) {
      n->moveAfter(y);
      break;
    }
  }
  EXPECT_EQ(foldScales(*checked), 0u) << checked->str();
}

TEST(RankVersions, FoldWhereTheRankIsRight) {
  const auto graph = convolutionAndNorm("Tensor");
  ASSERT_TRUE(splitByRank(*graph));
  verify(*graph);
  EXPECT_EQ(foldScales(*graph), 1u) << graph->str();
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::batch_norm"), 1u);
  EXPECT_EQ(count(*graph, "aten::conv2d"), 4u);
  for (const DimVector& sizes :
       {DimVector{2, 2, 3}, DimVector{1, 2, 2, 3}, DimVector{4, 2, 1, 1}}) {
    const Tensor x = numbers(sizes, 0.7);
    expectNear(run(*graph, x), run(*convolutionAndNorm("Tensor"), x));
  }
}

TEST(RankVersions, NoneWhereNothingWouldBeGained) {
  EXPECT_FALSE(splitByRank(*convolutionAndNorm("Float(*, *, *, *)")));
  EXPECT_FALSE(splitByRank(*convolutionAndNorm("Float(*, *, *)")));
  EXPECT_FALSE(splitByRank(*convolutionAndNorm("Tensor", kRankCheck)));
}

// Factors that are far from one, and products beyond the dtype, stay where they are.
TEST(FoldScales, KeepsWeightsInRange) {
  for (const char* factor : {"1.0e30", "-1.0e38", "1.0e-20", "inf", "nan"}) {
    const auto graph = convolutionAndNorm("Float(*, *, *, *)", "", factor);
    EXPECT_EQ(foldScales(*graph), 0u) << factor;
  }
  const auto zero = convolutionAndNorm("Float(*, *, *, *)", "", "0.0");
  EXPECT_EQ(foldScales(*zero), 1u);
  // 60000 * 2 is no half.
  const auto half = convolutionAndNorm("Half(*, *, *, *)");
  for (Node* n : half->nodes()) {
    if (n->kind() != aten::conv2d) continue;
    Tensor w = constantOf(n->input(1))->toTensor().clone();
    w.data<float>()[0] = 60000.0f;
    InsertPointGuard guard(n);
    n->replaceInput(1, half->insertConstant(IValue(w.to(DType::Half))));
  }
  EXPECT_EQ(foldScales(*half), 0u) << half->str();
}

TEST(FoldScales, IntoLinearOfMatrices) {
  for (size_t rank : {2, 3}) {
    auto graph = std::make_shared<Graph>();
    TensorType::Facts facts;
    facts.dim = rank;
    Value* x = graph->addInput("x", TensorType::create(facts));
    auto constant = [&](IValue v) { return graph->insertConstant(std::move(v)); };
    Value* none = graph->insertNode(graph->createNone())->output();
    Node* linear = graph->insertNode(
        graph->create(Symbol::aten("linear"), {x, constant(IValue(numbers({4, 3}, 0.2))), none}));
    Tensor ones = numbers({4}, 0.2);
    for (int i = 0; i < 4; ++i) ones.data<float>()[i] = 1.5f;
    Node* norm = graph->insertNode(graph->create(
        aten::batch_norm,
        {linear->output(), none, constant(IValue(numbers({4}, 0.3))),
         constant(IValue(numbers({4}, 0.5))), constant(IValue(ones)), constant(IValue(false)),
         constant(IValue(0.1)), constant(IValue(1e-5)), constant(IValue(true))}));
    graph->registerOutput(norm->output());
    const Tensor x_value = numbers(rank == 2 ? DimVector{5, 3} : DimVector{5, 4, 3}, 0.9);
    const Tensor before = run(*graph, x_value);
    EXPECT_EQ(foldScales(*graph), rank == 2 ? 1u : 0u);
    verify(*graph);
    expectNear(run(*graph, x_value), before);
  }
}

}  // namespace
}  // namespace wick::fold_scales_test
