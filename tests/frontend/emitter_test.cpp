// What graphs programs become.
#include <fmt/format.h>

#include "tests/frontend/emitter_testing.h"

namespace wick::emitter_test {
namespace {

TEST_F(EmitterTest, StraightLine) {
  std::string g = graphOf("def f(x, y: int):\n    z = x + y\n    return z.relu()\n");
  EXPECT_TRUE(holdsInOrder(
      g, {"%x : Tensor", "%y : int", "aten::add(%x, %y,", "aten::relu(%z)", "return ("}));
}

TEST_F(EmitterTest, InfersReturnTypeAndKeepsDefaults) {
  EXPECT_EQ(schemaOf("def f(a: int, b: int = 3):\n    return a + b\n"), "f(int a, int b=3) -> int");
  EXPECT_EQ(schemaOf("def f(a: int):\n    pass\n"), "f(int a) -> NoneType");
  EXPECT_TRUE(holds(schemaOf("def f(a: bool):\n    if a:\n        return None\n    return 1\n"),
                    "-> int?"));
}

TEST_F(EmitterTest, BranchesJoinVariables) {
  std::string g = graphOf(
      "def f(c: bool):\n"
      "    if c:\n"
      "        a = 1\n"
      "    else:\n"
      "        a = 2\n"
      "    return a\n");
  EXPECT_TRUE(holdsInOrder(g, {"int = prim::If(%c)", "block0", "block1", "return (%a"}));
}

TEST_F(EmitterTest, LoopsCarryVariables) {
  std::string g = graphOf(
      "def f(n: int):\n"
      "    total = 0\n"
      "    for i in range(n):\n"
      "        total = total + i\n"
      "    while total > 10:\n"
      "        total = total - 1\n"
      "    return total\n");
  EXPECT_TRUE(holdsInOrder(g, {"prim::Loop(%n,", "block0(%i : int, %total", "aten::add", "aten::gt",
                               "prim::Loop(", "aten::sub", "aten::gt"}));
}

TEST_F(EmitterTest, NoneChecksRefine) {
  std::string g = graphOf(
      "def f(x: Optional[Tensor], y):\n"
      "    if x is not None:\n"
      "        y = y + x\n"
      "    return y\n");
  EXPECT_TRUE(holdsInOrder(
      g, {"aten::__isnot__(%x", "prim::If", "prim::unchecked_cast(%x)", "aten::add(%y"}));
  // The other branch exits, so the refinement holds for the rest.
  EXPECT_EQ(schemaOf("def f(x: Optional[int]):\n"
                     "    if x is None:\n"
                     "        raise ValueError('none')\n"
                     "    return x + 1\n"),
            "f(int? x) -> int");
  EXPECT_EQ(schemaOf("def f(x: Optional[int]):\n    assert x is not None\n    return x + 1\n"),
            "f(int? x) -> int");
  EXPECT_EQ(schemaOf("def f(x: Optional[int], y: int):\n"
                     "    return x is not None and x > y\n"),
            "f(int? x, int y) -> bool");
}

// Each operand knows what those before it have proved, wherever it reads the variable.
TEST_F(EmitterTest, OperandsReadWhatEarlierOnesProved) {
  const auto resultOf = [&](const std::string& condition, const std::string& before = "") {
    return schemaOf("def f(x: Optional[int], y: Optional[int], z: Union[int, str]):\n" + before +
                    "    return " + condition + "\n");
  };
  const std::string expected = "f(int? x, int? y, Union(int, str) z) -> bool";
  EXPECT_EQ(resultOf("x is not None and y is not None and x > y"), expected);
  EXPECT_EQ(resultOf("x is None or y is None or x > y"), expected);
  EXPECT_EQ(resultOf("x is not None and (y is None or x > y)"), expected);
  EXPECT_EQ(resultOf("x is not None and isinstance(z, int) and x > z"), expected);
  EXPECT_EQ(resultOf("not (x is None) and [x + i for i in range(3)][0] > 1"), expected);
  EXPECT_EQ(resultOf("x is not None and len([x + 1]) > 0"), expected);
  EXPECT_EQ(resultOf("x is not None and (lambda a: a > x)(1)"), expected);
  // The body of a local function is compiled where it is called.
  EXPECT_EQ(resultOf("x is not None and more() > 1", "    more = lambda: x + 1\n"), expected);
  EXPECT_EQ(resultOf("x is not None and outer() > 1",
                     "    more = lambda: x + 1\n    outer = lambda: more() + 1\n"),
            expected);
  EXPECT_THROW(resultOf("x is not None or x > 1"), CompileError);
  EXPECT_THROW(resultOf("(x is not None or y is not None) and x > 1"), CompileError);
}

// Behind the If a variable is what it was before when the branches only looked at it.
TEST_F(EmitterTest, NarrowedVariablesAreNotHandedOut) {
  const std::string g = graphOf(
      "def f(x: Optional[int], y: Union[int, str]):\n"
      "    r = 0\n"
      "    if x is not None and isinstance(y, int):\n"
      "        r = x + y\n"
      "    elif isinstance(y, str):\n"
      "        r = 2\n"
      "    while x is not None:\n"
      "        r += x\n"
      "    return r, x, y\n");
  EXPECT_TRUE(holds(g, "int = prim::If"));
  EXPECT_FALSE(holds(g, "int? = prim::If")) << g;
  EXPECT_FALSE(holds(g, "Union(int, str) = prim::If")) << g;
  EXPECT_TRUE(holds(g, "prim::TupleConstruct(%r")) << g;
  // Assigned: joined as always.
  EXPECT_EQ(schemaOf("def f(x: Optional[int], c: bool):\n"
                     "    if x is None:\n"
                     "        x = 1\n"
                     "    return x + 1\n"),
            "f(int? x, bool c) -> int");
  EXPECT_EQ(schemaOf("def f(x: Optional[int], c: bool):\n"
                     "    if x is not None:\n"
                     "        if c:\n"
                     "            x = None\n"
                     "    return x\n"),
            "f(int? x, bool c) -> int?");
  EXPECT_EQ(schemaOf("def f(x: Union[int, str, None]):\n"
                     "    if isinstance(x, int):\n"
                     "        pass\n"
                     "    elif x is None:\n"
                     "        return 'none'\n"
                     "    else:\n"
                     "        x = 'text'\n"
                     "    return 'some'\n"),
            "f(Union(int, NoneType, str) x) -> str");
}

// Sizes that took quadratic time for hours, and memory without end.
TEST_F(EmitterTest, LongRowsOfConditionsAboutTypes) {
  constexpr int kCount = 3000;
  constexpr int kChained = 1000;
  std::string parameters;
  std::string conjunction;
  std::string disjunction;
  std::string chain = "    r = -1\n    if x0 is None:\n        r = 0\n";
  for (int i = 0; i < kCount; ++i) {
    parameters += fmt::format("{}x{}: Optional[int] = 3", i == 0 ? "" : ", ", i);
    conjunction += fmt::format("{}x{} is not None", i == 0 ? "" : " and ", i);
    disjunction += fmt::format("{}x{} is None", i == 0 ? "" : " or ", i);
    if (i > 0 && i < kChained) chain += fmt::format("    elif x{0} is None:\n        r = {0}\n", i);
  }
  const auto whole = [&](const std::string& body) { return "def f(" + parameters + "):\n" + body; };
  for (const std::string& body :
       {"    if " + conjunction + ":\n        return x0\n    return 1\n",
        "    return " + conjunction + "\n", "    return " + disjunction + "\n",
        "    if " + disjunction + ":\n        return 1\n    return x0\n",
        "    assert " + conjunction + "\n    return x0\n",
        "    while " + conjunction + ":\n        return x0\n    return 1\n",
        chain + "    return r\n"}) {
    EXPECT_NO_THROW(schemaOf(whole(body)));
  }
}

TEST_F(EmitterTest, DecidedBranchesAreNotCompiled) {
  std::string g = graphOf(
      "def f(x: int, t):\n"
      "    if x is None:\n"
      "        return t.no_such_method()\n"
      "    if isinstance(t, int):\n"
      "        return t.neither()\n"
      "    if not torch.jit.is_tracing():\n"
      "        return t\n"
      "    return t.nor_this()\n");
  EXPECT_TRUE(lacks(g, "prim::If"));
}

TEST_F(EmitterTest, IsInstanceRefinesUnions) {
  EXPECT_EQ(schemaOf("def f(x: Union[int, List[int]]):\n"
                     "    if isinstance(x, int):\n"
                     "        return x + 1\n"
                     "    else:\n"
                     "        return len(x)\n"),
            "f(Union(int[], int) x) -> int");
}

TEST_F(EmitterTest, EmptyListsTakeTheTypeThatIsWanted) {
  EXPECT_TRUE(
      holds(graphOf("def f():\n    a: List[int] = []\n    return a\n"), "int[] = prim::List"));
  EXPECT_TRUE(holds(graphOf("def f() -> List[str]:\n    return []\n"), "str[] = prim::List"));
  EXPECT_EQ(schemaOf("def f():\n    return []\n"), "f() -> Tensor[]");
}

TEST_F(EmitterTest, SubscriptsOfTensors) {
  std::string g = graphOf("def f(x):\n    return x[0, 1:, ..., None]\n");
  EXPECT_TRUE(holdsInOrder(g, {"aten::select(%x", "aten::slice(", "aten::unsqueeze("}));
  EXPECT_TRUE(holdsInOrder(graphOf("def f(x, i):\n    return x[:, i]\n"),
                           {"aten::slice(", "Tensor?[] = prim::ListConstruct(", "aten::index("}));
  EXPECT_TRUE(holds(graphOf("def f(x):\n    return x[slice(None, 2)]\n"), "aten::slice(%x"));
}

TEST_F(EmitterTest, SizesMayBeWrittenOneByOne) {
  // One int must not be taken for a dtype.
  EXPECT_TRUE(holdsInOrder(graphOf("def f(x):\n    return x.view(6)\n"),
                           {"int[] = prim::ListConstruct", "aten::view(%x"}));
  EXPECT_TRUE(
      holds(graphOf("def f(x):\n    return x.view(2, 3)\n"), "int[] = prim::ListConstruct"));
  // int[2] repeats one int.
  EXPECT_TRUE(holdsInOrder(graphOf("def f(x, k: int):\n    return torch.avg_pool2d(x, k)\n"),
                           {"prim::ListConstruct(%k, %k)", "aten::avg_pool2d"}));
}

TEST_F(EmitterTest, NamedResults) {
  EXPECT_EQ(schemaOf("def f(x):\n    return x.max(0).values\n"), "f(Tensor x) -> Tensor");
  EXPECT_EQ(schemaOf("def f(x):\n    v, i = x.max(dim=0)\n    return i\n"),
            "f(Tensor x) -> Tensor");
}

TEST_F(EmitterTest, TensorsAndListsChangeInPlace) {
  EXPECT_TRUE(holds(graphOf("def f(x):\n    x += 1\n    return x\n"), "aten::add_(%x"));
  EXPECT_TRUE(lacks(graphOf("def f(a: int):\n    a += 1\n    return a\n"), "add_"));
}

TEST_F(EmitterTest, ComprehensionsHaveTheirOwnNames) {
  // The outer x is a tensor and stays one.
  EXPECT_EQ(schemaOf("def f(x, l: List[int]):\n"
                     "    ys = [x + 1 for x in l if x > 0]\n"
                     "    return x, ys\n"),
            "f(Tensor x, int[] l) -> ((Tensor, int[]))");
}

TEST_F(EmitterTest, TuplesUnroll) {
  std::string g = graphOf(
      "def f(t: Tuple[int, str]):\n"
      "    n = 0\n"
      "    for i, e in enumerate(t):\n"
      "        n = n + i\n"
      "    return n, t[-1], t[:1]\n");
  EXPECT_TRUE(lacks(g, "prim::Loop"));
}

TEST_F(EmitterTest, ForksCaptureWhatTheyUse) {
  std::string g = graphOf(
      "def g(a: int, b: int):\n"
      "    return a + b\n"
      "def f(x: int):\n"
      "    future = torch.jit.fork(g, x, 2)\n"
      "    return torch.jit.wait(future)\n");
  EXPECT_TRUE(holdsInOrder(g, {"Future[int] = prim::fork", "(%x)", "aten::wait("}));
  EXPECT_TRUE(lacks(g, "prim::Closure"));
}

TEST_F(EmitterTest, ClassesAndTheirAttributes) {
  std::string g = graphOf(
      "class Point:\n"
      "    def __init__(self, x: int):\n"
      "        self.x = x\n"
      "    def __add__(self, other: 'Point') -> 'Point':\n"
      "        return Point(self.x + other.x)\n"
      "def f(p: Point):\n"
      "    q = p + Point(3)\n"
      "    q.x = 4\n"
      "    return q.x\n");
  EXPECT_TRUE(
      holdsInOrder(g, {"prim::CreateObject", "prim::CallMethod[name=\"__init__\"]",
                       "prim::CallMethod[name=\"__add__\"]", "prim::SetAttr", "prim::GetAttr"}));
}

TEST_F(EmitterTest, FunctionsInAnyOrder) {
  EXPECT_EQ(schemaOf("def f(x: int):\n    return g(x)\ndef g(x: int):\n    return x * 2\n"),
            "f(int x) -> int");
}

TEST_F(EmitterTest, NumbersOnTheLeftOfTensors) {
  EXPECT_TRUE(holds(graphOf("def f(x):\n    return 2 * x\n"), "aten::mul(%x"));
}

TEST_F(EmitterTest, BracesInFormattedStringsAreText) {
  std::string g = graphOf("def f(a: int):\n    return f'{{{a}}}'\n");
  EXPECT_TRUE(holdsInOrder(g, {"\"{\"", "aten::format("}));
}

// Also those that mention themselves.
TEST(CompilationUnits, TypesAreFreedWithThem) {
  auto unit = compileSource(R"(
@torch.jit.interface
class Step:
    def run(self, x: int) -> int:
        pass

class Node:
    def __init__(self, next: Optional[Node], step: Step):
        self.next = next
        self.step = step
    def run(self, x: int) -> int:
        return self.step.run(x)

def last(n: Node) -> Node:
    return n
)",
                            "test.py");
  std::vector<std::weak_ptr<const Type>> types;
  for (const auto& [name, type] : unit->types()) types.push_back(type);
  EXPECT_EQ(types.size(), 2u);
  TypePtr kept = unit->types().back().second;
  unit.reset();
  EXPECT_NE(kept->str().find("Node"), std::string::npos);
  kept.reset();
  for (const auto& type : types) EXPECT_TRUE(type.expired());
}

}  // namespace
}  // namespace wick::emitter_test
