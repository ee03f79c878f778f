// What the operators that move elements share: destinations, index tensors, option defaults.
#pragma once

#include "core/counted_vector.h"
#include "core/scalar.h"
#include "core/tensor.h"
#include "runtime/kernels/strided.h"
#include "runtime/ops/boxing.h"

namespace wick::ops {

// Gives `t` new sizes in row-major order and storage for them. Memory that is added is zero.
void resizeTo(const Tensor& t, IntSpan sizes);

// Clears the memory of a tensor that nobody has written to, and returns the tensor: a program must not see what
// another one left there.
Tensor cleared(Tensor tensor);

// The result of an operator that changes parts of a copy of `self`: the copy (dense, with the order
// of dimensions of `self`), or the destination filled with `self`, or `self` for an in-place form.
Tensor startFrom(const Tensor& self, Out out);

// For out= forms that are written out in a table: makes `out` hold `result` (resized, converted),
// and returns it. RuntimeError when the dtype category does not permit it.
Tensor writeOut(const char* op, const Tensor& out, const Tensor& result);

// Where an operator that allocates its result row-major writes it: the destination, resized, when
// it has this dtype, is row-major and shares no memory with `inputs`; a new tensor otherwise (which
// the caller of the kernel then copies).
Tensor resultTensor(Out out, IntSpan sizes, DType dtype,
                    std::initializer_list<const Tensor*> inputs);

// A zero-dim tensor of the number. RuntimeError when the dtype cannot hold it (300 as uint8, a
// complex number as a real one).
Tensor numberTensor(const Scalar& value, DType dtype);
// Writes the number everywhere, checked as numberTensor does.
const Tensor& fillWith(const Tensor& t, const Scalar& value);

// Counts a write to the tensor, for kernels of `name_` operators that are written out. Refuses
// read-only memory, so call it before writing.
void markWritten(const char* op, const Tensor& t);

// `index` as row-major int64. RuntimeError unless its dtype is int32 or int64.
Tensor indexInt64(const char* op, const Tensor& index);

// For remap (runtime/kernels/remap.h): the element offset of each index along dimension d of t, and
// one such table a dimension.
using OffsetTable = CountedVector<int64_t>;
OffsetTable offsetsAlong(const Tensor& t, int64_t d);
std::vector<OffsetTable> offsetTables(const Tensor& t);

// `t`, or the view of one element of a zero-dim tensor.
inline Tensor atLeast1d(const Tensor& t) {
  return t.dim() == 0 ? t.unsqueeze(0) : t;
}

// For questions that are true of no tensor here (aten::is_inference).
inline bool never(const Tensor&) {
  return false;
}

// The view that aten::diagonal makes.
Tensor diagonalView(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2);
// The indices of the non-zero elements, [count, dim] in row-major order.
Tensor nonzeroPositions(const Tensor& self);

// The sizes without dimension d.
DimVector without(IntSpan values, int64_t d);
// The product of sizes [first, last).
int64_t product(IntSpan sizes, size_t first, size_t last);

// Bounds of a row-major tensor seen as [outer, size, inner] around dimension d; a zero-dim tensor
// counts as one dimension of one element.
struct DimSplit {
  int64_t outer;
  int64_t size;
  int64_t inner;
};
DimSplit splitAt(IntSpan sizes, int64_t d);

}  // namespace wick::ops
