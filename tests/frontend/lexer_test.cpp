#include "frontend/lexer.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace wick::lexer_test {
namespace {

// The names of all tokens, or "error: ..." in place of what is not a token.
std::string kinds(const std::string& text, Lexer::Mode mode = Lexer::Mode::kProgram) {
  Lexer lexer(std::make_shared<Source>(text), mode);
  std::string out;
  try {
    while (lexer.cur().kind != TK_EOF) {
      if (!out.empty()) out += " ";
      out += kindToString(lexer.next().kind);
    }
  } catch (const CompileError& error) {
    out += " error: " + error.brief();
  }
  return out;
}

TEST(Lexer, InjectsIndentationLikeBraces) {
  EXPECT_EQ(kinds("if\n  .\n  .\n"), "if newline indent . newline . newline dedent");
  EXPECT_EQ(kinds("if\n  if\n    ."),
            "if newline indent if newline indent . newline dedent dedent");
  EXPECT_EQ(kinds("if\n\t.\n        .\n"), "if newline indent . newline . newline dedent");
}

TEST(Lexer, LinesWithoutTokensDoNotCount) {
  EXPECT_EQ(kinds("\n\n  # comment\nif\n\n # less\n  .\n      # more\n  .\n   \n"),
            "if newline indent . newline . newline dedent");
  EXPECT_EQ(kinds("x\r\ny\r\n"), "ident newline ident newline");
  EXPECT_EQ(kinds(""), "");
  EXPECT_EQ(kinds("  \n \\\n\n"), "");
  EXPECT_EQ(kinds("\xef\xbb\xbfx"), "ident newline");
}

TEST(Lexer, TheFirstLineSetsTheMargin) {
  EXPECT_EQ(kinds("    if\n      .\n    .\n"), "if newline indent . newline dedent . newline");
  EXPECT_EQ(kinds("    if\n  .\n"),
            "if newline error: the indentation matches no outer indentation level");
}

TEST(Lexer, BracketsAndBackslashesJoinLines) {
  EXPECT_EQ(kinds("f(\n  [\n]\n)\n."), "ident ( [ ] ) newline . newline");
  EXPECT_EQ(kinds("a \\\n  b"), "ident ident newline");
  EXPECT_EQ(kinds("a \\ b"),
            "ident error: unexpected character after the line continuation character '\\'");
  EXPECT_EQ(kinds("f(\n"), "ident ( error: '(' was never closed");
  EXPECT_EQ(kinds("(]"), "( error: expected ')' to close '(' but found ']'");
  EXPECT_EQ(kinds(")"), " error: unmatched ')'");
}

TEST(Lexer, TakesTheLongestOperator) {
  EXPECT_EQ(kinds("**=//=<<=>>=->...**<=:=!=", Lexer::Mode::kExpression),
            "**= //= <<= >>= -> ... ** <= := !=");
  EXPECT_EQ(kinds("a.. b", Lexer::Mode::kExpression), "ident . . ident");
}

TEST(Lexer, Numbers) {
  for (const char* text :
       {"0", "00", "1_000", "0xFF", "0b_1", "0o17", "1.", ".5", "1e5", "1E-5", "1.5e+3", "2j",
        "1.j", "0_0.1", "09.5", "123456789012345678901234567890"}) {
    EXPECT_EQ(kinds(text), "number newline") << text;
  }
  EXPECT_EQ(kinds("1__0"), " error: '1__0' is not a number");
  EXPECT_EQ(kinds("1x"), " error: '1x' is not a number");
  EXPECT_EQ(kinds("0x"), " error: a number of base 16 needs digits");
  EXPECT_EQ(kinds("012"), " error: an integer must not begin with 0; octal ones begin with 0o");
  EXPECT_EQ(kinds("1.e", Lexer::Mode::kExpression), " error: '1.e' is not a number");
}

TEST(Lexer, Strings) {
  for (const char* text : {"'a\"'", "\"\\\"\"", "'''a\n'b''c'''", "r'\\'", "Rb'x'", "f'{x}'", "''",
                           "\"\"\"\"\"\"", "'a\\\nb'"}) {
    std::string expected =
        std::string_view(text) == "r'\\'" ? " error: " : "string_literal newline";
    EXPECT_EQ(kinds(text).substr(0, expected.size()), expected) << text;
  }
  EXPECT_EQ(kinds("'a\n'"), " error: this string is not closed before the end of its line");
  EXPECT_EQ(kinds("'''a''"), " error: this triple-quoted string is never closed");
  EXPECT_EQ(kinds("'\\"), " error: this string is not closed before the end of its line");
  EXPECT_EQ(kinds("xf'a'"), "ident string_literal newline");
}

TEST(Lexer, Identifiers) {
  EXPECT_EQ(kinds("iffy _x x1 \xce\xb1"), "ident ident ident ident newline");
  EXPECT_EQ(kinds("\xe2\x80\x9cx"), " error: unexpected character '\\xe2'");  // a typographic quote
  EXPECT_EQ(kinds("\xff"), " error: unexpected character '\\xff'");
  EXPECT_EQ(kinds(std::string("a\0b", 3)), "ident error: unexpected character '\\x00'");
  EXPECT_EQ(kinds("$"), " error: unexpected character '$'");
}

TEST(Lexer, TypeCommentsWaitForTheNextToken) {
  auto source =
      std::make_shared<Source>("x # type: List[int]  \ny # type: ignore\nz #  type: ignored");
  Lexer lexer(source);
  EXPECT_FALSE(lexer.next().type_comment.valid());
  EXPECT_EQ(lexer.next().type_comment.text(), "List[int]");
  EXPECT_FALSE(lexer.next().type_comment.valid());
  EXPECT_FALSE(lexer.next().type_comment.valid());
  lexer.next();
  EXPECT_EQ(lexer.next().type_comment.text(), "ignored");
}

TEST(Lexer, LooksOneTokenAhead) {
  Lexer lexer(std::make_shared<Source>("a + 1"));
  EXPECT_EQ(lexer.lookahead().kind, '+');
  EXPECT_EQ(lexer.cur().text(), "a");
  EXPECT_FALSE(lexer.nextIf('+'));
  lexer.expect(TK_IDENT);
  EXPECT_TRUE(lexer.nextIf('+'));
  EXPECT_THROW(lexer.expect(TK_IDENT), CompileError);
  EXPECT_EQ(lexer.next().text(), "1");
  EXPECT_EQ(lexer.next().kind, TK_NEWLINE);
  EXPECT_EQ(lexer.next().kind, TK_EOF);
  EXPECT_EQ(lexer.next().kind, TK_EOF);
}

TEST(Lexer, ReadsAStretchOfItsSource) {
  auto source = std::make_shared<Source>("'{a\n+ b}'");
  Lexer lexer(source, 2, 7, Lexer::Mode::kExpression);
  EXPECT_EQ(lexer.next().range.start(), 2u);
  EXPECT_EQ(lexer.next().kind, '+');
  EXPECT_EQ(lexer.next().text(), "b");
  EXPECT_EQ(lexer.next().kind, TK_EOF);
}

}  // namespace
}  // namespace wick::lexer_test
