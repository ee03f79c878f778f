// Models that are compiled for many sizes: with the bits of the engine for each of them.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "aot/recording.h"
#include "aot/size_text.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::sizes_test {
namespace {

using aot::Symbol;
using testing::HasSubstr;
using testing_aot::expectSame;
using testing_aot::Running;
using testing_aot::tensorOf;
using testing_aot::tensorsOf;
using testing_aot::valuesOf;
using testing_aot::Workshop;

struct Case {
  const char* name;
  std::vector<const char*> inputs;  // N and L are sizes
  const char* source;
  std::vector<Symbol> symbols{{"N", 1, 9, 1}, {"L", 1, 20, 1}};
  // Whether sums stand alone, which the engine adds in another order (docs/aot.md). A model for fixed sizes
  // tells the bits then.
  bool sums_alone = false;
};

const std::vector<Case>& cases() {
  static const std::vector<Symbol> batch{{"N", 1, 40, 1}};
  static const std::vector<Case> all = {
      {"pointwise",
       {"Nx7xf32", "7xf32"},
       R"(
def main(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x * y + 1.5) - torch.sigmoid(x) * torch.exp(-y)
)",
       batch},
      {"wide_pointwise",
       {"Nx3000xf32"},
       R"(
def main(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x) + torch.sin(x)
)",
       batch},
      {"two_sizes", {"NxLxf32", "Lxf32", "Nx1xf32"}, R"(
def main(x: Tensor, y: Tensor, z: Tensor) -> Tuple[Tensor, Tensor]:
    return x * y + z, (x - z).transpose(0, 1) * 2
)"},
      {"elements",
       {"NxLxf32", "Lxi64"},
       R"(
def main(x: Tensor, i: Tensor):
    k = i % x.size(0)
    values, order = torch.sort(x, 1)
    longer = torch.nn.functional.interpolate(x.unsqueeze(0), size=[7], mode="linear", align_corners=True)
    y = torch.index_put(x, [k], x[k] * 2, True)
    return torch.cumsum(x, 1), values, order, x[k], y, i // 2, torch.topk(x, 1, 0)[0], longer, torch.scatter(x, 0, order % x.size(0), 3.0)
)",
       {{"N", 1, 5, 1}, {"L", 1, 9, 1}}},
      {"softmax", {"NxLxf32"}, R"(
def main(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, -1) + 1
)"},
      {"sums",
       {"NxLx5xf32"},
       R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    y = x * x + 1
    return y.sum(-1) * 2, y.mean(1) - 1, y.amax([0, 2]), y.mean() + 1
)",
       {{"N", 1, 9, 1}, {"L", 1, 20, 1}},
       true},
      {"spectra",
       {"NxLxf32"},
       R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    z = torch.fft.rfft(x)
    return z * 2, torch.abs(z), torch.fft.irfft(z, x.size(1)), torch.fft.fft(x, dim=0).sum(1)
)",
       {{"N", 1, 5, 1}, {"L", 2, 13, 1}}},
      {"norms",
       {"Nx96xf32", "96xf32", "96xf32"},
       R"(
def main(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, [96], w, b) * 2
)",
       batch},
      {"layers",
       {"Nx40xf32", "64x40xf32", "64xf32", "10x64xf32", "10xf32"},
       R"(
def main(x: Tensor, w: Tensor, b: Tensor, v: Tensor, c: Tensor) -> Tensor:
    h = torch.relu(torch.nn.functional.linear(x, w, b))
    return torch.log_softmax(torch.nn.functional.linear(h, v, c), 1)
)",
       batch,
       true},
      {"products", {"NxLx16xf32", "16x24xf32"}, R"(
def main(a: Tensor, b: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return a @ b, a @ a.transpose(1, 2), (a[:, 0] @ b).sum(1)
)"},
      {"views", {"NxLx6xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    y = x.permute(0, 2, 1).reshape(x.size(0), -1)
    return torch.cat([y[:, 1:], y[:, :1] * 2], 1), x[:, ::2].flatten(1) + 1, x[-1].unsqueeze(0) * 2
)"},
      {"halved", {"NxLxf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, int]:
    half = (x.size(1) + 1) // 2
    return x[:, :half] * 2 + x.size(0), half * x.size(0)
)"},
      {"masked",
       {"LxLxf32"},
       R"(
def main(x: Tensor) -> Tensor:
    mask = torch.ones(x.size(0), x.size(0)).tril()
    return torch.softmax(x.masked_fill(mask == 0, float("-inf")), -1)
)",
       {{"L", 1, 20, 1}}},
      {"made",
       {"Nx4xf32"},
       R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = torch.zeros(x.size(0), 4)
    y[:, 1:3] = x[:, 1:3] * 2
    return y.add_(x), torch.arange(x.size(0)) * 3
)",
       batch},
      {"numbers", {"NxLxf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, float, bool]:
    return x / x.size(1) ** 0.5 + x.size(0), x.numel() / 3, x.size(0) > 4
)"},
      {"data_numbers",
       {"Nx3xf32"},
       R"(
def main(x: Tensor):
    n = int(x[0, 0]) + x.size(0)
    if n > 4 and x.size(0) > 0:
        x = x * n
    return x + n / 4, max(n, 2) * x.size(0), x > x[0, 1].item()
)",
       batch},
      {"branches",
       {"Nx8xf32"},
       R"(
def main(x: Tensor) -> Tensor:
    if x.size(0) > 4:
        x = torch.tanh(x)
    if x.size(0) % 2 == 0:
        x = x - 1
    if bool(x.sum() > 0):
        return x * 2
    return x + 3
)",
       batch},
      {"recurrent",
       {"Lx8xf32", "8x8xf32"},
       R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    h = torch.zeros(8)
    for i in range(x.size(0)):
        h = torch.tanh(x[i] + h @ w)
    return h
)",
       {{"L", 1, 6, 1}}},
      {"lookup", {"10x6xf32", "NxLxi64"}, R"(
def main(table: Tensor, i: Tensor) -> Tensor:
    return torch.nn.functional.embedding(i, table) * 2
)"},
      {"pooling",
       {"Nx9x11x12xf32"},
       R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    a = torch.nn.functional.max_pool2d(x, [3, 2], [2, 2], [1, 0])
    b = torch.nn.functional.avg_pool2d(x, [3, 3], [2, 2], [1, 1])
    return a, b, torch.nn.functional.adaptive_avg_pool2d(x, [1, 1])
)",
       batch},
      {"attention",
       {"NxLx32xf32", "96x32xf32", "32x32xf32", "64x32xf32", "32x64xf32", "32xf32"},
       R"(
def main(x: Tensor, qkv: Tensor, o: Tensor, up: Tensor, down: Tensor, g: Tensor) -> Tensor:
    n, l = x.size(0), x.size(1)
    h = torch.nn.functional.layer_norm(x, [32], g)
    q, k, v = torch.nn.functional.linear(h, qkv).view(n, l, 3, 4, 8).permute(2, 0, 3, 1, 4).unbind(0)
    a = torch.softmax(q @ k.transpose(-2, -1) / 8 ** 0.5, -1) @ v
    x = x + torch.nn.functional.linear(a.transpose(1, 2).reshape(n, l, 32), o)
    h = torch.nn.functional.gelu(torch.nn.functional.linear(torch.nn.functional.layer_norm(x, [32], g), up))
    return x + torch.nn.functional.linear(h, down)
)",
       {{"N", 1, 9, 1}, {"L", 1, 20, 1}},
       true},
      {"steps",
       {"LxNxf32"},
       R"(
def main(x: Tensor) -> Tensor:
    return x.softmax(0) * 2
)",
       {{"L", 16, 208, 16}, {"N", 3, 3, 1}}},
  };
  return all;
}

// "Nx3xf32" for these sizes.
std::string specFor(std::string spec, const std::vector<Symbol>& symbols,
                    const std::vector<int64_t>& sizes) {
  for (size_t s = 0; s < symbols.size(); ++s) {
    for (size_t at; (at = spec.find(symbols[s].name)) != std::string::npos;) {
      spec.replace(at, symbols[s].name.size(), fmt::format("{}", sizes[s]));
    }
  }
  return spec;
}

std::vector<Symbol> symbolsOf(const Case& c) {
  std::vector<Symbol> used;
  for (const Symbol& s : c.symbols) {
    const auto has = [&](const char* spec) {
      return std::string(spec).find(s.name) != std::string::npos;
    };
    if (std::ranges::any_of(c.inputs, has)) used.push_back(s);
  }
  return used;
}

std::vector<Tensor> inputsOf(const Case& c, const std::vector<int64_t>& sizes, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const char* spec : c.inputs) {
    inputs.push_back(tensorOf(specFor(spec, symbolsOf(c), sizes), seed++));
  }
  return inputs;
}

// Some of the sizes, in an order in which larger and smaller ones follow each other.
std::vector<size_t> somePositions(const aot::SizeSpace& space) {
  const size_t count = std::min<size_t>(space.count(), 8);
  std::vector<size_t> positions;
  for (size_t i = 0; i < count; ++i) {
    positions.push_back(i * 5 % count * (space.count() - 1) / (count - 1));
  }
  return positions;
}
constexpr size_t kFixed = 3;  // of those, the first that a model for fixed sizes has

// All cases as one library, each a method; those whose sums stand alone for some fixed sizes as well.
std::vector<aot::Entry> allEntries(const std::vector<Program>& programs) {
  std::vector<aot::Entry> entries;
  for (size_t i = 0; i < cases().size(); ++i) {
    const Case& c = cases()[i];
    GraphFunction& function = programs[i].function("main");
    aot::Entry& entry = entries.emplace_back();
    entry.method = c.name;
    entry.family = aot::familyOf(function, symbolsOf(c), [&c](const std::vector<int64_t>& sizes) {
      return valuesOf(inputsOf(c, sizes, 1));
    });
    const aot::SizeSpace space(symbolsOf(c));
    const std::vector<size_t> positions = somePositions(space);
    for (size_t k = 0; c.sums_alone && k < kFixed; ++k) {
      const std::vector<Tensor> inputs = inputsOf(c, space.at(positions[k]), 1);
      entries.push_back({c.name + std::string("_fixed"), aot::record(function, valuesOf(inputs))});
    }
  }
  return entries;
}

void expectClose(const Tensor& expected_in, const Tensor& found) {
  const Tensor expected = expected_in.contiguous();
  ASSERT_EQ(DimVector(expected.sizes()), DimVector(found.sizes()));
  for (int64_t i = 0; i < expected.numel(); ++i) {
    const float value = expected.data<float>()[i];
    ASSERT_NEAR(value, found.data<float>()[i], 1e-5 * (1 + std::abs(value))) << i;
  }
}

class SizesTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    setJitMode(JitMode::Sync);
    setJitThreshold(0);
    workshop_ = new Workshop("sizes");
    std::vector<Program> programs;
    for (const Case& c : cases()) programs.push_back(compile(c.source));
    try {
      workshop_->add("cases", allEntries(programs));
      said_ = workshop_->compile("g++", "-O1");
    } catch (const Error& e) {
      said_ = e.what();
    }
  }
  static inline Workshop* workshop_ = nullptr;
  static inline std::string said_;
};

TEST_P(SizesTest, GiveTheBitsOfTheEngine) {
  const Case& c = GetParam();
  ASSERT_EQ(said_, "");
  Running running(*workshop_, "cases", c.name);
  auto& [model, state] = running;
  const aot::SizeSpace space(symbolsOf(c));
  std::optional<Workshop::Model> fixed;
  wick_aot_state fixed_state;
  if (c.sums_alone) {
    fixed = workshop_->load("cases", c.name + std::string("_fixed"));
    ASSERT_EQ(fixed->init(&fixed_state, workshop_->weightsOf("cases").c_str()), WICK_AOT_OK);
  }
  const std::vector<size_t> positions = somePositions(space);
  for (size_t i = 0; i < positions.size(); ++i) {
    const size_t position = positions[i];
    SCOPED_TRACE(space.describe(position));
    const std::vector<Tensor> inputs = inputsOf(c, space.at(position), 5 + i);
    // A program of its own for each, because what it joins in groups depends on the sizes of its first calls.
    const Program program = compile(c.source);
    IValue expected;
    for (int run = 0; run < 4; ++run) expected = program.call("main", valuesOf(inputs));
    const std::vector<Tensor> outputs = testing_aot::outputsFor(model, state, inputs);
    ASSERT_EQ(testing_aot::call(model, state, inputs, outputs), "");
    const std::vector<Tensor> wanted = tensorsOf(expected);
    ASSERT_EQ(wanted.size(), outputs.size());
    for (size_t o = 0; o < wanted.size(); ++o) {
      SCOPED_TRACE(o);
      c.sums_alone ? expectClose(wanted[o], outputs[o]) : expectSame(wanted[o], outputs[o]);
    }
    if (fixed && i < kFixed) {
      const std::vector<Tensor> same = testing_aot::outputsFor(*fixed, fixed_state, inputs);
      ASSERT_EQ(testing_aot::call(*fixed, fixed_state, inputs, same), "");
      for (size_t o = 0; o < same.size(); ++o) expectSame(same[o], outputs[o]);
    }
    if (testing::Test::HasFailure()) break;
  }
  if (fixed) fixed->free(&fixed_state);
}
INSTANTIATE_TEST_SUITE_P(Aot, SizesTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AotSizesTest, DigitsAreReadInBatches) {
  setJitMode(JitMode::Sync);
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = *dynamic_cast<GraphFunction*>(module.type()->findMethod("forward"));
  const std::shared_ptr<GraphFunction> prepared = optimizeForInference(module.object(), forward);
  const auto imagesOf = [](int64_t n, uint64_t seed) {
    return tensorOf(fmt::format("{}x1x28x28xf32", n), seed);
  };
  Workshop workshop("digit_batches");
  std::vector<aot::Entry> entries(1);
  entries[0].family =
      aot::familyOf(*prepared, {{"N", 1, 20, 1}}, [&](const std::vector<int64_t>& sizes) {
        return std::vector<IValue>{imagesOf(sizes[0], 1)};
      });
  const aot::BuildResult built = workshop.add("batches", std::move(entries));
  ASSERT_EQ(workshop.compile("g++", "-fopenmp"), "");
  Running running(workshop, "batches");
  auto& [model, state] = running;
  EXPECT_THAT(built.files[0].text, HasSubstr("float32[N, 1, 28, 28]"));
  EXPECT_THAT(built.files[0].text, HasSubstr("float32[N, 10]"));
  for (const int64_t n : {3, 1, 20, 2, 7, 8, 16, 3}) {
    SCOPED_TRACE(n);
    const Tensor images = imagesOf(n, static_cast<uint64_t>(n));
    IValue expected;
    for (int run = 0; run < 4; ++run) expected = callFunction(*prepared, {IValue(images)});
    const std::vector<Tensor> outputs = testing_aot::outputsFor(model, state, {images});
    ASSERT_EQ(testing_aot::call(model, state, {images}, outputs), "");
    expectSame(expected.toTensor(), outputs.at(0));
  }
}

TEST(AotSizesTest, OtherSizesAreRefused) {
  const Program program = compile(R"(
def main(x: Tensor, y: Tensor) -> Tensor:
    assert x.size(0) != 6, "six rows"
    return x * y
)");
  Workshop workshop("other_sizes");
  std::vector<aot::Entry> entries(1);
  entries[0].family =
      aot::familyOf(program.function("main"), {{"N", 2, 8, 2}, {"L", 1, 3, 1}},
                    [](const std::vector<int64_t>& s) {
                      return std::vector<IValue>{Tensor::zeros({s[0], s[1]}, DType::Float),
                                                 Tensor::zeros({s[0], 1}, DType::Float)};
                    });
  workshop.add("sized", std::move(entries));
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "sized");
  auto& [model, state] = running;
  const auto said = [&](const char* x, const char* y, const char* out) {
    return testing_aot::call(model, state, {tensorOf(x, 1), tensorOf(y, 2)}, {tensorOf(out, 3)});
  };
  EXPECT_EQ(said("4x3xf32", "4x1xf32", "4x3xf32"), "");
  EXPECT_EQ(said("8x1xf32", "8x1xf32", "8x1xf32"), "");
  EXPECT_EQ(said("4x3xf32", "2x1xf32", "4x3xf32"),
            "sized: input 1 (y): expected float32[N=4, 1], got float32[2, 1]");
  EXPECT_EQ(said("4x3xi32", "4x1xf32", "4x3xf32"),
            "sized: input 0 (x): expected float32[N, L], got int32[4, 3]");
  EXPECT_EQ(said("10x3xf32", "10x1xf32", "10x3xf32"),
            "sized: expected N from 2 to 8 by 2, which is what forward was compiled for; got 10");
  EXPECT_THAT(said("5x3xf32", "5x1xf32", "5x3xf32"), HasSubstr("expected N from 2 to 8 by 2"));
  EXPECT_THAT(said("4x0xf32", "4x1xf32", "4x0xf32"), HasSubstr("expected L from 1 to 3,"));
  EXPECT_EQ(said("4x3xf32", "4x1xf32", "4x2xf32"),
            "sized: output 0 (result): expected float32[4, 3], got float32[4, 2]");
  EXPECT_THAT(said("6x3xf32", "6x1xf32", "6x3xf32"), HasSubstr("six rows"));
  EXPECT_EQ(model.forward(&state, nullptr, nullptr), WICK_AOT_ARGUMENT);
  EXPECT_EQ(model.about()->signatures[0].num_symbols, 2);
}

// What sizes decide too much of says so.
TEST(AotSizesTest, RefusesWhatItCannotCompile) {
  const auto refusal = [](const std::string& body, std::vector<Symbol> symbols, bool named = true) {
    const Program program = compile("def main(x: Tensor):\n" + body);
    try {
      std::vector<aot::Entry> entries(1);
      entries[0].family = aot::familyOf(
          program.function("main"), std::move(symbols), [&](const std::vector<int64_t>& s) {
            return std::vector<IValue>{
                Tensor::zeros({named ? s[0] : s[0] / 2 + 1, 3}, DType::Float)};
          });
      aot::BuildOptions options;
      options.name = "refused";
      aot::build(std::move(entries), options, [](std::string_view) {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  EXPECT_THAT(
      refusal(
          "    for i in range(x.size(0)):\n        x = torch.cat([x, x[:1] * i])\n    return x\n",
          {{"N", 1, 64, 1}}),
      HasSubstr("more than 24 forms over these sizes, which differ from"));
  EXPECT_THAT(refusal("    return x if x.size(0) > 5 else x.sum()\n", {{"N", 1, 64, 1}}),
              HasSubstr("decide about the number, dtypes or ranks of the results"));
  EXPECT_THAT(refusal("    return x * 2\n", {{"N", 1, 64, 1}}, false),
              HasSubstr("size 0 of argument 'x' is neither fixed nor one that has a name"));
  EXPECT_THAT(refusal("    return x * 2\n", {{"N", 1, 3, 1}, {"L", 1, 3, 1}}),
              HasSubstr("L is not the size of an argument"));
  EXPECT_THAT(refusal("    return x * 2\n", {{"N", 1, 5000, 1}}), HasSubstr("more than 4096"));
  EXPECT_THAT(refusal("    return torch.poisson(x)\n", {{"N", 2, 5, 1}}), HasSubstr("(for N=2)"));
  EXPECT_THAT(refusal("    return x.view(2, 2)\n", {{"N", 1, 5, 1}}), HasSubstr("shape"));
  EXPECT_THAT(refusal("    return x + torch.arange(3000000 + x.size(0)).sum()\n", {{"N", 1, 9, 1}}),
              HasSubstr("constants differ from size to size, and take more than 64 MB\n(for N="));
}

// Programs of a family need not come from a function.
TEST(AotSizesTest, NumbersThatSizesDecideAreBounded) {
  using Change = void (*)(std::vector<int64_t> & numbers, int64_t size, const aot::DecidedSizes&);
  const auto refusal = [](const std::string& body, Change change) {
    const Program program = compile("def main(x: Tensor):\n" + body);
    std::vector<aot::Entry> entries(1);
    aot::Family family = aot::familyOf(
        program.function("main"), {{"N", 1, 64, 1}}, [](const std::vector<int64_t>& s) {
          return std::vector<IValue>{Tensor::zeros({s[0]}, DType::Float)};
        });
    entries[0].family = family;
    entries[0].family->record = [&](const std::vector<int64_t>& sizes, bool keep_loops,
                                    const aot::DecidedSizes& decided) {
      aot::Program changed = family.record(sizes, keep_loops, decided);
      for (aot::Step& step : changed.steps) {
        auto* const function = std::get_if<aot::FunctionStep>(&step.what);
        if (function) change(function->numbers, sizes[0], decided);
      }
      return changed;
    };
    try {
      aot::build(std::move(entries), {.name = "refused"}, [](std::string_view) {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  EXPECT_THAT(refusal("    return torch.sort(x)[0]\n",
                      [](std::vector<int64_t>& numbers, int64_t size, const aot::DecidedSizes&) {
                        for (int64_t i = 0; i < 5000; ++i) {
                          numbers.push_back((size * size * 7919 + i * 104729) % 1000003 % 997);
                        }
                      }),
              HasSubstr("sizes decide about more numbers of the program than tables can hold"));
  EXPECT_THAT(
      refusal("    return torch.nonzero(torch.sort(x)[0])\n",
              [](std::vector<int64_t>& numbers, int64_t, const aot::DecidedSizes& decided) {
                numbers.push_back(decided.values.empty() ? 0 : decided.values[0]);
              }),
      HasSubstr("a size that elements decide has consequences in front of where it is known"));
}

// Numbers of a text, cut out and put back.
TEST(SizeTextTest, NumbersAreCutOut) {
  const aot::CutText cut =
      aot::cutAtNumbers("f<4>(x1[r0 * 12], 0x1.8p+3f, 2.0, 0x3cu, \"7\") + 5 - b2");
  std::vector<std::string> numbers;
  for (const aot::CutText::Number& n : cut.numbers) numbers.push_back(n.text);
  EXPECT_THAT(numbers, testing::ElementsAre("12", "0x1.8p+3f", "2.0", "5"));
  EXPECT_EQ(cut.numbers[1].kind, aot::CutText::Kind::Float);
  EXPECT_EQ(cut.numbers[2].kind, aot::CutText::Kind::Double);
  EXPECT_EQ(cut.pieces.size(), 5u);
  EXPECT_EQ(cut.pieces[4], " - b2");
}

TEST(SizeSpace, IsBounded) {
  EXPECT_THROW(aot::SizeSpace(std::vector<aot::Symbol>(aot::kMostSymbols + 1, {"N", 1, 1, 1})),
               RuntimeError);
  EXPECT_THROW(aot::SizeSpace({{"N", 1, 65, 1}, {"L", 1, 64, 1}}), RuntimeError);
  EXPECT_THROW(aot::SizeSpace({{"N", 3, 2, 1}}), RuntimeError);
  EXPECT_THROW(aot::SizeSpace({{"N", 1, INT64_MAX, 1}}), RuntimeError);
  EXPECT_EQ(aot::SizeSpace({{"N", 1, 64, 1}, {"L", 1, 64, 1}}).count(), aot::kMostSizes);
}

// Columns become expressions that give all their numbers.
TEST(SizeTextTest, ColumnsBecomeExpressions) {
  const aot::SizeSpace space({{"N", 1, 12, 1}, {"L", 2, 30, 4}});
  const auto expressionOf = [&](auto number) {
    aot::Column column;
    std::vector<size_t> positions;
    for (size_t p = 0; p < space.count(); ++p) {
      const std::vector<int64_t> s = space.at(p);
      column.add({fmt::format("{}", number(s[0], s[1]))}, p);
      positions.push_back(p);
    }
    aot::SizeTables tables;
    return aot::SizeExpressions(space, tables).write(column, positions);
  };
  using I = int64_t;
  EXPECT_EQ(expressionOf([](I n, I) { return n; }), "size_N");
  EXPECT_EQ(expressionOf([](I n, I l) { return 12 * n * l + 3; }), "3 + 12 * size_N * size_L");
  EXPECT_EQ(expressionOf([](I n, I l) { return n * l * l * 4 + l; }),
            "size_L + 4 * size_N * size_L * size_L");
  EXPECT_EQ(expressionOf([](I, I l) { return 40 - l; }), "40 - size_L");
  EXPECT_EQ(expressionOf([](I n, I l) { return n * l > 50 ? 1 : 0; }),
            "size_N * size_L >= 52 ? 1 : 0");
  EXPECT_EQ(expressionOf([](I n, I) { return (n + 1) / 2; }), "((size_N + 1) / 2)");
  EXPECT_EQ(expressionOf([](I n, I l) { return n / 3 * l; }), "size_L * (size_N / 3)");
  EXPECT_EQ(expressionOf([](I n, I l) { return n * n % 7 + l; }), "sized_1[position]");
}

}  // namespace
}  // namespace wick::sizes_test
