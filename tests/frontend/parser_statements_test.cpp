#include <gtest/gtest.h>

#include "core/error.h"
#include "frontend/parser.h"

namespace wick::parser_statements_test {
namespace {

// The s-expressions of all statements, one a line.
std::string parse(const std::string& text) {
  std::string out;
  for (Stmt statement : Parser(text).parseModule()) {
    if (!out.empty()) out += "\n";
    out += toString(statement.tree());
  }
  return out;
}

TEST(Statements, Assignments) {
  EXPECT_EQ(
      parse("a = b = 1"),
      "(assign (list (variable (ident a)) (variable (ident b))) (option (const 1)) (option))");
  EXPECT_EQ(
      parse("a, [*b, c.d] = 1, 2"),
      "(assign (list (tuple_literal (list (variable (ident a)) (list_literal (list (starred "
      "(variable (ident b))) (. (variable (ident c)) (ident d))))))) (option (tuple_literal (list "
      "(const 1) (const 2)))) (option))");
  EXPECT_EQ(parse("x: int"),
            "(assign (list (variable (ident x))) (option) (option (variable (ident int))))");
  EXPECT_EQ(parse("x : int = 1"), parse("x = 1  # type: int"));
  EXPECT_EQ(parse("x[0] = 1 # type: ignore"), parse("x[0] = 1"));
  EXPECT_EQ(parse("a, = x"), parse("(a,) = x"));
  EXPECT_EQ(
      parse("a = *b, 1"),
      "(assign (list (variable (ident a))) (option (tuple_literal (list (starred (variable (ident "
      "b))) (const 1)))) (option))");
}

TEST(Statements, AugmentedAssignments) {
  const std::pair<const char*, int> kOps[] = {
      {"+=", '+'},           {"-=", '-'},        {"*=", '*'},        {"/=", '/'}, {"%=", '%'},
      {"@=", '@'},           {"&=", '&'},        {"|=", '|'},        {"^=", '^'}, {"**=", TK_POW},
      {"//=", TK_FLOOR_DIV}, {"<<=", TK_LSHIFT}, {">>=", TK_RSHIFT},
  };
  for (auto [text, op] : kOps) {
    List<Stmt> statements = Parser(std::string("x ") + text + " 1").parseModule();
    EXPECT_EQ(AugAssign(statements[0].tree()).op(), op) << text;
  }
  EXPECT_EQ(
      parse("x.y += 1, 2"),
      "(aug_assign (. (variable (ident x)) (ident y)) (+) (tuple_literal (list (const 1) (const "
      "2))))");
}

TEST(Statements, Simple) {
  EXPECT_EQ(parse("pass; break; continue;"), "(pass)\n(break)\n(continue)");
  EXPECT_EQ(parse("return"), "(return (None))");
  EXPECT_EQ(parse("return 1, 2"), "(return (tuple_literal (list (const 1) (const 2))))");
  EXPECT_EQ(parse("raise"), "(raise (option))");
  EXPECT_EQ(parse("raise 1 from 2"), "(raise (option (const 1)))");
  EXPECT_EQ(parse("assert 1, 2"), "(assert (const 1) (option (const 2)))");
  EXPECT_EQ(parse("assert 1"), "(assert (const 1) (option))");
  EXPECT_EQ(parse("del a, b[1],"),
            "(del (list (variable (ident a)) (subscript (variable (ident b)) (list (const 1)))))");
  EXPECT_EQ(parse("global a, b"), "(global (list (ident a) (ident b)))");
  EXPECT_EQ(parse("'doc'"), "(expr_stmt (string_literal doc))");
}

TEST(Statements, Imports) {
  EXPECT_EQ(parse("import a.b as c, d"),
            "(import (ident \"\") (list (alias (ident a.b) (option (ident c))) (alias (ident d) "
            "(option))))");
  EXPECT_EQ(parse("from a.b import (c as d, e,)"),
            "(import (ident a.b) (list (alias (ident c) (option (ident d))) (alias (ident e) "
            "(option))))");
  EXPECT_EQ(parse("from ...a import *"), "(import (ident ...a) (list (alias (ident *) (option))))");
  EXPECT_EQ(parse("from . import a"), "(import (ident .) (list (alias (ident a) (option))))");
  EXPECT_EQ(parse("from_x = 1; from_x"), parse("from_x = 1\nfrom_x\n"));
}

TEST(Statements, ElifNestsInElse) {
  EXPECT_EQ(parse("if 1:\n  2\nelif 3:\n  4\nelse:\n  5\n"), parse(R"(
if 1:
  2
else:
  if 3:
    4
  else:
    5
)"));
  EXPECT_EQ(parse("if 1: 2; 3"),
            "(if (const 1) (list (expr_stmt (const 2)) (expr_stmt (const 3))) (list))");
  EXPECT_EQ(parse("if 1: 2\nelse: 3\n4"),
            "(if (const 1) (list (expr_stmt (const 2))) (list (expr_stmt (const 3))))\n"
            "(expr_stmt (const 4))");
}

TEST(Statements, Loops) {
  EXPECT_EQ(parse("while 1:\n  pass"), "(while (const 1) (list (pass)))");
  EXPECT_EQ(parse("for x in 1: pass"), "(for (variable (ident x)) (const 1) (list (pass)))");
  EXPECT_EQ(
      parse("for i, (a, *b) in 1: pass"),
      "(for (tuple_literal (list (variable (ident i)) (tuple_literal (list (variable (ident a)) "
      "(starred (variable (ident b))))))) (const 1) (list (pass)))");
}

TEST(Statements, With) {
  EXPECT_EQ(parse("with 1 as a, 2:\n  pass"),
            "(with (list (with_item (const 1) (option (variable (ident a)))) (with_item (const 2) "
            "(option))) (list (pass)))");
}

TEST(Definitions, Functions) {
  EXPECT_EQ(
      parse("@a\n@b.c(1)\ndef f(x, y: int = 1, *, z) -> int:\n  def g(): pass\n  return g"),
      "(def (ident f) (decl (list (param (ident x) (option) (option) (False)) (param (ident y) "
      "(option (variable (ident int))) (option (const 1)) (False)) (param (ident z) (option) "
      "(option) (True))) (option (variable (ident int)))) (list (def (ident g) (decl (list) "
      "(option)) (list (pass)) (list)) (return (variable (ident g)))) (list (variable (ident a)) "
      "(apply (. (variable (ident b)) (ident c)) (list (const 1)) (list))))");
}

TEST(Definitions, TypeCommentsAreAnnotations) {
  std::string expected = parse("def f(x: int, y: Tuple[int, str] = 1) -> List[int]:\n  pass");
  EXPECT_EQ(parse("def f(x, y=1):\n  # type: (int, Tuple[int, str]) -> List[int]\n  pass"),
            expected);
  EXPECT_EQ(parse("def f(x, y=1):  # type: (int, Tuple[int, str]) -> List[int]\n  pass"), expected);
  EXPECT_EQ(parse("def f(x, y=1): # type: ignore\n  # about\n\n  # type: (int, Tuple[int, str]) -> "
                  "List[int]\n  pass"),
            expected);
  EXPECT_EQ(parse("def f(x,  # type: int\n      y=1  # type: Tuple[int, str]\n      ):\n"
                  "  # type: (...) -> List[int]\n  pass"),
            expected);
  EXPECT_EQ(
      parse("def f(x,  # type: int\n      y=1,  # type: Tuple[int, str]\n      ) -> List[int]:\n"
            "  pass"),
      expected);
  EXPECT_EQ(parse("def f(x, y=1) -> List[int]:\n  # type: (int, Tuple[int, str])\n  pass"),
            expected);
  EXPECT_EQ(parse("def f(self, x):\n  # type: (int) -> int\n  pass"),
            parse("def f(self, x: int) -> int:\n  pass"));
  EXPECT_EQ(parse("def f(x):\n  if x:  # type: whatever this says\n    pass"),
            parse("def f(x):\n  if x:\n    pass"));
}

TEST(Definitions, ClassesOfArchives) {
  EXPECT_EQ(
      parse(R"(
class Linear(Module):
  __parameters__ = ["weight", ]
  __annotations__ = []
  __annotations__["0"] = __torch__.A
  eps : Final[float] = 0.3
  training : bool
  def forward(self: __torch__.Linear,
    x: Tensor) -> Tensor:
    _0, _1, = torch.f(x)
    return _0
)"),
      "(class (ident Linear) (list (variable (ident Module))) (list "
      "(assign (list (variable (ident __parameters__))) (option (list_literal (list "
      "(string_literal weight)))) (option)) "
      "(assign (list (variable (ident __annotations__))) (option (list_literal (list))) (option)) "
      "(assign (list (subscript (variable (ident __annotations__)) (list (string_literal 0)))) "
      "(option (. (variable (ident __torch__)) (ident A))) (option)) "
      "(assign (list (variable (ident eps))) (option (const 0.3)) (option (subscript (variable "
      "(ident Final)) (list (variable (ident float)))))) "
      "(assign (list (variable (ident training))) (option) (option (variable (ident bool)))) "
      "(def (ident forward) (decl (list (param (ident self) (option (. (variable (ident "
      "__torch__)) (ident Linear))) (option) (False)) (param (ident x) (option (variable (ident "
      "Tensor))) (option) (False))) (option (variable (ident Tensor)))) (list (assign (list "
      "(tuple_literal (list (variable (ident _0)) (variable (ident _1))))) (option (apply (. "
      "(variable (ident torch)) (ident f)) (list (variable (ident x))) (list))) (option)) (return "
      "(variable (ident _0)))) (list))) (list))");
  EXPECT_EQ(parse("class A: pass"), "(class (ident A) (list) (list (pass)) (list))");
  EXPECT_EQ(parse("class A(): pass"), parse("class A: pass"));
}

TEST(Module, MayBeIndentedAsAWhole) {
  EXPECT_EQ(parse("\n    def f():\n        pass\n    x = 1\n  "), parse("def f():\n  pass\nx = 1"));
  EXPECT_EQ(parse(""), "");
  EXPECT_EQ(parse("\n# nothing\n"), "");
}

TEST(Module, HeadersAreTheRangesOfCompoundStatements) {
  List<Stmt> module = Parser("def f(x):\n  if x:\n    pass\n").parseModule();
  EXPECT_EQ(module[0].range().text(), "def f(x)");
  EXPECT_EQ(Def(module[0].tree()).statements()[0].range().text(), "if x");
}

TEST(EntryPoints, Function) {
  EXPECT_EQ(Parser("@d\ndef f(): pass\n").parseFunction().name().name(), "f");
  EXPECT_THROW(Parser("def f(): pass\ndef g(): pass").parseFunction(), CompileError);
  EXPECT_THROW(Parser("x = 1").parseFunction(), CompileError);
  EXPECT_THROW(Parser("@d\nclass A: pass").parseFunction(), CompileError);
  Def def = Parser("def f(x): pass").parseFunction();
  EXPECT_EQ(def.withName("g").name().name(), "g");
  EXPECT_EQ(toString(def.withName("f").tree()), toString(def.tree()));
}

}  // namespace
}  // namespace wick::parser_statements_test
