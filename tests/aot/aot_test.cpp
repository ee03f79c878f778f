// Compiled models give the bits of the engine's own kernels.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <map>

#include "aot/recording.h"
#include "runtime/inference.h"
#include "runtime/jit_mode.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::aot_test {
namespace {

using namespace testing_aot;
using testing::HasSubstr;

const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"pointwise", {"5x7xf32", "7xf32"}, R"(
def main(x: Tensor, y: Tensor) -> Tensor:
    return torch.tanh(x * y + 1.5) - torch.sigmoid(x) * torch.exp(-y)
)"},
      {"long_pointwise", {"3x200x333xf32"}, R"(
def main(x: Tensor) -> Tensor:
    return torch.nn.functional.gelu(x) + torch.sin(x) * torch.log1p(torch.abs(x))
)"},
      {"integers", {"4x9xi32", "9xi64"}, R"(
def main(x: Tensor, y: Tensor) -> Tensor:
    return (x * 3 + y) * 7 - torch.clamp(x, -4, 11) + (x & 6)
)"},
      {"doubles", {"65xf64"}, R"(
def main(x: Tensor) -> Tensor:
    return torch.exp(x) / (1 + torch.cos(x) ** 2)
)"},
      {"halves", {"6x31xf16", "6x31xbf16"}, R"(
def main(x: Tensor, y: Tensor) -> Tuple[Tensor, Tensor]:
    return x * 2 + torch.relu(x), (y - 0.5) * y
)"},
      {"softmax", {"4x50xf32"}, R"(
def main(x: Tensor) -> Tensor:
    return torch.softmax(x * 2, -1) + 1
)"},
      {"row_sums", {"9x70x133xf32"}, R"(
def main(x: Tensor) -> Tensor:
    return ((x + 1) * x).sum(-1) * 2
)"},
      {"column_sums", {"9x70x33xf32"}, R"(
def main(x: Tensor) -> Tensor:
    return (x * x + 1).mean(1) - 1
)"},
      {"maxima", {"9x70x5xf32"}, R"(
def main(x: Tensor) -> Tensor:
    return torch.amax(x - 0.5, [0, 2]) * 2
)"},
      {"norms", {"6x96xf32", "96xf32", "96xf32"}, R"(
def main(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.nn.functional.layer_norm(x, [96], w, b) * 2
)"},
      {"views", {"2x3x4x5xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.permute(0, 2, 3, 1).reshape(2, 20, 3)
    return torch.cat([y[:, 1:], y[:, :1] * 2], 1).contiguous(), x.transpose(1, 3)[:, ::2].flatten(1)
)"},
      {"new_memory_is_zero", {"3xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = torch.empty([3])
    y[1] = x[0]
    return y + x, torch.empty_like(x)
)"},
      {"transposed", {"100x130xf32", "130x100xf32"}, R"(
def main(x: Tensor, y: Tensor) -> Tensor:
    return x.t() * 2 + y
)"},
      {"products", {"3x40xf32", "40x50xf32", "2x30x40xf32"}, R"(
def main(a: Tensor, b: Tensor, c: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    return a @ b, torch.relu(c @ b), c @ c.transpose(1, 2), a @ b[:, 0]
)"},
      {"products_of_nothing", {"3x4xf32", "2x4xf32", "2xf32"}, R"(
def main(x: Tensor, w: Tensor, b: Tensor):
    f = torch.nn.functional
    none = x[:, :0]
    a = f.linear(none, w[:, :0], b), torch.relu(f.linear(none, w[:, :0], b)), f.linear(none, w[:, :0]), f.linear(x[:0], w, b)
    return a, f.linear(none.double(), w[:, :0].double(), b.double()), torch.addmm(b, none, w[:, :0].t()), f.linear(x, w[:0], b[:0])
)"},
      {"integer_products", {"3x40xi64", "40x5xi64", "2x3x4xi32"}, R"(
def main(a: Tensor, b: Tensor, c: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
    return a @ b * 1000000007, a.t()[:3] @ b.t()[:3, :3], c @ c.transpose(1, 2) + 1
)"},
      {"double_products", {"3x4xf64", "4x5xf64", "5x4xf64", "5xf64"}, R"(
def main(a: Tensor, b: Tensor, w: Tensor, bias: Tensor) -> Tuple[Tensor, Tensor]:
    a, b, w = torch.round(a * 4), torch.round(b * 4), torch.round(w * 4)
    return a @ b, torch.nn.functional.linear(a, w, torch.round(bias * 4))
)"},
      {"attention", {"2x4x16x8xf32", "2x4x16x8xf32", "2x4x16x8xf32"}, R"(
def main(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    s = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    return torch.softmax(s, -1) @ v
)"},
      {"indexing", {"10x6xf32", "7xi64"}, R"(
def main(table: Tensor, i: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.nn.functional.embedding(i, table) * 2, torch.index_select(table, 0, i) + 1
)"},
      {"pooling", {"2x9x11x12xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor, Tensor, Tensor]:
    a = torch.nn.functional.max_pool2d(x, [3, 2], [2, 2], [1, 0])
    b = torch.nn.functional.avg_pool2d(x, [3, 3], [2, 2], [1, 1])
    c = torch.nn.functional.adaptive_avg_pool2d(x, [4, 5])
    d = torch.nn.functional.adaptive_avg_pool2d(x, [1, 1])
    return a, b, c, d
)"},
      {"writes", {"4x6xf32"}, R"(
def main(x: Tensor) -> Tensor:
    y = torch.zeros(4, 6)
    y[1:3] = x[1:3] * 2
    y.add_(x).mul_(0.5)
    return y
)"},
      {"loops", {"5x8xf32", "8x8xf32"}, R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    h = torch.zeros(8)
    for i in range(x.size(0)):
        h = torch.tanh(x[i] + h @ w)
        if i % 2 == 1:
            h = h * 0.5
    return h
)"},
      {"constants", {"3xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor]:
    return x * torch.tensor([1.0, 2.0, 3.0]), torch.arange(4)
)"},
      {"numbers", {"3x5xf32"}, R"(
def main(x: Tensor) -> Tuple[int, Tensor, List[float], bool]:
    return x.numel(), x + 1, [x.size(1) / 2, 0.25], x.dim() == 2
)"},
      {"nothing_given", {}, R"(
def main() -> Tuple[Tensor, int]:
    x = torch.tensor([1.5, -2.0, 3.0])
    n = 0
    while bool(x.sum() > 0):
        x = x - 1
        n += 1
    return x, n
)"},
      {"branches", {"6xf32", "6xf32"}, R"(
def main(x: Tensor, y: Tensor) -> Tuple[Tensor, int]:
    z = x * 2 + y
    if bool(z.sum() > 0):
        z = torch.tanh(z)
        n = 1
    else:
        z = z - y.amax() * x
        n = 2
    if bool((z[0] > 0.25).logical_or(y[1] > 1)):
        n += 10
        z = z + x
    for i in range(3):
        if bool(z.amax() > 2):
            break
        z = z * 1.5 + 0.5
        n += 100
    return z, n
)"},
      {"data_numbers", {"6xf32", "5xi64", "4xf16"}, R"(
def main(x: Tensor, k: Tensor, h: Tensor):
    a = x[0].item()
    b = float(x.sum())
    n = int(k.sum())
    c = b * 2.5 - n
    y = x * a + b
    y += c
    z = k + b
    w = k * n - torch.where(k > n, k, 7)
    m = max(n, 3) - min(abs(b), 0.75)
    y = y.masked_fill(x > 0, a) + (b - x) + torch.tensor(b)
    return y / (abs(b) + 1.5), z, w, x > b, k > b, h * b, m, n / 2, -n, (n & 3) == 1, float(n) < b, max(n, int(k[0]), 1)
)"},
      {"data_branches", {"6xf32", "5xi64"}, R"(
def main(x: Tensor, k: Tensor):
    s = x.sum().item()
    n = int(k[1])
    limit = 1.5 if s > 0 else s - 0.5
    if s > limit and not n == 2:
        x = x * limit
        n += 10
    elif x[2] > 0 or bool(k[0]):
        x = x - n
    else:
        n = 3
    assert x.sum() * 0 == 0
    return x, limit, n
)"},
      {"data_bounds", {"6xf32", "2xi64"}, R"(
def main(x: Tensor, k: Tensor):
    total = 0
    for i in range(min(int(k[0]), 5)):
        x = x * 1.5 + i
        total += i * int(k[1])
    n = int(k[1])
    rounds = 0
    while n > 0 and rounds < 4:
        x = x - n
        n -= 1
        rounds += 1
    return x, total, n
)"},
      {"data_results", {"6xf32", "3xi64", "2xbool"}, R"(
def main(x: Tensor, k: Tensor, m: Tensor) -> Tuple[List[float], Tuple[int, float], bool, int, List[int]]:
    a = float(x.amax())
    x = x.clone()
    first = x[0].item()
    x[0] = 100.0
    return [a, 0.5, float(first)], (int(k[0]), a * a), bool(m[0]), int(x[1]), [int(k[2]), 4]
)"},
      {"writes_over_elements_that_are_read", {"3x5xf32"}, R"(
def main(x: Tensor) -> Tuple[Tensor, Tensor]:
    y = x.clone()
    y[:, 1:] = y[:, :-1]
    z = x.clone()
    z[1:, :3].copy_(z[:-1, 1:4])
    return y, z
)"},
      {"conditions", {"40xf32", "40xbool"}, R"(
def main(x: Tensor, m: Tensor) -> Tuple[Tensor, Tensor]:
    return torch.where(m, x, -x), (x > 0.5) | m
)"},
  };
  return all;
}

// All cases in one library.
class CompiledTest : public testing::TestWithParam<Case> {
 protected:
  static void SetUpTestSuite() {
    setJitMode(JitMode::Sync);
    setJitThreshold(0);
    workshop_ = new Workshop("cases");
    for (const Case& c : cases()) {
      const Program program = compile(c.source);
      try {
        workshop_->add(c.name, program.function("main"), valuesOf(inputsOf(c.inputs, 1)));
      } catch (const Error& e) {
        refused_[c.name] = e.what();
      }
    }
    said_ = workshop_->compile();
  }
  static inline Workshop* workshop_ = nullptr;
  static inline std::map<std::string, std::string> refused_;
  static inline std::string said_;
};

TEST_P(CompiledTest, GivesTheBitsOfTheEngine) {
  const Case& c = GetParam();
  ASSERT_EQ(said_, "");
  ASSERT_EQ(refused_[c.name], "");
  Running running(*workshop_, c.name);
  auto& [model, state] = running;
  const Program program = compile(c.source);
  // Other numbers than those that were recorded.
  for (uint64_t seed : {1, 77, 3, 4, 5, 6}) {
    const std::vector<Tensor> inputs = inputsOf(c.inputs, seed);
    IValue expected;
    for (int run = 0; run < 4; ++run) expected = program.call("main", valuesOf(inputs));
    const std::vector<Tensor> outputs = outputsOf(*model.about());
    ASSERT_EQ(call(model, state, inputs, outputs), "");
    expectResults(expected, outputs);
  }
}
INSTANTIATE_TEST_SUITE_P(Aot, CompiledTest, testing::ValuesIn(cases()),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(AotTest, DigitsAreReadAsByTheEngine) {
  setJitMode(JitMode::Sync);
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = *dynamic_cast<GraphFunction*>(module.type()->findMethod("forward"));
  const std::shared_ptr<GraphFunction> prepared = optimizeForInference(module.object(), forward);
  Workshop workshop("digits");
  const Tensor image = tensorOf("1x1x28x28xf32", 5);
  const aot::BuildResult built = workshop.add("digits", *prepared, {IValue(image)});
  EXPECT_EQ(built.weights_file, "digits.weights");
  workshop.add("embedded", *prepared, {IValue(image)}, /*embed=*/true);
  ASSERT_EQ(workshop.compile(), "");
  IValue expected;
  for (int run = 0; run < 4; ++run) expected = callFunction(*prepared, {IValue(image)});
  for (const char* name : {"digits", "embedded"}) {
    SCOPED_TRACE(name);
    const Workshop::Model model = workshop.load(name);
    wick_aot_state state;
    const bool embedded = name == std::string("embedded");
    ASSERT_EQ(model.init(&state, embedded ? nullptr : workshop.weightsOf(name).c_str()),
              WICK_AOT_OK)
        << state.error;
    const std::vector<Tensor> outputs = outputsOf(*model.about());
    ASSERT_EQ(call(model, state, {image}, outputs), "");
    expectSame(expected.toTensor(), outputs.at(0));
    model.free(&state);
    model.free(&state);  // does nothing
  }
}

// Without oneDNN the numbers are the same but for the order of sums.
TEST(AotTest, StandaloneModelsCallNoLibrary) {
  setJitMode(JitMode::Sync);
  const Module module = load("examples/digits.pt").eval();
  GraphFunction& forward = *dynamic_cast<GraphFunction*>(module.type()->findMethod("forward"));
  const std::shared_ptr<GraphFunction> prepared = optimizeForInference(module.object(), forward);
  const Program program = compile(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    return torch.relu(x @ w) @ w
def moved(x: Tensor, w: Tensor) -> Tensor:
    return torch.conv2d(x, w)
)");
  const Tensor image = tensorOf("3x1x28x28xf32", 5);
  const Tensor x = tensorOf("90x120xf32", 6), w = tensorOf("120x120xf32", 7);
  aot::RecordOptions options;
  options.standalone = true;
  Workshop workshop("standalone");
  std::vector<aot::Entry> digits, products;
  digits.push_back({.program = aot::record(*prepared, {IValue(image)}, options)});
  products.push_back({.program = aot::record(program.function("main"), {x, w}, options)});
  EXPECT_FALSE(workshop.add("digits", std::move(digits)).needs_onednn);
  EXPECT_FALSE(workshop.add("products", std::move(products)).needs_onednn);
  ASSERT_EQ(workshop.compile(), "");
  const auto check = [&](const char* name, const std::vector<Tensor>& inputs,
                         const Tensor& wanted) {
    SCOPED_TRACE(name);
    Running running(workshop, name);
    auto& [model, state] = running;
    const std::vector<Tensor> outputs = outputsOf(*model.about());
    ASSERT_EQ(call(model, state, inputs, outputs), "");
    const float* const found = outputs.at(0).data<float>();
    const Tensor all = wanted.contiguous();
    // Of the largest one, because sums cancel out.
    float largest = 0;
    for (int64_t i = 0; i < all.numel(); ++i) {
      largest = std::max(largest, std::abs(all.data<float>()[i]));
    }
    for (int64_t i = 0; i < all.numel(); ++i) {
      ASSERT_NEAR(found[i], all.data<float>()[i], 1e-5 * largest) << i;
    }
  };
  check("digits", {image}, callFunction(*prepared, {IValue(image)}).toTensor());
  check("products", {x, w}, program.call("main", {x, w}).toTensor());
  // A weight that is computed is packed by nobody.
  try {
    aot::record(program.function("moved"), {image, tensorOf("2x1x3x3xf32", 8)}, options);
    FAIL() << "it was recorded";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("conv2d: only oneDNN computes this one"));
  }
}

// The function's graph with constants for the last arguments.
std::shared_ptr<Graph> withConstants(GraphFunction& function, const std::vector<Tensor>& tensors) {
  function.ensureDefined();
  std::shared_ptr<Graph> graph = function.graph()->copy();
  const size_t first = graph->inputs().size() - tensors.size();
  graph->setInsertPoint(*graph->nodes().begin());
  for (const Tensor& tensor : tensors) {
    graph->inputs()[first]->replaceAllUsesWith(graph->insertConstant(IValue(tensor)));
    graph->block()->eraseInput(first);
  }
  graph->setInsertPoint(graph->block());
  return graph;
}

// Convolutions of 3 x 3 points by Winograd's method, of one size and of a named one.
TEST(AotTest, WinogradsMethodIsNearTheEngine) {
  const Program program = compile(R"(
def main(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    y = torch.relu(torch.conv2d(x, w, b, [1, 1], [1, 1]))
    return torch.conv2d(y, w, b, [2, 2], [1, 1]).sum(1) + torch.conv2d(y, w, None)[:, :, ::2, ::2].mean()
)");
  GraphFunction& original = program.function("main");
  const std::vector<Tensor> weights = {tensorOf("32x32x3x3xf32", 6), tensorOf("32xf32", 7)};
  GraphFunction function("frozen", withConstants(original, weights));
  function.setSchema(
      {"frozen", "", {original.schema().arguments()[0]}, original.schema().returns()});
  const auto imageOf = [](int64_t n) { return tensorOf(fmt::format("{}x32x12x14xf32", n), 5); };
  aot::RecordOptions options;
  options.winograd = true;
  Workshop workshop("winograd");
  std::vector<aot::Entry> fixed, named(1);
  fixed.push_back({.program = aot::record(function, {IValue(imageOf(2))}, options)});
  named[0].family = aot::familyOf(
      function, {{"N", 1, 4, 1}},
      [&](const std::vector<int64_t>& s) { return std::vector<IValue>{imageOf(s[0])}; }, options);
  for (const auto& built :
       {workshop.add("fixed", std::move(fixed)), workshop.add("named", std::move(named))}) {
    EXPECT_THAT(built.files[1].text, HasSubstr("convolveByWinograd("));
  }
  ASSERT_EQ(workshop.compile("g++", "-fopenmp"), "");
  for (const auto& [name, n] : {std::pair{"fixed", 2}, {"named", 1}, {"named", 4}, {"named", 3}}) {
    SCOPED_TRACE(fmt::format("{} {}", name, n));
    Running running(workshop, name);
    auto& [model, state] = running;
    const Tensor image = imageOf(n);
    const std::vector<Tensor> outputs = outputsFor(model, state, {image});
    ASSERT_EQ(call(model, state, {image}, outputs), "");
    const Tensor wanted =
        callFunction(original, {image, weights[0], weights[1]}).toTensor().contiguous();
    ASSERT_EQ(outputs.at(0).numel(), wanted.numel());
    for (int64_t i = 0; i < wanted.numel(); ++i) {
      const float value = wanted.data<float>()[i];
      ASSERT_NEAR(outputs.at(0).data<float>()[i], value, 1e-4 * (1 + std::abs(value))) << i;
    }
  }
}

// Several methods and signatures share a library, its weights and its kernels.
TEST(AotTest, SeveralMethodsAndSignaturesAreOneLibrary) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    return x * torch.tensor([1.0, 2.0, 3.0])
def init(x: Tensor) -> Tensor:
    return torch.tensor([1.0, 2.0, 3.0]) - x
)");
  const Tensor two = tensorOf("2x3xf32", 1), four = tensorOf("4x3xf32", 2);
  const Tensor halves = two.to(DType::Half);
  std::vector<aot::Entry> entries;
  const auto add = [&](const char* function, const char* method, const Tensor& x) {
    entries.push_back({method, aot::record(program.function(function), {IValue(x)})});
  };
  add("main", "forward", two);
  add("init", "init", two);  // a name that the library has already
  add("main", "forward", four);
  add("main", "forward", halves);
  Workshop workshop("several");
  const aot::BuildResult built = workshop.add("several", std::move(entries));
  EXPECT_EQ(built.weights_bytes, 64);
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "several");
  auto& [model, state] = running;
  const Workshop::Model other = workshop.load("several", "init_");
  ASSERT_EQ(model.about()->num_signatures, 4);
  EXPECT_STREQ(model.about()->signatures[3].method, "init_");
  int32_t signature = 0;
  for (const Tensor& x : {two, four, halves}) {
    const std::vector<Tensor> outputs = outputsOf(*model.about(), signature++);
    ASSERT_EQ(call(model, state, {x}, outputs), "");
    expectSame(program.call("main", {x}).toTensor(), outputs[0]);
  }
  const std::vector<Tensor> outputs = outputsOf(*model.about(), 3);
  ASSERT_EQ(call(other, state, {two}, outputs), "");
  expectSame(program.call("init", {two}).toTensor(), outputs[0]);
  EXPECT_EQ(call(model, state, {tensorOf("3x3xf32", 1)}, outputs),
            "several: none of the 3 signatures of forward has such inputs");
}

TEST(AotTest, WrongArgumentsAndWeightsAreRefused) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    return x * torch.tensor([1.0, 2.0, 3.0])
def other(x: Tensor) -> Tensor:
    return x * torch.tensor([1.0, 2.0, 4.0])
)");
  Workshop workshop("wrong");
  const Tensor x = tensorOf("2x3xf32", 1);
  workshop.add("one", program.function("main"), {IValue(x)});
  workshop.add("two", program.function("other"), {IValue(x)});
  ASSERT_EQ(workshop.compile("g++", "-fopenmp"), "");
  const Workshop::Model model = workshop.load("one");
  wick_aot_state state;
  EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_WEIGHTS);
  EXPECT_THAT(state.error, HasSubstr("expected the path of the weights, got null"));
  EXPECT_EQ(model.init(&state, "/nonexistent"), WICK_AOT_WEIGHTS);
  EXPECT_THAT(state.error, HasSubstr("No such file"));
  EXPECT_EQ(model.init(&state, workshop.weightsOf("two").c_str()), WICK_AOT_WEIGHTS);
  EXPECT_THAT(state.error, HasSubstr("another model, or of another build"));
  std::string bytes;
  {
    std::ifstream file(workshop.weightsOf("one"), std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  const auto tryFile = [&](const std::string& text) {
    const std::string path = workshop.folder() + "/changed.weights";
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(model.init(&state, path.c_str()), WICK_AOT_WEIGHTS);
    return std::string(state.error);
  };
  const std::string pipe = workshop.folder() + "/pipe.weights";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(model.init(&state, pipe.c_str()), WICK_AOT_WEIGHTS);
  EXPECT_THAT(state.error, HasSubstr("is no file of weights"));
  EXPECT_THAT(tryFile(""), HasSubstr("is no file of weights"));
  EXPECT_THAT(tryFile(std::string(200, 'x')), HasSubstr("is no file of weights"));
  const size_t held = bytes.size() - 64;
  EXPECT_THAT(tryFile(bytes.substr(0, bytes.size() - 1)),
              HasSubstr(fmt::format("is cut short: expected {} bytes behind its header, got {}",
                                    held, held - 1)));
  EXPECT_THAT(tryFile(bytes + "more"),
              HasSubstr(fmt::format("is too long: expected {} bytes behind its header, got {}",
                                    held, held + 4)));
  const auto withByte = [&](size_t at, char value) {
    std::string changed = bytes;
    changed[at] = value;
    return changed;
  };
  EXPECT_THAT(tryFile(withByte(8, 9)),
              HasSubstr(fmt::format("has version 9 of the format, this program reads version {}",
                                    WICK_AOT_VERSION)));
  EXPECT_THAT(tryFile(withByte(12, 65)),
              HasSubstr("is damaged: expected a header of 64 bytes, got one of 65"));
  EXPECT_THAT(tryFile(withByte(25, 1)),
              HasSubstr(fmt::format("is damaged: expected {} bytes of weights, its header tells of "
                                    "{}",
                                    held, held + 256)));

  ASSERT_EQ(model.init(&state, workshop.weightsOf("one").c_str()), WICK_AOT_OK);
  const std::vector<Tensor> outputs = outputsOf(*model.about());
  EXPECT_EQ(call(model, state, {tensorOf("2x4xf32", 1)}, outputs),
            "one: input 0 (x): expected float32[2, 3], got float32[2, 4]");
  EXPECT_EQ(call(model, state, {tensorOf("2x3xi32", 1)}, outputs),
            "one: input 0 (x): expected float32[2, 3], got int32[2, 3]");
  EXPECT_EQ(call(model, state, {x}, {tensorOf("6xf32", 1)}),
            "one: output 0 (result): expected float32[2, 3], got float32[6]");
  EXPECT_EQ(model.forward(&state, nullptr, nullptr), WICK_AOT_ARGUMENT);
  wick_aot_tensor nothing = describe(x), out = describe(outputs[0]);
  nothing.data = nullptr;
  EXPECT_EQ(model.forward(&state, &nothing, &out), WICK_AOT_ARGUMENT);
  EXPECT_THAT(state.error, HasSubstr("expected memory, got null"));
  EXPECT_EQ(call(model, state, {x}, outputs), "");
  model.free(&state);
}

TEST(AotTest, IndicesOutOfRangeAreAnError) {
  const Program program = compile(R"(
def main(table: Tensor, i: Tensor) -> Tensor:
    return torch.nn.functional.embedding(i, table)
)");
  Workshop workshop("indices");
  const Tensor table = tensorOf("4x3xf32", 1);
  workshop.add("lookup", program.function("main"), {IValue(table), IValue(tensorOf("5xi64", 2))});
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "lookup");
  auto& [model, state] = running;
  const std::vector<Tensor> outputs = outputsOf(*model.about());
  EXPECT_EQ(call(model, state, {table, Tensor::from(std::vector<int64_t>{0, 1, 2, 3, 0})}, outputs),
            "");
  EXPECT_THAT(
      call(model, state, {table, Tensor::from(std::vector<int64_t>{0, 1, 2, 4, 0})}, outputs),
      HasSubstr("index out of range"));
}

// One side of a condition raises.
TEST(AotTest, ProgramsRaise) {
  const Program program = compile(R"(
def main(x: Tensor) -> Tensor:
    assert bool((x > 0).all()), "some \"x\" is not above zero"
    return torch.log(x)
)");
  Workshop workshop("raises");
  const Tensor good = Tensor::from({1.0f, 2.0f}), bad = Tensor::from({1.0f, -2.0f});
  workshop.add("logs", program.function("main"), {IValue(good)});
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "logs");
  auto& [model, state] = running;
  const std::vector<Tensor> outputs = outputsOf(*model.about());
  EXPECT_THAT(call(model, state, {bad}, outputs), HasSubstr("some \"x\" is not above zero"));
  EXPECT_EQ(call(model, state, {good}, outputs), "");
  expectSame(program.call("main", {good}).toTensor(), outputs[0]);
}

// What int() refuses is refused by the compiled model.
TEST(AotTest, NumbersTooLargeForAnIntegerAreAnError) {
  const Program program = compile(R"(
def main(x: Tensor) -> int:
    return int(x) + 1
)");
  Workshop workshop("whole");
  const Tensor good = Tensor::scalar(-2.75), bad = Tensor::scalar(1e19);
  workshop.add("whole", program.function("main"), {IValue(good)});
  ASSERT_EQ(workshop.compile(), "");
  Running running(workshop, "whole");
  auto& [model, state] = running;
  const std::vector<Tensor> outputs = outputsOf(*model.about());
  EXPECT_EQ(call(model, state, {good}, outputs), "");
  expectSame(Tensor::scalar(int64_t{-1}), outputs[0]);
  EXPECT_THROW(program.call("main", {bad}), RuntimeError);
  EXPECT_THAT(call(model, state, {bad}, outputs),
              HasSubstr("value cannot be converted to type int64_t without overflow"));
}

// What cannot be compiled says so, with the line.
TEST(AotTest, RefusesWhatItCannotCompile) {
  const auto refusal = [](const std::string& body, const char* input = "3x3xf32") {
    const Program program = compile("def main(x: Tensor):\n" + body);
    try {
      aot::BuildOptions options;
      options.name = "refused";
      aot::build(aot::record(program.function("main"), {IValue(tensorOf(input, 1))}), options,
                 [](std::string_view) {});
    } catch (const Error& e) {
      return std::string(e.what());
    }
    return std::string("it was compiled");
  };
  EXPECT_THAT(
      refusal("    while bool(x.sum() > 0):\n        x = torch.cat([x, x])\n    return x\n"),
      HasSubstr("A loop cannot stay one"));
  EXPECT_THAT(refusal("    n: List[List[float]] = x.tolist()\n    return n\n"),
              HasSubstr("known only when"));
  EXPECT_THAT(refusal("    l: List[int] = []\n    for i in range(int(x.sum())):\n"
                      "        l.append(i)\n    return l\n"),
              HasSubstr("more than 64 ways"));
  EXPECT_THAT(refusal("    return x * x.item()\n"), HasSubstr("a Tensor with 9 elements"));
  EXPECT_THAT(refusal("    x.add_(1)\n    return x\n"), HasSubstr("writes to its argument 'x'"));
  EXPECT_THAT(refusal("    return str(x.size(0))\n"),
              HasSubstr("results of compiled models are tensors"));
  EXPECT_THAT(refusal("    print(x.size(0))\n    return x\n"), HasSubstr("the program prints"));
  EXPECT_THAT(refusal("    return torch.cummax(x, 1)[0]\n", "3x3xf16"),
              HasSubstr("of float16 is not available ahead of time"));
  // Drawn while building it would be the same in each call.
  EXPECT_THAT(refusal("    return torch.poisson(torch.abs(x))\n"), HasSubstr("poisson"));
  EXPECT_THAT(refusal("    return torch.randn(3, 3, dtype=torch.float16) + x\n"),
              HasSubstr("float16"));
}

}  // namespace
}  // namespace wick::aot_test
