// The exponential of matrices: Taylor polynomials of degrees 1, 2, 4, 8, 12 and 18 in the forms of
// Bader, Blanes and Casas (2019), which need few products, chosen by the 1-norm; above the largest
// norm the matrix is halved first and the result squared. Degrees and forms are PyTorch's, for in
// float32 the rounding of a large matrix's exponential is part of the answer.
#include <array>
#include <cmath>

#include "core/device_backend.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/linear_algebra/matrices.h"

namespace wick {
namespace {

template <size_t N>
Tensor combine(const std::array<Tensor, N>& terms, const double (&factors)[N]) {
  Tensor sum;
  for (size_t i = 0; i < N; ++i) {
    Tensor term = ops::mulScalar(terms[i], factors[i]);
    sum = sum.defined() ? ops::add(sum, term) : term;
  }
  return sum;
}

Tensor degree4(const Tensor& eye, const Tensor& a) {
  Tensor a2 = matmul(a, a);
  Tensor rest = matmul(a2, combine<3>({eye, a, a2}, {1.0 / 2, 1.0 / 6, 1.0 / 24}));
  return ops::add(ops::add(eye, a), rest);
}

Tensor degree8(const Tensor& eye, const Tensor& a) {
  constexpr double root = 13.30413469565007072504;  // of 177
  constexpr double x3 = 2.0 / 3, x1 = x3 * ((1 + root) / 88), x2 = x3 * ((1 + root) / 352);
  constexpr double x4 = (-271 + 29 * root) / (315 * x3), x5 = (-11 + 11 * root) / (1260 * x3);
  constexpr double x6 = (-99 + 11 * root) / (5040 * x3), x7 = (89 - root) / (5040 * x3);
  constexpr double y2 = (857 - 58 * root) / 630;
  Tensor a2 = matmul(a, a);
  Tensor a4 = matmul(a2, combine<2>({a, a2}, {x1, x2}));
  Tensor a8 = matmul(combine<2>({a2, a4}, {x3, 1}), combine<4>({eye, a, a2, a4}, {x4, x5, x6, x7}));
  return combine<4>({eye, a, a2, a8}, {1, 1, y2, 1});
}

Tensor degree12(const Tensor& eye, const Tensor& a) {
  constexpr double kFactors[4][4] = {
      {9.0198e-16, 0.46932117595418237389, -0.20099424927047284052, -0.04623946134063071740},
      {5.31597895759871264183, 1.19926790417132231573, 0.01179296240992997031,
       0.01108844528519167989},
      {0.18188869982170434744, 0.05502798439925399070, 0.09351590770535414968,
       0.00610700528898058230},
      {-2.0861320e-13, -0.13181061013830184015, -0.02027855540589259079, -0.00675951846863086359},
  };
  Tensor a2 = matmul(a, a);
  std::array<Tensor, 4> powers = {eye, a, a2, matmul(a2, a)}, b;
  for (size_t i = 0; i < 4; ++i) b[i] = combine(powers, kFactors[i]);
  Tensor a6 = ops::add(b[2], matmul(b[3], b[3]));
  return ops::add(b[0], matmul(ops::add(b[1], a6), a6));
}

Tensor degree18(const Tensor& eye, const Tensor& a) {
  constexpr double kFactors[5][5] = {
      {0, -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04, 0},
      {0, 3.97849749499645077844e-01, 1.36783778460411720168e+00, 4.98289622525382669416e-01,
       -6.37898194594723280150e-04},
      {-1.09676396052962061844e+01, 1.68015813878906206114e+00, 5.71779846478865511061e-02,
       -6.98210122488052056106e-03, 3.34975017086070470649e-05},
      {-9.04316832390810593223e-02, -6.76404519071381882256e-02, 6.75961301770459654925e-02,
       2.95552570429315521194e-02, -1.39180257516060693404e-05},
      {0, 0, -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05},
  };
  Tensor a2 = matmul(a, a), a3 = matmul(a2, a);
  std::array<Tensor, 5> powers = {eye, a, a2, a3, matmul(a3, a3)}, b;
  for (size_t i = 0; i < 5; ++i) b[i] = combine(powers, kFactors[i]);
  Tensor a9 = ops::add(matmul(b[0], b[4]), b[3]);
  return ops::add(b[1], matmul(ops::add(b[2], a9), a9));
}

// The largest sum of magnitudes of a column.
double oneNorm(const Tensor& a) {
  return ops::amax(ops::sumDims(ops::abs(a), DimVector{-2}), DimVector{})
      .to(DType::Double)
      .item<double>();
}

Tensor expOf(const Tensor& a) {
  // Up to each norm the degree's remainder is below the dtype's precision.
  constexpr double kSingle[] = {1.192092800768788e-07, 5.978858893805233e-04,
                                5.116619363445086e-02, 5.800524627688768e-01,
                                1.461661507209034e+00, 3.010066362817634e+00};
  constexpr double kDouble[] = {2.220446049250313e-16, 2.580956802971767e-08,
                                3.397168839976962e-04, 4.991228871115323e-02,
                                2.996158913811580e-01, 1.090863719290036e+00};
  const double* limits = toRealType(a.dtype()) == DType::Float ? kSingle : kDouble;
  Tensor eye = ops::eye(a.size(-1), a.dtype(), IValue(), a.device());
  const double norm = oneNorm(a);
  if (!std::isfinite(norm)) {
    return moveTo(Tensor::full(a.sizes(), NAN, a.dtype()), a.device());
  }
  if (norm <= limits[0]) return ops::add(eye, a);
  if (norm <= limits[1]) return combine<3>({eye, a, matmul(a, a)}, {1, 1, 0.5});
  if (norm <= limits[2]) return degree4(eye, a);
  if (norm <= limits[3]) return degree8(eye, a);
  if (norm <= limits[4]) return degree12(eye, a);
  const int halvings = std::max(0, static_cast<int>(std::ceil(std::log2(norm / limits[5]))));
  Tensor out = degree18(eye, ops::mulScalar(a, std::ldexp(1.0, -halvings)));
  for (int i = 0; i < halvings; ++i) out = matmul(out, out);
  return out;
}

// Each matrix by its own norm.
Tensor matrixExp(const Tensor& a) {
  if (isReducedFloat(a.dtype())) return matrixExp(a.to(DType::Float)).to(a.dtype());
  linalg::checkSquare("matrix_exp", a);
  if (a.numel() == 0) return a.clone();
  if (a.dim() == 2) return expOf(a);
  int64_t n = a.size(-1), count = linalg::batchCount(a);
  Tensor flat = a.reshape(DimVector{count, n, n});
  std::vector<Tensor> parts;
  for (int64_t i = 0; i < count; ++i) parts.push_back(expOf(flat.select(0, i)));
  return ops::stack(parts, 0).view(a.sizes());
}

// Sums of the slices input[i] with the factors of each row of coefficients.
Tensor linearCombination(const Tensor& input, const Tensor& coefficients) {
  const char* op = "_compute_linear_combination";
  WICK_CHECK(input.dim() >= 1 && coefficients.dim() == 2 && coefficients.size(1) == input.size(0),
             "{}: expected coefficients for the first dimension of the input, got {} and {}", op,
             coefficients.describe(), input.describe());
  DimVector sizes(input.sizes());
  sizes[0] = coefficients.size(0);
  int64_t inner = 1;
  for (int64_t d = 1; d < input.dim(); ++d) inner *= input.size(d);
  return matmul(coefficients, input.reshape(DimVector{input.size(0), inner})).view(sizes);
}

constexpr OperatorRecord kExponentialRecords[] = {
    {"aten::_compute_linear_combination(Tensor input, Tensor coefficients) -> Tensor",
     WICK_KERNEL(linearCombination), kOutForm | kNeutral},
    {"aten::matrix_exp(Tensor self) -> Tensor", WICK_KERNEL(matrixExp), kNeutral},
    {"aten::linalg_matrix_exp(Tensor self) -> Tensor", WICK_KERNEL(matrixExp),
     kOutForm | kOutAny | kNeutral},
};

const RegisterOperators kExponentialRegistered(kExponentialRecords);

}  // namespace
}  // namespace wick
