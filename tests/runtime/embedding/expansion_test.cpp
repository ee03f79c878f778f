// Short programs that name more than anybody could hold: each is answered or refused, soon.
#include <gtest/gtest.h>

#include "wick.h"

namespace wick::expansion_test {
namespace {

// `line` for i = 1 … n, where "$" stands for i and "~" for i - 1.
std::string lines(int n, const std::string& line) {
  std::string out;
  for (int i = 1; i <= n; ++i) {
    for (char c : line) {
      if (c == '$') {
        out += std::to_string(i);
      } else if (c == '~') {
        out += std::to_string(i - 1);
      } else {
        out += c;
      }
    }
    out += '\n';
  }
  return out;
}

IValue run(const std::string& body, const std::string& result = "int") {
  return compile("def main() -> " + result + ":\n" + body, "expansion.py").call("main", {});
}

// The message that refuses the program, when it is compiled or when it runs.
std::string refusal(const std::string& body, const std::string& result = "int") {
  try {
    run(body, result);
  } catch (const CompileError& error) {
    return error.what();
  } catch (const RuntimeError& error) {
    return error.what();
  }
  return "";
}

TEST(ExpansionTest, sharedLists) {
  const std::string a = "    a0 = [1, 2]\n" + lines(32, "    a$ = [a~, a~]");
  const std::string b = "    b0 = [1, 2]\n" + lines(32, "    b$ = [b~, b~]");
  EXPECT_EQ(run(a + "    return len(a32)\n").toInt(), 2);
  EXPECT_TRUE(run(a + b + "    return a32 == b32\n", "bool").toBool());
  EXPECT_FALSE(run(a + b + "    b0.append(1)\n    return a32 == b32\n", "bool").toBool());
  EXPECT_NE(refusal(a + "    return len(str(a32))\n"), "");
}

TEST(ExpansionTest, sharedTuplesHaveTypesThatAreTooLarge) {
  const std::string message =
      refusal("    a0 = (1, 2)\n" + lines(40, "    a$ = (a~, a~)") + "    return 1\n");
  EXPECT_NE(message.find("is too large"), std::string::npos) << message;
  EXPECT_NE(message.find("expansion.py"), std::string::npos) << message;
}

TEST(ExpansionTest, tuplesOfAnyType) {
  const std::string body =
      "    a: Any = 1\n    b: Any = 1\n    for i in range(60):\n        a = (a, a)\n"
      "        b = (b, b)\n";
  EXPECT_EQ(run(body + "    return len(sorted([a, b]))\n").toInt(), 2);
  EXPECT_NE(refusal(body + "    return len(str(a))\n"), "");
}

TEST(ExpansionTest, listsThatHoldThemselves) {
  const std::string body = "    a: List[Any] = []\n    a.append(a)\n    a.append(a)\n";
  EXPECT_NE(refusal(body + "    return len(str(a))\n"), "");
}

TEST(ExpansionTest, foldedConstants) {
  EXPECT_NE(refusal("    x = 'a'\n" + lines(60, "    x = x + x") + "    return len(x)\n"), "");
  EXPECT_NE(refusal("    return len('a' * 1000000000 * 1000000000)\n"), "");
  EXPECT_NE(refusal("    return len(f\"{f'{5:>999999999}':>999999999}\")\n"), "");
  EXPECT_NE(refusal("    return len('%999999999d' % 5)\n"), "");
  EXPECT_NE(refusal("    return len('{:0>999999999,d}'.format(5))\n"), "");
}

TEST(ExpansionTest, callsThatCallTwice) {
  const std::string source = "def f0(x: int) -> int:\n    return x + 1\n" +
                             lines(40, "def f$(x: int) -> int:\n    return f~(x) + f~(x + 1)") +
                             "def main(x: int) -> int:\n    if x > 0:\n        return x\n"
                             "    return f40(x)\n";
  EXPECT_EQ(compile(source, "calls.py").call("main", {7}).toInt(), 7);
}

TEST(ExpansionTest, interfacesThatMentionEachOther) {
  std::string source;
  for (const std::string name : {"I", "J"}) {
    source += "@torch.jit.interface\nclass " + name + "0:\n    def a(self) -> " + name +
              "0:\n        pass\n" +
              lines(40, "@torch.jit.interface\nclass " + name + "$:\n    def a(self) -> " + name +
                            "~:\n        pass\n    def b(self) -> " + name + "~:\n        pass");
  }
  source += "def g(x: J40) -> int:\n    return 3\ndef main(x: I40) -> int:\n    return g(x)\n";
  EXPECT_NO_THROW(compile(source, "interfaces.py"));
}

TEST(ExpansionTest, branchesWithinBranches) {
  const std::string source =
      "def main(x: int) -> int:\n    y = 0\n    if x == -1:\n        y = 1\n" +
      lines(2000, "    elif x == $:\n        y = $") + "    return y\n";
  EXPECT_EQ(compile(source, "branches.py").call("main", {1234}).toInt(), 1234);
}

TEST(ExpansionTest, variablesThatEveryLevelHandsOn) {
  const std::string variables = lines(1000, "    a$ = 0");
  const std::string elifs = variables + "    if x == -1:\n        x = 1\n" +
                            lines(1000, "    elif x == $:\n        a$ = $") + "    return a7\n";
  const std::string loops =
      variables + "    for i in range(x):\n" + lines(1000, "        a$ += 1") +
      lines(250, "        if a$ > x:\n            continue") + "    return a7\n";
  const std::string conditions = "    while " + lines(600, "x != $ and \\") + "x > 0:\n" +
                                 lines(600, "        if x == $:\n            continue") +
                                 "        x -= 1\n    return x\n";
  for (const std::string& body : {elifs, loops, conditions}) {
    const std::string message = refusal("    x = 3\n" + body);
    EXPECT_NE(message.find("hand on too much"), std::string::npos) << message.substr(0, 400);
  }
}

// n values that live through n branches need no n * n entries.
TEST(ExpansionTest, valuesThatLiveThroughManyBranches) {
  constexpr int kCount = 3000;
  const std::string source =
      "def main(y: int) -> int:\n    n = 0\n" +
      lines(kCount,
            "    a$: Optional[int] = None\n"
            "    if y != $:\n        a$ = y + $") +
      "    for i in range(3):\n        n += 1\n        if a1 is None:\n            n += 10\n" +
      lines(kCount, "    if a$ is None:\n        n += 1000000") + "    return n\n";
  const Program program = compile(source, "values.py");
  RunOptions options;
  options.max_memory = size_t{160} << 20;
  EXPECT_EQ(program.call("main", {0}, {}, options).toInt(), 3);
  EXPECT_EQ(program.call("main", {2000}, {}, options).toInt(), 1000003);
}

TEST(ExpansionTest, unrolledLoopsWithinLoops) {
  std::string tuple = "(";
  for (int i = 0; i < 100; ++i) tuple += std::to_string(i) + ", ";
  tuple += ")";
  const std::string two =
      "    x = 0\n    for a in " + tuple + ":\n        for b in " + tuple + ":\n";
  EXPECT_EQ(run(two + "            x += 1\n    return x\n").toInt(), 10000);
  const std::string message =
      refusal(two + "            for c in " + tuple + ":\n                x += 1\n    return x\n");
  EXPECT_NE(message.find("are unrolled, make a function of more than"), std::string::npos)
      << message;
}

}  // namespace
}  // namespace wick::expansion_test
