// Operators that are mathematical functions of one or two tensors.
#include "codegen/scalar/arithmetic.h"
#include "codegen/scalar/mathematics.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "ir/device_kernels.h"
#include "runtime/ops/pointwise/common.h"
#include "runtime/ops/pointwise/complex_logarithms.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// Elements a thread takes at a time.
constexpr int64_t kGrain = 4096;

using namespace scalar;

Tensor logit(const Tensor& self, std::optional<double> eps, Out out) {
  if (!eps || *eps < 0) return unary<Logit>(self, out);
  return pointwise(kScalar<LogitEps>, out, self, Scalar(*eps), Scalar(1 - *eps));
}

// The neighbour of x in the direction of y among the numbers of a dtype of 16 bits.
template <class T>
T neighbour(T x, T y) {
  const float from = x, to = y;
  if (from != from || to != to) return T(std::numeric_limits<float>::quiet_NaN());
  if (from == to) return y;
  T out;
  if (from == 0) {
    out.bits = static_cast<uint16_t>((to < 0 ? 0x8000 : 0) | 1);
  } else {
    const bool outward = (from < to) == (from > 0);
    out.bits = static_cast<uint16_t>(outward ? x.bits + 1 : x.bits - 1);
  }
  return out;
}

Tensor nextafter(const Tensor& self, const Tensor& other, Out out) {
  const Operand both[] = {self, other};
  const DType dtype = resultType(both);
  if (!isReducedFloat(dtype)) return binary<Nextafter>(self, other, out);
  if (!self.device().isCpu() || !other.device().isCpu()) throw NotOnDevice();
  DimVector shape = broadcastShapes(self.sizes(), other.sizes());
  Tensor x = self.to(dtype).expand(shape).contiguous();
  Tensor y = other.to(dtype).expand(shape).contiguous();
  Tensor result = Tensor::empty(shape, dtype);
  dispatch<kReducedFloats>("nextafter", dtype, [&]<class T>() -> void {
    for (int64_t i = 0; i < result.numel(); ++i) {
      result.data<T>()[i] = neighbour(x.data<T>()[i], y.data<T>()[i]);
    }
  });
  return result;
}

// Functions whose scalar definitions are of real numbers, for complex ones: F(z).
template <class F, class... Tensors>
Tensor ofComplex(const char* op, DType dtype, F f, const Tensors&... tensors) {
  DimVector shape;
  ((shape = broadcastShapes(shape, tensors.sizes())), ...);
  if (!(tensors.device().isCpu() && ...)) throw NotOnDevice();
  Tensor result = Tensor::empty(shape, dtype);
  dispatch<kComplexes>(op, dtype, [&]<class T>() -> void {
    // The operands are kept until the loop is over.
    const std::array<Tensor, sizeof...(Tensors)> from{
        tensors.to(dtype).expand(shape).contiguous()...};
    parallelFor(result.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        if constexpr (sizeof...(Tensors) == 1) {
          result.data<T>()[i] = f(from[0].template data<T>()[i]);
        } else {
          result.data<T>()[i] = f(from[0].template data<T>()[i], from[1].template data<T>()[i]);
        }
      }
    });
  });
  return result;
}

struct ComplexExp2 {
  template <class C>
  C operator()(C z) const {
    return std::exp(z * std::numbers::ln2_v<typename C::value_type>);
  }
};
struct ComplexExpm1 {
  template <class C>
  C operator()(C z) const {
    using T = typename C::value_type;
    const T half = std::sin(z.imag() / 2);
    const T real = std::expm1(z.real()) * std::cos(z.imag()) - 2 * half * half;
    return {real, std::exp(z.real()) * std::sin(z.imag())};
  }
};

template <class Def, class Complex>
Tensor unaryOrComplex(const Tensor& self, Out out) {
  if (!isComplex(self.dtype())) return unary<Def>(self, out);
  return ofComplex(kScalar<Def>.name, self.dtype(), Complex(), self);
}
template <class Def, class Complex>
Tensor binaryOrComplex(const Tensor& self, const Tensor& other, Out out) {
  const Operand both[] = {self, other};
  const DType dtype = resultType(both);
  if (!isComplex(dtype)) return binary<Def>(self, other, out);
  return ofComplex(kScalar<Def>.name, dtype, Complex(), self, other);
}

template <class Def>
Tensor angleUnit(const Tensor& self, Out out) {
  WICK_CHECK(!isComplex(self.dtype()), "{} is not supported for complex tensors.",
             kScalar<Def>.name);
  return unary<Def>(self, out);
}

Tensor polygamma(int64_t n, const Tensor& self, Out out) {
  WICK_CHECK(n >= 0, "polygamma(n, x) does not support negative n.");
  if (n == 0) return unary<Digamma>(self, out);
  return pointwise(kScalar<Polygamma>, out, Scalar(n), self);
}
Tensor polygammaInPlace(const Tensor& self, int64_t n) {
  return polygamma(n, self, Out{&self});
}

// log of the multivariate gamma function: a sum of p ordinary ones.
Tensor mvlgamma(const Tensor& self, int64_t p) {
  WICK_CHECK(p >= 1, "p has to be greater than or equal to 1");
  WICK_CHECK(p <= 100000, "mvlgamma: p is too large, got {}", p);
  WICK_CHECK(!isComplex(self.dtype()) && self.dtype() != DType::Bool,
             "\"mvlgamma\" not implemented for '{}'", scalarTypeName(self.dtype()));
  const Tensor* none = nullptr;
  Tensor x = isIntegral(self.dtype(), true) ? self.to(defaultDType()) : self;
  double order = static_cast<double>(p);
  Tensor sum = pointwise(kScalar<Lgamma>, none, x);
  for (int64_t j = 1; j < p; ++j) {
    Tensor shifted = pointwise(kScalar<Add>, none, x, Scalar(-static_cast<double>(j) / 2));
    pointwise(kScalar<Add>, &sum, sum, pointwise(kScalar<Lgamma>, none, shifted));
  }
  return pointwise(kScalar<Add>, &sum, sum,
                   Scalar(order * (order - 1) / 4 * std::log(std::numbers::pi)));
}

std::tuple<Tensor, Tensor> frexp(const Tensor& self) {
  WICK_CHECK(isFloating(self.dtype()), "torch.frexp() only supports floating-point dtypes");
  Tensor input = self.contiguous();
  Tensor mantissa = Tensor::empty(self.sizes(), self.dtype());
  Tensor exponent = Tensor::empty(self.sizes(), DType::Int);
  dispatch<kAnyFloat>("frexp", self.dtype(), [&]<class T>() {
    using C = std::conditional_t<std::is_same_v<T, double>, double, float>;
    for (int64_t i = 0; i < input.numel(); ++i) {
      int power = 0;
      mantissa.data<T>()[i] =
          static_cast<T>(std::frexp(static_cast<C>(input.data<T>()[i]), &power));
      exponent.data<int32_t>()[i] = power;
    }
  });
  return {mantissa, exponent};
}

// A function that complex numbers have too, though their definition is another.
#define WICK_REAL_OP(name, Def, Complex, flags)                                           \
  {                                                                                       \
    "aten::" name "(Tensor self) -> Tensor", WICK_KERNEL((unaryOrComplex<Def, Complex>)), \
        kBothForms | flags, nullptr, &kScalar<Def>                                        \
  }

const OperatorRecord kMathRecords[] = {
    WICK_UNARY_OP("exp", Exp, kBothForms | kCastFull),
    WICK_REAL_OP("exp2", Exp2, ComplexExp2, kNoFlags),
    WICK_REAL_OP("expm1", Expm1, ComplexExpm1, kCastFull),
    WICK_UNARY_OP("log", Log, kBothForms | kCastFull),
    WICK_UNARY_OP("log2", Log2, kBothForms | kCastFull),
    WICK_UNARY_OP("log10", Log10, kBothForms | kCastFull),
    WICK_REAL_OP("log1p", Log1p, ComplexLog1p, kCastFull),
    WICK_UNARY_OP("sin", Sin, kBothForms),
    WICK_UNARY_OP("cos", Cos, kBothForms),
    WICK_UNARY_OP("tan", Tan, kBothForms | kCastFull),
    WICK_UNARY_OP("asin", Asin, kBothForms | kCastFull),
    WICK_UNARY_OP("acos", Acos, kBothForms | kCastFull),
    WICK_UNARY_OP("atan", Atan, kBothForms),
    WICK_UNARY_OP("sinh", Sinh, kBothForms | kCastFull),
    WICK_UNARY_OP("cosh", Cosh, kBothForms | kCastFull),
    WICK_UNARY_OP("tanh", Tanh, kBothForms),
    WICK_UNARY_OP("asinh", Asinh, kBothForms),
    WICK_UNARY_OP("acosh", Acosh, kBothForms),
    WICK_UNARY_OP("atanh", Atanh, kBothForms),
    WICK_UNARY_OP("sqrt", Sqrt, kBothForms),
    WICK_UNARY_OP("rsqrt", Rsqrt, kBothForms | kCastFull),
    WICK_UNARY_OP("erf", Erf, kBothForms),
    WICK_UNARY_OP("erfc", Erfc, kBothForms),
    WICK_UNARY_OP("erfinv", Erfinv, kBothForms | kCastFull),
    WICK_UNARY_OP("lgamma", Lgamma, kBothForms),
    WICK_UNARY_OP("digamma", Digamma, kBothForms),
    WICK_UNARY_OP("i0", I0, kBothForms),
    WICK_UNARY_OP("sinc", Sinc, kBothForms),
    {"aten::deg2rad(Tensor self) -> Tensor", WICK_KERNEL(angleUnit<DegToRad>),
     kBothForms | kNeutralLast, nullptr, &kScalar<DegToRad>},
    {"aten::rad2deg(Tensor self) -> Tensor", WICK_KERNEL(angleUnit<RadToDeg>),
     kBothForms | kNeutralLast, nullptr, &kScalar<RadToDeg>},
    {"aten::logit(Tensor self, float? eps=None) -> Tensor", WICK_KERNEL(logit),
     kBothForms | kNeutral, shapes::likeFirstFloating},
    {"aten::special_logit(Tensor self, float? eps=None) -> Tensor", WICK_KERNEL(logit),
     kOutForm | kNeutral, shapes::likeFirstFloating},
    {"aten::polygamma(int n, Tensor self) -> Tensor", WICK_KERNEL(polygamma), kOutForm | kNeutral,
     shapes::likeFirstFloating},
    {"aten::polygamma_(Tensor(a!) self, int n) -> Tensor(a!)", WICK_KERNEL(polygammaInPlace),
     kNeutral},
    {"aten::special_polygamma(int n, Tensor self) -> Tensor", WICK_KERNEL(polygamma),
     kOutForm | kNeutral, shapes::likeFirstFloating},
    {"aten::mvlgamma(Tensor self, int p) -> Tensor", WICK_KERNEL(mvlgamma), kBothForms | kNeutral,
     shapes::likeFirstFloating},
    {"aten::special_multigammaln(Tensor self, int p) -> Tensor", WICK_KERNEL(mvlgamma),
     kOutForm | kNeutral, shapes::likeFirstFloating},
    {"aten::frexp.Tensor(Tensor self) -> (Tensor mantissa, Tensor exponent)", WICK_KERNEL(frexp)},

    WICK_BINARY_OP("atan2(Tensor self, Tensor other) -> Tensor", Atan2, kBothForms | kCastWidest),
    WICK_BINARY_OP("hypot(Tensor self, Tensor other) -> Tensor", Hypot, kBothForms),
    {"aten::nextafter(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(nextafter), kBothForms,
     nullptr, &kScalar<Nextafter>},
    WICK_BINARY_OP("copysign.Tensor(Tensor self, Tensor other) -> Tensor", Copysign, kBothForms),
    WICK_BINARY_NUMBER_OP("copysign.Scalar(Tensor self, Scalar other) -> Tensor", Copysign,
                          kBothForms),
    {"aten::logaddexp(Tensor self, Tensor other) -> Tensor",
     WICK_KERNEL((binaryOrComplex<Logaddexp, ComplexLogAddExp>)), kOutForm, nullptr,
     &kScalar<Logaddexp>},
    WICK_BINARY_OP("logaddexp2(Tensor self, Tensor other) -> Tensor", Logaddexp2, kOutForm),
    WICK_BINARY_OP("xlogy.Tensor(Tensor self, Tensor other) -> Tensor", Xlogy, kBothForms),
    WICK_BINARY_NUMBER_OP("xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", Xlogy,
                          kBothForms),
    WICK_NUMBER_BINARY_OP("xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", Xlogy,
                          kOutForm),
    WICK_BINARY_OP("igamma(Tensor self, Tensor other) -> Tensor", Igamma, kBothForms),
    WICK_BINARY_OP("igammac(Tensor self, Tensor other) -> Tensor", Igammac, kBothForms),
};

constexpr OperatorAlias kMathAliases[] = {
    {"aten::arcsin", "aten::asin"},
    {"aten::arccos", "aten::acos"},
    {"aten::arctan", "aten::atan"},
    {"aten::arcsinh", "aten::asinh"},
    {"aten::arccosh", "aten::acosh"},
    {"aten::arctanh", "aten::atanh"},
    {"aten::arctan2", "aten::atan2"},
    {"aten::special_exp2", "aten::exp2"},
    {"aten::special_expm1", "aten::expm1"},
    {"aten::special_log1p", "aten::log1p"},
    {"aten::special_erf", "aten::erf"},
    {"aten::special_erfc", "aten::erfc"},
    {"aten::special_erfinv", "aten::erfinv"},
    {"aten::special_gammaln", "aten::lgamma"},
    {"aten::special_digamma", "aten::digamma"},
    {"aten::special_psi", "aten::digamma"},
    {"aten::special_i0", "aten::i0"},
    {"aten::special_sinc", "aten::sinc"},
    {"aten::special_gammainc", "aten::igamma"},
    {"aten::special_gammaincc", "aten::igammac"},
};

const RegisterOperators kMathRegistered(kMathRecords, kMathAliases);

}  // namespace

}  // namespace wick::ops
