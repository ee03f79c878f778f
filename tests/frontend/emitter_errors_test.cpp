// What the compiler refuses, and how it says so.
#include "tests/frontend/emitter_testing.h"

namespace wick::emitter_errors_test {
namespace {

class EmitterErrors : public EmitterTest {
 protected:
  void expectError(const std::string& source, const std::string& part) {
    EXPECT_TRUE(holds(errorOf(source), part)) << source;
  }
};

TEST_F(EmitterErrors, UndefinedNames) {
  expectError("def f(value: int):\n    return valeu\n",
              "undefined value valeu; did you mean 'value'?");
  expectError("def f(x):\n    return torch.rellu(x)\n",
              "has no attribute 'rellu'; did you mean 'relu'?");
  expectError("def f(x):\n    return x.rellu()\n",
              "'Tensor' object has no attribute or method 'rellu'");
  expectError("def f(x):\n    return torch.ops.aten.nothing(x)\n", "'nothing'");
  expectError("def f(c: bool):\n    if c:\n        a = 1\n    return a\n",
              "a is not defined here: it is not defined in the false branch");
  expectError("def f(x: Unknown):\n    return x\n", "Unknown type name 'Unknown'");
}

TEST_F(EmitterErrors, PointsAtThePlace) {
  std::string message = errorOf("def f(x: int):\n    y = x\n    return zz\n");
  EXPECT_TRUE(holdsInOrder(message, {"File \"test.py\", line 3", "return zz", "<--- HERE"}));
}

TEST_F(EmitterErrors, WrongTypes) {
  expectError("def f(a: int) -> str:\n    return a\n",
              "annotated as having type str but is actually of type int");
  expectError("def f(a: int):\n    a = 'x'\n    for i in range(3):\n        a = 1\n    return a\n",
              "previously had type 'str' but is now being assigned to a value of type 'int'");
  expectError("def f(a: int):\n    b: str = a\n    return b\n", "annotated with type str");
  expectError("def f(c: bool):\n    if c:\n        return 1\n    return 'x'\n",
              "Previous return statement");
  expectError("def f(x: Optional[Tensor]):\n    return x.relu()\n", "it may be None");
  expectError("def f(a: Tuple[int, str]):\n    return a[2]\n", "Tuple index out of range");
  expectError("def f(a: Tuple[int, str], i: int):\n    return a[i]\n", "non-integer literal");
  expectError("def f() -> int:\n    pass\n", "does not return along all paths");
}

TEST_F(EmitterErrors, CallsListTheCandidates) {
  std::string message = errorOf("def f(a: str, b: int):\n    return a + b\n");
  EXPECT_TRUE(holdsInOrder(message, {"no overload of aten::add takes (str, int)", "aten::add.str",
                                     "Expected a value of type 'str' for argument 'b'"}));
  expectError("def g(a: int):\n    return a\ndef f():\n    return g()\n",
              "Argument a not provided");
  expectError("def g(a: int):\n    return a\ndef f():\n    return g(1, 2)\n",
              "Expected at most 1 argument but found 2");
  expectError("def g(a: int):\n    return a\ndef f():\n    return g(1, b=2)\n",
              "Keyword argument b unknown");
  expectError("def g(a: int):\n    return a\ndef f():\n    return g(1, a=2)\n", "specified twice");
}

TEST_F(EmitterErrors, ControlFlow) {
  expectError("def f():\n    break\n", "'break' outside loop");
  expectError("def f():\n    for i in range(3):\n        def g():\n            continue\n",
              "'continue' outside loop");
  expectError("def f(t: Tuple[int, str]):\n    for e in t:\n        break\n", "unrolled");
  expectError("def f(n: int):\n    return f(n)\n", "recursive");
}

TEST_F(EmitterErrors, Classes) {
  const std::string point = "class P:\n    def __init__(self):\n        self.x = 1\n";
  expectError(point + "def f(p: P):\n    return p.y\n", "has no attribute or method 'y'");
  expectError(point + "def f(p: P):\n    p.x = 'a'\n", "Expected int but got str");
  expectError(point + "def f(p: P):\n    p.y = 1\n", "nonexistent attribute: y");
  expectError("class Q(Base):\n    pass\ndef f():\n    pass\n", "inheritance");
  expectError("def f():\n    with 'text' as t:\n        pass\n", "must return an object");
}

TEST_F(EmitterErrors, WithStatements) {
  const auto with = [](const std::string& methods) {
    return "class C:\n    def __init__(self):\n        self.n = 0\n" + methods +
           "def f(x: int):\n    with C():\n        return x\n";
  };
  const std::string enter = "    def __enter__(self):\n        return self.n\n";
  expectError(with(""),
              "whose class defines __enter__ and __exit__, found __torch__.C, which has no "
              "__enter__");
  expectError(with(enter), "found __torch__.C, which has no __exit__");
  expectError(with("    def __enter__(self, n: int):\n        return n\n"
                   "    def __exit__(self, a: Any, b: Any, c: Any):\n        pass\n"),
              "__enter__ must have only one argument and one return value");
  expectError(with(enter + "    def __exit__(self):\n        pass\n"),
              "__exit__ must have four arguments");
  expectError(with(enter + "    def __exit__(self, a: Any, b: int, c: Any):\n        pass\n"),
              "argument 2 of __exit__ must have Any type");
}

TEST_F(EmitterErrors, LocalFunctions) {
  expectError("def f():\n    g = lambda x: x\n    return g()\n", "needs a value for 'x'");
  expectError("def f():\n    g = lambda x: x\n    return g(1, 2)\n",
              "takes 1 positional arguments");
  expectError("def f():\n    g = lambda x: x\n    return g(y=1)\n", "has no parameter 'y'");
  expectError("def f():\n    g = lambda x: x\n    return g(1, x=1)\n", "two values for 'x'");
  expectError("def f():\n    g = lambda x: x + 'a'\n    return g(1)\n",
              "this is in a call of the function '<lambda>'");
  expectError("def f():\n    def g():\n        return lambda: 1\n    return g()()\n",
              "can be called");
  expectError("def f():\n    g = lambda: lambda: 1\n    return g()()\n", "can be called");
  expectError("def f(n: int):\n    if n > 0:\n        g = lambda: 1\n    return g()\n",
              "undefined");
  expectError("def g(h: Callable):\n    return g(h)\ndef f():\n    return g(abs)\n", "recursive");
  // Each calls the one before: high, or large, beyond any stack or memory.
  std::string chain = "def f():\n    g0 = lambda x: x\n";
  for (int i = 1; i < 2000; ++i) {
    chain += "    g" + std::to_string(i) + " = lambda x: g" + std::to_string(i - 1) + "(x)\n";
  }
  expectError(chain + "    return g1999(1)\n", "expand to too much");
  std::string tower = "def f():\n    g0 = lambda x: x + 1\n";
  for (int i = 1; i < 30; ++i) {
    const std::string before = "g" + std::to_string(i - 1);
    tower += "    g" + std::to_string(i) + " = lambda x: " + before + "(x) + " + before + "(x)\n";
  }
  expectError(tower + "    return g29(1)\n", "expand to too much");
}

TEST_F(EmitterErrors, NotSupported) {
  expectError("def f():\n    return lambda: 1\n", "the function '<lambda>' can be called");
  expectError("def f(x):\n    return x.tolist()\n", "Expected type hint for result of tolist()");
  expectError("def f(x):\n    print(x, end='')\n", "doesn't accept any keyword arguments");
  expectError("def f(x):\n    for a, b in x, x:\n        pass\n", "list of iterables");
}

TEST_F(EmitterErrors, DeepNestingIsRefusedNotFatal) {
  std::string expr = "x";
  for (int i = 0; i < 400; ++i) expr = "(" + expr + " + x)";
  EXPECT_EQ(errorOf("def f(x: int):\n    return " + expr + "\n"), "compiled");
}

}  // namespace
}  // namespace wick::emitter_errors_test
