// What an application does with compiled source: calls, errors, limits, forks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/thread_pool.h"
#include "wick.h"

namespace wick::program_test {
namespace {

const char* const kSource = R"(
class Guard:
    def __init__(self):
        self.depth = 0
        self.left = 0
    def __enter__(self) -> int:
        self.depth += 1
        return self.depth
    def __exit__(self, type: Any, value: Any, trace: Any) -> None:
        self.depth -= 1
        self.left += 1

def add(x: int, y: float = 2.0) -> float:
    return x + y

def make_guard() -> Guard:
    return Guard()

def guarded(g: Guard, bad: bool) -> int:
    with g as depth:
        with g as deeper:
            if bad:
                raise ValueError("told to")
            return depth * 10 + deeper
    return -1

def depth_of(g: Guard) -> Tuple[int, int]:
    return g.depth, g.left

def work(n: int) -> int:
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

def parallel(n: int) -> int:
    futures: List[Future[int]] = []
    for i in range(n):
        futures.append(torch.jit._fork(work, i * 10))
    total = 0
    for f in futures:
        total += torch.jit._wait(f)
    return total

def inner(x: Tensor) -> Tensor:
    return x.view([3, 5])

def outer(x: Tensor) -> Tensor:
    y = x + 1
    return inner(y)
)";

class ProgramTest : public testing::Test {
 protected:
  Program program = compile(kSource, "program.py");

  std::string usageError(std::vector<IValue> arguments, Kwargs kwargs = {}) {
    try {
      program.call("add", std::move(arguments), std::move(kwargs));
    } catch (const UsageError& error) {
      return error.what();
    }
    return "no error";
  }
};

TEST_F(ProgramTest, ArgumentsByPositionKeywordAndDefault) {
  EXPECT_EQ(program.call("add", {1}).toDouble(), 3.0);
  EXPECT_EQ(program.call("add", {1, 5}).toDouble(), 6.0);
  EXPECT_EQ(program.call("add", {}, {{"y", 0.5}, {"x", 1}}).toDouble(), 1.5);
}

TEST(ProgramArguments, OneNumberStandsForAListOfFixedLength) {
  const Program program = compile(
      "def main(n: BroadcastingList2[int], x: Optional[BroadcastingList3[float]] = None):\n"
      "    return n, x\n",
      "program.py");
  EXPECT_EQ(program.call("main", {3}).repr(), "([3, 3], None)");
  EXPECT_EQ(program.call("main", {std::vector<int64_t>{1, 2}, 1}).repr(),
            "([1, 2], [1.0, 1.0, 1.0])");
  EXPECT_THROW(program.call("main", {"a"}), UsageError);
}

TEST_F(ProgramTest, WrongArgumentsAreNamed) {
  using testing::HasSubstr;
  EXPECT_THAT(usageError({}), HasSubstr("missing value for argument 'x'"));
  EXPECT_THAT(usageError({1, 2.0, 3}), HasSubstr("at most 2 argument(s) but received 3"));
  EXPECT_THAT(usageError({"text"}), HasSubstr("type 'int' for argument 'x'"));
  EXPECT_THAT(usageError({1}, {{"z", 1}}), HasSubstr("has no argument 'z'; its arguments are: "));
  EXPECT_THAT(usageError({1}, {{"x", 1}}), HasSubstr("both as positional and keyword"));
  EXPECT_THROW(program.call("subtract", {1}), UsageError);
}

TEST_F(ProgramTest, WithLeavesOnReturnAndOnError) {
  IValue guard = program.call("make_guard", {});
  EXPECT_EQ(program.call("guarded", {guard, false}).toInt(), 12);
  EXPECT_EQ(program.call("depth_of", {guard}).repr(), "(0, 2)");
  try {
    program.call("guarded", {guard, true});
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_EQ(error.className(), "ValueError");
    EXPECT_EQ(error.brief(), "told to");
  }
  EXPECT_EQ(program.call("depth_of", {guard}).repr(), "(0, 4)");
}

TEST_F(ProgramTest, ErrorsOfOperatorsShowTheScript) {
  try {
    program.call("outer", {Tensor::zeros({4}, DType::Float)});
    FAIL();
  } catch (const RuntimeError& error) {
    ASSERT_EQ(error.frames().size(), 2u);
    EXPECT_EQ(error.frames()[0].function, "inner");
    EXPECT_EQ(error.frames()[1].function, "outer");
    EXPECT_THAT(error.what(), testing::HasSubstr("x.view([3, 5])"));
  }
}

TEST_F(ProgramTest, ForksGiveTheSameAnswerAtAnyPoolSize) {
  int64_t expected = 0;
  for (int64_t i = 0; i < 20; ++i) expected += program.call("work", {i * 10}).toInt();
  for (size_t size : {1, 4}) {
    ThreadPool pool(size);
    RunOptions options;
    options.pool = &pool;
    EXPECT_EQ(program.call("parallel", {20}, {}, options).toInt(), expected);
  }
}

TEST_F(ProgramTest, LimitsHoldForLoops) {
  RunOptions options;
  options.max_steps = 100;
  EXPECT_EQ(program.call("work", {50}, {}, options).toInt(), program.call("work", {50}).toInt());
  EXPECT_THROW(program.call("work", {1000}, {}, options), RuntimeError);
}

TEST_F(ProgramTest, SourceThatDoesNotCompile) {
  EXPECT_THROW(compile("def f(x: int) -> int:\n    return y\n"), CompileError);
}

TEST_F(ProgramTest, ValuesOutliveTheProgram) {
  IValue guard;
  {
    Program other = compile(kSource);
    guard = other.call("make_guard", {});
  }
  // The object holds the code of its class.
  EXPECT_EQ(guard.toObject().attr("left").toInt(), 0);
}

}  // namespace
}  // namespace wick::program_test
