#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>

#include "core/error.h"
#include "frontend/parser.h"

namespace wick::parser_errors_test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

// The message of the first error and the text that it marks.
std::string failure(const std::string& text) {
  try {
    Parser(text).parseModule();
  } catch (const CompileError& error) {
    return error.brief() + " | " + std::string(error.range().text());
  }
  return "parsed";
}

std::string repeat(const std::string& text, size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Errors, SayWhatWasExpectedAndFound) {
  EXPECT_EQ(failure("return [x x]"), "expected ']' but found identifier 'x' | x");
  EXPECT_EQ(failure("x = "), "expected an expression but found the end of the line | ");
  EXPECT_EQ(failure("x = = 1"), "expected an expression but found '=' | =");
  EXPECT_EQ(failure("print 'a'"), "expected the end of the line but found string 'a' | 'a'");
  EXPECT_EQ(failure("if x\n  pass"), "expected ':' but found the end of the line | \n");
  EXPECT_EQ(failure("if x:\npass"), "expected an indented block but found 'pass' | pass");
  EXPECT_EQ(failure("def 1(): pass"), "expected an identifier but found number 1 | 1");
  EXPECT_EQ(failure("pass\n  pass"), "expected a statement but found an unexpected indentation | ");
  EXPECT_EQ(failure("else: pass"), "expected a statement but found 'else' without an 'if' | else");
  EXPECT_EQ(failure("a not b"), "expected the end of the line but found 'not' | not");
  EXPECT_EQ(failure("a + not b"),
            "expected an operand; put 'not ...' into parentheses, but found 'not' | not");
  EXPECT_EQ(failure("f(x"), "'(' was never closed | (");
  EXPECT_EQ(failure("a if b"), "expected 'else' but found the end of the line | ");
  EXPECT_EQ(failure("@a\nx = 1"),
            "expected 'def' or 'class' after a decorator but found identifier 'x' | x");
  EXPECT_EQ(failure("x[]"), "expected an expression but found ']' | ]");
  EXPECT_EQ(failure("(x := 1)"), "expected ')' but found ':=' | :=");
}

TEST(Errors, NameWhatTorchScriptLacks) {
  EXPECT_THAT(failure("try:\n  pass"), StartsWith("'try' is not supported"));
  EXPECT_THAT(failure("x = yield 1"), StartsWith("'yield' is not supported"));
  EXPECT_THAT(failure("async def f(): pass"), StartsWith("'async' is not supported"));
  EXPECT_THAT(failure("{1, 2}"), StartsWith("sets are not supported"));
  EXPECT_THAT(failure("{x for x in y}"), StartsWith("sets are not supported"));
  EXPECT_THAT(failure("f(**x)"), StartsWith("'**' arguments"));
  EXPECT_THAT(failure("def f(*x): pass"), StartsWith("functions with a variable number"));
  EXPECT_THAT(failure("def f(**x): pass"), StartsWith("functions with arbitrary keyword"));
  EXPECT_THAT(failure("def f(x, /): pass"), StartsWith("positional-only parameters"));
  EXPECT_THAT(failure("for x in y: pass\nelse: pass"), StartsWith("'else' after a 'for' loop"));
  EXPECT_THAT(failure("while x: pass\nelse: pass"), StartsWith("'else' after a 'while' loop"));
  EXPECT_THAT(failure("for a, b, in x, x,: pass"), StartsWith("a list of iterables"));
  EXPECT_THAT(failure("class A(metaclass=B): pass"), StartsWith("keyword arguments of a class"));
  EXPECT_THAT(failure("b'x'"), StartsWith("bytes literals"));
  EXPECT_THAT(failure("'\\N{DASH}'"), StartsWith("escapes with the name"));
}

TEST(Errors, Targets) {
  EXPECT_THAT(failure("f() = 1"), StartsWith("cannot assign to this expression"));
  EXPECT_THAT(failure("a = 1 = b"), StartsWith("cannot assign to this expression"));
  EXPECT_THAT(failure("(a, 1) = b"), StartsWith("cannot assign to this expression"));
  EXPECT_THAT(failure("a, b += 1"), StartsWith("an augmented assignment needs"));
  EXPECT_THAT(failure("a, b: int = 1"), StartsWith("only a variable"));
  EXPECT_THAT(failure("*a, *b = 1"), StartsWith("only one target"));
  EXPECT_THAT(failure("*a = 1"), StartsWith("a starred expression must be part"));
  EXPECT_THAT(failure("del f()"), StartsWith("cannot delete this expression"));
  EXPECT_THAT(failure("for f() in x: pass"), StartsWith("cannot assign to this expression"));
  EXPECT_THAT(failure("[x for 1 in y]"), StartsWith("cannot assign to this expression"));
  EXPECT_THAT(failure("with a as 1: pass"), StartsWith("cannot assign to this expression"));
}

TEST(Errors, Signatures) {
  EXPECT_EQ(failure("def f(x, x): pass"), "two parameters are named 'x' | x");
  EXPECT_EQ(failure("def f(x=1, y): pass"),
            "parameter 'y' without a default follows one with a default | y");
  EXPECT_EQ(failure("def f(x=1, *, y): pass"), "parsed");
  EXPECT_EQ(failure("def f(x, *): pass"), "expected ',' but found ')' | )");
  EXPECT_THAT(failure("def f(*, *, x): pass"), StartsWith("'*' stands twice"));
  EXPECT_EQ(failure("f(a=1, 2)"), "a positional argument follows a keyword argument | 2");
  EXPECT_EQ(failure("f(a=1, a=2)"), "the keyword argument 'a' is given twice | a");
  EXPECT_THAT(failure("f(x for x in y, 1)"), StartsWith("a generator expression that is not"));
  EXPECT_EQ(
      failure("def f(x):\n  # type: (int, int) -> int\n  pass"),
      "expected as many types in this comment as the function has parameters, 1, but found 2 | "
      "(int, int) -> int");
  EXPECT_EQ(failure("x = 1 # type: int int"),
            "expected nothing after the type in this comment but found identifier 'int' | int");
}

TEST(Errors, Strings) {
  EXPECT_EQ(failure("'\\x4'"), "expected 2 hexadecimal digits after '\\x' | \\x4");
  EXPECT_EQ(failure("'\\ud800'"), "the escape names no Unicode character | \\ud800");
  EXPECT_EQ(failure("'\\U00110000'"), "the escape names no Unicode character | \\U00110000");
  EXPECT_EQ(failure("'\\777'"), "the octal escape is larger than \\377 | \\777");
  EXPECT_EQ(failure("ur'a'"), "'ur' is not a prefix of a string | ur'a'");
  EXPECT_EQ(failure("f'}'"), "f-string: a single '}' is not allowed; write '}}' | }");
  EXPECT_THAT(failure("f'{'"), StartsWith("f-string: expected '}'"));
  EXPECT_THAT(failure("f'{}'"), StartsWith("f-string: expected an expression"));
  EXPECT_THAT(failure("f'{ }'"), StartsWith("f-string: expected an expression"));
  EXPECT_THAT(failure("f'{a b}'"), StartsWith("expected nothing after the expression"));
  EXPECT_THAT(failure("f'{a!x}'"), StartsWith("f-string: expected 's', 'r' or 'a'"));
  EXPECT_THAT(failure("f'{a:{b:{c}}}'"), StartsWith("f-string: expressions are nested too deep"));
  EXPECT_THAT(failure("f'{a\\n}'"), StartsWith("f-string: an expression must not contain"));
  EXPECT_THAT(failure("f'{a:'"), StartsWith("f-string: expected '}'"));
  EXPECT_THAT(failure("f'{(a}'"), StartsWith("f-string: expected '}'"));
}

// Each error as "line: message | marked text".
std::vector<std::string> failures(const std::string& text) {
  std::vector<CompileError> errors;
  Parser(text).parseModule(errors);
  std::vector<std::string> out;
  for (const CompileError& error : errors) {
    const SourceRange& range = error.range();
    out.push_back(fmt::format("{}: {} | {}", range.source()->lineNumber(range.start()),
                              error.brief(), range.text()));
  }
  return out;
}

using testing::ElementsAre;

TEST(Recovery, ReportsErrorsOfSeveralStatements) {
  const char* text =
      "def f(x:\n  return x\ndef g():\n  return [x x]\nif a:\n  b\nelif c d:\n  e\nelse:\n  g\nx "
      "= = 1\n";
  EXPECT_THAT(failures(text), ElementsAre("1: '(' was never closed | (",
                                          "4: expected ']' but found identifier 'x' | x",
                                          "7: expected ':' but found identifier 'd' | d",
                                          "11: expected an expression but found '=' | ="));
  try {
    Parser(text).parseModule();
    FAIL() << "parsed";
  } catch (const CompileError& error) {
    EXPECT_EQ(error.brief(), "'(' was never closed");
    EXPECT_EQ(error.range().text(), "(");
    std::string what = error.what();
    EXPECT_THAT(what, StartsWith(error.brief()));
    EXPECT_THAT(what, HasSubstr("expected ']' but found identifier 'x'"));
    EXPECT_THAT(what, HasSubstr("expected ':' but found identifier 'd'"));
    EXPECT_THAT(what, HasSubstr("expected an expression but found '='"));
  }
}

TEST(Recovery, HeadersDoNotHideTheirBlocks) {
  EXPECT_THAT(
      failures("def f(x: Tensor -> Tensor:\n"
               "    y = = 3\n"
               "    if x > :\n"
               "        return 3 3\n"
               "    elif x = 3:\n"
               "        return 1\n"
               "    else\n"
               "        y y\n"
               "    return [x x]\n"
               "def g(x y):\n"
               "    while x\n"
               "        return 1\n"),
      ElementsAre(
          "1: '(' was never closed | (", "2: expected an expression but found '=' | =",
          "3: expected an expression but found ':' | :",
          "4: expected the end of the line but found number 3 | 3",
          "5: expected ':' but found '=' | =", "7: expected ':' but found the end of the line | \n",
          "8: expected the end of the line but found identifier 'y' | y",
          "9: expected ']' but found identifier 'x' | x",
          "10: expected ')' but found identifier 'y' | y",
          "11: expected ':' but found the end of the line | \n"));
  EXPECT_THAT(
      failures("def f(n: int) -> List[str:\n"
               "    l: List[str] = []\n"
               "    for in x:\n"
               "        with a as 1:\n"
               "            return 1 1\n"
               "class A(:\n"
               "    def f(self:\n"
               "        self.x = = 1\n"
               "    def g(self, x):\n"
               "        return self.x x\n"),
      ElementsAre("1: '[' was never closed | [", "3: expected an expression but found 'in' | in",
                  "4: cannot assign to this expression: expected a variable, an attribute, "
                  "an element or a tuple of them | 1",
                  "5: expected the end of the line but found number 1 | 1",
                  "6: '(' was never closed | (", "7: '(' was never closed | (",
                  "8: expected an expression but found '=' | =",
                  "10: expected the end of the line but found identifier 'x' | x"));
}

TEST(Recovery, UnclosedBracketsStandBesideOtherErrors) {
  EXPECT_THAT(failures("def f(x):\n"
                       "    y = foo(x, [1, 2\n"
                       "    z = 3\n"
                       "    return z z\n"
                       "class A:\n"
                       "    def g(self):\n"
                       "        self.x = (1 +\n"
                       "        if self.x:\n"
                       "            return {'a': 1\n"
                       "    @property\n"
                       "    def h(self) -> int:\n"
                       "        return (3\n"
                       "@torch.jit.script(\n"
                       "def k():\n"
                       "    return [x,\n"),
              ElementsAre("2: '[' was never closed | [",
                          "4: expected the end of the line but found identifier 'z' | z",
                          "7: '(' was never closed | (", "9: '{' was never closed | {",
                          "12: '(' was never closed | (", "13: '(' was never closed | (",
                          "15: '[' was never closed | ["));
}

TEST(Recovery, OneMistakeGivesOneError) {
  for (const char* text : {
           "x = foo(a b,\n  c,\n  d)\ny = 1\n",
           "x = foo(a b,\nc, d)\ny = 1\n",
           "x = foo(\n    a b,\n    c,\n)\ny = 1\n",
           "x = foo(a)), (\n    b,\n    c)\ny = 1\n",
           "x = fooa=1,\n    b=2,\n)\ny = 1\n",
           "return\n    x,\n    y\n], z\nw\n",
           "def f(x):\nreturn x\ndef g(): pass\n",
           "def f(x:\n  '''doc ( [\n  string'''\n  return x\n",
           "def f(x,\n      y: int -> int:\n    return x\n",
           "f(x):\n    if x:\n        return 1\n    else:\n        return 2\n",
           "for x in y:\n  x\nelse:\n  y\nz = 1\n",
           "x > 3:\n  y\nelif z:\n  y\nelse:\n  z\n",
           "def f():\n    if x:\n        a\n      b\n      c\n    d\n",
           "def f():\n    x\n      y\n      z\n    t\n",
           "def f():\n    x\n  y\n  z\nt\n",
           "  x\ny\nz\n",
           "return a), b,\n    c,\n    d)\ne\n",
           "x = 'abc\n\ny = 1\n",
           "x = foo('abc, 1)\ny = 1\n",
           "x = foo('abc,\n        1)\ny = 1\n",
           "x = [1, 2)\ny = 1\n",
           "if x: y = = 1\nelse: z\n",
           "a = 1; b = = 2; c = 3\n",
           "else:\n  x\n",
           "x = $\ny = 1\n",
           "$\ny = 1\n",
           "def f(x):\n  # type: (int, int) -> int\n  pass\n",
           "x = f'{a b}'\ny = 1\n",
           "class A\n    def f(self):\n        pass\n    def g(self):\n        pass\n",
           "x = (1 +\n@decorator\ndef f(): pass\n",
           "x = f(a,\ny = 3\nz = 4\nw\n",
           "with a as 1:\n    b\n",
       }) {
    EXPECT_EQ(failures(text).size(), 1u) << text << testing::PrintToString(failures(text));
  }
}

TEST(Recovery, BrokenStatementsStandInTheTree) {
  std::vector<CompileError> errors;
  List<Stmt> module = Parser(
                          "def f(x):\n    a = 1\n    b = = 2\n    c = 3\n"
                          "@torch.jit.export\ndef g(x y):\n    pass\n"
                          "LIMIT = = 3\ndef (x): pass\n@torch..jit\ndef h(): pass\n")
                          .parseModule(errors);
  ASSERT_EQ(module.size(), 5u);
  List<Stmt> body = Def(module[0].tree()).statements();
  ASSERT_EQ(body.size(), 3u);
  EXPECT_EQ(Broken(body[1].tree()).message(), "expected an expression but found '='");
  auto names = [&](size_t i) {
    std::vector<std::string> out;
    for (Ident name : Broken(module[i].tree()).names()) out.push_back(name.name());
    return out;
  };
  EXPECT_THAT(names(1), ElementsAre("g"));
  EXPECT_THAT(names(2), ElementsAre("LIMIT"));
  EXPECT_THAT(names(3), ElementsAre());
  EXPECT_THAT(names(4), ElementsAre("h"));
  EXPECT_EQ(errors.size(), 5u);
}

TEST(Recovery, GoesOnAfterTextThatIsNestedTooDeep) {
  std::string text = "x = " + repeat("(", 1000) + "\ny = = 1\n";
  EXPECT_THAT(failures(text).back(), StartsWith("2: expected an expression"));
  EXPECT_EQ(failures(text).size(), 2u);
}

TEST(Recovery, StopsAfterTheLimit) {
  try {
    Parser(repeat("x = = 1\n", 1000)).parseModule();
    FAIL() << "parsed";
  } catch (const CompileError& error) {
    size_t count = 0;
    std::string what = error.what();
    for (size_t at = 0; (at = what.find("HERE", at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, kMaxReportedErrors);
  }
}

TEST(Recovery, AlwaysAdvances) {
  for (const char* text :
       {"r'abc", "$", "  x\n $\n y\n z z", "@", "'''", "0x\n0x\n0x", "\\", "x\n\\",
        "def f():\n    x\n  y\nz z\n", "(\n)\n(\n", "a a\n\"\"\"\nb b\n"}) {
    EXPECT_THROW(Parser(text).parseModule(), CompileError) << text;
  }
}

// Nesting of all kinds: 200 levels parse, 100,000 are refused without exhausting the stack.
TEST(Limits, Nesting) {
  struct Shape {
    const char* open;
    const char* middle;
    const char* close;
  };
  for (const Shape& shape : std::initializer_list<Shape>{
           {"(", "1", ")"},
           {"[", "1", "]"},
           {"{1:", "1", "}"},
           {"f(", "1", ")"},
           {"f(a=", "1", ")"},
           {"(", "1", ",)"},
           {"[", "1", " for x in y]"},
           {"x[", "1", "]"},
           {"x[:", "1", "]"},
           {"-", "1", ""},
           {"not ", "1", ""},
           {"1 ** ", "1", ""},
           {"1 + ", "1", ""},
           {"1 < ", "1", ""},
           {"1 and ", "1", ""},
           {"lambda: ", "1", ""},
           {"lambda x=", "1", ": 2"},
           {"1 if 2 else ", "1", ""},
           {"", "a", ".b"},
           {"", "a", "[0]"},
           {"", "a", "()"},
       }) {
    auto nested = [&](size_t levels) {
      return "x = " + repeat(shape.open, levels) + shape.middle + repeat(shape.close, levels);
    };
    EXPECT_EQ(failure(nested(200)), "parsed") << shape.open << shape.close;
    EXPECT_THAT(failure(nested(100'000)),
                testing::AnyOf(StartsWith("the program is nested deeper than 500 levels"),
                               StartsWith("the program chains more than 20000 operators")))
        << shape.open << shape.close;
  }
  auto targets = [](size_t levels) {
    return repeat("(", levels) + "x" + repeat(",)", levels) + " = 1";
  };
  EXPECT_EQ(failure(targets(200)), "parsed");
  EXPECT_THAT(failure(targets(100'000)), StartsWith("the program is nested deeper"));
}

TEST(Limits, Blocks) {
  auto nested = [](size_t levels) {
    std::string text;
    for (size_t i = 0; i < levels; ++i) text += std::string(i, ' ') + "if x:\n";
    return text + std::string(levels, ' ') + "pass\n";
  };
  EXPECT_EQ(failure(nested(200)), "parsed");
  EXPECT_THAT(failure(nested(3000)), StartsWith("the program is nested deeper"));
  auto elif = [](size_t arms) { return "if x:\n  pass\n" + repeat("elif y:\n  pass\n", arms); };
  EXPECT_EQ(failure(elif (19'000)), "parsed");
  EXPECT_THAT(failure(elif (100'000)),
              StartsWith("the program chains more than 20000 operators or branches here"));
}

TEST(Limits, LengthIsNoNesting) {
  constexpr size_t kMany = 100'000;
  EXPECT_EQ(failure("x = " + repeat("a = ", kMany) + "1"), "parsed");
  EXPECT_EQ(failure("x = " + repeat("'a' ", kMany)), "parsed");
  EXPECT_EQ(failure("x = f'" + repeat("{a}", kMany) + "'"), "parsed");
  EXPECT_EQ(failure(repeat("x;", kMany)), "parsed");
  EXPECT_EQ(failure("f(" + repeat("x, ", kMany) + ")"), "parsed");
  EXPECT_EQ(failure("x = " + std::string(kMany, '9')), "parsed");
}

TEST(Limits, TimeIsLinear) {
  std::string text = repeat(
      "def f(x: Tensor, y: int = 3) -> Tensor:\n"
      "    z = torch.relu(x + y * 2.5, alpha=3, beta=[1, 2, 3])\n"
      "    if z.size(0) > 3 and y < 2:\n"
      "        return z[1:, None, ...]\n"
      "    return {'a': z, 'b': (x, y)}['a']  # comment\n",
      4000);
  auto start = std::chrono::steady_clock::now();
  EXPECT_EQ(Parser(text).parseModule().size(), 4000u);
  double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  // An optimized build takes a tenth; a quadratic step would take minutes.
  EXPECT_LT(seconds, 60.0);
}

}  // namespace
}  // namespace wick::parser_errors_test
