// What random programs found.
#include <fmt/format.h>

#include "core/tensor.h"
#include "tests/frontend/robustness_testing.h"

namespace wick::robustness_test {
namespace {

TEST(Robustness, ReturnInsideWithBeforeItsVariablesAreRead) {
  const char* program = R"(def scaled(x: int, y: float) -> float:
    with torch.no_grad():
        v = x + 1
        if x == 2:
            y *= 2.0
            return 4.0
        if v == y:
            v = 7
    return y + v

def main():
    return scaled(2, 1.0), scaled(3, 4.0), scaled(5, 1.5)
)";
  EXPECT_EQ(resultOf(program), "(4.0, 11.0, 7.5)");
}

TEST(Robustness, StringsAndListsStayWithinTheAllocationLimit) {
  setAllocationLimit(size_t{32} << 20);
  auto refusal = [](const std::string& statement) {
    return refusalOf<RuntimeError>([&] {
      resultOf("def main():\n    s = 'ab'\n    l = [1]\n    for i in range(100):\n        " +
               statement + "\n    return len(s) + len(l)\n");
    });
  };
  for (const char* statement :
       {"s = s + s", "s += s", "s = s * 2", "s = f'{s}{s}'", "s = '{}{}'.format(s, s)",
        "s = '%s%s' % (s, s)", "s = ','.join([s, s])", "s = s.replace('a', 'aa')", "l = l + l",
        "l += l", "l.extend(l)", "l = l * 2", "l *= 2"}) {
    EXPECT_NE(refusal(statement).find("not enough memory"), std::string::npos)
        << statement << ": " << refusal(statement);
  }
  setAllocationLimit(0);
}

TEST(Robustness, TypesThatGrowStatementByStatement) {
  auto refusal = [](const std::string& first, const std::string& next, size_t count) {
    std::string text = "def main(x: int):\n    a = " + first + "\n";
    std::string name = "a";
    for (size_t i = 0; i < count; ++i) {
      std::string made = "a" + std::to_string(i);
      text += "    " + made + " = " + fmt::format(fmt::runtime(next), name) + "\n";
      name = made;
    }
    return refusalOf([&] { compileSource(text + "    return x\n"); });
  };
  EXPECT_EQ(refusal("[x]", "[{0}]", 400), "no error");
  EXPECT_EQ(refusal("[x]", "[{0}]", 600), "the type of this value nests deeper than 500 levels");
  EXPECT_EQ(refusal("(x, x)", "({0}, {0})", 10), "no error");
  EXPECT_EQ(refusal("(x, x)", "({0}, {0})", 40),
            "a type of 131071 parts is too large; 65536 are allowed");
}

// The errors of a program come together, each with its place.
// Nobody has the memory, and nobody waits until that is noticed.
TEST(Robustness, PiecesAndDimsWithoutEnd) {
  const auto refusal = [](const std::string& pieces) {
    const std::string text =
        "def main() -> int:\n    x = torch.zeros([0, 1099511627776])\n"
        "    return len(" +
        pieces + ")\n";
    return refusalOf<RuntimeError>([&] { resultOf(text); });
  };
  for (const char* pieces : {"torch.tensor_split(x, 9223372036854775807)", "x.unbind(1)",
                             "x.split(1, 1)", "x.hsplit(1099511627776)"}) {
    EXPECT_NE(refusal(pieces).find("not enough memory"), std::string::npos) << refusal(pieces);
  }
  std::string nones;
  for (int i = 0; i < 20000; ++i) nones += "None, ";
  EXPECT_EQ(resultOf("def main() -> int:\n    x = torch.ones([2])[" + nones + "]\n    return 1\n"),
            "1");
}

TEST(Robustness, ClassesOfVeryManyMethods) {
  constexpr int kCount = 30000;
  std::string text =
      "class C:\n    def __init__(self):\n        self.x = 1\n"
      "    def m0(self) -> int:\n        return 5\n"
      "    @staticmethod\n    def s0(x: int) -> int:\n        return x\n";
  for (int i = 1; i < kCount; ++i) {
    text += i % 2 == 0 ? fmt::format("    def m{}(self) -> int:\n        return self.m{}() + 1\n",
                                     i, i - 2)
                       : fmt::format(
                             "    @staticmethod\n    def s{}(x: int) -> int:\n"
                             "        return x\n",
                             i);
  }
  EXPECT_EQ(resultOf(text + "def main() -> int:\n    return C().m20() + C().s29999(2)\n"), "17");
}

TEST(Robustness, ErrorsOfSeveralFunctionsAreReportedTogether) {
  const char* program = R"(def helper(count: int) -> int:
    return cuont + 1

def caller(x: int) -> int:
    return helper(x)

def other(x: Tnesor) -> int:
    return 1

def third(x: int) -> int:
    return helpr(x)

def fourth(x: List) -> Tensor[int]:
    return torch.relu(x, out_plcae=True)
)";
  try {
    compileSource(program, "test.py");
    FAIL() << "the program compiled";
  } catch (const CompileError& error) {
    std::string text = error.what();
    EXPECT_EQ(error.brief(), "undefined value cuont; did you mean 'count'?");
    size_t at = 0;
    for (const char* part :
         {"undefined value cuont; did you mean 'count'?", "File \"test.py\", line 2",
          "Unknown type name 'Tnesor'; did you mean 'Tensor'?", "File \"test.py\", line 7",
          "undefined value helpr; did you mean 'helper'?", "File \"test.py\", line 11",
          "Unknown type name 'List': expected the types that it holds, as in List[int]",
          "File \"test.py\", line 13"}) {
      size_t found = text.find(part, at);
      ASSERT_NE(found, std::string::npos) << part << " in\n" << text;
      at = found;
    }
    EXPECT_EQ(text.find("cuont;", text.find("cuont;") + 1), std::string::npos) << text;
  }
}

TEST(Robustness, KeywordsAndTypeConstructorsAreSuggested) {
  auto refusal = [](const std::string& body) {
    return refusalOf([&] {
      compileSource(
          "def g(count: int, other: int = 2) -> int:\n    return count\n"
          "def main(x: int):\n    " +
          body + "\n");
    });
  };
  EXPECT_EQ(refusal("return g(1, othr=2)"),
            "\ng(int count, int other=2) -> int:\n"
            "Keyword argument othr unknown; did you mean 'other'?\n");
  EXPECT_EQ(refusal("y: Lits[int] = []"), "Unknown type constructor Lits; did you mean 'List'?");
  EXPECT_EQ(refusal("y: int[int] = 1"),
            "Unknown type constructor int: int takes no type arguments");
  EXPECT_EQ(refusal("y: Optional = 1"),
            "Unknown type name 'Optional': expected the types that it holds, as in Optional[int]");
}

}  // namespace
}  // namespace wick::robustness_test
