// Operators of arithmetic: sums, products, quotients, remainders, powers, rounding.
#include "codegen/scalar/arithmetic.h"

#include <immintrin.h>

#include "codegen/scalar/mathematics.h"
#include "core/number_range.h"
#include "runtime/ops/pointwise/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

using namespace scalar;

bool isOne(const Scalar& s) {
  return s.isComplex() ? s.to<std::complex<double>>() == 1.0 : s.toDouble() == 1.0;
}

DType typeOf(const Operand& o) {
  return o.tensor ? o.tensor->dtype() : o.number.dtype();
}

// Whether alpha has to be multiplied with. One counts for complex numbers: it makes a product with
// an infinite part NaN in the other part.
bool scales(const Operand& self, const Operand& other, const Scalar& alpha) {
  const Operand both[] = {self, other};
  return !isOne(alpha) || isComplex(resultType(both));
}

void checkAlpha(const Operand& self, const Operand& other, const Scalar& alpha) {
  const Operand both[] = {self, other};
  DType common = resultType(both);
  WICK_CHECK(!alpha.isBool() || common == DType::Bool,
             "Boolean alpha only supported for Boolean results.");
  WICK_CHECK(isFloating(common) || isComplex(common) || alpha.isInt() || alpha.isBool(),
             "For integral input tensors, argument alpha must not be a floating point number.");
  WICK_CHECK(!alpha.isComplex() || isComplex(common),
             "For non-complex input tensors, argument alpha must not be a complex number.");
}

void checkSub(const Operand& self, const Operand& other) {
  bool a = typeOf(self) == DType::Bool;
  bool b = typeOf(other) == DType::Bool;
  WICK_CHECK(
      !a || !b,
      "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
      "`logical_xor()` operator instead.");
  WICK_CHECK(
      !a && !b,
      "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying "
      "to invert a mask, use the `~` or `logical_not()` operator instead.");
}

Tensor addScaled(const Operand& self, const Operand& other, const Scalar& alpha, Out out) {
  checkAlpha(self, other, alpha);
  if (!scales(self, other, alpha)) {
    const Operand list[] = {self, other};
    return pointwise(kScalar<Add>, list, out);
  }
  const Operand list[] = {self, other, alpha};
  return pointwise(kScalar<AddAlpha>, list, out);
}
Tensor subScaled(const Operand& self, const Operand& other, const Scalar& alpha, Out out) {
  checkSub(self, other);
  checkAlpha(self, other, alpha);
  if (!scales(self, other, alpha)) {
    const Operand list[] = {self, other};
    return pointwise(kScalar<Sub>, list, out);
  }
  const Operand list[] = {self, other, alpha};
  return pointwise(kScalar<SubAlpha>, list, out);
}

Tensor add(const Tensor& self, const Tensor& other, const Scalar& alpha, Out out) {
  return addScaled(self, other, alpha, out);
}
Tensor addNumber(const Tensor& self, const Scalar& other, const Scalar& alpha, Out out) {
  return addScaled(self, other, alpha, out);
}
Tensor sub(const Tensor& self, const Tensor& other, const Scalar& alpha, Out out) {
  return subScaled(self, other, alpha, out);
}
Tensor subNumber(const Tensor& self, const Scalar& other, const Scalar& alpha, Out out) {
  return subScaled(self, other, alpha, out);
}
Tensor rsub(const Tensor& self, const Tensor& other, const Scalar& alpha, Out out) {
  return subScaled(other, self, alpha, out);
}
Tensor rsubNumber(const Tensor& self, const Scalar& other, const Scalar& alpha, Out out) {
  return subScaled(other, self, alpha, out);
}

// Remainders of int64 by vectors of float64, which are exact below 2^53: there a quotient is
// rounded up to no whole number that it does not reach. The processor divides whole numbers one by
// one. Vectors with other numbers, or a divisor of zero, are left to the definition. Returns how
// many elements are done.
template <class Def>
__attribute__((target("avx512f,avx512dq"))) int64_t remaindersWide(int64_t* to, const int64_t* a,
                                                                   const int64_t* d, int64_t n) {
  constexpr int64_t kMost = (int64_t{1} << 53) - 1;
  constexpr __mmask8 kAll = 0xff;
  const __m512i most = _mm512_set1_epi64(kMost), range = _mm512_set1_epi64(2 * kMost);
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    const __m512i x = _mm512_loadu_si512(a + i), y = _mm512_loadu_si512(d + i);
    const __mmask8 usual = _mm512_cmple_epu64_mask(_mm512_add_epi64(x, most), range) &
                           _mm512_cmple_epu64_mask(_mm512_add_epi64(y, most), range) &
                           _mm512_test_epi64_mask(y, y);
    if (usual != kAll) {
      for (int k = 0; k < 8; ++k)
        to[i + k] = Def::apply(PlainBuilder<int64_t>(), a[i + k], d[i + k]);
      continue;
    }
    const __m512d dividend = _mm512_maskz_cvtepi64_pd(kAll, x);
    const __m512d divisor = _mm512_maskz_cvtepi64_pd(kAll, y);
    const __m512d quotient =
        _mm512_maskz_roundscale_pd(kAll, _mm512_div_pd(dividend, divisor), _MM_FROUND_TO_ZERO);
    __m512i rest = _mm512_maskz_cvttpd_epi64(kAll, _mm512_fnmadd_pd(quotient, divisor, dividend));
    if constexpr (std::is_same_v<Def, Remainder>) {  // the divisor's sign
      const __mmask8 off =
          _mm512_test_epi64_mask(rest, rest) & _mm512_movepi64_mask(_mm512_xor_si512(rest, y));
      rest = _mm512_mask_add_epi64(rest, off, rest, y);
    }
    _mm512_storeu_si512(to + i, rest);
  }
  return i;
}
template <class Def>
void remainders(void* out, const void* const* inputs, int64_t n) {
  static const bool is_wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  auto* const to = static_cast<int64_t*>(out);
  const auto* const a = static_cast<const int64_t*>(inputs[0]);
  const auto* const d = static_cast<const int64_t*>(inputs[1]);
  int64_t i = is_wide ? remaindersWide<Def>(to, a, d, n) : 0;
  for (; i < n; ++i) to[i] = Def::apply(PlainBuilder<int64_t>(), a[i], d[i]);
}
template <class Def>
constexpr ScalarDefinition makeDivision() {
  ScalarDefinition d = makeScalarDefinition<Def>();
  if (std::is_same_v<Def, Remainder> || std::is_same_v<Def, Fmod>) {
    d.entries[static_cast<size_t>(DType::Long)].loop = remainders<Def>;
  }
  return d;
}
template <class Def>
constexpr ScalarDefinition kDivision = makeDivision<Def>();

template <class Def>
Tensor divideIntegers(const Operand& self, const Operand& other, Out out) {
  checkDivisor(self, other);
  const Operand list[] = {self, other};
  return pointwise(kDivision<Def>, list, out);
}
template <class Def>
Tensor divTensors(const Tensor& self, const Tensor& other, Out out) {
  return divideIntegers<Def>(self, other, out);
}
template <class Def>
Tensor divNumber(const Tensor& self, const Scalar& other, Out out) {
  return divideIntegers<Def>(self, other, out);
}
template <class Def>
Tensor numberDiv(const Scalar& self, const Tensor& other, Out out) {
  return divideIntegers<Def>(self, other, out);
}

Tensor divRounded(const Operand& self, const Operand& other, const std::optional<std::string>& mode,
                  Out out) {
  const Operand list[] = {self, other};
  if (!mode) return pointwise(kScalar<TrueDiv>, list, out);
  if (*mode == "trunc") return divideIntegers<TruncDiv>(self, other, out);
  if (*mode == "floor") return divideIntegers<FloorDiv>(self, other, out);
  throwRuntimeError(
      "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{}'", *mode);
}
Tensor divMode(const Tensor& self, const Tensor& other, const std::optional<std::string>& mode,
               Out out) {
  // PyTorch rounds the quotient of two tensors of half precision before it cuts it off.
  if (mode == "trunc" && other.dim() > 0) {
    DTypePromotion type;
    addTo(type, self);
    addTo(type, other);
    if (type.get() == DType::Half || type.get() == DType::BFloat16) {
      const Operand list[] = {self, other};
      return unary<Trunc>(pointwise(kScalar<TrueDiv>, list, {}), out);
    }
  }
  return divRounded(self, other, mode, out);
}
Tensor divNumberMode(const Tensor& self, const Scalar& other,
                     const std::optional<std::string>& mode, Out out) {
  return divRounded(self, other, mode, out);
}

// A result that is the same number everywhere, with the shape and order of `like`.
Tensor filled(const Tensor& like, double value, DType dtype) {
  return Tensor::emptyLike(like, dtype).fill(value);
}

Tensor powNumber(const Tensor& self, const Scalar& exponent, Out out) {
  DTypePromotion type;
  addTo(type, self);
  addTo(type, exponent);
  DType common = type.get();
  WICK_CHECK(!(isIntegral(self.dtype(), true) && exponent.isInt() && exponent.toInt() < 0),
             "Integers to negative integer powers are not allowed.");
  if (!exponent.isComplex()) {
    double e = exponent.toDouble();
    if (e == 0) return filled(self, 1, common);
    if (e == 1 && !out) return self.dtype() == common ? self.clone() : self.to(common);
    if (common != DType::Bool) {
      const Tensor base = self.to(common);
      bool same = base.isSame(self);
      // A converted base is a temporary, which the destination need not be compared with.
      Out to = same ? out : Out{};
      if (e == 2) return unary<Square>(base, to);
      if (e == 3) return unary<Cube>(base, to);
      if (!isIntegral(common, true)) {
        if (e == 0.5) return unary<Sqrt>(base, to);
        if (e == -0.5) return unary<Rsqrt>(base, to);
        if (e == -1) return unary<Reciprocal>(base, to);
        if (e == -2) return unary<InverseSquare>(base, to);
      }
    }
  }
  // Other exponents of float and double are doubles.
  if (!exponent.isComplex() && (isIntegral(common, false) || isReducedFloat(common))) {
    checkFits(exponent, common);
  }
  return pointwise(kScalar<Pow>, out, self, exponent);
}
Tensor numberPow(const Scalar& self, const Tensor& exponent, Out out) {
  if (isOne(self)) {
    DTypePromotion type;
    addTo(type, self);
    addTo(type, exponent);
    return filled(exponent, 1, type.get());
  }
  // A result of its own is row-major, whatever order the exponents lie in.
  if (!out) return pointwise(kScalar<Pow>, nullptr, self, exponent).contiguous();
  return pointwise(kScalar<Pow>, out, self, exponent);
}

// float_power computes in double precision whatever it is given.
DType widest(DType a, DType b) {
  return isComplex(a) || isComplex(b) ? DType::ComplexDouble : DType::Double;
}
Tensor floatPower(const Tensor& self, const Tensor& exponent) {
  DType wide = widest(self.dtype(), exponent.dtype());
  return binary<Pow>(self.to(wide), exponent.to(wide), Out{});
}
Tensor floatPowerNumber(const Tensor& self, const Scalar& exponent) {
  return powNumber(self.to(widest(self.dtype(), exponent.dtype())), exponent, Out{});
}
Tensor numberFloatPower(const Scalar& self, const Tensor& exponent) {
  return numberPow(self, exponent.to(widest(self.dtype(), exponent.dtype())), Out{});
}
void checkFloatPowerInPlace(const Tensor& self, DType other) {
  DType wide = widest(self.dtype(), other);
  WICK_CHECK(self.dtype() == wide,
             "the base given to float_power_ has dtype {} but the operation's result requires "
             "dtype {}",
             scalarTypeName(self.dtype()), scalarTypeName(wide));
}

Tensor writeInPlace(const Tensor& self, const Tensor& result) {
  WICK_CHECK(canCast(result.dtype(), self.dtype()),
             "result type {} can't be cast to the desired output type {}",
             scalarTypeName(result.dtype()), scalarTypeName(self.dtype()));
  WICK_CHECK(std::ranges::equal(self.sizes(), result.sizes()),
             "output with shape {} doesn't match the broadcast shape {}", formatInts(self.sizes()),
             formatInts(result.sizes()));
  if (!self.isSame(result)) self.copyFrom(result);
  return self;
}
Tensor powInPlace(const Tensor& self, const Tensor& exponent) {
  return binary<Pow>(self, exponent, Out{&self});
}
Tensor powNumberInPlace(const Tensor& self, const Scalar& exponent) {
  return writeInPlace(self, powNumber(self, exponent, Out{&self}));
}
Tensor floatPowerInPlace(const Tensor& self, const Tensor& exponent) {
  checkFloatPowerInPlace(self, exponent.dtype());
  return writeInPlace(self, floatPower(self, exponent));
}
Tensor floatPowerNumberInPlace(const Tensor& self, const Scalar& exponent) {
  checkFloatPowerInPlace(self, exponent.dtype());
  return writeInPlace(self, floatPowerNumber(self, exponent));
}
Tensor floorDivideInPlace(const Tensor& self, const Tensor& other) {
  return divTensors<FloorDiv>(self, other, Out{&self});
}

Tensor ldexp(const Tensor& self, const Tensor& other, Out out) {
  return binary<Mul>(self, numberPow(Scalar(2.0), other, Out{}), out);
}
Tensor ldexpInPlace(const Tensor& self, const Tensor& other) {
  return ldexp(self, other, Out{&self});
}

Tensor neg(const Tensor& self, Out out) {
  WICK_CHECK(self.dtype() != DType::Bool,
             "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to "
             "invert a mask, use the `~` or `logical_not()` operator instead.");
  return unary<Neg>(self, out);
}
Tensor positive(const Tensor& self) {
  WICK_CHECK(self.dtype() != DType::Bool, "The `+` operator, on a bool tensor is not supported.");
  return self;
}
// The loop of complex64. The squares and their sum neither overflow nor vanish as float64, so that
// no step depends on the numbers and the loop becomes one of vectors.
void magnitudes(void* out, const void* const* inputs, int64_t n) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  float* const to = static_cast<float*>(out);
  const float* const from = static_cast<const float*>(inputs[0]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const double re = std::fabs(static_cast<double>(from[2 * i]));
    const double im = std::fabs(static_cast<double>(from[2 * i + 1]));
    const double length = std::sqrt(re * re + im * im);
    // Infinite beside NaN too.
    const bool infinite = (re == kInfinity) | (im == kInfinity);
    to[i] = static_cast<float>(infinite ? kInfinity : length);
  }
}
constexpr ScalarDefinition makeAbs() {
  ScalarDefinition d = makeScalarDefinition<Abs>();
  d.entries[static_cast<size_t>(DType::ComplexFloat)].loop = magnitudes;
  return d;
}
constexpr ScalarDefinition kAbs = makeAbs();

Tensor abs(const Tensor& self, Out out) {
  WICK_CHECK(self.dtype() != DType::Bool, "\"abs_cpu\" not implemented for 'Bool'");
  if (out && out.tensor->isSame(self)) {
    WICK_CHECK(!isComplex(self.dtype()), "In-place abs is not supported for complex tensors.");
  }
  return pointwise(kAbs, out, self);
}
Tensor sign(const Tensor& self, Out out) {
  WICK_CHECK(!isComplex(self.dtype()),
             "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use "
             "torch.sgn instead.");
  return unary<Sign>(self, out);
}
Tensor sgn(const Tensor& self, Out out) {
  return isComplex(self.dtype()) ? unary<SgnComplex>(self, out) : unary<Sign>(self, out);
}
Tensor square(const Tensor& self, Out out) {
  return powNumber(self, Scalar(2), out);
}
// Booleans become ints with the exponent.
std::vector<TypePtr> squareTypes(const Node& node) {
  const auto* self = node.input(0)->type()->as<TensorType>();
  bool truth = self && self->facts().dtype == DType::Bool;
  return truth ? shapes::likeFirstLong(node) : shapes::likeFirst(node);
}

// Integers are their own rounding.
template <class Def>
Tensor rounding(const Tensor& self, Out out) {
  if (isIntegral(self.dtype(), false)) return unary<Identity>(self, out);
  return unary<Def>(self, out);
}
Tensor roundDecimals(const Tensor& self, int64_t decimals, Out out) {
  if (decimals == 0) return rounding<Round>(self, out);
  Scalar ten(std::pow(10.0, std::fabs(static_cast<double>(decimals))));
  return decimals > 0 ? pointwise(kScalar<RoundUp>, out, self, ten)
                      : pointwise(kScalar<RoundDown>, out, self, ten);
}

Tensor lerp(const Tensor& self, const Tensor& end, const Tensor& weight, Out out) {
  WICK_CHECK(self.dtype() == end.dtype(), "expected dtype {} for `end` but got dtype {}",
             toString(self.dtype()), toString(end.dtype()));
  WICK_CHECK(self.dtype() == weight.dtype(), "expected dtype {} for `weight` but got dtype {}",
             toString(self.dtype()), toString(weight.dtype()));
  return ternary<Lerp>(self, end, weight, out);
}
Tensor lerpNumber(const Tensor& self, const Tensor& end, const Scalar& weight, Out out) {
  WICK_CHECK(self.dtype() == end.dtype(), "expected dtype {} for `end` but got dtype {}",
             toString(self.dtype()), toString(end.dtype()));
  return pointwise(kScalar<LerpNumber>, out, self, end, weight);
}
Tensor addcmul(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value, Out out) {
  return pointwise(kScalar<Addcmul>, out, self, a, b, value);
}
Tensor addcdiv(const Tensor& self, const Tensor& a, const Tensor& b, const Scalar& value, Out out) {
  WICK_CHECK(
      !isIntegral(a.dtype(), true) || !isIntegral(b.dtype(), true),
      "Integer division with addcdiv is no longer supported, convert tensor1 or tensor2 to a "
      "floating point dtype first.");
  return pointwise(kScalar<Addcdiv>, out, self, a, b, value);
}

const OperatorRecord kArithmeticRecords[] = {
    {"aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", WICK_KERNEL(add),
     kBothForms | kCastWidest | kSavesNothing, nullptr, &kScalar<AddAlpha>},
    {"aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(addNumber), kBothForms | kOutAny | kCastWidest | kSavesNothing, nullptr,
     &kScalar<AddAlpha>},
    {"aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", WICK_KERNEL(sub),
     kBothForms | kCastWidest | kSavesNothing, nullptr, &kScalar<SubAlpha>},
    {"aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(subNumber), kBothForms | kOutAny | kCastWidest | kSavesNothing, nullptr,
     &kScalar<SubAlpha>},
    {"aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", WICK_KERNEL(rsub),
     kOutForm | kOutAny | kNeutralLast | kSavesNothing, shapes::promoted},
    {"aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(rsubNumber), kOutForm | kOutAny | kNeutralLast | kSavesNothing, shapes::promoted},
    WICK_BINARY_OP("mul.Tensor(Tensor self, Tensor other) -> Tensor", Mul,
                   kBothForms | kCastWidest),
    WICK_BINARY_NUMBER_OP("mul.Scalar(Tensor self, Scalar other) -> Tensor", Mul,
                          kBothForms | kOutAny | kCastWidest),
    WICK_BINARY_OP("div.Tensor(Tensor self, Tensor other) -> Tensor", TrueDiv,
                   kBothForms | kCastWidest),
    WICK_BINARY_NUMBER_OP("div.Scalar(Tensor self, Scalar other) -> Tensor", TrueDiv,
                          kBothForms | kOutAny | kCastWidest),
    {"aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
     WICK_KERNEL(divMode), kBothForms | kNeutralLast | kRaisesByElements | kCastWidest,
     shapes::divided},
    {"aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
     WICK_KERNEL(divNumberMode),
     kBothForms | kOutAny | kNeutralLast | kRaisesByElements | kCastWidest, shapes::divided},
    WICK_BINARY_OP("true_divide.Tensor(Tensor self, Tensor other) -> Tensor", TrueDiv, kBothForms),
    WICK_BINARY_NUMBER_OP("true_divide.Scalar(Tensor self, Scalar other) -> Tensor", TrueDiv,
                          kInplaceForm),
    {"aten::floor_divide(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(divTensors<FloorDiv>),
     kOutForm | kNeutralLast | kRaisesByElements, shapes::promoted},
    {"aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
     WICK_KERNEL(divNumber<FloorDiv>), kInplaceForm | kNeutralLast | kRaisesByElements,
     shapes::promoted},
    {"aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",
     WICK_KERNEL(floorDivideInPlace), kNeutralLast},
    {"aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor",
     WICK_KERNEL(divTensors<Remainder>), kBothForms | kNeutralLast | kRaisesByElements,
     shapes::promoted},
    {"aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor",
     WICK_KERNEL(divNumber<Remainder>), kBothForms | kNeutralLast | kRaisesByElements,
     shapes::promoted},
    {"aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
     WICK_KERNEL(numberDiv<Remainder>), kOutForm | kNeutralLast | kRaisesByElements,
     shapes::promoted},
    {"aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(divTensors<Fmod>),
     kBothForms | kNeutralLast | kRaisesByElements, shapes::promoted},
    {"aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor", WICK_KERNEL(divNumber<Fmod>),
     kBothForms | kNeutralLast | kRaisesByElements, shapes::promoted},
    {"aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", WICK_KERNEL(binary<Pow>),
     kOutForm | kNeutralLast | kCastFull, shapes::promoted},
    {"aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", WICK_KERNEL(powNumber),
     kOutForm | kNeutralLast | kCastFull, shapes::promoted},
    {"aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", WICK_KERNEL(numberPow),
     kOutForm | kNeutralLast | kCastFull, shapes::promoted},
    {"aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", WICK_KERNEL(powInPlace),
     kNeutralLast},
    {"aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
     WICK_KERNEL(powNumberInPlace), kNeutralLast},
    {"aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
     WICK_KERNEL(floatPower), kOutForm | kOutSame | kNeutralLast},
    {"aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
     WICK_KERNEL(floatPowerNumber), kOutForm | kOutSame | kNeutralLast},
    {"aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor",
     WICK_KERNEL(numberFloatPower), kOutForm | kOutSame | kNeutralLast},
    {"aten::float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
     WICK_KERNEL(floatPowerInPlace), kNeutralLast},
    {"aten::float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
     WICK_KERNEL(floatPowerNumberInPlace), kNeutralLast},
    {"aten::ldexp.Tensor(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(ldexp),
     kOutForm | kNeutralLast},
    {"aten::ldexp_(Tensor(a!) self, Tensor other) -> Tensor(a!)", WICK_KERNEL(ldexpInPlace),
     kNeutralLast},
    WICK_BINARY_OP("gcd(Tensor self, Tensor other) -> Tensor", Gcd, kBothForms),
    WICK_BINARY_OP("lcm(Tensor self, Tensor other) -> Tensor", Lcm, kBothForms),
    {"aten::neg(Tensor self) -> Tensor", WICK_KERNEL(neg), kBothForms | kOutSame | kSavesNothing,
     nullptr, &kScalar<Neg>},
    {"aten::positive(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(positive), kSavesNothing,
     shapes::likeFirst},
    {"aten::abs(Tensor self) -> Tensor", WICK_KERNEL(abs), kBothForms | kOutSame, nullptr,
     &kScalar<Abs>},
    {"aten::sign(Tensor self) -> Tensor", WICK_KERNEL(sign), kBothForms | kOutSame | kSavesNothing,
     nullptr, &kScalar<Sign>},
    {"aten::sgn(Tensor self) -> Tensor", WICK_KERNEL(sgn), kBothForms | kOutSame | kNeutralLast,
     shapes::likeFirst},
    {"aten::square(Tensor self) -> Tensor", WICK_KERNEL(square),
     kBothForms | kOutSame | kNeutralLast, squareTypes},
    WICK_UNARY_OP("reciprocal", Reciprocal, kBothForms | kCastFull),
    {"aten::ceil(Tensor self) -> Tensor", WICK_KERNEL(rounding<Ceil>),
     kBothForms | kOutSame | kNeutralLast | kSavesNothing, nullptr, &kScalar<Ceil>},
    {"aten::floor(Tensor self) -> Tensor", WICK_KERNEL(rounding<Floor>),
     kBothForms | kOutSame | kNeutralLast | kSavesNothing, nullptr, &kScalar<Floor>},
    {"aten::trunc(Tensor self) -> Tensor", WICK_KERNEL(rounding<Trunc>),
     kBothForms | kOutSame | kNeutralLast | kSavesNothing, nullptr, &kScalar<Trunc>},
    {"aten::round(Tensor self) -> Tensor", WICK_KERNEL(rounding<Round>),
     kBothForms | kOutSame | kNeutralLast | kSavesNothing, nullptr, &kScalar<Round>},
    {"aten::round.decimals(Tensor self, *, int decimals) -> Tensor", WICK_KERNEL(roundDecimals),
     kBothForms | kOutSame | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::special_round(Tensor self, *, int decimals=0) -> Tensor", WICK_KERNEL(roundDecimals),
     kOutForm | kNeutral, shapes::likeFirst},
    WICK_UNARY_OP("frac", Frac, kBothForms | kOutSame | kSavesNothing),
    {"aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", WICK_KERNEL(lerp),
     kBothForms | kOutSame, nullptr, &kScalar<Lerp>},
    {"aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", WICK_KERNEL(lerpNumber),
     kBothForms, nullptr, &kScalar<LerpNumber>},
    {"aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     WICK_KERNEL(addcmul), kBothForms | kOutSame | kCastWidest, nullptr, &kScalar<Addcmul>},
    {"aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
     WICK_KERNEL(addcdiv), kBothForms | kOutSame | kCastWidest, nullptr, &kScalar<Addcdiv>},
};

constexpr OperatorAlias kArithmeticAliases[] = {
    {"aten::multiply", "aten::mul"}, {"aten::divide", "aten::div"},
    {"aten::subtract", "aten::sub"}, {"aten::negative", "aten::neg"},
    {"aten::absolute", "aten::abs"}, {"aten::fix", "aten::trunc"},
};

const RegisterOperators kArithmeticRegistered(kArithmeticRecords, kArithmeticAliases);

}  // namespace

}  // namespace wick::ops
