// Products of matrices and vectors.
#include "core/budget.h"
#include "core/counted_vector.h"
#include "core/stack.h"
#include "runtime/kernels/gemm.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/epilogue.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick {

Tensor matrixProduct(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dim() == 2, "{}: expected mat1 to be a matrix, got {}-D tensor", op, a.dim());
  WICK_CHECK(b.dim() == 2, "{}: expected mat2 to be a matrix, got {}-D tensor", op, b.dim());
  WICK_CHECK(a.size(1) == b.size(0),
             "{}: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})", op, a.size(0),
             a.size(1), b.size(0), b.size(1));
  return batchedProduct(op, a.unsqueeze(0), b.unsqueeze(0)).view(DimVector{a.size(0), b.size(1)});
}

Tensor batchMatrixProduct(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dim() == 3 && b.dim() == 3, "{}: expected batches of matrices, got {} and {}", op,
             a.describe(), b.describe());
  WICK_CHECK(a.size(0) == b.size(0) && a.size(2) == b.size(1),
             "{}: expected size for first two dimensions of batch2 tensor to be: [{}, {}] but got: "
             "[{}, {}]",
             op, a.size(0), a.size(2), b.size(0), b.size(1));
  return batchedProduct(op, a, b);
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  WICK_CHECK(input.dim() >= 1 && weight.dim() >= 1 && weight.dim() <= 2,
             "linear: expected input of one or more dimensions and a weight of one or two, got {} "
             "and {}",
             input.describe(), weight.describe());
  if (weight.dim() == 1) {
    Tensor out = matmul(input, weight);
    return bias.defined() ? ops::add(out, bias) : out;
  }
  bool fits = bias.defined() && bias.dim() == 1 && bias.size(0) == weight.size(0);
  Tensor out = linearWithEpilogue(input, weight, fits ? bias : Tensor(), {});
  return bias.defined() && !fits ? ops::add(out, bias) : out;
}

Tensor linearWithEpilogue(const Tensor& input, const Tensor& weight, const Tensor& bias,
                          const Epilogue& epilogue) {
  WICK_CHECK(input.dim() >= 1 && input.size(-1) == weight.size(1),
             "linear: mat1 and mat2 shapes cannot be multiplied ({}x{} and {}x{})",
             input.dim() == 0 || input.size(-1) == 0 ? 0 : input.numel() / input.size(-1),
             input.dim() == 0 ? 0 : input.size(-1), weight.size(1), weight.size(0));
  DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < input.dim(); ++d) rows *= input.size(d);
  Tensor x = input.dim() == 2 ? input : input.reshape(DimVector{rows, input.size(-1)});
  const Tensor& r = epilogue.residual;
  return linearProduct(
             "linear", x, weight, bias,
             {r.defined() ? r.reshape(DimVector{rows, weight.size(0)}) : r, epilogue.activation})
      .view(sizes);
}

namespace {

Tensor linearFused(const Tensor& input, const Tensor& weight, const Tensor& bias,
                   const Tensor& residual, const std::string& activation, bool in_place) {
  const char* op = "linear_fused";
  WICK_CHECK(weight.dim() == 2 &&
                 (!bias.defined() || DimVector(bias.sizes()) == DimVector{weight.size(0)}),
             "{}: expected a matrix and a bias for its rows, got {} and {}", op, weight.describe(),
             bias.defined() ? bias.describe() : "none");
  const Activation act = activationFromName(activation);
  if (residual.defined()) {
    DimVector sizes(input.sizes());
    if (!sizes.empty()) sizes.back() = weight.size(0);
    const bool adds = residual.dtype() == input.dtype() && DimVector(residual.sizes()) == sizes;
    if (!adds) {
      return ops::addAndActivate(op, linear(input, weight, bias), residual, act, in_place);
    }
  }
  return linearWithEpilogue(input, weight, bias, {residual, act});
}

Tensor dotProduct(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dim() == 1 && b.dim() == 1, "{}: 1D tensors expected, but got {}D and {}D tensors",
             op, a.dim(), b.dim());
  WICK_CHECK(a.size(0) == b.size(0),
             "{}: inconsistent tensor size, expected tensor {} and src {} to have the same number "
             "of elements",
             op, formatInts(a.sizes()), formatInts(b.sizes()));
  return matrixProduct(op, a.unsqueeze(0), b.unsqueeze(1)).view(DimVector{});
}

Tensor matrixVector(const char* op, const Tensor& a, const Tensor& v) {
  WICK_CHECK(a.dim() == 2 && v.dim() == 1, "{}: expected a matrix and a vector, got {}D and {}D",
             op, a.dim(), v.dim());
  WICK_CHECK(a.size(1) == v.size(0), "{}: size mismatch, got {}x{} and {}", op, a.size(0),
             a.size(1), v.size(0));
  return matrixProduct(op, a, v.unsqueeze(1)).view(DimVector{a.size(0)});
}

// Batches broadcast, then one batch dimension.
Tensor matmulBatched(const Tensor& self, const Tensor& other) {
  int64_t n = self.size(-2), k = self.size(-1), p = other.size(-1);
  WICK_CHECK(k == other.size(-2), "matmul: shapes {} and {} cannot be multiplied",
             formatInts(self.sizes()), formatInts(other.sizes()));
  DimVector batch =
      broadcastShapes(self.sizes().first(self.dim() - 2), other.sizes().first(other.dim() - 2));
  int64_t count = checkedNumel(batch);
  auto flat = [&](const Tensor& t) {
    int64_t own = 1;
    for (int64_t d = 0; d + 2 < t.dim(); ++d) own *= t.size(d);
    if (own == 1) return t.reshape(DimVector{1, t.size(-2), t.size(-1)});
    DimVector full = batch;
    full.push_back(t.size(-2));
    full.push_back(t.size(-1));
    return t.expand(full).reshape(DimVector{count, t.size(-2), t.size(-1)});
  };
  DimVector sizes = batch;
  sizes.push_back(n);
  sizes.push_back(p);
  if (count == 0) return Tensor::empty(sizes, other.dtype(), self.device());
  return batchedProduct("matmul", flat(self), flat(other)).view(sizes);
}

// A factor of a product, as a number of the product's kind: integers drop what follows the point.
Scalar factorOf(const Scalar& factor, DType dtype) {
  if (isComplex(dtype)) return factor;
  ops::numberTensor(factor, dtype);  // refuses what the dtype cannot hold
  if (isIntegral(dtype, true)) return factor.toInt();
  return factor.isInt() ? factor : Scalar(factor.toDouble());
}

// Whether BLAS leaves the product alone, whatever it would be: there is nothing to multiply or it
// would be multiplied by zero. Smaller floats and integers are not computed by it.
bool skipsProduct(const Scalar& alpha, DType dtype, int64_t inner) {
  const bool blas = isComplex(dtype) || dtype == DType::Float || dtype == DType::Double;
  return blas && (inner == 0 || !alpha.toBool());
}

// beta * self + alpha * product, where a zero beta ignores even NaNs of self.
Tensor accumulate(const char* op, const Tensor& self, const Tensor& product, const Scalar& any_beta,
                  const Scalar& any_alpha) {
  WICK_CHECK(self.dtype() == product.dtype(), "{}: expected self of dtype {}, got {}", op,
             toString(product.dtype()), toString(self.dtype()));
  const Scalar beta = factorOf(any_beta, product.dtype());
  const Scalar alpha = factorOf(any_alpha, product.dtype());
  auto isOne = [](const Scalar& s) { return !s.isComplex() && s.toDouble() == 1; };
  Tensor expanded = self.expand(product.sizes());  // refuses what does not broadcast
  if (!beta.toBool()) return isOne(alpha) ? product : ops::mulScalar(product, alpha);
  Tensor scaled = isOne(beta) ? expanded : ops::mulScalar(expanded, beta);
  return ops::add(scaled, product, alpha).contiguous();  // whatever self's strides are
}

}  // namespace

Tensor matmul(const Tensor& self, const Tensor& other) {
  WICK_CHECK(self.dim() > 0 && other.dim() > 0,
             "matmul: both arguments need to be at least 1D, but they are {}D and {}D", self.dim(),
             other.dim());
  const char* op = "matmul";
  if (self.dim() == 1 && other.dim() == 1) return dotProduct(op, self, other);
  if (self.dim() == 2 && other.dim() == 1) return matrixVector(op, self, other);
  if (self.dim() == 2 && other.dim() == 2) return matrixProduct(op, self, other);
  if (self.dim() == 1) {
    Tensor out = other.dim() == 2 ? matrixProduct(op, self.unsqueeze(0), other)
                                  : matmulBatched(self.unsqueeze(0), other);
    return out.squeeze(-2);
  }
  if (other.dim() == 1) return matmul(self, other.unsqueeze(1)).squeeze(-1);
  if (other.dim() == 2) {
    // One product of all the rows; a single matrix reads its operand once.
    WICK_CHECK(self.size(-1) == other.size(0), "matmul: shapes {} and {} cannot be multiplied",
               formatInts(self.sizes()), formatInts(other.sizes()));
    DimVector sizes(self.sizes());
    sizes.back() = other.size(1);
    int64_t rows = 1;
    for (int64_t d = 0; d + 1 < self.dim(); ++d) rows *= self.size(d);
    return matrixProduct(op, self.reshape(DimVector{rows, self.size(-1)}), other).view(sizes);
  }
  return matmulBatched(self, other);
}

namespace {

Tensor mm(const Tensor& self, const Tensor& mat2) {
  return matrixProduct("mm", self, mat2);
}
// What a loop of so many iterations multiplies by, for mm_weight: a copy, which the packed form may
// be kept with. Empty where that does not pay, and for what mm refuses.
Tensor loopWeight(const Tensor& weight, int64_t turns) {
  // Copying and packing take as long as two or three turns save.
  constexpr int64_t kTurns = 6;
  const bool pays = turns >= kTurns && weight.dim() == 2 && weight.device().isCpu() &&
                    !weight.requiresGrad() && isPackedWeight(weight);
  return pays ? weight.clone() : Tensor::empty({0}, weight.dtype(), weight.device());
}
// mm; `copy`, when it has elements, is a copy of the transpose of mat2 that nobody else has. One
// that cannot be is ignored.
Tensor mmWeight(const Tensor& self, const Tensor& mat2, const Tensor& copy) {
  const bool fits = copy.numel() > 0 && copy.dim() == 2 && mat2.dim() == 2 && self.dim() == 2 &&
                    self.dtype() == copy.dtype() && mat2.dtype() == copy.dtype() &&
                    copy.size(0) == mat2.size(1) && copy.size(1) == mat2.size(0) &&
                    self.size(1) == copy.size(1);
  return fits ? linearProduct("mm", self, copy, {}) : mm(self, mat2);
}
Tensor bmm(const Tensor& self, const Tensor& mat2) {
  return batchMatrixProduct("bmm", self, mat2);
}
Tensor mv(const Tensor& self, const Tensor& vec) {
  return matrixVector("mv", self, vec);
}
Tensor dot(const Tensor& self, const Tensor& tensor) {
  return dotProduct("dot", self, tensor);
}
Tensor vdot(const Tensor& self, const Tensor& other) {
  return dotProduct("vdot", isComplex(self.dtype()) ? ops::conj(self) : self, other);
}

Tensor outer(const Tensor& self, const Tensor& vec2) {
  WICK_CHECK(self.dim() == 1 && vec2.dim() == 1, "outer: expected 1-D arguments, got {}D and {}D",
             self.dim(), vec2.dim());
  return ops::mul(self.unsqueeze(1), vec2.unsqueeze(0));
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, const Scalar& beta,
             const Scalar& alpha) {
  WICK_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "addmm: expected matrices, got {}D and {}D",
             mat1.dim(), mat2.dim());
  bool plain = !beta.isComplex() && !alpha.isComplex() && beta.toDouble() == 1 &&
               alpha.toDouble() == 1 && mat1.size(1) == mat2.size(0);
  if (plain && self.dim() == 1 && self.size(0) == mat2.size(1) && self.dtype() == mat1.dtype()) {
    return linearProduct("addmm", mat1, mat2.transpose(0, 1), self);
  }
  Tensor product = matrixProduct("addmm", mat1, mat2);
  if (skipsProduct(alpha, product.dtype(), mat1.size(1))) {
    return accumulate("addmm", self,
                      Tensor::zeros(product.sizes(), product.dtype(), product.device()), beta, 1);
  }
  return accumulate("addmm", self, product, beta, alpha);
}

Tensor addmmActivation(const Tensor& self, const Tensor& mat1, const Tensor& mat2,
                       const Scalar& beta, const Scalar& alpha, bool use_gelu) {
  Tensor out = addmm(self, mat1, mat2, beta, alpha);
  return use_gelu ? ops::gelu(out) : ops::relu(out);
}

Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, const Scalar& beta,
             const Scalar& alpha) {
  Tensor product = matrixVector("addmv", mat, vec);
  Tensor start = self.to(product.dtype());
  // PyTorch leaves self's shape as it is when there is nothing to multiply.
  if (mat.numel() == 0 && beta.toBool()) {
    start.expand(product.sizes());  // refuses what does not broadcast
    return ops::mulScalar(start, factorOf(beta, product.dtype()));
  }
  if (!isComplex(product.dtype()) && skipsProduct(alpha, product.dtype(), mat.size(1))) {
    return accumulate("addmv", start,
                      Tensor::zeros(product.sizes(), product.dtype(), product.device()), beta, 1);
  }
  return accumulate("addmv", start, product, beta, alpha);
}

Tensor baddbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
               const Scalar& alpha) {
  if (isReducedFloat(batch1.dtype()) && self.dtype() == batch1.dtype() &&
      batch2.dtype() == batch1.dtype()) {
    // Rounded once, when all is added.
    const auto wide = [](const Tensor& t) { return t.to(DType::Float); };
    return baddbmm(wide(self), wide(batch1), wide(batch2), beta, alpha).to(self.dtype());
  }
  Tensor product = batchMatrixProduct("baddbmm", batch1, batch2);
  return accumulate("baddbmm", self.to(product.dtype()), product, beta, alpha);
}

Tensor addbmm(const Tensor& self, const Tensor& batch1, const Tensor& batch2, const Scalar& beta,
              const Scalar& alpha) {
  WICK_CHECK(batch1.dim() == 3 && batch2.dim() == 3 && batch1.size(0) == batch2.size(0) &&
                 batch1.size(2) == batch2.size(1),
             "addbmm: shapes {} and {} cannot be multiplied", formatInts(batch1.sizes()),
             formatInts(batch2.sizes()));
  if (isReducedFloat(batch1.dtype()) && batch1.size(0) > 1) {
    // Sixteen bits are rounded after each product, as PyTorch adds them.
    const auto wide = [](const Tensor& t) { return t.to(DType::Float); };
    Tensor sum = self;
    for (int64_t i = 0; i < batch1.size(0); ++i) {
      sum = addmm(wide(sum), wide(batch1.select(0, i)), wide(batch2.select(0, i)),
                  i == 0 ? beta : Scalar(1), alpha)
                .to(self.dtype());
    }
    return sum;
  }
  // The sum over the batch is one product along a longer inner dimension.
  Tensor a =
      batch1.transpose(0, 1).reshape(DimVector{batch1.size(1), batch1.size(0) * batch1.size(2)});
  Tensor b = batch2.reshape(DimVector{batch2.size(0) * batch2.size(1), batch2.size(2)});
  Tensor product = matrixProduct("addbmm", a, b);
  if (skipsProduct(alpha, product.dtype(), a.size(1))) {
    return accumulate("addbmm", self,
                      Tensor::zeros(product.sizes(), product.dtype(), product.device()), beta, 1);
  }
  return accumulate("addbmm", self, product, beta, alpha);
}

// Unlike its siblings this one resizes self to the product's shape.
Tensor addbmmInplace(const Tensor& self, const Tensor& batch1, const Tensor& batch2,
                     const Scalar& beta, const Scalar& alpha) {
  return ops::writeOut("addbmm_", self, addbmm(self, batch1, batch2, beta, alpha));
}

Tensor addr(const Tensor& self, const Tensor& vec1, const Tensor& vec2, const Scalar& beta,
            const Scalar& alpha) {
  WICK_CHECK(vec1.dim() == 1 && vec2.dim() == 1, "addr: expected 1-D vectors, got {}D and {}D",
             vec1.dim(), vec2.dim());
  const bool scaled = alpha.isComplex() || alpha.toDouble() != 1;
  if (!isIntegral(vec1.dtype(), /*include_bool=*/true) && vec1.dtype() == vec2.dtype() && scaled) {
    // PyTorch's order, which tells where sixteen bits are rounded and what overflows.
    return addr(self, ops::mulScalar(vec1, alpha), vec2, beta, Scalar(1));
  }
  Tensor product = ops::mul(vec1.unsqueeze(1), vec2.unsqueeze(0));
  DType dtype = promoteTypes(self.dtype(), product.dtype());
  if (dtype == DType::Bool) {
    Tensor all =
        alpha.toBool() ? product : Tensor::zeros(product.sizes(), DType::Bool, product.device());
    return beta.toBool() ? ops::logicalOr(self.expand(product.sizes()), all) : all;
  }
  WICK_CHECK(!isIntegral(dtype, true) || !(beta.isDouble() || alpha.isDouble()),
             "addr: for integral input tensors, argument alpha and beta must not be floating point "
             "numbers");
  WICK_CHECK(!beta.isBool() && !alpha.isBool(),
             "Boolean alpha only supported for Boolean results.");
  return accumulate("addr", self.to(dtype), product.to(dtype), beta, alpha);
}

Tensor tensordot(const Tensor& self, const Tensor& other, const DimVector& dims_self,
                 const DimVector& dims_other) {
  WICK_CHECK(dims_self.size() == dims_other.size(),
             "tensordot: both dimension lists should have same length");
  WICK_CHECK(self.dtype() == other.dtype(), "tensordot: both inputs should have same dtype");
  Tensor a = self, b = other;
  std::vector<bool> used_a(static_cast<size_t>(self.dim())),
      used_b(static_cast<size_t>(other.dim()));
  DimVector order_a, order_b, sizes;
  int64_t inner = 1, rows = 1, columns = 1;
  for (size_t i = 0; i < dims_self.size(); ++i) {
    int64_t da = wrapDim(dims_self[i], a.dim()), db = wrapDim(dims_other[i], b.dim());
    WICK_CHECK(da < a.dim() && db < b.dim() && !used_a[da] && !used_b[db],
               "tensordot: a dimension appears multiple times in the list of dims");
    used_a[da] = used_b[db] = true;
    // A dimension of size one is summed before it is multiplied.
    if (a.size(da) == 1 && b.size(db) != 1) b = ops::sumDims(b, DimVector{db}, true, self.dtype());
    if (b.size(db) == 1 && a.size(da) != 1) a = ops::sumDims(a, DimVector{da}, true, self.dtype());
    WICK_CHECK(
        a.size(da) == b.size(db),
        "tensordot: contracted dimensions need to match, but first has size {} in dim {} and "
        "second has size {} in dim {}",
        a.size(da), da, b.size(db), db);
    inner *= a.size(da);
  }
  for (int64_t d = 0; d < a.dim(); ++d) {
    if (used_a[d]) continue;
    order_a.push_back(d);
    sizes.push_back(a.size(d));
    rows *= a.size(d);
  }
  for (int64_t d : dims_self) order_a.push_back(wrapDim(d, a.dim()));
  for (int64_t d : dims_other) order_b.push_back(wrapDim(d, b.dim()));
  for (int64_t d = 0; d < b.dim(); ++d) {
    if (used_b[d]) continue;
    order_b.push_back(d);
    sizes.push_back(b.size(d));
    columns *= b.size(d);
  }
  Tensor left = a.permute(order_a).reshape(DimVector{rows, inner});
  Tensor right = b.permute(order_b).reshape(DimVector{inner, columns});
  return matrixProduct("tensordot", left, right).view(sizes);
}

Tensor inner(const Tensor& self, const Tensor& other) {
  if (self.dim() == 0 || other.dim() == 0) return ops::mul(self, other);
  WICK_CHECK(self.size(-1) == other.size(-1),
             "inner: the last dimension must match on both input tensors but got shapes {} and {}",
             formatInts(self.sizes()), formatInts(other.sizes()));
  return tensordot(self, other, DimVector{-1}, DimVector{-1});
}

Tensor bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  WICK_CHECK(x1.dim() == x2.dim() && x1.dim() >= 1 && weight.dim() == 3,
             "bilinear: expected inputs of the same number of dimensions and a 3-D weight, got {}, "
             "{} and {}",
             x1.describe(), x2.describe(), weight.describe());
  for (int64_t d = 0; d + 1 < x1.dim(); ++d) {
    WICK_CHECK(x1.size(d) == x2.size(d), "bilinear: input batch dimensions do not match at dim {}",
               d);
  }
  WICK_CHECK(x1.size(-1) == weight.size(1) && x2.size(-1) == weight.size(2),
             "bilinear: the inputs' last sizes {} and {} do not match weight {}", x1.size(-1),
             x2.size(-1), formatInts(weight.sizes()));
  DimVector sizes(x1.sizes());
  sizes.back() = weight.size(0);
  int64_t rows = 1;
  for (int64_t d = 0; d + 1 < x1.dim(); ++d) rows *= x1.size(d);
  int64_t i = weight.size(1), j = weight.size(2), o = weight.size(0);
  // Every pair of the inputs' elements, then one product with the weight.
  Tensor pairs = ops::mul(x1.reshape(DimVector{rows, i, 1}), x2.reshape(DimVector{rows, 1, j}));
  Tensor out =
      linear(pairs.reshape(DimVector{rows, i * j}), weight.reshape(DimVector{o, i * j}), bias);
  return out.view(sizes);
}

// The order of fewest multiplications, by dynamic programming over the chain.
Tensor multiplyChain(const char* op, const std::vector<Tensor>& m) {
  const size_t n = m.size();
  constexpr size_t kMost = 1 << 13;
  WICK_CHECK(n < kMost, "{}: a chain of {} matrices is too long", op, n);
  CountedVector<double> costs(n * n);
  CountedVector<uint16_t> splits(n * n);
  const auto cost = [&](size_t i, size_t j) -> double& { return costs[i * n + j]; };
  Pace pace;
  for (size_t length = 1; length < n; ++length) {
    for (size_t i = 0; i + length < n; ++i) {
      size_t j = i + length;
      cost(i, j) = HUGE_VAL;
      pace.step(static_cast<int64_t>(length));
      for (size_t k = i; k < j; ++k) {
        double c = cost(i, k) + cost(k + 1, j) +
                   static_cast<double>(m[i].size(0)) * static_cast<double>(m[k].size(1)) *
                       static_cast<double>(m[j].size(1));
        if (c < cost(i, j)) {
          cost(i, j) = c;
          splits[i * n + j] = static_cast<uint16_t>(k);
        }
      }
    }
  }
  auto product = [&](auto& self, size_t i, size_t j) -> Tensor {
    if (i == j) return m[i];
    size_t k = splits[i * n + j];
    return matrixProduct(op, self(self, i, k), self(self, k + 1, j));
  };
  // It may be that each product has one matrix on its one side.
  constexpr size_t kFrame = 1024, kLeast = size_t{256} << 10;
  Tensor result;
  withStack(n * kFrame + kLeast, [&] { result = product(product, 0, n - 1); });
  return result;
}

Tensor multiDot(const std::vector<Tensor>& tensors) {
  size_t n = tensors.size();
  WICK_CHECK(n >= 2, "multi_dot(): expected at least 2 tensors but got {}", n);
  std::vector<Tensor> m = tensors;
  bool first = m.front().dim() == 1, last = m.back().dim() == 1;
  if (first) m.front() = m.front().unsqueeze(0);
  if (last) m.back() = m.back().unsqueeze(1);
  for (size_t i = 0; i < n; ++i) {
    WICK_CHECK(m[i].dim() == 2, "multi_dot(): tensor {} must be {}2D but got {}D", i,
               i == 0 || i + 1 == n ? "1D or " : "", m[i].dim());
    WICK_CHECK(i == 0 || m[i - 1].size(1) == m[i].size(0),
               "multi_dot(): tensors {} and {} with shapes {} and {} cannot be multiplied", i - 1,
               i, formatInts(m[i - 1].sizes()), formatInts(m[i].sizes()));
  }
  Tensor out = multiplyChain("multi_dot", m);
  if (first) out = out.squeeze(0);
  if (last) out = out.squeeze(-1);
  return out;
}

Tensor chainMatmul(const std::vector<Tensor>& matrices) {
  WICK_CHECK(!matrices.empty(), "chain_matmul(): expected one or more matrices");
  for (const Tensor& t : matrices) {
    WICK_CHECK(t.dim() == 2, "chain_matmul(): expected a 2D tensor but got {}", t.describe());
  }
  return matrices.size() == 1 ? matrices[0].clone() : multiDot(matrices);
}

Tensor kron(const Tensor& self, const Tensor& other) {
  int64_t n = std::max(self.dim(), other.dim());
  DimVector a, b, sizes;
  for (int64_t d = 0; d < n; ++d) {
    int64_t da = d - (n - self.dim()), db = d - (n - other.dim());
    int64_t sa = da < 0 ? 1 : self.size(da), sb = db < 0 ? 1 : other.size(db);
    a.push_back(sa);
    a.push_back(1);
    b.push_back(1);
    b.push_back(sb);
    sizes.push_back(checkedNumel(DimVector{sa, sb}));
  }
  Tensor x = self.reshape(a), y = other.reshape(b);
  // Where rows of `other` are short, the two innermost dimensions are laid out for each row of both
  // first: few elements beside those of the result, whose rows become long.
  constexpr int64_t kShortRow = 64, kManyRows = 4;
  const int64_t inner = b.empty() ? 1 : b.back(), along = a.size() < 2 ? 1 : a[a.size() - 2];
  if (inner < kShortRow && inner > 1 && self.numel() >= kManyRows * along &&
      other.numel() >= kManyRows * inner) {
    DimVector spread_x = a, spread_y = b;
    spread_x.back() = inner;
    spread_y[spread_y.size() - 2] = along;
    x = x.expand(spread_x).contiguous();
    y = y.expand(spread_y).contiguous();
  }
  return ops::mul(x, y).reshape(sizes);
}

Tensor linalgCross(const Tensor& self, const Tensor& other, int64_t dim) {
  WICK_CHECK(self.dim() == other.dim(),
             "linalg.cross: inputs must have the same number of dimensions");
  WICK_CHECK(self.dim() > 0, "linalg.cross: expected tensors of one or more dimensions");
  int64_t d = wrapDim(dim, self.dim());
  WICK_CHECK(self.size(d) == 3 && other.size(d) == 3,
             "linalg.cross: inputs dimension {} must have length 3. Got {} and {}", dim,
             self.size(d), other.size(d));
  DimVector sizes = broadcastShapes(self.sizes(), other.sizes());
  Tensor a = self.expand(sizes), b = other.expand(sizes);
  auto component = [&](int64_t i, int64_t j) {
    return ops::sub(ops::mul(a.select(d, i), b.select(d, j)),
                    ops::mul(a.select(d, j), b.select(d, i)));
  };
  return ops::stack(std::vector<Tensor>{component(1, 2), component(2, 0), component(0, 1)}, d);
}

Tensor cross(const Tensor& self, const Tensor& other, std::optional<int64_t> dim) {
  int64_t d = dim.value_or(0);
  if (!dim) {
    while (d < self.dim() && self.size(d) != 3) ++d;
    WICK_CHECK(d < self.dim(), "cross: no dimension of size 3 in input");
  }
  return linalgCross(self, other, d);
}

Tensor vecdot(const Tensor& x, const Tensor& y, int64_t dim) {
  WICK_CHECK(isFloating(x.dtype()) || isComplex(x.dtype()),
             "linalg.vecdot: Expected a floating point or complex tensor as input. Got {}",
             scalarTypeName(x.dtype()));
  WICK_CHECK(x.dtype() == y.dtype(),
             "linalg.vecdot: Expected x and y to have the same dtype, but got {} and {} instead",
             scalarTypeName(x.dtype()), scalarTypeName(y.dtype()));
  // Two vectors do not broadcast.
  WICK_CHECK(x.dim() != 1 || y.dim() != 1 || x.size(0) == y.size(0),
             "linalg.vecdot: inconsistent tensor size, expected tensor {} and src {} to have the "
             "same number of elements",
             formatInts(x.sizes()), formatInts(y.sizes()));
  Tensor left = isComplex(x.dtype()) ? ops::conj(x) : x;
  return ops::sumDims(ops::mul(left, y), DimVector{dim});
}

constexpr OperatorRecord kProductsRecords[] = {
    {"aten::mm(Tensor self, Tensor mat2) -> Tensor", WICK_KERNEL(mm),
     kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::matrixProduct},
    {"wick::loop_weight(Tensor weight, int turns) -> Tensor", WICK_KERNEL(loopWeight), kNeutral},
    {"wick::mm_weight(Tensor self, Tensor mat2, Tensor copy) -> Tensor", WICK_KERNEL(mmWeight),
     kNeutral, ops::shapes::matrixProduct},
    {"aten::bmm(Tensor self, Tensor mat2) -> Tensor", WICK_KERNEL(bmm),
     kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::batchedMatrixProduct},
    {"aten::matmul(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(matmul),
     kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::matmul},
    {"aten::mv(Tensor self, Tensor vec) -> Tensor", WICK_KERNEL(mv),
     kOutForm | kOutSame | kNeutral | kCastReduced, ops::shapes::matrixVector},
    {"aten::dot(Tensor self, Tensor tensor) -> Tensor", WICK_KERNEL(dot),
     kOutForm | kOutSame | kNeutral | kCastWidest, ops::shapes::innerNumber},
    {"aten::vdot(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(vdot),
     kOutForm | kOutSame | kNeutral, ops::shapes::innerNumber},
    {"aten::inner(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(inner),
     kOutForm | kNeutral | kEagerCastInner},
    {"aten::outer(Tensor self, Tensor vec2) -> Tensor", WICK_KERNEL(outer), kOutForm | kNeutral,
     ops::shapes::outerProduct},
    {"aten::addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     WICK_KERNEL(addmm),
     kInplaceForm | kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::matrixProduct},
    {"aten::_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar "
     "alpha=1, bool use_gelu=False) -> Tensor",
     WICK_KERNEL(addmmActivation), kOutForm | kNeutral, ops::shapes::matrixProduct},
    {"aten::addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
     WICK_KERNEL(addmv), kInplaceForm | kOutForm | kOutSame | kNeutral | kCastReduced},
    {"aten::addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     WICK_KERNEL(addbmm), kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced},
    {"aten::addbmm_(Tensor(a!) self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar "
     "alpha=1) -> Tensor(a!)",
     WICK_KERNEL(addbmmInplace), kNeutral},
    {"aten::baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
     "-> Tensor",
     WICK_KERNEL(baddbmm),
     kInplaceForm | kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::batchedMatrixProduct},
    {"aten::addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> "
     "Tensor",
     WICK_KERNEL(addr), kInplaceForm | kOutForm | kRefusesPartialOverlap | kNeutral | kCastReduced},
    {"aten::linear(Tensor input, Tensor weight, Tensor? bias=None) -> Tensor", WICK_KERNEL(linear),
     kOutForm | kOutSame | kNeutral | kCastReduced | kEagerCastReduced | kRowMajor,
     ops::shapes::linear},
    {"wick::linear_fused(Tensor input, Tensor weight, Tensor? bias, Tensor? residual, str "
     "activation, bool in_place) -> Tensor",
     WICK_KERNEL(linearFused), kNeutral, ops::shapes::fusedLinear},
    {"aten::mkldnn_linear(Tensor self, Tensor weight, Tensor? bias=None) -> Tensor",
     WICK_KERNEL(linear), kOutForm | kNeutral, ops::shapes::linear},
    {"aten::bilinear(Tensor input1, Tensor input2, Tensor weight, Tensor? bias=None) -> Tensor",
     WICK_KERNEL(bilinear), kNeutral | kCastWidest},
    {"aten::tensordot(Tensor self, Tensor other, int[] dims_self, int[] dims_other) -> Tensor",
     WICK_KERNEL(tensordot), kOutForm | kOutSame | kNeutral | kCastWidest | kEagerCastReduced},
    {"aten::chain_matmul(Tensor[] matrices) -> Tensor", WICK_KERNEL(chainMatmul),
     kOutForm | kMayReturnArgument | kNeutral | kCastReduced | kEagerCastReduced},
    {"aten::linalg_multi_dot(Tensor[] tensors) -> Tensor", WICK_KERNEL(multiDot),
     kOutForm | kMayReturnArgument | kOutSame | kNeutral | kEagerCastReduced},
    {"aten::kron(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(kron), kOutForm | kNeutral},
    {"aten::cross(Tensor self, Tensor other, int? dim=None) -> Tensor", WICK_KERNEL(cross),
     kOutForm | kOutSame | kNeutral | kCastWidest},
    {"aten::linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
     WICK_KERNEL(linalgCross), kOutForm | kOutSame | kNeutral},
    {"aten::linalg_vecdot(Tensor x, Tensor y, *, int dim=-1) -> Tensor", WICK_KERNEL(vecdot),
     kOutForm | kOutSame | kNeutral},
};

constexpr OperatorAlias kProductsAliases[] = {
    {"aten::ger", "aten::outer"},
    {"aten::linalg_matmul", "aten::matmul"},
};

const RegisterOperators kProductsRegistered(kProductsRecords, kProductsAliases);

}  // namespace
}  // namespace wick
