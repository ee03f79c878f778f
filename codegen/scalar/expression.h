// Expression: scalar arithmetic as data. ExprBuilder is the builder that records what a scalar
// definition does with its inputs; emitters of machine code, printers and the reference evaluator
// work on the recording, so that every engine computes what the eager kernel computes.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "codegen/scalar/float_functions.h"
#include "codegen/scalar/functions.h"
#include "core/dtype.h"

namespace wick {

// Operands have the node's dtype unless said otherwise; booleans have dtype Bool. Integers
// wrap.
enum class ScalarOp : uint8_t {
  Input,     // number `payload` of the inputs
  Constant,  // `payload` is the value's bits: of a double for floats, of an int64 for the others
  Add,       // not on Bool, like the next two
  Sub,
  Mul,
  Div,     // floats
  IntDiv,  // integers, toward zero; zero for a divisor of zero
  IntRem,  // integers; zero for a divisor of zero
  Neg,
  Abs,      // floats and signed integers
  Fma,      // floats: a * b + c, rounded once
  Eq,       // Bool of two operands of any one dtype
  Lt,       // Bool of two integers or floats
  Le,       // the same
  SignBit,  // Bool of a float
  And,      // Bool or integers, like the next three
  Or,
  Xor,
  Not,
  ShiftLeft,   // integers; the count wraps at 64 for int64 and at 32 for the others
  ShiftRight,  // arithmetic for signed integers
  Select,      // Bool, then two values
  Convert,     // from any dtype, as core/convert.h does
  Bits,        // the same bits: float32 from or to int32, float64 and int64
  Sqrt,        // floats, like the next five
  Floor,
  Ceil,
  Trunc,
  Rint,  // halves to even
  Copysign,
  Scale,   // float32 and float64: a * 2^b, rounded once (scaleInSteps())
  Lookup,  // float32: the entry of table `payload` that the low bits of an int32 number
  Call,    // `function` of one or two operands
};

// Functions that only a call computes.
enum class ScalarFunction : uint8_t {
#define WICK_FUNCTION(name) name,
  WICK_FORALL_UNARY_FUNCTIONS(WICK_FUNCTION) WICK_FORALL_BINARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
      gcd,
  intPow,
};
std::string_view toString(ScalarFunction f);
// Of PlainBuilder's function for the dtype, with the signature T(T) or T(T, T) of its C++ type;
// null when it has none.
const void* functionAddress(ScalarFunction f, DType type);

std::string_view toString(ScalarOp op);
int operandCount(ScalarOp op, ScalarFunction f);

// A node of an Expression, by its number.
struct ScalarExpr {
  int32_t id = -1;
  bool valid() const { return id >= 0; }
  friend bool operator==(ScalarExpr, ScalarExpr) = default;
};

struct ScalarNode {
  ScalarOp op = ScalarOp::Constant;
  DType type = DType::Float;
  ScalarFunction function = ScalarFunction::exp;
  std::array<ScalarExpr, 3> operands;
  uint64_t payload = 0;
  friend bool operator==(const ScalarNode&, const ScalarNode&) = default;
};

// What ExprBuilder makes of float32 functions that have arithmetic of their own
// (WICK_FORALL_COMPOSED_FUNCTIONS): that arithmetic, which gives the same bits in all code for the
// CPU, or calls, for devices that have such functions.
enum class FunctionForm : uint8_t { Composed, Called };

// Nodes in an order in which operands come first; equal nodes are one.
class Expression {
 public:
  explicit Expression(FunctionForm functions = FunctionForm::Composed) : functions_(functions) {}
  FunctionForm functions() const { return functions_; }

  ScalarExpr add(const ScalarNode& node);
  ScalarExpr input(uint32_t index, DType type);
  // Of a float dtype that computes, an integer dtype or Bool.
  ScalarExpr constant(double value, DType type);
  ScalarExpr integer(int64_t value, DType type);
  // The operand itself when it has the dtype already; constants are rounded at once.
  ScalarExpr convert(ScalarExpr from, DType type);

  const std::vector<ScalarNode>& nodes() const { return nodes_; }
  const ScalarNode& operator[](ScalarExpr e) const { return nodes_[static_cast<size_t>(e.id)]; }

 private:
  struct Hash {
    size_t operator()(const ScalarNode& n) const;
  };
  FunctionForm functions_;
  std::vector<ScalarNode> nodes_;
  std::unordered_map<ScalarNode, ScalarExpr, Hash> known_;
};
// "add float32 %1, %2": without the node's own number.
std::string formatNode(const ScalarNode& node);

// The builder (see plain_builder.h) that records into an Expression. Complex numbers are not
// recorded: what would make one gives an invalid ScalarExpr.
class ExprBuilder {
 public:
  using V = ScalarExpr;
  using Mask = ScalarExpr;
  // An int32 beside float32, an int64 beside float64, for functions that take floats apart.
  using I = ScalarExpr;

  ExprBuilder(Expression& into, DType compute) : into_(&into), type_(compute) {}

  bool isInteger() const { return isIntegral(type_, true); }
  bool isBool() const { return type_ == DType::Bool; }
  bool isSigned() const { return !isBool() && type_ != DType::Byte; }
  bool isDouble() const { return type_ == DType::Double; }
  bool isFloat() const { return isFloating(type_); }
  static constexpr bool isComplex() { return false; }

  V constant(double v) const { return into_->constant(v, type_); }
  V lowest() const;
  V highest() const;

  V add(V a, V b) const { return node(isBool() ? ScalarOp::Or : ScalarOp::Add, a, b); }
  V sub(V a, V b) const { return node(isBool() ? ScalarOp::Xor : ScalarOp::Sub, a, b); }
  V mul(V a, V b) const { return node(isBool() ? ScalarOp::And : ScalarOp::Mul, a, b); }
  V div(V a, V b) const { return isInteger() ? a : node(ScalarOp::Div, a, b); }
  V intDiv(V a, V b) const { return integral(ScalarOp::IntDiv, ScalarOp::And, a, b); }
  V intRem(V a, V b) const {
    return isBool() ? a : integral(ScalarOp::IntRem, ScalarOp::And, a, b);
  }
  V neg(V a) const { return isBool() ? a : node(ScalarOp::Neg, a); }
  V abs(V a) const { return isFloat() || (isInteger() && isSigned()) ? node(ScalarOp::Abs, a) : a; }
  V fma(V a, V b, V c) const { return node(ScalarOp::Fma, a, b, c); }

  Mask eq(V a, V b) const { return mask(ScalarOp::Eq, a, b); }
  Mask ne(V a, V b) const { return negate(eq(a, b)); }
  Mask lt(V a, V b) const { return isBool() ? both(negate(a), b) : mask(ScalarOp::Lt, a, b); }
  Mask le(V a, V b) const { return isBool() ? either(negate(a), b) : mask(ScalarOp::Le, a, b); }
  Mask gt(V a, V b) const { return lt(b, a); }
  Mask ge(V a, V b) const { return le(b, a); }
  Mask isNan(V a) const {
    return isInteger() ? into_->integer(0, DType::Bool) : negate(mask(ScalarOp::Eq, a, a));
  }
  Mask signBit(V a) const { return isFloat() ? mask(ScalarOp::SignBit, a) : lt(a, constant(0)); }
  Mask both(Mask a, Mask b) const { return mask(ScalarOp::And, a, b); }
  Mask either(Mask a, Mask b) const { return mask(ScalarOp::Or, a, b); }
  Mask differ(Mask a, Mask b) const { return mask(ScalarOp::Xor, a, b); }
  Mask negate(Mask a) const { return mask(ScalarOp::Not, a); }
  V select(Mask m, V a, V b) const;
  V fromMask(Mask m) const { return into_->convert(m, type_); }

  V bitAnd(V a, V b) const { return integral(ScalarOp::And, ScalarOp::And, a, b); }
  V bitOr(V a, V b) const { return integral(ScalarOp::Or, ScalarOp::Or, a, b); }
  V bitXor(V a, V b) const { return integral(ScalarOp::Xor, ScalarOp::Xor, a, b); }
  V bitNot(V a) const { return isInteger() ? node(ScalarOp::Not, a) : a; }
  V shiftLeft(V a, V n) const { return isBool() ? a : node(ScalarOp::ShiftLeft, a, n); }
  V shiftRight(V a, V n) const { return isBool() ? a : node(ScalarOp::ShiftRight, a, n); }
  V gcd(V a, V b) const { return isBool() ? a : call(ScalarFunction::gcd, a, b); }
  V intPow(V a, V b) const { return isBool() ? a : call(ScalarFunction::intPow, a, b); }

  // What float_functions.h and double_functions.h need.
  I toBits(V a) const { return node(ScalarOp::Bits, intType(), a); }
  V fromBits(I a) const { return node(ScalarOp::Bits, type_, a); }
  V toFloat(I a) const { return into_->convert(a, type_); }
  I intConstant(int64_t v) const { return into_->integer(v, intType()); }
  I intAdd(I a, I b) const { return node(ScalarOp::Add, intType(), a, b); }
  I intSub(I a, I b) const { return node(ScalarOp::Sub, intType(), a, b); }
  I intShiftLeft(I a, int n) const {
    return node(ScalarOp::ShiftLeft, intType(), a, intConstant(n));
  }
  I intShiftRight(I a, int n) const {
    return node(ScalarOp::ShiftRight, intType(), a, intConstant(n));
  }
  V scale(V a, V n) const { return node(ScalarOp::Scale, a, n); }
  V lookup(floats::FloatTable t, I i) const;

  V sqrt(V a) const { return direct(ScalarOp::Sqrt, a); }
  V floor(V a) const { return direct(ScalarOp::Floor, a); }
  V ceil(V a) const { return direct(ScalarOp::Ceil, a); }
  V trunc(V a) const { return direct(ScalarOp::Trunc, a); }
  V rint(V a) const { return direct(ScalarOp::Rint, a); }
  V copysign(V a, V b) const { return isFloat() ? node(ScalarOp::Copysign, a, b) : a; }
#define WICK_FUNCTION(name)                                                        \
  V name(V a) const {                                                              \
    return isComposed() ? floats::name(*this, a) : unary(ScalarFunction::name, a); \
  }
  WICK_FORALL_COMPOSED_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
#define WICK_FUNCTION(name)                \
  V name(V a) const {                      \
    return unary(ScalarFunction::name, a); \
  }
  WICK_FORALL_CALLED_UNARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
#define WICK_FUNCTION(name)                                  \
  V name(V a, V b) const {                                   \
    return isFloat() ? call(ScalarFunction::name, a, b) : a; \
  }
  WICK_FORALL_CALLED_BINARY_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION

  V makeComplex(V, V) const {
    return {};
  }

 private:
  DType intType() const {
    return isDouble() ? DType::Long : DType::Int;
  }
  V node(ScalarOp op, DType type, V a, V b = {}, V c = {}) const;
  V node(ScalarOp op, V a, V b = {}, V c = {}) const {
    return node(op, type_, a, b, c);
  }
  Mask mask(ScalarOp op, V a, V b = {}) const {
    return node(op, DType::Bool, a, b);
  }
  V direct(ScalarOp op, V a) const {
    return isFloat() ? node(op, a) : a;
  }
  V integral(ScalarOp op, ScalarOp on_bool, V a, V b) const {
    return isInteger() ? node(isBool() ? on_bool : op, a, b) : a;
  }
  bool isComposed() const {
    return type_ == DType::Float && into_->functions() == FunctionForm::Composed;
  }
  V call(ScalarFunction f, V a, V b = {}) const;
  V unary(ScalarFunction f, V a) const {
    return isFloat() ? call(f, a) : a;
  }

  Expression* into_;
  DType type_;
};

}  // namespace wick
