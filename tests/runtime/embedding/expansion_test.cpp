// Short programs that name more than anybody could hold: each is answered or refused, soon.
#include <gtest/gtest.h>

#include "wick.h"

namespace wick {
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

}  // namespace
}  // namespace wick
