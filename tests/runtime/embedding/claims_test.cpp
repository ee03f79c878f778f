// Programs that claim wrong types of values, or look at memory that another program wrote. They get an error, and no
// address of the process.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "core/budget.h"
#include "ir/graph.h"
#include "ir/parser.h"
#include "wick.h"

namespace wick::claims_test {
namespace {

using testing::HasSubstr;
using testing::Not;

std::string refusalOf(const std::string& source) {
  try {
    compile(source);
  } catch (const CompileError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Claims, DefaultValuesAreLookedThrough) {
  for (const auto& [type, value] :
       {std::pair("List[Optional[int]]", R"([5, None, "a"])"),
        std::pair("List[int]", R"([5, 1.5])"),
        std::pair("Dict[str, Dict[str, int]]", R"({"a": {"b": 2, "c": "d"}})"),
        std::pair("Dict[int, int]", R"({1: 2, "a": 3})"),
        std::pair("Tuple[int, List[str]]", R"((1, ["a", 2]))"),
        std::pair("Optional[List[List[int]]]", R"([[1], [None]])"),
        std::pair("List[Tensor]", "[None]")}) {
    const std::string parameter = fmt::format("x: {} = {}", type, value);
    EXPECT_THAT(refusalOf("def f(" + parameter + "):\n    return 1\n"),
                HasSubstr("Expected a default value of type"))
        << parameter;
    EXPECT_THAT(
        refusalOf("class N(NamedTuple):\n    " + parameter + "\ndef f():\n    return N()\n"),
        HasSubstr("Expected a default value of type"))
        << parameter;
  }
}

TEST(Claims, DefaultValuesMayMixWhatTheTypeAllows) {
  const Program program = compile(R"(
class N(NamedTuple):
    a: List[Optional[int]] = [5, None]
    b: Tuple[float, List[float]] = (1, [2, 0.5])
def f(x: Dict[str, Optional[List[int]]] = {"a": None, "b": [1], "c": []}, y: List[Any] = [1, "a", None]):
    n = N()
    return x, y, n.a, n.b
)");
  EXPECT_EQ(program.call("f", {}).repr(),
            "({'a': None, 'b': [1], 'c': []}, [1, 'a', None], [5, None], (1.0, [2.0, 0.5]))");
}

TEST(Claims, ConstantsOfPrintedGraphsAreLookedThrough) {
  for (const char* constant : {R"(Optional[int] = prim::Constant[value="a"]())",
                               R"(List[int] = prim::Constant[value=[1, "a"]]())",
                               R"(List[Optional[int]] = prim::Constant[value=[1, "a"]]())",
                               R"(Dict[str, int] = prim::Constant[value={"a": 1.5}]())",
                               R"(Tuple[int, str] = prim::Constant[value=("a", "b")]())"}) {
    EXPECT_THROW(parseGraph(fmt::format("graph():\n  %x : {}\n  return (%x)\n", constant)), Error)
        << constant;
  }
}

struct Cast {
  const char* type;
  const char* value;
  bool fits;
};

TEST(Claims, CastsOfProgramsAreChecked) {
  for (const auto& [type, value, fits] : {Cast{"int", "\"abc\"", false},
                                          Cast{"int", "1.5", false},
                                          Cast{"int", "3", true},
                                          Cast{"float", "3", false},
                                          Cast{"bool", "2", false},
                                          Cast{"str", "3", false},
                                          Cast{"str", "\"a\"", true},
                                          Cast{"Tensor", "1", false},
                                          Cast{"Tensor", "torch.ones(2)", true},
                                          Cast{"List[int]", "[\"a\"]", false},
                                          Cast{"List[int]", "[1]", true},
                                          Cast{"Dict[str, int]", "{\"a\": \"b\"}", false},
                                          Cast{"Dict[str, int]", "{\"a\": 1}", true},
                                          Cast{"Tuple[int, str]", "(1, 2)", false},
                                          Cast{"Tuple[int, str]", "(1, \"b\")", true},
                                          Cast{"Optional[int]", "\"a\"", false},
                                          Cast{"Optional[int]", "None", true},
                                          Cast{"Optional[int]", "4", true},
                                          Cast{"Union[int, str]", "1.5", false},
                                          Cast{"Union[int, str]", "\"a\"", true}}) {
    const Program program = compile(fmt::format(
        "def f():\n    y: List[Any] = [{0}]\n    return unchecked_cast({1}, y[0])\n"
        "def g():\n    y: List[Any] = [{0}]\n    z = unchecked_cast({1}, y[0])\n    return [z]\n",
        value, type));
    for (const char* name : {"f", "g"}) {
      std::string end = "done";
      try {
        program.call(name, {});
      } catch (const RuntimeError& error) {
        end = error.brief();
      }
      EXPECT_EQ(end,
                fits ? "done" : fmt::format("unchecked_cast: the value is not of type {}", type))
          << type << " " << value;
    }
  }
  // None of an Optional.
  const Program program =
      compile("def f(x: Optional[int]):\n    return unchecked_cast(int, x) + 1\n");
  EXPECT_EQ(program.call("f", {4}).toInt(), 5);
  EXPECT_THROW(program.call("f", {IValue()}), RuntimeError);
}

// Objects are told apart by numbers that say nothing of where they lie.
TEST(Claims, AddressesAreNotShown) {
  const Program program = compile(R"(
class C:
    def __init__(self):
        self.a = 1
def f():
    c = C()
    d = C()
    x: Any = c
    return c, id(c), hash(x), str(x), id(c) == id(c), id(c) == id(d)
)");
  const IValue result = program.call("f", {});
  const auto address = reinterpret_cast<uintptr_t>(&result.elements()[0].toObject());
  for (size_t i : {1, 2}) {
    const auto number = static_cast<uint64_t>(result.elements()[i].toInt());
    EXPECT_NE(number, address);
    EXPECT_NE(number >> 12, address >> 12);
  }
  EXPECT_THAT(result.elements()[3].toString(), HasSubstr("C object at 0x"));
  EXPECT_THAT(result.elements()[3].toString(), Not(HasSubstr(fmt::format("{:x}", address >> 12))));
  EXPECT_TRUE(result.elements()[4].toBool());
  EXPECT_FALSE(result.elements()[5].toBool());
}

TEST(Claims, MemoryOfAnotherProgramIsNotSeen) {
  const Program victim = compile(
      "def f():\n    l = [torch.full([n], 12345.678) for n in [16, 100, 1000, 30000, 500000] for k "
      "in range(20)]\n"
      "    return len(l)\n");
  const Program reader = compile(R"(
def sum(x: Tensor) -> float:
    return float(x.double().abs().nan_to_num(1.0, 1.0, 1.0).sum())

def f() -> float:
    total = 0.0
    keep: List[Tensor] = []
    for n in [16, 100, 1000, 30000, 500000]:
        for k in range(10):
            like = torch.zeros([n])
            for x in [torch.empty([n]), torch.empty_like(like), like.new_empty([n]), torch.empty_strided([n], [1]),
                      torch.zeros([0]).resize_([n]), torch.empty([0], dtype=torch.int64).resize_([n])]:
                keep.append(x)
                total += sum(x)
        wide = torch.empty_strided([2, n], [3 * n, 1])
        keep.append(wide)
        total += sum(wide.as_strided([4 * n], [1]))
    return total
)");
  for (int i = 0; i < 3; ++i) {
    victim.call("f", {});
    EXPECT_EQ(reader.call("f", {}).toDouble(), 0);
  }
}

// The bytes that the error of a text says were asked for; 0: there is no such error.
size_t askedFor(const Program& program) {
  RunOptions options;
  options.max_memory = size_t{4} << 20;
  try {
    program.call("f", {}, {}, options);
  } catch (const RuntimeError& error) {
    const std::string text = error.brief(), mark = "you tried to allocate ";
    const size_t at = text.find(mark);
    return at == std::string::npos ? 0 : std::stoull(text.substr(at + mark.size()));
  }
  return 0;
}

TEST(Claims, TextsAskForMemoryAsTheyGrow) {
  for (const char* expression :
       {"str([s] * 200)", "str(([s] * 200, 1))", "str({\"a\": [s] * 200})",
        "\"{}\".format([s] * 200)", "f\"{[s] * 200}\"", "\"%s\" % ([s] * 200,)",
        "\"\".join([s] * 200)", "s * 200", "repr([e] * 200)"}) {
    const Program program = compile(fmt::format(
        "def f():\n    s = \"x\" * 500000\n    e = \"\\n\" * 250000\n    return len({})\n",
        expression));
    const size_t asked = askedFor(program);
    EXPECT_GT(asked, size_t{0}) << expression;
    // An operator that knows the length of its text asks at once.
    if (std::string(expression).find("[") != 0 && std::string(expression).find("str") == 0) {
      EXPECT_LT(asked, size_t{8} << 20) << expression;
    }
  }
  EXPECT_GT(askedFor(compile("def f():\n    s = \"x\" * 500000\n    print([s] * 200)\n")),
            size_t{0});
}

TEST(Claims, LongPatternsAndEquationsAreRefused) {
  RunOptions options;
  options.max_memory = size_t{64} << 20;
  const Program program = compile(R"(
def equation():
    return torch.einsum("i" * 20000000, [torch.ones(1)])
def operands():
    return torch.einsum("i," * 10000000 + "i", [torch.ones(1)])
)");
  for (const char* name : {"equation", "operands"}) {
    try {
      program.call(name, {}, {}, options);
      ADD_FAILURE() << name;
    } catch (const RuntimeError& error) {
      EXPECT_THAT(error.brief(), HasSubstr("einsum()"));
    }
  }
}

TEST(Claims, ConstantsOfAFileEndWithTheirTime) {
  std::string source = "A = \"a\" * 10000000\n";
  for (int i = 0; i < 4000; ++i) source += fmt::format("B{} = A < A\n", i);
  source += "def main():\n    return B0\n";
  Budget::Bounds bounds;
  const auto begin = std::chrono::steady_clock::now();
  bounds.deadline = begin + std::chrono::milliseconds(100);
  Budget budget(std::move(bounds));
  const BudgetScope scope(&budget);
  EXPECT_THROW(compile(source), Error);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

}  // namespace
}  // namespace wick::claims_test
