#include "frontend/tree.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "frontend/tree_views.h"

namespace wick::tree_test {
namespace {

Var variable(const std::string& name) {
  SourceRange none;
  return Var::create(none, Ident::create(none, name));
}

Const number(const std::string& text) {
  return Const::create(SourceRange(), text);
}

TEST(Tree, PrintsAsSExpression) {
  SourceRange none;
  Expr call =
      Apply::create(none, Select::create(none, variable("z"), Ident::create(none, "sigmoid")),
                    List<Expr>::create(none), List<Attribute>::create(none));
  Expr sum = BinOp::create(none, '+', variable("x"), variable("y"));
  EXPECT_EQ(toString(BinOp::create(none, '-', call, sum).tree()),
            "(- (apply (. (variable (ident z)) (ident sigmoid)) (list) (list)) "
            "(+ (variable (ident x)) (variable (ident y))))");
  EXPECT_EQ(toString(StringLiteral::create(none, "a \"\\\n\xff").tree()),
            "(string_literal \"a \\\"\\\\\\n\\xff\")");
  EXPECT_EQ(toString(Ident::create(none, "").tree()), "(ident \"\")");
}

TEST(Tree, ViewsRefuseOtherKinds) {
  Expr x = variable("x");
  EXPECT_THROW(Apply(x.tree()), InternalError);
  EXPECT_THROW(Stmt(x.tree()), InternalError);
  EXPECT_THROW(BinOp(x.tree()), InternalError);
  EXPECT_THROW(Expr(Var(x.tree()).name().tree()), InternalError);
  EXPECT_THROW(x.tree()->child(1), InternalError);
  EXPECT_THROW(x.tree()->stringValue(), InternalError);
  EXPECT_THROW(Maybe<Expr>::create(SourceRange()).get(), InternalError);
  EXPECT_THROW(Tree::create(TK_LIST, SourceRange(), {nullptr}), InternalError);
}

TEST(Tree, ListsIterate) {
  List<Expr> list = List<Expr>::create(SourceRange(), {variable("a"), variable("b")});
  std::string names;
  for (Expr element : list) names += Var(element.tree()).name().name();
  EXPECT_EQ(names, "ab");
  EXPECT_EQ(list.size(), 2u);
}

TEST(Tree, HeightCountsNoLists) {
  SourceRange none;
  Expr x = variable("x");
  EXPECT_EQ(x.tree()->height(), 1u);
  EXPECT_EQ(ListLiteral::create(none, List<Expr>::create(none, {x})).tree()->height(), 2u);
}

TEST(Tree, DeepTreesAreFreedAndPrintedWithoutRecursion) {
  Expr value = variable("x");
  for (int i = 0; i < 1'000'000; ++i) value = UnaryOp::create(SourceRange(), '~', value);
  EXPECT_EQ(value.tree()->height(), 1'000'001u);
  EXPECT_GT(toString(value.tree()).size(), 4'000'000u);
}

TEST(Tree, SharedPartsOutliveTheWhole) {
  Expr shared = variable("shared");
  {
    Expr whole =
        BinOp::create(SourceRange(), '+', shared, UnaryOp::create(SourceRange(), '~', shared));
    shared = BinOp(whole.tree()).rhs();
  }
  EXPECT_EQ(toString(shared.tree()), "(~ (variable (ident shared)))");
}

TEST(Const, Integers) {
  EXPECT_EQ(number("0").asInt(), 0);
  EXPECT_EQ(number("0x7fffffffffffffff").asInt(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(number("0b101").asInt(), 5);
  EXPECT_EQ(number("0o17").asInt(true), -15);
  EXPECT_EQ(number("00").asInt(), 0);
  EXPECT_TRUE(number("0xe").isInt());
  EXPECT_EQ(number("9223372036854775808").asInt(true), std::numeric_limits<int64_t>::min());
  EXPECT_THROW(number("9223372036854775808").asInt(), CompileError);
  EXPECT_THROW(number("9223372036854775809").asInt(true), CompileError);
  EXPECT_THROW(number("99999999999999999999999").asInt(), CompileError);
}

TEST(Const, FloatsAndComplex) {
  EXPECT_TRUE(number("1e5").isFloat());
  EXPECT_FALSE(number("1e5").isInt());
  EXPECT_EQ(number("1e5").asFloat(), 1e5);
  EXPECT_EQ(number("5.").asFloat(), 5.0);
  EXPECT_EQ(number(".5").asFloat(), 0.5);
  EXPECT_EQ(number("3").asFloat(), 3.0);
  EXPECT_EQ(number("1e400").asFloat(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1e-400").asFloat(), 0.0);
  EXPECT_EQ(number("0.0e99999999999999999999").asFloat(), 0.0);
  EXPECT_EQ(number("1e99999999999999999999").asFloat(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(number("1e-99999999999999999999").asFloat(), 0.0);
  EXPECT_EQ(number("0." + std::string(400, '0') + "1e402").asFloat(), 10.0);
  EXPECT_EQ(number("5e-324").asFloat(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(number("1" + std::string(400, '0') + ".").asFloat(),
            std::numeric_limits<double>::infinity());
  EXPECT_TRUE(number("2.5j").isComplex());
  EXPECT_EQ(number("2.5j").asComplex(), std::complex<double>(0, 2.5));
  EXPECT_EQ(number("1j").asComplex(), std::complex<double>(0, 1));
}

}  // namespace
}  // namespace wick::tree_test
