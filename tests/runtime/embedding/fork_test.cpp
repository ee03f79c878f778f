// Forked functions: no deadlock at any size of the pool, also when an operator that calls back into
// a script waits; the same results every time; exceptions; many callers at once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runtime/thread_pool.h"
#include "tests/runtime/embedding/workload.h"
#include "wick.h"

namespace wick::fork_test {
namespace {

class ForkTest : public testing::TestWithParam<size_t> {
 protected:
  IValue call(const Program& program, const std::string& name, std::vector<IValue> arguments) {
    RunOptions options;
    options.pool = &pool;
    return program.call(name, std::move(arguments), {}, options);
  }
  ThreadPool pool{GetParam()};
};
INSTANTIATE_TEST_SUITE_P(PoolSizes, ForkTest, testing::Values(1, 2, 5));

TEST_P(ForkTest, TreesOfForks) {
  Program program = compile(R"(
def leaf(n: int) -> int:
    total = 0
    for i in range(n):
        total += i
    return total
def inner(n: int) -> int:
    futures = [torch.jit.fork(leaf, n + i) for i in range(5)]
    total = 0
    for f in futures:
        total += torch.jit.wait(f)
    return total
def outer(n: int) -> List[int]:
    futures = [torch.jit.fork(inner, i) for i in range(n)]
    return [torch.jit.wait(f) for f in futures]
)");
  const std::string expected = call(program, "outer", {12}).repr();
  EXPECT_EQ(expected, "[10, 20, 35, 55, 80, 110, 145, 185, 230, 280, 335, 395]");
  for (int i = 0; i < 20; ++i) EXPECT_EQ(call(program, "outer", {12}).repr(), expected);
}

// sort() calls __lt__, which waits. Whoever runs another task meanwhile on top of the sort could be
// given one that waits for this very sort.
TEST_P(ForkTest, WaitsWithinAnOperator) {
  Program program = compile(R"(
def less(a: int, b: int) -> bool:
    return a < b
class Item:
    def __init__(self, key: int):
        self.key = key
    def __lt__(self, other: 'Item') -> bool:
        return torch.jit.wait(torch.jit.fork(less, self.key, other.key))
class Patient:
    def __init__(self, key: int, first: Future[List[int]]):
        self.key = key
        self.first = first
    def __lt__(self, other: 'Patient') -> bool:
        return torch.jit.wait(self.first)[0] + self.key < other.key
def sorted_keys(n: int) -> List[int]:
    items = [Item((i * 7) % n) for i in range(n)]
    items.sort()
    return [i.key for i in items]
def patiently(first: Future[List[int]], n: int) -> int:
    items = [Patient(n - i, first) for i in range(n)]
    items.sort()
    return items[0].key
def main(n: int) -> List[int]:
    first = torch.jit.fork(sorted_keys, n)
    others = [torch.jit.fork(patiently, first, i + 2) for i in range(n)]
    keys = [torch.jit.wait(f) for f in others]
    keys.extend(torch.jit.wait(first))
    return keys
)");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(call(program, "main", {10}).repr(),
              "[1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9]");
  }
}

TEST_P(ForkTest, ExceptionsPassThroughWaits) {
  Program program = compile(R"(
def fails(n: int) -> int:
    if n == 3:
        raise ValueError('three')
    return n
def waits(n: int) -> int:
    return torch.jit.wait(torch.jit.fork(fails, n))
def main(n: int) -> int:
    futures = [torch.jit.fork(waits, i) for i in range(n)]
    total = 0
    for f in futures:
        total += f.wait()
    return total
def ignored(n: int) -> int:
    f = torch.jit.fork(waits, n)
    return n
)");
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(call(program, "main", {3}).toInt(), 3);
    try {
      call(program, "main", {6});
      FAIL();
    } catch (const RuntimeError& error) {
      EXPECT_EQ(error.brief(), "three");
      EXPECT_EQ(error.className(), "ValueError");
    }
    // Nobody waits for it.
    EXPECT_EQ(call(program, "ignored", {3}).toInt(), 3);
  }
}

// A chain where all but the first wait, and nobody waits for the last: the pool may go when the run
// has ended.
TEST_P(ForkTest, ThePoolMayGoAfterTheRun) {
  Program program = compile(R"(
def slow(n: int) -> int:
    total = 0
    for i in range(n):
        total += i % 7
    return total
def after(f: Future[int]) -> int:
    return torch.jit.wait(f) + 1
def main(n: int, length: int) -> Future[int]:
    f = torch.jit.fork(slow, n)
    for i in range(length):
        f = torch.jit.fork(after, f)
    return f
)");
  auto own = std::make_unique<ThreadPool>(GetParam());
  RunOptions options;
  options.pool = own.get();
  const IValue last = program.call("main", {7'000'000, 2'000}, {}, options);
  own.reset();
  EXPECT_EQ(last.toFuture().wait().toInt(), 21'000'000 + 2'000);
}

TEST(ForkPoolTest, ItsSizeIsSetBeforeItRuns) {
  Program program = compile(
      "def work(n: int) -> int:\n    return n + 1\n"
      "def main() -> int:\n    return torch.jit.wait(torch.jit.fork(work, 1))\n");
  EXPECT_EQ(program.call("main", {}).toInt(), 2);
  try {
    setNumForkThreads(numForkThreads() + 1);
    FAIL();
  } catch (const UsageError& e) {
    EXPECT_STREQ(e.what(),
                 "setNumForkThreads: expected to be called before the first fork, whose threads "
                 "run already");
  }
}

TEST_P(ForkTest, ManyCallersShareAPool) {
  Program program = compile(R"(
class Sum:
    def __init__(self, start: int):
        self.total = start
    def plus(self, n: int) -> int:
        return self.total + n
def work(n: int) -> int:
    s = Sum(n)
    f = torch.jit.fork(s.plus, 1)
    g = torch.jit.fork(s.plus, 2)
    return torch.jit.wait(f) * torch.jit.wait(g)
def main(n: int) -> int:
    total = 0
    for f in [torch.jit.fork(work, n + i) for i in range(10)]:
        total += torch.jit.wait(f)
    return total
)");
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&, t] {
      const int64_t expected = call(program, "main", {t}).toInt();
      for (int i = 0; i < 20; ++i) wrong += call(program, "main", {t}).toInt() != expected;
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// Everything that functions share, changed by all of them at once: who comes first is open, but
// every value is whole.
TEST_P(ForkTest, WhatIsSharedStaysWhole) {
  Program program = compile(R"(
class Box:
    def __init__(self):
        self.text = 'a'
        self.any: Optional[List[int]] = None
def lists(l: List[str], n: int) -> int:
    r = 0
    for i in range(n):
        l.append('abcdefghijklmnopqrstuvwxyz0123456789')
        if len(l) > 20:
            l.clear()
        if len(l) > 3:
            r += len(l[len(l) - 1])
            l.insert(1, l[0] + 'x')
            l.pop()
    return r
def anything(l: List[Any], n: int) -> int:
    r = 0
    for i in range(n):
        l[0] = 0x4141414141414141
        l[0] = 'abcdefghijklmnopqrstuvwxyz0123456789'
        x = l[0]
        if isinstance(x, str):
            r += len(x)
    return r
def dicts(d: Dict[int, str], n: int) -> int:
    for i in range(n):
        d[i % 100] = 'abcdefghijklmnopqrstuvwxyz0123456789'
        if i % 7 == 0:
            d.clear()
    return len(d)
def boxes(b: Box, n: int) -> int:
    r = 0
    for i in range(n):
        b.text = b.text + 'b' if len(b.text) < 50 else 'a'
        b.any = [1, 2, 3] if i % 2 == 0 else None
        v = b.any
        if v is not None:
            r += len(v)
    return r
def shapes(x: Tensor, n: int) -> int:
    r = 0
    for i in range(n):
        x.set_(torch.zeros([5 + i % 50]))
        x.resize_([i % 7, 3])
        x.unsqueeze_(0)
        x.zero_()
        r += int(x.sum()) + x.dim()
    return r
def indices(i: Tensor, x: Tensor, n: int) -> int:
    r = 0
    for k in range(n):
        i.fill_(k % 2 * 9000)
        r += int(x.index_select(0, i).sum()) + int(torch.gather(x, 0, i).sum())
        i.fill_(3)
    return r
def main(n: int) -> int:
    l = ['a']
    a: List[Any] = ['a']
    d = {1: 'a'}
    b = Box()
    x = torch.zeros([10])
    i = torch.zeros([20000], dtype=torch.int64)
    y = torch.zeros([9001])
    fs: List[Future[int]] = []
    for k in range(3):
        fs.append(torch.jit.fork(lists, l, n))
        fs.append(torch.jit.fork(anything, a, n))
        fs.append(torch.jit.fork(dicts, d, n))
        fs.append(torch.jit.fork(boxes, b, n))
        fs.append(torch.jit.fork(shapes, x, n // 20))
        fs.append(torch.jit.fork(indices, i, y, n // 200))
    r = 0
    for f in fs:
        r += torch.jit.wait(f)
    return r
)");
  for (int i = 0; i < 3; ++i) {
    // A list may be shorter than it was a moment ago, which is an error of the program's own.
    try {
      call(program, "main", {workload(5000)});
    } catch (const RuntimeError& e) {
      EXPECT_EQ(e.className(), "IndexError") << e.what();
    }
  }
}

// Functions that wait for each other end with an error, also when nobody waits for them.
TEST_P(ForkTest, WaitingForEachOtherIsAnError) {
  Program program = compile(R"(
def waits(fs: List[Future[int]], i: int) -> int:
    while len(fs) < 2:
        pass
    return torch.jit.wait(fs[i])
def main(wait: bool) -> int:
    fs: List[Future[int]] = []
    fs.append(torch.jit.fork(waits, fs, 1))
    fs.append(torch.jit.fork(waits, fs, 0))
    if wait:
        return torch.jit.wait(fs[0])
    return 1
)");
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(call(program, "main", {false}).toInt(), 1);
    try {
      call(program, "main", {true});
      ADD_FAILURE() << "no error";
    } catch (const RuntimeError& e) {
      EXPECT_NE(e.brief().find("never end"), std::string::npos) << e.what();
    }
  }
}

// A run ends when all that it forked has ended, so that its caller may use what they changed.
TEST_P(ForkTest, TheRunEndsWithItsForks) {
  Program program = compile(R"(
def slowly(l: List[int], n: int) -> int:
    for i in range(n):
        l.append(i)
    return n
def main(l: List[int], n: int) -> Future[int]:
    torch.jit.fork(slowly, l, n)
    return torch.jit.fork(slowly, l, n)
def fails(l: List[int], n: int) -> int:
    torch.jit.fork(slowly, l, n)
    return l[-1000000]
)");
  for (int i = 0; i < 10; ++i) {
    IValue list(makeIntList({}));
    IValue future = call(program, "main", {list, 5000});
    EXPECT_EQ(list.elements().size(), 10000u);
    EXPECT_TRUE(future.toFuture().done());
    EXPECT_THROW(call(program, "fails", {list, 5000}), RuntimeError);
    EXPECT_EQ(list.elements().size(), 15000u);
  }
}

}  // namespace
}  // namespace wick::fork_test
