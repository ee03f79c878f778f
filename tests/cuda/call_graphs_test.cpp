// Calls that are repeated as graphs, without a GPU: the fake driver's graphs do what was queued.
#include "runtime/cuda/call_graphs.h"

#include <gtest/gtest.h>

#include "autograd/tape.h"
#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "frontend/compile.h"
#include "ir/function.h"
#include "runtime/call.h"
#include "runtime/cuda/captured_pieces.h"
#include "runtime/cuda/compiler.h"
#include "runtime/cuda/device.h"
#include "runtime/device_moves.h"
#include "runtime/fusion/elements.h"
#include "runtime/module_builder.h"
#include "runtime/repeats.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"
#include "tests/error_text.h"

namespace wick::cuda::call_graphs_test {
namespace {

using testing_errors::errorOf;

Tensor numbers(const std::vector<double>& values) {
  return onDevice(values);
}
std::vector<double> read(const Tensor& t) {
  return elementsOf<double>(t);
}
std::vector<double> read(const IValue& v) {
  return read(v.toTensor());
}

class CallGraphs : public testing::Test {
 protected:
  ~CallGraphs() override { dropCallGraphs(deviceAt(0)); }

  GraphFunction& define(const std::string& source) {
    unit_ = compileSource(source);
    return dynamic_cast<GraphFunction&>(*unit_->findFunction("__torch__.f"));
  }
  IValue call(GraphFunction& f, std::vector<IValue> arguments) {
    return callFunction(f, std::move(arguments));
  }
  // What happened since the last question.
  CallGraphStatistics since() {
    const CallGraphStatistics now = callGraphStatistics();
    const CallGraphStatistics news{now.captured - known_.captured, now.launched - known_.launched,
                                   now.refused - known_.refused};
    known_ = now;
    return news;
  }

  FakeDriver driver_;
  const GradModeGuard no_gradients_{false};
  std::shared_ptr<CompilationUnit> unit_;
  CallGraphStatistics known_ = callGraphStatistics();
};

constexpr const char* kCopies = R"(
def f(x: Tensor, n: int):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    c = torch.empty_like(x).copy_(b)
    return c, a, n + 1
)";

TEST_F(CallGraphs, TheThirdCallIsCaptured) {
  GraphFunction& f = define(kCopies);
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 2; ++i) call(f, {IValue(x), IValue(int64_t{4})});
  EXPECT_EQ(since().captured, 0);
  const IValue third = call(f, {IValue(x), IValue(int64_t{4})});
  EXPECT_EQ(read(third.elements()[0]), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(third.elements()[2].toInt(), 5);
  CallGraphStatistics news = since();
  EXPECT_EQ(news.captured, 1);
  EXPECT_EQ(news.launched, 1);
  // The elements are read when the graph runs.
  x.copyFrom(numbers({7, 8, 9}));
  const IValue fourth = call(f, {IValue(x), IValue(int64_t{4})});
  EXPECT_EQ(read(fourth.elements()[0]), (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(read(fourth.elements()[1]), (std::vector<double>{7, 8, 9}));
  // Earlier results are the caller's.
  EXPECT_EQ(read(third.elements()[0]), (std::vector<double>{1, 2, 3}));
  news = since();
  EXPECT_EQ(news.captured, 0);
  EXPECT_EQ(news.launched, 1);
}

TEST_F(CallGraphs, TensorsElsewhereAreCopiedFirst) {
  GraphFunction& f = define(kCopies);
  const Tensor x = numbers({1, 2, 3}), y = numbers({4, 5, 6}), z = numbers({7, 8, 9});
  for (int i = 0; i < 3; ++i) call(f, {IValue(x), IValue(int64_t{0})});
  EXPECT_EQ(since().captured, 1);
  EXPECT_EQ(read(call(f, {IValue(y), IValue(int64_t{0})}).elements()[0]),
            (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(since().captured, 1);
  EXPECT_EQ(read(call(f, {IValue(z), IValue(int64_t{0})}).elements()[0]),
            (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(read(call(f, {IValue(x), IValue(int64_t{0})}).elements()[0]),
            (std::vector<double>{1, 2, 3}));
  const CallGraphStatistics news = since();
  EXPECT_EQ(news.captured, 0);
  EXPECT_EQ(news.launched, 2);
}

TEST_F(CallGraphs, OtherNumbersAndSizesAreOtherGraphs) {
  GraphFunction& f = define(kCopies);
  const Tensor x = numbers({1, 2, 3}), longer = numbers({1, 2, 3, 4});
  for (int i = 0; i < 3; ++i) call(f, {IValue(x), IValue(int64_t{1})});
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(call(f, {IValue(x), IValue(int64_t{2})}).elements()[2].toInt(), 3);
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(read(call(f, {IValue(longer), IValue(int64_t{2})}).elements()[0]).size(), 4);
  }
  EXPECT_EQ(since().captured, 3);
  EXPECT_EQ(call(f, {IValue(x), IValue(int64_t{1})}).elements()[2].toInt(), 2);
  EXPECT_EQ(since().launched, 1);
}

TEST_F(CallGraphs, WhatLooksAtElementsIsRun) {
  GraphFunction& f = define(R"(
def f(x: Tensor):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    if float(b[0]) > 1.0:
        return torch.empty_like(x).copy_(b)
    return a
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(read(call(f, {IValue(x)})), (std::vector<double>{1, 2, 3}));
  }
  const CallGraphStatistics news = since();
  EXPECT_EQ(news.captured, 0);
  EXPECT_GE(news.refused, 1);
  EXPECT_LE(news.refused, 3);
  EXPECT_FALSE(isCapturing());
}

TEST_F(CallGraphs, WritesToArgumentsAreNotRepeated) {
  GraphFunction& f = define(R"(
def f(x: Tensor):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    c = torch.empty_like(x).copy_(b)
    x.copy_(torch.empty_like(x).copy_(c))
    return c
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 6; ++i) call(f, {IValue(x)});
  const CallGraphStatistics news = since();
  EXPECT_EQ(news.captured, 0);
  EXPECT_EQ(news.refused, 0);
}

TEST_F(CallGraphs, ResultsThatAreArgumentsAreNotRepeated) {
  GraphFunction& f = define(R"(
def f(x: Tensor):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    c = torch.empty_like(x).copy_(b)
    return c, x
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(call(f, {IValue(x)}).elements()[1].toTensor().isSame(x));
  }
  EXPECT_EQ(since().captured, 0);
}

TEST_F(CallGraphs, ErrorsComeFromTheProgram) {
  GraphFunction& f = define(R"(
def f(x: Tensor, n: int):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    if n > 2:
        raise ValueError("too many")
    return torch.empty_like(x).copy_(b)
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 5; ++i) {
    const std::string error = errorOf([&] { call(f, {IValue(x), IValue(int64_t{3})}); });
    EXPECT_NE(error.find("too many"), std::string::npos) << error;
    EXPECT_FALSE(isCapturing());
  }
  for (int i = 0; i < 5; ++i) call(f, {IValue(x), IValue(int64_t{1})});
  EXPECT_EQ(since().launched, 3);
}

TEST_F(CallGraphs, WhatComesFromTheCpuIsCopiedThereOnce) {
  GraphFunction& f = define(R"(
def f(x: Tensor, n: int):
    a = torch.empty_like(x).copy_(x)
    steps = torch.arange(n, device=x.device)
    numbers = torch.tensor([0.5, 1.5], device=x.device, dtype=torch.double)
    return torch.empty_like(x).copy_(a), torch.empty_like(steps).copy_(steps), numbers
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 3; ++i) call(f, {IValue(x), IValue(int64_t{4})});
  EXPECT_EQ(since().captured, 1);
  const uint64_t copies = driver_.state().copies_to_device;
  for (int i = 0; i < 3; ++i) {
    const IValue result = call(f, {IValue(x), IValue(int64_t{4})});
    EXPECT_EQ(driver_.state().copies_to_device, copies);
    const Tensor steps = moveTo(result.elements()[1].toTensor(), Device());
    EXPECT_EQ(std::vector<int64_t>(steps.data<int64_t>(), steps.data<int64_t>() + 4),
              (std::vector<int64_t>{0, 1, 2, 3}));
    EXPECT_EQ(read(result.elements()[2]), (std::vector<double>{0.5, 1.5}));
  }
  EXPECT_EQ(since().launched, 3);
}

TEST_F(CallGraphs, ManyBytesFromTheCpuAreNotKept) {
  GraphFunction& f = define(R"(
def f(x: Tensor, n: int):
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    return torch.empty_like(x).copy_(b), torch.arange(n, device=x.device).size(0)
)");
  const Tensor x = numbers({1, 2, 3});
  const int64_t many = int64_t{5} << 20;
  for (int i = 0; i < 6; ++i) call(f, {IValue(x), IValue(many)});
  EXPECT_EQ(since().captured, 0);
}

// A call's forks.
constexpr const char* kForks = R"(
def branch(x: Tensor):
    a = torch.empty_like(x).copy_(x)
    return torch.empty_like(x).copy_(a)
def f(x: Tensor):
    first = torch.jit.fork(branch, x)
    second = torch.jit.fork(branch, x)
    a = torch.empty_like(x).copy_(x)
    b = torch.jit.wait(first)
    c = torch.jit.wait(second)
    return torch.empty_like(x).copy_(a), torch.empty_like(b).copy_(b), c
)";

TEST_F(CallGraphs, ForksAreQueuedBesideTheirCaller) {
  GraphFunction& f = define(kForks);
  const Tensor x = numbers({1, 2, 3});
  const uint64_t waits = driver_.state().waits;
  const IValue result = call(f, {IValue(x)});
  // One before each fork, one behind.
  EXPECT_EQ(driver_.state().waits - waits, 4);
  for (const IValue& v : result.elements()) EXPECT_EQ(read(v), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(currentStream(0), nullptr);
}

TEST_F(CallGraphs, ForksAreBranchesOfTheGraph) {
  GraphFunction& f = define(kForks);
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 3; ++i) call(f, {IValue(x)});
  EXPECT_EQ(since().launched, 1);
  EXPECT_EQ(driver_.state().branches_captured, 2);
  x.copyFrom(numbers({7, 8, 9}));
  const uint64_t waits = driver_.state().waits;
  const IValue result = call(f, {IValue(x)});
  for (const IValue& v : result.elements()) EXPECT_EQ(read(v), (std::vector<double>{7, 8, 9}));
  EXPECT_EQ(driver_.state().waits, waits);
}

TEST_F(CallGraphs, ForksThatNobodyWaitsForEndWithTheCall) {
  GraphFunction& f = define(R"(
def branch(x: Tensor):
    return torch.empty_like(x).copy_(x)
def f(x: Tensor):
    first = torch.jit.fork(branch, x)
    a = torch.empty_like(x).copy_(x)
    b = torch.empty_like(x).copy_(a)
    return torch.empty_like(x).copy_(b)
)");
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 4; ++i) EXPECT_EQ(read(call(f, {IValue(x)})), (std::vector<double>{1, 2, 3}));
  EXPECT_FALSE(isCapturing());
}

// Tuples that hold one tuple twice, and so on.
TEST(Elements, AreLookedAtForABoundedTime) {
  const Tensor x = Tensor::zeros({1}, DType::Float);
  IValue tower(makeTuple({IValue(x)}));
  for (int i = 0; i < 60; ++i) tower = IValue(makeTuple({tower, tower}));
  size_t seen = 0;
  EXPECT_FALSE(allElements(tower, [&](const IValue&) { return ++seen > 0; }));
  EXPECT_TRUE(allElements(IValue(makeTuple({IValue(x), IValue(makeTuple({IValue(x)}))})),
                          [](const IValue& v) { return v.isTensor(); }));
}

TEST_F(CallGraphs, ErrorsOfForksComeWhereTheyAreAwaited) {
  GraphFunction& f = define(R"(
def branch(x: Tensor):
    if x.size(0) > 2:
        raise ValueError("too long")
    return torch.empty_like(x).copy_(x)
def f(x: Tensor, y: Tensor):
    first = torch.jit.fork(branch, x)
    if y.size(0) > 2:
        raise ValueError("the caller's")
    return torch.jit.wait(first)
)");
  const Tensor x = numbers({1, 2, 3}), y = numbers({1});
  for (int i = 0; i < 4; ++i) {
    EXPECT_NE(errorOf([&] {
                call(f, {IValue(x), IValue(x)});
              }).find("the caller's"),
              std::string::npos);
    EXPECT_NE(errorOf([&] {
                call(f, {IValue(x), IValue(y)});
              }).find("too long"),
              std::string::npos);
    EXPECT_EQ(read(call(f, {IValue(y), IValue(y)})), (std::vector<double>{1}));
  }
  EXPECT_EQ(currentStream(0), nullptr);
}

// Where somebody writes to what a fork reads, the order is that of the program.
TEST_F(CallGraphs, ForksOfWhatIsWrittenAreNotBesideTheirCaller) {
  for (const std::string body : {
           "    first = torch.jit.fork(branch, y)\n    y.copy_(x)\n",
           "    y.copy_(x)\n    first = torch.jit.fork(writer, y)\n",
       }) {
    GraphFunction& f = define(R"(
def branch(x: Tensor):
    return torch.empty_like(x).copy_(x)
def writer(x: Tensor):
    return x.copy_(torch.empty_like(x).copy_(x))
def f(x: Tensor):
    y = torch.empty_like(x).copy_(x)
)" + body + "    return torch.jit.wait(first)\n");
    const uint64_t waits = driver_.state().waits;
    const Tensor x = numbers({1, 2, 3});
    EXPECT_EQ(read(call(f, {IValue(x)})), (std::vector<double>{1, 2, 3}));
    EXPECT_EQ(driver_.state().waits, waits) << body;
  }
}

// Work whose memory is known.
TEST_F(CallGraphs, PiecesThatDoNotDependOnEachOtherAreBranches) {
  CudaDevice& device = enter({DeviceType::CUDA, 0});
  Stream stream = nullptr;
  ASSERT_EQ(driver().createStream(&stream, 1), 0);
  Capture capture(device, stream);
  // Whether the piece is a branch.
  const auto branches = [&](MemoryRange read, MemoryRange write, bool may = true) {
    const CapturedPiece piece({&read, 1}, {&write, 1}, may);
    driver().setBytes(0, 0, 0, piece.stream());
    return piece.stream() != stream;
  };
  FakeState& state = driver_.state();
  EXPECT_FALSE(branches({0, 8}, {8, 16}));  // nothing to be beside of
  EXPECT_TRUE(branches({0, 8}, {16, 24}));  // the second product of a step
  uint64_t waits = state.waits;
  EXPECT_FALSE(branches({8, 24}, {24, 32}, false));  // what reads both waits for the branch
  EXPECT_EQ(state.waits, waits + 1);
  EXPECT_FALSE(branches({24, 32}, {32, 40}));  // the next step's first
  EXPECT_TRUE(branches({0, 8}, {40, 48}));     // and the second, which needs nothing of this step
  EXPECT_TRUE(branches({40, 48}, {48, 56}));   // behind it in the branch
  EXPECT_FALSE(branches({32, 40}, {4, 5}));    // behind the last
  waits = state.waits;
  EXPECT_FALSE(branches({60, 64}, {46, 47}, false));  // writes what the branch has written and read
  EXPECT_EQ(state.waits, waits + 1);
  EXPECT_FALSE(branches({60, 64}, {52, 53}, false));
  EXPECT_EQ(state.waits, waits + 1);  // it waits for that already
  currentStream(0);                   // something else may be queued
  EXPECT_FALSE(branches({60, 64}, {72, 80}));
  for (int i = 0; i < 200; ++i) branches({60, 64}, {100 + i, 101 + i});
  const Graph graph = capture.end();
  ASSERT_NE(graph, nullptr);
  driver().destroyGraph(graph);
  // Without a capture work goes to the thread's stream.
  const CapturedPiece piece({}, {}, true);
  EXPECT_EQ(piece.stream(), nullptr);
}

TEST_F(CallGraphs, TheirMemoryIsTheLastReserve) {
  GraphFunction& f = define(kCopies);
  const Tensor x = numbers({1, 2, 3});
  for (int i = 0; i < 4; ++i) call(f, {IValue(x), IValue(int64_t{0})});
  EXPECT_EQ(since().captured, 1);
  // All but what the graph holds.
  const Tensor most = Tensor::empty(DimVector{(int64_t{233} << 20)}, DType::Byte, kCuda);
  EXPECT_EQ(read(call(f, {IValue(x), IValue(int64_t{0})}).elements()[0]),
            (std::vector<double>{1, 2, 3}));
  const Tensor rest = Tensor::empty(DimVector{(int64_t{20} << 20)}, DType::Byte, kCuda);
  EXPECT_FALSE(dropCallGraphs(deviceAt(0)));
}

// Methods, whose modules they may write to.
class MethodGraphs : public CallGraphs {
 protected:
  static constexpr const char* kStep = R"(def step(self, x: Tensor) -> Tensor:
    a = torch.empty_like(x).copy_(self.w)
    with torch.no_grad():
        self.w.copy_(x)
        self.kept[0].copy_(a)
    return torch.empty_like(x).copy_(a)
)";
  static wick::Module moduleWith(const std::string& method) {
    ModuleBuilder builder("Net");
    builder.registerParameter("w", Tensor::zeros({2}, DType::Double));
    builder.registerAttribute("kept", types::List(types::Tensor()),
                              IValue(makeTensorList({Tensor::zeros({2}, DType::Double)})));
    builder.registerAttribute("calls", types::Int(), IValue(int64_t{0}));
    builder.registerAttribute("name", types::String(), IValue("first"));
    builder.define(method);
    const wick::Module module = builder.build();
    const IValue object(module.object());
    moveTensors({&object, 1}, kCuda);
    return module;
  }
  static Tensor kept(const wick::Module& module) {
    return module.object()->attr("kept").elements()[0].toTensor();
  }
  static std::vector<double> step(const wick::Module& module, const Tensor& x) {
    return read(module.run("step", {IValue(x)}));
  }
};
using Doubles = std::vector<double>;

TEST_F(MethodGraphs, WritesToTheModuleAreRepeated) {
  const wick::Module module = moduleWith(kStep);
  const Tensor w = module.parameters()[0].second;
  Doubles before = {0, 0};
  for (int i = 0; i < 8; ++i) {
    const Doubles now = {i + 1.0, i + 2.0};
    const uint32_t version = w.storage()->version();
    const Tensor x = numbers(now);
    EXPECT_EQ(step(module, x), before);
    EXPECT_EQ(read(w), now);
    EXPECT_EQ(read(kept(module)), before);
    // Whoever saved the tensor for a gradient is to know.
    EXPECT_NE(w.storage()->version(), version);
    before = now;
  }
  EXPECT_GE(since().launched, 5);
}

TEST_F(MethodGraphs, ForkedMethodsAreBranches) {
  const wick::Module module = moduleWith(R"(def branch(self, x: Tensor) -> Tensor:
    a = torch.empty_like(x).copy_(self.w)
    return torch.empty_like(x).copy_(a)
def step(self, x: Tensor) -> Tensor:
    first = torch.jit.fork(self.branch, x)
    a = torch.empty_like(x).copy_(x)
    b = torch.jit.wait(first)
    return torch.empty_like(b).copy_(b)
)");
  module.parameters()[0].second.copyFrom(numbers({5, 6}));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(step(module, numbers({1, 2})), (Doubles{5, 6}));
  EXPECT_GE(since().launched, 2);
  EXPECT_GE(driver_.state().branches_captured, 1);
}

TEST_F(MethodGraphs, OtherTensorsAndValuesAreOtherGraphs) {
  const wick::Module module = moduleWith(kStep);
  const Tensor x = numbers({1, 2});
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 2);
  // The graph would go on with the old one.
  module.object()->setAttr("w", IValue(numbers({5, 6})));
  EXPECT_EQ(step(module, x), (Doubles{5, 6}));
  EXPECT_EQ(step(module, x), (Doubles{1, 2}));
  EXPECT_EQ(since().launched, 0);
  EXPECT_EQ(step(module, x), (Doubles{1, 2}));
  EXPECT_EQ(since().launched, 1);
  module.object()->setAttr("calls", IValue(int64_t{1}));
  step(module, x);
  module.object()->setAttr("name", IValue("second"));
  step(module, x);
  EXPECT_EQ(since().launched, 0);
  module.object()->setAttr("calls", IValue(int64_t{0}));
  module.object()->setAttr("name", IValue("first"));
  step(module, x);
  EXPECT_EQ(since().launched, 1);
}

TEST_F(MethodGraphs, WhatIsLongToCompareIsRunEachTime) {
  const wick::Module module = moduleWith(kStep);
  const Tensor x = numbers({1, 2});
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 2);
  module.object()->setAttr("name", IValue(std::string(1 << 20, 'a')));
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 0);
}

TEST_F(MethodGraphs, ArgumentsThatTheModuleHoldsAreNotCopied) {
  const wick::Module module = moduleWith(kStep);
  const Tensor x = numbers({1, 2}), y = numbers({3, 4});
  for (int i = 0; i < 4; ++i) step(module, x);
  for (int i = 0; i < 2; ++i) step(module, y);
  EXPECT_EQ(since().launched, 4);
  const Tensor w = module.parameters()[0].second;
  EXPECT_EQ(read(module.run("step", {IValue(w.detach())})), (Doubles{3, 4}));
  EXPECT_EQ(since().launched, 0);
}

TEST_F(MethodGraphs, WhatWouldHappenOnceIsNotRepeated) {
  for (const std::string body : {
           "    self.calls = self.calls + 1\n",
           "    self.kept.append(x)\n    self.kept.pop(0)\n",
           "    self.kept[0].unsqueeze_(0)\n    self.kept[0].squeeze_(0)\n",
           "    if x.dim() == 0:\n        print(x)\n",
           "    x.copy_(self.w)\n",
           "    with torch.autograd.profiler.record_function('f'):\n        pass\n",
           "    f = [torch.jit.fork(torch.neg, x)]\n",
       }) {
    const wick::Module module = moduleWith("def step(self, x: Tensor) -> Tensor:\n" + body +
                                           "    a = torch.empty_like(x).copy_(self.w)\n"
                                           "    b = torch.empty_like(x).copy_(a)\n"
                                           "    return torch.empty_like(x).copy_(b)\n");
    const Tensor x = numbers({1, 2});
    if (body.find("fork") == std::string::npos) {
      for (int i = 0; i < 6; ++i) step(module, x);
    }
    EXPECT_EQ(since().launched, 0) << body;
    EXPECT_EQ(lastingEffect(module.method("step")).empty(), body.find("x.copy_") != body.npos)
        << body;
  }
}

TEST_F(MethodGraphs, ResultsThatTheModuleHoldsAreNotRepeated) {
  const wick::Module module = moduleWith(R"(def step(self, x: Tensor) -> Tensor:
    a = torch.empty_like(x).copy_(x)
    self.w.copy_(torch.empty_like(x).copy_(a))
    return self.w
)");
  const Tensor x = numbers({1, 2});
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(module.run("step", {IValue(x)}).toTensor().isSame(module.parameters()[0].second));
  }
  EXPECT_EQ(since().launched, 0);
}

TEST_F(MethodGraphs, GradientsThatSomebodyWaitsForAreNotRepeated) {
  const wick::Module module = moduleWith(kStep);
  const Tensor x = numbers({1, 2});
  const Tensor w = module.parameters()[0].second;
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 2);
  w.setRequiresGrad(true);
  const Ref<autograd::Leaf> leaf = autograd::leafFor(w);
  const uint64_t hook = leaf->addHook(0, [](const Tensor& g) { return g; });
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 0);
  leaf->removeHook(hook);
  for (int i = 0; i < 4; ++i) step(module, x);
  EXPECT_EQ(since().launched, 4);
}

// Kernels of a captured call that do not depend on each other. The fake driver counts launches.
class JointGraphs : public CallGraphs {
 protected:
  static constexpr int kTensors = 40;
  // Of an ordinary call, and of one that comes from a graph.
  std::pair<uint64_t, uint64_t> launchesOf(const std::string& body) {
    ModuleBuilder builder("Net");
    std::vector<Tensor> tensors;
    for (int i = 0; i < kTensors; ++i) tensors.push_back(Tensor::zeros({3, 5}, DType::Float));
    builder.registerAttribute("all", types::List(types::Tensor()), IValue(makeTensorList(tensors)));
    builder.define("def step(self, x: Tensor) -> Tensor:\n" + body + "    return x + 1\n");
    const wick::Module module = builder.build();
    const IValue object(module.object());
    moveTensors({&object, 1}, kCuda);
    const Tensor x = moveTo(Tensor::zeros({3, 5}, DType::Float), kCuda);
    uint64_t ordinary = 0, before = 0;
    for (int i = 0; i < 12; ++i) {
      before = driver_.state().launches;
      module.run("step", {IValue(x)});
      if (i == 1) ordinary = driver_.state().launches - before;
    }
    EXPECT_GT(driver_.state().graph_launches, 0u);
    return {ordinary, driver_.state().launches - before};
  }
};

TEST_F(JointGraphs, TheSameOverOtherMemoryIsOneLaunch) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  const auto [ordinary, together] = launchesOf(R"(    for t in self.all:
        t.mul_(0.5).add_(x)
        t.sub_(torch.exp(t))
)");
  EXPECT_GE(ordinary, 2u * kTensors);
  // Two kernels, each in a few launches, and the result.
  EXPECT_LE(together, 16u);
}

TEST_F(JointGraphs, WhatDependsOnEachOtherStaysInOrder) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  const auto [ordinary, together] = launchesOf(R"(    for i in range(len(self.all) - 1):
        self.all[i + 1].add_(self.all[i])
)");
  EXPECT_EQ(ordinary, uint64_t{kTensors});
  EXPECT_EQ(together, ordinary);
  // Each reads what the next one writes.
  const auto [one_by_one, shifted] = launchesOf(R"(    for i in range(len(self.all) - 1):
        self.all[i].add_(self.all[i + 1])
)");
  EXPECT_EQ(shifted, one_by_one);
}

}  // namespace
}  // namespace wick::cuda::call_graphs_test
