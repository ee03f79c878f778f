// Kernels in loop form: what lowering makes, and the reference evaluator against machine code.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "codegen/loop/evaluate.h"
#include "codegen/loop/lowering.h"
#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/fusion/launch.h"
#include "runtime/jit_mode.h"

namespace wick::loop_test {
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
  for (const Tensor& t : arguments) infos.push_back(argumentInfo(IValue(t)));
  return infos;
}

// Runs the lowered group with the reference evaluator, as FusionSite runs it with compiled code.
std::vector<Tensor> evaluateGroup(const Group& group, const std::vector<Tensor>& arguments) {
  loop::LoweredGroup lowered = loop::lowerGroup(group.body(), describe(arguments));
  std::vector<IValue> values(arguments.begin(), arguments.end());
  std::vector<const IValue*> pointers;
  for (const IValue& v : values) pointers.push_back(&v);
  GroupCall call(pointers, true);
  EXPECT_TRUE(call.follow(lowered));
  std::vector<Launch> launches(lowered.kernels.size());
  for (size_t k = 0; k < launches.size(); ++k) EXPECT_TRUE(call.place(lowered, k, launches[k]));
  std::vector<Tensor> outputs = call.makeOutputs(lowered, launches, 0);
  for (size_t k = 0; k < launches.size(); ++k) {
    const loop::Kernel& kernel = lowered.kernels[k];
    std::vector<loop::Place> places;
    for (size_t a = 0; a < kernel.accesses.size(); ++a) {
      loop::Place place{launches[k].touches[a].base, launches[k].touches[a].steps};
      if (int output = launches[k].output_of[a]; output >= 0) {
        place.base = static_cast<char*>(outputs[static_cast<size_t>(output)].rawData()) +
                     reinterpret_cast<intptr_t>(place.base);
      }
      places.push_back(place);
    }
    std::vector<ScalarBits> numbers(launches[k].numbers.begin(),
                                    launches[k].numbers.begin() + kernel.numbers.size());
    EXPECT_TRUE(loop::evaluate(kernel, launches[k].sizes, places, numbers));
  }
  outputs.resize(lowered.results);
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
  loop::LoweredGroup lowered = loop::lowerGroup(group.body(), describe({x, y}));
  ASSERT_EQ(lowered.kernels.size(), 1u);
  EXPECT_EQ(lowered.kernels[0].reductions.size(), 2u);
  EXPECT_EQ(loop::makeSchedule(lowered.kernels[0]).passes, 3);
  for (int64_t n : {1, 3, 16, 64, 65, 300}) {
    compare(kSoftmax, {randomTensor({9, n}, 3), randomTensor({n}, 4)}, 1e-6);
  }
}

constexpr const char* kMean = R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=0]()
  %dims : int[] = prim::ListConstruct(%dim)
  %keep : bool = prim::Constant[value=True]()
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

// A row is made of pieces: a loop over those of one dimension, or a nest of two.
TEST(LoopTest, ReducedDimensionsNeedNotJoin) {
  constexpr const char* kText = R"(graph(%x : Tensor, %w : Tensor):
  %0 : int = prim::Constant[value=0]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %dims : int[] = prim::ListConstruct(%0, %2, %3)
  %keep : bool = prim::Constant[value=True]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::mul(%x, %w)
  %m : Tensor = aten::mean(%a, %dims, %keep, %none)
  %c : Tensor = aten::sub(%x, %m, %one)
  %v : Tensor = aten::amax(%c, %dims, %keep)
  %d : Tensor = aten::mul(%c, %v)
  return (%d, %m)
)";
  for (int64_t columns : {1, 5, 40, 130}) {
    const Tensor x = randomTensor({3, 4, 5, 140}, 6).slice(3, 0, columns, 1);
    // The weight stays where it is along a piece, and changes from piece to piece.
    compare(kText, {x, randomTensor({3, 1, 5, 1}, 7)}, 1e-5);
    compare(kText, {x.contiguous(), randomTensor({columns}, 8)}, 1e-5);
    compare(kText, {x.slice(2, 1, 4, 1), randomTensor({3, 4, 1, 1}, 9)}, 1e-5);
  }
  // Lanes are neighbouring rows.
  constexpr const char* kColumns = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%0, %1)
  %keep : bool = prim::Constant[value=False]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::mul(%x, %x)
  %s : Tensor = aten::sum(%a, %dims, %keep, %none)
  return (%s)
)";
  for (int64_t columns : {8, 33, 100}) {
    compare(kColumns, {randomTensor({6, 9, columns}, 10).slice(1, 2, 7, 1)}, 1e-5);
  }
}

TEST(LoopTest, AnEmptyRowStillSums) {
  Group group(R"(graph(%x : Tensor):
  %dim : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%dim)
  %keep : bool = prim::Constant[value=False]()
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

std::string textOf(const std::string& graph, const std::vector<Tensor>& arguments) {
  Group group(graph);
  std::string text;
  for (const loop::Kernel& kernel : loop::lowerGroup(group.body(), describe(arguments)).kernels) {
    text += loop::toString(kernel);
  }
  return text;
}
Tensor indices(std::initializer_list<int64_t> numbers) {
  Tensor t = Tensor::empty({static_cast<int64_t>(numbers.size())}, DType::Long);
  std::copy(numbers.begin(), numbers.end(), t.data<int64_t>());
  return t;
}

constexpr const char* kViews = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::transpose(%x, %0, %1)
  %b : Tensor = aten::slice(%a, %0, %1, %none, %2)
  %c : Tensor = aten::neg(%b)
  return (%c)
)";

TEST(LoopTest, ViewsAreOtherStepsOverTheSameMemory) {
  const Tensor x = randomTensor({4, 9}, 1);
  EXPECT_EQ(textOf(kViews, {x}),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = load x1[0:i0, 1:i1] float32\n"
            "  %1 = neg float32 %0\n"
            "  store y0[0:i0, 1:i1] float32 = %1\n");
  compare(kViews, {x}, 0);
}

constexpr const char* kCat = R"(graph(%x : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %a : Tensor = aten::exp(%x)
  %l : Tensor[] = prim::ListConstruct(%a, %y)
  %b : Tensor = aten::cat(%l, %1)
  %c : Tensor = aten::neg(%b)
  return (%c)
)";

TEST(LoopTest, JoinedTensorsAreReadWhereTheyExist) {
  const Tensor x = randomTensor({3, 5}, 1), y = randomTensor({3, 20}, 2);
  const std::string text = textOf(kCat, {x, y});
  EXPECT_NE(text.find("index[i1] int64"), std::string::npos) << text;
  EXPECT_NE(text.find("size t0:1"), std::string::npos) << text;
  EXPECT_NE(text.find("[0:i0, 1:i1] if %"), std::string::npos) << text;
  compare(kCat, {x, y}, 0);
}

constexpr const char* kRows = R"(graph(%x : Tensor, %i : Tensor):
  %0 : int = prim::Constant[value=0]()
  %a : Tensor = aten::index_select(%x, %0, %i)
  %b : Tensor = aten::neg(%a)
  return (%b)
)";

// Why a group of these arguments has no kernel.
std::string reasonOf(const std::string& graph, const std::vector<Tensor>& arguments) {
  Group group(graph);
  try {
    loop::lowerGroup(group.body(), describe(arguments));
  } catch (const loop::Unsupported& e) {
    return e.what();
  }
  return "it has one";
}

TEST(LoopTest, IndicesAreChecked) {
  const Tensor x = randomTensor({3, 50}, 1), i = indices({2, 0, 2, 1});
  EXPECT_EQ(reasonOf(kRows, {x, i.to(DType::Int)}), "it has one");
  EXPECT_EQ(reasonOf(kRows, {x, i.to(DType::Short)}), "indices of another dtype");
  EXPECT_EQ(textOf(kRows, {x, i}),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = load x1[0:i0] int64\n"
            "  %1 = int64 0\n"
            "  %2 = le bool %1, %0\n"
            "  %3 = size t0:0 int64\n"
            "  %4 = lt bool %0, %3\n"
            "  %5 = and bool %2, %4\n"
            "  %6 = stride x0:0 int64\n"
            "  %7 = mul int64 %0, %6\n"
            "  %8 = load x0[1:i1] + %7 if %5 float32\n"
            "  %9 = neg float32 %8\n"
            "  check %5\n"
            "  store y0[0:i0, 1:i1] float32 = %9\n");
  compare(kRows, {x, i}, 0);
}

constexpr const char* kPad = R"(graph(%x : Tensor):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %pads : int[] = prim::ListConstruct(%one, %two)
  %a : Tensor = aten::constant_pad_nd(%x, %pads, %half)
  %b : Tensor = aten::neg(%a)
  return (%b)
)";

TEST(LoopTest, PaddingIsWhereTheTensorIsNot) {
  const Tensor x = randomTensor({3, 20}, 1);
  EXPECT_EQ(textOf(kPad, {x}),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = index[i1] int64\n"
            "  %1 = int64 1\n"
            "  %2 = le bool %1, %0\n"
            "  %3 = size t0:1 int64\n"
            "  %4 = add int64 %1, %3\n"
            "  %5 = lt bool %0, %4\n"
            "  %6 = and bool %2, %5\n"
            "  %7 = load x1[0:i0, 1:i1] if %6 float32\n"
            "  %8 = float32 0x1p-1\n"
            "  %9 = select float32 %6, %7, %8\n"
            "  %10 = neg float32 %9\n"
            "  store y0[0:i0, 1:i1] float32 = %10\n");
  compare(kPad, {x}, 0);
}

constexpr const char* kGather = R"(graph(%x : Tensor, %i : Tensor):
  %0 : int = prim::Constant[value=0]()
  %no : bool = prim::Constant[value=False]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::gather(%a, %0, %i, %no)
  return (%b)
)";

// What is gathered is computed where it is gathered.
TEST(LoopTest, GatheredElementsAreComputedOneByOne) {
  const Tensor x = randomTensor({5, 3}, 1);
  const Tensor i = indices({4, 0, 2, 1, 1, 3}).view({2, 3});
  EXPECT_EQ(textOf(kGather, {i, x}),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = load x0[0:i0, 1:i1] int64\n"
            "  %1 = int64 0\n"
            "  %2 = le bool %1, %0\n"
            "  %3 = size t2:0 int64\n"
            "  %4 = lt bool %0, %3\n"
            "  %5 = and bool %2, %4\n"
            "  %6 = stride x1:0 int64\n"
            "  %7 = mul int64 %0, %6\n"
            "  %8 = load x1[1:i1…] + %7 if %5 float32\n"
            "  %9 = neg float32 %8\n"
            "  check %5\n"
            "  store y0[0:i0, 1:i1] float32 = %9\n");
  compare(kGather, {i, x}, 0);
}

constexpr const char* kEmbedding = R"(graph(%table : Tensor, %i : Tensor, %y : Tensor):
  %1 : int = prim::Constant[value=1]()
  %none : int = prim::Constant[value=-1]()
  %no : bool = prim::Constant[value=False]()
  %a : Tensor = aten::embedding(%table, %i, %none, %no, %no)
  %b : Tensor = aten::mul(%a, %y)
  return (%b)
)";

TEST(LoopTest, EmbeddingsAreRowsByIndex) {
  const Tensor table = randomTensor({6, 40}, 1), i = indices({5, 0, 3}), y = randomTensor({40}, 2);
  EXPECT_EQ(textOf(kEmbedding, {y, table, i}),
            "kernel (i0 < s0, i1 < s1)\n"
            "  %0 = load x2[0:i0] int64\n"
            "  %1 = int64 0\n"
            "  %2 = le bool %1, %0\n"
            "  %3 = size t1:0 int64\n"
            "  %4 = lt bool %0, %3\n"
            "  %5 = and bool %2, %4\n"
            "  %6 = stride x1:0 int64\n"
            "  %7 = mul int64 %0, %6\n"
            "  %8 = load x1[1:i1] + %7 if %5 float32\n"
            "  %9 = load x0[0:i1] float32\n"
            "  %10 = mul float32 %8, %9\n"
            "  check %5\n"
            "  store y0[0:i0, 1:i1] float32 = %10\n");
  compare(kEmbedding, {y, table, i}, 0);
}

constexpr const char* kVariance = R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%1)
  %yes : bool = prim::Constant[value=True]()
  %a : Tensor = aten::var(%x, %dims, %yes, %yes)
  return (%a)
)";

// Two passes: the mean, then what is left without it.
TEST(LoopTest, VariancesTakeTwoPasses) {
  const Tensor x = randomTensor({3, 50}, 1);
  EXPECT_EQ(textOf(kVariance, {x}),
            "kernel (i0 < s0, i1 < s1 reduced)\n"
            "  %0 = load x0[0:i0, 1:i1] float32\n"
            "  r0 = sum %0\n"
            "  %1 = count float32\n"
            "  %2 = reduction r0 float32\n"
            "  %3 = div float32 %2, %1\n"
            "  %4 = sub float32 %0, %3\n"
            "  %5 = mul float32 %4, %4\n"
            "  r1 = sum %5\n"
            "  %6 = reduction r1 float32\n"
            "  %7 = float32 0x1p+0\n"
            "  %8 = sub float32 %1, %7\n"
            "  %9 = float32 0x0p+0\n"
            "  %10 = lt bool %8, %9\n"
            "  %11 = select float32 %10, %9, %8\n"
            "  %12 = div float32 %6, %11\n"
            "  store row y0[0:i0] float32 = %12\n");
  compare(kVariance, {x}, 1e-6);
}

// A correction that is a float counts as what it is; loop forms have whole ones only.
TEST(LoopTest, CorrectionsMayBeFloats) {
  const Tensor x = randomTensor({3, 50}, 1);
  const auto graph = [](const char* correction) {
    return std::string(R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %dims : int[] = prim::ListConstruct(%1)
  %c : float = prim::Constant[value=)") +
           correction + R"(]()
  %yes : bool = prim::Constant[value=True]()
  %a : Tensor = aten::var(%x, %dims, %c, %yes)
  return (%a)
)";
  };
  for (const char* correction : {"0.", "2.", "-1."}) compare(graph(correction), {x}, 1e-6);
  EXPECT_THROW(textOf(graph("1.5"), {x}), loop::Unsupported);
}

// The place of an extremum is an extremum too: of the positions where it is.
constexpr const char* kPlace = R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %no : bool = prim::Constant[value=False]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor, %c : Tensor = aten::max(%a, %1, %no)
  %d : Tensor = aten::mul(%b, %c)
  return (%d)
)";

TEST(LoopTest, PlacesOfExtrema) {
  Tensor x = randomTensor({6, 70}, 1);
  x.data<float>()[75] = x.data<float>()[130] = 5;                  // the first of two
  x.data<float>()[150] = std::numeric_limits<float>::quiet_NaN();  // wins
  Group group(kPlace);
  const std::vector<Tensor> got = runGroup(group, {x}), expected = evaluateGroup(group, {x});
  EXPECT_EQ(got[0].data<float>()[1], std::tanh(5.0F) * 5);
  EXPECT_TRUE(std::isnan(got[0].data<float>()[2]));
  for (int64_t row : {0, 1, 3, 4, 5}) {
    EXPECT_EQ(got[0].data<float>()[row], expected[0].data<float>()[row]);
  }
}

constexpr const char* kTwoKernels = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::softmax(%x, %0, %none)
  %b : Tensor = aten::softmax(%a, %1, %none)
  return (%b)
)";

TEST(LoopTest, ReductionsOverOtherDimensionsComeFirst) {
  const Tensor x = randomTensor({7, 40}, 1);
  Group group(kTwoKernels);
  loop::LoweredGroup lowered = loop::lowerGroup(group.body(), describe({x}));
  ASSERT_EQ(lowered.kernels.size(), 2u);
  EXPECT_EQ(lowered.kernels[0].reduced, 1u);
  EXPECT_EQ(lowered.kernels[1].reduced, 2u);
  EXPECT_EQ(lowered.results, 1u);
  EXPECT_EQ(lowered.outputs.size(), 2u);
  compare(kTwoKernels, {x}, 1e-6);
}

constexpr const char* kCast = R"(graph(%x : Tensor, %y : Tensor):
  %double : int = prim::Constant[value=7]()
  %no : bool = prim::Constant[value=False]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::to(%x, %double, %no, %no, %none)
  %b : Tensor = aten::neg(%a)
  %c : Tensor = aten::type_as(%b, %y)
  %d : Tensor = aten::abs(%c)
  return (%d)
)";

TEST(LoopTest, CastsConvert) {
  const Tensor x = randomTensor({7}, 1), y = randomTensor({1}, 2);
  EXPECT_EQ(textOf(kCast, {y, x}),
            "kernel (i0 < s0)\n"
            "  %0 = load x1[0:i0] float32\n"
            "  %1 = convert float64 %0\n"
            "  %2 = neg float64 %1\n"
            "  %3 = convert float32 %2\n"
            "  %4 = abs float32 %3\n"
            "  store y0[0:i0] float32 = %4\n");
  compare(kCast, {y, x}, 0);
  // A cast that changes nothing leaves no trace.
  EXPECT_EQ(textOf(kCast, {y.to(DType::Double), x.to(DType::Double)}),
            "kernel (i0 < s0)\n"
            "  %0 = load x2[0:i0] float64\n"
            "  %1 = neg float64 %0\n"
            "  %2 = abs float64 %1\n"
            "  store y0[0:i0] float64 = %2\n");
}

constexpr const char* kCrossEntropy = R"(graph(%x : Tensor, %target : Tensor, %w : Tensor):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %ignore : int = prim::Constant[value=-100]()
  %smoothing : float = prim::Constant[value=0.]()
  %a : Tensor = aten::tanh(%x)
  %b : Tensor = aten::cross_entropy_loss(%a, %target, %w, %WHAT, %ignore, %smoothing)
  return (%b)
)";
std::string crossEntropy(const char* weight, const char* reduction) {
  std::string text = kCrossEntropy;
  text.replace(text.find("%w, "), 2, weight);
  text.replace(text.find("%WHAT"), 5, reduction);
  return text;
}

// The row's maximum and sum, and in it the one element that the target names.
TEST(LoopTest, CrossEntropyIsOneKernel) {
  const Tensor x = randomTensor({4, 50}, 1), w = randomTensor({50}, 2);
  const Tensor target = indices({7, 49, 0, -100});
  const std::string kernel = textOf(crossEntropy("%none", "%0"), {target, x});
  for (const char* part : {"kernel (i0 < s0, i1 < s1 reduced)\n", "  r0 = max %", "  r1 = sum %",
                           "load x1[0:i0, 1:i1] float32\n", " = load x0[0:i0] int64\n",
                           "load x1[0:i0…] + %", "  check %", "  store row y0[0:i0] float32 = %"}) {
    EXPECT_NE(kernel.find(part), std::string::npos) << part << kernel;
  }
  for (const char* weight : {"%none", "%w"}) {
    for (const char* reduction : {"%0", "%1"}) {
      const std::string text = crossEntropy(weight, reduction);
      const std::vector<Tensor> arguments =
          weight[1] == 'w' ? std::vector<Tensor>{target, w, x} : std::vector<Tensor>{target, x};
      Group group(text);
      EXPECT_EQ(loop::lowerGroup(group.body(), describe(arguments)).kernels.size(),
                reduction[1] == '0' ? 1u : 2u);
      compare(text, arguments, 1e-6);
    }
  }
}

TEST(LoopTest, CrossEntropyOfWhatDoesNotFitIsLeftToTheOperator) {
  const Tensor x = randomTensor({4, 50}, 1), w = randomTensor({50}, 2);
  const Tensor target = indices({7, 49, 0, -100});
  const std::string plain = crossEntropy("%none", "%0"), weighted = crossEntropy("%w", "%0");
  EXPECT_EQ(reasonOf(plain, {target, x}), "it has one");
  EXPECT_EQ(reasonOf(plain, {target.to(DType::Int), x}),
            "aten::cross_entropy_loss: the target's dtype");
  EXPECT_EQ(reasonOf(plain, {indices({7}), x}), "aten::cross_entropy_loss: the target's sizes");
  EXPECT_EQ(reasonOf(plain, {target.view({4, 1, 1}), x}),
            "aten::cross_entropy_loss: these numbers of dimensions");
  EXPECT_EQ(reasonOf(weighted, {target, w.to(DType::Double), x}),
            "aten::cross_entropy_loss: the weight's dtype");
  const Tensor shares = randomTensor({4, 50}, 3);
  EXPECT_EQ(reasonOf(plain, {shares, x}), "it has one");
  EXPECT_EQ(reasonOf(plain, {shares.view({4, 50, 1}), x}), "aten::cross_entropy_loss: the target");
  EXPECT_EQ(reasonOf(plain, {randomTensor({1, 50}, 3), x}),
            "aten::cross_entropy_loss: the target's sizes");
}

constexpr const char* kGroupNorm = R"(graph(%x : Tensor, %w : Tensor, %b : Tensor):
  %groups : int = prim::Constant[value=3]()
  %eps : float = prim::Constant[value=0.001]()
  %no : bool = prim::Constant[value=False]()
  %a : Tensor = aten::group_norm(%x, %groups, %w, %b, %eps, %no)
  %c : Tensor = aten::silu(%a)
  return (%c)
)";

// Mean and scale of the groups, what that makes of each channel, and the result. Such a group is
// for tensors whose channels lie innermost, or for all others.
TEST(LoopTest, GroupNormIsThreeKernels) {
  const Tensor x = randomTensor({2, 6, 5, 7}, 1), w = randomTensor({6}, 2),
               b = randomTensor({6}, 3);
  Group group(kGroupNorm);
  loop::LoweredGroup lowered = loop::lowerGroup(group.body(), describe({x, w, b}));
  ASSERT_EQ(lowered.kernels.size(), 3u);
  EXPECT_EQ(lowered.kernels[0].reduced, 28u);
  EXPECT_EQ(lowered.kernels[0].stores.size(), 2u);
  EXPECT_EQ(lowered.kernels[1].stores.size(), 2u);
  compare(kGroupNorm, {x, w, b}, 1e-5);
  const Tensor turned = randomTensor({2, 6, 7, 5}, 1).transpose(2, 3);
  lowered = loop::lowerGroup(group.body(), describe({turned, w, b}));
  EXPECT_EQ(lowered.kernels.size(), 3u);
  ASSERT_EQ(lowered.formats.size(), 1u);
  EXPECT_FALSE(lowered.formats[0].channels_last);
  const Tensor last = x.contiguous(MemoryFormat::ChannelsLast);
  lowered = loop::lowerGroup(group.body(), describe({last, w, b}));
  EXPECT_TRUE(lowered.formats[0].channels_last);
}

constexpr const char* kRowsOfView = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %last : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::flatten(%x, %0, %1)
  %b : Tensor = aten::softmax(%a, %last, %none)
  %c : Tensor = aten::view_as(%b, %x)
  %d : Tensor = aten::mul(%c, %x)
  return (%d)
)";

TEST(LoopTest, ResultsAreStoredThroughAView) {
  const Tensor x = randomTensor({2, 3, 40}, 1);
  Group group(kRowsOfView);
  EXPECT_EQ(loop::lowerGroup(group.body(), describe({x})).kernels.size(), 1u);
  compare(kRowsOfView, {x}, 1e-6);
}

constexpr const char* kMadeOfOthers = R"(graph(%x : Tensor, %y : Tensor):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %last : int = prim::Constant[value=-1]()
  %list : int[] = prim::ListConstruct(%0)
  %both : int[] = prim::ListConstruct(%last, %0)
  %half : float = prim::Constant[value=0.5]()
  %inf : float = prim::Constant[value=inf]()
  %least : float = prim::Constant[value=-inf]()
  %none : NoneType = prim::Constant()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %p : Tensor = aten::sigmoid(%x)
)";

// Losses and the like are one kernel, and compute what the evaluator says.
TEST(LoopTest, OperatorsMadeOfOthersAreOneKernel) {
  const Tensor x = randomTensor({7, 40}, 1), y = randomTensor({7, 40}, 2);
  const auto check = [&](const std::string& op) {
    const std::string text =
        fmt::format("{}  %r : Tensor = aten::{}\n  %s : Tensor = aten::neg(%r)\n  return (%s)\n",
                    kMadeOfOthers, op);
    Group group(text);
    ASSERT_NE(group.node, nullptr) << op;
    std::vector<Tensor> arguments{x};
    if (group.node->inputs().size() == 2) arguments.push_back(y);
    EXPECT_EQ(loop::lowerGroup(group.body(), describe(arguments)).kernels.size(), 1u) << op;
    compare(text, arguments, 1e-5);
  };
  for (const std::string reduction : {"%0", "%1", "%2"}) {
    check("mse_loss(%x, %y, " + reduction + ")");
    check("l1_loss(%x, %y, " + reduction + ")");
    check("smooth_l1_loss(%x, %y, " + reduction + ", %half)");
    check("huber_loss(%x, %y, " + reduction + ", %half)");
    check("binary_cross_entropy(%p, %y, %none, " + reduction + ")");
    check("binary_cross_entropy(%p, %y, %y, " + reduction + ")");
    check("binary_cross_entropy_with_logits(%x, %y, %y, %p, " + reduction + ")");
    check("kl_div(%x, %p, " + reduction + ", %false)");
    check("kl_div(%x, %p, " + reduction + ", %true)");
    check("soft_margin_loss(%x, %y, " + reduction + ")");
    check("margin_ranking_loss(%x, %y, %p, %half, " + reduction + ")");
    check("poisson_nll_loss(%x, %p, %true, %true, %half, " + reduction + ")");
    check("poisson_nll_loss(%p, %p, %false, %false, %half, " + reduction + ")");
  }
  for (const char* op :
       {"glu(%x, %1)", "glu(%x, %last)", "cosine_similarity(%x, %y, %0, %half)",
        "cosine_similarity(%x, %y, %last, %half)", "norm(%x, %0)", "norm(%x, %1)", "norm(%x, %2)",
        "norm(%x, %half)", "pairwise_distance(%x, %y, %half, %half, %true)", "norm(%x, %inf)",
        "linalg_vector_norm(%x, %least, %list, %true, %none)", "flip(%x, %list)", "flip(%p, %both)",
        "tril(%x, %1)", "triu(%p, %last)"}) {
    check(op);
  }
}

// What waits in the memory of an output is gone once the output itself is stored.
TEST(LoopTest, OutputsOfSeveralPasses) {
  constexpr const char* kText = R"(graph(%x : Tensor):
  %0 : int = prim::Constant[value=-1]()
  %none : NoneType = prim::Constant()
  %a : Tensor = aten::softmax(%x, %0, %none)
  %b : Tensor = aten::mul(%x, %a)
  %c : Tensor = aten::softmax(%b, %0, %none)
  %d : Tensor = aten::mul(%c, %a)
  %e : Tensor = aten::softmax(%d, %0, %none)
  return (%e, %c, %a)
)";
  for (int64_t n : {4, 50}) compare(kText, {randomTensor({3, n}, 1)}, 1e-6);
}

}  // namespace
}  // namespace wick::loop_test
