// Sums, norms and softmax of sparse tensors.
#include <algorithm>
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

// Which dimensions are reduced; RuntimeError for one that is named twice or does not exist.
std::vector<bool> reducedDims(const char* op, IntSpan dims, int64_t num_dims) {
  std::vector<bool> reduced(static_cast<size_t>(num_dims), false);
  for (const int64_t d : dims) {
    const auto at = static_cast<size_t>(wrapDim(d, num_dims));
    WICK_CHECK(at < reduced.size(), "{}: a tensor without dimensions has no dimension {}", op, d);
    WICK_CHECK(!reduced[at], "{}: dim {} appears multiple times in the list of dims", op, at);
    reduced[at] = true;
  }
  return reduced;
}

Tensor sparseSum(const Tensor& self) {
  return sum(coalesce(coordinatesOf("_sparse_sum", self)).values, IValue());
}
Tensor sparseSumDType(const Tensor& self, DType dtype) {
  return sum(coalesce(coordinatesOf("_sparse_sum", self)).values, dtype);
}

Tensor sumAlong(const Coordinates& given, IntSpan dims) {
  const Coordinates c = coalesce(given);
  const auto num_dims = static_cast<int64_t>(c.sizes.size());
  WICK_CHECK(num_dims > 0, "sparse_sum: expected a tensor with dimensions");
  WICK_CHECK(!dims.empty(), "sparse_sum: expected dimensions to sum over, got none");
  const std::vector<bool> reduced = reducedDims("sparse_sum", dims, num_dims);
  const int64_t sparse_dim = c.sparseDim();
  Positions kept;
  DimVector sizes, value_dims;
  for (int64_t d = 0; d < num_dims; ++d) {
    if (!reduced[d]) sizes.push_back(c.sizes[d]);
    if (d < sparse_dim && !reduced[d]) kept.push_back(d);
    if (d >= sparse_dim && reduced[d]) value_dims.push_back(d - sparse_dim + 1);
  }
  if (kept.empty()) {
    value_dims.push_back(0);
    return sumDims(c.values, IntSpan(value_dims), false);
  }
  Coordinates out;
  out.values = (value_dims.empty() ? c.values : sumDims(c.values, IntSpan(value_dims), false));
  out.values = out.values.contiguous();
  const auto num_kept = static_cast<int64_t>(kept.size());
  out.indices = num_kept == sparse_dim ? c.indices
                                       : ops::indexSelect(c.indices, int64_t{0},
                                                          indexTensor(kept, DimVector{num_kept}))
                                             .contiguous();
  out.sizes = std::move(sizes);
  out.coalesced = num_kept == sparse_dim;
  return toTensor(coalesce(out));
}
Tensor sparseSumDim(const Tensor& self, DimVector dim) {
  return sumAlong(coordinatesOf("_sparse_sum", self), dim);
}
Tensor sparseSumDimDType(const Tensor& self, DimVector dim, DType dtype) {
  return sumAlong(toDType(coordinatesOf("_sparse_sum", self), dtype), dim);
}

// The gradient of _sparse_sum: that of the sums, where the input has entries.
Tensor sparseSumBackward(const Tensor& grad, const Tensor& self, DimVector dim) {
  const Coordinates c = coalesce(coordinatesOf("_sparse_sum_backward", self));
  DimVector shape(grad.sizes());
  const std::vector<bool> reduced =
      reducedDims("_sparse_sum_backward", dim, static_cast<int64_t>(c.sizes.size()));
  Tensor whole =
      grad.kind() == TensorKind::Sparse ? toDense(expandedOf("_sparse_sum_backward", grad)) : grad;
  for (size_t d = 0; d < reduced.size(); ++d) {
    if (reduced[d]) whole = whole.unsqueeze(static_cast<int64_t>(d));
  }
  return ops::sparseMask(whole.expand(c.sizes), toTensor(c));
}

Tensor valuesToReduce(const char* op, const Tensor& self) {
  const SparseForm& form = sparseFormOf(op, self);
  return form.isCoo() ? coalesce(coordinatesOf(op, self)).values : form.values;
}

Tensor sumAll(const Tensor& self, std::optional<DType> dtype) {
  return sum(valuesToReduce("sum", self), dtype ? IValue(static_cast<int64_t>(*dtype)) : IValue());
}

// Of a matrix in CSR layout; the dimensions stay, of size 1.
template <bool kProduct>
Tensor csrReduced(const Tensor& self, DimVector dim, bool keepdim, std::optional<DType> dtype) {
  constexpr const char* kName = kProduct ? "_sparse_csr_prod" : "_sparse_csr_sum";
  const SparseForm& form = sparseFormOf(kName, self);
  WICK_CHECK(form.layout == SparseLayout::Csr && form.batchDim() == 0 && form.dense_dim == 0,
             "{}: expected a matrix in CSR layout", kName);
  WICK_CHECK(keepdim, "reduction operations on CSR tensors with keepdim=False is unsupported");
  const std::vector<bool> reduced = reducedDims(kName, dim, 2);
  if (dim.empty()) return self;
  Coordinates c = coalesce(expandedOf(kName, self));
  if (dtype) {
    c = toDType(c, *dtype);
  } else if (isIntegral(c.dtype(), true)) {
    c = toDType(c, DType::Long);
  }
  Tensor indices = c.indices.clone();
  DimVector sizes = c.sizes;
  for (int64_t d = 0; d < 2; ++d) {
    if (!reduced[d]) continue;
    std::fill_n(indices.data<int64_t>() + d * c.count(), c.count(), 0);
    sizes[d] = 1;
  }
  c.indices = indices;
  c.sizes = sizes;
  c.coalesced = false;
  if (!kProduct) return compress(kName, c, SparseLayout::Csr, kOne);
  // Of each place the product of its entries, in the order of the places.
  const Coordinates groups = coalesce(c);
  const Positions at = places(c), group_at = places(groups);
  Tensor values = Tensor::full(DimVector{groups.count()}, 1, c.dtype());
  dispatch<kRealNumbers | kComplexes>(kName, c.dtype(), [&]<class T>() {
    T* const to = values.data<T>();
    const T* const from = c.values.data<T>();
    Pace pace;
    for (size_t i = 0; i < at.size(); ++i) {
      pace.step(8);
      const auto g = std::lower_bound(group_at.begin(), group_at.end(), at[i]) - group_at.begin();
      if constexpr (dtypeCategory<T>() == kReducedFloats) {
        to[g] = T(static_cast<float>(to[g]) * static_cast<float>(from[i]));
      } else {
        to[g] = static_cast<T>(to[g] * from[i]);
      }
    }
  });
  return compress(kName, withValues(groups, values), SparseLayout::Csr, kOne);
}

Tensor any(const Tensor& self) {
  if (!isSparseCoo(self)) refuseLayout("any", self);
  return ops::any(coalesce(coordinatesOf("any", self)).values);
}

// ---- norms ----

Tensor normOf(const Tensor& self, const IValue& p, IntSpan dim, bool keepdim,
              std::optional<DType> dtype) {
  if (!isSparseCoo(self)) refuseLayout("norm", self);
  WICK_CHECK(
      dim.empty() || static_cast<int64_t>(dim.size()) == self.dim(),
      "norm_sparse currently only supports full reductions, so 'dim' must either be empty or "
      "contain all dimensions of the input");
  reducedDims("norm", dim, self.dim());
  WICK_CHECK(!dtype, "norm_sparse currently does not support 'dtype' argument");
  static const OperatorHandle kNorm{"aten::norm", "ScalarOpt_dim"};
  const Coordinates c = coalesce(coordinatesOf("norm", self));
  const Tensor flat = c.values.view(DimVector{-1});
  const Tensor norm = kNorm(flat, p, IntSpan(DimVector{0}), false);
  return keepdim ? norm.reshape(DimVector(static_cast<size_t>(self.dim()), 1)) : norm;
}
Tensor normScalar(const Tensor& self, Scalar p) {
  return normOf(self, p.toIValue(), {}, false, std::nullopt);
}
Tensor normDim(const Tensor& self, IValue p, DimVector dim, bool keepdim) {
  return normOf(self, p, dim, keepdim, std::nullopt);
}
Tensor normDimDType(const Tensor& self, IValue p, DimVector dim, bool keepdim, DType dtype) {
  return normOf(self, p, dim, keepdim, dtype);
}
Tensor nativeNormDim(const Tensor& self, IValue p, DimVector dim, bool keepdim,
                     std::optional<DType> dtype) {
  return normOf(self, p, dim, keepdim, dtype);
}
Tensor dist(const Tensor& self, const Tensor& other, Scalar p) {
  return normOf(sub(self, other, int64_t{1}), p.toIValue(), {}, false, std::nullopt);
}
Tensor frobenius(const Tensor& self) {
  return normOf(self, IValue(2.0), {}, false, std::nullopt);
}
Tensor frobeniusDim(const Tensor& self, DimVector dim, bool keepdim) {
  return normOf(self, IValue(2.0), dim, keepdim, std::nullopt);
}

// ---- softmax: over the entries that there are ----

// Which line along `dim` each entry lies on, numbered from 0; returns how many there are.
int64_t linesAlong(const Coordinates& c, int64_t dim, Positions& line) {
  Coordinates others = c;
  Positions kept;
  others.sizes.clear();
  for (int64_t d = 0; d < c.sparseDim(); ++d) {
    if (d == dim) continue;
    kept.push_back(d);
    others.sizes.push_back(c.sizes[d]);
  }
  line.assign(static_cast<size_t>(c.count()), 0);
  if (kept.empty() || c.count() == 0) return 1;
  const auto num_kept = static_cast<int64_t>(kept.size());
  others.indices =
      ops::indexSelect(c.indices, int64_t{0}, indexTensor(kept, DimVector{num_kept})).contiguous();
  const Positions at = places(others);
  Positions sorted = at;
  std::sort(sorted.begin(), sorted.end());
  sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
  Pace pace;
  for (size_t i = 0; i < at.size(); ++i) {
    pace.step(8);
    line[i] = std::lower_bound(sorted.begin(), sorted.end(), at[i]) - sorted.begin();
  }
  return static_cast<int64_t>(sorted.size());
}

template <class T>
void softmaxLines(const T* from, T* to, int64_t count, int64_t inner, const Positions& line,
                  int64_t lines, bool log) {
  CountedVector<T> most(static_cast<size_t>(lines * inner), -INFINITY);
  CountedVector<T> sums(static_cast<size_t>(lines * inner), 0);
  Pace pace;
  const auto each = [&](auto&& f) {
    for (int64_t i = 0; i < count; ++i) {
      pace.step(inner);
      for (int64_t k = 0; k < inner; ++k) f(i * inner + k, line[i] * inner + k);
    }
  };
  each([&](int64_t i, int64_t l) { most[l] = std::max(most[l], from[i]); });
  each([&](int64_t i, int64_t l) { sums[l] += std::exp(from[i] - most[l]); });
  each([&](int64_t i, int64_t l) {
    to[i] = log ? from[i] - most[l] - std::log(sums[l]) : std::exp(from[i] - most[l]) / sums[l];
  });
}

Tensor softmaxOf(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype,
                 bool log) {
  Coordinates c = coordinatesOf(op, self);
  if (dtype) c = toDType(c, *dtype);
  c = coalesce(c);
  const auto num_dims = static_cast<int64_t>(c.sizes.size());
  WICK_CHECK(num_dims > 0, "{}: expected a tensor with dimensions", op);
  const int64_t along = wrapDim(dim, num_dims);
  WICK_CHECK(c.dtype() == DType::Float || c.dtype() == DType::Double,
             "{}: \"softmax\" not implemented for '{}'", op, scalarTypeName(c.dtype()));
  if (along >= c.sparseDim()) {
    const int64_t within = along - c.sparseDim() + 1;
    return toTensor(withValues(c, log ? ops::logSoftmax(c.values, within, IValue())
                                      : softmax(c.values, within, IValue())));
  }
  Positions line;
  const int64_t lines = linesAlong(c, along, line);
  Tensor values = Tensor::empty(c.values.sizes(), c.dtype());
  dispatch<kFloats>(op, c.dtype(), [&]<class T>() {
    softmaxLines(c.values.data<T>(), values.data<T>(), c.count(), c.inner(), line, lines, log);
  });
  return toTensor(withValues(c, values));
}

template <bool kLog>
constexpr const char* kSoftmaxName = kLog ? "_sparse_log_softmax" : "_sparse_softmax";

template <bool kLog>
Tensor softmaxInt(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return softmaxOf(kSoftmaxName<kLog>, self, dim, dtype, kLog);
}
template <bool kLog>
Tensor softmaxPlain(const Tensor& self, int64_t dim, bool half_to_float) {
  WICK_CHECK(!half_to_float, "softmax with half to float conversion is not supported on CPU");
  return softmaxOf(kSoftmaxName<kLog>, self, dim, std::nullopt, kLog);
}

// grad_input = (grad - sum(grad * output)) * output, for logarithms grad - exp(output) * sum(grad),
// the sums along the lines of the output's entries.
template <bool kLog>
Tensor softmaxBackward(const Tensor& grad_output, const Tensor& output, int64_t dim,
                       const Tensor& self) {
  constexpr const char* kName =
      kLog ? "_sparse_log_softmax_backward_data" : "_sparse_softmax_backward_data";
  const Coordinates out = coalesce(coordinatesOf(kName, output));
  const Tensor whole = grad_output.kind() == TensorKind::Sparse
                           ? toDense(expandedOf(kName, grad_output))
                           : grad_output;
  const Coordinates grad =
      toDType(coordinatesOf(kName, ops::sparseMask(whole, toTensor(out))), out.dtype());
  const int64_t along = wrapDim(dim, std::max<int64_t>(self.dim(), 1));
  if (along >= out.sparseDim()) {
    static const OperatorHandle kPlain{"aten::_softmax_backward_data", ""};
    static const OperatorHandle kLogs{"aten::_log_softmax_backward_data", ""};
    const int64_t within = along - out.sparseDim() + 1;
    const auto& backward = kLog ? kLogs : kPlain;
    return toTensor(withValues(out, backward(grad.values, out.values, within, out.dtype())));
  }
  Positions line;
  const int64_t lines = linesAlong(out, along, line), inner = out.inner();
  Tensor values = Tensor::empty(out.values.sizes(), out.dtype());
  dispatch<kFloats>(kName, out.dtype(), [&]<class T>() {
    const T* const g = grad.values.data<T>();
    const T* const y = out.values.data<T>();
    T* const to = values.data<T>();
    CountedVector<T> sums(static_cast<size_t>(lines * inner), 0);
    Pace pace;
    for (int64_t i = 0; i < out.count(); ++i) {
      pace.step(inner);
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t e = i * inner + k;
        sums[line[i] * inner + k] += kLog ? g[e] : g[e] * y[e];
      }
    }
    for (int64_t i = 0; i < out.count(); ++i) {
      pace.step(inner);
      for (int64_t k = 0; k < inner; ++k) {
        const int64_t e = i * inner + k;
        const T sum = sums[line[i] * inner + k];
        to[e] = kLog ? g[e] - std::exp(y[e]) * sum : (g[e] - sum) * y[e];
      }
    }
  });
  return toTensor(withValues(out, values));
}

constexpr OperatorRecord kReductionsRecords[] = {
    {"aten::_sparse_sum(Tensor self) -> Tensor", WICK_KERNEL(sparseSum), kAnyKind},
    {"aten::_sparse_sum.dtype(Tensor self, *, ScalarType dtype) -> Tensor",
     WICK_KERNEL(sparseSumDType), kAnyKind},
    {"aten::_sparse_sum.dim(Tensor self, int[1] dim) -> Tensor", WICK_KERNEL(sparseSumDim),
     kAnyKind | kOutForm},
    {"aten::_sparse_sum.dim_dtype(Tensor self, int[1] dim, *, ScalarType dtype) -> Tensor",
     WICK_KERNEL(sparseSumDimDType), kAnyKind},
    {"aten::_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
     WICK_KERNEL(sparseSumBackward), kAnyKind},
    {"aten::_sparse_csr_sum.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     WICK_KERNEL(csrReduced<false>), kAnyKind},
    {"aten::_sparse_csr_prod.dim_dtype(Tensor self, int[1] dim, bool keepdim=False, *, ScalarType? "
     "dtype=None) -> Tensor",
     WICK_KERNEL(csrReduced<true>), kAnyKind},
    {"aten::_sparse_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(softmaxInt<false>), kAnyKind},
    {"aten::_sparse_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     WICK_KERNEL(softmaxPlain<false>), kAnyKind},
    {"aten::_sparse_log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
     WICK_KERNEL(softmaxInt<true>), kAnyKind},
    {"aten::_sparse_log_softmax(Tensor self, int dim, bool half_to_float) -> Tensor",
     WICK_KERNEL(softmaxPlain<true>), kAnyKind},
    {"aten::_sparse_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor self) "
     "-> Tensor",
     WICK_KERNEL(softmaxBackward<false>), kAnyKind},
    {"aten::_sparse_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, Tensor "
     "self) -> Tensor",
     WICK_KERNEL(softmaxBackward<true>), kAnyKind},
};
const RegisterOperators kReductionsRegistered(kReductionsRecords);

constexpr KindKernel kReductionsKernels[] = {
    {"aten::sum", WICK_KERNEL(sumAll)},
    {"aten::any", WICK_KERNEL(any)},
    {"aten::norm.Scalar", WICK_KERNEL(normScalar)},
    {"aten::norm.ScalarOpt_dim", WICK_KERNEL(normDim)},
    {"aten::norm.ScalarOpt_dim_dtype", WICK_KERNEL(normDimDType)},
    {"aten::native_norm", WICK_KERNEL(normScalar)},
    {"aten::native_norm.ScalarOpt_dim_dtype", WICK_KERNEL(nativeNormDim)},
    {"aten::dist", WICK_KERNEL(dist)},
    {"aten::frobenius_norm", WICK_KERNEL(frobenius)},
    {"aten::frobenius_norm.dim", WICK_KERNEL(frobeniusDim)},
};
const RegisterKindKernels kReductionsKernelsRegistered(TensorKind::Sparse, kReductionsKernels);

}  // namespace

}  // namespace wick::ops::sparse
