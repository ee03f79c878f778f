// Programs that try to corrupt, stall or starve the process by what was added lately: gradients,
// saving, parts of tensors.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <span>

#include "core/budget.h"
#include "ir/graph.h"
#include "ir/parser.h"
#include "tests/runtime/embedding/workload.h"
#include "wick.h"

namespace wick::hostile_test {
namespace {

std::string endOf(const Program& program, const std::string& name, const RunOptions& options = {},
                  std::vector<IValue> arguments = {}) {
  try {
    program.call(name, std::move(arguments), {}, options);
  } catch (const RuntimeError& e) {
    return e.className();
  }
  return "done";
}

struct GradMode {
  GradMode() : before(gradEnabled()) { setGradEnabled(true); }
  ~GradMode() { setGradEnabled(before); }
  const bool before;
};

// What a call finds out about a tensor is kept with the tensor, by all that read it at a time.
TEST(Hostile, ForksRecordGradientsOfOneTensor) {
  const GradMode mode;
  const Program program = compile(R"(
def scaled(x: Tensor) -> Tensor:
    return (x * 2.0).sum()

def of_leaf() -> float:
    x = torch.ones([20000]).requires_grad_(True)
    futures: List[Future[Tensor]] = []
    for i in range(8):
        futures.append(torch.jit.fork(scaled, x))
    sum = torch.zeros([])
    for f in futures:
        sum = sum + torch.jit.wait(f)
    sum.backward()
    g = x.grad
    assert g is not None
    return float(g[0])

def of_view() -> float:
    x = torch.ones([20000]).requires_grad_(True)
    y = x * 1.0
    v = y.view([100, 200])
    y.mul_(1.0)
    futures: List[Future[Tensor]] = []
    for i in range(8):
        futures.append(torch.jit.fork(scaled, v))
    sum = torch.zeros([])
    for f in futures:
        sum = sum + torch.jit.wait(f)
    sum.backward()
    g = x.grad
    assert g is not None
    return float(g[0])
)",
                                  "forks.py");
  for (int i = 0; i < workload(200); ++i) {
    ASSERT_EQ(program.call("of_leaf", {}).toDouble(), 16.0);
    ASSERT_EQ(program.call("of_view", {}).toDouble(), 16.0);
  }
}

TEST(Hostile, GraphsOfGradientsCountAsMemory) {
  const GradMode mode;
  const Program program = compile(R"(
def many() -> Tensor:
    x = torch.ones([1]).requires_grad_(True)
    y = x
    while True:
        y = y * 2.0
    return y

def deep() -> Tensor:
    x = torch.ones([1]).requires_grad_(True)
    y = x
    for i in range(300000):
        y = y * 1.0
    y.backward()
    g = x.grad
    assert g is not None
    return g
)",
                                  "graphs.py");
  RunOptions options;
  options.max_memory = size_t{32} << 20;
  EXPECT_EQ(endOf(program, "many", options), "MemoryError");
  EXPECT_EQ(program.call("deep", {}).tensor().item<double>(), 1.0);
}

// One long text, a hundred thousand times.
TEST(Hostile, SavingWritesALongTextOnce) {
  const IValue text(std::string(1'000'000, 'a'));
  ModuleBuilder builder("Holder");
  builder.registerAttribute("texts", types::List(types::String()),
                            IValue(makeList(types::String(), std::vector<IValue>(100'000, text))));
  builder.define("def forward(self) -> int:\n    return len(self.texts)\n");
  const std::string bytes = builder.build().saveToString();
  EXPECT_LT(bytes.size(), size_t{4} << 20);
  Module again = loadFromMemory(std::as_bytes(std::span(bytes)));
  EXPECT_EQ(again.forward({}).toInt(), 100'000);
  EXPECT_EQ(again.attr("texts").elements()[99'999].toString(), text.toString());
  EXPECT_EQ(again.saveToString(), bytes);
}

// What is written counts, and takes time.
TEST(Hostile, SavingKeepsLimits) {
  std::vector<IValue> texts;
  for (int i = 0; i < 300; ++i) texts.emplace_back(std::string(100'000, static_cast<char>(i)));
  ModuleBuilder builder("Holder");
  builder.registerAttribute("texts", types::List(types::String()),
                            IValue(makeList(types::String(), texts)));
  builder.define("def forward(self) -> int:\n    return len(self.texts)\n");
  const Module holder = builder.build();
  Budget::Bounds bounds;
  bounds.memory = size_t{8} << 20;
  Budget budget(std::move(bounds));
  const BudgetScope scope(&budget);
  EXPECT_THROW(holder.saveToString(), RuntimeError);
}

// An index that is checked must not be another when it is used.
TEST(Hostile, IndicesOfSparseTensorsStayWhileTheyAreUsed) {
  const Program program = compile(R"(
def disturb(indices: Tensor, n: int) -> int:
    for i in range(n):
        indices.fill_(1000000000)
        indices.fill_(1)
    return n

def use(s: Tensor, n: int) -> int:
    found = 0
    for i in range(n):
        try_ = s.to_dense()
        found += try_.numel()
    return found

def main(i: Tensor, v: Tensor, n: int) -> int:
    s = torch.sparse_coo_tensor(i, v, [100, 100])
    a = torch.jit.fork(disturb, i, n)
    b = torch.jit.fork(disturb, i, n)
    return use(s, n) + torch.jit.wait(a) + torch.jit.wait(b)
)",
                                  "sparse.py");
  for (int round = 0; round < 10; ++round) {
    const Tensor i = Tensor::full({2, 20000}, 1, DType::Long);
    const Tensor v = Tensor::full({20000}, 1, DType::Float);
    try {
      program.call("main", {i, v, 50});
    } catch (const RuntimeError&) {
      // An index that was out of range when it was looked at.
    }
  }
}

// A limit of memory may be reached anywhere within the copy of a graph, as gradients make them.
TEST(Hostile, CopiesOfGraphsMayFail) {
  std::string text = "graph(%c : bool):\n";
  for (int i = 0; i < 300; ++i) {
    text += "  prim::If(%c)\n    block0():\n      -> ()\n    block1():\n      -> ()\n";
  }
  const std::shared_ptr<Graph> graph = parseGraph(text + "  return ()\n");
  int failed = 0;
  for (size_t memory = size_t{1} << 16; memory < size_t{1} << 20; memory += 1000) {
    Budget::Bounds bounds;
    bounds.memory = memory;
    Budget budget(std::move(bounds));
    const BudgetScope scope(&budget);
    try {
      graph->copy();
    } catch (const RuntimeError&) {
      ++failed;
    }
  }
  EXPECT_GT(failed, 100);
}

// Which registers are live where is noted in proportion to the text, whatever lives through how many
// branches.
TEST(Hostile, LiveRangesTakeLittleMemory) {
  const auto program = [](int values, int branches) {
    std::string text = "def main(x: int) -> int:\n    y = 0\n";
    for (int i = 0; i < values; ++i) text += fmt::format("    v{0} = x * {0}\n", i);
    for (int i = 0; i < branches; ++i) {
      text += fmt::format("    if x == {0}:\n        y += {0}\n", i);
    }
    for (int i = 0; i < values; ++i) text += fmt::format("    y += v{}\n", i);
    return compile(text + "    return y\n", "branches.py");
  };
  RunOptions options;
  options.max_memory = size_t{64} << 20;
  EXPECT_EQ(program(10, 3000).call("main", {77}, {}, options).toInt(), 77 + 77 * 45);
  EXPECT_EQ(program(2000, 3000).call("main", {77}, {}, options).toInt(), 77 + 77 * 1999000);
}

// The digits that no number has.
TEST(Hostile, NumbersOfManyDigits) {
  const Program program = compile(R"(
def main() -> int:
    return len("%.100000000f" % 0.1)

def digits() -> str:
    return "%.1200f" % 0.5

def exponent() -> str:
    return "%.1200e" % 2.0
)",
                                  "digits.py");
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(program.call("main", {}).toInt(), 100'000'002);
  // One digit after the other would take years.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
  EXPECT_EQ(program.call("digits", {}).toString(), "0.5" + std::string(1199, '0'));
  EXPECT_EQ(program.call("exponent", {}).toString(), "2." + std::string(1200, '0') + "e+00");
}

// A comparison may be no order, answer by chance, or change the list that is looked through.
TEST(Hostile, ComparisonsOfProgramsMayDoAnything) {
  const Program program = compile(R"(
class Chance:
    def __init__(self, x: int):
        self.x = x
    def __lt__(self, other: Chance) -> bool:
        return bool(torch.rand([1]) > 0.5)

class Swap:
    def __init__(self, x: int):
        self.x = x
    def __lt__(self, other: Swap) -> bool:
        other.x, self.x = self.x, other.x
        return self.x < other.x

class Clear:
    def __init__(self, x: int, all: List[Any]):
        self.x = x
        self.all = all
    def __lt__(self, other: Clear) -> bool:
        held = self.all[0]
        if isinstance(held, List[Clear]):
            held.clear()
            for i in range(100):
                held.append(Clear(-1, []))
            held.clear()
        return self.x < other.x

def chance(n: int) -> List[int]:
    items = [Chance(i) for i in range(n)]
    items.sort()
    items.sort(reverse=True)
    return sorted([x.x for x in sorted(items)])

def swap(n: int) -> List[int]:
    items = [Swap(i) for i in range(n)]
    items.sort()
    return sorted([x.x for x in sorted(items)])

def clear(how: str, n: int) -> int:
    all: List[Any] = []
    items: List[Clear] = []
    for i in range(n):
        items.append(Clear((i * 37) % 101, all))
    all.append(items)
    if how == "sort":
        items.sort()
        return items[-1].x
    if how == "sorted":
        return sorted(items)[-1].x
    return max(items).x if how == "max" else min(items).x
)",
                                  "comparisons.py");
  for (int n : {2, 5, 8, 9, 17, 100, 1000}) {
    for (const char* name : {"chance", "swap"}) {
      const IValue sorted = program.call(name, {n});
      ASSERT_EQ(std::ssize(sorted.elements()), n);
      for (int i = 0; i < n; ++i) EXPECT_EQ(sorted.elements()[i].toInt(), i) << name;
    }
  }
  EXPECT_EQ(program.call("clear", {"sort", 101}).toInt(), 100);
  EXPECT_EQ(program.call("clear", {"sorted", 101}).toInt(), 100);
  // The list is empty when the first comparison has run.
  EXPECT_EQ(program.call("clear", {"max", 101}).toInt(), 37);
  EXPECT_EQ(program.call("clear", {"min", 101}).toInt(), 0);
}

// What lists, dicts and texts grow to is asked for before.
TEST(Hostile, ContainersAskBeforeTheyGrow) {
  const Program program = compile(R"(
def slices() -> int:
    items = [1, 2, 3]
    for i in range(20):
        items[0:0] = items
    return len(items)

def replaced() -> int:
    many = [1] * 100000
    kept: List[List[int]] = []
    for i in range(100):
        items = [1]
        items[0:1] = many
        kept.append(items)
    return len(kept)

def pairs() -> int:
    d = {i: i for i in range(200000)}
    return len(d.items())

def tabs(n: int) -> int:
    return len(("\t" * n).expandtabs(1000))

def texts(n: int) -> int:
    return len(("ab" * n).replace("b", "c" * 1000))

def matches() -> int:
    return len(torch.classes.torchtext.Regex("a*").Sub("a" * 100000, "\\0" * 100000))
)",
                                  "growth.py");
  RunOptions options;
  options.max_memory = size_t{24} << 20;
  const auto messageOf = [&](const char* name, std::vector<IValue> arguments = {}) {
    try {
      program.call(name, std::move(arguments), {}, options);
    } catch (const RuntimeError& e) {
      return std::string(e.brief());
    }
    return std::string("done");
  };
  EXPECT_NE(messageOf("slices").find("slice: not enough memory"), std::string::npos);
  EXPECT_NE(messageOf("replaced").find("slice: not enough memory"), std::string::npos);
  EXPECT_NE(messageOf("pairs").find("memory"), std::string::npos);
  EXPECT_NE(messageOf("tabs", {30000}).find("expandtabs: not enough memory"), std::string::npos);
  EXPECT_NE(messageOf("texts", {30000}).find("replace: not enough memory"), std::string::npos);
  EXPECT_NE(messageOf("matches").find("is too long"), std::string::npos);
  EXPECT_EQ(program.call("tabs", {20000}, {}, options).toInt(), 20'000'000);
  EXPECT_EQ(program.call("texts", {20000}, {}, options).toInt(), 20'020'000);
}

}  // namespace
}  // namespace wick::hostile_test
