// Matrix norms and ranks, pseudo-inverses, powers and the exponential.
#include "runtime/ops/reduce/norms.h"

#include <cmath>
#include <limits>

#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/linear_algebra/matrices.h"
#include "runtime/ops/linear_algebra/spectral.h"

namespace wick {
namespace {

using namespace linalg;
using OptDType = std::optional<DType>;
using OptScalar = std::optional<Scalar>;
using OptDouble = std::optional<double>;
using OptDims = std::optional<DimVector>;

const OperatorHandle kInverse{"aten::linalg_inv", ""};
const OperatorHandle kInverseEx{"aten::linalg_inv_ex", ""};
const OperatorHandle kSolve{"aten::linalg_solve", ""};

// Singular values over two dimensions, which end up last.
Tensor singularValues(const char* op, const Tensor& a, const DimVector& dim) {
  int64_t r = wrapDim(dim[0], a.dim()), c = wrapDim(dim[1], a.dim());
  DimVector order;
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (d != r && d != c) order.push_back(d);
  }
  order.push_back(r);
  order.push_back(c);
  return svd(op, a.permute(order), false, false).s;
}

Tensor keepDims(const Tensor& t, const Tensor& source, const DimVector& dim, bool keepdim) {
  if (!keepdim) return t;
  DimVector sizes(source.sizes());
  for (int64_t d : dim) sizes[static_cast<size_t>(wrapDim(d, source.dim()))] = 1;
  return t.view(sizes);
}

DimVector checkedPair(const char* op, const Tensor& a, const DimVector& dim) {
  WICK_CHECK(dim.size() == 2, "{}: dim must be a 2-tuple. Got {}", op, formatInts(dim));
  WICK_CHECK(a.dim() >= 2, "{}: The input tensor A must have at least 2 dimensions.", op);
  WICK_CHECK(isFloating(a.dtype()) || isComplex(a.dtype()),
             "{}: Expected a floating point or complex tensor as input. Got {}", op,
             scalarTypeName(a.dtype()));
  DimVector d{wrapDim(dim[0], a.dim()), wrapDim(dim[1], a.dim())};
  WICK_CHECK(d[0] != d[1], "{}: dims must be different. Got {}", op, formatInts(dim));
  return d;
}

// `a` in the dtype that it is computed in: wider, and complex when `a` is.
Tensor normed(const char* op, const Tensor& a, OptDType dtype) {
  if (!dtype) return a;
  WICK_CHECK(isFloating(*dtype) || isComplex(*dtype),
             "{}: dtype should be floating point or complex, but got {}", op,
             scalarTypeName(*dtype));
  WICK_CHECK(isComplex(*dtype) == isComplex(a.dtype()), "{}: dtype should be {} inputs, but got {}",
             op, isComplex(a.dtype()) ? "complex for complex" : "real for real",
             scalarTypeName(*dtype));
  WICK_CHECK(promoteTypes(a.dtype(), *dtype) == *dtype,
             "{}: the dtype of the input ({}) should be convertible without narrowing to the "
             "specified dtype ({})",
             op, scalarTypeName(a.dtype()), scalarTypeName(*dtype));
  return a.to(*dtype);
}

// The largest or the smallest along a dimension. The largest of nothing is 0, for no norm is less.
Tensor extremeNorm(bool largest, const Tensor& norms, int64_t dim, bool keepdim) {
  if (!largest) return ops::amin(norms, DimVector{dim}, keepdim);
  if (norms.size(dim) != 0) return ops::amax(norms, DimVector{dim}, keepdim);
  DimVector sizes(norms.sizes());
  const auto d = static_cast<size_t>(wrapDim(dim, norms.dim()));
  if (keepdim) {
    sizes[d] = 1;
  } else {
    sizes.erase(d);
  }
  return Tensor::zeros(sizes, norms.dtype(), norms.device());
}

// Orders 2 and -2 (spectral), 1 and -1 (columns), inf and -inf (rows).
Tensor matrixNorm(const Tensor& a_in, const Scalar& ord, const DimVector& dim, bool keepdim,
                  OptDType dtype) {
  const char* op = "linalg.matrix_norm";
  DimVector d = checkedPair(op, a_in, dim);
  Tensor a = normed(op, a_in, dtype);
  double p = ord.toDouble(), size = std::abs(p);
  WICK_CHECK(size == 2 || size == 1 || std::isinf(p), "{}: Order {} not supported.", op, p);
  if (size == 2) {
    Tensor s = singularValues(op, a, d);
    Tensor out = extremeNorm(p > 0, s, -1, false);
    return keepDims(out, a, d, keepdim);
  }
  // The sums along one dimension, then the extreme of the other, which moves up when the first one
  // goes.
  int64_t summed = size == 1 ? d[0] : d[1], other = size == 1 ? d[1] : d[0];
  Tensor sums = vectorNorm(op, a, 1, DimVector{summed}, keepdim, std::nullopt);
  if (!keepdim && other > summed) --other;
  return extremeNorm(p > 0, sums, other, keepdim);
}

Tensor matrixNormName(const Tensor& a_in, const std::string& ord, const DimVector& dim,
                      bool keepdim, OptDType dtype) {
  const char* op = "linalg.matrix_norm";
  DimVector d = checkedPair(op, a_in, dim);
  WICK_CHECK(ord == "fro" || ord == "nuc", "{}: Order {} not supported.", op, ord);
  Tensor a = normed(op, a_in, dtype);
  if (ord == "fro") return vectorNorm(op, a, 2, d, keepdim, std::nullopt);
  return keepDims(ops::sumDims(singularValues(op, a, d), DimVector{-1}), a, d, keepdim);
}

Tensor linalgNorm(const Tensor& a, const OptScalar& ord, const OptDims& dim, bool keepdim,
                  OptDType dtype) {
  const char* op = "linalg.norm";
  WICK_CHECK(!dim || (!dim->empty() && dim->size() <= 2),
             "{}: If dim is specified, it must be of length 1 or 2. Got {}", op, formatInts(*dim));
  if (ord && ((dim && dim->size() == 2) || (!dim && a.dim() == 2))) {
    return matrixNorm(a, *ord, dim.value_or(DimVector{0, 1}), keepdim, dtype);
  }
  WICK_CHECK(!ord || dim || a.dim() <= 1,
             "{}: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.", op,
             a.dim());
  return vectorNorm(op, a, ord ? ord->toDouble() : 2, dim ? IntSpan(*dim) : IntSpan(), keepdim,
                    dtype);
}

Tensor linalgNormName(const Tensor& a, const std::string& ord, const OptDims& dim, bool keepdim,
                      OptDType dtype) {
  WICK_CHECK(
      dim || a.dim() == 2,
      "linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {}D.",
      a.dim());
  return matrixNormName(a, ord, dim.value_or(DimVector{0, 1}), keepdim, dtype);
}

Tensor nuclearNorm(const Tensor& a, bool keepdim) {
  WICK_CHECK(a.dim() == 2, "nuclear_norm: Expected a tensor with 2 dimensions, but got {}D",
             a.dim());
  return matrixNormName(a, "nuc", DimVector{0, 1}, keepdim, std::nullopt);
}
Tensor nuclearNormDim(const Tensor& a, const DimVector& dim, bool keepdim) {
  return matrixNormName(a, "nuc", dim, keepdim, std::nullopt);
}

double epsilonOf(DType dtype) {
  return toRealType(dtype) == DType::Double ? std::numeric_limits<double>::epsilon()
                                            : std::numeric_limits<float>::epsilon();
}

// Absolute and relative tolerances as tensors; the relative one defaults to epsilon times the
// larger side unless only an absolute one is given.
struct Tolerances {
  Tensor atol, rtol;
};

Tolerances tolerances(const Tensor& a, const Tensor& atol, const Tensor& rtol) {
  DType real = toRealType(a.dtype());
  Tolerances t{atol.defined() ? atol.to(real) : Tensor::zeros({}, real), {}};
  double standard = epsilonOf(a.dtype()) * static_cast<double>(std::max(a.size(-1), a.size(-2)));
  if (rtol.defined()) {
    t.rtol = rtol.to(real);
    return t;
  }
  t.rtol = Tensor::full({}, standard, real);
  if (atol.defined()) {
    t.rtol = ops::where(ops::gtScalar(t.atol, 0), Tensor::zeros({}, real), t.rtol);
  }
  return t;
}

// What a singular value must exceed: max(atol, rtol * largest), shaped to compare with the values.
Tensor threshold(const Tolerances& t, const Tensor& values) {
  Tensor largest = ops::amax(values, DimVector{-1});
  return ops::maximum(t.atol, ops::mul(t.rtol, largest)).unsqueeze(-1);
}

Tensor optional(OptDouble v) {
  return v ? Tensor::scalar(*v) : Tensor();
}

Tensor matrixRank(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* op = "linalg.matrix_rank";
  checkMatrix(op, a);
  if (a.numel() == 0) return Tensor::zeros(batchSizes(a), DType::Long, a.device());
  Tensor s = hermitian ? ops::abs(eigh(op, a, false, false).values) : svd(op, a, false, false).s;
  return ops::sumDims(ops::gt(s, threshold(tolerances(a, atol, rtol), s)), DimVector{-1});
}
Tensor matrixRankFloat(const Tensor& a, OptDouble atol, OptDouble rtol, bool hermitian) {
  return matrixRank(a, optional(atol), optional(rtol), hermitian);
}
Tensor matrixRankTol(const Tensor& a, double tol, bool hermitian) {
  return matrixRank(a, Tensor::scalar(tol), Tensor::scalar(0.0), hermitian);
}
Tensor matrixRankTolTensor(const Tensor& a, const Tensor& tol, bool hermitian) {
  return matrixRank(a, tol, Tensor::scalar(0.0), hermitian);
}

Tensor pinv(const Tensor& a, const Tensor& atol, const Tensor& rtol, bool hermitian) {
  const char* op = "linalg.pinv";
  checkMatrix(op, a);
  if (a.numel() == 0) {
    return Tensor::empty(withSizes(batchSizes(a), {a.size(-1), a.size(-2)}), a.dtype(), a.device());
  }
  Tolerances t = tolerances(a, atol, rtol);
  auto inverted = [&](const Tensor& values, const Tensor& sizes) {
    Tensor keep = ops::gt(sizes, threshold(t, sizes));
    return ops::where(keep, ops::reciprocal(values), Tensor::zeros({}, values.dtype()));
  };
  if (hermitian) {
    Eigh e = eigh(op, a, false, true);
    Tensor inverse = inverted(e.values, ops::abs(e.values)).to(a.dtype());
    return matmul(ops::mul(e.vectors, inverse.unsqueeze(-2)), adjoint(e.vectors));
  }
  Svd s = svd(op, a, false, true);
  Tensor inverse = inverted(s.s, s.s).to(a.dtype());
  return matmul(ops::mul(adjoint(s.vh), inverse.unsqueeze(-2)), adjoint(s.u));
}
Tensor pinvFloat(const Tensor& a, OptDouble atol, OptDouble rtol, bool hermitian) {
  return pinv(a, optional(atol), optional(rtol), hermitian);
}
Tensor pinvRcond(const Tensor& a, double rcond, bool hermitian) {
  return pinv(a, Tensor::scalar(0.0), Tensor::scalar(rcond), hermitian);
}
Tensor pinvRcondTensor(const Tensor& a, const Tensor& rcond, bool hermitian) {
  return pinv(a, Tensor::scalar(0.0), rcond, hermitian);
}
Tensor pinverse(const Tensor& a, double rcond) {
  return pinvRcond(a, rcond, false);
}

// The norm of the matrix times the norm of its inverse, infinite when it is singular.
template <class Norm>
Tensor conditionByInverse(const Tensor& a, Norm&& norm) {
  checkSquare("linalg.cond", a);
  if (a.numel() == 0) return Tensor::zeros(batchSizes(a), toRealType(a.dtype()), a.device());
  auto result = kInverseEx.all(a);
  Tensor product = ops::mul(norm(a), norm(result[0].toTensor()));
  return ops::maskedFill(product, ops::neScalar(result[1].toTensor(), 0), HUGE_VAL);
}

Tensor cond(const Tensor& a, const OptScalar& p) {
  const char* op = "linalg.cond";
  checkMatrix(op, a);
  double order = p ? p->toDouble() : 2;
  if (std::abs(order) == 2) {
    if (a.numel() == 0) return Tensor::zeros(batchSizes(a), toRealType(a.dtype()), a.device());
    Tensor s = svd(op, a, false, false).s;
    int64_t last = s.dim() - 1;
    Tensor high = s.select(last, 0), low = s.select(last, s.size(last) - 1);
    return order > 0 ? ops::div(high, low) : ops::div(low, high);
  }
  return conditionByInverse(a, [&](const Tensor& t) {
    return matrixNorm(t, *p, DimVector{-2, -1}, false, std::nullopt);
  });
}
Tensor condName(const Tensor& a, const std::string& p) {
  const char* op = "linalg.cond";
  checkMatrix(op, a);
  if (p == "nuc") {
    checkSquare(op, a);
    auto nuclear = [&](const Tensor& t) {
      return ops::sumDims(svd(op, t, false, false).s, DimVector{-1});
    };
    return conditionByInverse(a, nuclear);
  }
  return conditionByInverse(a, [&](const Tensor& t) {
    return matrixNormName(t, p, DimVector{-2, -1}, false, std::nullopt);
  });
}

Tensor eyeLike(const Tensor& a) {
  return ops::eye(a.size(-1), a.dtype(), IValue(), a.device());
}

Tensor matrixPower(const Tensor& self, int64_t n) {
  const char* op = "linalg.matrix_power";
  WICK_CHECK(self.dim() >= 2 && self.size(-1) == self.size(-2),
             "{}: A must be batches of square matrices, but got {}", op, formatInts(self.sizes()));
  WICK_CHECK(n != INT64_MIN, "{}: the exponent is out of range", op);
  if (n == 0) return eyeLike(self).expand(self.sizes()).clone(MemoryFormat::Contiguous);
  Tensor base = n < 0 ? kInverse(self) : self, result;
  for (int64_t rest = std::abs(n); rest > 0; rest >>= 1) {
    if (rest & 1) result = result.defined() ? matmul(result, base) : base;
    if (rest > 1) base = matmul(base, base);
  }
  return result.isSame(self) ? self.clone(MemoryFormat::Contiguous) : result;
}

Tensor tensorinv(const Tensor& a, int64_t ind) {
  const char* op = "linalg.tensorinv";
  WICK_CHECK(ind > 0, "Expected a strictly positive integer for 'ind'");
  WICK_CHECK(ind <= a.dim(), "{}: 'ind' is too large: {}", op, ind);
  DimVector first(a.sizes().first(static_cast<size_t>(ind)));
  DimVector rest(a.sizes().subspan(static_cast<size_t>(ind)));
  int64_t rows = checkedNumel(first), columns = checkedNumel(rest);
  WICK_CHECK(rows == columns,
             "{}: Expected self to satisfy the requirement prod(self.shape[ind:]) == "
             "prod(self.shape[:ind]), but got {} != {}",
             op, columns, rows);
  for (int64_t s : first) rest.push_back(s);
  return kInverse(a.reshape(DimVector{rows, columns})).reshape(rest);
}

Tensor tensorsolve(const Tensor& a_in, const Tensor& b, const OptDims& dims) {
  const char* op = "linalg.tensorsolve";
  Tensor a = a_in;
  if (dims) {
    std::vector<bool> moved(static_cast<size_t>(std::max<int64_t>(a.dim(), 1)));
    DimVector order, tail;
    for (int64_t d : *dims) {
      int64_t w = wrapDim(d, a.dim());
      WICK_CHECK(!moved[static_cast<size_t>(w)], "{}: dims repeats a dimension", op);
      moved[static_cast<size_t>(w)] = true;
      tail.push_back(w);
    }
    for (int64_t d = 0; d < a.dim(); ++d) {
      if (!moved[static_cast<size_t>(d)]) order.push_back(d);
    }
    for (int64_t d : tail) order.push_back(d);
    a = a.permute(order);
  }
  WICK_CHECK(a.dim() >= b.dim(), "{}: Expected self to have at least as many dimensions as other",
             op);
  DimVector result(a.sizes().subspan(static_cast<size_t>(b.dim())));
  int64_t columns = checkedNumel(result);
  WICK_CHECK(columns == b.numel() && a.numel() == columns * columns,
             "{}: Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
             "prod(self.shape[:other.ndim]), but got {} != {}",
             op, columns, b.numel());
  return kSolve(a.reshape(DimVector{columns, columns}), b.flatten()).reshape(result);
}

Tensor vander(const Tensor& input, std::optional<int64_t> n_in) {
  Tensor x = input.dim() == 0 ? input.unsqueeze(0) : input;
  WICK_CHECK(x.dtype() != DType::Bool, "linalg.vander: expected numbers, got {}", x.describe());
  int64_t n = n_in.value_or(x.size(-1));
  WICK_CHECK(n > 1, "N must be greater than 1.");
  DType dtype = isIntegral(x.dtype(), true) ? DType::Long : x.dtype();
  DimVector sizes(x.sizes());
  sizes.push_back(n - 1);
  Tensor powers = ops::cumprod(x.to(dtype).unsqueeze(-1).expand(sizes), int64_t{-1});
  sizes.back() = 1;
  const Tensor ones = Tensor::zeros(sizes, dtype, x.device());
  ops::fillWith(ones, Scalar(1));
  return ops::cat(std::vector<Tensor>{ones, powers}, int64_t{-1});
}

#define WICK_KEEP "bool keepdim=False, *, ScalarType? dtype=None) -> Tensor"
#define WICK_TOL "float? atol=None, float? rtol=None, bool hermitian=False) -> Tensor"
#define WICK_TOL_TENSOR "Tensor? atol=None, Tensor? rtol=None, bool hermitian=False) -> Tensor"

constexpr OperatorRecord kNormsRecords[] = {
    {"aten::linalg_matrix_norm(Tensor self, Scalar ord, int[] dim=[-2, -1], " WICK_KEEP,
     WICK_KERNEL(matrixNorm), kOutForm | kOutSame | kNeutral | kEagerCastFull},
    {"aten::linalg_matrix_norm.str_ord(Tensor self, str ord=\"fro\", int[] dim=[-2, "
     "-1], " WICK_KEEP,
     WICK_KERNEL(matrixNormName), kOutForm | kOutSame | kNeutral | kEagerCastFull},
    {"aten::linalg_norm(Tensor self, Scalar? ord=None, int[1]? dim=None, " WICK_KEEP,
     WICK_KERNEL(linalgNorm), kOutForm | kOutSame | kNeutralLast | kEagerCastFullWithin},
    {"aten::linalg_norm.ord_str(Tensor self, str ord, int[1]? dim=None, " WICK_KEEP,
     WICK_KERNEL(linalgNormName), kOutForm | kOutSame | kNeutralLast | kEagerCastFullWithin},
    {"aten::nuclear_norm(Tensor self, bool keepdim=False) -> Tensor", WICK_KERNEL(nuclearNorm),
     kOutForm | kOutAny | kNeutral | kCastFull | kEagerCastFullWithin},
    {"aten::nuclear_norm.dim(Tensor self, int[2] dim, bool keepdim=False) -> Tensor",
     WICK_KERNEL(nuclearNormDim), kOutForm | kOutAny | kNeutral | kCastFull | kEagerCastFullWithin},
    {"aten::linalg_matrix_rank.atol_rtol_tensor(Tensor input, *, " WICK_TOL_TENSOR,
     WICK_KERNEL(matrixRank), kOutForm | kNotDifferentiable | kNeutral | kEagerCastFull},
    {"aten::linalg_matrix_rank.atol_rtol_float(Tensor self, *, " WICK_TOL,
     WICK_KERNEL(matrixRankFloat), kOutForm | kNotDifferentiable | kNeutral | kEagerCastFull},
    {"aten::linalg_matrix_rank(Tensor self, float tol, bool hermitian=False) -> Tensor",
     WICK_KERNEL(matrixRankTol), kOutForm | kNotDifferentiable | kNeutral | kEagerCastFull},
    {"aten::linalg_matrix_rank.tol_tensor(Tensor input, Tensor tol, bool hermitian=False) -> "
     "Tensor",
     WICK_KERNEL(matrixRankTolTensor), kNotDifferentiable | kNeutral | kEagerCastFull},
    {"aten::linalg_pinv.atol_rtol_tensor(Tensor self, *, " WICK_TOL_TENSOR, WICK_KERNEL(pinv),
     kOutForm | kNeutral | kEagerCastUnknown},
    {"aten::linalg_pinv.atol_rtol_float(Tensor self, *, " WICK_TOL, WICK_KERNEL(pinvFloat),
     kOutForm | kNeutral | kEagerCastUnknown},
    {"aten::linalg_pinv(Tensor self, float rcond, bool hermitian=False) -> Tensor",
     WICK_KERNEL(pinvRcond), kOutForm | kNeutral | kRaisesByElements | kEagerCastUnknown},
    {"aten::linalg_pinv.rcond_tensor(Tensor self, Tensor rcond, bool hermitian=False) -> Tensor",
     WICK_KERNEL(pinvRcondTensor), kNeutral | kEagerCastUnknown},
    {"aten::pinverse(Tensor self, float rcond=1e-15) -> Tensor", WICK_KERNEL(pinverse),
     kNeutral | kEagerCastFull},
    {"aten::linalg_cond(Tensor self, Scalar? p=None) -> Tensor", WICK_KERNEL(cond),
     kOutForm | kNeutral | kEagerCastFull},
    {"aten::linalg_cond.p_str(Tensor self, str p) -> Tensor", WICK_KERNEL(condName),
     kOutForm | kNeutral | kEagerCastFull},
    {"aten::linalg_matrix_power(Tensor self, int n) -> Tensor", WICK_KERNEL(matrixPower),
     kOutForm | kNeutral | kEagerCastUnknown},
    {"aten::linalg_tensorinv(Tensor self, int ind=2) -> Tensor", WICK_KERNEL(tensorinv),
     kOutForm | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::linalg_tensorsolve(Tensor self, Tensor other, int[]? dims=None) -> Tensor",
     WICK_KERNEL(tensorsolve), kOutForm | kNeutral | kRaisesByElements | kEagerCastFull},
    {"aten::linalg_vander(Tensor x, *, int? N=None) -> Tensor", WICK_KERNEL(vander), kNeutral},
};

constexpr OperatorAlias kNormsAliases[] = {{"aten::matrix_power", "aten::linalg_matrix_power"}};

const RegisterOperators kNormsRegistered(kNormsRecords, kNormsAliases);

}  // namespace
}  // namespace wick
