// Machine code for scalar code: the same results, errors and limits as the interpreter's.
#include <gtest/gtest.h>

#include <atomic>
#include <limits>
#include <thread>

#include "frontend/compile.h"
#include "ir/parser.h"
#include "runtime/call.h"
#include "runtime/executor/graph_executor.h"
#include "runtime/interpreter/observer.h"
#include "runtime/jit_mode.h"
#include "runtime/native/native_compiler.h"
#include "tests/native/compare_native.h"

namespace wick::native_test {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

class Native : public testing::Test {
 protected:
  void SetUp() override {
    setenv("WICK_CACHE_DIR", "", 1);
    use(JitMode::Sync, 0);
  }
  static void use(JitMode mode, std::optional<uint64_t> threshold) {
    setJitMode(mode);
    setJitThreshold(threshold);
  }
  static std::shared_ptr<CompilationUnit> unitOf(const std::string& source) {
    return compileSource(source, "test.py");
  }
  static std::string call(const std::shared_ptr<CompilationUnit>& unit,
                          std::vector<IValue> arguments, RunOptions options = {}) {
    options.owner = unit;
    try {
      return callFunction(*unit->functions().back(), std::move(arguments), {}, options).repr();
    } catch (const InternalError&) {
      throw;
    } catch (const Error& error) {
      return error.what();
    }
  }
  static const Code& codeOf(const std::shared_ptr<CompilationUnit>& unit) {
    return GraphExecutor::of(*unit->functions().back()).code();
  }
  // What both engines give; they must agree.
  static std::string both(const std::string& source, const std::vector<IValue>& arguments,
                          const RunOptions& options = {}) {
    setJitMode(JitMode::Off);
    std::string expected = call(unitOf(source), arguments, options);
    setJitMode(JitMode::Sync);
    auto unit = unitOf(source);
    EXPECT_EQ(call(unit, arguments, options), expected) << source;
    EXPECT_NE(codeOf(unit).native(), nullptr) << source;
    return expected;
  }
};

TEST_F(Native, RandomProgramsAgree) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    std::string difference = compareNative(seed);
    ASSERT_EQ(difference, "");
  }
}

// Constant operands are translated differently from others.
TEST_F(Native, IntegersAtTheEdges) {
  const int64_t values[] = {
      0,     1,      -1,        2, -2, 7, -7, 16, int64_t{1} << 32, (int64_t{1} << 32) - 1,
      kMost, kLeast, kLeast + 1};
  std::string list =
      "[0, 1, -1, 2, -2, 7, -7, 16, 4294967296, 4294967295, 9223372036854775807, "
      "-9223372036854775807 - 1, -9223372036854775807]";
  for (const char* op : {"+", "-", "*", "&", "|", "^"}) {
    both("def f() -> List[int]:\n    out: List[int] = []\n    values = " + list +
             "\n    for a in values:\n        for b in values:\n            out.append(a " + op +
             " b)\n    return out\n",
         {});
  }
  for (const char* op : {"//", "%"}) {
    both("def f() -> List[int]:\n    out: List[int] = []\n    values = " + list +
             "\n    for a in values:\n        for b in values:\n            if b != 0:\n"
             "                out.append(a " +
             op + " b)\n    return out\n",
         {});
    for (int64_t b : values) {
      std::string divisor = b == kLeast ? "(-9223372036854775807 - 1)" : std::to_string(b);
      std::string source =
          "def f(a: int) -> int:\n    return a " + std::string(op) + " " + divisor + "\n";
      for (int64_t a : values) {
        both(source, {a});
        if (b == 0) break;
      }
    }
  }
}

TEST_F(Native, FloatsAtTheEdges) {
  std::string list =
      "[0.0, -0.0, 1.5, -1.5, 3.0, -3.0, 1e300, 9.3e18, -9.3e18, float('inf'), float('-inf'), "
      "float('nan')]";
  for (const char* op : {"a + b", "a - b", "a * b", "a / b", "a // b", "a % b", "float(a < b)",
                         "float(a <= b)", "float(a == b)", "float(a != b)", "float(int(a))",
                         "float(bool(a))", "1.0 if not a < b else 2.0", "-a"}) {
    both("def f() -> List[float]:\n    out: List[float] = []\n    values = " + list +
             "\n    for a in values:\n        for b in values:\n            out.append(" + op +
             ")\n    return out\n",
         {});
  }
}

TEST_F(Native, ErrorsAndTheirStacksStayTheSame) {
  std::string divides =
      "def g(k: int) -> int:\n    return 10 // k\n"
      "def f(n: int) -> int:\n    s = 0\n    for i in range(n):\n        s += g(5 - i)\n"
      "    return s\n";
  EXPECT_NE(both(divides, {40}).find("division by 0"), std::string::npos);
  std::string raises =
      "def f(n: int) -> int:\n    s = 0\n    for i in range(n):\n        s += i\n"
      "        if s > 100:\n            raise ValueError('too much')\n    return s\n";
  EXPECT_NE(both(raises, {40}).find("too much"), std::string::npos);
  EXPECT_EQ(both(raises, {4}), "6");
  std::string indexes =
      "def f(n: int) -> int:\n    xs = [1, 2, 3]\n    s = 0\n    for i in range(n):\n"
      "        s += xs[i]\n    return s\n";
  EXPECT_NE(both(indexes, {4}).find("IndexError: list index out of range"), std::string::npos);
}

TEST_F(Native, TensorsAndObjectsStayInTheFrame) {
  std::string source =
      "def f(x: Tensor, n: int) -> Tuple[Tensor, int, List[Tensor], Optional[int]]:\n"
      "    kept: List[Tensor] = []\n    last: Optional[int] = None\n    y = x\n    s = 0\n"
      "    for i in range(n):\n        z = y + i\n        if i % 3 == 0:\n"
      "            kept.append(z)\n            last = i\n        elif i % 3 == 1:\n"
      "            y, z = z, y\n        if z.size(0) > 1:\n            s += z.size(0) * i\n"
      "        text = str(i)\n        s += len(text)\n    return y, s, kept, last\n";
  both(source, {Tensor::zeros({3}, DType::Float), 12});
  both(source, {Tensor::zeros({1}, DType::Float), 0});
  std::string fails =
      "def f(x: Tensor, n: int) -> Tensor:\n    for i in range(n):\n        x = x.view(i + 1)\n"
      "    return x\n";
  EXPECT_NE(both(fails, {Tensor::zeros({1}, DType::Float), 3}).find("view"), std::string::npos);
}

TEST_F(Native, ListsAreWrittenInPlace) {
  std::string source =
      "def f(n: int, k: int) -> Tuple[List[int], List[float], List[bool], List[Optional[int]]]:\n"
      "    a: List[int] = []\n    b: List[float] = []\n    c: List[bool] = []\n"
      "    d: List[Optional[int]] = []\n    for i in range(n):\n        a.append(i * i)\n"
      "        b.append(i / 2)\n        b.append(0.5)\n        c.append(i % 3 == 0)\n"
      "        d.append(None)\n    for i in range(-n, n):\n        a[i] = a[i] + i\n"
      "        b[i] = -b[i]\n        c[i] = not c[i]\n        d[i] = i\n    a[k] = 7\n"
      "    return a, b, c, d\n";
  for (int64_t k : {0, 9, -10}) both(source, {10, k});
  for (int64_t k : {10, -11}) {
    EXPECT_NE(both(source, {10, k}).find("IndexError: list index out of range"), std::string::npos);
  }
  // Each write is a step.
  RunOptions options;
  for (uint64_t steps : {20, 90, 91, 92, 93, 300}) {
    options.max_steps = steps;
    both(source, {10, 0}, options);
  }
}

TEST_F(Native, NumbersBecomeObjects) {
  std::string source =
      "def f(x: Optional[int], y: Optional[int]) -> int:\n"
      "    assert x is not None and y is not None\n    return x + y\n";
  EXPECT_EQ(both(source, {3, 4}), "7");
  EXPECT_NE(both(source, {3, IValue()}).find("AssertionError"), std::string::npos);
}

const char* const kCount =
    "def f(n: int) -> int:\n    s = 0\n    i = 0\n    while i < n:\n        i += 1\n"
    "        s += i % 7\n    return s\n";

TEST_F(Native, StepLimitsAreExact) {
  for (int64_t n : {2, 100, 255, 256, 257, 1000}) {
    RunOptions options;
    // The first iteration is no jump backwards.
    options.max_steps = static_cast<uint64_t>(n - 1);
    EXPECT_EQ(both(kCount, {n}, options).find("limit"), std::string::npos);
    options.max_steps = static_cast<uint64_t>(n - 2);
    EXPECT_NE(both(kCount, {n}, options).find("limit"), std::string::npos);
  }
}

TEST_F(Native, DeadlinesAndInterruptsStopLoops) {
  auto unit = unitOf(kCount);
  call(unit, {1});
  ASSERT_NE(codeOf(unit).native(), nullptr);
  RunOptions timed;
  timed.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
  EXPECT_NE(call(unit, {kMost}, timed).find("time limit"), std::string::npos);
  RunOptions interruptible;
  auto flag = std::make_shared<std::atomic<bool>>(false);
  interruptible.interrupt = flag;
  std::thread other([flag] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    *flag = true;
  });
  EXPECT_NE(call(unit, {kMost}, interruptible).find("interrupted"), std::string::npos);
  other.join();
}

TEST_F(Native, LongLoopsSwitchWhileTheyRun) {
  use(JitMode::Background, 1000);
  auto unit = unitOf(kCount);
  RunOptions timed;
  timed.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  std::atomic<bool> running{true};
  auto flag = std::make_shared<std::atomic<bool>>(false);
  timed.interrupt = flag;
  // Ends the loop once it has its machine code.
  std::thread other([&] {
    while (running && !codeOf(unit).native()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    *flag = true;
  });
  EXPECT_NE(call(unit, {kMost}, timed).find("interrupted"), std::string::npos);
  running = false;
  other.join();
  native::finishBackgroundCompilation();
  EXPECT_NE(codeOf(unit).native(), nullptr);
  EXPECT_EQ(call(unit, {7}), "21");
}

// Stands for machine code: notes where it was entered and leaves at once.
std::vector<uint32_t> entered;
uint32_t leaveAtOnce(IValue*, NativeContext*, uint32_t entry) {
  entered.push_back(entry);
  return entry;
}

TEST_F(Native, TheInterpreterEntersAtStartsAndLoopHeaders) {
  use(JitMode::Sync, kMost);
  auto unit = unitOf(kCount);
  const Code& code = codeOf(unit);
  auto native = std::make_unique<NativeCode>();
  native->function = &leaveAtOnce;
  for (uint32_t i = 0; i < code.instructions().size(); ++i) native->entries.push_back(i);
  code.setNative(std::move(native));
  entered.clear();
  EXPECT_EQ(call(unit, {1000}), call(unitOf(kCount), {1000}));
  ASSERT_GT(entered.size(), 3u);
  EXPECT_EQ(entered[0], 0u);
  for (size_t i = 1; i < entered.size(); ++i) EXPECT_EQ(entered[i], entered[1]);
  EXPECT_GT(entered[1], 0u);
}

TEST_F(Native, ThreadsShareCode) {
  for (JitMode mode : {JitMode::Sync, JitMode::Background}) {
    use(mode, 300);
    auto unit = unitOf(kCount);
    std::vector<std::thread> threads;
    std::atomic<int> wrong{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int i = 0; i < 50; ++i) {
          if (call(unit, {700}) != "2100") ++wrong;
        }
      });
    }
    for (std::thread& t : threads) t.join();
    native::finishBackgroundCompilation();
    EXPECT_EQ(wrong, 0);
    EXPECT_NE(codeOf(unit).native(), nullptr);
  }
}

TEST_F(Native, WatchedRunsAndRunsWithoutJitStayInTheInterpreter) {
  class Observer : public OperatorObserver {
   public:
    void called(const OperatorCall&) override {}
  } observer;
  auto unit = unitOf(kCount);
  RunOptions watched;
  watched.observer = &observer;
  call(unit, {100}, watched);
  EXPECT_EQ(codeOf(unit).native(), nullptr);
  setJitMode(JitMode::Off);
  call(unit, {100});
  EXPECT_EQ(codeOf(unit).native(), nullptr);
}

TEST_F(Native, WhatWouldGainNothingIsDeclined) {
  use(JitMode::Sync, 10);
  auto before = native::nativeStatistics();
  auto unit = unitOf(
      "def f(x: Tensor, n: int) -> Tensor:\n    for i in range(n):\n"
      "        x = torch.relu(torch.abs(torch.neg(torch.sigmoid(x))))\n    return x\n");
  call(unit, {Tensor::zeros({1}, DType::Float), 1000});
  EXPECT_EQ(codeOf(unit).native(), nullptr);
  EXPECT_EQ(native::nativeStatistics().declined, before.declined + 1);
}

TEST_F(Native, WhatIsTooLargeStaysInTheInterpreter) {
  std::string source = "def f(n: int) -> int:\n    s = n\n";
  for (int i = 0; i < 6000; ++i) source += "    s = s * n + " + std::to_string(i) + "\n";
  source += "    return s\n";
  auto before = native::nativeStatistics();
  auto unit = unitOf(source);
  EXPECT_EQ(call(unit, {0}), "5999");
  EXPECT_EQ(codeOf(unit).native(), nullptr);
  EXPECT_EQ(native::nativeStatistics().failed, before.failed + 1);
}

TEST_F(Native, TextsShowWhatACodeBecomes) {
  auto unit = unitOf(kCount);
  EXPECT_NE(native::llvmText(codeOf(unit)).find("define i32 @wick_native_code_"),
            std::string::npos);
  EXPECT_NE(native::assemblyText(codeOf(unit)).find("ret"), std::string::npos);
}

}  // namespace
}  // namespace wick::native_test
