// What a sparse tensor consists of: indices and values apart, in coordinates (COO) or compressed by
// rows or columns (CSR, CSC), of single elements or of blocks (BSR, BSC).
//
//   [[0, 5],    COO: indices [[0, 1], [1, 0]], values [5, 7]
//    [7, 0]]    CSR: compressed [0, 1, 2], plain [1, 0], values [5, 7]
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace wick {

// The numbers are PyTorch's layouts; 0 is that of dense tensors.
enum class SparseLayout : int64_t { Coo = 1, Csr = 2, Csc = 4, Bsr = 5, Bsc = 6 };

// "SparseCsr", for messages. Also of numbers that are no layout.
std::string_view toString(SparseLayout layout);
// Whether `number` is a layout of sparse tensors.
bool isSparseLayout(int64_t number);

constexpr bool isBlocked(SparseLayout layout) {
  return layout == SparseLayout::Bsr || layout == SparseLayout::Bsc;
}
// Whether the compressed dimension is that of rows.
constexpr bool isByRows(SparseLayout layout) {
  return layout == SparseLayout::Csr || layout == SparseLayout::Bsr;
}

// The members are handles of its own, so that their shapes stay as they are; but they share memory
// with tensors that a program holds and writes to, so indices are checked again by whoever uses
// them as addresses (checkIndices). Not to be changed once a tensor has it: an operator that writes
// gives the tensor another form. Whoever hands a member out gives detach() of it.
class SparseForm final : public RefCounted {
 public:
  SparseLayout layout = SparseLayout::Coo;
  // COO: int64 [sparse_dim, count].
  Tensor indices;
  // The others: [batch…, rows + 1] and [batch…, count], both int64 or both int32. Of CSC and BSC
  // the columns are compressed.
  Tensor compressed;
  Tensor plain;
  // COO: [count, dense…]; the others: [batch…, count, (block rows, block columns,) dense…].
  Tensor values;
  int64_t sparse_dim = 0;  // COO: leading dimensions that have indices; the others: 2
  int64_t dense_dim = 0;   // trailing dimensions that lie within the values
  // COO: the indices ascend, each stands once.
  bool coalesced = false;

  bool isCoo() const { return layout == SparseLayout::Coo; }
  int64_t batchDim() const { return isCoo() ? 0 : compressed.dim() - 1; }
  // How many entries are stored; of a batch, in each matrix of it.
  int64_t count() const { return isCoo() ? indices.size(1) : plain.size(-1); }
};

// A tensor of such indices and values. RuntimeError when their shapes do not fit the sizes, when
// an index lies outside, and for compressed ones unless the compressed indices begin at 0, do not
// descend and end at the count, and the plain ones of each row ascend. Shares the tensors' memory.
Tensor makeSparseCoo(const Tensor& indices, const Tensor& values, IntSpan sizes, bool coalesced);
Tensor makeSparseCompressed(SparseLayout layout, const Tensor& compressed, const Tensor& plain,
                            const Tensor& values, IntSpan sizes);
// A tensor without entries, all of its dimensions sparse (compressed ones have two, and batches
// before them).
Tensor makeEmptySparse(SparseLayout layout, IntSpan sizes, DType dtype);

// What `t` consists of; RuntimeError that begins with `op` when it is not sparse.
const SparseForm& sparseFormOf(std::string_view op, const Tensor& t);
bool isSparseCoo(const Tensor& t);

// A tensor of the same layout and sizes: the values through `of_values`, the indices through
// `of_indices`, which keep the shapes.
Tensor mapSparse(const Tensor& t, const std::function<Tensor(const Tensor&)>& of_indices,
                 const std::function<Tensor(const Tensor&)>& of_values);

// RuntimeError when an index lies outside of the sizes or compressed indices are wrong, see above.
void checkIndices(const SparseForm& form, IntSpan sizes);

// As PyTorch's C++ side prints a sparse tensor, which is what programs see.
std::string formatSparse(const Tensor& t);

}  // namespace wick
