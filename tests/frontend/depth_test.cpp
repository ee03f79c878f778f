// Deep programs: 200 levels of anything work from text to result, 100,000 are refused or work, both
// also on a thread with a small stack.
#include "core/function_schema.h"
#include "frontend/parser.h"
#include "ir/parser.h"
#include "runtime/executor/graph_executor.h"
#include "tests/frontend/robustness_testing.h"

namespace wick::depth_test {
namespace {

struct Shape {
  const char* name;
  std::string (*make)(size_t levels);
  const char* result;  // of 200 levels; null: only compiled
};

std::string mainOf(const std::string& body) {
  return "def main(x: int = 1):\n" + body;
}
std::string expression(const std::string& text) {
  return mainOf("    return " + text + "\n");
}
// Statements that nest by one blank a level.
std::string nestedBlocks(size_t levels, const std::string& header, const std::string& inner) {
  std::string text = "def main(x: int = 1):\n    y = 0\n";
  std::string indent = "    ";
  for (size_t i = 0; i < levels; ++i, indent += ' ') text += indent + header + "\n";
  return text + indent + inner + "\n    return y\n";
}

const Shape kShapes[] = {
    {"parentheses", [](size_t n) { return expression(repeated("(", n) + "x" + repeated(")", n)); },
     "1"},
    {"unary minus", [](size_t n) { return expression(repeated("-", n) + "x"); }, "1"},
    {"not", [](size_t n) { return expression(repeated("not ", n) + "x"); }, "True"},
    {"lists",
     [](size_t n) { return expression("len(" + repeated("[", n) + "x" + repeated("]", n) + ")"); },
     "1"},
    {"tuples",
     [](size_t n) {
       return mainOf("    y = " + repeated("(", n) + "x" + repeated(",)", n) + "\n    return 1\n");
     },
     "1"},
    {"calls", [](size_t n) { return expression(repeated("abs(", n) + "x" + repeated(")", n)); },
     "1"},
    {"subscripts",
     [](size_t n) {
       return mainOf("    l = [1, 0]\n    return " + repeated("l[", n) + "x" + repeated("]", n) +
                     "\n");
     },
     "1"},
    {"sum", [](size_t n) { return expression("x" + repeated(" + x", n)); }, "201"},
    {"powers", [](size_t n) { return expression(repeated("x ** ", n) + "x"); }, "1.0"},
    {"and", [](size_t n) { return expression("x > 0" + repeated(" and x > 0", n)); }, "True"},
    {"comparisons", [](size_t n) { return expression("x" + repeated(" <= x", n)); }, "True"},
    {"ternaries", [](size_t n) { return expression(repeated("2 if x > 5 else ", n) + "x"); }, "1"},
    {"nested ternaries",
     [](size_t n) { return expression(repeated("(", n) + "x" + repeated(" if x > 0 else 2)", n)); },
     "1"},
    {"added strings", [](size_t n) { return expression("len('a'" + repeated(" + 'a'", n) + ")"); },
     "201"},
    {"adjacent strings", [](size_t n) { return expression("len(" + repeated("'a' ", n) + ")"); },
     "200"},
    {"methods", [](size_t n) { return expression("len('a'" + repeated(".upper()", n) + ")"); },
     "1"},
    {"attributes", [](size_t n) { return expression("torch" + repeated(".a", n)); }, nullptr},
    {"comprehension clauses",
     [](size_t n) { return expression("len([x" + repeated(" for i in [x]", n) + "])"); }, nullptr},
    {"comprehensions",
     [](size_t n) {
       return expression("len(" + repeated("[", n) + "x" + repeated(" for i in [1]]", n) + ")");
     },
     "1"},
    {"types",
     [](size_t n) {
       return mainOf("    y: " + repeated("List[", n) + "int" + repeated("]", n) +
                     " = []\n    return len(y)\n");
     },
     "0"},
    {"optional types",
     [](size_t n) {
       return mainOf("    y: " + repeated("Optional[", n) + "int" + repeated("]", n) +
                     " = None\n    return 0\n");
     },
     "0"},
    {"unions of types",
     [](size_t n) {
       return "def main(x: int = 1, y: int" + repeated(" | int", n) + " = 2):\n    return x\n";
     },
     "1"},
    {"ifs", [](size_t n) { return nestedBlocks(n, "if x > 0:", "y = x"); }, "1"},
    {"fors", [](size_t n) { return nestedBlocks(n, "for i in range(x):", "y = x"); }, "1"},
    {"whiles", [](size_t n) { return nestedBlocks(n, "while y < 1:", "y = x"); }, "1"},
    {"withs", [](size_t n) { return nestedBlocks(n, "with torch.no_grad():", "y = x"); }, "1"},
    {"contexts",
     [](size_t n) {
       return mainOf("    with torch.no_grad()" + repeated(", torch.no_grad()", n) +
                     ":\n        x = 3\n    return x\n");
     },
     "3"},
    {"elifs",
     [](size_t n) {
       std::string text = mainOf("    y = 1\n    if x < 0:\n        y = 2\n");
       for (size_t i = 0; i < n; ++i) text += "    elif x < 0:\n        y = 3\n";
       return text + "    return y\n";
     },
     "1"},
    {"returning elifs",
     [](size_t n) {
       std::string text = mainOf("    if x < 0:\n        return 2\n");
       for (size_t i = 0; i < n; ++i) text += "    elif x < 0:\n        return 3\n";
       return text + "    return 1\n";
     },
     "1"},
    {"early returns",
     [](size_t n) {
       return mainOf(repeated("    if x < 0:\n        return 2\n", n) + "    return 1\n");
     },
     "1"},
    {"breaks",
     [](size_t n) {
       return mainOf("    for i in range(3):\n" +
                     repeated("        if x < i:\n            break\n", n) +
                     "        x += 1\n    return x\n");
     },
     "4"},
    {"call chain",
     [](size_t n) {
       std::string text = mainOf("    return f0(x)\n");
       for (size_t i = 0; i < n; ++i) {
         text += "def f" + std::to_string(i) + "(x: int) -> int:\n    return f" +
                 std::to_string(i + 1) + "(x)\n";
       }
       return text + "def f" + std::to_string(n) + "(x: int) -> int:\n    return x\n";
     },
     "1"},
    {"types that grow",
     [](size_t n) {
       return mainOf("    a0 = [x]\n" + [n] {
         std::string text;
         for (size_t i = 0; i < n; ++i) {
           text += "    a" + std::to_string(i + 1) + " = [a" + std::to_string(i) + "]\n";
         }
         return text;
       }() + "    return x\n");
     },
     "1"},
    {"unpacked targets",
     [](size_t n) {
       return mainOf("    y = " + repeated("(", n) + "x" + repeated(",)", n) + "\n    " +
                     repeated("(", n) + "z" + repeated(",)", n) + " = y\n    return z\n");
     },
     "1"},
    {"f-strings",
     [](size_t n) { return expression("f'{" + repeated("(", n) + "x" + repeated(")", n) + "}'"); },
     "'1'"},
    {"lambdas",
     [](size_t n) {
       return mainOf("    f = " + repeated("(lambda y: ", n) + "y" + repeated(")(y)", n) +
                     "\n    return 1\n");
     },
     nullptr},
    {"dicts",
     [](size_t n) {
       return mainOf("    d = " + repeated("{1: ", n) + "x" + repeated("}", n) +
                     "\n    return len(d)\n");
     },
     "1"},
    {"slices",
     [](size_t n) {
       return mainOf("    l = 'abc'\n    return len(l" + repeated("[len(l", n) +
                     repeated("):]", n) + ")\n");
     },
     nullptr},
    {"repeated slices",
     [](size_t n) { return mainOf("    l = [x]\n    return len(l" + repeated("[0:]", n) + ")\n"); },
     "1"},
    {"repeated calls", [](size_t n) { return expression("abs" + repeated("(x)", n)); }, nullptr},
    {"keyword calls",
     [](size_t n) {
       return "def f(a: int) -> int:\n    return a\n" +
              expression(repeated("f(a=", n) + "x" + repeated(")", n));
     },
     "1"},
    {"assignments",
     [](size_t n) { return mainOf("    y" + repeated(" = y", n) + " = x\n    return y\n"); }, "1"},
    {"starred",
     [](size_t n) {
       return expression("len([" + repeated("*[", n) + "x" + repeated("]", n) + "])");
     },
     "1"},
    {"stars", [](size_t n) { return expression("len(" + repeated("*", n) + "x)"); }, nullptr},
    {"defaults",
     [](size_t n) {
       return "def main(x: int = 1, y: Any = " + repeated("(", n) + "1" + repeated(",)", n) +
              "):\n    return x\n";
     },
     nullptr},
    {"decorators", [](size_t n) { return repeated("@torch.jit.export\n", n) + expression("x"); },
     "1"},
    {"type comments",
     [](size_t n) {
       return "def f(x):\n    # type: (" + repeated("List[", n) + "int" + repeated("]", n) +
              ") -> int\n    return len(x)\n" + expression("x");
     },
     "1"},
    {"targets of loops",
     [](size_t n) {
       return mainOf("    for " + repeated("(", n) + "y" + repeated(",)", n) + " in [" +
                     repeated("(", n) + "x" + repeated(",)", n) +
                     "]:\n        x = y\n    return x\n");
     },
     "1"},
    {"attribute targets", [](size_t n) { return mainOf("    x" + repeated(".a", n) + " = 3\n"); },
     nullptr},
    {"imports", [](size_t n) { return "import a" + repeated(".a", n) + "\n" + expression("x"); },
     "1"},
    {"format specifications",
     [](size_t n) { return expression("f'{x" + repeated(":{x", n) + repeated("}", n) + "}'"); },
     nullptr},
    {"alternatives", [](size_t n) { return expression("x < 0" + repeated(" or x < 0", n)); },
     "False"},
    {"membership", [](size_t n) { return expression("x" + repeated(" in [x]", n)); }, nullptr},
    {"matrix products", [](size_t n) { return expression("x" + repeated(" @ x", n)); }, nullptr},
    {"assertions",
     [](size_t n) {
       return mainOf("    assert " + repeated("(", n) + "x > 0" + repeated(")", n) + ", " +
                     repeated("(", n) + "'a'" + repeated(")", n) + "\n    return x\n");
     },
     "1"},
    {"deletions",
     [](size_t n) {
       return mainOf("    y = x\n    del y" + repeated("[0]", n) + "\n    return x\n");
     },
     nullptr},
    {"subscripts of types",
     [](size_t n) { return "def main(x: List" + repeated("[int]", n) + "):\n    return 1\n"; },
     nullptr},
    {"long name",
     [](size_t n) { return mainOf("    " + repeated("y", n) + " = x\n    return x\n"); }, "1"},
    {"long number", [](size_t n) { return expression(repeated("1", n) + ".0 > 1"); }, "True"},
    {"parameters",
     [](size_t n) {
       std::string text = "def main(x: int = 1";
       for (size_t i = 0; i < n; ++i) text += ", p" + std::to_string(i) + ": int = 2";
       return text + "):\n    return x\n";
     },
     "1"},
    {"arguments", [](size_t n) { return expression("max(x" + repeated(", x", n) + ")"); }, "1"},
    {"defs",
     [](size_t n) {
       std::string text = "def main(x: int = 1):\n";
       std::string indent = "    ";
       for (size_t i = 0; i < n; ++i, indent += ' ') text += indent + "def f():\n";
       return text + indent + "pass\n    return x\n";
     },
     nullptr},
};

class Depth : public testing::TestWithParam<Shape> {};

TEST_P(Depth, TwoHundredLevelsWork) {
  const Shape& shape = GetParam();
  std::string program = shape.make(200);
  auto work = [&] {
    if (shape.result == nullptr) {
      refusalOf([&] { compileSource(program); });
      return;
    }
    EXPECT_EQ(resultOf(program), shape.result);
    std::shared_ptr<CompilationUnit> unit = compileSource(program);
    for (const auto& function : unit->functions()) {
      std::string text = function->graph()->str();
      if (text.find("__torch__") != std::string::npos ||
          text.find("Function") != std::string::npos) {
        continue;  // the text names classes or functions of the program
      }
      // Reading numbers the values anew.
      std::string again = parseGraph(text)->str();
      EXPECT_EQ(parseGraph(again)->str(), again);
    }
  };
  work();
  onSmallStack(work);
}

TEST_P(Depth, AHundredThousandLevelsAreRefusedOrWork) {
  const Shape& shape = GetParam();
  // Blocks nest by indentation, so that this many would be a text of gigabytes.
  const bool indented =
      shape.make(2).find("\n      ") != std::string::npos &&
      shape.make(3).size() - shape.make(2).size() > shape.make(2).size() - shape.make(1).size();
  // Statements that depth does not refuse while they are parsed take a while.
  const bool statements = !indented && shape.make(2).size() - shape.make(1).size() > 20;
  std::string program = shape.make(indented ? 5'000 : statements ? 25'000 : 100'000);
  auto work = [&] {
    refusalOf([&] {
      auto unit = compileSource(program);
      verify(*unit->functions()[0]->graph());
      GraphExecutor::of(*unit->functions()[0]).code();
    });
  };
  work();
  onSmallStack(work);
}

INSTANTIATE_TEST_SUITE_P(Shapes, Depth, testing::ValuesIn(kShapes), [](const auto& info) {
  std::string name = info.param.name;
  for (char& c : name) {
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  }
  return name;
});

std::string nestedBlocks(size_t levels) {
  return "graph(%c : bool):\n" + repeated("  prim::If(%c)\n    block0():\n", levels) +
         repeated("      -> ()\n    block1():\n      -> ()\n", levels) + "  return ()\n";
}

TEST(Depth, FunctionsThatCallEachOther) {
  const auto chain = [](int length) {
    std::string text = "def main(x: int = 1):\n    return f0(x)\n";
    for (int i = 0; i < length; ++i) {
      text +=
          "def f" + std::to_string(i) + "(x: int):\n    return f" + std::to_string(i + 1) + "(x)\n";
    }
    return text + "def f" + std::to_string(length) + "(x: int):\n    return x\n";
  };
  EXPECT_EQ(resultOf(chain(1'000)), "1");
  EXPECT_EQ(refusalOf([&] { compileSource(chain(20'010)); }),
            "'f19999' is reached through more than 20000 functions that call each other before "
            "any of them is compiled");
}

TEST(Depth, TextOfGraphs) {
  for (size_t levels : {200, 15'000}) {
    onSmallStack([&] {
      auto graph = parseGraph(nestedBlocks(levels));
      verify(*graph);
      EXPECT_EQ(parseGraph(graph->str())->str(), graph->str());
      EXPECT_EQ(graph->copy()->str(), graph->str());
    });
  }
}

TEST(Depth, TextOfGraphsThatIsTooDeep) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "AddressSanitizer does not follow exceptions on stacks of more than 64 MiB";
#endif
  onSmallStack([&] {
    EXPECT_EQ(refusalOf([&] { parseGraph(nestedBlocks(100'000)); }),
              "IR: blocks nest deeper than 20000 levels");
    for (const char* open : {"(", "Dict(int, ", "Future("}) {
      std::string type = repeated(open, 100'000) + "int" + repeated(")", 100'000);
      EXPECT_NE(refusalOf([&] { parseGraph("graph(%x : " + type + "):\n  return (%x)\n"); }),
                "no error");
    }
    EXPECT_NE(refusalOf([&] {
                parseGraph("graph():\n  %x : int = prim::Constant[value=" + repeated("[", 100'000) +
                           repeated("]", 100'000) + "]()\n  return (%x)\n");
              }),
              "no error");
  });
}

TEST(Depth, Schemas) {
  onSmallStack([] {
    auto refused = [](const std::string& type) {
      return refusalOf<RuntimeError>([&] { parseSchema("a::f(" + type + " x) -> ()"); }) !=
             "no error";
    };
    EXPECT_TRUE(refused(repeated("(", 100'000) + "int" + repeated(")", 100'000)));
    EXPECT_TRUE(refused(repeated("Dict(int, ", 100'000) + "int" + repeated(")", 100'000)));
    EXPECT_TRUE(refused("int" + repeated("[]", 100'000)));
    EXPECT_TRUE(refused("int" + repeated("?[]", 100'000)));
  });
}

}  // namespace
}  // namespace wick::depth_test
