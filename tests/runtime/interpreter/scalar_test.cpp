// Arithmetic on plain numbers and control flow.
#include <cmath>
#include <limits>

#include "tests/runtime/interpreter/program.h"

namespace wick::testing::scalar_test {
namespace {

constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();

int64_t intOp(const char* op, int64_t a, int64_t b) {
  return run(fmt::format(R"(graph(%a : int, %b : int):
  %c : int = aten::{}(%a, %b)
  return (%c))",
                         op),
             {a, b})
      .toInt();
}

TEST(Scalar, IntegerArithmeticWrapsAndRoundsAsPythons) {
  EXPECT_EQ(intOp("add", 2, 3), 5);
  EXPECT_EQ(intOp("add", std::numeric_limits<int64_t>::max(), 1), kLeast);
  EXPECT_EQ(intOp("sub", kLeast, 1), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(intOp("mul", int64_t{1} << 62, 4), 0);
  EXPECT_EQ(intOp("floordiv", -5, 3), -2);
  EXPECT_EQ(intOp("floordiv", 5, -3), -2);
  EXPECT_EQ(intOp("floordiv", -6, 3), -2);
  EXPECT_EQ(intOp("floordiv", kLeast, -1), kLeast);
  EXPECT_EQ(intOp("remainder", -5, 3), 1);
  EXPECT_EQ(intOp("remainder", 5, -3), -1);
  EXPECT_EQ(intOp("remainder", kLeast, -1), 0);
  EXPECT_EQ(intOp("__and__", 12, 10), 8);
  EXPECT_EQ(intOp("__or__", 12, 10), 14);
  EXPECT_EQ(intOp("__xor__", 12, 10), 6);
}

TEST(Scalar, IntegerDivisionByZeroRaises) {
  EXPECT_THROW(intOp("floordiv", 5, 0), RuntimeError);
  EXPECT_THROW(intOp("remainder", 5, 0), RuntimeError);
  // Also when nobody looks at the result.
  EXPECT_THROW(run(R"(graph(%a : int, %b : int):
  %c : int = aten::floordiv(%a, %b)
  return (%a))",
                   {5, 0}),
               RuntimeError);
}

double floatOp(const char* op, double a, double b) {
  return run(fmt::format(R"(graph(%a : float, %b : float):
  %c : float = aten::{}(%a, %b)
  return (%c))",
                         op),
             {a, b})
      .toDouble();
}

TEST(Scalar, FloatArithmetic) {
  EXPECT_EQ(floatOp("add", 0.5, 0.25), 0.75);
  EXPECT_EQ(floatOp("div", 1, 0), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(floatOp("remainder", 5, 0)));
  EXPECT_EQ(floatOp("remainder", -5, 3), 1);
  EXPECT_EQ(floatOp("remainder", 5, -3), -1);
  EXPECT_EQ(floatOp("floordiv", -5, 3), -2);
}

TEST(Scalar, MixedArithmeticConvertsIntegers) {
  IValue v = run(R"(graph(%a : int, %b : float):
  %three : int = prim::Constant[value=3]()
  %c : float = aten::mul(%a, %b)
  %d : float = aten::add(%c, %three)
  %e : bool = aten::gt(%three, %b)
  %f : float = aten::div(%a, %three)
  %t : (float, bool, float) = prim::TupleConstruct(%d, %e, %f)
  return (%t))",
                 {6, 2.5});
  EXPECT_EQ(v.elements()[0].toDouble(), 18.0);
  EXPECT_TRUE(v.elements()[1].toBool());
  EXPECT_EQ(v.elements()[2].toDouble(), 2.0);
}

TEST(Scalar, ConversionsSaturateAsTheProcessor) {
  const char* text = R"(graph(%a : float):
  %b : int = aten::Int(%a)
  return (%b))";
  EXPECT_EQ(run(text, {-1.5}).toInt(), -1);
  EXPECT_EQ(run(text, {1e30}).toInt(), kLeast);
  EXPECT_EQ(run(text, {std::nan("")}).toInt(), kLeast);
}

// Comparisons with NaN are false, and their negations true: a joined jump must keep that.
TEST(Scalar, ComparisonsInConditionsTreatNanAsUnordered) {
  double nan = std::nan("");
  struct Case {
    const char* op;
    double a, b;
    bool expected;
  };
  for (const Case& c : {Case{"lt", 1, 2, true},
                        {"lt", 2, 1, false},
                        {"lt", nan, 1, false},
                        {"ge", nan, 1, false},
                        {"ge", 2, 2, true},
                        {"gt", nan, nan, false},
                        {"le", nan, 0, false},
                        {"eq", nan, nan, false},
                        {"ne", nan, nan, true},
                        {"ne", 1, 1, false},
                        {"eq", 1, 1, true}}) {
    std::string plain = fmt::format(R"(graph(%a : float, %b : float):
  %c : bool = aten::{}(%a, %b)
  return (%c))",
                                    c.op);
    std::string joined = fmt::format(R"(graph(%a : float, %b : float):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %c : bool = aten::{}(%a, %b)
  %r : int = prim::If(%c)
    block0():
      -> (%one)
    block1():
      -> (%two)
  return (%r))",
                                     c.op);
    std::string negated = fmt::format(R"(graph(%a : float, %b : float):
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %c : bool = aten::{}(%a, %b)
  %n : bool = aten::__not__(%c)
  %r : int = prim::If(%n)
    block0():
      -> (%two)
    block1():
      -> (%one)
  return (%r))",
                                      c.op);
    EXPECT_EQ(run(plain, {c.a, c.b}).toBool(), c.expected) << c.op << c.a << c.b;
    EXPECT_EQ(run(joined, {c.a, c.b}).toInt(), c.expected ? 1 : 2) << c.op << c.a << c.b;
    EXPECT_EQ(run(negated, {c.a, c.b}).toInt(), c.expected ? 1 : 2) << c.op << c.a << c.b;
  }
}

const char* const kFibonacci = R"(graph(%n : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %m : int = prim::Constant[value=1000000007]()
  %true : bool = prim::Constant[value=True]()
  %x : int, %y : int = prim::Loop(%n, %true, %0, %1)
    block0(%i : int, %a : int, %b : int):
      %s : int = aten::add(%a, %b)
      %r : int = aten::remainder(%s, %m)
      -> (%true, %b, %r)
  return (%x))";

TEST(Loops, CarriedValuesMoveInParallel) {
  EXPECT_EQ(run(kFibonacci, {0}).toInt(), 0);
  EXPECT_EQ(run(kFibonacci, {1}).toInt(), 1);
  EXPECT_EQ(run(kFibonacci, {10}).toInt(), 55);
  EXPECT_EQ(run(kFibonacci, {-3}).toInt(), 0);
  IValue swapped = run(R"(graph(%n : int, %p : str, %q : str):
  %true : bool = prim::Constant[value=True]()
  %x : str, %y : str = prim::Loop(%n, %true, %p, %q)
    block0(%i : int, %a : str, %b : str):
      -> (%true, %b, %a)
  %t : (str, str) = prim::TupleConstruct(%x, %y)
  return (%t))",
                       {3, "p", "q"});
  EXPECT_EQ(swapped.elements()[0].toString(), "q");
  EXPECT_EQ(swapped.elements()[1].toString(), "p");
}

const char* const kCollatz = R"(graph(%x0 : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : int = prim::Constant[value=3]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %c0 : bool = aten::ne(%x0, %1)
  %x : int, %steps : int = prim::Loop(%max, %c0, %x0, %0)
    block0(%i : int, %x.1 : int, %steps.1 : int):
      %rest : int = aten::remainder(%x.1, %2)
      %even : bool = aten::eq(%rest, %0)
      %x.2 : int = prim::If(%even)
        block0():
          %half : int = aten::floordiv(%x.1, %2)
          -> (%half)
        block1():
          %triple : int = aten::mul(%x.1, %3)
          %more : int = aten::add(%triple, %1)
          -> (%more)
      %steps.2 : int = aten::add(%steps.1, %1)
      %c : bool = aten::ne(%x.2, %1)
      -> (%c, %x.2, %steps.2)
  return (%steps))";

TEST(Loops, WhileLoopsJoinTheirConditionWithTheJump) {
  auto code = compile(kCollatz);
  EXPECT_EQ(runCode(*code, {1}).toInt(), 0);
  EXPECT_EQ(runCode(*code, {6}).toInt(), 8);
  EXPECT_EQ(runCode(*code, {27}).toInt(), 111);
  EXPECT_FALSE(listingHas(*code, OpCode::NE_INT)) << code->str();
  EXPECT_FALSE(listingHas(*code, OpCode::SMOVE)) << code->str();
}

// The condition of the back edge reads the old carried value: it must not see the new one.
TEST(Loops, ConditionOnTheOldCarriedValue) {
  EXPECT_EQ(run(R"(graph(%limit : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %true : bool = prim::Constant[value=True]()
  %x : int = prim::Loop(%max, %true, %0)
    block0(%i : int, %x.1 : int):
      %c : bool = aten::lt(%x.1, %limit)
      %x.2 : int = aten::add(%x.1, %1)
      -> (%c, %x.2)
  return (%x))",
                {5})
                .toInt(),
            6);
}

TEST(Loops, CarriedConditionIsReadBeforeItIsOverwritten) {
  // while c: c, d = d, False
  EXPECT_EQ(run(R"(graph(%c0 : bool, %d0 : bool):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %false : bool = prim::Constant[value=False]()
  %n : int, %c9 : bool, %d9 : bool = prim::Loop(%max, %c0, %0, %c0, %d0)
    block0(%i : int, %n.1 : int, %c : bool, %d : bool):
      %n.2 : int = aten::add(%n.1, %1)
      -> (%d, %n.2, %d, %false)
  return (%n))",
                {true, true})
                .toInt(),
            2);
}

// for i in range(n) with a break: both the counter and the condition end the loop.
TEST(Loops, CountedLoopWithCondition) {
  const char* text = R"(graph(%n : int, %stop : int):
  %0 : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=True]()
  %s : int = prim::Loop(%n, %true, %0)
    block0(%i : int, %s.1 : int):
      %s.2 : int = aten::add(%s.1, %i)
      %c : bool = aten::lt(%s.2, %stop)
      -> (%c, %s.2)
  return (%s))";
  EXPECT_EQ(run(text, {5, 100}).toInt(), 10);
  EXPECT_EQ(run(text, {100, 6}).toInt(), 6);
  EXPECT_EQ(run(text, {0, 6}).toInt(), 0);
}

// while i < n and i * i < m: the `and` is an If whose result only decides about the jump.
TEST(Loops, ShortCircuitConditions) {
  const char* text = R"(graph(%n : int, %m : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  %false : bool = prim::Constant[value=False]()
  %a : bool = aten::lt(%0, %n)
  %b : bool = prim::If(%a)
    block0():
      %sq : int = aten::mul(%0, %0)
      %c : bool = aten::lt(%sq, %m)
      -> (%c)
    block1():
      -> (%false)
  %i : int = prim::Loop(%max, %b, %0)
    block0(%k : int, %i.1 : int):
      %i.2 : int = aten::add(%i.1, %1)
      %a2 : bool = aten::lt(%i.2, %n)
      %b2 : bool = prim::If(%a2)
        block0():
          %sq2 : int = aten::mul(%i.2, %i.2)
          %c2 : bool = aten::lt(%sq2, %m)
          -> (%c2)
        block1():
          -> (%false)
      -> (%b2, %i.2)
  return (%i))";
  auto code = compile(text);
  EXPECT_EQ(runCode(*code, {10, 1000}).toInt(), 10);
  EXPECT_EQ(runCode(*code, {10, 26}).toInt(), 6);
  EXPECT_EQ(runCode(*code, {0, 26}).toInt(), 0);
  EXPECT_FALSE(listingHas(*code, OpCode::JUMP_IF)) << code->str();
  EXPECT_FALSE(listingHas(*code, OpCode::JUMP_UNLESS)) << code->str();
}

TEST(Loops, OrAndNotInConditions) {
  const char* text = R"(graph(%a : int, %b : int):
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %true : bool = prim::Constant[value=True]()
  %x : bool = aten::lt(%a, %0)
  %y : bool = prim::If(%x)
    block0():
      -> (%true)
    block1():
      %c : bool = aten::gt(%b, %0)
      %n : bool = aten::__not__(%c)
      -> (%n)
  %r : int = prim::If(%y)
    block0():
      -> (%1)
    block1():
      -> (%2)
  return (%r))";
  EXPECT_EQ(run(text, {-1, 5}).toInt(), 1);
  EXPECT_EQ(run(text, {1, 5}).toInt(), 2);
  EXPECT_EQ(run(text, {1, 0}).toInt(), 1);
}

// A side without instructions leaves a jump over a jump, which is inverted.
TEST(Loops, RunningMaximum) {
  const char* text = R"(graph(%n : int, %m : int):
  %0 : int = prim::Constant[value=0]()
  %true : bool = prim::Constant[value=True]()
  %best : int = prim::Loop(%n, %true, %0)
    block0(%i : int, %best.1 : int):
      %sq : int = aten::mul(%i, %i)
      %x : int = aten::remainder(%sq, %m)
      %better : bool = aten::gt(%x, %best.1)
      %best.2 : int = prim::If(%better)
        block0():
          -> (%x)
        block1():
          -> (%best.1)
      -> (%true, %best.2)
  return (%best))";
  EXPECT_EQ(run(text, {7, 100}).toInt(), 36);
  EXPECT_EQ(run(text, {8, 7}).toInt(), 4);
  EXPECT_EQ(run(text, {3, 4}).toInt(), 1);
}

TEST(Loops, NestedIfWithValuesFromBothSides) {
  const char* text = R"(graph(%a : int, %b : bool, %c : bool):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %x : int, %y : int = prim::If(%b)
    block0():
      %p : int = prim::If(%c)
        block0():
          %q : int = aten::add(%a, %1)
          -> (%q)
        block1():
          -> (%a)
      -> (%p, %2)
    block1():
      -> (%1, %a)
  %t : (int, int) = prim::TupleConstruct(%x, %y)
  return (%t))";
  auto pair = [&](bool b, bool c) { return run(text, {7, b, c}).repr(); };
  EXPECT_EQ(pair(true, true), "(8, 2)");
  EXPECT_EQ(pair(true, false), "(7, 2)");
  EXPECT_EQ(pair(false, true), "(1, 7)");
}

}  // namespace
}  // namespace wick::testing::scalar_test
