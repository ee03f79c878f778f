// Operators that cut a tensor into views of itself.
#include "core/device_backend.h"
#include "core/memory_limit.h"
#include "runtime/ops/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

// Refuses more views than there is memory for, before any is made: a dimension of a tensor without
// elements, or one that was expanded, may be as long as numbers go.
void expectPieces(const char* op, int64_t count) {
  constexpr int64_t kMost = int64_t{1} << 48;
  const auto pieces = static_cast<size_t>(std::clamp<int64_t>(count, 0, kMost));
  checkAllocation(op, pieces * (sizeof(Tensor) + sizeof(TensorImpl)));
}

std::vector<Tensor> unbind(const Tensor& self, int64_t dim) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(self.dim() > 0, "unbind: Dimension specified as {} but tensor has no dimensions", dim);
  expectPieces("unbind", self.sizes()[dim]);
  std::vector<Tensor> out;
  for (int64_t i = 0; i < self.sizes()[dim]; ++i) out.push_back(self.select(dim, i));
  return out;
}

std::vector<Tensor> split(const Tensor& self, int64_t split_size, int64_t dim) {
  WICK_CHECK(self.dim() > 0, "split expects at least a 1-dimensional tensor");
  WICK_CHECK(split_size >= 0, "split expects split_size be non-negative, but got split_size={}",
             split_size);
  int64_t n = self.size(dim);
  WICK_CHECK(split_size > 0 || n == 0,
             "split_size can only be 0 if dimension size is 0, but got dimension size of {}", n);
  if (split_size > 0) expectPieces("split", n / split_size);
  std::vector<Tensor> out;
  int64_t start = 0;
  // An empty dimension gives one empty piece.
  do {
    int64_t length = std::min(split_size, n - start);
    out.push_back(self.narrow(dim, start, length));
    start += length;
  } while (start < n);
  return out;
}

std::vector<Tensor> splitSizes(const Tensor& self, DimVector sizes, int64_t dim) {
  WICK_CHECK(self.dim() > 0, "split_with_sizes expects at least a 1-dimensional tensor");
  int64_t n = self.size(dim);
  int64_t sum = 0;
  bool fits = true;
  for (int64_t s : sizes) {
    WICK_CHECK(s >= 0,
               "split_with_sizes expects split_sizes have only non-negative entries, but got "
               "split_sizes={}",
               formatInts(sizes));
    fits &= !__builtin_add_overflow(sum, s, &sum);
  }
  WICK_CHECK(fits && sum == n,
             "split_with_sizes expects split_sizes to sum exactly to {} (input tensor's size at "
             "dimension {}), but got split_sizes={}",
             n, dim, formatInts(sizes));
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t s : sizes) {
    out.push_back(self.narrow(dim, start, s));
    start += s;
  }
  return out;
}

std::vector<Tensor> chunk(const Tensor& self, int64_t chunks, int64_t dim) {
  WICK_CHECK(self.dim() > 0, "chunk expects at least a 1-dimensional tensor");
  WICK_CHECK(chunks > 0, "chunk expects `chunks` to be greater than 0, got: {}", chunks);
  int64_t n = self.size(dim);
  int64_t size = n / chunks + (n % chunks != 0);
  // The number of pieces matters even when there is nothing to put into them.
  if (n == 0) return splitSizes(self, DimVector(static_cast<size_t>(chunks), 0), dim);
  return split(self, size, dim);
}

std::vector<Tensor> tensorSplitSections(const Tensor& self, int64_t sections, int64_t dim) {
  WICK_CHECK(self.dim() > 0,
             "tensor_split expected at least a 1-dimensional tensor, but got a tensor with {} dims",
             self.dim());
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(sections > 0, "number of sections must be larger than 0, got {}", sections);
  expectPieces("tensor_split", sections);
  int64_t n = self.sizes()[dim];
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t i = 0; i < sections; ++i) {
    int64_t length = n / sections + (i < n % sections);
    out.push_back(self.narrow(dim, start, length));
    start += length;
  }
  return out;
}

std::vector<Tensor> tensorSplitIndices(const Tensor& self, DimVector indices, int64_t dim) {
  WICK_CHECK(self.dim() > 0,
             "tensor_split expected at least a 1-dimensional tensor, but got a tensor with {} dims",
             self.dim());
  dim = wrapDim(dim, self.dim());
  std::vector<Tensor> out;
  int64_t start = 0;
  for (int64_t end : indices) {
    out.push_back(self.slice(dim, start, end));
    start = end;
  }
  out.push_back(self.slice(dim, start, INT64_MAX));
  return out;
}

std::vector<Tensor> tensorSplitTensor(const Tensor& self, const Tensor& spec, int64_t dim) {
  WICK_CHECK(spec.dtype() == DType::Long,
             "tensor_split expected tensor_indices_or_sections to have dtype of long, but got {}",
             toString(spec.dtype()));
  WICK_CHECK(spec.dim() <= 1,
             "tensor_split expected tensor_indices_or_sections to be a zero-dimensional or "
             "one-dimensional tensor, but got a tensor with {} dims",
             spec.dim());
  if (spec.dim() == 0) return tensorSplitSections(self, spec.item<int64_t>(), dim);
  Tensor flat = moveTo(spec, Device()).contiguous();
  const int64_t* data = flat.data<int64_t>();
  return tensorSplitIndices(self, DimVector(data, data + flat.numel()), dim);
}

int64_t hsplitDim(const Tensor& self) {
  WICK_CHECK(self.dim() >= 1,
             "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with {} "
             "dimensions!",
             self.dim());
  return self.dim() == 1 ? 0 : 1;
}
int64_t vsplitDim(const Tensor& self) {
  WICK_CHECK(self.dim() >= 2,
             "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with {} "
             "dimensions!",
             self.dim());
  return 0;
}
int64_t dsplitDim(const Tensor& self) {
  WICK_CHECK(self.dim() >= 3,
             "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with {} "
             "dimensions!",
             self.dim());
  return 2;
}

template <int64_t (*DimOf)(const Tensor&)>
std::vector<Tensor> splitEvenly(const Tensor& self, int64_t sections) {
  int64_t dim = DimOf(self);
  int64_t n = self.sizes()[dim];
  WICK_CHECK(sections != 0 && n % sections == 0,
             "attempted to split along dimension {}, but the size of the dimension {} is not "
             "divisible by the split_size {}!",
             dim, n, sections);
  return tensorSplitSections(self, sections, dim);
}

template <int64_t (*DimOf)(const Tensor&)>
std::vector<Tensor> splitAtIndices(const Tensor& self, DimVector indices) {
  return tensorSplitIndices(self, std::move(indices), DimOf(self));
}

template <auto F>
struct CopyAll;
template <class... Ps, std::vector<Tensor> (*F)(Ps...)>
struct CopyAll<F> {
  static std::vector<Tensor> call(Ps... args) {
    std::vector<Tensor> out = F(std::forward<Ps>(args)...);
    for (Tensor& t : out) t = t.clone(MemoryFormat::Contiguous);
    return out;
  }
};

const OperatorRecord kSplitsRecords[] = {
    {"aten::unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", WICK_KERNEL(unbind),
     kSavesNothing | kMovesElements, shapes::unbound},
    {"aten::split.Tensor(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(split), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::split.sizes(Tensor(a -> *) self, int[] split_size, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(splitSizes), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::split(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(splitSizes), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::split_with_sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(splitSizes), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", WICK_KERNEL(chunk),
     kSavesNothing | kMovesElements, shapes::parts},
    {"aten::unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]", WICK_KERNEL(chunk),
     kMayReturnArgument | kNeutral | kMovesElements, shapes::parts},
    {"aten::unsafe_split.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
     WICK_KERNEL(split), kMayReturnArgument | kNeutral | kMovesElements, shapes::parts},
    {"aten::unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
     WICK_KERNEL(splitSizes), kMayReturnArgument | kNeutral, shapes::parts},
    {"aten::tensor_split.sections(Tensor(a -> *) self, int sections, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(tensorSplitSections), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::tensor_split.indices(Tensor(a -> *) self, int[] indices, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(tensorSplitIndices), kSavesNothing | kMovesElements, shapes::parts},
    {"aten::tensor_split.tensor_indices_or_sections(Tensor(a -> *) self, Tensor "
     "tensor_indices_or_sections, int dim=0) -> Tensor(a)[]",
     WICK_KERNEL(tensorSplitTensor), kSavesNothing | kMovesElements},
    {"aten::hsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     WICK_KERNEL(splitEvenly<hsplitDim>), kMovesElements},
    {"aten::hsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     WICK_KERNEL(splitAtIndices<hsplitDim>), kMovesElements},
    {"aten::vsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     WICK_KERNEL(splitEvenly<vsplitDim>), kMovesElements},
    {"aten::vsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     WICK_KERNEL(splitAtIndices<vsplitDim>), kMovesElements},
    {"aten::dsplit.int(Tensor(a -> *) self, int sections) -> Tensor(a)[]",
     WICK_KERNEL(splitEvenly<dsplitDim>), kMovesElements},
    {"aten::dsplit.array(Tensor(a -> *) self, int[] indices) -> Tensor(a)[]",
     WICK_KERNEL(splitAtIndices<dsplitDim>), kMovesElements},
    {"aten::unbind_copy.int(Tensor self, int dim=0) -> Tensor[]",
     WICK_KERNEL(CopyAll<&unbind>::call), kNeutral, shapes::unbound},
    {"aten::split_copy.Tensor(Tensor self, int split_size, int dim=0) -> Tensor[]",
     WICK_KERNEL(CopyAll<&split>::call), kNeutral, shapes::parts},
    {"aten::split_with_sizes_copy(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
     WICK_KERNEL(CopyAll<&splitSizes>::call), kNeutral, shapes::parts},
};

const RegisterOperators kSplitsRegistered(kSplitsRecords);

}  // namespace

}  // namespace wick::ops
