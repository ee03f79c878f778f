#include "core/sparse_form.h"

#include "core/budget.h"
#include "core/error.h"

namespace wick {

namespace {

// Reads an index tensor of either integer type.
int64_t indexAt(const Tensor& t, int64_t i) {
  return t.dtype() == DType::Int ? t.data<int32_t>()[i] : t.data<int64_t>()[i];
}

void checkIndexTensor(const char* what, const Tensor& t) {
  WICK_CHECK(t.defined() && t.kind() == TensorKind::Dense && t.device().isCpu(),
             "sparse tensor: {} must be a dense tensor on the CPU", what);
}

void checkCooIndices(const SparseForm& form, IntSpan sizes) {
  const Tensor indices = form.indices.contiguous();
  const int64_t count = form.count();
  const int64_t* at = indices.data<int64_t>();
  Pace pace;
  for (int64_t d = 0; d < form.sparse_dim; ++d) {
    for (int64_t i = 0; i < count; ++i) {
      pace.step();
      const int64_t index = at[d * count + i];
      WICK_CHECK(index >= 0, "found negative index {} for dim {}", index, d);
      WICK_CHECK(index < sizes[d],
                 "size is inconsistent with indices: for dim {}, size is {} but found index {}", d,
                 sizes[d], index);
    }
  }
}

void checkCompressedIndices(const SparseForm& form, int64_t rows, int64_t columns) {
  const char* compressed_name = isByRows(form.layout) ? "crow_indices" : "ccol_indices";
  const char* plain_name = isByRows(form.layout) ? "col_indices" : "row_indices";
  const Tensor compressed = form.compressed.contiguous();
  const Tensor plain = form.plain.contiguous();
  const int64_t count = form.count();
  const int64_t batches = compressed.numel() / (rows + 1);
  Pace pace;
  for (int64_t b = 0; b < batches; ++b) {
    const int64_t first = b * (rows + 1);
    WICK_CHECK(indexAt(compressed, first) == 0, "`{}[..., 0] == 0` is not satisfied.",
               compressed_name);
    WICK_CHECK(indexAt(compressed, first + rows) == count, "`{}[..., -1] == nnz` is not satisfied.",
               compressed_name);
    for (int64_t r = 0; r < rows; ++r) {
      const int64_t begin = indexAt(compressed, first + r);
      const int64_t end = indexAt(compressed, first + r + 1);
      // The first begins at 0, so that all lie within the entries.
      WICK_CHECK(begin <= end && end - begin <= columns && end <= count,
                 "`0 <= {0}[..., 1:] - {0}[..., :-1] <= {1}` is not satisfied.", compressed_name,
                 columns);
      int64_t before = -1;
      for (int64_t i = begin; i < end; ++i) {
        pace.step();
        const int64_t index = indexAt(plain, b * count + i);
        WICK_CHECK(index >= 0 && index < columns, "`0 <= {} < {}` is not satisfied.", plain_name,
                   columns);
        WICK_CHECK(index > before, "`{}` must be sorted and distinct along the last dimension.",
                   plain_name);
        before = index;
      }
      pace.step();
    }
  }
}

Tensor makeTensor(Ref<SparseForm> form, IntSpan sizes) {
  const DType dtype = form->values.dtype();
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->becomeFormless(TensorKind::Sparse, form, dtype, DimVector(sizes));
  return Tensor(std::move(impl));
}

bool sameSizes(IntSpan a, IntSpan b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end());
}

}  // namespace

std::string_view toString(SparseLayout layout) {
  switch (layout) {
    case SparseLayout::Coo:
      return "Sparse";
    case SparseLayout::Csr:
      return "SparseCsr";
    case SparseLayout::Csc:
      return "SparseCsc";
    case SparseLayout::Bsr:
      return "SparseBsr";
    case SparseLayout::Bsc:
      return "SparseBsc";
  }
  return "unknown";
}

bool isSparseLayout(int64_t number) {
  return toString(static_cast<SparseLayout>(number)) != "unknown";
}

void checkIndices(const SparseForm& form, IntSpan sizes) {
  if (form.isCoo()) {
    checkCooIndices(form, sizes);
    return;
  }
  const auto batch = static_cast<size_t>(form.batchDim());
  const bool by_rows = isByRows(form.layout);
  int64_t rows = sizes[batch + (by_rows ? 0 : 1)], columns = sizes[batch + (by_rows ? 1 : 0)];
  if (isBlocked(form.layout)) {
    const IntSpan block = form.values.sizes().subspan(batch + 1, 2);
    rows /= block[by_rows ? 0 : 1];
    columns /= block[by_rows ? 1 : 0];
  }
  checkCompressedIndices(form, rows, columns);
}

Tensor makeSparseCoo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced) {
  checkIndexTensor("indices", indices);
  checkIndexTensor("values", values);
  WICK_CHECK(indices.dtype() == DType::Long, "indices must be an int64 tensor, got {}",
             toString(indices.dtype()));
  WICK_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: {}",
             formatInts(indices.sizes()));
  WICK_CHECK(values.dim() >= 1, "values must have a dimension of entries, but got none");
  const int64_t sparse_dim = indices.size(0), count = indices.size(1);
  const int64_t dense_dim = values.dim() - 1;
  WICK_CHECK(values.size(0) == count,
             "indices and values must have same nnz, but got nnz from indices: {}, nnz from "
             "values: {}",
             count, values.size(0));
  WICK_CHECK(sparse_dim + dense_dim == static_cast<int64_t>(sizes.size()),
             "number of dimensions must be sparse_dim ({}) + dense_dim ({}), but got {}",
             sparse_dim, dense_dim, sizes.size());
  WICK_CHECK(sameSizes(sizes.subspan(static_cast<size_t>(sparse_dim)), values.sizes().subspan(1)),
             "values has incorrect size, expected {} after the first, got {}",
             formatInts(sizes.subspan(static_cast<size_t>(sparse_dim))),
             formatInts(values.sizes().subspan(1)));
  checkedNumel(sizes);
  Ref<SparseForm> form = makeRef<SparseForm>();
  form->indices = indices.detach();
  form->values = values.detach();
  form->sparse_dim = sparse_dim;
  form->dense_dim = dense_dim;
  form->coalesced = coalesced || count < 2;
  checkIndices(*form, sizes);
  return makeTensor(std::move(form), sizes);
}

Tensor makeSparseCompressed(SparseLayout layout, const Tensor& compressed, const Tensor& plain,
                            const Tensor& values, IntSpan sizes) {
  WICK_CHECK(layout != SparseLayout::Coo && isSparseLayout(static_cast<int64_t>(layout)),
             "expected a compressed sparse layout, got {}", static_cast<int64_t>(layout));
  checkIndexTensor("the compressed indices", compressed);
  checkIndexTensor("the plain indices", plain);
  checkIndexTensor("the values", values);
  WICK_CHECK(compressed.dtype() == plain.dtype() &&
                 (plain.dtype() == DType::Int || plain.dtype() == DType::Long),
             "compressed and plain indices must both be int32 or int64, got {} and {}",
             toString(compressed.dtype()), toString(plain.dtype()));
  WICK_CHECK(compressed.dim() >= 1 && compressed.dim() == plain.dim(),
             "compressed and plain indices must have the same number of dimensions, at least one, "
             "got {} and {}",
             compressed.dim(), plain.dim());
  const int64_t batch = compressed.dim() - 1, block = isBlocked(layout) ? 2 : 0;
  const int64_t dense_dim = values.dim() - batch - 1 - block;
  WICK_CHECK(dense_dim >= 0, "values must have at least {} dimensions, got {}", batch + 1 + block,
             values.dim());
  WICK_CHECK(static_cast<int64_t>(sizes.size()) == batch + 2 + dense_dim,
             "number of dimensions must be {} + 2 + {} (batch, matrix, dense), but got {}", batch,
             dense_dim, sizes.size());
  checkedNumel(sizes);
  const auto b = static_cast<size_t>(batch);
  const IntSpan batches = sizes.subspan(0, b);
  WICK_CHECK(sameSizes(batches, compressed.sizes().subspan(0, b)) &&
                 sameSizes(batches, plain.sizes().subspan(0, b)) &&
                 sameSizes(batches, values.sizes().subspan(0, b)),
             "all batch dimensions must be equal, expected {}", formatInts(batches));
  WICK_CHECK(values.size(batch) == plain.size(batch),
             "plain indices and values must have same nnz, but got {} and {}", plain.size(batch),
             values.size(batch));
  WICK_CHECK(
      sameSizes(sizes.subspan(b + 2), values.sizes().subspan(b + 1 + static_cast<size_t>(block))),
      "the values' dense sizes do not fit the size {}", formatInts(sizes));
  int64_t rows = sizes[b + (isByRows(layout) ? 0 : 1)];
  if (block != 0) {
    for (size_t d = 0; d < 2; ++d) {
      const int64_t extent = values.sizes()[b + 1 + d];
      WICK_CHECK(extent > 0 && sizes[b + d] % extent == 0,
                 "size {} must be divisible by the block size {}", sizes[b + d], extent);
    }
    rows /= values.sizes()[b + 1 + (isByRows(layout) ? 0 : 1)];
  }
  WICK_CHECK(compressed.size(batch) == rows + 1,
             "compressed indices must have {} elements (one more than is compressed), got {}",
             rows + 1, compressed.size(batch));
  Ref<SparseForm> form = makeRef<SparseForm>();
  form->layout = layout;
  form->compressed = compressed.detach();
  form->plain = plain.detach();
  form->values = values.detach();
  form->sparse_dim = 2;
  form->dense_dim = dense_dim;
  checkIndices(*form, sizes);
  return makeTensor(std::move(form), sizes);
}

Tensor makeEmptySparse(SparseLayout layout, IntSpan sizes, DType dtype) {
  checkedNumel(sizes);
  if (layout == SparseLayout::Coo) {
    const DimVector shape{static_cast<int64_t>(sizes.size()), 0};
    return makeSparseCoo(Tensor::empty(shape, DType::Long), Tensor::empty(DimVector{0}, dtype),
                         sizes, true);
  }
  WICK_CHECK(
      !isBlocked(layout) && sizes.size() >= 2,
      "empty: only batched sparse compressed (non-block) tensors are supported, but got size "
      "{} of layout {}",
      formatInts(sizes), toString(layout));
  DimVector compressed(sizes.subspan(0, sizes.size() - 2)), plain = compressed;
  compressed.push_back(sizes[sizes.size() - (isByRows(layout) ? 2 : 1)] + 1);
  plain.push_back(0);
  return makeSparseCompressed(layout, Tensor::zeros(compressed, DType::Long),
                              Tensor::empty(plain, DType::Long), Tensor::empty(plain, dtype),
                              sizes);
}

const SparseForm& sparseFormOf(std::string_view op, const Tensor& t) {
  WICK_CHECK(t.defined() && t.kind() == TensorKind::Sparse, "{}: expected a sparse tensor, got {}",
             op, t.defined() ? "a dense one" : "None");
  return static_cast<const SparseForm&>(*t.form());
}

Tensor mapSparse(const Tensor& t, const std::function<Tensor(const Tensor&)>& of_indices,
                 const std::function<Tensor(const Tensor&)>& of_values) {
  const SparseForm& form = sparseFormOf("sparse tensor", t);
  if (form.isCoo()) {
    return makeSparseCoo(of_indices(form.indices), of_values(form.values), t.sizes(),
                         form.coalesced);
  }
  return makeSparseCompressed(form.layout, of_indices(form.compressed), of_indices(form.plain),
                              of_values(form.values), t.sizes());
}

bool isSparseCoo(const Tensor& t) {
  return t.defined() && t.kind() == TensorKind::Sparse &&
         static_cast<const SparseForm&>(*t.form()).isCoo();
}

}  // namespace wick
