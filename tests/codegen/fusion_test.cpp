#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/check_fusion.h"

namespace wick::fusion_test {
namespace {

// Random groups of a kind, and how many of them must at least have run as kernels.
struct RandomGroups {
  const char* kind;
  FusionCheck (*check)(uint64_t seed);
  int count, fused;
};
class RandomGroupsTest : public testing::TestWithParam<RandomGroups> {};

TEST_P(RandomGroupsTest, ComputeWhatTheOperatorsCompute) {
  int fused = 0;
  for (int seed = 1; seed <= GetParam().count; ++seed) {
    FusionCheck check = GetParam().check(static_cast<uint64_t>(seed));
    EXPECT_EQ(check.failure, "");
    fused += check.fused;
  }
  EXPECT_GT(fused, GetParam().fused);
}
INSTANTIATE_TEST_SUITE_P(FusionTest, RandomGroupsTest,
                         testing::Values(RandomGroups{"Pointwise", checkPointwise, 250, 80},
                                         RandomGroups{"Reductions", checkReductions, 150, 120},
                                         RandomGroups{"Structures", checkStructures, 150, 100},
                                         RandomGroups{"Writes", checkWrites, 200, 60}),
                         [](const auto& info) { return std::string(info.param.kind); });

// What is written is the tensor itself, wherever its elements lie, and nothing else of its memory.
TEST(FusionTest, ChainsOfWritesAreOneKernel) {
  setJitMode(JitMode::Sync);
  auto graph = parseGraph(R"(graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::add_(%x, %y, %1)
  %2 : float = prim::Constant[value=2.]()
  %b : Tensor = aten::mul(%y, %2)
  %c : Tensor = aten::mul_(%a, %b)
  %d : Tensor = aten::relu_(%x)
  return (%d, %b)
)");
  formKernelGroups(*graph);
  auto code = Code::build(graph, "forward");
  const Tensor whole = Tensor::full({6, 8}, -1, DType::Float);
  const auto run = [&](const Tensor& x, double y) {
    const FusionStatistics before = fusionStatistics();
    const IValue result = runCode(*code, {IValue(x), IValue(Tensor::full({}, y, DType::Float))});
    EXPECT_TRUE(result.elements()[0].toTensor().isSame(x));
    return fusionStatistics().launches - before.launches;
  };
  EXPECT_EQ(run(whole.slice(0, 1, 6, 2).slice(1, 2, 6, 1).transpose(0, 1), 3), 1u);
  for (int64_t i = 0; i < 48; ++i) {
    const bool written = i / 8 % 2 == 1 && i % 8 >= 2 && i % 8 < 6;
    EXPECT_EQ(whole.data<float>()[i], written ? 12 : -1) << i;
  }
  // What no kernel may write is for the operators.
  const Tensor row = Tensor::full({1, 5}, 1, DType::Float);
  EXPECT_THROW(run(row.expand({3, 5}), 1), RuntimeError);
  EXPECT_THROW(run(Tensor::full({4}, 1, DType::Long), 1), RuntimeError);
  EXPECT_EQ(row.data<float>()[0], 1);
}

// Functions that kernels compute by vectors for the usual arguments and call for the others, with
// both in one vector.
template <class T>
void expectTheOperatorsBits(std::vector<T> kinds, std::initializer_list<const char*> lines) {
  setJitMode(JitMode::Sync);
  const auto n = static_cast<int64_t>(kinds.size() * kinds.size());
  // Between ordinary numbers, and behind the last whole vector.
  const Tensor x = Tensor::full({2 * n + 3}, 2.75, kDTypeOf<T>);
  const Tensor y = Tensor::full({2 * n + 3}, 0.5, kDTypeOf<T>);
  for (int64_t i = 0; i < n; ++i) {
    const auto k = static_cast<size_t>(i);
    x.data<T>()[2 * i + 3] = kinds[k / kinds.size()];
    y.data<T>()[2 * i + 3] = kinds[k % kinds.size()];
  }
  for (const char* line : lines) {
    const std::string text = fmt::format(
        "graph(%x : Tensor, %y : Tensor):\n  %a : Tensor = {}\n  %b : Tensor = aten::neg(%a)\n"
        "  return (%b)\n",
        line);
    auto fused = parseGraph(text);
    formKernelGroups(*fused);
    const uint64_t before = fusionStatistics().launches;
    const Tensor found = runCode(*Code::build(fused, "forward"), {IValue(x), IValue(y)}).toTensor();
    EXPECT_GT(fusionStatistics().launches, before) << line;
    const Tensor expected =
        runCode(*Code::build(parseGraph(text), "forward"), {IValue(x), IValue(y)}).toTensor();
    for (int64_t i = 0; i < x.numel(); ++i) {
      const T a = found.data<T>()[i], b = expected.data<T>()[i];
      EXPECT_TRUE(std::isnan(b) ? std::isnan(a) : std::memcmp(&a, &b, sizeof a) == 0)
          << line << " of " << x.data<T>()[i] << ", " << y.data<T>()[i] << ": " << a << " for "
          << b;
    }
  }
}
TEST(FusionTest, UnusualArgumentsGiveTheOperatorsBits) {
  expectTheOperatorsBits<float>(
      {0.0f, -0.0f, 1e-45f, 1.0f, -3.5f, 7.25f, 1e-30f, 3e38f, 65537.0f, -1e6f, INFINITY, -INFINITY,
       NAN, 16777216.0f, 0.1f, 100.0f},
      {"aten::fmod(%x, %y)", "aten::remainder(%x, %y)", "aten::floor_divide(%x, %y)",
       "aten::atan2(%x, %y)", "aten::sin(%x)", "aten::cos(%x)"});
  expectTheOperatorsBits<double>(
      {0.0, -0.0, 5e-324, 1.0, -3.5, 7.25, 1e-310, 1.7e308, 0x1p33, -1e22, INFINITY, -INFINITY, NAN,
       -745.13, 709.78, -36.9, 1e-17, 100.0},
      {"aten::fmod(%x, %y)", "aten::remainder(%x, %y)", "aten::sin(%x)", "aten::cos(%x)",
       "aten::exp(%x)", "aten::expm1(%x)", "aten::log(%x)", "aten::log1p(%x)", "aten::tanh(%x)",
       "aten::sigmoid(%x)", "aten::rsqrt(%x)", "aten::silu(%x)"});
}

constexpr const char* kTraining =
    R"(graph(%x : Tensor, %w : Tensor, %m : Tensor, %v : Tensor, %trains : bool):
  %eps : float = prim::Constant[value=0.001]()
  %part : float = prim::Constant[value=0.25]()
  %true : bool = prim::Constant[value=True]()
  %y : Tensor = aten::batch_norm(%x, %w, %w, %m, %v, %trains, %part, %eps, %true)
  %r : Tensor = aten::relu(%y)
  return (%r)
)";

// A program may lay its tensors in ever new ways.
TEST(FusionTest, OneKernelIsCompiledForABoundedNumberOfLayouts) {
  setJitMode(JitMode::Sync);
  constexpr size_t kInputs = 5;
  std::string inputs, lines, last = "%x0";
  for (size_t i = 0; i < kInputs; ++i) {
    inputs += fmt::format("{}%x{} : Tensor", i == 0 ? "" : ", ", i);
    if (i == 0) continue;
    lines += fmt::format("  %y{} : Tensor = aten::sub({}, %x{}, %1)\n", i, last, i);
    last = fmt::format("%y{}", i);
  }
  const std::string text = fmt::format(
      "graph({}):\n  %1 : int = prim::Constant[value=1]()\n{}  return ({})\n", inputs, lines, last);
  auto fused = parseGraph(text);
  formKernelGroups(*fused);
  const auto code = Code::build(fused, "forward");
  const auto plain = Code::build(parseGraph(text), "forward");
  const uint64_t before = fusionStatistics().kernels;
  for (size_t layouts = 0; layouts < 243; ++layouts) {
    std::vector<IValue> arguments;
    size_t rest = layouts;
    for (size_t i = 0; i < kInputs; ++i, rest /= 3) {
      Tensor wide = Tensor::empty({8, 16}, DType::Float);
      for (int64_t k = 0; k < wide.numel(); ++k) wide.data<float>()[k] = static_cast<float>(k % 13);
      const Tensor x = wide.slice(0, 0, 6);
      arguments.emplace_back(rest % 3 == 0   ? x.slice(1, 0, 16, 2).contiguous()
                             : rest % 3 == 1 ? x.slice(1, 0, 16, 2)
                                             : x.slice(1, 3, 4).expand({6, 8}));
    }
    const Tensor got = runCode(*code, arguments).toTensor();
    EXPECT_EQ(differenceOf(got, runCode(*plain, arguments).toTensor(), 0, false), "") << layouts;
  }
  EXPECT_LE(fusionStatistics().kernels - before, 16u);
  EXPECT_GE(fusionStatistics().kernels - before, 4u);
}

// Groups must not take what reads the statistics across the layer that moves them.
TEST(FusionTest, StatisticsReadBeforeTrainingAreTheOldOnes) {
  setJitMode(JitMode::Sync);
  for (const char* layer : {"batch_norm(%x, %0, %0, %m, %v", "instance_norm(%x, %0, %0, %m, %v"}) {
    const std::string text = fmt::format(R"(graph(%x : Tensor, %m : Tensor, %v : Tensor):
  %0 : NoneType = prim::Constant()
  %1 : int = prim::Constant[value=1]()
  %2 : float = prim::Constant[value=2.]()
  %eps : float = prim::Constant[value=0.001]()
  %part : float = prim::Constant[value=0.25]()
  %true : bool = prim::Constant[value=True]()
  %a : Tensor = aten::mul(%m, %2)
  %y : Tensor = aten::{}, %true, %part, %eps, %true)
  %s : Tensor = aten::sum(%y, %0)
  %b : Tensor = aten::add(%a, %s, %1)
  %c : Tensor = aten::exp(%b)
  %d : Tensor = aten::mul(%m, %2)
  %e : Tensor = aten::tanh(%d)
  return (%a, %b, %c, %d, %e, %m)
)",
                                         layer);
    auto fused = parseGraph(text);
    formKernelGroups(*fused);
    const auto fused_code = Code::build(fused, "forward");
    const auto plain_code = Code::build(parseGraph(text), "forward");
    std::vector<IValue> results[2];
    for (int i = 0; i < 2; ++i) {
      Tensor x = Tensor::full({2, 3, 4}, 1, DType::Float);
      for (int64_t k = 0; k < x.numel(); ++k) x.data<float>()[k] = static_cast<float>(k % 7);
      const Tensor m = Tensor::full({3}, 5, DType::Float), v = Tensor::full({3}, 2, DType::Float);
      const auto& code = i == 0 ? plain_code : fused_code;
      results[i] = runCode(*code, {IValue(x), IValue(m), IValue(v)}).elements();
    }
    for (size_t r = 0; r < results[0].size(); ++r) {
      EXPECT_EQ(differenceOf(results[1][r].toTensor(), results[0][r].toTensor(), 1e-5, true), "")
          << layer << " " << r;
    }
    EXPECT_EQ(results[1][0].toTensor().data<float>()[0], 10) << layer;
  }
}

// The running statistics are written by the kernel that normalizes.
TEST(FusionTest, BatchNormInTrainingIsOneKernel) {
  setJitMode(JitMode::Sync);
  auto graph = parseGraph(kTraining);
  formKernelGroups(*graph);
  auto code = Code::build(graph, "forward");
  auto plain = Code::build(parseGraph(kTraining), "forward");
  const auto close = [](const Tensor& a, const Tensor& b) {
    EXPECT_EQ(differenceOf(a, b, a.dtype() == DType::Half ? 0.01 : 1e-5, true), "");
  };
  bool trains = true;
  const auto check = [&](const Tensor& x, uint64_t launches, DType dtype = DType::Float) {
    const Tensor w = Tensor::full({x.size(1)}, 0.5, DType::Float);
    std::vector<Tensor> got, expected;
    for (std::vector<Tensor>* run : {&expected, &got}) {
      const Tensor m = Tensor::full({x.size(1)}, 3, dtype), v = Tensor::full({x.size(1)}, 2, dtype);
      const FusionStatistics before = fusionStatistics();
      const Code& which = run == &got ? *code : *plain;
      const Tensor y =
          runCode(which, {IValue(x), IValue(w), IValue(m), IValue(v), IValue(trains)}).toTensor();
      EXPECT_EQ(fusionStatistics().launches - before.launches, run == &got ? launches : 0)
          << x.describe();
      *run = {y, m, v};
    }
    for (size_t i = 0; i < 3; ++i) close(got[i], expected[i]);
  };
  const Tensor x = Tensor::empty({6, 5, 7, 3}, DType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i * 37 % 101) / 9;
  check(x, 1);
  check(x.contiguous(MemoryFormat::ChannelsLast), 1);
  check(x.transpose(0, 2), 1);
  check(x.select(3, 1), 1);
  check(x.select(3, 1).select(2, 1), 1);
  check(x.to(DType::Double), 1, DType::Double);
  check(x.to(DType::Half), 1);
  check(x.slice(1, 0, 1, 1), 1);
  check(x.slice(0, 0, 0, 1), 0);
  for (int i = 0; i < 2; ++i) {
    trains = i == 1;
    check(x, 1);
    check(x.transpose(0, 2), 1);
  }
  // What no kernel may write is for the operator, errors too.
  const Tensor w = Tensor::full({5}, 1, DType::Float), m = Tensor::full({5}, 0, DType::Float);
  const FusionStatistics before = fusionStatistics();
  runCode(*code, {IValue(x), IValue(w), IValue(m), IValue(m), IValue(true)});
  const IValue fewer(w.slice(0, 0, 4, 1));
  EXPECT_THROW(runCode(*code, {IValue(x), IValue(w), fewer, IValue(m), IValue(true)}),
               RuntimeError);
  EXPECT_EQ(fusionStatistics().launches, before.launches);
}

// Its kernel needs more than one round of LLVM's instcombine.
TEST(FusionTest, TidyingUpMayTakeSeveralRounds) {
  EXPECT_EQ(checkStructures(5777).failure, "");
}

// Two results of a row of one element, one of which takes the place of what both read.
TEST(FusionTest, ResultsOfARowAreComputedBeforeTheFirstIsStored) {
  EXPECT_EQ(checkReductions(60639).failure, "");
}

// The strides of dimensions with one element decide about those of results.
TEST(FusionTest, SingleElementsKeepTheirStrides) {
  EXPECT_EQ(checkPointwise(3766354).failure, "");
  EXPECT_EQ(checkStructures(3611018).failure, "");
}

// A result that is the same for all points of a reduced dimension is stored for each of them: over
// an argument it read what it had stored.
TEST(FusionTest, RepeatedStoresAreNotOverWhatTheyRead) {
  EXPECT_EQ(checkReductions(232655).failure, "");
}

// Among them is a result that is stored through a view although its group has no views.
TEST(FusionTest, ViewsOfResultsFollowShapes) {
  for (uint64_t seed = 3750; seed < 4000; ++seed) EXPECT_EQ(checkStructures(seed).failure, "");
}

std::shared_ptr<Graph> groupedGraph(const char* text) {
  auto graph = parseGraph(text);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  formFusionGroups(*graph, options);
  return graph;
}

constexpr const char* kChain = R"(graph(%x : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %b, %1)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::mul(%3, %x)
  return (%4)
)";

TEST(FusionTest, NewSizesCompileNothing) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(kChain), "forward");
  auto run = [&](int64_t batch) {
    runCode(*code, {IValue(Tensor::full({batch, 19}, 0.5, DType::Float)),
                    IValue(Tensor::full({19}, 0.25, DType::Float))});
  };
  run(7);
  FusionStatistics before = fusionStatistics();
  for (int64_t i = 0; i < 1000; ++i) run(2 + i * 37 % 501);
  FusionStatistics after = fusionStatistics();
  EXPECT_EQ(after.kernels, before.kernels);
  EXPECT_EQ(after.variants, before.variants);
  EXPECT_EQ(after.launches, before.launches + 1000);
}

TEST(FusionTest, NothingIsFusedWhileTheSwitchIsOff) {
  setJitMode(JitMode::Off);
  auto graph = parseGraph(kChain);
  formKernelGroups(*graph);
  for (const Node* node : graph->nodes()) EXPECT_NE(node->kind(), prim::FusionGroup);
  setJitMode(JitMode::Sync);
  formKernelGroups(*graph);
  bool grouped = false;
  for (const Node* node : graph->nodes()) grouped |= node->kind() == prim::FusionGroup;
  EXPECT_TRUE(grouped);
}

TEST(FusionTest, SingleOperatorsAreLeftAlone) {
  setJitMode(JitMode::Sync);
  const auto forms = [](const char* operand) {
    auto graph = parseGraph(fmt::format(R"(graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::t(%x)
  %3 : Tensor = aten::add(%y, {}, %1)
  return (%3)
)",
                                        operand));
    formKernelGroups(*graph);
    return std::ranges::any_of(graph->nodes(),
                               [](const Node* node) { return node->kind() == prim::FusionGroup; });
  };
  EXPECT_FALSE(forms("%x"));
  EXPECT_TRUE(forms("%2"));  // lies in another order than the first
}

TEST(FusionTest, WrongShapesRaiseTheOperatorsError) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(kChain), "forward");
  try {
    runCode(*code, {IValue(Tensor::full({3, 4}, 1, DType::Float)),
                    IValue(Tensor::full({5}, 1, DType::Float))});
    FAIL() << "no error";
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("must match"), std::string::npos) << e.what();
  }
  code = Code::build(groupedGraph(R"(graph(%x : Tensor):
  %1 : int[] = prim::Constant[value=[5]]()
  %2 : NoneType = prim::Constant()
  %3 : float = prim::Constant[value=1.0e-05]()
  %4 : bool = prim::Constant[value=False]()
  %5 : Tensor = aten::layer_norm(%x, %1, %2, %2, %3, %4)
  %6 : Tensor = aten::tanh(%5)
  return (%6)
)"),
                     "forward");
  try {
    runCode(*code, {IValue(Tensor::full({3, 4}, 1, DType::Float))});
    FAIL() << "no error";
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("Given normalized_shape=[5]"), std::string::npos)
        << e.what();
  }
}

TEST(FusionTest, IndicesOutOfBoundsRaiseTheOperatorsError) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(R"(graph(%x : Tensor, %i : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : Tensor = aten::index_select(%x, %0, %i)
  %2 : Tensor = aten::tanh(%1)
  return (%2)
)"),
                          "forward");
  auto rows = [&](int64_t index) {
    return runCode(*code, {IValue(Tensor::full({3, 40}, 1, DType::Float)),
                           IValue(Tensor::full({5}, static_cast<double>(index), DType::Long))});
  };
  FusionStatistics before = fusionStatistics();
  EXPECT_EQ(rows(2).toTensor().describe(), "float32[5, 40]");
  EXPECT_EQ(fusionStatistics().launches, before.launches + 1);
  EXPECT_THROW(rows(3), RuntimeError);
  EXPECT_THROW(rows(-1), RuntimeError);
}

TEST(FusionTest, WhatIsNoProbabilityRaisesTheOperatorsError) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(R"(graph(%p : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %r : Tensor = aten::binary_cross_entropy(%p, %y, %none, %1)
  return (%r)
)"),
                          "forward");
  const auto loss = [&](double last, const DimVector& sizes) {
    const Tensor p = Tensor::full({3, 40}, 0.5, DType::Float);
    p.data<float>()[p.numel() - 1] = static_cast<float>(last);
    return runCode(*code, {IValue(p), IValue(Tensor::full(sizes, 1, DType::Float))});
  };
  const FusionStatistics before = fusionStatistics();
  EXPECT_NEAR(loss(0.5, {3, 40}).toTensor().item<float>(), std::log(2), 1e-6);
  EXPECT_NEAR(loss(0, {3, 40}).toTensor().item<float>(), (119 * std::log(2) + 100) / 120, 1e-5);
  EXPECT_EQ(fusionStatistics().launches, before.launches + 2);
  EXPECT_THROW(loss(1.25, {3, 40}), RuntimeError);
  EXPECT_THROW(loss(-1e-20, {3, 40}), RuntimeError);
  EXPECT_THROW(loss(std::nan(""), {3, 40}), RuntimeError);
  EXPECT_THROW(loss(0.5, {1, 40}), RuntimeError);
  EXPECT_THROW(loss(0.5, {40}), RuntimeError);
  EXPECT_EQ(fusionStatistics().launches, before.launches + 2);
}

TEST(FusionTest, ListsOfViewsAreTakenApartInside) {
  setJitMode(JitMode::Sync);
  auto graph = groupedGraph(R"(graph(%x : Tensor):
  %two : int = prim::Constant[value=2]()
  %one : int = prim::Constant[value=1]()
  %all : Tensor[] = aten::chunk(%x, %two, %one)
  %a : Tensor, %b : Tensor = prim::ListUnpack(%all)
  %c : Tensor = aten::tanh(%a)
  %d : Tensor = aten::mul(%c, %b)
  return (%d)
)");
  for (const Node* node : graph->nodes())
    EXPECT_NE(node->kind().qualString(), std::string_view("aten::chunk"));
  auto code = Code::build(graph, "forward");
  FusionStatistics before = fusionStatistics();
  Tensor result = runCode(*code, {IValue(Tensor::full({3, 40}, 2, DType::Float))}).toTensor();
  EXPECT_EQ(fusionStatistics().launches, before.launches + 1);
  EXPECT_EQ(result.describe(), "float32[3, 20]");
}

TEST(FusionTest, NumbersOfViewsAreArguments) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(R"(graph(%x : Tensor, %n : int):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %rows : Tensor = aten::slice(%x, %zero, %n, %none, %one)
  %row : Tensor = aten::select(%x, %zero, %n)
  %1 : Tensor = aten::sub(%rows, %row, %one)
  %2 : Tensor = aten::tanh(%1)
  return (%2)
)"),
                          "forward");
  Tensor x = Tensor::empty({9, 30}, DType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i) / 64;
  auto run = [&](int64_t n) { return runCode(*code, {IValue(x), IValue(n)}).toTensor(); };
  run(1);
  const FusionStatistics before = fusionStatistics();
  for (int64_t n : {2, 3, 6}) {
    Tensor result = run(n);
    ASSERT_EQ(result.size(0), 9 - n);
    for (int64_t i = 0; i < 9 - n; ++i) {
      EXPECT_FLOAT_EQ(result.data<float>()[i * 30 + 7], std::tanh(static_cast<float>(i * 30) / 64));
    }
  }
  const FusionStatistics after = fusionStatistics();
  EXPECT_EQ(after.launches, before.launches + 3);
  EXPECT_EQ(after.kernels, before.kernels);
  EXPECT_THROW(run(9), RuntimeError);
}

// The operators decide about numbers that a dtype does not hold, and about bounds that are NaN.
TEST(FusionTest, NumbersThatTheDTypeDoesNotHoldAreLeftToTheOperators) {
  setJitMode(JitMode::Sync);
  const auto group = [](const char* op, const char* before, const char* after) {
    return fmt::format(R"(graph(%x : Tensor, %n : Scalar):
  %none : NoneType = prim::Constant()
  %zero : float = prim::Constant[value=0.]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::{}(%a{}, %n{})
  return (%b)
)",
                       op, before, after);
  };
  struct Case {
    std::string text;
    DType dtype;
    IValue fits, other;
    bool raises;
  };
  const double nan = std::nan("");
  const Case cases[] = {
      {group("clamp_max", "", ""), DType::Half, 1.5, -1e30, true},
      {group("clamp_max", "", ""), DType::Half, nan, 7e4, true},
      {group("clamp_min", "", ""), DType::Float, 1e38, 1e39, true},
      {group("clamp_min", "", ""), DType::Int, int64_t{7}, int64_t{1} << 40, true},
      {group("clamp", ", %none", ""), DType::Float, 0.5, nan, false},
      {group("clamp", "", ", %none"), DType::Double, 0.5, nan, false},
      {group("hardtanh", ", %zero", ""), DType::BFloat16, 6.0, 1e39, true},
  };
  for (const Case& c : cases) {
    auto code = Code::build(groupedGraph(c.text.c_str()), "forward");
    auto plain = Code::build(parseGraph(c.text), "forward");
    const Tensor x = Tensor::full({40}, -2, c.dtype);
    FusionStatistics before = fusionStatistics();
    for (const IValue& n : {c.fits, c.other, c.fits}) {
      const bool is_other = n.repr() == c.other.repr();
      if (is_other && c.raises) {
        EXPECT_THROW(runCode(*code, {IValue(x), n}), RuntimeError) << c.text;
        continue;
      }
      const Tensor got = runCode(*code, {IValue(x), n}).toTensor();
      const Tensor expected = runCode(*plain, {IValue(x), n}).toTensor();
      ASSERT_EQ(got.describe(), expected.describe());
      EXPECT_EQ(std::memcmp(got.rawData(), expected.rawData(), 40 * got.itemSize()), 0) << c.text;
    }
    EXPECT_EQ(fusionStatistics().launches, before.launches + 2) << c.text;
    EXPECT_EQ(fusionStatistics().variants, before.variants + 1) << c.text;
  }
}

// Whether the result of a group lies where its first argument lay, which nobody asks for any more
// unless there are `others`.
bool takesTheArgumentsPlace(const char* text, const std::vector<Tensor>& others) {
  auto graph = groupedGraph(text);
  const Node* group = nullptr;
  for (const Node* n : graph->nodes()) {
    if (n->kind() == prim::FusionGroup) group = n;
  }
  FusionSite site(*group);
  // The only one who holds it, as the interpreter's register that lends the argument.
  std::vector<IValue> arguments;
  arguments.emplace_back(Tensor::full({4, 100}, 0.5, DType::Float));
  const void* place = arguments[0].toTensor().rawData();
  for (const Tensor& t : others) arguments.emplace_back(t);
  std::vector<IValue> results(group->outputs().size());
  EXPECT_TRUE(site.run(arguments.data(), group->inputs().size(), results.data(), 1));
  return results[0].toTensor().rawData() == place;
}

TEST(FusionTest, ResultsTakeThePlaceOfDyingArguments) {
  setJitMode(JitMode::Sync);
  EXPECT_TRUE(takesTheArgumentsPlace(R"(graph(%x : Tensor):
  %1 : Tensor = aten::tanh(%x)
  %2 : Tensor = aten::mul(%1, %x)
  return (%2)
)",
                                     {}));
  // A reduction passes over its argument several times. The powers of a softmax wait in the result,
  // so that the argument must not be read after them.
  const auto softmax = [](const char* last) {
    return fmt::format(R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::neg(%x)
  %1 : Tensor = aten::softmax(%a, %0, %none)
  %2 : Tensor = aten::{}
  return (%2)
)",
                       last);
  };
  EXPECT_TRUE(takesTheArgumentsPlace(softmax("neg(%1)").c_str(), {}));
  EXPECT_FALSE(takesTheArgumentsPlace(softmax("mul(%1, %x)").c_str(), {}));
  constexpr const char* kCentered = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=-1]()
  %1 : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%0)
  %keep : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant()
  %m : Tensor = aten::mean(%x, %dims, %keep, %none)
  %2 : Tensor = aten::sub(%x, %m, %1)
  return (%2)
)";
  EXPECT_TRUE(takesTheArgumentsPlace(kCentered, {}));
  // A part of it is read elsewhere.
  EXPECT_FALSE(takesTheArgumentsPlace(R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : Tensor = aten::slice(%x, %1, %0, %1, %1)
  %2 : Tensor = aten::mul(%x, %half)
  %3 : Tensor = aten::tanh(%2)
  return (%3)
)",
                                      {}));
}

// One result is stored in the pass that sums for another, in which that is computed up to where it
// waits for the sum: neither must take the place of what the other one reads.
TEST(FusionTest, ResultsOfSeveralPassesLeaveEachOthersArguments) {
  setJitMode(JitMode::Sync);
  auto graph = groupedGraph(
      R"(graph(%a : Tensor, %b : Tensor, %c : Tensor, %d : Tensor, %p : Tensor, %m : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %part : float = prim::Constant[value=0.9]()
  %dims : int[] = prim::ListConstruct(%0)
  %keep : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant()
  %2 : Tensor = aten::sub(%a, %m, %1)
  %3 : Tensor = aten::mul(%b, %m)
  %4 : Tensor = aten::sub(%2, %3, %1)
  %5 : Tensor = aten::mul(%4, %m)
  %6 : Tensor = aten::add(%5, %5, %1)
  %7 : Tensor = aten::mul(%6, %part)
  %8 : Tensor = aten::mul(%b, %b)
  %9 : Tensor = aten::neg(%8)
  %10 : Tensor = aten::add(%9, %1, %1)
  %early : Tensor = aten::mul(%7, %10)
  %12 : Tensor = aten::mul(%early, %c)
  %13 : Tensor = aten::add(%d, %12, %1)
  %14 : Tensor = aten::mul(%13, %p)
  %15 : Tensor = aten::sum(%14, %dims, %keep, %none)
  %16 : Tensor = aten::sub(%13, %15, %1)
  %late : Tensor = aten::mul(%16, %p)
  return (%late, %early)
)");
  const Node* group = nullptr;
  for (const Node* n : graph->nodes()) {
    if (n->kind() == prim::FusionGroup) group = n;
  }
  ASSERT_NE(group, nullptr);
  FusionSite site(*group);
  const auto run = [&](uint64_t dying) {
    std::vector<IValue> arguments;
    for (const Value* v : group->inputs()) {
      const bool one = v->debugName() == "m";
      const Tensor t = Tensor::empty(one ? DimVector{1, 1} : DimVector{3, 4}, DType::Double);
      for (int64_t i = 0; i < t.numel(); ++i) {
        t.data<double>()[i] = std::sin(static_cast<double>(i + 3) * (1.0 + v->debugName()[0]));
      }
      arguments.emplace_back(t);
    }
    std::vector<IValue> results(group->outputs().size());
    EXPECT_TRUE(site.run(arguments.data(), arguments.size(), results.data(), dying));
    return results;
  };
  const std::vector<IValue> expected = run(0), got = run(~uint64_t{0});
  for (size_t i = 0; i < expected.size(); ++i) {
    const Tensor e = expected[i].toTensor(), g = got[i].toTensor();
    for (int64_t k = 0; k < e.numel(); ++k) {
      EXPECT_EQ(g.data<double>()[k], e.data<double>()[k]) << "result " << i << ", element " << k;
    }
  }
}

// The interpreter says which arguments die with the group.
TEST(FusionTest, KernelsGetWhatDiesWithTheGroup) {
  auto graph = groupedGraph(R"(graph(%x : Tensor, %y : Tensor):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %a : Tensor = aten::cumsum(%x, %0, %none)
  %b : Tensor = aten::tanh(%a)
  %c : Tensor = aten::mul(%b, %y)
  %d : Tensor = aten::cumsum(%c, %0, %none)
  %e : (Tensor, Tensor) = prim::TupleConstruct(%d, %y)
  return (%e)
)");
  const std::string text = Code::build(graph, "forward")->str();
  const size_t at = text.find("FUSION");
  ASSERT_NE(at, std::string::npos) << text;
  const std::string line = text.substr(at, text.find('\n', at) - at);
  EXPECT_EQ(std::count(line.begin(), line.end(), '?'), 1) << line;
}

// Rows of one tensor are columns of another: blocks are turned around in a buffer.
TEST(FusionTest, TransposedTensorsAreReadInTiles) {
  setJitMode(JitMode::Sync);
  constexpr const char* kText = R"(graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::transpose(%x, %0, %1)
  %b : Tensor = aten::add(%a, %y, %1)
  %c : Tensor = aten::mul(%b, %a)
  return (%c)
)";
  for (DType dtype : {DType::Float, DType::Double, DType::Half, DType::Byte}) {
    auto code = Code::build(groupedGraph(kText), "forward");
    auto plain = Code::build(parseGraph(kText), "forward");
    for (int64_t columns : {512, 515}) {
      // More rows than fit behind a step of four kilobytes.
      const auto item = static_cast<int64_t>(itemSize(dtype));
      Tensor x =
          Tensor::empty({601, 4096 / item}, dtype).slice(1, 0, std::min(columns, 4096 / item));
      Tensor y = Tensor::empty({x.size(1), x.size(0)}, dtype);
      std::mt19937 random(1);
      for (const Tensor& t : {x, y}) {
        Tensor numbers = Tensor::empty(t.sizes(), DType::Float);
        for (int64_t i = 0; i < numbers.numel(); ++i) {
          numbers.data<float>()[i] = static_cast<float>(random() % 200) / 8;
        }
        t.copyFrom(numbers);
      }
      FusionStatistics before = fusionStatistics();
      Tensor got = runCode(*code, {IValue(x), IValue(y)}).toTensor();
      EXPECT_EQ(fusionStatistics().launches, before.launches + 1);
      Tensor expected = runCode(*plain, {IValue(x), IValue(y)}).toTensor();
      ASSERT_EQ(got.describe(), expected.describe());
      Tensor a = got.contiguous(), b = expected.contiguous();
      const auto bytes = static_cast<size_t>(a.numel() * item);
      EXPECT_EQ(std::memcmp(a.rawData(), b.rawData(), bytes), 0) << got.describe();
    }
  }
}

// Normalizations and padding keep channels innermost; other orders in memory become row-major.
TEST(FusionTest, NormalizationsTakeAnyOrderInMemory) {
  setJitMode(JitMode::Sync);
  constexpr const char* kHead = R"(graph(%x : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %eps : float = prim::Constant[value=0.001]()
  %2 : int = prim::Constant[value=2]()
  %1 : int = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %pads : int[] = prim::ListConstruct(%1, %2, %0, %1)
  %y : Tensor = aten::{}
  %u : Tensor = aten::relu(%y)
  %z : Tensor = aten::neg(%u)
  return (%z)
)";
  for (const char* op : {"batch_norm(%x, %w, %w, %w, %w, %false, %eps, %eps, %false)",
                         "group_norm(%x, %2, %w, %none, %eps, %false)",
                         "group_norm(%x, %2, %none, %none, %eps, %false)",
                         "instance_norm(%x, %w, %w, %none, %none, %true, %eps, %eps, %false)",
                         "constant_pad_nd(%x, %pads, %eps)"}) {
    std::string text = kHead;
    text.replace(text.find("{}"), 2, op);
    auto code = Code::build(groupedGraph(text.c_str()), "forward");
    auto plain = Code::build(parseGraph(text), "forward");
    const Tensor w = Tensor::full({4}, 0.5, DType::Float);
    Tensor x = Tensor::empty({3, 4, 5, 6}, DType::Float);
    for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i * 37 % 101);
    for (const Tensor& t : {x, x.contiguous(MemoryFormat::ChannelsLast),
                            x.transpose(2, 3).contiguous().transpose(2, 3), x.slice(3, 1, 6, 2)}) {
      const FusionStatistics before = fusionStatistics();
      const Tensor got = runCode(*code, {IValue(t), IValue(w)}).toTensor();
      EXPECT_EQ(fusionStatistics().launches, before.launches + 1) << op;
      const Tensor expected = runCode(*plain, {IValue(t), IValue(w)}).toTensor();
      ASSERT_EQ(got.describe(), expected.describe());
      EXPECT_EQ(DimVector(got.strides()), DimVector(expected.strides())) << op;
      const Tensor a = got.contiguous(), b = expected.contiguous();
      for (int64_t i = 0; i < a.numel(); ++i) {
        ASSERT_NEAR(a.data<float>()[i], b.data<float>()[i], 1e-4) << op;
      }
    }
  }
}

// A view that needs a copy for some strides and none for others takes two programs.
TEST(FusionTest, ReshapesFollowTheStrides) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(R"(graph(%x : Tensor):
  %n : int = prim::Constant[value=-1]()
  %sizes : int[] = prim::ListConstruct(%n)
  %1 : Tensor = aten::reshape(%x, %sizes)
  %2 : Tensor = aten::tanh(%1)
  %3 : Tensor = aten::mul(%2, %1)
  return (%3)
)"),
                          "forward");
  Tensor x = Tensor::empty({6, 4}, DType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i) / 8;
  for (int i = 0; i < 3; ++i) {
    FusionStatistics before = fusionStatistics();
    Tensor plain = runCode(*code, {IValue(x)}).toTensor();
    Tensor turned = runCode(*code, {IValue(x.transpose(0, 1))}).toTensor();
    EXPECT_EQ(fusionStatistics().launches, before.launches + 2);
    for (int64_t row = 0; row < 6; ++row) {
      for (int64_t column = 0; column < 4; ++column) {
        EXPECT_EQ(plain.data<float>()[row * 4 + column], turned.data<float>()[column * 6 + row]);
      }
    }
  }
}

}  // namespace
}  // namespace wick::fusion_test
