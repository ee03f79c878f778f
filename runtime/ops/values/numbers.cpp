// Arithmetic, comparison and conversion of int, float, complex, bool and number.
#include <charconv>
#include <cstdlib>

#include "core/complex_product.h"
#include "core/convert.h"
#include "core/scalar.h"
#include "runtime/ops/arithmetic.h"
#include "runtime/ops/typed.h"
#include "runtime/ops/values/text.h"

namespace wick::ops {

namespace {

using I = int64_t;
using F = double;
using C = Complex;
using S = Scalar;
using B = bool;

// Gives an operation on ints, floats and complex numbers its overload for `number`: the operation
// of the wider of the two kinds.
template <class Op>
struct Numeric {
  Scalar operator()(const Scalar& a, const Scalar& b) const {
    if (a.isComplex() || b.isComplex()) return Op()(a.to<C>(), b.to<C>());
    if (a.isDouble() || b.isDouble()) return Op()(a.toDouble(), b.toDouble());
    return Op()(a.toInt(), b.toInt());
  }
};
// The same for operations that complex numbers do not have.
template <class Op>
struct RealNumeric {
  auto operator()(const Scalar& a, const Scalar& b) const {
    WICK_CHECK(!a.isComplex() && !b.isComplex(), "expected int or float, got complex");
    using R = std::conditional_t<std::is_same_v<decltype(Op()(I(), I())), decltype(Op()(F(), F()))>,
                                 decltype(Op()(F(), F())), Scalar>;
    if (a.isDouble() || b.isDouble()) return R(Op()(a.toDouble(), b.toDouble()));
    return R(Op()(a.toInt(), b.toInt()));
  }
};

struct Add {
  I operator()(I a, I b) const { return wrapAdd(a, b); }
  F operator()(F a, F b) const { return a + b; }
  C operator()(C a, C b) const { return a + b; }
};
struct Sub {
  I operator()(I a, I b) const { return wrapSub(a, b); }
  F operator()(F a, F b) const { return a - b; }
  C operator()(C a, C b) const { return a - b; }
};
struct Mul {
  I operator()(I a, I b) const { return wrapMul(a, b); }
  F operator()(F a, F b) const { return a * b; }
  C operator()(C a, C b) const { return complexProduct(a, b); }
};
struct Div {
  F operator()(I a, I b) const { return static_cast<F>(a) / static_cast<F>(b); }
  F operator()(F a, F b) const { return a / b; }
  C operator()(C a, C b) const { return complexQuotient(a, b); }
};
struct FloorDiv {
  I operator()(I a, I b) const { return floorDiv(a, b); }
  F operator()(F a, F b) const { return floorDiv(a, b); }
};
struct Remainder {
  I operator()(I a, I b) const { return floorMod(a, b); }
  F operator()(F a, F b) const { return floorMod(a, b); }
};
struct Pow {
  F operator()(I a, I b) const { return floatPow(static_cast<F>(a), static_cast<F>(b)); }
  F operator()(F a, F b) const { return floatPow(a, b); }
  C operator()(C a, C b) const {
    // Small whole exponents are exact products, as in Python.
    if (b.imag() != 0 || std::abs(b.real()) > 100 || b.real() != std::trunc(b.real())) {
      return std::pow(a, b);
    }
    C out(1);
    C power = a;
    for (I n = static_cast<I>(std::abs(b.real())); n != 0; n >>= 1) {
      if (n & 1) out = complexProduct(out, power);
      power = complexProduct(power, power);
    }
    return b.real() < 0 ? complexQuotient(C(1), out) : out;
  }
};
struct DivMod {
  std::tuple<I, I> operator()(I a, I b) const { return {floorDiv(a, b), floorMod(a, b)}; }
  std::tuple<F, F> operator()(F a, F b) const {
    if (b == 0) throwZeroDivision("float divmod()");
    double r = floorMod(a, b);
    return {(a - r) / b, r};
  }
};
// Of equal or unordered numbers the second is taken, as in PyTorch.
struct Max {
  I operator()(I a, I b) const { return a > b ? a : b; }
  F operator()(F a, F b) const { return a > b ? a : b; }
};
struct Min {
  I operator()(I a, I b) const { return a < b ? a : b; }
  F operator()(F a, F b) const { return a < b ? a : b; }
};
struct Eq {
  bool operator()(auto a, auto b) const { return a == b; }
};
struct Ne {
  bool operator()(auto a, auto b) const { return a != b; }
};
struct Lt {
  bool operator()(auto a, auto b) const { return a < b; }
};
struct Le {
  bool operator()(auto a, auto b) const { return a <= b; }
};
struct Gt {
  bool operator()(auto a, auto b) const { return a > b; }
};
struct Ge {
  bool operator()(auto a, auto b) const { return a >= b; }
};
template <class Op>
struct NumericTest {
  bool operator()(const Scalar& a, const Scalar& b) const {
    if (a.isComplex() || b.isComplex()) return Op()(a.to<C>(), b.to<C>());
    if (a.isDouble() || b.isDouble()) return Op()(a.toDouble(), b.toDouble());
    return Op()(a.toInt(), b.toInt());
  }
};

// ---- conversions ----

int64_t intFromScalar(const Scalar& s) {
  WICK_CHECK(!s.isComplex() || s.to<C>().imag() == 0,
             "value cannot be converted to type int without overflow");
  return s.isDouble() ? truncateTo<int64_t>(s.toDouble()) : s.toInt();
}
double floatFromScalar(const Scalar& s) {
  WICK_CHECK(!s.isComplex() || s.to<C>().imag() == 0,
             "value cannot be converted to type float without overflow");
  return s.toDouble();
}

// Python's int(text): surrounding blanks, a sign, digits with single underscores between them.
int64_t intFromString(const std::string& text) {
  std::string_view body = stripSpace(text);
  std::string digits;
  bool valid = !body.empty();
  for (size_t i = 0; i < body.size() && valid; ++i) {
    char c = body[i];
    if (c == '_') {
      valid = i > 0 && i + 1 < body.size() && isDigit(body[i - 1]) && isDigit(body[i + 1]);
    } else if (c == '+' || c == '-') {
      valid = i == 0 && body.size() > 1;
      if (c == '-') digits += c;
    } else {
      valid = isDigit(c);
      digits += c;
    }
  }
  int64_t value = 0;
  auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  WICK_CHECK(error != std::errc::result_out_of_range, "int() of {} does not fit into 64 bits",
             quoteString(text));
  if (!valid || error != std::errc() || end != digits.data() + digits.size()) {
    throw RuntimeError("invalid literal for int() with base 10: " + quoteString(text),
                       "ValueError");
  }
  return value;
}

// Python's float(text).
double floatFromString(const std::string& text) {
  std::string body;
  std::string_view stripped = stripSpace(text);
  bool valid = !stripped.empty();
  for (size_t i = 0; i < stripped.size() && valid; ++i) {
    char c = stripped[i];
    if (c == '_') {
      valid =
          i > 0 && i + 1 < stripped.size() && isDigit(stripped[i - 1]) && isDigit(stripped[i + 1]);
    } else {
      valid = c != '\0';
      body += c;
    }
  }
  std::string_view rest = body;
  bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  double value = 0;
  auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
  if (error == std::errc::result_out_of_range) {
    // Too large or too small for from_chars, which then leaves the value alone.
    value = std::strtod(std::string(rest).c_str(), nullptr);
    error = std::errc();
  }
  // from_chars takes "nan(…)" and a second sign, Python does not.
  valid = valid && !rest.empty() && rest.find('(') == std::string_view::npos && rest[0] != '-';
  if (!valid || error != std::errc() || end != rest.data() + rest.size()) {
    throw RuntimeError("could not convert string to float: " + quoteString(text), "ValueError");
  }
  return negative ? -value : value;
}

// Python's complex(text): "1+2j", "-3", "2.5e3J", "(1-j)".
C complexFromString(const std::string& text) {
  std::string_view body = stripSpace(text);
  if (body.size() > 2 && body.front() == '(' && body.back() == ')') {
    body = stripSpace(body.substr(1, body.size() - 2));
  }
  bool imaginary = !body.empty() && (body.back() == 'j' || body.back() == 'J');
  if (imaginary) body.remove_suffix(1);
  // The imaginary part begins at the last sign that belongs to no exponent.
  size_t split = 0;
  for (size_t i = body.size(); imaginary && i-- > 1 && split == 0;) {
    if ((body[i] == '+' || body[i] == '-') && toLower(body[i - 1]) != 'e') split = i;
  }
  try {
    auto part = [](std::string_view digits) {
      // floatFromString would allow blanks inside.
      bool blank = !digits.empty() && stripSpace(digits).size() != digits.size();
      return floatFromString(blank ? "" : std::string(digits));
    };
    if (!imaginary) return {part(body), 0};
    std::string_view last = body.substr(split);
    std::string unit = last.empty() || last == "+" || last == "-" ? std::string(last) + "1" : "";
    return {split == 0 ? 0 : part(body.substr(0, split)), part(unit.empty() ? last : unit)};
  } catch (const RuntimeError&) {
    throw RuntimeError("complex() arg is a malformed string: " + quoteString(text), "ValueError");
  }
}

template <class A, class R>
struct MakeComplex {
  C operator()(A re, R im) const { return {static_cast<F>(re), static_cast<F>(im)}; }
};

F toF(const Tensor& t) {
  return floatFromScalar(Scalar::fromIValue(IValue(t)));
}

// ---- ranges ----

int64_t rangeLength(int64_t lo, int64_t hi, int64_t step) {
  if (step == 0) throw RuntimeError("range() arg 3 must not be zero", "ValueError");
  // Unsigned, so that the distance of far ends does not overflow.
  uint64_t distance;
  uint64_t stride;
  if (step > 0) {
    if (lo >= hi) return 0;
    distance = static_cast<uint64_t>(hi) - static_cast<uint64_t>(lo);
    stride = static_cast<uint64_t>(step);
  } else {
    if (lo <= hi) return 0;
    distance = static_cast<uint64_t>(lo) - static_cast<uint64_t>(hi);
    stride = -static_cast<uint64_t>(step);
  }
  // No loop gets to the end of more; enumerate(values, -1) counts up to the largest int.
  return static_cast<int64_t>(
      std::min((distance - 1) / stride + 1, static_cast<uint64_t>(INT64_MAX)));
}

int64_t deriveIndex(int64_t index, int64_t start, int64_t step) {
  return wrapAdd(start, wrapMul(index, step));
}

int64_t truncDiv(int64_t a, int64_t b) {
  if (b == 0) throwZeroDivision("integer division or modulo by zero");
  return b == -1 ? wrapNeg(a) : a / b;
}

// Rows for the mixtures of int and float.
#define WICK_REAL(name, ints, floats, Op)                                          \
  {"aten::" name ".int(int a, int b) -> " ints, kApply<Op, I, I>},                 \
      {"aten::" name ".float(float a, float b) -> " floats, kApply<Op, F, F>},     \
      {"aten::" name ".int_float(int a, float b) -> " floats, kApply<Op, F, F>}, { \
    "aten::" name ".float_int(float a, int b) -> " floats, kApply<Op, F, F>        \
  }
// … and of these with complex.
#define WICK_COMPLEX(name, result, Op)                                                     \
  {"aten::" name ".complex(complex a, complex b) -> " result, kApply<Op, C, C>},           \
      {"aten::" name ".int_complex(int a, complex b) -> " result, kApply<Op, C, C>},       \
      {"aten::" name ".complex_int(complex a, int b) -> " result, kApply<Op, C, C>},       \
      {"aten::" name ".float_complex(float a, complex b) -> " result, kApply<Op, C, C>}, { \
    "aten::" name ".complex_float(complex a, float b) -> " result, kApply<Op, C, C>        \
  }
#define WICK_ORDER(name, Op)                                                           \
  WICK_REAL(name, "bool", "bool", Op),                                                 \
      {"aten::" name "(Scalar a, Scalar b) -> bool", kApply<RealNumeric<Op>, S, S>}, { \
    "aten::" name ".str(str a, str b) -> bool", kApply<Op, std::string, std::string>   \
  }
#define WICK_EQUALITY(name, Op)                                                             \
  WICK_REAL(name, "bool", "bool", Op), WICK_COMPLEX(name, "bool", Op),                      \
      {"aten::" name ".bool(bool a, bool b) -> bool", kApply<Op, B, B>},                    \
      {"aten::" name "(Scalar a, Scalar b) -> bool", kApply<NumericTest<Op>, S, S>},        \
      {"aten::" name ".str(str a, str b) -> bool", kApply<Op, std::string, std::string>}, { \
    "aten::" name ".device(Device a, Device b) -> bool", kApply<Op, Device, Device>         \
  }
#define WICK_EXTREMUM(name, Op)                                                   \
  {"prim::" name ".int(int a, int b) -> int", kApply<Op, I, I>},                  \
      {"prim::" name ".float(float a, float b) -> float", kApply<Op, F, F>},      \
      {"prim::" name ".int_float(int a, float b) -> float", kApply<Op, F, F>},    \
      {"prim::" name ".float_int(float a, int b) -> float", kApply<Op, F, F>}, {  \
    "prim::" name "(Scalar a, Scalar b) -> Scalar", kApply<RealNumeric<Op>, S, S> \
  }
#define WICK_TO_COMPLEX(a_name, A, b_name, B_)                                    \
  {                                                                               \
    "aten::Complex." a_name "_" b_name "(" a_name " x, " b_name " y) -> complex", \
        kApply<MakeComplex<A, B_>, A, B_>                                         \
  }

const OperatorRecord kNumbersRecords[] = {
    WICK_REAL("add", "int", "float", Add),
    WICK_COMPLEX("add", "complex", Add),
    {"aten::add(Scalar a, Scalar b) -> Scalar", kApply<Numeric<Add>, S, S>},
    WICK_REAL("sub", "int", "float", Sub),
    WICK_COMPLEX("sub", "complex", Sub),
    {"aten::sub(Scalar a, Scalar b) -> Scalar", kApply<Numeric<Sub>, S, S>},
    WICK_REAL("mul", "int", "float", Mul),
    WICK_COMPLEX("mul", "complex", Mul),
    {"aten::mul(Scalar a, Scalar b) -> Scalar", kApply<Numeric<Mul>, S, S>},
    {"aten::div.int(int a, int b) -> float", kApply<Div, I, I>},
    {"aten::div.float(float a, float b) -> float", kApply<Div, F, F>},
    {"aten::div.complex(complex a, complex b) -> complex", kApply<Div, C, C>},
    {"aten::div(Scalar a, Scalar b) -> float", kApply<RealNumeric<Div>, S, S>},
    WICK_REAL("floordiv", "int", "float", FloorDiv),
    {"aten::floordiv(Scalar a, Scalar b) -> Scalar", kApply<RealNumeric<FloorDiv>, S, S>},
    WICK_REAL("remainder", "int", "float", Remainder),
    {"aten::remainder(Scalar a, Scalar b) -> Scalar", kApply<RealNumeric<Remainder>, S, S>},
    WICK_REAL("pow", "float", "float", Pow),
    WICK_COMPLEX("pow", "complex", Pow),
    {"aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float", kApply<RealNumeric<Pow>, S, S>},
    {"aten::pow.int_to_int(int a, int b) -> int", WICK_KERNEL(intPow)},
    {"aten::__round_to_zero_floordiv.int(int a, int b) -> int", WICK_KERNEL(truncDiv)},
    {"aten::divmod.int(int x, int y) -> (int, int)", kApply<DivMod, I, I>},
    {"aten::divmod.float(float x, float y) -> (float, float)", kApply<DivMod, F, F>},
    {"aten::divmod.int_float(int x, float y) -> (float, float)", kApply<DivMod, F, F>},
    {"aten::divmod.float_int(float x, int y) -> (float, float)", kApply<DivMod, F, F>},

    {"aten::neg.int(int a) -> int", WICK_LAMBDA([](I a) { return wrapNeg(a); })},
    {"aten::neg.float(float a) -> float", WICK_LAMBDA([](F a) { return -a; })},
    {"aten::neg.complex(complex a) -> complex", WICK_LAMBDA([](C a) { return -a; })},
    {"aten::neg.Scalar(Scalar a) -> Scalar", WICK_LAMBDA([](S a) {
       if (a.isComplex()) return Scalar(-a.to<C>());
       return a.isDouble() ? Scalar(-a.toDouble()) : Scalar(wrapNeg(a.toInt()));
     })},
    {"prim::abs.int(int a) -> int", WICK_LAMBDA([](I a) { return a < 0 ? wrapNeg(a) : a; })},
    {"prim::abs.float(float a) -> float", WICK_LAMBDA([](F a) { return std::abs(a); })},
    {"prim::abs.complex(complex a) -> float", WICK_LAMBDA([](C a) { return std::abs(a); })},
    {"prim::abs.Scalar(Scalar a) -> Scalar", WICK_LAMBDA([](S a) {
       if (a.isComplex()) return Scalar(std::abs(a.to<C>()));
       if (a.isDouble()) return Scalar(std::abs(a.toDouble()));
       return a.toInt() < 0 ? Scalar(wrapNeg(a.toInt())) : Scalar(a.toInt());
     })},
    WICK_EXTREMUM("max", Max),
    WICK_EXTREMUM("min", Min),

    WICK_EQUALITY("eq", Eq),
    WICK_EQUALITY("ne", Ne),
    WICK_ORDER("lt", Lt),
    WICK_ORDER("le", Le),
    WICK_ORDER("gt", Gt),
    WICK_ORDER("ge", Ge),

    {"aten::__and__.bool(bool a, bool b) -> bool", WICK_LAMBDA([](B a, B b) { return a && b; })},
    {"aten::__and__.int(int a, int b) -> int", WICK_LAMBDA([](I a, I b) { return a & b; })},
    {"aten::__or__.bool(bool a, bool b) -> bool", WICK_LAMBDA([](B a, B b) { return a || b; })},
    {"aten::__or__.int(int a, int b) -> int", WICK_LAMBDA([](I a, I b) { return a | b; })},
    {"aten::__xor__.bool(bool a, bool b) -> bool", WICK_LAMBDA([](B a, B b) { return a != b; })},
    {"aten::__xor__.int(int a, int b) -> int", WICK_LAMBDA([](I a, I b) { return a ^ b; })},
    {"aten::__lshift__.int(int a, int b) -> int", WICK_KERNEL(shiftLeft)},
    {"aten::__rshift__.int(int a, int b) -> int", WICK_KERNEL(shiftRight)},
    {"aten::__not__(bool self) -> bool", WICK_LAMBDA([](B a) { return !a; })},
    {"aten::bitwise_not.int(int a) -> int", WICK_LAMBDA([](I a) { return ~a; })},

    {"aten::Int.bool(bool a) -> int", WICK_LAMBDA([](B a) { return I{a}; })},
    {"aten::Int.float(float a) -> int", WICK_LAMBDA([](F a) { return truncateTo<int64_t>(a); })},
    {"aten::Int.Scalar(Scalar a) -> int", WICK_KERNEL(intFromScalar)},
    {"aten::Int.str(str a) -> int", WICK_KERNEL(intFromString)},
    {"aten::Float.int(int a) -> float", WICK_LAMBDA([](F a) { return a; })},
    {"aten::Float.bool(bool a) -> float", WICK_LAMBDA([](B a) { return a ? 1.0 : 0.0; })},
    {"aten::Float.Scalar(Scalar a) -> float", WICK_KERNEL(floatFromScalar)},
    {"aten::Float.str(str a) -> float", WICK_KERNEL(floatFromString)},
    {"aten::Bool.int(int a) -> bool", WICK_LAMBDA([](I a) { return a != 0; })},
    {"aten::Bool.float(float a) -> bool", WICK_LAMBDA([](F a) { return a != 0; })},
    {"aten::Complex.str(str a) -> complex", WICK_KERNEL(complexFromString)},
    {"aten::Complex.Scalar(Scalar a) -> complex", WICK_LAMBDA([](S a) { return a.to<C>(); })},
    WICK_TO_COMPLEX("int", I, "int", I),
    WICK_TO_COMPLEX("int", I, "float", F),
    WICK_TO_COMPLEX("int", I, "bool", B),
    WICK_TO_COMPLEX("float", F, "int", I),
    WICK_TO_COMPLEX("float", F, "float", F),
    WICK_TO_COMPLEX("float", F, "bool", B),
    WICK_TO_COMPLEX("bool", B, "int", I),
    WICK_TO_COMPLEX("bool", B, "float", F),
    WICK_TO_COMPLEX("bool", B, "bool", B),
    {"aten::Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex",
     WICK_LAMBDA([](const Tensor& a, const Tensor& b) { return C(toF(a), toF(b)); }),
     kNeutralMixed},
    {"aten::Complex.Tensor_int(Tensor x, int y) -> complex",
     WICK_LAMBDA([](const Tensor& a, F b) { return C(toF(a), b); }), kNeutralMixed},
    {"aten::Complex.Tensor_float(Tensor x, float y) -> complex",
     WICK_LAMBDA([](const Tensor& a, F b) { return C(toF(a), b); }), kNeutralMixed},
    {"aten::Complex.Tensor_bool(Tensor x, bool y) -> complex",
     WICK_LAMBDA([](const Tensor& a, B b) { return C(toF(a), b); }), kNeutralMixed},
    {"aten::Complex.int_Tensor(int x, Tensor y) -> complex",
     WICK_LAMBDA([](F a, const Tensor& b) { return C(a, toF(b)); }), kNeutralMixed},
    {"aten::Complex.float_Tensor(float x, Tensor y) -> complex",
     WICK_LAMBDA([](F a, const Tensor& b) { return C(a, toF(b)); }), kNeutralMixed},
    {"aten::Complex.bool_Tensor(bool x, Tensor y) -> complex",
     WICK_LAMBDA([](B a, const Tensor& b) { return C(a, toF(b)); }), kNeutralMixed},

    {"aten::__range_length(int lo, int hi, int step) -> int", WICK_KERNEL(rangeLength)},
    {"aten::__derive_index(int index, int start, int step) -> int", WICK_KERNEL(deriveIndex)},
};
const RegisterOperators kNumbersRegistered(kNumbersRecords);

}  // namespace

}  // namespace wick::ops
