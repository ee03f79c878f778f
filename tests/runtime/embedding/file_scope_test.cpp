// What a program's top level defines besides functions and classes.
#include <gtest/gtest.h>

#include "wick.h"

namespace wick::file_scope_test {
namespace {

std::string resultOf(const std::string& source) {
  return compile(source, "test.py").call("main", {}).repr();
}

std::string errorOf(const std::string& source) {
  try {
    compile(source, "test.py");
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(FileScope, Constants) {
  EXPECT_EQ(resultOf(R"(
LIMIT: Final[int] = 3
HALF = 0.5
SCALE: float = 2
NAME = 'n'
ORIGIN = (0, -1, None)
KIND = torch.float64
NEGATIVE = -LIMIT
PI = math.pi
class Uses:
    def __init__(self, n: int = LIMIT):
        self.n = n + LIMIT
def shadows(LIMIT: int) -> int:
    return LIMIT
def main():
    kind = torch.zeros(1, dtype=KIND).dtype == torch.float64
    return LIMIT + 1, HALF, SCALE, NAME, ORIGIN[1], kind, Uses().n, shadows(9), NEGATIVE, PI > 3
)"),
            "(4, 0.5, 2.0, 'n', -1, True, 6, 9, -3, True)");
}

TEST(FileScope, ComputedConstants) {
  EXPECT_EQ(resultOf(R"(
BLOCK = 4 * 1024
MASK = 1 << 5 | 3
STEP = -(7 // 2) + BLOCK % 10
TWO_PI = 2 * math.pi
NAME = 'a' + 'b' * 2
def main():
    return BLOCK, MASK, STEP, TWO_PI > 6.28, NAME
)"),
            "(4096, 35, 3, True, 'abb')");
  const std::string end = "\ndef main():\n    return 1\n";
  EXPECT_TRUE(holds(errorOf("A = 1 // 0" + end), "division"));
  EXPECT_TRUE(holds(errorOf("A = 1 + 'a'" + end), "Arguments for call are not valid"))
      << errorOf("A = 1 + 'a'" + end);
  EXPECT_TRUE(holds(errorOf("A = torch.ones(2) + 1" + end), "expected a constant"));
  std::string chain = "A = 0";
  for (int i = 0; i < 15'000; ++i) chain += " + 1";
  EXPECT_EQ(errorOf(chain + end), "no error");
}

TEST(FileScope, NamesForTypes) {
  EXPECT_EQ(resultOf(R"(
Pair = Tuple[int, str]
Pairs = List[Pair]
def second(pairs: Pairs) -> str:
    return pairs[0][1]
def main():
    return second([(1, 'a')])
)"),
            "'a'");
  EXPECT_EQ(resultOf(R"(
def twice(x: FloatTensor, n: LongTensor) -> torch.BoolTensor:
    return x * n == 2
def main():
    return twice(torch.ones(1), torch.tensor([2])).item()
)"),
            "True");
}

TEST(FileScope, RefusesWhatIsNoConstant) {
  const std::string end = "\ndef main():\n    return 1\n";
  EXPECT_TRUE(holds(errorOf("TABLE = [1, 2]" + end), "a list can be changed"))
      << errorOf("TABLE = [1, 2]" + end);
  EXPECT_TRUE(holds(errorOf("A = 1\nA = 2" + end), "'A' is defined twice"));
  EXPECT_TRUE(holds(errorOf("A = torch.ones(2)" + end), "expected a constant"));
  EXPECT_TRUE(holds(errorOf("a, b = 1, 2" + end), "each to one name"));
  EXPECT_TRUE(holds(errorOf("A = Tuple[Nothing]" + end), "Unknown type name 'Nothing'"));
  EXPECT_TRUE(holds(errorOf("P = NamedTuple('P', ['x'])" + end), "expected (name, type)"));
  EXPECT_TRUE(holds(errorOf("class E(Exception):\n    pass\nclass E(Exception):\n    pass" + end),
                    "'E' is defined twice"));
}

}  // namespace
}  // namespace wick::file_scope_test
