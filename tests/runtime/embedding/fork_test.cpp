// Forked functions: no deadlock at any size of the pool, also when an operator that calls back into
// a script waits; the same results every time; exceptions; many callers at once.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>

#include "runtime/thread_pool.h"
#include "wick.h"

namespace wick {
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

// A chain, of which all but the first wait and the first runs or has not begun.
TEST_P(ForkTest, ThePoolsEndEndsWhatIsForked) {
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
  const IValue last = program.call("main", {50'000'000, 2'000}, {}, options);
  own.reset();
  FutureObject& future = last.toFuture();
  ASSERT_TRUE(future.done());
  try {
    future.wait();
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_NE(error.brief().find("thread pool ended"), std::string::npos) << error.brief();
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

}  // namespace
}  // namespace wick
