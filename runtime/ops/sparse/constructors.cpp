// Operators that make sparse tensors of indices and values, and that check these.
#include "core/budget.h"
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

using OptionalDType = std::optional<DType>;

// The layout option of a maker, when it is given.
void checkLayoutOption(const char* op, const IValue& layout, bool coo) {
  if (layout.isNone()) return;
  const int64_t number = layout.toInt();
  WICK_CHECK(
      isSparseLayout(number) && (static_cast<SparseLayout>(number) == SparseLayout::Coo) == coo,
      "{}: expected sparse layout, but got layout {}", op, number);
}

Tensor withEntries(const Tensor& values) {
  return values.dim() == 0 ? values.expand(DimVector{1}) : values;
}

// `coalesced`: whether the caller says that the indices ascend and each is there once.
Tensor cooTensor(const Tensor& indices, const Tensor& values, IntSpan size,
                 std::optional<bool> coalesced) {
  Tensor made = makeSparseCoo(indices, withEntries(values), size, false);
  if (!coalesced.value_or(false)) return made;
  const Coordinates sorted = coalesce(coordinatesOf("sparse_coo_tensor", made));
  WICK_CHECK(ops::equal.all(sorted.indices, indices)[0].toBool(),
             "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor");
  return makeSparseCoo(indices, withEntries(values), size, true);
}

// PyTorch takes the dtype of the values whatever the option says.
Tensor cooOfSize(const Tensor& indices, const Tensor& values, DimVector size, OptionalDType,
                 IValue layout, std::optional<Device>, IValue, std::optional<bool> coalesced) {
  checkLayoutOption("sparse_coo_tensor", layout, true);
  return cooTensor(indices, values, size, coalesced);
}

Tensor cooInferred(const Tensor& indices, const Tensor& values, OptionalDType dtype, IValue layout,
                   std::optional<Device> device, IValue pin, std::optional<bool> coalesced) {
  WICK_CHECK(indices.dim() == 2, "indices must be sparse_dim x nnz, but got: {}",
             formatInts(indices.sizes()));
  WICK_CHECK(indices.dtype() == DType::Long, "indices must be an int64 tensor, got {}",
             toString(indices.dtype()));
  const Tensor all = indices.contiguous();
  const int64_t count = all.size(1);
  DimVector sizes;
  Pace pace;
  for (int64_t d = 0; d < all.size(0); ++d) {
    int64_t size = 0;
    for (int64_t i = 0; i < count; ++i) {
      pace.step();
      const int64_t index = all.data<int64_t>()[d * count + i];
      WICK_CHECK(index >= 0, "found negative index {} for dim {}", index, d);
      WICK_CHECK(index < kMaxElements, "sparse_coo_tensor: the index {} is too large", index);
      size = std::max(size, index + 1);
    }
    sizes.push_back(size);
  }
  const Tensor entries = withEntries(values);
  for (const int64_t s : entries.sizes().subspan(1)) sizes.push_back(s);
  return cooOfSize(indices, values, sizes, dtype, std::move(layout), device, std::move(pin),
                   coalesced);
}

Tensor cooEmpty(DimVector size, OptionalDType dtype, IValue layout, std::optional<Device>, IValue) {
  checkLayoutOption("sparse_coo_tensor", layout, true);
  return makeEmptySparse(SparseLayout::Coo, size, dtype.value_or(defaultDType()));
}

void checkDims(int64_t sparse_dim, int64_t dense_dim, IntSpan size) {
  WICK_CHECK(sparse_dim >= 0 && dense_dim >= 0 && sparse_dim <= static_cast<int64_t>(size.size()) &&
                 dense_dim == static_cast<int64_t>(size.size()) - sparse_dim,
             "number of dimensions must be sparse_dim ({}) + dense_dim ({}), but got {}",
             sparse_dim, dense_dim, size.size());
}

Tensor cooWithDims(int64_t sparse_dim, int64_t dense_dim, DimVector size, OptionalDType dtype,
                   IValue layout, std::optional<Device>, IValue) {
  checkLayoutOption("_sparse_coo_tensor_with_dims", layout, true);
  checkDims(sparse_dim, dense_dim, size);
  return emptyCoo(sparse_dim, size, dtype.value_or(defaultDType()));
}

Tensor cooWithTensors(int64_t sparse_dim, int64_t dense_dim, DimVector size, const Tensor& indices,
                      const Tensor& values, OptionalDType, IValue layout, std::optional<Device>,
                      IValue, std::optional<bool> coalesced) {
  checkLayoutOption("_sparse_coo_tensor_with_dims_and_tensors", layout, true);
  checkDims(sparse_dim, dense_dim, size);
  return cooTensor(indices, values, size, coalesced);
}

// Memory is never pinned here, so that there is nothing to check of it.
void validateCoo(const Tensor& indices, const Tensor& values, DimVector size,
                 std::optional<bool> coalesced, IValue) {
  cooTensor(indices, values, size, coalesced);
}

// ---- compressed ----

Tensor compressedOf(SparseLayout layout, const Tensor& compressed, const Tensor& plain,
                    const Tensor& values, IntSpan size, OptionalDType dtype, const IValue& option) {
  WICK_CHECK(option.isNone() || option.toInt() == static_cast<int64_t>(layout),
             "expected layout {}, got layout {}", toString(layout), option.toInt());
  WICK_CHECK(!dtype || *dtype == values.dtype(),
             "dtype of values ({}) must match dtype of sparse tensor ({})",
             toString(values.dtype()), toString(*dtype));
  return makeSparseCompressed(layout, compressed, plain, values, size);
}

// The sizes that the indices ask for.
DimVector inferredSizes(SparseLayout layout, const Tensor& compressed, const Tensor& plain,
                        const Tensor& values) {
  WICK_CHECK(compressed.dim() >= 1 && compressed.dim() == plain.dim(),
             "compressed and plain indices must have the same number of dimensions, at least one, "
             "got {} and {}",
             compressed.dim(), plain.dim());
  const int64_t batch = compressed.dim() - 1, block_dims = isBlocked(layout) ? 2 : 0;
  WICK_CHECK(values.dim() >= batch + 1 + block_dims,
             "values must have at least {} dimensions, got {}", batch + 1 + block_dims,
             values.dim());
  WICK_CHECK(plain.dtype() == DType::Int || plain.dtype() == DType::Long,
             "compressed and plain indices must both be int32 or int64, got {}",
             toString(plain.dtype()));
  int64_t lines = compressed.size(-1) - 1, others = 0;
  WICK_CHECK(lines >= 0, "compressed indices must have at least one element");
  const Tensor wide = plain.to(DType::Long).contiguous();
  Pace pace;
  for (int64_t i = 0; i < wide.numel(); ++i) {
    pace.step();
    const int64_t index = wide.data<int64_t>()[i];
    WICK_CHECK(index >= 0 && index < kMaxElements, "plain indices must not be {}", index);
    others = std::max(others, index + 1);
  }
  DimVector sizes(plain.sizes().subspan(0, static_cast<size_t>(batch)));
  int64_t rows = isByRows(layout) ? lines : others, columns = isByRows(layout) ? others : lines;
  if (block_dims != 0) {
    WICK_CHECK(!__builtin_mul_overflow(rows, values.size(batch + 1), &rows) &&
                   !__builtin_mul_overflow(columns, values.size(batch + 2), &columns),
               "the sizes that the indices ask for are too large");
  }
  sizes.push_back(rows);
  sizes.push_back(columns);
  for (int64_t d = batch + 1 + block_dims; d < values.dim(); ++d) sizes.push_back(values.size(d));
  return sizes;
}

template <SparseLayout kLayout>
Tensor ofSize(const Tensor& compressed, const Tensor& plain, const Tensor& values, DimVector size,
              OptionalDType dtype, IValue layout, std::optional<Device>, IValue) {
  return compressedOf(kLayout, compressed, plain, values, size, dtype, layout);
}
template <SparseLayout kLayout>
Tensor inferred(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                OptionalDType dtype, IValue layout, std::optional<Device>, IValue) {
  return compressedOf(kLayout, compressed, plain, values,
                      inferredSizes(kLayout, compressed, plain, values), dtype, layout);
}
template <SparseLayout kLayout>
void validate(const Tensor& compressed, const Tensor& plain, const Tensor& values, DimVector size,
              IValue) {
  makeSparseCompressed(kLayout, compressed, plain, values, size);
}

SparseLayout givenLayout(const IValue& layout) {
  WICK_CHECK(!layout.isNone(),
             "sparse_compressed_tensor expected sparse compressed tensor layout "
             "but got none");
  return static_cast<SparseLayout>(layout.toInt());
}
Tensor anyOfSize(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                 DimVector size, OptionalDType dtype, IValue layout, std::optional<Device>,
                 IValue) {
  return compressedOf(givenLayout(layout), compressed, plain, values, size, dtype, layout);
}
Tensor anyInferred(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                   OptionalDType dtype, IValue layout, std::optional<Device>, IValue) {
  const SparseLayout which = givenLayout(layout);
  return compressedOf(which, compressed, plain, values,
                      inferredSizes(which, compressed, plain, values), dtype, layout);
}
void validateAny(const Tensor& compressed, const Tensor& plain, const Tensor& values,
                 DimVector size, int64_t layout, IValue) {
  makeSparseCompressed(static_cast<SparseLayout>(layout), compressed, plain, values, size);
}

// ---- indices by themselves ----

void validateIndices(bool is_crow, const Tensor& compressed, const Tensor& plain, int64_t cdim,
                     int64_t dim, int64_t nnz) {
  WICK_CHECK(plain.dim() >= 1 && plain.size(-1) == nnz,
             "_validate_compressed_sparse_indices: expected {} plain indices, got sizes {}", nnz,
             formatInts(plain.sizes()));
  WICK_CHECK(cdim >= 0 && dim >= 0, "_validate_compressed_sparse_indices: negative sizes {} and {}",
             cdim, dim);
  DimVector sizes(plain.sizes().subspan(0, plain.sizes().size() - 1));
  sizes.push_back(is_crow ? cdim : dim);
  sizes.push_back(is_crow ? dim : cdim);
  makeSparseCompressed(is_crow ? SparseLayout::Csr : SparseLayout::Csc, compressed, plain,
                       Tensor::zeros(plain.sizes(), DType::Bool), sizes);
}

Tensor compressIndices(const Tensor& self, int64_t size, bool out_int32) {
  WICK_CHECK(self.dim() <= 1 && isIntegral(self.dtype(), false),
             "_convert_indices_from_coo_to_csr: expected integers of one dimension, got {}",
             self.describe());
  WICK_CHECK(size >= 0 && size < INT64_MAX,
             "_convert_indices_from_coo_to_csr: expected a size from 0 on, below 2^63 - 1, got {}",
             size);
  const Tensor rows = self.to(DType::Long).contiguous();
  Tensor out = Tensor::zeros(DimVector{size + 1}, DType::Long);
  int64_t* const begin = out.data<int64_t>();
  Pace pace;
  for (int64_t i = 0; i < rows.numel(); ++i) {
    pace.step();
    const int64_t row = rows.data<int64_t>()[i];
    WICK_CHECK(row >= 0 && row < size,
               "_convert_indices_from_coo_to_csr: the index {} is out of bounds for size {}", row,
               size);
    ++begin[row + 1];
  }
  for (int64_t r = 0; r < size; ++r) begin[r + 1] += begin[r];
  return out_int32 ? out.to(DType::Int) : out;
}

Tensor expandIndices(const Tensor& crow, const Tensor& col, bool out_int32, bool transpose) {
  WICK_CHECK(crow.dim() == 1 && col.dim() == 1,
             "_convert_indices_from_csr_to_coo: expected indices of one dimension, got {} and {}",
             crow.describe(), col.describe());
  const int64_t rows = crow.numel() - 1, count = col.numel();
  WICK_CHECK(rows >= 0, "_convert_indices_from_csr_to_coo: crow_indices must not be empty");
  const Tensor begin = crow.to(DType::Long).contiguous(), plain = col.to(DType::Long).contiguous();
  Tensor out = Tensor::zeros(DimVector{2, count}, DType::Long);
  int64_t* const row_out = out.data<int64_t>() + (transpose ? count : 0);
  std::copy(plain.data<int64_t>(), plain.data<int64_t>() + count,
            out.data<int64_t>() + (transpose ? 0 : count));
  Pace pace;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t first = begin.data<int64_t>()[r], last = begin.data<int64_t>()[r + 1];
    WICK_CHECK(first >= 0 && first <= last && last <= count,
               "_convert_indices_from_csr_to_coo: crow_indices must ascend from 0 to {}", count);
    pace.step(last - first + 1);
    std::fill(row_out + first, row_out + last, r);
  }
  return out_int32 ? out.to(DType::Int) : out;
}

// The diagonals of a matrix, given as rows: row k holds the elements whose column is i on the
// diagonal offsets[k].
Tensor spdiags(const Tensor& diagonals, const Tensor& offsets, DimVector shape, IValue layout) {
  const Tensor lines = diagonals.dim() == 1 ? diagonals.unsqueeze(0) : diagonals;
  WICK_CHECK(lines.dim() == 2, "Diagonals must be vector or matrix");
  WICK_CHECK(shape.size() == 2, "Output shape must be 2d");
  WICK_CHECK(shape[0] >= 0 && shape[1] >= 0, "spdiags: negative sizes {}", formatInts(shape));
  const Tensor flat = offsets.dim() == 0 ? offsets.unsqueeze(0) : offsets;
  WICK_CHECK(flat.dim() == 1, "Offsets must be scalar or vector");
  WICK_CHECK(flat.dtype() == DType::Long, "Offset Tensor must have dtype Long but got {}",
             toString(flat.dtype()));
  WICK_CHECK(flat.size(0) == lines.size(0),
             "Number of diagonals ({}) does not match the number of offsets ({})", lines.size(0),
             flat.size(0));
  const Tensor at = flat.contiguous();
  Positions rows, columns, from;
  Pace pace;
  for (int64_t k = 0; k < at.numel(); ++k) {
    const int64_t offset = at.data<int64_t>()[k];
    for (int64_t other = 0; other < k; ++other) {
      pace.step();
      WICK_CHECK(at.data<int64_t>()[other] != offset, "Offset tensor contains duplicate values");
    }
    WICK_CHECK(offset > -kMaxElements && offset < kMaxElements,
               "spdiags: the offset {} is too large", offset);
    const int64_t first = std::max<int64_t>(offset, 0);
    const int64_t last =
        std::min({lines.size(1), shape[1], shape[0] + std::min<int64_t>(offset, kMaxElements)});
    for (int64_t c = first; c < last; ++c) {
      pace.step();
      rows.push_back(c - offset);
      columns.push_back(c);
      from.push_back(k * lines.size(1) + c);
    }
  }
  const auto count = static_cast<int64_t>(rows.size());
  rows.insert(rows.end(), columns.begin(), columns.end());
  const Tensor values = ops::indexSelect(lines.contiguous().view(DimVector{lines.numel()}),
                                         int64_t{0}, indexTensor(from, DimVector{count}));
  Tensor made = makeSparseCoo(indexTensor(rows, DimVector{2, count}), values, shape, false);
  if (layout.isNone() || layout.toInt() == static_cast<int64_t>(SparseLayout::Coo)) return made;
  const auto which = static_cast<SparseLayout>(layout.toInt());
  WICK_CHECK(which == SparseLayout::Csr || which == SparseLayout::Csc,
             "Only output layouts (Sparse, SparseCsr, SparseCsc) are supported, got {}",
             layout.toInt());
  return compress("spdiags", coordinatesOf("spdiags", made), which, DimVector{1, 1});
}

#define WICK_COO(pin)                                                                       \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=" pin \
  ", bool? is_coalesced=None) -> Tensor"
#define WICK_MADE(pin)                                                                      \
  "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=" pin \
  ") -> Tensor"
#define WICK_COMPRESSED(name, compressed, plain, overload, layout)                             \
  {"aten::sparse_" name "_tensor." overload "_value_size(Tensor " compressed ", Tensor " plain \
   ", Tensor values, int[] size, *, " WICK_MADE("False"),                                      \
   WICK_KERNEL(ofSize<layout>)},                                                               \
      {"aten::sparse_" name "_tensor." overload "_value(Tensor " compressed ", Tensor " plain  \
       ", Tensor values, *, " WICK_MADE("False"),                                              \
       WICK_KERNEL(inferred<layout>)},                                                         \
      {"aten::_sparse_" name "_tensor_unsafe(Tensor " compressed ", Tensor " plain             \
       ", Tensor values, int[] size, *, " WICK_MADE("None"),                                   \
       WICK_KERNEL(ofSize<layout>)},                                                           \
  {                                                                                            \
    "aten::_validate_sparse_" name "_tensor_args(Tensor " compressed ", Tensor " plain         \
    ", Tensor values, int[] size, bool? check_pinning=None) -> ()",                            \
        WICK_KERNEL(validate<layout>), kNotDifferentiable | kSideEffects                       \
  }

constexpr OperatorRecord kConstructorsRecords[] = {
    {"aten::sparse_coo_tensor.size(int[] size, *, " WICK_MADE("False"), WICK_KERNEL(cooEmpty),
     kNotDifferentiable},
    {"aten::sparse_coo_tensor.indices(Tensor indices, Tensor values, *, " WICK_COO("None"),
     WICK_KERNEL(cooInferred)},
    {"aten::sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, "
     "*, " WICK_COO("None"),
     WICK_KERNEL(cooOfSize)},
    {"aten::_sparse_coo_tensor_unsafe(Tensor indices, Tensor values, int[] size, *, " WICK_COO(
         "None"),
     WICK_KERNEL(cooOfSize)},
    {"aten::_sparse_coo_tensor_with_dims(int sparse_dim, int dense_dim, int[] size, *, " WICK_MADE(
         "False"),
     WICK_KERNEL(cooWithDims), kNotDifferentiable},
    {"aten::_sparse_coo_tensor_with_dims_and_tensors(int sparse_dim, int dense_dim, int[] size, "
     "Tensor indices, Tensor values, *, " WICK_COO("False"),
     WICK_KERNEL(cooWithTensors)},
    {"aten::_validate_sparse_coo_tensor_args(Tensor indices, Tensor values, int[] size, bool? "
     "is_coalesced=None, bool? check_pinning=None) -> ()",
     WICK_KERNEL(validateCoo), kNotDifferentiable | kSideEffects},
    WICK_COMPRESSED("csr", "crow_indices", "col_indices", "crow_col", SparseLayout::Csr),
    WICK_COMPRESSED("csc", "ccol_indices", "row_indices", "ccol_row", SparseLayout::Csc),
    WICK_COMPRESSED("bsr", "crow_indices", "col_indices", "crow_col", SparseLayout::Bsr),
    WICK_COMPRESSED("bsc", "ccol_indices", "row_indices", "ccol_row", SparseLayout::Bsc),
    {"aten::sparse_compressed_tensor.comp_plain_value_size(Tensor compressed_indices, Tensor "
     "plain_indices, Tensor values, int[] size, *, " WICK_MADE("False"),
     WICK_KERNEL(anyOfSize)},
    {"aten::sparse_compressed_tensor.comp_plain_value(Tensor compressed_indices, Tensor "
     "plain_indices, Tensor values, *, " WICK_MADE("False"),
     WICK_KERNEL(anyInferred)},
    {"aten::_sparse_compressed_tensor_unsafe(Tensor compressed_indices, Tensor plain_indices, "
     "Tensor values, int[] size, *, " WICK_MADE("None"),
     WICK_KERNEL(anyOfSize)},
    {"aten::_validate_sparse_compressed_tensor_args(Tensor compressed_indices, Tensor "
     "plain_indices, Tensor values, int[] size, Layout layout, bool? check_pinning=None) -> ()",
     WICK_KERNEL(validateAny), kNotDifferentiable | kSideEffects},
    {"aten::_validate_compressed_sparse_indices(bool is_crow, Tensor compressed_idx, Tensor "
     "plain_idx, int cdim, int dim, int nnz) -> ()",
     WICK_KERNEL(validateIndices), kNotDifferentiable | kSideEffects},
    {"aten::_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> "
     "Tensor",
     WICK_KERNEL(compressIndices), kNotDifferentiable | kOutForm},
    {"aten::_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool "
     "out_int32=False, bool transpose=False) -> Tensor",
     WICK_KERNEL(expandIndices), kNotDifferentiable | kOutForm},
    {"aten::_spdiags(Tensor diagonals, Tensor offsets, int[] shape, Layout? layout=None) -> Tensor",
     WICK_KERNEL(spdiags)},
};
const RegisterOperators kConstructorsRegistered(kConstructorsRecords);

}  // namespace

}  // namespace wick::ops::sparse
