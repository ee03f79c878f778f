// Limits of a run: programs that take memory or time without end are ended, whatever they take it
// for, and the engine goes on working. What they were given stays whole.
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "wick.h"

namespace wick::limits_test {
namespace {

using Clock = std::chrono::steady_clock;

std::string classOfError(const Program& program, const std::string& name,
                         const RunOptions& options) {
  try {
    program.call(name, {}, {}, options);
  } catch (const RuntimeError& e) {
    return e.className() + ": " + e.brief();
  }
  return "no error";
}

RunOptions withMemory(size_t bytes) {
  RunOptions options;
  options.max_memory = bytes;
  return options;
}
RunOptions withTime(int milliseconds) {
  RunOptions options;
  options.deadline = Clock::now() + std::chrono::milliseconds(milliseconds);
  return options;
}

struct Case {
  const char* name;
  const char* body;
};

class MemoryLimit : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Programs, MemoryLimit,
    testing::Values(
        Case{"lists",
             "l: List[List[int]] = []\n    while len(l) >= 0:\n        l.append([1])\n    "
             "print(len(l))"},
        Case{"numbers",
             "l: List[int] = []\n    while len(l) >= 0:\n        l.append(1)\n    print(len(l))"},
        Case{"inserted",
             "l: List[int] = []\n    while len(l) >= 0:\n        l.insert(0, 1)\n"
             "        l.extend(l)\n    print(len(l))"},
        Case{"text",
             "l: List[str] = []\n    while len(l) >= 0:\n        l.append('a' * 100000)\n    "
             "print(len(l))"},
        Case{"joined", "s = 'a'\n    while len(s) > 0:\n        s = s + s\n    print(len(s))"},
        Case{"views",
             "l: List[Tensor] = []\n    x = torch.zeros([1])\n    while len(l) >= 0:\n"
             "        l.append(x[0])\n    print(len(l))"},
        Case{"tensors",
             "l: List[Tensor] = []\n    while len(l) >= 0:\n        l.append(torch.zeros([100]))\n "
             "   print(len(l))"},
        Case{"unbound", "l = torch.zeros([1]).expand([1 << 40]).unbind()\n    print(len(l))"},
        Case{"listed",
             "l: List[float] = torch.zeros([1]).expand([1 << 40]).tolist()\n"
             "    print(len(l))"},
        Case{"tuples",
             "t = (1, [1])\n    l = [t]\n    while len(l) > 0:\n        l.append((2, [2]))\n    "
             "print(len(l))"},
        Case{"objects",
             "n = Chain(None)\n    i = 0\n    while i >= 0:\n        n = Chain(n)\n        i += "
             "1\n    print(n.next is None)"},
        Case{"dims",
             "x = torch.zeros([1])\n    l = [x]\n    while len(l) > 0:\n"
             "        x = x.unsqueeze(0) if x.dim() < 1000 else torch.zeros([1])\n"
             "        l.append(x)\n    print(len(l))"},
        Case{"forks",
             "l: List[Future[int]] = []\n    while len(l) >= 0:\n"
             "        l.append(torch.jit.fork(fine))\n    print(len(l))"},
        Case{"parts", "l = ('a' * 10000000).split('a')\n    print(len(l))"},
        Case{"range", "l = [i for i in range(1 << 40)]\n    print(len(l))"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(MemoryLimit, Ends) {
  const Program program = compile(std::string(R"(
class Chain:
    def __init__(self, next: Optional['Chain']):
        self.next = next
def main() -> None:
    )") + GetParam().body + "\ndef fine() -> int:\n    return len([1, 2, 3])\n");
  for (int i = 0; i < 3; ++i) {
    const std::string error = classOfError(program, "main", withMemory(size_t{32} << 20));
    EXPECT_NE(error.find("memory"), std::string::npos) << error;
    EXPECT_EQ(program.call("fine", {}, {}, withMemory(size_t{32} << 20)).toInt(), 3);
  }
}

// What a run frees it may take again, and what it returns is nobody's debt.
TEST(MemoryLimit, CountsWhatIsHeldAtATime) {
  const Program program = compile(R"(
def turns(n: int) -> Tensor:
    x = torch.zeros([1000])
    for i in range(n):
        x = torch.zeros([100000]) + float(i)
        s = 'a' * 100000
        l = [0] * 10000
    return x
)");
  for (int i = 0; i < 5; ++i) {
    EXPECT_NO_THROW(program.call("turns", {int64_t{1000}}, {}, withMemory(size_t{4} << 20)));
  }
}

// Two runs have limits of their own at the same time.
TEST(MemoryLimit, BelongsToTheRun) {
  const Program program = compile(R"(
def fill(n: int) -> int:
    l: List[str] = []
    for i in range(n):
        l.append('a' * 1000)
    return len(l)
)");
  std::thread other([&] {
    for (int i = 0; i < 20; ++i) {
      EXPECT_THROW(program.call("fill", {int64_t{1} << 40}, {}, withMemory(size_t{4} << 20)),
                   RuntimeError);
    }
  });
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(program.call("fill", {int64_t{10000}}, {}, withMemory(size_t{64} << 20)).toInt(),
              10000);
  }
  other.join();
}

class TimeLimit : public testing::TestWithParam<Case> {};
INSTANTIATE_TEST_SUITE_P(
    Programs, TimeLimit,
    testing::Values(
        Case{"numbers", "i = 0\n    while i >= 0:\n        i = (i + 1) % 1000\n    print(i)"},
        Case{"operators",
             "x = torch.zeros([10])\n    while x.dim() == 1:\n        x = x + 1\n    print(x)"},
        Case{"few_operators",
             "x = torch.zeros([1 << 21])\n    for i in range(1 << 40):\n"
             "        x = torch.sin(x)\n    print(x)"},
        Case{"sum", "x = torch.zeros([1]).expand([1 << 40]).sum()\n    print(x)"},
        Case{"sum_columns", "x = torch.zeros([1, 2]).expand([1 << 40, 2]).sum(0)\n    print(x)"},
        Case{"product_of_sums", "x = torch.ones([1]).expand([1 << 40])\n    print((x * x).sum())"},
        Case{"largest", "x = torch.zeros([1]).expand([1 << 40]).max()\n    print(x)"},
        Case{"where_largest", "x = torch.zeros([1]).expand([1 << 40]).argmax(0)\n    print(x)"},
        Case{"mean", "x = torch.zeros([1]).expand([1 << 40]).var(0)\n    print(x)"},
        Case{"norm", "x = torch.zeros([1]).expand([1 << 40]).norm()\n    print(x)"},
        Case{"all", "x = torch.ones([1]).bool().expand([1 << 40]).all()\n    print(x)"},
        Case{"counted", "x = torch.ones([1]).expand([1 << 40]).count_nonzero()\n    print(x)"},
        Case{"calls", "r = 0\n    while r < (1 << 60):\n        r += deep(3)\n    print(r)"},
        Case{"forks",
             "r = 0\n    while r >= 0:\n        r = torch.jit.wait(torch.jit.fork(deep, 5))\n    "
             "print(r)"},
        Case{"forked", "f = torch.jit.fork(endless)\n    print(torch.jit.wait(f))"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_P(TimeLimit, Ends) {
  const Program program = compile(std::string(R"(
def deep(n: int) -> int:
    r = 0
    for i in range(1 << n):
        r += i % 3
    return r
def endless() -> int:
    i = 0
    while i >= 0:
        i = (i + 1) % 1000
    return i
def main() -> None:
    )") + GetParam().body + "\n");
  // Some operators make a tensor of all elements first, which no memory has room for.
  const std::string error = classOfError(program, "main", withTime(50));
  EXPECT_TRUE(error.find("time limit") != std::string::npos ||
              error.find("not enough memory") != std::string::npos)
      << error;
}

// A limit that is not reached changes no result.
TEST(TimeLimit, NumbersStayTheSame) {
  const Program program = compile(R"(
def f(x: Tensor) -> List[Tensor]:
    y = torch.sigmoid(x) * x + 1
    return [y, y.sum(), y.sum(0), y.softmax(1), y @ y.t(), y.sort()[0], y.cumsum(1), y.var(1)]
)");
  Tensor x = Tensor::empty({300, 700}, DType::Float);
  for (int64_t i = 0; i < x.numel(); ++i) x.data<float>()[i] = static_cast<float>(i % 977) / 311;
  const IValue expected = program.call("f", {x});
  RunOptions options = withTime(3600'000);
  options.max_memory = size_t{1} << 40;
  EXPECT_TRUE(program.call("f", {x}, {}, options).equals(expected));
}

}  // namespace
}  // namespace wick::limits_test
