// Matrix products with sparse factors. Each entry of a sparse matrix adds a multiple of a row of
// the dense one to a row of the result; rows of the result are split among threads.
#include <algorithm>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/sparse_form.h"
#include "core/wrapped.h"
#include "ir/operator.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

constexpr unsigned kFactors = kIntegers | kFloats | kComplexes;

bool isSparse(const Tensor& t) {
  return t.kind() == TensorKind::Sparse;
}

void checkFactors(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dtype() == b.dtype(), "{}: expected scalar type {} but found {}", op,
             scalarTypeName(a.dtype()), scalarTypeName(b.dtype()));
  WICK_CHECK(a.size(-1) == b.size(b.dim() == 1 ? 0 : -2),
             "{}: Argument #3 (dense): Expected dim 0 size {}, got {}", op, a.size(-1),
             b.size(b.dim() == 1 ? 0 : -2));
}

// out [rows, n] = matrix times b [columns, n], all row-major; `out` is written as a whole.
void multiply(const char* op, const Rows& matrix, const Tensor& b, const Tensor& out) {
  const int64_t n = b.size(1);
  const auto count = static_cast<int64_t>(matrix.columns.size());
  const int64_t work = n * (count / std::max<int64_t>(matrix.rows, 1) + 1);
  dispatch<kFactors>(op, b.dtype(), [&]<class T>() {
    const T* const values = matrix.values.data<T>();
    const T* const from = b.data<T>();
    T* const to = out.data<T>();
    parallelFor(matrix.rows, std::max<int64_t>(1, kGrainSize / std::max<int64_t>(work, 1)),
                [&](int64_t first, int64_t last) {
                  Pace pace;
                  for (int64_t r = first; r < last; ++r) {
                    T* const sum = to + r * n;
                    std::fill(sum, sum + n, T());
                    for (int64_t i = matrix.begin[r]; i < matrix.begin[r + 1]; ++i) {
                      pace.step(n);
                      const T* const row = from + matrix.columns[i] * n;
                      for (int64_t k = 0; k < n; ++k) {
                        sum[k] = wrappedSum(sum[k], wrappedProduct(values[i], row[k]));
                      }
                    }
                  }
                });
  });
}

Tensor sparseTimesDense(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dim() == 2 && b.dim() == 2, "{}: expected matrices, got {} and {} dimensions", op,
             a.dim(), b.dim());
  checkFactors(op, a, b);
  const Rows rows = rowsOf(op, a);
  Tensor out = Tensor::empty(DimVector{a.size(0), b.size(1)}, b.dtype());
  multiply(op, rows, b.contiguous(), out);
  return out;
}

Tensor transposed(const Tensor& t) {
  return ops::transpose(t, int64_t{0}, int64_t{1});
}

Tensor denseTimesSparse(const char* op, const Tensor& a, const Tensor& b) {
  if (isSparseCoo(b)) {
    throwRuntimeError(
        "{}: not available for a dense matrix times one in coordinates; transpose "
        "both, or convert the second one to CSR",
        op);
  }
  WICK_CHECK(a.dim() == 2 && b.dim() == 2, "{}: expected matrices, got {} and {} dimensions", op,
             a.dim(), b.dim());
  checkFactors(op, a, b);
  return sparseTimesDense(op, transposed(b), a.transpose(0, 1)).transpose(0, 1).contiguous();
}

// Both sparse: each row of the result is collected, sorted by columns and joined.
Tensor sparseTimesSparse(const char* op, const Tensor& a, const Tensor& b) {
  WICK_CHECK(a.dim() == 2 && b.dim() == 2, "{}: expected matrices, got {} and {} dimensions", op,
             a.dim(), b.dim());
  checkFactors(op, a, b);
  const bool coo = isSparseCoo(a);
  WICK_CHECK(coo == isSparseCoo(b), "{}: not available for tensors of layouts {} and {}", op,
             layoutName(a), layoutName(b));
  const Rows left = rowsOf(op, a), right = rowsOf(op, b);
  Positions row_out, column_out;
  Tensor values;
  dispatch<kFactors>(op, a.dtype(), [&]<class T>() {
    const T* const x = left.values.data<T>();
    const T* const y = right.values.data<T>();
    CountedVector<T> sums;
    CountedVector<std::pair<int64_t, T>> row;
    Pace pace;
    for (int64_t r = 0; r < left.rows; ++r) {
      row.clear();
      for (int64_t i = left.begin[r]; i < left.begin[r + 1]; ++i) {
        const int64_t middle = left.columns[i];
        for (int64_t j = right.begin[middle]; j < right.begin[middle + 1]; ++j) {
          pace.step(8);
          row.emplace_back(right.columns[j], wrappedProduct(x[i], y[j]));
        }
      }
      pace.step();
      std::stable_sort(row.begin(), row.end(),
                       [](const auto& p, const auto& q) { return p.first < q.first; });
      for (size_t i = 0; i < row.size(); ++i) {
        if (i > 0 && row[i].first == row[i - 1].first) {
          sums.back() = wrappedSum(sums.back(), row[i].second);
          continue;
        }
        row_out.push_back(r);
        column_out.push_back(row[i].first);
        sums.push_back(row[i].second);
      }
    }
    values = Tensor::fromData(sums.data(), DimVector{static_cast<int64_t>(sums.size())});
  });
  const auto count = static_cast<int64_t>(row_out.size());
  row_out.insert(row_out.end(), column_out.begin(), column_out.end());
  const Coordinates c{indexTensor(row_out, DimVector{2, count}), values,
                      DimVector{left.rows, right.num_columns}, true};
  return coo ? toTensor(c) : compress(op, c, SparseLayout::Csr, kOne);
}

Tensor mm(const Tensor& self, const Tensor& mat2) {
  if (isSparse(self) && isSparse(mat2)) return sparseTimesSparse("mm", self, mat2);
  return isSparse(self) ? sparseTimesDense("mm", self, mat2) : denseTimesSparse("mm", self, mat2);
}

Tensor mv(const Tensor& self, const Tensor& vec) {
  WICK_CHECK(isSparse(self) && !isSparse(vec) && self.dim() == 2 && vec.dim() == 1,
             "mv: two tensor dim should be 2 and 1, but got {} and {}, the first one sparse",
             self.dim(), vec.dim());
  return sparseTimesDense("mv", self, vec.unsqueeze(1)).view(DimVector{self.size(0)});
}

Tensor matmul(const Tensor& self, const Tensor& other) {
  if (self.dim() == 2 && other.dim() == 2) return mm(self, other);
  if (self.dim() == 2 && other.dim() == 1 && isSparse(self)) return mv(self, other);
  throwRuntimeError("matmul: not available for sparse tensors of {} and {} dimensions", self.dim(),
                    other.dim());
}

// beta * self + alpha * product; what self holds does not count when beta is 0.
Tensor blended(const char* op, const Tensor& self, const Tensor& product, const Scalar& beta,
               const Scalar& alpha) {
  const bool no_self = !beta.isComplex() && beta.toDouble() == 0;
  const bool plain = !alpha.isComplex() && alpha.toDouble() == 1;
  WICK_CHECK(isSparse(self) == isSparse(product), "{}: not available for {} + {}", op,
             layoutName(self), layoutName(product));
  WICK_CHECK(self.dtype() == product.dtype(), "{}: expected scalar type {} but found {}", op,
             scalarTypeName(product.dtype()), scalarTypeName(self.dtype()));
  const Tensor scaled = plain ? product : mulScalar(product, alpha);
  if (isSparse(self)) {
    return no_self ? scaled : add(mulScalar(self, beta), scaled);
  }
  const Tensor whole = self.expand(product.sizes());
  return no_self ? scaled.to(product.dtype())
                 : add(mulScalar(whole, beta), scaled).to(product.dtype());
}

Tensor addmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
             Scalar alpha) {
  WICK_CHECK(!isSparseCoo(self), "addmm: not available for a sum with a tensor in coordinates");
  if (!isSparse(mat1) && !isSparse(mat2)) refuseLayout("addmm", self);
  return blended("addmm", self, mm(mat1, mat2), beta, alpha);
}
Tensor addmv(const Tensor& self, const Tensor& mat, const Tensor& vec, Scalar beta, Scalar alpha) {
  WICK_CHECK(isSparse(mat) && !isSparse(self) && !isSparseCoo(mat),
             "addmv: not available for {} + {} @ {}", layoutName(self), layoutName(mat),
             layoutName(vec));
  return blended("addmv", self, mv(mat, vec), beta, alpha);
}

Tensor sparseMm(const Tensor& sparse, const Tensor& dense) {
  if (!isSparse(sparse) && !isSparse(dense)) refuseLayout("_sparse_mm", sparse);
  return mm(sparse, dense);
}
Tensor sparseAddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                   Scalar alpha) {
  if (!isSparse(mat1) && !isSparse(mat2)) refuseLayout("_sparse_addmm", mat1);
  return addmm(self, mat1, mat2, beta, alpha);
}
Tensor sparseMatmul(const Tensor& self, const Tensor& other) {
  if (!isSparseCoo(self)) refuseLayout("_sparse_sparse_matmul", self);
  if (!isSparseCoo(other)) refuseLayout("_sparse_sparse_matmul", other);
  return sparseTimesSparse("_sparse_sparse_matmul", self, other);
}

// The product as entries of whole rows: those that the first factor has entries in.
Coordinates productRows(const char* op, const Tensor& mat1, const Tensor& mat2) {
  if (!isSparseCoo(mat1)) refuseLayout(op, mat1);
  if (isSparse(mat2)) refuseLayout(op, mat2);
  WICK_CHECK(mat1.dim() == 2 && mat2.dim() == 2, "{}: expected matrices, got {} and {} dimensions",
             op, mat1.dim(), mat2.dim());
  checkFactors(op, mat1, mat2);
  Rows rows = rowsOf(op, mat1);
  Positions used, begin{0};
  for (int64_t r = 0; r < rows.rows; ++r) {
    if (rows.begin[r + 1] == rows.begin[r]) continue;
    used.push_back(r);
    begin.push_back(rows.begin[r + 1]);
  }
  const int64_t all_rows = rows.rows;
  rows.rows = static_cast<int64_t>(used.size());
  rows.begin = std::move(begin);
  Tensor values = Tensor::empty(DimVector{rows.rows, mat2.size(1)}, mat2.dtype());
  multiply(op, rows, mat2.contiguous(), values);
  return {indexTensor(used, DimVector{1, rows.rows}), std::move(values),
          DimVector{all_rows, mat2.size(1)}, false};
}

Tensor hspmm(const Tensor& mat1, const Tensor& mat2) {
  return toTensor(productRows("hspmm", mat1, mat2));
}

Tensor sspaddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                Scalar alpha) {
  if (!isSparseCoo(self)) refuseLayout("sspaddmm", self);
  const Coordinates product = productRows("sspaddmm", mat1, mat2);
  WICK_CHECK(std::ranges::equal(self.sizes(), product.sizes),
             "sspaddmm: expected a tensor of sizes {}, got {}", formatInts(product.sizes),
             formatInts(self.sizes()));
  const Coordinates own = coordinatesOf("sspaddmm", self);
  WICK_CHECK(own.denseDim() == 0 && own.dtype() == product.dtype(),
             "sspaddmm: expected two sparse dimensions and scalar type {}",
             scalarTypeName(product.dtype()));
  const int64_t n = product.sizes[1], rows = product.count();
  Positions at;
  for (int64_t r = 0; r < rows; ++r) at.insert(at.end(), static_cast<size_t>(n), product.row(0)[r]);
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < n; ++c) at.push_back(c);
  }
  const std::vector<Tensor> indices{own.indices, indexTensor(at, DimVector{2, rows * n})};
  const std::vector<Tensor> values{
      mulScalar(own.values, beta).to(own.dtype()),
      mulScalar(product.values, alpha).to(own.dtype()).contiguous().view(DimVector{rows * n})};
  return makeSparseCoo(cat(indices, int64_t{1}), cat(values, int64_t{0}), self.sizes(), false);
}
Tensor smm(const Tensor& self, const Tensor& mat2) {
  if (!isSparseCoo(self)) refuseLayout("smm", self);
  WICK_CHECK(self.dim() == 2 && mat2.dim() == 2, "smm: expected matrices, got {} and {} dimensions",
             self.dim(), mat2.dim());
  return sspaddmm(emptyCoo(2, DimVector{self.size(0), mat2.size(1)}, self.dtype()), self, mat2,
                  Scalar(int64_t{0}), Scalar(int64_t{1}));
}

// A batch of sparse matrices times one of dense ones.
Tensor bmm(const Tensor& self, const Tensor& mat2) {
  WICK_CHECK(!isSparse(mat2), "bmm_sparse: Tensor 'mat2' must be dense");
  if (!isSparseCoo(self)) refuseLayout("bmm", self);
  WICK_CHECK(self.dim() == 3 && mat2.dim() == 3 && self.size(0) == mat2.size(0),
             "bmm_sparse: expected batches of {} matrices, got sizes {} and {}", self.size(0),
             formatInts(self.sizes()), formatInts(mat2.sizes()));
  checkFactors("bmm_sparse", self, mat2);
  const Coordinates c = coalesce(coordinatesOf("bmm", self));
  WICK_CHECK(c.sparseDim() == 3, "bmm_sparse: expected three sparse dimensions, got {}",
             c.sparseDim());
  Tensor out = Tensor::empty(DimVector{self.size(0), self.size(1), mat2.size(2)}, self.dtype());
  const Tensor dense = mat2.contiguous();
  int64_t begin = 0;
  for (int64_t b = 0; b < self.size(0); ++b) {
    checkBudget();
    int64_t end = begin;
    while (end < c.count() && c.row(0)[end] == b) ++end;
    Positions at(c.row(1) + begin, c.row(1) + end);
    at.insert(at.end(), c.row(2) + begin, c.row(2) + end);
    const Tensor matrix =
        makeSparseCoo(indexTensor(at, DimVector{2, end - begin}),
                      c.values.narrow(0, begin, end - begin), self.sizes().subspan(1), true);
    multiply("bmm", rowsOf("bmm", matrix), dense.select(0, b), out.select(0, b));
    begin = end;
  }
  return out;
}

// alpha * (mat1 @ mat2) where self has entries, + beta * self.
Tensor sampledAddmm(const Tensor& self, const Tensor& mat1, const Tensor& mat2, Scalar beta,
                    Scalar alpha) {
  const SparseForm& form = sparseFormOf("sparse_sampled_addmm", self);
  WICK_CHECK(form.layout == SparseLayout::Csr && form.batchDim() == 0 && form.dense_dim == 0,
             "sampled_addmm: Expected self to be a matrix in CSR layout");
  WICK_CHECK(!isSparse(mat1) && !isSparse(mat2) && mat1.dim() == 2 && mat2.dim() == 2,
             "sampled_addmm: Expected mat1 and mat2 to be dense matrices");
  WICK_CHECK(
      mat1.size(1) == mat2.size(0) && mat1.size(0) == self.size(0) && mat2.size(1) == self.size(1),
      "sampled_addmm: mat1 and mat2 shapes cannot be multiplied to {} ({} and {})",
      formatInts(self.sizes()), formatInts(mat1.sizes()), formatInts(mat2.sizes()));
  WICK_CHECK(mat1.dtype() == self.dtype() && mat2.dtype() == self.dtype(),
             "sampled_addmm: Expected mat1 and mat2 to have the dtype {}", toString(self.dtype()));
  WICK_CHECK(
      mat1.device().isCpu() && mat2.device().isCpu(),
      "sampled_addmm: sparse tensors exist on the CPU only, and so must both factors, got {} "
      "and {}",
      mat1.describe(), mat2.describe());
  const Coordinates c = expandedOf("sparse_sampled_addmm", self);
  const Tensor a = mat1.contiguous(), b = mat2.transpose(0, 1).contiguous();
  Tensor sums = Tensor::empty(DimVector{c.count()}, self.dtype());
  const int64_t k = a.size(1);
  dispatch<kFloats | kComplexes>("sparse_sampled_addmm", self.dtype(), [&]<class T>() {
    const T* const x = a.data<T>();
    const T* const y = b.data<T>();
    T* const to = sums.data<T>();
    parallelFor(c.count(), std::max<int64_t>(1, kGrainSize / (k + 1)),
                [&](int64_t first, int64_t last) {
                  for (int64_t i = first; i < last; ++i) {
                    T sum{};
                    for (int64_t j = 0; j < k; ++j) {
                      sum += x[c.row(0)[i] * k + j] * y[c.row(1)[i] * k + j];
                    }
                    to[i] = sum;
                  }
                });
  });
  return withCompressedValues(
      self, add(mulScalar(form.values, beta), mulScalar(sums, alpha)).to(self.dtype()));
}

Tensor linear(const Tensor& input, const Tensor& weight, const Tensor& bias) {
  WICK_CHECK(weight.dim() == 2 && (!bias.defined() || !isSparse(bias)),
             "linear: expected a matrix of weights and a dense bias");
  static const OperatorHandle kT{"aten::t", ""};
  const bool flat = !isSparse(input) && input.dim() != 2;
  Tensor rows = input;
  if (flat) {
    WICK_CHECK(input.dim() >= 1, "linear: expected an input with dimensions");
    rows = input.reshape(DimVector{checkedNumel(input.sizes().subspan(0, input.sizes().size() - 1)),
                                   input.size(-1)});
  }
  Tensor out = matmul(rows, kT(weight));
  if (bias.defined()) out = add(out, bias);
  if (!flat) return out;
  DimVector sizes(input.sizes());
  sizes.back() = weight.size(0);
  return out.reshape(sizes);
}

#define WICK_BLEND \
  "(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor"

constexpr OperatorRecord kProductsRecords[] = {
    {"aten::_sparse_mm(Tensor sparse, Tensor dense) -> Tensor", WICK_KERNEL(sparseMm), kAnyKind},
    {"aten::_sparse_addmm" WICK_BLEND, WICK_KERNEL(sparseAddmm), kAnyKind | kOutForm},
    {"aten::_sparse_sparse_matmul(Tensor self, Tensor other) -> Tensor", WICK_KERNEL(sparseMatmul),
     kAnyKind | kOutForm},
    {"aten::hspmm(Tensor mat1, Tensor mat2) -> Tensor", WICK_KERNEL(hspmm), kAnyKind | kOutForm},
    {"aten::smm(Tensor self, Tensor mat2) -> Tensor", WICK_KERNEL(smm), kAnyKind},
    {"aten::sspaddmm" WICK_BLEND, WICK_KERNEL(sspaddmm), kAnyKind | kOutForm},
    {"aten::sparse_sampled_addmm" WICK_BLEND, WICK_KERNEL(sampledAddmm), kAnyKind | kOutForm},
};
const RegisterOperators kProductsRegistered(kProductsRecords);

constexpr KindKernel kProductsKernels[] = {
    {"aten::mm", WICK_KERNEL(mm)},         {"aten::mv", WICK_KERNEL(mv)},
    {"aten::matmul", WICK_KERNEL(matmul)}, {"aten::addmm", WICK_KERNEL(addmm)},
    {"aten::addmv", WICK_KERNEL(addmv)},   {"aten::bmm", WICK_KERNEL(bmm)},
    {"aten::linear", WICK_KERNEL(linear)},
};
const RegisterKindKernels kProductsKernelsRegistered(TensorKind::Sparse, kProductsKernels);

}  // namespace

}  // namespace wick::ops::sparse
