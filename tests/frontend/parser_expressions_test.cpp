#include <gtest/gtest.h>

#include "frontend/parser.h"

namespace wick::parser_expressions_test {
namespace {

std::string parse(const std::string& text) {
  return toString(Parser(text).parseExpression().tree());
}

// Both texts mean the same; the second one has all its parentheses.
void expectGroups(const std::string& text, const std::string& grouped) {
  EXPECT_EQ(parse(text), parse(grouped)) << text;
  EXPECT_NE(text, grouped);
}

TEST(Expressions, GroupAsInPython) {
  expectGroups("a + b * c - d", "(a + (b * c)) - d");
  expectGroups("a - b - c", "(a - b) - c");
  expectGroups("a // b % c @ d", "((a // b) % c) @ d");
  expectGroups("-a ** -b ** c", "-(a ** (-(b ** c)))");
  expectGroups("2 ** 3 ** 2", "2 ** (3 ** 2)");
  expectGroups("-a * b", "(-a) * b");
  expectGroups("~a.b[0](1)", "~(((a.b)[0])(1))");
  expectGroups("a | b ^ c & d << e + f", "a | (b ^ (c & (d << (e + f))))");
  expectGroups("a << b >> c", "(a << b) >> c");
  expectGroups("not a == b and c or d", "((not (a == b)) and c) or d");
  expectGroups("a or b and not c", "a or (b and (not c))");
  expectGroups("not not a", "not (not a)");
  expectGroups("a if b or c else d if e else f", "a if (b or c) else (d if e else f)");
  expectGroups("a | b == c", "(a | b) == c");
  expectGroups("a in b | c", "a in (b | c)");
  expectGroups("lambda: a if b else c", "lambda: (a if b else c)");
  expectGroups("a if b else lambda: c", "a if b else (lambda: c)");
  expectGroups("a and b and c", "(a and b) and c");
}

TEST(Expressions, Comparisons) {
  EXPECT_EQ(parse("a < b"), "(< (variable (ident a)) (variable (ident b)))");
  EXPECT_EQ(parse("1 not in 2"), "(not in (const 1) (const 2))");
  EXPECT_EQ(parse("1 is not 2"), "(is not (const 1) (const 2))");
  EXPECT_EQ(parse("1 is 2"), "(is (const 1) (const 2))");
  EXPECT_EQ(
      parse("1 < 2 <= 3 not in 4"),
      "(compare_chain (list (const 1) (const 2) (const 3) (const 4)) (list (<) (<=) (not in)))");
  EXPECT_EQ(parse("(1 < 2) == 3"), "(== (< (const 1) (const 2)) (const 3))");
  CompareChain chain(Parser("a < b != c").parseExpression().tree());
  EXPECT_EQ(chain.operands().size(), 3u);
  EXPECT_EQ(chain.op(0), '<');
  EXPECT_EQ(chain.op(1), TK_NE);
}

TEST(Expressions, Calls) {
  EXPECT_EQ(parse("f()"), "(apply (variable (ident f)) (list) (list))");
  EXPECT_EQ(parse("f(1, *2, k=3,)"),
            "(apply (variable (ident f)) (list (const 1) (starred (const 2))) "
            "(list (attribute (ident k) (const 3))))");
  EXPECT_EQ(parse("f(1 for x in 2)"),
            "(apply (variable (ident f)) (list (list_comp (const 1) (list (comp_for "
            "(variable (ident x)) (const 2) (list))))) (list))");
  EXPECT_EQ(parse("a.is"), "(. (variable (ident a)) (ident is))");
  EXPECT_EQ(parse("f(from=1)"),
            "(apply (variable (ident f)) (list) (list (attribute (ident from) "
            "(const 1))))");
}

TEST(Expressions, Subscripts) {
  EXPECT_EQ(parse("1[2]"), "(subscript (const 1) (list (const 2)))");
  EXPECT_EQ(parse("1[2, 3]"), "(subscript (const 1) (list (const 2) (const 3)))");
  EXPECT_EQ(parse("1[(2, 3)]"),
            "(subscript (const 1) (list (tuple_literal (list (const 2) (const 3)))))");
  EXPECT_EQ(parse("1[2,]"), "(subscript (const 1) (list (tuple_literal (list (const 2)))))");
  EXPECT_EQ(parse("1[...,None,::]"),
            "(subscript (const 1) (list (...) (None) (slice (option) (option) (option))))");
  EXPECT_EQ(parse("1[2:]"),
            "(subscript (const 1) (list (slice (option (const 2)) (option) (option))))");
  EXPECT_EQ(parse("1[:2,]"),
            "(subscript (const 1) (list (slice (option) (option (const 2)) (option))))");
  EXPECT_EQ(parse("1[2:3:4]"),
            "(subscript (const 1) (list (slice (option (const 2)) (option (const 3)) (option "
            "(const 4)))))");
  EXPECT_EQ(parse("1[::4]"),
            "(subscript (const 1) (list (slice (option) (option) (option (const 4)))))");
}

TEST(Expressions, Displays) {
  EXPECT_EQ(parse("()"), "(tuple_literal (list))");
  EXPECT_EQ(parse("(1)"), "(const 1)");
  EXPECT_EQ(parse("(1,)"), "(tuple_literal (list (const 1)))");
  EXPECT_EQ(parse("1, 2"), "(tuple_literal (list (const 1) (const 2)))");
  EXPECT_EQ(parse("[1, *2,]"), "(list_literal (list (const 1) (starred (const 2))))");
  EXPECT_EQ(parse("[]"), "(list_literal (list))");
  EXPECT_EQ(parse("{}"), "(dict_literal (list) (list))");
  EXPECT_EQ(parse("{1: 2, 3: 4,}"),
            "(dict_literal (list (const 1) (const 3)) (list (const 2) (const 4)))");
}

TEST(Expressions, Comprehensions) {
  EXPECT_EQ(parse("[1 for x in 2]"),
            "(list_comp (const 1) (list (comp_for (variable (ident x)) (const 2) (list))))");
  EXPECT_EQ(
      parse("[1 for x, in 2 if 3 if 4 for y in 5]"),
      "(list_comp (const 1) (list (comp_for (tuple_literal (list (variable (ident x)))) (const 2) "
      "(list (const 3) (const 4))) (comp_for (variable (ident y)) (const 5) (list))))");
  EXPECT_EQ(
      parse("{1: 2 for x in 3}"),
      "(dict_comp (const 1) (const 2) (list (comp_for (variable (ident x)) (const 3) (list))))");
  EXPECT_EQ(parse("(1 for x in 2)"), parse("[1 for x in 2]"));
}

TEST(Expressions, Atoms) {
  EXPECT_EQ(parse("0X_Ff"), "(const 0xff)");
  EXPECT_EQ(parse("1_0.5E-3J"), "(const 10.5e-3j)");
  EXPECT_EQ(parse("True"), "(True)");
  EXPECT_EQ(parse("..."), "(...)");
  EXPECT_EQ(
      parse("lambda x, y=1, *, z: 2"),
      "(lambda (decl (list (param (ident x) (option) (option) (False)) (param (ident y) (option) "
      "(option (const 1)) (False)) (param (ident z) (option) (option) (True))) (option)) (const "
      "2))");
}

std::string text(const std::string& literal) {
  return StringLiteral(Parser(literal).parseExpression().tree()).text();
}

TEST(Strings, Escapes) {
  EXPECT_EQ(text(R"('\a\b\f\n\r\t\v\\\'\"')"), "\a\b\f\n\r\t\v\\'\"");
  EXPECT_EQ(text(R"('\x41\u00e9\U0001F600')"), "A\xc3\xa9\xf0\x9f\x98\x80");
  EXPECT_EQ(text(R"('\0\12\303\251\1234')"), std::string("\0\n\xc3\xa9S4", 6));
  EXPECT_EQ(text(R"('\d\ ')"), "\\d\\ ");
  EXPECT_EQ(text("'a\\\nb\\\r\nc'"), "abc");
  EXPECT_EQ(text("'''a\r\nb\nc'''"), "a\nb\nc");
  EXPECT_EQ(text(R"(r'\n\'')"), R"(\n\')");
  EXPECT_EQ(text("u'a' \"b\"\n'''c'''"), "abc");
  EXPECT_EQ(text("''"), "");
  EXPECT_EQ(text("''''a'''"), "'a");
}

TEST(Strings, Formats) {
  EXPECT_EQ(parse("f'abc'"), "(joined_str (list (string_literal abc)))");
  EXPECT_EQ(parse("f''"), "(joined_str (list))");
  EXPECT_EQ(parse("f'a{1}b' 'c{' f'{2}'"),
            "(joined_str (list (string_literal a) (formatted_value (const 1) (option) (option)) "
            "(string_literal \"bc{\") (formatted_value (const 2) (option) (option))))");
  EXPECT_EQ(
      parse("f'{{{1}}}\\n'"),
      "(joined_str (list (string_literal \"{\") (formatted_value (const 1) (option) (option)) "
      "(string_literal \"}\\n\")))");
  EXPECT_EQ(parse("rf'\\n{1!r}'"),
            "(joined_str (list (string_literal \"\\\\n\") (formatted_value (const 1) (option "
            "(string_literal r)) (option))))");
  EXPECT_EQ(parse("f'{1:>{2}.3f}'"),
            "(joined_str (list (formatted_value (const 1) (option) (option (joined_str (list "
            "(string_literal \">\") (formatted_value (const 2) (option) (option)) (string_literal "
            ".3f)))))))");
  EXPECT_EQ(parse("f'{1:d}'"),
            "(joined_str (list (formatted_value (const 1) (option) (option (string_literal d)))))");
  EXPECT_EQ(parse("f'{1 = }'"),
            "(joined_str (list (string_literal \"1 = \") (formatted_value (const 1) "
            "(option (string_literal r)) (option))))");
  EXPECT_EQ(parse("f'{1 != 2}'"),
            "(joined_str (list (formatted_value (!= (const 1) (const 2)) (option) (option))))");
  EXPECT_EQ(
      parse("f'{ {1: 2}[1] }'"),
      "(joined_str (list (formatted_value (subscript (dict_literal (list (const 1)) (list (const "
      "2))) (list (const 1))) (option) (option))))");
  EXPECT_EQ(parse("f'''{\n1\n}'''"),
            "(joined_str (list (formatted_value (const 1) (option) (option))))");
}

TEST(Expressions, RangesCoverTheirText) {
  Expr whole = Parser(" f(x) + (y[1] * 2)").parseExpression();
  EXPECT_EQ(whole.range().text(), "f(x) + (y[1] * 2)");
  EXPECT_EQ(BinOp(whole.tree()).lhs().range().text(), "f(x)");
  EXPECT_EQ(BinOp(whole.tree()).rhs().range().text(), "y[1] * 2");
  JoinedStr joined(Parser("f'a{bc}'").parseExpression().tree());
  EXPECT_EQ(FormattedValue(joined.parts()[1].tree()).value().range().text(), "bc");
}

}  // namespace
}  // namespace wick::parser_expressions_test
