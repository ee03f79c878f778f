// What a sparse tensor consists of, as programs ask for it.
#include "core/sparse_form.h"
#include "ir/operator.h"
#include "runtime/ops/sparse/coordinates.h"

namespace wick::ops::sparse {

namespace {

const SparseForm& cooForm(const char* op, const Tensor& t) {
  const SparseForm& form = sparseFormOf(op, t);
  if (!form.isCoo()) refuseLayout(op, t);
  return form;
}

Tensor indices(const Tensor& self) {
  const SparseForm& form = cooForm("indices", self);
  WICK_CHECK(form.coalesced,
             "Cannot get indices on an uncoalesced tensor, please call .coalesce() first");
  return form.indices.detach();
}
Tensor values(const Tensor& self) {
  const SparseForm& form = sparseFormOf("values", self);
  WICK_CHECK(!form.isCoo() || form.coalesced,
             "Cannot get values on an uncoalesced tensor, please call .coalesce() first");
  return form.values.detach();
}
Tensor rawIndices(const Tensor& self) {
  return cooForm("_indices", self).indices.detach();
}
Tensor rawValues(const Tensor& self) {
  return cooForm("_values", self).values.detach();
}

enum class Part { Compressed, Plain };
template <Part kPart, bool kByRows>
Tensor compressedPart(const Tensor& self) {
  constexpr const char* kName = kPart == Part::Compressed
                                    ? kByRows ? "crow_indices" : "ccol_indices"
                                : kByRows ? "col_indices"
                                          : "row_indices";
  const SparseForm& form = sparseFormOf(kName, self);
  WICK_CHECK(!form.isCoo() && isByRows(form.layout) == kByRows,
             "\"{}\" expected sparse {} compressed tensor layout but got {}", kName,
             kByRows ? "row" : "column", toString(form.layout));
  return (kPart == Part::Compressed ? form.compressed : form.plain).detach();
}

Tensor crowIndices(const Tensor& self) {
  return compressedPart<Part::Compressed, true>(self);
}
Tensor colIndices(const Tensor& self) {
  return compressedPart<Part::Plain, true>(self);
}
Tensor ccolIndices(const Tensor& self) {
  return compressedPart<Part::Compressed, false>(self);
}
Tensor rowIndices(const Tensor& self) {
  return compressedPart<Part::Plain, false>(self);
}

int64_t nnz(const Tensor& self) {
  const SparseForm& form = sparseFormOf("_nnz", self);
  return form.count();
}
int64_t sparseDim(const Tensor& self) {
  return sparseFormOf("sparse_dim", self).sparse_dim;
}
int64_t denseDim(const Tensor& self) {
  return sparseFormOf("dense_dim", self).dense_dim;
}
bool isCoalesced(const Tensor& self) {
  return cooForm("is_coalesced", self).coalesced;
}

Tensor coalesced(const Tensor& self) {
  if (cooForm("coalesce", self).coalesced) return self;
  return toTensor(coalesce(coordinatesOf("coalesce", self)));
}
Tensor marked(const Tensor& self, bool coalesced) {
  const SparseForm& form = cooForm("_coalesced_", self);
  return makeSparseCoo(form.indices, form.values, self.sizes(), coalesced);
}
Tensor markedInPlace(const Tensor& self, bool coalesced) {
  self.impl()->takeOver(*marked(self, coalesced).impl());
  return self;
}

template <auto kPart>
Tensor copyOf(const Tensor& self) {
  return kPart(self).clone();
}

int64_t layoutOf(const Tensor& self) {
  return static_cast<int64_t>(sparseFormOf("layout", self).layout);
}
bool isCoo(const Tensor& self) {
  return sparseFormOf("is_sparse", self).isCoo();
}
bool isCsr(const Tensor& self) {
  return sparseFormOf("is_sparse_csr", self).layout == SparseLayout::Csr;
}
// Operators that ask for nothing but what every tensor has.
void asForDense(CallFrame& frame) {
  frame.op->record().kernel(frame);
}

bool isContiguous(const Tensor& self) {
  if (!isSparseCoo(self)) refuseLayout("is_contiguous", self);
  return true;
}

constexpr uint64_t kAsk = kAnyKind | kNotDifferentiable;

#define WICK_PART(name, function)                                                     \
  {"aten::" name "(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(function), kAnyKind}, { \
    "aten::" name "_copy(Tensor self) -> Tensor", WICK_KERNEL(copyOf<function>),      \
        kAnyKind | kOutForm                                                           \
  }

constexpr OperatorRecord kPartsRecords[] = {
    WICK_PART("indices", indices),
    WICK_PART("values", values),
    WICK_PART("_indices", rawIndices),
    WICK_PART("_values", rawValues),
    WICK_PART("crow_indices", crowIndices),
    WICK_PART("col_indices", colIndices),
    WICK_PART("ccol_indices", ccolIndices),
    WICK_PART("row_indices", rowIndices),
    {"aten::_nnz(Tensor self) -> int", WICK_KERNEL(nnz), kAsk},
    {"aten::sparse_dim(Tensor self) -> int", WICK_KERNEL(sparseDim), kAsk},
    {"aten::dense_dim(Tensor self) -> int", WICK_KERNEL(denseDim), kAsk},
    {"aten::_dimI(Tensor self) -> int", WICK_KERNEL(sparseDim), kAsk},
    {"aten::_dimV(Tensor self) -> int", WICK_KERNEL(denseDim), kAsk},
    {"aten::coalesce(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(coalesced), kAnyKind},
    {"aten::_coalesce(Tensor self) -> Tensor", WICK_KERNEL(coalesced), kAnyKind},
    {"aten::_coalesced(Tensor self, bool coalesced) -> Tensor", WICK_KERNEL(marked), kAnyKind},
    {"aten::_coalesced_(Tensor(a!) self, bool coalesced) -> Tensor(a!)", WICK_KERNEL(markedInPlace),
     kAnyKind},
};
const RegisterOperators kPartsRegistered(kPartsRecords);

constexpr KindKernel kPartsKernels[] = {
    {"aten::is_coalesced", WICK_KERNEL(isCoalesced)},
    {"aten::is_contiguous", WICK_KERNEL(isContiguous)},
    {"aten::detach", &asForDense},
    {"aten::detach_", &asForDense},
    {"aten::is_leaf", &asForDense},
    {"aten::requires_grad_", &asForDense},
    {"aten::storage_offset", &asForDense},
    {"prim::layout", WICK_KERNEL(layoutOf)},
    {"prim::is_sparse", WICK_KERNEL(isCoo)},
    {"prim::is_sparse_csr", WICK_KERNEL(isCsr)},
};
const RegisterKindKernels kPartsKernelsRegistered(TensorKind::Sparse, kPartsKernels);

}  // namespace

}  // namespace wick::ops::sparse
