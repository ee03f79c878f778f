// Models for CUDA devices, as far as no device is needed: what is refused while building, the text, and the runtime over
// a driver whose device is the host's memory (fake_cuda.c).
#include <dlfcn.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>

#include "aot/cuda/target.h"
#include "aot/plan.h"
#include "aot/recording.h"
#include "runtime/call.h"
#include "runtime/cuda/compiler.h"
#include "tests/aot/compiled.h"
#include "wick.h"

namespace wick::cuda_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_aot::call;
using testing_aot::describe;
using testing_aot::outputsFor;
using testing_aot::tensorOf;
using testing_aot::Workshop;

const aot::Target& target() {
  static const auto& made = *aot::cudaTarget(aot::parseArchitectures("sm_80,sm_90")).release();
  return made;
}

// Compiled functions live as long as the process.
GraphFunction& functionOf(const std::string& source) {
  static auto& programs = *new std::deque<Program>;
  programs.push_back(compile(source));
  return programs.back().function("main");
}

std::vector<IValue> argumentsOf(const std::vector<const char*>& specs) {
  std::vector<IValue> arguments;
  for (size_t i = 0; i < specs.size(); ++i) arguments.emplace_back(tensorOf(specs[i], i + 1));
  return arguments;
}

std::string errorOf(const std::function<void()>& f) {
  try {
    f();
  } catch (const RuntimeError& e) {
    return e.what();
  }
  return "";
}

// ---- building ----

TEST(CudaAotTest, ArchitecturesAreRead) {
  const std::vector<aot::CudaArchitecture> found =
      aot::parseArchitectures("sm_90,sm_80,sm_120,sm_90");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].major, 8);
  EXPECT_EQ(found[1].minor, 0);
  EXPECT_EQ(found[2].major, 12);
  for (const char* wrong : {"", "sm_", "80", "sm_8", "sm_90,", "sm_9x", "sm_1234", "compute_90"}) {
    EXPECT_THAT(errorOf([&] { aot::parseArchitectures(wrong); }),
                HasSubstr(fmt::format("expected architectures like sm_80,sm_90, got '{}'", wrong)));
  }
}

TEST(CudaAotTest, RefusesWithOperatorAndLine) {
  GraphFunction& function = functionOf(R"(
def main(x: Tensor, w: Tensor):
    y = x * 2
    return torch.conv2d(y, w)
)");
  aot::RecordOptions options;
  options.target = &target();
  const std::string error = errorOf([&] {
    aot::record(function, argumentsOf({"1x2x4x4xi64", "2x2x3x3xi64"}), options);
  });
  EXPECT_THAT(error, AllOf(HasSubstr("conv2d of int64 is not available ahead of time for CUDA"),
                           HasSubstr("return torch.conv2d(y, w)")));
  const auto refused = [&](const std::string& body, const char* x) {
    GraphFunction& f = functionOf("def main(x: Tensor):\n    " + body + "\n");
    return errorOf([&] { aot::record(f, argumentsOf({x}), options); });
  };
  EXPECT_THAT(refused("return torch.linalg.svdvals(x)", "3x3xf32"),
              HasSubstr("linalg.svd is not available in models for CUDA"));
  // Dimensions that no two indices have in one order, so that each has its steps.
  std::string ones = "1", indices = "i";
  for (int n = 1; n < 60; ++n) {
    ones += ", 1";
    indices += n % 2 == 0 ? ", i" : ", i.permute([7, 6, 5, 4, 3, 2, 1, 0])";
  }
  Workshop workshop("cuda_refused");
  GraphFunction& reads = functionOf(
      "def main(x: Tensor):\n    i = x.long().expand(2, 2, 2, 2, 2, 2, 2, 2).clone()\n"
      "    return x.view([" +
      ones + "])[" + indices + "]\n");
  EXPECT_THAT(
      errorOf([&] { workshop.add("reads", reads, argumentsOf({"1xf32"}), false, &target()); }),
      HasSubstr("index is not available in models for CUDA: a kernel of too many arguments"));
  EXPECT_THAT(refused("return x.expand([2200000000, 1]) @ x", "1x1xf32"),
              HasSubstr("matmul: a matrix of 2^31 rows or columns is not available ahead of time"));
  // The next recording is one for the CPU again.
  GraphFunction& other = functionOf("def main(x: Tensor):\n    return x.median()\n");
  const aot::Program program = aot::record(other, argumentsOf({"3x4xf32"}));
  EXPECT_TRUE(std::ranges::any_of(program.steps, [](const aot::Step& step) {
    return std::holds_alternative<aot::FunctionStep>(step.what);
  }));
}

// Launches of the kernels that a function becomes.
std::vector<std::string> kernelsOf(const std::string& source,
                                   const std::vector<const char*>& inputs) {
  aot::RecordOptions options;
  options.target = &target();
  aot::Program program = aot::record(functionOf(source), argumentsOf(inputs), options);
  aot::Weights weights;
  aot::makePlan(program, weights);
  std::vector<std::string> kernels;
  for (const aot::Step& step : program.steps) {
    if (const auto* kernel = std::get_if<aot::DeviceKernelStep>(&step.what)) {
      kernels.push_back(kernel->kernel);
    } else if (const auto* function = std::get_if<aot::FunctionStep>(&step.what)) {
      kernels.push_back(function->function.substr(0, function->function.find('<')));
    }
  }
  return kernels;
}

TEST(CudaAotTest, ShortRowsAreRankedAndLongOnesSorted) {
  using testing::ElementsAre;
  const char* sort = "def main(x: Tensor):\n    return x.sort()[0]\n";
  EXPECT_THAT(kernelsOf(sort, {"3x256xf32"}), ElementsAre("rank"));
  EXPECT_THAT(kernelsOf(sort, {"3x257xf32"}), ElementsAre("load", "sortChunks", "store"));
  EXPECT_THAT(kernelsOf(sort, {"2x1500xf32"}),
              ElementsAre("load", "sortChunks", "sortStep", "sortChunks", "store"));
  // Equal elements are chosen as on the CPU.
  EXPECT_THAT(kernelsOf("def main(x: Tensor):\n    return x.topk(3)\n", {"3x700xf32"}),
              ElementsAre("load", "sortChunks", "store", "load", "replay"));
  EXPECT_THAT(kernelsOf("def main(x: Tensor):\n    return x.median()\n", {"5xf32"}),
              ElementsAre("load", "sortChunks", "store"));
}

TEST(CudaAotTest, WritesAreOrdered) {
  using testing::ElementsAre;
  const std::vector<const char*> inputs = {"5x3xf32", "4xi64", "4x3xf32"};
  EXPECT_THAT(kernelsOf("def main(x: Tensor, i: Tensor, v: Tensor):\n"
                        "    return x.index_add(0, i, v)\n",
                        inputs),
              ElementsAre("load", "sortChunks", "store", "reduceRuns"));
  EXPECT_THAT(kernelsOf("def main(x: Tensor, i: Tensor, v: Tensor):\n"
                        "    return torch.index_put(x, [i], v)\n",
                        inputs),
              ElementsAre("load", "sortChunks", "store", "put"));
  EXPECT_THAT(kernelsOf("def main(x: Tensor, m: Tensor, v: Tensor):\n"
                        "    return x.masked_scatter(m > 0, v)\n",
                        {"5x3xf32", "5x3xf32", "20xf32"}),
              ElementsAre("countSet", "addCounts", "placeSet"));
}

TEST(CudaAotTest, WithoutCompilerSaysSo) {
  if (cuda::hasCompiler()) GTEST_SKIP() << "there is a compiler";
  Workshop workshop("cuda_no_compiler");
  GraphFunction& function = functionOf("def main(x: Tensor):\n    return torch.tanh(x)\n");
  EXPECT_THAT(
      errorOf([&] { workshop.add("model", function, argumentsOf({"3x4xf32"}), false, &target()); }),
      HasSubstr("libnvrtc"));
}

struct Case {
  const char* name;
  std::vector<const char*> inputs;
  const char* source;
};
const std::vector<Case>& cases() {
  static const std::vector<Case> all = {
      {"layers", {"8x32xf32", "64x32xf32", "64xf32"}, R"(
def main(x: Tensor, w: Tensor, b: Tensor):
    h = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    h = torch.nn.functional.layer_norm(h, [64])
    return torch.softmax(h, -1), h.sum(0), h @ h.t()
)"},
      {"images", {"2x8x9x9xf32", "8x8x3x3xf32", "8xf32", "8x1x3x3xf32"}, R"(
def main(x: Tensor, w: Tensor, b: Tensor, d: Tensor):
    y = torch.relu(torch.conv2d(x, w, b, padding=1) + x)
    z = torch.conv2d(y, d, None, padding=1, groups=8)
    t = torch.conv_transpose2d(y, w, b, stride=2)
    return torch.max_pool2d(z, 3, 2), torch.nn.functional.avg_pool2d(t, 2), z.mean([2, 3])
)"},
      {"elements", {"5x7xf32", "4x3xi64"}, R"(
def main(x: Tensor, i: Tensor):
    y = x.to(torch.bfloat16) * 2
    return torch.nn.functional.embedding(i, x), i // 3, i @ i.t(), torch.cat([x, y.to(torch.float32)], 1), x.flip([0])
)"},
      {"orders", {"5x7xf32", "4x3xi64"}, R"(
def main(x: Tensor, i: Tensor):
    s = x.sort(1)[0]
    return x.cumsum(0), i.cumprod(1), x.cummax(1), x.topk(3, 1), i.kthvalue(2, 0), torch.searchsorted(s, x), x.logcumsumexp(1)
)"},
      {"long_orders", {"2x1200xf32", "3x400xi64", "30xf32"}, R"(
def main(x: Tensor, i: Tensor, y: Tensor):
    s, o = x.sort(1)
    return s, i.topk(3, 1), x.kthvalue(700, 1), x.median(1), i.mode(1), y.nanmedian(), torch.histc(y, 7), torch.histc(y.to(torch.float64), 5, -1, 1), torch.searchsorted(x, s, sorter=o)
)"},
      {"writes", {"5x3xf32", "4xi64", "4x3xf32", "5x3xi64"}, R"(
def main(x: Tensor, i: Tensor, v: Tensor, n: Tensor):
    a = torch.index_put(x, [i], v)
    b = x.index_add(0, i, v) + a.index_reduce(0, i, v, "mean") + x.scatter(0, n % 5, a)
    c = x.scatter_reduce(0, n % 5, a, "amax") + x.scatter_reduce(0, n % 5, a, "prod", include_self=False)
    m = n.clone()
    m[i] = 1
    return b, c, x.masked_scatter(m > 0, a), n.scatter_add(0, n % 5, n), x.to(torch.float16).index_copy(0, i, v.to(torch.float16))
)"},
      {"samples", {"1x2x5x5xf32", "1x3x3x2xf32", "20x4xf32", "6xi64", "2xi64"}, R"(
def main(x: Tensor, g: Tensor, t: Tensor, i: Tensor, o: Tensor):
    return (torch.grid_sampler(x, g, 0, 0, False), torch.grid_sampler(x, g, 2, 2, True),
            torch.embedding_bag(t, i, o * 0, mode=1)[0], torch.embedding_bag(t, i, o * 0, mode=2)[0])
)"},
      {"selected", {"6x2xf32", "7xi64"}, R"(
def main(x: Tensor, i: Tensor):
    k = x[x[:, 0] > 0]
    u, v, c = torch._unique2(i, True, True, True)
    return k * 2, k.sum(0), torch.nonzero(x > 1), u, v, c
)"},
      {"decisions", {"6x6xf32", "1xi64"}, R"(
def main(x: Tensor, n: Tensor):
    h = x
    for i in range(int(n)):
        h = torch.tanh(h @ x) + i
        if bool(h.sum() > 100):
            h = h * 0.5
    k = int(x.sum()) * 2 + 1
    return h, k, h[0] * k
)"},
  };
  return all;
}

// All of the text, without warnings.
void compileAll(const std::string& name, const std::string& compiler, const std::string& more) {
  if (!cuda::hasCompiler()) GTEST_SKIP() << "NVRTC is not there, so no model can be built";
  Workshop workshop(name);
  for (const Case& c : cases()) {
    const aot::BuildResult built =
        workshop.add(c.name, functionOf(c.source), argumentsOf(c.inputs), false, &target());
    EXPECT_GT(built.kernels, 0u) << c.name;
  }
  aot::Family family = aot::familyOf(
      functionOf(cases()[0].source), {{"N", 1, 9, 1}},
      [](const std::vector<int64_t>& sizes) {
        return argumentsOf({fmt::format("{}x32xf32", sizes[0]).c_str(), "64x32xf32", "64xf32"});
      },
      {.target = &target()});
  std::vector<aot::Entry> entries(1);
  entries[0].family = std::move(family);
  workshop.add("sized", std::move(entries), false, &target());
  ASSERT_EQ(workshop.compile(compiler, more), "");
  // Nothing but the C library is needed to load it.
  EXPECT_NE(workshop.load("layers").about()->cuda, nullptr);
}
TEST(CudaAotTest, TextCompiles) {
  compileAll("cuda_text", "g++", "");
}
TEST(CudaAotTest, TextCompilesWithClang) {
  if (std::system("clang++-14 --version > /dev/null 2>&1") != 0) {
    GTEST_SKIP() << "there is no clang++-14";
  }
  compileAll("cuda_text_clang", "clang++-14", "-Wno-deprecated -Wno-unused-command-line-argument");
}

// ---- running ----

// The fake libraries, which models find in place of NVIDIA's from then on.
class Fakes {
 public:
  static const Fakes& get() {
    static const Fakes& fakes = *new Fakes;
    return fakes;
  }
  template <class F>
  F* find(const char* name) const {
    return reinterpret_cast<F*>(dlsym(driver_, name));
  }
  void fail(const char* function, int after = 0) const {
    find<void(const char*, int)>("fake_failure")(function, after);
  }
  int count(const char* what) const { return find<int()>(what)(); }

 private:
  Fakes() {
    driver_ = load("fake_cuda.c", "libcuda.so.1");
    load("fake_cublaslt.c", "libcublasLt.so.13");
  }
  // A library that is loaded is found by its name.
  static void* load(const char* source, const char* name) {
    const std::string made = testing::TempDir() + "/" + name;
    const std::string command = fmt::format(
        "gcc -O1 -shared -fPIC -Wl,-soname,{} tests/aot/{} -o '{}'", name, source, made);
    if (std::system(command.c_str()) != 0) throw std::runtime_error(command);
    void* handle = dlopen(made.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (!handle) throw std::runtime_error(dlerror());
    return handle;
  }
  void* driver_;
};

// Before the fakes are there.
TEST(CudaAotTest, A0WithoutDriverSaysSo) {
  if (void* driver = dlopen("libcuda.so.1", RTLD_NOW)) {
    dlclose(driver);
    GTEST_SKIP() << "there is a driver";
  }
  Workshop workshop("cuda_no_driver");
  // Of products alone, which no compiler is needed for.
  workshop.add("product", functionOf("def main(x: Tensor, y: Tensor):\n    return x @ y\n"),
               argumentsOf({"3x4xf32", "4x5xf32"}), false, &target());
  ASSERT_EQ(workshop.compile(), "");
  const Workshop::Model model = workshop.load("product");
  wick_aot_state state;
  EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_DEVICE);
  EXPECT_THAT(wick_aot_error(&state),
              AllOf(HasSubstr("product: no CUDA driver"), HasSubstr("libcuda.so.1")));
  model.free(&state);
}

// Models that the tests below call.
class CudaAotRunTest : public testing::Test {
 protected:
  struct Models {
    Workshop workshop{"cuda_run"};
    bool with_kernels = cuda::hasCompiler();
    Models() {
      workshop.add("products", functionOf(kProducts), argumentsOf({"5x6xf32", "7x6xf32", "7xf32"}),
                   false, &target());
      aot::Family family = aot::familyOf(
          functionOf(kProducts), {{"N", 1, 6, 1}},
          [](const std::vector<int64_t>& sizes) {
            return argumentsOf({fmt::format("{}x6xf32", sizes[0]).c_str(), "7x6xf32", "7xf32"});
          },
          {.target = &target()});
      std::vector<aot::Entry> entries(1);
      entries[0].family = std::move(family);
      workshop.add("sized", std::move(entries), false, &target());
      if (with_kernels) {
        workshop.add("lookup", functionOf(kLookup), argumentsOf({"4xi64", "5x3xf32"}), false,
                     &target());
        workshop.add("first", functionOf(kFirst), argumentsOf({"5x3xf32", "1xi64"}), false,
                     &target());
      }
      const std::string error = workshop.compile();
      if (!error.empty()) throw std::runtime_error(error);
    }
  };
  static constexpr const char* kProducts = R"(
def main(x: Tensor, w: Tensor, b: Tensor):
    y = torch.nn.functional.linear(x, w, b)
    return y, y @ y.t()
)";
  static constexpr const char* kLookup = R"(
def main(i: Tensor, t: Tensor):
    return torch.nn.functional.embedding(i, t) * 2
)";
  static constexpr const char* kFirst = R"(
def main(x: Tensor, n: Tensor):
    k = int(n)
    return x[:k] * 2, torch.arange(k)
)";
  static Models& models() {
    static Models& made = *new Models;
    return made;
  }
  void SetUp() override { fakes_.find<void(int, int, int)>("fake_device")(1, 9, 0); }

  std::vector<Tensor> inputs(int64_t rows = 5) const {
    return {tensorOf(fmt::format("{}x6xf32", rows), 1), tensorOf("7x6xf32", 2),
            tensorOf("7xf32", 3)};
  }
  static void expectProducts(const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
    const std::vector<Tensor> want =
        testing_aot::tensorsOf(callFunction(functionOf(kProducts), {in[0], in[1], in[2]}));
    for (size_t o = 0; o < 2; ++o) {
      for (int64_t i = 0; i < want[o].numel(); ++i) {
        EXPECT_NEAR(want[o].contiguous().data<float>()[i], out[o].data<float>()[i], 1e-3);
      }
    }
  }
  // The compiler comes first: it does not work beside a driver that is not NVIDIA's.
  const Fakes& fakes_ = (models(), Fakes::get());
};

TEST_F(CudaAotRunTest, HostTensorsAreCopied) {
  const Workshop::Model model = models().workshop.load("products");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
  const int graphs = fakes_.count("fake_graph_launches");
  for (int round = 0; round < 4; ++round) {
    const std::vector<Tensor> in = inputs(), out = outputsFor(model, state, in);
    ASSERT_EQ(call(model, state, in, out), "");
    expectProducts(in, out);
  }
  // The second call records a graph.
  EXPECT_EQ(fakes_.count("fake_graph_launches") - graphs, 3);
  model.free(&state);
  EXPECT_EQ(fakes_.count("fake_allocations"), 0);
}

struct Placed {
  std::vector<wick_aot_tensor> given, taken;
};
// Tensors of at most 1024 bytes in memory of the device, with the elements of inputs.
Placed placed(uint64_t next, const std::vector<Tensor>& in, const std::vector<Tensor>& out) {
  Placed all;
  for (const Tensor& t : in) {
    all.given.push_back(describe(t));
    all.given.back().data = std::memcpy(reinterpret_cast<void*>(next), t.rawData(),
                                        static_cast<size_t>(t.numel()) * sizeof(float));
    next += 1024;
  }
  for (const Tensor& t : out) {
    all.taken.push_back(describe(t));
    all.taken.back().data = reinterpret_cast<void*>(next);
    next += 1024;
  }
  return all;
}

TEST_F(CudaAotRunTest, TensorsOfTheDeviceStay) {
  const Workshop::Model model = models().workshop.load("products");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
  const std::vector<Tensor> in = inputs(), out = outputsFor(model, state, in);
  auto* allocate = fakes_.find<int(uint64_t*, size_t)>("cuMemAlloc_v2");
  uint64_t memory = 0;
  ASSERT_EQ(allocate(&memory, 8192), 0);
  auto [given, taken] = placed(memory, in, out);
  const int copies = fakes_.count("fake_copies");
  for (int round = 0; round < 3; ++round) {
    ASSERT_EQ(model.forward(&state, given.data(), taken.data()), WICK_AOT_OK) << state.error;
  }
  EXPECT_EQ(fakes_.count("fake_copies"), copies);
  for (size_t o = 0; o < 2; ++o) {
    std::memcpy(out[o].rawData(), taken[o].data,
                static_cast<size_t>(out[o].numel()) * sizeof(float));
  }
  expectProducts(in, out);

  // A stream that the caller captures: nothing is computed before the graph is launched.
  void *stream = nullptr, *graph = nullptr;
  ASSERT_EQ(fakes_.find<int(void**, unsigned)>("cuStreamCreate")(&stream, 0), 0);
  ASSERT_EQ(
      models().workshop.find<int(wick_aot_state*, void*)>("products_set_stream")(&state, stream),
      WICK_AOT_OK);
  std::memset(taken[0].data, 0, 1024);
  ASSERT_EQ(fakes_.find<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 1), 0);
  ASSERT_EQ(model.forward(&state, given.data(), taken.data()), WICK_AOT_OK) << state.error;
  ASSERT_EQ(fakes_.find<int(void*, void**)>("cuStreamEndCapture")(stream, &graph), 0);
  EXPECT_EQ(*static_cast<float*>(taken[0].data), 0);
  ASSERT_EQ(fakes_.find<int(void*, void*)>("cuGraphLaunch")(graph, stream), 0);
  EXPECT_EQ(*static_cast<float*>(taken[0].data), out[0].data<float>()[0]);
  fakes_.find<int(void*)>("cuGraphExecDestroy")(graph);

  given[0].data = reinterpret_cast<void*>(memory + 4);
  EXPECT_EQ(model.forward(&state, given.data(), taken.data()), WICK_AOT_ARGUMENT);
  EXPECT_THAT(state.error, HasSubstr("input 0 (x): expected an address that 16 divides"));
  model.free(&state);
  fakes_.find<int(uint64_t)>("cuMemFree_v2")(memory);
}

TEST_F(CudaAotRunTest, SizesChange) {
  const Workshop::Model model = models().workshop.load("sized");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
  for (const int64_t rows : {3, 1, 3, 6, 3, 6, 6, 2}) {
    const std::vector<Tensor> in = inputs(rows), out = outputsFor(model, state, in);
    ASSERT_EQ(call(model, state, in, out), "");
    expectProducts(in, out);
  }
  EXPECT_THAT(call(model, state, inputs(7), inputs(7)), HasSubstr("expected N from 1 to 6"));
  model.free(&state);
}

// What the first kernel of the test below would copy to the beginning of the model's memory, if it did anything.
int64_t* memory_of_model = nullptr;
int64_t told_size = 0;

TEST_F(CudaAotRunTest, ElementsDecideSizes) {
  if (!models().with_kernels) GTEST_SKIP() << "NVRTC is not there, so no kernel can be built";
  const Workshop::Model model = models().workshop.load("first");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, models().workshop.weightsOf("first").c_str()), WICK_AOT_OK)
      << state.error;
  Dl_info about;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(model.init), &about), 0);
  void* library = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  memory_of_model =
      reinterpret_cast<int64_t*>(reinterpret_cast<unsigned char* (*)(const wick_aot_state*)>(
          dlsym(library, "wick_aot_cuda_memory"))(&state));
  fakes_.find<void(void (*)(const char*, int64_t))>("fake_on_launch")(
      [](const char* name, int64_t) {
        if (std::strcmp(name, "k_copy_1") == 0) *memory_of_model = told_size;
      });
  const auto sizesFor = [&](int64_t n, std::vector<Tensor>& out) {
    told_size = n;
    return testing_aot::callAny(model, state,
                                {tensorOf("5x3xf32", 1), Tensor::fromData(&n, DimVector{1})}, out);
  };
  std::vector<Tensor> out;
  for (const int64_t n : {3, 0, 5, 1, 3}) {
    ASSERT_EQ(sizesFor(n, out), "");
    EXPECT_EQ(DimVector(out[0].sizes()), (DimVector{n, 3}));
    EXPECT_EQ(DimVector(out[1].sizes()), (DimVector{n}));
  }
  EXPECT_THAT(sizesFor(-1, out), HasSubstr("got -1"));
  EXPECT_THAT(sizesFor(77, out), HasSubstr("got 77"));
  EXPECT_EQ(sizesFor(4, out), "");

  // No graph of the caller spans what the host looks at.
  void *stream = nullptr, *graph = nullptr;
  ASSERT_EQ(fakes_.find<int(void**, unsigned)>("cuStreamCreate")(&stream, 0), 0);
  models().workshop.find<int(wick_aot_state*, void*)>("first_set_stream")(&state, stream);
  ASSERT_EQ(fakes_.find<int(void*, int)>("cuStreamBeginCapture_v2")(stream, 1), 0);
  EXPECT_THAT(sizesFor(4, out), HasSubstr("first: the stream is captured, and the host looks at"));
  fakes_.find<int(void*, void**)>("cuStreamEndCapture")(stream, &graph);
  fakes_.find<int(void*)>("cuGraphExecDestroy")(graph);
  model.free(&state);
  fakes_.find<void(void (*)(const char*, int64_t))>("fake_on_launch")(nullptr);
  fakes_.find<int(void*)>("cuStreamDestroy_v2")(stream);
}

// The libraries' memory that a graph of the caller has the address of stays when later calls need more.
TEST_F(CudaAotRunTest, CapturedWorkspaceStays) {
  const Workshop::Model model = models().workshop.load("sized");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
  void *stream = nullptr, *graph = nullptr;
  ASSERT_EQ(fakes_.find<int(void**, unsigned)>("cuStreamCreate")(&stream, 0), 0);
  models().workshop.find<int(wick_aot_state*, void*)>("sized_set_stream")(&state, stream);
  uint64_t memory = 0;
  ASSERT_EQ(fakes_.find<int(uint64_t*, size_t)>("cuMemAlloc_v2")(&memory, 8192), 0);
  const auto callOnDevice = [&](wick_aot_state& s, int64_t rows) {
    const std::vector<Tensor> in = inputs(rows), out = outputsFor(model, s, in);
    auto [given, taken] = placed(memory, in, out);
    return model.forward(&s, given.data(), taken.data());
  };
  auto* begin = fakes_.find<int(void*, int)>("cuStreamBeginCapture_v2");
  auto* end = fakes_.find<int(void*, void**)>("cuStreamEndCapture");
  ASSERT_EQ(callOnDevice(state, 2), WICK_AOT_OK) << state.error;
  ASSERT_EQ(begin(stream, 1), 0);
  ASSERT_EQ(callOnDevice(state, 2), WICK_AOT_OK) << state.error;
  ASSERT_EQ(end(stream, &graph), 0);
  // With more rows cuBLASLt wants more memory.
  ASSERT_EQ(callOnDevice(state, 6), WICK_AOT_OK) << state.error;
  const std::vector<Tensor> in = inputs(2), out = outputsFor(model, state, in);
  for (size_t i = 0; i < in.size(); ++i) {
    std::memcpy(reinterpret_cast<void*>(memory + 1024 * i), in[i].rawData(),
                static_cast<size_t>(in[i].numel()) * sizeof(float));
  }
  auto* results = reinterpret_cast<char*>(memory + 3 * 1024);
  std::memset(results, 0, 2048);
  ASSERT_EQ(fakes_.find<int(void*, void*)>("cuGraphLaunch")(graph, stream), 0);
  for (size_t o = 0; o < 2; ++o) {
    std::memcpy(out[o].rawData(), results + 1024 * o,
                static_cast<size_t>(out[o].numel()) * sizeof(float));
  }
  expectProducts(in, out);
  fakes_.find<int(void*)>("cuGraphExecDestroy")(graph);

  // While a stream is captured no memory is taken.
  wick_aot_state other;
  ASSERT_EQ(model.init(&other, nullptr), WICK_AOT_OK) << other.error;
  models().workshop.find<int(wick_aot_state*, void*)>("sized_set_stream")(&other, stream);
  ASSERT_EQ(begin(stream, 1), 0);
  EXPECT_EQ(callOnDevice(other, 6), WICK_AOT_ARGUMENT);
  EXPECT_THAT(other.error, HasSubstr("sized: the stream is captured, and sizes are new"));
  const std::vector<Tensor> of_host = inputs(6), results_there = outputsFor(model, other, of_host);
  EXPECT_THAT(call(model, other, of_host, results_there),
              HasSubstr("input 0 (x): the stream is captured, so expected memory of the device"));
  end(stream, &graph);
  fakes_.find<int(void*)>("cuGraphExecDestroy")(graph);
  model.free(&state);
  model.free(&other);
  fakes_.find<int(uint64_t)>("cuMemFree_v2")(memory);
  fakes_.find<int(void*)>("cuStreamDestroy_v2")(stream);
  EXPECT_EQ(fakes_.count("fake_allocations"), 0);
}

TEST_F(CudaAotRunTest, StatesShareAndAreIndependent) {
  const Workshop::Model model = models().workshop.load("products");
  wick_aot_state a, b;
  ASSERT_EQ(model.init(&a, nullptr), WICK_AOT_OK);
  ASSERT_EQ(model.init(&b, nullptr), WICK_AOT_OK);
  const std::vector<Tensor> in = inputs(), out = outputsFor(model, a, in);
  ASSERT_EQ(call(model, a, in, out), "");
  model.free(&a);
  ASSERT_EQ(call(model, b, in, out), "");
  expectProducts(in, out);
  model.free(&b);
  EXPECT_EQ(fakes_.count("fake_allocations"), 0);
}

TEST_F(CudaAotRunTest, FailuresOfTheStartAreTold) {
  const Workshop::Model model = models().workshop.load("products");
  wick_aot_state state;
  const auto fails = [&](const char* function, int after, int code, const char* message) {
    fakes_.fail(function, after);
    EXPECT_EQ(model.init(&state, nullptr), code) << function;
    EXPECT_THAT(wick_aot_error(&state), HasSubstr(message)) << function;
    model.free(&state);
    EXPECT_EQ(fakes_.count("fake_allocations"), 0) << function;
  };
  fails("cuDevicePrimaryCtxRetain", 0, WICK_AOT_MEMORY, "opening the device: out of memory");
  fails("cuMemAlloc_v2", 0, WICK_AOT_MEMORY, "products: CUDA: memory for the model: out of memory");
  fails("cuMemAlloc_v2", 1, WICK_AOT_MEMORY, "memory for libraries: out of memory");
  fakes_.find<void(int, int, int)>("fake_device")(0, 9, 0);
  EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_DEVICE);
  EXPECT_THAT(wick_aot_error(&state), HasSubstr("products: there is no CUDA device"));
}

TEST_F(CudaAotRunTest, FailuresOfCallsAreTold) {
  const Workshop::Model model = models().workshop.load("products");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK);
  const std::vector<Tensor> in = inputs(), out = outputsFor(model, state, in);
  fakes_.fail("cuMemcpyHtoDAsync_v2");
  EXPECT_THAT(call(model, state, in, out),
              HasSubstr("copying an input: a failure (CUDA_ERROR_FAKE)"));
  fakes_.fail("cuStreamSynchronize");
  EXPECT_THAT(call(model, state, in, out), HasSubstr("waiting: a failure"));
  // A call that cannot be recorded is run.
  fakes_.fail("cuStreamBeginCapture_v2");
  ASSERT_EQ(call(model, state, in, out), "");
  expectProducts(in, out);
  ASSERT_EQ(call(model, state, in, out), "");
  expectProducts(in, out);
  model.free(&state);
}

// Set by the kernel of the test below.
int64_t* flag_of_model = nullptr;

TEST_F(CudaAotRunTest, KernelsComplain) {
  if (!models().with_kernels) GTEST_SKIP() << "NVRTC is not there, so no kernel can be built";
  const Workshop::Model model = models().workshop.load("lookup");
  wick_aot_state state;
  ASSERT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
  const std::vector<Tensor> in = {tensorOf("4xi64", 1), tensorOf("5x3xf32", 2)};
  const std::vector<Tensor> out = outputsFor(model, state, in);
  const int launches = fakes_.count("fake_launches");
  ASSERT_EQ(call(model, state, in, out), "");
  EXPECT_EQ(fakes_.count("fake_launches") - launches, 1);
  // The flag is the one number of the host that kernels see.
  Dl_info about;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(model.init), &about), 0);
  void* library = dlopen(about.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  auto* flag =
      reinterpret_cast<int64_t (*)(const wick_aot_state*)>(dlsym(library, "wick_aot_cuda_flag"));
  auto* wait = reinterpret_cast<int (*)(wick_aot_state*)>(dlsym(library, "lookup_wait"));
  flag_of_model = reinterpret_cast<int64_t*>(flag(&state));
  fakes_.find<void(void (*)(const char*, int64_t))>("fake_on_launch")(
      [](const char*, int64_t) { *flag_of_model = 1; });
  EXPECT_THAT(call(model, state, in, out), HasSubstr("index out of range"));
  fakes_.find<void(void (*)(const char*, int64_t))>("fake_on_launch")(nullptr);
  EXPECT_EQ(call(model, state, in, out), "");
  *flag_of_model = 1;
  EXPECT_EQ(wait(&state), WICK_AOT_RAISED);
  EXPECT_EQ(wait(&state), WICK_AOT_OK);
  model.free(&state);

  // Devices that the model has no code for.
  fakes_.find<void(int, int, int)>("fake_device")(1, 7, 5);
  EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_DEVICE);
  EXPECT_THAT(
      wick_aot_error(&state),
      HasSubstr("lookup: the model was built for sm_80, sm_90, compute_90, which this device "
                "(Fake, sm_75) does not run"));
  // A later one compiles PTX, one of a known generation takes machine code.
  for (const int major : {8, 12}) {
    fakes_.find<void(int, int, int)>("fake_device")(1, major, 6);
    EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_OK) << state.error;
    model.free(&state);
  }
  fakes_.fail("cuModuleLoadData");
  EXPECT_EQ(model.init(&state, nullptr), WICK_AOT_DEVICE);
  EXPECT_THAT(wick_aot_error(&state), HasSubstr("loading the kernels"));
}

}  // namespace
}  // namespace wick::cuda_test
