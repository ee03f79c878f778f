// Damages single tokens of a valid program and looks at what the compiler reports: each mistake
// once, where it is, and nothing about the functions that are whole.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "frontend/compile.h"
#include "frontend/lexer.h"
#include "ir/function.h"

namespace wick::recovery_test {
namespace {

// Each part is a definition of its own; several use those before them.
const char* const kParts[] = {
    R"(def scaled(x: Tensor, factor: float = 2.0) -> Tensor:
    """Doc (string."""
    total = torch.zeros_like(x)
    for i in range(3):
        total += x * factor
    return total
)",
    R"(class Counter:
    def __init__(self, start: int):
        self.n = start

    def add(self, by: int) -> int:
        if by > 0 and self.n < 100:
            self.n += by
        elif by == 0:
            pass
        else:
            raise ValueError("negative: " + str(by))
        return self.n
)",
    R"(@torch.jit.export
def count(c: Counter, words: List[str]) -> Dict[str, int]:
    found: Dict[str, int] = {}
    for word in words:
        if word not in found:
            found[word] = 0
        found[word] += c.add(1)
    return found
)",
    R"(def pick(flags: List[bool], *, default: Optional[int] = None) -> int:
    i = 0
    while i < len(flags):
        if flags[i]:
            return i
        i += 1
    assert default is not None, f"none of {len(flags)}"
    return default
)",
    R"(def shapes(x):
    # type: (Tensor) -> Tuple[int, List[int]]
    sizes = [s * 2 for s in x.shape if s > 1]
    with torch.no_grad():
        y = scaled(
            x,
            factor=1.5,
        )[..., 1:]
    return (y.dim(), sizes)
)",
    R"(def main(x):
    c = Counter(3)
    d = count(c, ['a', 'b'])
    n = pick([False, True], default=5) if len(d) > 0 else 0
    return shapes(x), n, -c.n ** 2
)",
};
constexpr size_t kPartCount = std::size(kParts);

struct Piece {
  size_t start;
  size_t end;
  size_t lead;  // where the blanks before it begin, or its start at the beginning of a line
};

std::vector<Piece> tokensOf(const std::string& text) {
  Lexer lexer(std::make_shared<Source>(text));
  std::vector<Piece> out;
  bool first = true;
  for (; lexer.cur().kind != TK_EOF; lexer.next()) {
    const Token& token = lexer.cur();
    if (token.kind == TK_INDENT || token.kind == TK_DEDENT) continue;
    if (token.kind == TK_NEWLINE) {
      first = true;
      continue;
    }
    size_t lead = token.range.start();
    while (!first && lead > 0 && text[lead - 1] == ' ') --lead;
    out.push_back({token.range.start(), token.range.end(), lead});
    first = false;
  }
  return out;
}

std::vector<std::string> damaged(const std::string& text) {
  std::vector<std::string> out;
  for (const Piece& t : tokensOf(text)) {
    const std::string before = text.substr(0, t.start);
    const std::string token = text.substr(t.start, t.end - t.start);
    const std::string after = text.substr(t.end);
    size_t skipped = after.find_first_not_of(' ');
    out.push_back(before + after.substr(skipped == std::string::npos ? 0 : skipped));
    out.push_back(before + token + " " + token + after);
    for (const char* junk : {"(", ")", "]", "{", ":", "=", "if", "def", "return", "x", "1", "->"}) {
      out.push_back(before + junk + " " + token + after);
      // A word in place of a bracket is two mistakes.
      if (std::isalpha(junk[0]) && std::string("()[]{}").find(token) != std::string::npos) continue;
      out.push_back(before + junk + after);
    }
  }
  return out;
}

struct Program {
  std::string text;
  std::vector<size_t> first_lines;  // of the parts
};

Program programOf(const std::vector<std::string>& parts) {
  Program out;
  size_t line = 1;
  for (const std::string& part : parts) {
    out.first_lines.push_back(line);
    out.text += part + "\n";
    line += static_cast<size_t>(std::count(part.begin(), part.end(), '\n')) + 1;
  }
  return out;
}

// The number of errors in each part.
std::vector<size_t> errorsOf(const Program& program, std::string* messages) {
  CompileErrors errors = CompileErrors::unlimited();
  compileInto(std::make_shared<CompilationUnit>(), program.text, "test.py", &errors);
  std::vector<size_t> out(program.first_lines.size());
  for (const CompileError& error : errors.all()) {
    const size_t line = error.range().source()->lineNumber(error.range().start());
    auto after = std::upper_bound(program.first_lines.begin(), program.first_lines.end(), line);
    ++out[static_cast<size_t>(after - program.first_lines.begin()) - 1];
    *messages += fmt::format("{}: {}\n", line, error.brief());
  }
  return out;
}

// Damage that leaves a program which can be parsed makes another program, whose errors may stand
// wherever it is used.
bool isSyntax(const std::string& text) {
  std::vector<CompileError> errors;
  Parser(text).parseModule(errors);
  return !errors.empty();
}

TEST(RecoveryTest, TheProgramIsValid) {
  std::string messages;
  errorsOf(programOf({std::begin(kParts), std::end(kParts)}), &messages);
  EXPECT_EQ(messages, "");
}

TEST(RecoveryTest, EachMistakeIsReportedOnce) {
  size_t tried = 0;
  for (size_t i = 0; i < kPartCount; ++i) {
    for (const std::string& broken : damaged(kParts[i])) {
      if (!isSyntax(broken)) continue;
      ++tried;
      std::vector<std::string> parts(std::begin(kParts), std::end(kParts));
      parts[i] = broken;
      std::string messages;
      std::vector<size_t> found = errorsOf(programOf(parts), &messages);
      std::vector<size_t> expected(kPartCount, 0);
      expected[i] = 1;
      EXPECT_EQ(found, expected) << broken << messages;
    }
  }
  EXPECT_GT(tried, 3000u);
}

TEST(RecoveryTest, EachOfTwoMistakesIsReported) {
  std::vector<std::vector<std::string>> variants;
  for (const char* part : kParts) {
    variants.emplace_back();
    for (std::string& broken : damaged(part)) {
      if (isSyntax(broken)) variants.back().push_back(std::move(broken));
    }
  }
  uint64_t state = 1;
  auto random = [&](size_t bound) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return static_cast<size_t>(state >> 33) % bound;
  };
  for (size_t round = 0; round < 1000; ++round) {
    const size_t i = random(kPartCount);
    const size_t j = random(kPartCount);
    if (i == j) continue;
    std::vector<std::string> parts(std::begin(kParts), std::end(kParts));
    std::vector<size_t> expected(kPartCount, 0);
    for (size_t k : {i, j}) {
      parts[k] = variants[k][random(variants[k].size())];
      expected[k] = 1;
    }
    std::string messages;
    EXPECT_EQ(errorsOf(programOf(parts), &messages), expected) << parts[i] << parts[j] << messages;
  }
}

// Errors of all stages in one file.
TEST(RecoveryTest, SyntaxAndTypesAreReportedTogether) {
  std::string messages;
  errorsOf(
      programOf({"def f(x: Tensor -> Tensor:\n    y = = 3\n    return y\n",
                 "def g(x: int):\n    return undefined_thing + f(x)\n",
                 "class A:\n    def m(self, x: int) -> str:\n        return x\n"
                 "    def n(self):\n        z = (1,\n        return z\n",
                 "def h(a: A, x: int):\n    if x > 0:\n        return a.m(x x)\n    return f(x)\n",
                 "LIMIT = = 3\n", "def k(x: int):\n    return x + LIMIT\n",
                 "def l(x: int):\n    return x + LIMITS\n",
                 "def m(x: int):\n    return f(x), x.foo\n"}),
      &messages);
  EXPECT_EQ(messages,
            "1: '(' was never closed\n"
            "2: expected an expression but found '='\n"
            "12: '(' was never closed\n"
            "17: expected ')' but found identifier 'x'\n"
            "20: expected an expression but found '='\n"
            "10: Return value was annotated as having type str but is actually of type int\n"
            "6: undefined value undefined_thing\n"
            "26: undefined value LIMITS\n");
}

std::string messagesOf(const char* text) {
  std::string messages;
  errorsOf(programOf({text}), &messages);
  return messages;
}

// A definition without a name may have had any, but one only.
TEST(RecoveryTest, ADefinitionWithoutNameIsOneUnknownName) {
  EXPECT_EQ(messagesOf("def (x: int) -> int:\n    return x\n"
                       "def f(x: int):\n    return lost(x)\n"
                       "def g(x: int):\n    return lost(x) + 1\n"
                       "def h(x: int):\n    return x + other_thing\n"),
            "1: expected an identifier but found '('\n"
            "8: undefined value other_thing\n");
  EXPECT_EQ(messagesOf("def (x: int) -> int:\n    return x\n"
                       "class :\n    pass\n"
                       "def f(x: int):\n    return lost(x)\n"
                       "def g(x: Missing):\n    return x\n"
                       "def h(x: int):\n    return x + other_thing\n"),
            "1: expected an identifier but found '('\n"
            "3: expected an identifier but found ':'\n"
            "10: undefined value other_thing\n");
}

// One line of a class does not keep the others from being checked.
TEST(RecoveryTest, AClassIsCheckedWithoutItsUnreadableLines) {
  EXPECT_EQ(messagesOf("class A:\n"
                       "    def __init__(self, x: int):\n        self.x = x\n"
                       "    def lost(self, y: int -> int:\n        return y\n"
                       "    def m(self) -> str:\n        return self.x\n"
                       "    def n(self) -> int:\n        return self.lost(2)\n"
                       "    def o(self) -> int:\n        return self.losing(2)\n"
                       "def f(a: A):\n    return a.lost(1)\n"
                       "def g(a: A):\n    return a.x.foo\n"),
            "4: '(' was never closed\n"
            "7: Return value was annotated as having type str but is actually of type int\n"
            "11: '__torch__.A' object has no attribute or method 'losing'. Did you forget to "
            "initialize an "
            "attribute in __init__()?\n"
            "15: 'int' object has no attribute or method 'foo'\n");
  EXPECT_EQ(
      messagesOf("class A:\n"
                 "    x: Lsit[int]\n"
                 "    y: int\n"
                 "    z = = 3\n"
                 "    def __init__(self):\n        self.y = 1\n"
                 "    def m(self) -> str:\n        return self.y\n"
                 "    def n(self):\n        return self.x, self.z\n"
                 "    def o(self):\n        self.x = [1]\n"
                 "    def p(self):\n        return self.w\n"
                 "    def m(self):\n        return 2\n"),
      "4: expected an expression but found '='\n"
      "2: Unknown type constructor Lsit; did you mean 'List'?\n"
      "15: the function 'm' is defined twice\n"
      "8: Return value was annotated as having type str but is actually of type int\n"
      "14: '__torch__.A' object has no attribute or method 'w'. Did you forget to initialize an "
      "attribute in __init__()?\n");
}

// Nor does an error in the initializer: what it did not come to may have been any attribute.
TEST(RecoveryTest, MethodsAreCheckedInSpiteOfTheInitializer) {
  EXPECT_EQ(messagesOf("class A:\n"
                       "    def __init__(self, x: int):\n"
                       "        self.x = x\n        self.y = undefined_thing\n"
                       "    def m(self) -> str:\n        return self.x\n"
                       "    def n(self) -> int:\n        return self.y\n"
                       "def f():\n    return A(3).x.foo\n"),
            "4: undefined value undefined_thing\n"
            "6: Return value was annotated as having type str but is actually of type int\n");
}

}  // namespace
}  // namespace wick::recovery_test
