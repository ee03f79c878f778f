// What the kernels of sparse tensors compute with: coordinates that were checked, sums of rows.
#pragma once

#include <string>

#include "core/counted_vector.h"
#include "core/sparse_form.h"
#include "ir/kind_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops::sparse {

// The size of blocks in layouts without blocks.
inline constexpr int64_t kOne[] = {1, 1};

using Positions = CountedVector<int64_t>;

// The entries of a sparse tensor. Indices and values are row-major, and the indices lie within the
// sizes; both may be the tensor's own memory.
struct Coordinates {
  Tensor indices;  // int64 [sparse_dim, count]
  Tensor values;   // [count, dense…]
  DimVector sizes;
  bool coalesced = false;

  int64_t sparseDim() const { return indices.size(0); }
  int64_t denseDim() const { return values.dim() - 1; }
  int64_t count() const { return indices.size(1); }
  DType dtype() const { return values.dtype(); }
  IntSpan sparseSizes() const {
    return IntSpan(sizes).subspan(0, static_cast<size_t>(sparseDim()));
  }
  IntSpan denseSizes() const { return IntSpan(sizes).subspan(static_cast<size_t>(sparseDim())); }
  const int64_t* row(int64_t d) const { return indices.data<int64_t>() + d * count(); }
  // Elements of one value.
  int64_t inner() const { return checkedNumel(denseSizes()); }
};

// Those of a tensor in coordinates; RuntimeError that begins with `op` for other layouts.
Coordinates coordinatesOf(const char* op, const Tensor& t);
// Those of a tensor of any layout: compressed ones are expanded, blocks to their elements.
Coordinates expandedOf(const char* op, const Tensor& t);
Tensor toTensor(const Coordinates& c);

// One value for each place, in ascending order of the places.
Coordinates coalesce(const Coordinates& c);
// The place of each entry: its indices as one number, row-major. Needs sizes whose product is small
// enough, as those of all tensors with elements are.
Positions places(const Coordinates& c);
// The entries whose numbers are given, in that order.
Coordinates entries(const Coordinates& c, const Positions& which);
// The same indices with other values, as many.
Coordinates withValues(const Coordinates& c, const Tensor& values);
Coordinates toDType(const Coordinates& c, DType dtype);

// target[at[i]] += rows[i], where both are row-major of the same dtype and rows of `inner`
// elements; booleans are joined by or. The places were checked.
void addRows(const Tensor& target, int64_t inner, const Positions& at, const Tensor& rows);

Tensor toDense(const Coordinates& c);
// A tensor in coordinates without entries.
Tensor emptyCoo(int64_t sparse_dim, IntSpan sizes, DType dtype);

// Compresses a matrix, or a batch of such with equally many entries each. Blocks of {1, 1} for
// layouts without.
Tensor compress(const char* op, const Coordinates& c, SparseLayout layout, IntSpan block);
// A compressed tensor with other values in the same places.
Tensor withCompressedValues(const Tensor& t, const Tensor& values);

// Of a matrix of any layout: for each row its entries, in order of the columns where the layout is
// ordered.
struct Rows {
  Positions begin;    // rows + 1
  Positions columns;  // of each entry
  Tensor values;      // [count], row-major
  int64_t rows = 0;
  int64_t num_columns = 0;
};
Rows rowsOf(const char* op, const Tensor& matrix);

// The layout as PyTorch names it, for messages.
std::string layoutName(const Tensor& t);
[[noreturn]] void refuseLayout(const char* op, const Tensor& t);

// An int64 tensor of the numbers.
Tensor indexTensor(const Positions& numbers, IntSpan sizes);

}  // namespace wick::ops::sparse
