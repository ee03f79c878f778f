// Operators of compiled models that move, order, add up and divide elements, against the engine.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>

#include "core/error_types.h"
#include "runtime/jit_mode.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick {
namespace {

using testing::HasSubstr;
using testing_aot::expectSame;
using testing_aot::tensorOf;
using testing_aot::tensorsOf;
using testing_aot::Workshop;

struct Case {
  const char* name;
  std::vector<const char*> inputs;
  const char* source;
};
std::ostream& operator<<(std::ostream& os, const Case& c) {
  return os << c.name;
}

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      // Some divisors are zero, by the seed.
      {"quotients", {"4x9xi32", "9xi32"}, R"(
def main(x: Tensor, y: Tensor):
    z = y * 2 + 1
    return x // z, x % z, torch.div(x, z, rounding_mode="trunc"), torch.fmod(x, z), x // 7, x % -5, torch.remainder(100, z), torch.floor_divide(z, 9)
)"},
      {"quotients_by_zero", {"5xi32", "4xi64"}, R"(
def main(x: Tensor, y: Tensor):
    return x // y[:2].min(), x.to(torch.int64) % y[3]
)"},
      {"quotients_at_the_ends", {"3xi64"}, R"(
def main(x: Tensor):
    low = torch.tensor([-9223372036854775808, -9223372036854775807, 9223372036854775807])
    small = torch.tensor([-128, -127, 127], dtype=torch.int8)
    minus = torch.clamp(x, -1, -1)
    q = low // minus, low % minus, torch.div(low, minus, rounding_mode="trunc"), torch.fmod(low, minus)
    return q, small // minus.to(torch.int8), small % minus.to(torch.int8), low // (x + 1), small % (x + 1)
)"},
      {"quotients_of_views", {"6x4xi32"}, R"(
def main(x: Tensor):
    t = x.t()
    y = x.clone()
    y[::2].floor_divide_(3)
    y[:, 1] %= 4
    return t // (torch.abs(t[0]) + 1), (x.to(torch.uint8) // 7), y, x.to(torch.float64) // 3
)"},
      {"resampled", {"2x3x4x5xf32"}, R"(
def main(x: Tensor):
    f = torch.nn.functional.interpolate
    a = f(x, scale_factor=2.0), f(x, size=[7, 3]), f(x, size=[6, 9], mode="bilinear", align_corners=True)
    b = f(x, scale_factor=1.7, mode="bilinear"), f(x, size=[8, 2], mode="bicubic", align_corners=False)
    c = f(x, size=[2, 3], mode="bilinear", antialias=True), f(x, size=[3, 9], mode="nearest-exact")
    d = f(x.to(memory_format=torch.channels_last), scale_factor=2.0, mode="bilinear")
    e = f(x[0], size=[9], mode="linear"), f(x.double(), size=[5, 5], mode="bilinear"), f(x.unsqueeze(0), size=[3, 5, 2], mode="trilinear")
    return a, b, c, d, e
)"},
      {"grids", {"2x3x5x4xf32", "2x3x6x2xf32", "1x2x3x4x5xf64", "1x2x2x3x3xf64"}, R"(
def main(x: Tensor, g: Tensor, y: Tensor, h: Tensor):
    out: List[Tensor] = []
    wild = torch.where(g > 2.5, torch.full_like(g, float("nan")), g * 0.6)
    for padding in ["zeros", "border", "reflection"]:
        for align in [True, False]:
            for mode in ["bilinear", "nearest", "bicubic"]:
                out.append(torch.nn.functional.grid_sample(x, wild, mode, padding, align))
            for mode in ["bilinear", "nearest"]:
                out.append(torch.nn.functional.grid_sample(y, h * 0.5, mode, padding, align))
    return out
)"},
      {"patches", {"2x3x6x5xf32"}, R"(
def main(x: Tensor):
    columns = torch.nn.functional.unfold(x - 1, [2, 3], padding=[1, 0], stride=[2, 1])
    return columns, torch.nn.functional.fold(columns * 2, [6, 5], [2, 3], padding=[1, 0], stride=[2, 1])
)"},
      {"cumulative", {"3x4x5xf32", "7xi32"}, R"(
def main(x: Tensor, n: Tensor):
    nan = torch.where(x > 2.5, torch.full_like(x, float("nan")), x)
    a = torch.cumsum(x, 1), torch.cumprod(x, -1), torch.cumsum(x.t() if x.dim() == 2 else x.double(), 0)
    b = torch.cumsum(n, 0), torch.cumprod(n, 0), torch.cumsum(n > 0, 0), torch.cumsum(n, 0, dtype=torch.float32)
    return a, b, torch.cummax(nan, 2), torch.cummin(nan, 0), torch.cummax(n, 0), torch.logcumsumexp(x, 1), torch.cumsum(x[0, 0, 0], 0)
)"},
      {"sorted", {"3x40xf32", "6x11xi64"}, R"(
def main(x: Tensor, n: Tensor):
    y = torch.round(x)
    y = torch.where(y > 1.5, torch.full_like(y, float("nan")), y)
    a = torch.sort(y), torch.sort(y, 0, True), torch.sort(y, stable=True, dim=1, descending=True), torch.sort(n, 0)
    b = torch.argsort(n, 1, True), torch.msort(y), torch.sort(n > 1, 1), torch.sort(y.half(), 1), torch.sort(x[0, 0], 0)
    return a, b
)"},
      {"picked", {"3x40xf32", "6x11xi64", "2x700xf32"}, R"(
def main(x: Tensor, n: Tensor, z: Tensor):
    y = torch.round(x * 2)
    nan = torch.where(y > 4.5, torch.full_like(y, float("nan")), y)
    a = torch.topk(y, 5), torch.topk(nan, 3, 0, False), torch.topk(n, 11, 1, True, False), torch.topk(torch.round(z), 9)
    b = torch.kthvalue(y, 7), torch.kthvalue(n, 2, 0, True), torch.median(nan), torch.median(y, 1), torch.nanmedian(nan, 1, True)
    return a, b, torch.nanmedian(nan), torch.mode(n, 1), torch.mode(nan, 0), torch.mode(nan, 1)
)"},
      {"searched", {"4x9xf32", "4x6xf32", "11xi64"}, R"(
def main(x: Tensor, v: Tensor, n: Tensor):
    s, order = torch.sort(x, 1)
    a = torch.searchsorted(s, v), torch.searchsorted(s, v, right=True, out_int32=True), torch.searchsorted(x, v, sorter=order)
    return a, torch.bucketize(v, s[0]), torch.bucketize(n, torch.tensor([0, 1, 1, 3])), torch.bucketize(2, torch.tensor([0, 1, 1, 3]))
)"},
      {"indexed", {"3x4x5xf32", "6xi64", "2x6xi64"}, R"(
def main(x: Tensor, i: Tensor, j: Tensor):
    k = torch.clamp(i, 0, 2)
    a = x[k], x[:, i], x[k, i], x[k, :, j], x[:, :, -j], x[k.to(torch.int32), j]
    return a, x[:, torch.tensor([True, False, True, True])], x[torch.tensor([0, -1])], x.half()[k], (x > 0)[k, j], torch.take(x, j - 7)
)"},
      {"indexed_outside", {"3x4xf32", "6xi64"}, R"(
def main(x: Tensor, i: Tensor):
    return x[i]
)"},
      {"put", {"4x5xf32", "6xi64", "6xf32", "6xi64"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, j: Tensor):
    a = x.clone()
    a[i, j] = v
    b = x.clone()
    b[:, i] = v
    c = x.t().contiguous().t()
    c[i] = 7.0
    d = torch.index_put(x, [i, j], v, True)
    e = x.clone()
    e[e > 1] = -1.0
    f = x.double()
    f[2:][:, torch.tensor([1, 3])] *= 2
    g = x > 0
    g[i, j] = True
    h = torch.put(x, i - 9, v), torch.put(x, i, v, True)
    return a, b, c, d, e, f, g, h
)"},
      {"scattered", {"4x5xf32", "3x5xi64", "4x6xf32", "4x5xi64"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, n: Tensor):
    w = v[:, :5]
    a = torch.scatter(x, 0, i, w), torch.scatter(x, 1, i, 2.5), torch.scatter_add(x, 0, i, w), torch.scatter_add(n, 0, i, n)
    b = torch.scatter(x, 0, i, w, reduce="multiply"), torch.scatter(x, 0, i, 3.0, reduce="add")
    c = [torch.scatter_reduce(x, 0, i, w, how, include_self=keep) for how in ["sum", "prod", "mean", "amax", "amin"] for keep in [True, False]]
    d = torch.scatter_reduce(n, 0, i, n, "mean"), torch.scatter_reduce(n, 0, i, n - 9, "amax", include_self=False)
    return a, b, c, d, torch.gather(x, 0, i), torch.take_along_dim(x, i[:, :1] - 4, 0), torch.take_along_dim(x, i[0])
)"},
      {"by_vector", {"4x5xf32", "3xi64", "3x5xf32"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor):
    a = torch.index_add(x, 0, i, v), torch.index_add(x, 0, i, v, alpha=-0.3), torch.index_copy(x, 0, i, v), torch.index_fill(x, 1, i - 4, 9.0)
    b = torch.index_reduce(x, 0, i, v, "mean"), torch.index_reduce(x, 0, i, v, "amin", include_self=False), torch.index_select(x, 1, i)
    y = x.clone()
    y.index_add_(0, i, v).index_fill_(0, i[:1], torch.tensor(2.0))
    return a, b, y, torch.nn.functional.one_hot(i, 5)
)"},
      {"masked", {"4x5xf32", "5xbool", "30xf32"}, R"(
def main(x: Tensor, m: Tensor, v: Tensor):
    y = x.t().contiguous().t()
    y.masked_scatter_(m, v)
    return y, x.masked_scatter(m, v), x.masked_scatter(x > 0, v)
)"},
      {"counted", {"3x40xf32", "50xf64"}, R"(
def main(x: Tensor, y: Tensor):
    nan = torch.where(x > 2, torch.full_like(x, float("nan")), x)
    a = torch.histc(x, 7), torch.histc(nan, 5, -1, 2.5), torch.histc(y, 9, -2, 2), torch.histc(x * 0 + 3, 4)
    return a, torch.histogram(y, torch.tensor([-3.0, 0.0, 0.5, 3.0], dtype=torch.float64))[0]
)"},
      {"bags", {"4x35xf32", "7xi64", "3xi64", "7xf32"}, R"(
def main(w: Tensor, i: Tensor, o: Tensor, v: Tensor):
    starts = torch.cumsum(torch.cat([torch.zeros(1, dtype=torch.int64), o]), 0)[:3]
    f = torch.embedding_bag
    a = f(w, i, starts, False, 0), f(w, i, starts, False, 1), f(w, i, starts, False, 2), f(w, i, starts, False, 0, False, v)
    b = f(w, i, starts, False, 2, False, None, True), f(w, i, starts, False, 1, False, None, False, 1), f(w.double(), i.int(), starts.int(), False, 0)
    return a, b, torch.nn.functional.embedding_bag(i[:6].view(2, 3), w, mode="mean")
)"},
      {"fake_quantized", {"3x40xf32", "3xf32", "3xi32"}, R"(
def main(x: Tensor, s: Tensor, z: Tensor):
    scale = torch.abs(s) + 0.01
    point = torch.clamp(z, -8, 7)
    wild = torch.cat([x * 1e30, torch.full([3, 2], float("nan")), torch.full([3, 1], float("inf"))], 1)
    f = torch.fake_quantize_per_tensor_affine
    a = f(x, 0.1, 3, 0, 15), f(wild, 0.25, 0, -8, 7), f(x.double(), 0.25, -2, -8, 7), f(x.half(), 0.1, 3, 0, 15), f(x, scale[0], point[1], -8, 7)
    g = torch.fake_quantize_per_channel_affine
    b = g(x, scale, point, 0, -8, 7), g(wild, scale, s, 0, -8, 7), g(wild.double(), scale, s, 0, -8, 7), g(x.double(), scale, s.half(), 0, -8, 7)
    return a, b, torch._fake_quantize_learnable_per_channel_affine(wild, scale, s * 9, 0, -8, 7, 1.0)
)"},
      {"fake_quantized_outside", {"2x3xf32", "2xi32"}, R"(
def main(x: Tensor, z: Tensor):
    return torch.fake_quantize_per_channel_affine(x, torch.tensor([0.1, 0.5]), z, 0, -30, 60)
)"},
      {"lists", {"3x4xf32", "2x4xf32"}, R"(
def main(x: Tensor, y: Tensor):
    a = [x, y]
    b = torch._foreach_add(a, [x + 1, y], alpha=2)
    torch._foreach_mul_(b, 0.5)
    torch._foreach_neg_(b)
    c = torch._foreach_addcmul(a, b, b, 0.5), torch._foreach_sqrt(torch._foreach_abs(a)), torch._foreach_maximum(a, b)
    return b, c, torch._C._nn.pad_sequence(a, True, 7.0), torch._C._nn.pad_sequence(a)
)"},
      {"lstm", {"5x2x3xf32", "1x2x4xf32", "1x2x4xf32"}, R"(
def main(x: Tensor, h: Tensor, c: Tensor):
    w = [torch.sin(torch.arange(48.0)).view(16, 3), torch.cos(torch.arange(64.0)).view(16, 4), torch.arange(16.0) / 16, torch.arange(16.0) / 9]
    g = [torch.sin(torch.arange(36.0)).view(12, 3), torch.cos(torch.arange(48.0)).view(12, 4), torch.arange(12.0) / 16, torch.arange(12.0) / 9]
    return torch.lstm(x, [h, c], w, True, 1, 0.0, False, False, False), torch.gru(x, h, g, True, 1, 0.0, False, False, False)
)"},
  };
  return all;
}

std::vector<Tensor> inputsOf(const Case& c, uint64_t seed) {
  std::vector<Tensor> inputs;
  for (const char* spec : c.inputs) inputs.push_back(tensorOf(spec, seed++));
  return inputs;
}
std::vector<IValue> valuesOf(const std::vector<Tensor>& tensors) {
  return {tensors.begin(), tensors.end()};
}

// The cases, each a method of one model.
struct Recorded {
  std::vector<aot::Entry> entries;
  std::map<std::string, std::string> refused;
  std::map<std::string, int32_t> signatures;
};
Recorded recordAll() {
  Recorded all;
  for (const Case& c : cases()) {
    try {
      const Program program = compile(c.source);
      aot::Program recorded = aot::record(program.function("main"), valuesOf(inputsOf(c, 1)));
      aot::BuildOptions options;
      options.name = "alone";
      aot::build(recorded, options, [](std::string_view) {});
      all.signatures[c.name] = static_cast<int32_t>(all.entries.size());
      all.entries.push_back({c.name, std::move(recorded)});
    } catch (const Error& e) {
      all.refused[c.name] = e.what();
    }
  }
  return all;
}

class ElementsTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    setJitMode(JitMode::Sync);
    setJitThreshold(0);
    workshop_ = new Workshop("elements");
    recorded_ = recordAll();
    workshop_->add("elements", std::move(recorded_.entries));
    said_ = workshop_->compile();
  }
  static inline Workshop* workshop_ = nullptr;
  static inline Recorded recorded_;
  static inline std::string said_;
};

TEST_P(ElementsTest, GivesTheBitsOfTheEngine) {
  const Case& c = GetParam();
  ASSERT_EQ(said_, "");
  ASSERT_EQ(recorded_.refused[c.name], "");
  const Workshop::Model model = workshop_->load("elements", c.name);
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, workshop_->weightsOf("elements").c_str()), WICK_AOT_OK)
      << state.error;
  const Program program = compile(c.source);
  int compared = 0;
  for (uint64_t seed = 1; seed < 9; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::vector<Tensor> inputs = inputsOf(c, seed);
    IValue expected;
    std::string raised;
    try {
      for (int run = 0; run < 4; ++run) expected = program.call("main", valuesOf(inputs));
    } catch (const RuntimeError& e) {
      raised = e.brief();
    }
    const std::vector<Tensor> outputs =
        testing_aot::outputsOf(*model.about(), recorded_.signatures[c.name]);
    const std::string said = testing_aot::call(model, state, inputs, outputs);
    EXPECT_EQ(said.empty(), raised.empty()) << said << " / " << raised;
    if (raised.find("ZeroDivision") != std::string::npos) {
      EXPECT_THAT(said, HasSubstr(raised));
    }
    if (!raised.empty() || !said.empty()) continue;
    ++compared;
    const std::vector<Tensor> wanted = tensorsOf(expected);
    ASSERT_EQ(wanted.size(), outputs.size());
    for (size_t i = 0; i < wanted.size(); ++i) {
      SCOPED_TRACE(fmt::format("result {}", i));
      expectSame(wanted[i], outputs[i]);
    }
  }
  EXPECT_GT(compared, 0);
  model.free(&state);
}
INSTANTIATE_TEST_SUITE_P(Aot, ElementsTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

// The same text under the other compiler.
TEST(AotElementsTest, CompilesUnderClang) {
  if (std::system("clang++-14 --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no clang++-14";
  }
  Workshop workshop("elements_clang");
  workshop.add("elements", recordAll().entries);
  const char* const flags = "-Wno-deprecated -Wno-unused-command-line-argument -fsyntax-only";
  EXPECT_EQ(workshop.compile("clang++-14", flags), "");
}

// Errors that elements decide are errors of the call.
// Elements are moved by their width and computed with by their type; a compiler that takes these for different memory puts
// the copy behind the writes.
TEST(AotElementsTest, WritesStayBehindTheCopyThatTheyChange) {
  const Program program = compile(R"(
def main(x: Tensor, i: Tensor, v: Tensor) -> Tensor:
    y = x.clone()
    y.scatter_(0, i, v)
    return y
)");
  const Tensor x = testing_aot::tensorOf("4x3xf32", 1), i = testing_aot::tensorOf("2x3xi64", 2);
  const Tensor v = testing_aot::tensorOf("2x3xf32", 3);
  Workshop workshop("behind_a_copy");
  workshop.add("written", program.function("main"), {x, i, v});
  ASSERT_EQ(workshop.compile("g++", "-O3 -fopenmp"), "");
  const Workshop::Model model = workshop.load("written");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, workshop.weightsOf("written").c_str()), WICK_AOT_OK) << state.error;
  const std::vector<Tensor> outputs = testing_aot::outputsFor(model, state, {x, i, v});
  ASSERT_EQ(testing_aot::call(model, state, {x, i, v}, outputs), "");
  testing_aot::expectSame(program.call("main", {x, i, v}).toTensor(), outputs.at(0));
  model.free(&state);
}

TEST(AotElementsTest, ElementsRaise) {
  const auto said = [](const std::string& name, const std::string& body,
                       const std::vector<Tensor>& good, const std::vector<Tensor>& bad) {
    const Program program = compile("def main(x: Tensor, i: Tensor):\n    return " + body + "\n");
    Workshop workshop("raises_" + name);
    workshop.add(name, program.function("main"), valuesOf(good));
    EXPECT_EQ(workshop.compile(), "");
    const Workshop::Model model = workshop.load(name);
    wick_aot_state state;
    EXPECT_EQ(model.init(&state, workshop.weightsOf(name).c_str()), WICK_AOT_OK) << state.error;
    const std::vector<Tensor> outputs = testing_aot::outputsOf(*model.about());
    EXPECT_EQ(testing_aot::call(model, state, good, outputs), "");
    expectSame(program.call("main", valuesOf(good)).toTensor(), outputs[0]);
    EXPECT_THROW(program.call("main", valuesOf(bad)), RuntimeError);
    const std::string text = testing_aot::call(model, state, bad, outputs);
    model.free(&state);
    return text;
  };
  const auto whole = [](std::vector<int64_t> v) { return Tensor::from(v); };
  EXPECT_THAT(
      said("quotient", "x // i", {whole({7, -7}), whole({2, -1})}, {whole({7, -7}), whole({2, 0})}),
      HasSubstr("ZeroDivisionError"));
  EXPECT_THAT(
      said("remainder", "x % i", {whole({7, -7}), whole({2, -1})}, {whole({7, -7}), whole({0, 1})}),
      HasSubstr("ZeroDivisionError"));
  EXPECT_THAT(
      said("reads", "x[i]", {whole({7, 8}), whole({1, -2})}, {whole({7, 8}), whole({1, -3})}),
      HasSubstr("index: index out of range"));
  EXPECT_THAT(said("writes", "torch.scatter(x, 0, i, 5)", {whole({7, 8}), whole({1, 0})},
                   {whole({7, 8}), whole({1, -1})}),
              HasSubstr("scatter: index out of range"));
  EXPECT_THAT(said("classes", "torch.nn.functional.one_hot(i, 3) + x[0]",
                   {whole({7, 8}), whole({1, 2})}, {whole({7, 8}), whole({1, 3})}),
              HasSubstr("one_hot: Class values must be from 0 to 2"));
  EXPECT_THAT(said("bag",
                   "torch.embedding_bag(x.view(3, 1).to(torch.float32), i, torch.tensor([0, 1]), "
                   "False, 0)[0]",
                   {whole({7, 8, 9}), whole({1, 2})}, {whole({7, 8, 9}), whole({1, 3})}),
              HasSubstr("embedding_bag: an index or an offset is out of range"));
  EXPECT_THAT(said("few", "torch.masked_scatter(i, i > 0, x)", {whole({7}), whole({1, 0})},
                   {whole({7}), whole({1, 3})}),
              HasSubstr("Number of elements of source < number of ones in mask"));
}

}  // namespace
}  // namespace wick
