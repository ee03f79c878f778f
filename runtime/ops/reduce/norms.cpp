// Vector norms and what is made of them.
#include "runtime/ops/reduce/norms.h"

#include <cmath>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "runtime/kernels/reduce.h"
#include "runtime/kernels/reduce_rows.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

namespace {

// Sum of squares and its root.
template <class T, class Out>
struct EuclideanNormOp {
  using Acc = double;
  double init() const { return 0; }
  void step(double& a, T v) const {
    const double x = magnitude(v);
    a += x * x;
  }
  int64_t row(double& a, const T* p, int64_t n) const requires std::is_same_v<T, float> {
    return reduce::squareSumRow(p, n, a);
  }
  void merge(double& a, double b) const { a += b; }
  Out finish(double a) const { return convert<Out>(std::sqrt(a)); }
};

// Sum of |v|^p and its p-th root; p = 0 counts what is not zero.
template <class T, class Out>
struct PowerNormOp {
  double p;
  using Acc = double;
  double init() const { return 0; }
  void step(double& a, T v) const {
    if (p == 2 && !kIsComplex<T>) {
      double x = magnitude(v);
      a += x * x;
    } else if (p == 1) {
      a += magnitude(v);
    } else if (p == 0) {
      a += v != T(0) ? 1 : 0;
    } else {
      a += std::pow(magnitude(v), p);
    }
  }
  void merge(double& a, double b) const { a += b; }
  Out finish(double a) const {
    return convert<Out>(p == 2 ? std::sqrt(a) : p == 1 || p == 0 ? a : std::pow(a, 1 / p));
  }
};

template <class T, class Out, bool kMax>
struct InfinityNormOp {
  using Acc = double;
  double init() const { return kMax ? 0 : HUGE_VAL; }
  void step(double& a, T v) const { merge(a, magnitude(v)); }
  void merge(double& a, double b) const {
    if (a != a) return;
    if (b != b || (kMax ? b > a : b < a)) a = b;
  }
  Out finish(double a) const { return convert<Out>(a); }
};

template <class T>
struct RealOf {
  using type = T;
};
template <class T>
struct RealOf<std::complex<T>> {
  using type = T;
};

}  // namespace

namespace {

// By other operators, for tensors of any device.
Tensor normByOperators(const Tensor& x_in, double p, IntSpan dims, bool keepdim) {
  const Tensor x = isComplex(x_in.dtype()) || p != 2 ? ops::abs(x_in) : x_in;
  const DType real = x.dtype();
  const DimVector all(dims);
  if (std::isinf(p) && p > 0 && x.numel() == 0) return ops::sumDims(x, all, keepdim);
  if (std::isinf(p)) return (p > 0 ? ops::amax : ops::amin)(x, all, keepdim);
  if (p == 0) return ops::sumDims(ops::neScalar(x, 0).to(real), all, keepdim);
  if (p == 1) return ops::sumDims(x, all, keepdim);
  if (p == 2) return ops::sqrt(ops::sumDims(ops::mul(x, x), all, keepdim));
  return ops::powScalar(ops::sumDims(ops::powScalar(x, Scalar(p)), all, keepdim), Scalar(1 / p));
}

}  // namespace

Tensor vectorNorm(const char* op, const Tensor& self, double p, IntSpan dims, bool keepdim,
                  std::optional<DType> dtype) {
  WICK_CHECK(isFloating(self.dtype()) || isComplex(self.dtype()),
             "{}: Expected a floating point or complex tensor as input. Got {}", op,
             scalarTypeName(self.dtype()));
  if (dtype) {
    WICK_CHECK(
        (isFloating(*dtype) || isComplex(*dtype)) && isComplex(*dtype) == isComplex(self.dtype()),
        "{}: dtype should be floating point or complex as the input is, but got {}", op,
        scalarTypeName(*dtype));
  }
  Tensor x = dtype ? self.to(*dtype) : self;
  std::vector<bool> mask = reduce::dimMask(op, x, dims);
  if (p < 0 || std::isinf(p)) {
    for (int64_t d = 0; d < x.dim(); ++d) {
      WICK_CHECK(!mask[static_cast<size_t>(d)] || x.size(d) != 0 || (p > 0 && !std::isinf(p)),
                 "{}: cannot compute the {} norm on the dimension {} because this dimension is "
                 "empty and the operation does not have an identity",
                 op, p, d);
    }
  }
  if (!x.device().isCpu()) return normByOperators(x, p, dims, keepdim);
  return dispatch<kFloatOrComplex>(op, x.dtype(), [&]<class T>() {
    using Out = typename RealOf<T>::type;
    if (std::isinf(p)) {
      return p > 0 ? reduce::apply<T, Out>(InfinityNormOp<T, Out, true>(), x, mask, keepdim)
                   : reduce::apply<T, Out>(InfinityNormOp<T, Out, false>(), x, mask, keepdim);
    }
    if (p == 2 && !kIsComplex<T>) {
      return reduce::apply<T, Out>(EuclideanNormOp<T, Out>(), x, mask, keepdim);
    }
    return reduce::apply<T, Out>(PowerNormOp<T, Out>{p}, x, mask, keepdim);
  });
}

namespace {

using OptScalar = std::optional<Scalar>;
using OptDType = std::optional<DType>;

double orderOf(const OptScalar& p) {
  return p ? p->toDouble() : 2;
}

Tensor normScalar(const Tensor& self, const Scalar& p) {
  WICK_CHECK(!p.isComplex(), "norm expects the order to be an int or a float");
  return vectorNorm("norm", self, p.toDouble(), {}, false, std::nullopt);
}
Tensor normDim(const Tensor& self, const OptScalar& p, const DimVector& dim, bool keepdim) {
  return vectorNorm("norm", self, orderOf(p), dim, keepdim, std::nullopt);
}
Tensor normDimDtype(const Tensor& self, const OptScalar& p, const DimVector& dim, bool keepdim,
                    OptDType dtype) {
  const DType result = dtype.value_or(self.dtype());
  return vectorNorm("norm", self.to(result), orderOf(p), dim, keepdim, std::nullopt).to(result);
}
Tensor normDtype(const Tensor& self, const OptScalar& p, DType dtype) {
  return normDimDtype(self, p, {}, false, dtype);
}
Tensor linalgVectorNorm(const Tensor& self, const Scalar& ord, const std::optional<DimVector>& dim,
                        bool keepdim, OptDType dtype) {
  return vectorNorm("linalg.vector_norm", self, ord.toDouble(), dim ? IntSpan(*dim) : IntSpan(),
                    keepdim, dtype);
}
Tensor frobeniusNorm(const Tensor& self) {
  return vectorNorm("frobenius_norm", self, 2, {}, false, std::nullopt);
}
Tensor frobeniusNormDim(const Tensor& self, const DimVector& dim, bool keepdim) {
  WICK_CHECK(dim.size() <= 2, "Expected at most 2 dimensions, but got {} dimensions instead.",
             dim.size());
  return vectorNorm("frobenius_norm", self, 2, dim, keepdim, std::nullopt);
}

Tensor dist(const Tensor& self, const Tensor& other, const Scalar& p) {
  Tensor difference = ops::sub(self, other);
  return vectorNorm("dist", difference, p.toDouble(), {}, false, std::nullopt);
}

// Every slice along `dim` whose norm exceeds maxnorm is scaled down to it.
Tensor renorm(const Tensor& self, const Scalar& p, int64_t dim, const Scalar& maxnorm) {
  WICK_CHECK(self.dim() > 1, "renorm: input needs at least 2 dimensions, got {} dimensions",
             self.dim());
  WICK_CHECK(p.toDouble() > 0, "renorm: non-positive norm not supported");
  WICK_CHECK(!maxnorm.isComplex(), "renorm: maxnorm must be real-valued");
  double limit = maxnorm.toDouble();
  WICK_CHECK(limit >= 0, "renorm: expected maxnorm to be >= 0 but got {}", limit);
  int64_t d = wrapDim(dim, self.dim());
  DimVector others;
  for (int64_t i = 0; i < self.dim(); ++i) {
    if (i != d) others.push_back(i);
  }
  Tensor norms = vectorNorm("renorm", self, p.toDouble(), others, true, std::nullopt);
  Tensor factors = norms.to(DType::Double);
  if (!norms.device().isCpu()) {
    const Tensor less =
        ops::mulScalar(ops::reciprocal(ops::addScalar(factors, 1e-7)), Scalar(limit));
    const Tensor one = Tensor::full(DimVector{}, 1, DType::Double);
    return ops::mul(self,
                    ops::where(ops::gtScalar(factors, Scalar(limit)), less, one).to(norms.dtype()));
  }
  for (int64_t i = 0; i < factors.numel(); ++i) {
    double& f = factors.data<double>()[i];
    f = f > limit ? limit / (f + 1e-7) : 1.0;
  }
  return ops::mul(self, factors.to(norms.dtype()));
}

// The norm of each slice along `dim`; -1 takes the whole tensor.
Tensor normExceptDim(const Tensor& v, int64_t pow, int64_t dim) {
  double p = static_cast<double>(pow);
  if (dim == -1) return vectorNorm("norm_except_dim", v, p, {}, false, std::nullopt);
  int64_t d = wrapDim(dim, v.dim());
  DimVector others;
  for (int64_t i = 0; i < v.dim(); ++i) {
    if (i != d) others.push_back(i);
  }
  if (others.empty()) return ops::abs(v);  // no dimensions at all would mean all of them
  return vectorNorm("norm_except_dim", v, p, others, true, std::nullopt);
}

std::tuple<Tensor, Tensor> weightNormInterface(const Tensor& v, const Tensor& g, int64_t dim) {
  Tensor norms = normExceptDim(v, 2, dim);
  return {ops::mul(v, ops::div(g, norms)), norms};
}
Tensor weightNorm(const Tensor& v, const Tensor& g, int64_t dim) {
  return std::get<0>(weightNormInterface(v, g, dim));
}

constexpr OperatorRecord kNormsRecords[] = {
    {"aten::norm.Scalar(Tensor self, Scalar p=2) -> Tensor", WICK_KERNEL(normScalar), kNeutralLast,
     ops::shapes::reducedReal},
    {"aten::norm.ScalarOpt_dim(Tensor self, Scalar? p, int[1] dim, bool keepdim=False) -> Tensor",
     WICK_KERNEL(normDim), kOutForm | kNeutralLast, ops::shapes::reducedReal},
    {"aten::norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, *, "
     "ScalarType dtype) -> Tensor",
     WICK_KERNEL(normDimDtype), kOutForm | kNeutralLast, ops::shapes::reduced},
    {"aten::norm.ScalarOpt_dtype(Tensor self, Scalar? p, *, ScalarType dtype) -> Tensor",
     WICK_KERNEL(normDtype), kNeutralLast, ops::shapes::reduced},
    {"aten::native_norm(Tensor self, Scalar p=2) -> Tensor", WICK_KERNEL(normScalar), kNeutralLast},
    {"aten::native_norm.ScalarOpt_dim_dtype(Tensor self, Scalar? p, int[1] dim, bool keepdim, "
     "ScalarType? dtype) -> Tensor",
     WICK_KERNEL(normDimDtype), kNeutralLast},
    {"aten::linalg_vector_norm(Tensor self, Scalar ord=2, int[1]? dim=None, bool keepdim=False, *, "
     "ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(linalgVectorNorm), kOutForm | kOutSame | kNeutralLast, ops::shapes::reducedReal},
    {"aten::frobenius_norm(Tensor self) -> Tensor", WICK_KERNEL(frobeniusNorm),
     kNeutralLast | kCastFull, ops::shapes::reducedReal},
    {"aten::frobenius_norm.dim(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
     WICK_KERNEL(frobeniusNormDim), kOutForm | kNeutralLast | kCastFull, ops::shapes::reducedReal},
    {"aten::dist(Tensor self, Tensor other, Scalar p=2) -> Tensor", WICK_KERNEL(dist),
     kOutForm | kOutAny | kNeutralLast | kCastFull},
    {"aten::renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor", WICK_KERNEL(renorm),
     kInplaceForm | kOutForm | kOutSame | kNeutral | kCastFull, ops::shapes::likeFirst},
    {"aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor", WICK_KERNEL(normExceptDim),
     kNeutral},
    {"aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor", WICK_KERNEL(weightNorm),
     kNeutral},
    {"aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
     WICK_KERNEL(weightNormInterface), kNeutral},
};

const RegisterOperators kNormsRegistered(kNormsRecords);

}  // namespace
}  // namespace wick
