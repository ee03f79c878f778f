// Operators that compare, select and work on bits and booleans.
#include "codegen/scalar/arithmetic.h"
#include "core/number_range.h"
#include "core/parallel.h"
#include "runtime/ops/pointwise/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

using namespace scalar;

// The loop of a choice between two inputs by a mask: the first one where it is set. The compiler
// makes a branch of the plain choice, which costs more than both of its sides where masks are
// irregular.
template <class Word, int kMask, int kFirst, int kSecond>
void choose(void* out, const void* const* inputs, int64_t n) {
  Word* const to = static_cast<Word*>(out);
  const auto* const mask = static_cast<const uint8_t*>(inputs[kMask]);
  const Word* const a = static_cast<const Word*>(inputs[kFirst]);
  const Word* const b = static_cast<const Word*>(inputs[kSecond]);
#pragma GCC ivdep
  for (int64_t i = 0; i < n; ++i) {
    const Word chosen = static_cast<Word>(-static_cast<Word>(mask[i] != 0));
    to[i] = static_cast<Word>(b[i] ^ ((a[i] ^ b[i]) & chosen));
  }
}
template <class Def, int kMask, int kFirst, int kSecond>
constexpr ScalarDefinition withChoices() {
  ScalarDefinition d = makeScalarDefinition<Def>();
  const auto set = [&](size_t number, size_t size) {
    ScalarLoop& loop = d.entries[number].loop;
    if (size == 1) loop = choose<uint8_t, kMask, kFirst, kSecond>;
    if (size == 2) loop = choose<uint16_t, kMask, kFirst, kSecond>;
    if (size == 4) loop = choose<uint32_t, kMask, kFirst, kSecond>;
    if (size == 8) loop = choose<uint64_t, kMask, kFirst, kSecond>;
  };
// Asked of the definition: under UBSan no constant expression compares a loop with null.
#define WICK_DTYPE(type, name, text, number)                                               \
  if constexpr ((dtypeCategory<type>() & Def::kDTypes & ~unsigned{kReducedFloats}) != 0) { \
    set(number, sizeof(type));                                                             \
  }
  WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  return d;
}
constexpr ScalarDefinition kWhere = withChoices<Where, 0, 1, 2>();
constexpr ScalarDefinition kMaskedFill = withChoices<MaskedFill, 1, 2, 0>();

Tensor ternaryOf(const ScalarDefinition& def, const Operand& a, const Operand& b, const Operand& c,
                 Out out) {
  const Operand list[] = {a, b, c};
  return pointwise(def, list, out);
}

Tensor whereOf(const Tensor& condition, const Operand& a, const Operand& b, Out out = {}) {
  WICK_CHECK(condition.dtype() == DType::Bool || condition.dtype() == DType::Byte,
             "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
             scalarTypeName(condition.dtype()));
  const Operand both[] = {a, b};
  for (const Operand& o : both) {
    if (!o.tensor) checkFits(o.number, resultType(both));
  }
  return ternaryOf(kWhere, condition, a, b, out);
}
Tensor where(const Tensor& condition, const Tensor& self, const Tensor& other, Out out) {
  return whereOf(condition, self, other, out);
}
Tensor whereNumberSelf(const Tensor& condition, const Scalar& self, const Tensor& other) {
  return whereOf(condition, self, other);
}
Tensor whereNumberOther(const Tensor& condition, const Tensor& self, const Scalar& other) {
  return whereOf(condition, self, other);
}
Tensor whereNumbers(const Tensor& condition, const Scalar& self, const Scalar& other) {
  return whereOf(condition, self, other);
}

Tensor maskedFillOf(const Tensor& self, const Tensor& mask, const Operand& value, Out out) {
  const Operand operands[] = {self, mask, value};
  // A result of its own is row-major, whatever order the operands lie in.
  if (!out) return pointwise(kMaskedFill, operands).contiguous();
  if (!out.tensor->isSame(self)) return pointwise(kMaskedFill, operands, out);
  // An element that stands for several is filled when the mask has any of them.
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.strides()[d] != 0 || self.size(d) <= 1) continue;
    Tensor once = self.narrow(d, 0, 1);
    const Tensor all = mask.expand(self.sizes());
    // A mask that stands for several elements too is looked at once.
    const int64_t count = all.strides()[d] == 0 ? 1 : self.size(d);
    for (int64_t i = 0; i < count; ++i) {
      maskedFillOf(once, all.narrow(d, i, 1), value, Out{&once});
    }
    return self;
  }
  return pointwise(kMaskedFill, operands, &self);
}
Tensor maskedFill(const Tensor& self, const Tensor& mask, const Scalar& value, Out out) {
  return maskedFillOf(self, mask, value, out);
}
Tensor maskedFillTensor(const Tensor& self, const Tensor& mask, const Tensor& value, Out out) {
  WICK_CHECK(value.dim() == 0,
             "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  // The number goes into the tensor's dtype, where it has to fit.
  if (value.device().isCpu()) checkFits(Scalar::fromIValue(IValue(value)), self.dtype());
  // The number is read before anything is written.
  return maskedFillOf(self, mask, out && out.tensor->sharesStorage(value) ? value.clone() : value,
                      out);
}

// The bounds take part in type promotion, but a dtype that the result has must hold them.
void checkClamped(const Tensor& self, const std::optional<Scalar>& min,
                  const std::optional<Scalar>& max) {
  WICK_CHECK(self.dtype() != DType::Bool || (min && !min->isBool()) || (max && !max->isBool()),
             "\"clamp_scalar_cpu\" not implemented for 'Bool'");
  WICK_CHECK(min || max, "torch.clamp: At least one of 'min' or 'max' must not be None");
  DTypePromotion type;
  addTo(type, self);
  if (min) addTo(type, *min);
  if (max) addTo(type, *max);
  DType common = type.get();
  if (min) checkFits(*min, common);
  if (max) checkFits(*max, common);
}
// Row-major floats between two numbers. The general loop reads the bounds from memory.
Tensor clampRows(const Tensor& self, const Scalar& min, const Scalar& max) {
  Tensor result = Tensor::empty(self.sizes(), self.dtype());
  dispatch<kFloats>("clamp", self.dtype(), [&]<class T>() {
    const T low = min.to<T>(), high = max.to<T>();
    const T* const from = self.data<T>();
    T* const to = result.data<T>();
    parallelFor(self.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const T raised = from[i] < low ? low : from[i];  // what is not a number stays
        to[i] = raised > high ? high : raised;
      }
    });
  });
  return result;
}
bool clampsRows(const Tensor& self, const Scalar& min, const Scalar& max) {
  auto is_bound = [](const Scalar& n) { return !n.isComplex() && !std::isnan(n.toDouble()); };
  return (self.dtype() == DType::Float || self.dtype() == DType::Double) && self.device().isCpu() &&
         self.isContiguous() && is_bound(min) && is_bound(max);
}
Tensor clamp(const Tensor& self, const std::optional<Scalar>& min, const std::optional<Scalar>& max,
             Out out) {
  checkClamped(self, min, max);
  if (min && max && !out && clampsRows(self, *min, *max)) return clampRows(self, *min, *max);
  // A single bound that is NaN bounds nothing.
  auto unbounded = [](const Scalar& bound) {
    return !bound.isComplex() && std::isnan(bound.toDouble());
  };
  if (!max) {
    return pointwise(kScalar<ClampMin>, out, self, unbounded(*min) ? Scalar(-HUGE_VAL) : *min);
  }
  if (!min) {
    return pointwise(kScalar<ClampMax>, out, self, unbounded(*max) ? Scalar(HUGE_VAL) : *max);
  }
  // A bound that is NaN makes every element NaN.
  if (std::isnan(max->toDouble()) && !max->isComplex()) {
    return pointwise(kScalar<Clamp>, out, self, *max, *max);
  }
  return pointwise(kScalar<Clamp>, out, self, *min, *max);
}
Tensor clampTensor(const Tensor& self, const Tensor& min, const Tensor& max, Out out) {
  WICK_CHECK(min.defined() || max.defined(),
             "torch.clamp: At least one of 'min' or 'max' must not be None");
  if (!max.defined()) return binary<ClampMin>(self, min, out);
  if (!min.defined()) return binary<ClampMax>(self, max, out);
  return ternary<Clamp>(self, min, max, out);
}
// Here a bound that is NaN makes every element NaN.
Tensor clampMin(const Tensor& self, const Scalar& min, Out out) {
  checkClamped(self, min, std::nullopt);
  return pointwise(kScalar<ClampMin>, out, self, min);
}
Tensor clampMax(const Tensor& self, const Scalar& max, Out out) {
  checkClamped(self, std::nullopt, max);
  return pointwise(kScalar<ClampMax>, out, self, max);
}

template <class Def>
Tensor extremum(const Tensor& self, const Tensor& other, Out out) {
  WICK_CHECK(!isComplex(self.dtype()) && !isComplex(other.dtype()),
             "{} not implemented for complex tensors.", kScalar<Def>.name);
  return binary<Def>(self, other, out);
}

// The forms written with two underscores write into self whatever their name.
template <class Def>
Tensor binaryInPlace(const Tensor& self, const Tensor& other) {
  return pointwise(kScalar<Def>, &self, self, other);
}
template <class Def>
Tensor binaryNumberInPlace(const Tensor& self, const Scalar& other) {
  return pointwise(kScalar<Def>, &self, self, other);
}

Tensor heaviside(const Tensor& self, const Tensor& values, Out out) {
  WICK_CHECK(!isComplex(self.dtype()) && !isComplex(values.dtype()) &&
                 (!out || !isComplex(out.tensor->dtype())),
             "heaviside is not yet implemented for complex tensors.");
  WICK_CHECK(self.dtype() == values.dtype() && (!out || out.tensor->dtype() == self.dtype()),
             "heaviside is not yet implemented for tensors with different dtypes.");
  return binary<Heaviside>(self, values, out);
}

template <class Def>
Tensor realPredicate(const Tensor& self, Out out) {
  WICK_CHECK(!isComplex(self.dtype()), "{} does not support complex inputs.", kScalar<Def>.name);
  return unary<Def>(self, out);
}

Tensor nanToNum(const Tensor& self, std::optional<double> nan, std::optional<double> posinf,
                std::optional<double> neginf, Out out) {
  if (isIntegral(self.dtype(), true)) return unary<Identity>(self, out);
  double largest = 0;
  dispatch<kAnyFloat>("nan_to_num", self.dtype(), [&]<class T>() {
    if constexpr (std::is_same_v<T, Half>) {
      largest = 65504;
    } else if constexpr (std::is_same_v<T, BFloat16>) {
      largest = 0x1.fep127;
    } else {
      largest = std::numeric_limits<T>::max();
    }
  });
  return pointwise(kScalar<NanToNum>, out, self, Scalar(nan.value_or(0)),
                   Scalar(posinf.value_or(largest)), Scalar(neginf.value_or(-largest)));
}

constexpr uint64_t kPredicate = kNotDifferentiable;

#define WICK_COMPARE_OPS(name, Def)                                                   \
  WICK_BINARY_OP(name ".Tensor(Tensor self, Tensor other) -> Tensor", Def,            \
                 kBothForms | kPredicate),                                            \
      WICK_BINARY_NUMBER_OP(name ".Scalar(Tensor self, Scalar other) -> Tensor", Def, \
                            kBothForms | kPredicate)
#define WICK_BIT_OPS(name, operator_name, inplace_name, Def)                                       \
  WICK_BINARY_OP("bitwise_" name ".Tensor(Tensor self, Tensor other) -> Tensor", Def,              \
                 kBothForms | kPredicate),                                                         \
      WICK_BINARY_NUMBER_OP("bitwise_" name ".Scalar(Tensor self, Scalar other) -> Tensor", Def,   \
                            kBothForms | kPredicate),                                              \
      WICK_NUMBER_BINARY_OP("bitwise_" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", \
                            Def, kOutForm | kPredicate),                                           \
      WICK_OPERATOR_OPS(operator_name, inplace_name, Def)
#define WICK_OPERATOR_OPS(operator_name, inplace_name, Def)                                      \
  WICK_BINARY_OP(operator_name ".Tensor(Tensor self, Tensor other) -> Tensor", Def, kPredicate), \
      WICK_BINARY_NUMBER_OP(operator_name ".Scalar(Tensor self, Scalar other) -> Tensor", Def,   \
                            kPredicate),                                                         \
      {"aten::" inplace_name ".Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)",             \
       WICK_KERNEL(binaryInPlace<Def>), kPredicate},                                             \
  {                                                                                              \
    "aten::" inplace_name ".Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)",                \
        WICK_KERNEL(binaryNumberInPlace<Def>), kPredicate                                        \
  }
#define WICK_SHIFT_OPS(name, operator_name, inplace_name, Def)                                     \
  WICK_BINARY_OP("bitwise_" name ".Tensor(Tensor self, Tensor other) -> Tensor", Def,              \
                 kBothForms | kPredicate),                                                         \
      WICK_BINARY_NUMBER_OP("bitwise_" name ".Tensor_Scalar(Tensor self, Scalar other) -> Tensor", \
                            Def, kBothForms | kPredicate),                                         \
      WICK_NUMBER_BINARY_OP("bitwise_" name ".Scalar_Tensor(Scalar self, Tensor other) -> Tensor", \
                            Def, kOutForm | kPredicate),                                           \
      WICK_OPERATOR_OPS(operator_name, inplace_name, Def)
#define WICK_EXTREMUM_OP(schema, Def, flags) \
  { "aten::" schema, WICK_KERNEL(extremum<Def>), (flags), nullptr, &kScalar<Def> }

const OperatorRecord kLogicRecords[] = {
    WICK_COMPARE_OPS("eq", Eq),
    WICK_COMPARE_OPS("ne", Ne),
    WICK_COMPARE_OPS("lt", Lt),
    WICK_COMPARE_OPS("le", Le),
    WICK_COMPARE_OPS("gt", Gt),
    WICK_COMPARE_OPS("ge", Ge),
    WICK_BINARY_OP("logical_and(Tensor self, Tensor other) -> Tensor", LogicalAnd,
                   kBothForms | kPredicate),
    WICK_BINARY_OP("logical_or(Tensor self, Tensor other) -> Tensor", LogicalOr,
                   kBothForms | kPredicate),
    WICK_BINARY_OP("logical_xor(Tensor self, Tensor other) -> Tensor", LogicalXor,
                   kBothForms | kPredicate),
    WICK_UNARY_OP("logical_not", LogicalNot, kBothForms | kPredicate),
    WICK_BIT_OPS("and", "__and__", "__iand__", BitAnd),
    WICK_BIT_OPS("or", "__or__", "__ior__", BitOr),
    WICK_BIT_OPS("xor", "__xor__", "__ixor__", BitXor),
    WICK_UNARY_OP("bitwise_not", BitNot, kBothForms | kPredicate | kOutSame),
    WICK_SHIFT_OPS("left_shift", "__lshift__", "__ilshift__", ShiftLeft),
    WICK_SHIFT_OPS("right_shift", "__rshift__", "__irshift__", ShiftRight),

    WICK_EXTREMUM_OP("maximum(Tensor self, Tensor other) -> Tensor", Maximum, kOutForm),
    WICK_EXTREMUM_OP("minimum(Tensor self, Tensor other) -> Tensor", Minimum, kOutForm),
    WICK_EXTREMUM_OP("max.other(Tensor self, Tensor other) -> Tensor", Maximum, kNoFlags),
    WICK_EXTREMUM_OP("min.other(Tensor self, Tensor other) -> Tensor", Minimum, kNoFlags),
    WICK_EXTREMUM_OP("fmax(Tensor self, Tensor other) -> Tensor", Fmax, kOutForm),
    WICK_EXTREMUM_OP("fmin(Tensor self, Tensor other) -> Tensor", Fmin, kOutForm),
    {"aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", WICK_KERNEL(clamp),
     kBothForms | kOutSame | kNeutralLast, shapes::promoted},
    {"aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
     WICK_KERNEL(clampTensor), kBothForms | kNeutralLast, shapes::promoted},
    {"aten::clamp_min(Tensor self, Scalar min) -> Tensor", WICK_KERNEL(clampMin),
     kBothForms | kOutSame | kNeutralLast, nullptr, &kScalar<ClampMin>},
    WICK_BINARY_OP("clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", ClampMin, kBothForms),
    {"aten::clamp_max(Tensor self, Scalar max) -> Tensor", WICK_KERNEL(clampMax),
     kBothForms | kOutSame | kNeutralLast, nullptr, &kScalar<ClampMax>},
    WICK_BINARY_OP("clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", ClampMax, kBothForms),

    {"aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", WICK_KERNEL(where),
     kOutForm | kOutSame, nullptr, &kScalar<Where>},
    {"aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
     WICK_KERNEL(whereNumberSelf), kNoFlags, nullptr, &kScalar<Where>},
    {"aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
     WICK_KERNEL(whereNumberOther), kNoFlags, nullptr, &kScalar<Where>},
    {"aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
     WICK_KERNEL(whereNumbers), kNoFlags, nullptr, &kScalar<Where>},
    {"aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
     WICK_KERNEL(maskedFill), kBothForms | kOutAny, nullptr, &kScalar<MaskedFill>},
    {"aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
     WICK_KERNEL(maskedFillTensor), kBothForms | kOutAny, nullptr, &kScalar<MaskedFill>},

    WICK_UNARY_OP("isnan", IsNan, kOutForm | kPredicate),
    WICK_UNARY_OP("isinf", IsInf, kOutForm | kPredicate),
    WICK_UNARY_OP("isfinite", IsFinite, kPredicate),
    WICK_UNARY_OP("isreal", IsReal, kPredicate),
    {"aten::isposinf(Tensor self) -> Tensor", WICK_KERNEL(realPredicate<IsPosInf>),
     kOutForm | kPredicate | kOutSame, nullptr, &kScalar<IsPosInf>},
    {"aten::isneginf(Tensor self) -> Tensor", WICK_KERNEL(realPredicate<IsNegInf>),
     kOutForm | kPredicate | kOutSame, nullptr, &kScalar<IsNegInf>},
    {"aten::signbit(Tensor self) -> Tensor", WICK_KERNEL(realPredicate<SignBit>),
     kOutForm | kPredicate, nullptr, &kScalar<SignBit>},
    {"aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> "
     "Tensor",
     WICK_KERNEL(nanToNum), kBothForms | kOutSame | kNeutralLast, shapes::likeFirst},
    {"aten::heaviside(Tensor self, Tensor values) -> Tensor", WICK_KERNEL(heaviside),
     kBothForms | kOutSame, nullptr, &kScalar<Heaviside>},
};

constexpr OperatorAlias kLogicAliases[] = {
    {"aten::clip", "aten::clamp"},       {"aten::greater", "aten::gt"},
    {"aten::greater_equal", "aten::ge"}, {"aten::less", "aten::lt"},
    {"aten::less_equal", "aten::le"},    {"aten::not_equal", "aten::ne"},
};

const RegisterOperators kLogicRegistered(kLogicRecords, kLogicAliases);

}  // namespace

}  // namespace wick::ops
