// Operators whose result shares the storage of their input.
#include <algorithm>

#include "core/dtype_dispatch.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/shapes/shape_rules.h"
#include "runtime/ops/views/moved_dims.h"

namespace wick::ops {

Tensor diagonalView(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t a = wrapDim(dim1, self.dim());
  int64_t b = wrapDim(dim2, self.dim());
  WICK_CHECK(a != b, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  IntSpan sizes = self.sizes();
  // The differences are bounded by the sizes, but `offset` is anything.
  int64_t start = self.offset();
  int64_t length = 0;
  if (offset >= 0) {
    if (offset < sizes[b]) {
      length = std::min(sizes[a], sizes[b] - offset);
      if (length > 0) start += offset * self.strides()[b];
    }
  } else if (offset > -sizes[a]) {
    length = std::min(sizes[a] + offset, sizes[b]);
    if (length > 0) start -= offset * self.strides()[a];
  }
  length = std::max<int64_t>(length, 0);
  DimVector out_sizes;
  DimVector out_strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d == a || d == b) continue;
    out_sizes.push_back(sizes[d]);
    out_strides.push_back(self.strides()[d]);
  }
  out_sizes.push_back(length);
  out_strides.push_back(self.strides()[a] + self.strides()[b]);
  return self.asStrided(out_sizes, out_strides, start);
}

DimVector movedDims(int64_t n, const DimVector& source, const DimVector& destination) {
  WICK_CHECK(source.size() == destination.size(),
             "movedim: Invalid source or destination dims: source ({} dims) should contain the "
             "same number of dims as destination ({} dims)",
             formatInts(source), formatInts(destination));
  // Without dimensions there is dimension 0, which may be named once.
  const size_t places = static_cast<size_t>(std::max<int64_t>(n, 1));
  DimVector order(places, -1);
  std::vector<bool> used(places, false);
  for (size_t i = 0; i < source.size(); ++i) {
    int64_t from = wrapDim(source[i], n);
    int64_t to = wrapDim(destination[i], n);
    WICK_CHECK(!used[from], "movedim: repeated dim in `source` ({})", formatInts(source));
    WICK_CHECK(order[to] < 0, "movedim: repeated dim in `destination` ({})",
               formatInts(destination));
    used[from] = true;
    order[to] = from;
  }
  if (n == 0) return {};
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (used[next]) ++next;
    d = next++;
  }
  return order;
}

namespace {

Tensor view(const Tensor& self, DimVector size) {
  return self.view(size);
}

// Whether everything from the first to the last of the bytes is 0 or 1.
bool holdsOnlyBools(const Tensor& bytes) {
  if (bytes.numel() == 0) return true;
  int64_t last = 0;
  for (int64_t d = 0; d < bytes.dim(); ++d) last += (bytes.size(d) - 1) * bytes.stride(d);
  const auto* data = static_cast<const uint8_t*>(bytes.rawData());
  return std::all_of(data, data + last + 1, [](uint8_t b) { return b <= 1; });
}

// As a view of bools it is a copy when there are bytes that are no bools: those count as true.
Tensor viewDType(const Tensor& self, DType dtype) {
  int64_t from = static_cast<int64_t>(self.itemSize());
  int64_t to = static_cast<int64_t>(itemSize(dtype));
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  int64_t offset = self.offset();
  if (from != to) {
    WICK_CHECK(self.dim() > 0,
               "view: self.dim() cannot be 0 to view {} as {} (different element sizes)",
               toString(self.dtype()), toString(dtype));
    WICK_CHECK(strides.back() == 1,
               "view: self.stride(-1) must be 1 to view {} as {} (different element sizes), but "
               "got {}",
               toString(self.dtype()), toString(dtype), strides.back());
    int64_t ratio = from > to ? from / to : to / from;
    for (size_t d = 0; d + 1 < strides.size(); ++d) {
      if (from > to) {
        strides[d] *= ratio;
      } else {
        WICK_CHECK(strides[d] % ratio == 0,
                   "view: self.stride({}) must be divisible by {} to view {} as {} (different "
                   "element sizes), but got {}",
                   d, ratio, toString(self.dtype()), toString(dtype), strides[d]);
        strides[d] /= ratio;
      }
    }
    if (from > to) {
      sizes.back() *= ratio;
      offset *= ratio;
    } else {
      WICK_CHECK(sizes.back() % ratio == 0 && offset % ratio == 0,
                 "view: self.size(-1) and the storage offset must be divisible by {} to view {} as "
                 "{} (different element sizes), but got {} and {}",
                 ratio, toString(self.dtype()), toString(dtype), sizes.back(), offset);
      sizes.back() /= ratio;
      offset /= ratio;
    }
  }
  if (dtype == DType::Bool) {
    const Tensor bytes = Tensor::fromStorage(self.storage(), DType::Byte, sizes, strides, offset);
    if (!holdsOnlyBools(bytes)) return bytes.to(DType::Bool);
  }
  return Tensor::fromStorage(self.storage(), dtype, sizes, strides, offset);
}

Tensor viewAs(const Tensor& self, const Tensor& other) {
  return self.view(other.sizes());
}
Tensor reshape(const Tensor& self, DimVector shape) {
  return self.reshape(shape);
}
Tensor reshapeAs(const Tensor& self, const Tensor& other) {
  return self.reshape(other.sizes());
}
Tensor ravel(const Tensor& self) {
  return self.contiguous().view(DimVector{-1});
}
Tensor alias(const Tensor& self) {
  return self.detach();
}
Tensor detach(const Tensor& self) {
  return self.detach();
}

Tensor reshapeAlias(const Tensor& self, DimVector size, DimVector stride) {
  return self.asStrided(size, stride, self.offset());
}

Tensor flatten(const Tensor& self, int64_t start, int64_t end) {
  start = wrapDim(start, self.dim());
  end = wrapDim(end, self.dim());
  WICK_CHECK(start <= end, "flatten() has invalid args: start_dim cannot come after end_dim");
  if (self.dim() == 0) return self.reshape(DimVector{1});
  if (start == end) return self;
  DimVector shape;
  IntSpan sizes = self.sizes();
  for (int64_t d = 0; d < start; ++d) shape.push_back(sizes[d]);
  shape.push_back(product(sizes, start, end + 1));
  for (int64_t d = end + 1; d < self.dim(); ++d) shape.push_back(sizes[d]);
  return self.reshape(shape);
}

Tensor unflatten(const Tensor& self, int64_t dim, DimVector sizes) {
  dim = wrapDim(dim, self.dim());
  WICK_CHECK(!sizes.empty(), "unflatten: sizes must be non-empty");
  WICK_CHECK(self.dim() > 0, "unflatten: a zero-dim tensor has no dimension to unflatten");
  int64_t n = self.sizes()[dim];
  int64_t known = 1;
  bool inferred = false;
  for (int64_t s : sizes) {
    if (s == -1) {
      inferred = true;
    } else {
      WICK_CHECK(s >= 0 && !__builtin_mul_overflow(known, s, &known), "unflatten: invalid sizes {}",
                 formatInts(sizes));
    }
  }
  bool fits = inferred ? known > 0 && n % known == 0 : known == n;
  WICK_CHECK(fits,
             "unflatten: Provided sizes {} don't multiply up to the size of dim {} ({}) in the "
             "input tensor",
             formatInts(sizes), dim, n);
  DimVector inner = inferSize(sizes, n);
  DimVector shape;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (d != dim) {
      shape.push_back(self.sizes()[d]);
    } else {
      for (int64_t s : inner) shape.push_back(s);
    }
  }
  return self.view(shape);
}

Tensor squeeze(const Tensor& self) {
  DimVector sizes;
  DimVector strides;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return self.asStrided(sizes, strides, self.offset());
}

Tensor squeezeDim(const Tensor& self, int64_t dim) {
  return self.squeeze(dim);
}
Tensor squeezeDims(const Tensor& self, const DimVector& dims) {
  std::vector<bool> wanted(static_cast<size_t>(std::max<int64_t>(self.dim(), 1)), false);
  for (int64_t d : dims) {
    const auto at = static_cast<size_t>(wrapDim(d, self.dim()));
    WICK_CHECK(!wanted[at], "dim {} appears multiple times in the list of dims", at);
    wanted[at] = true;
  }
  DimVector sizes, strides;
  for (size_t d = 0; d < self.sizes().size(); ++d) {
    if (wanted[d] && self.sizes()[d] == 1) continue;
    sizes.push_back(self.sizes()[d]);
    strides.push_back(self.strides()[d]);
  }
  return self.asStrided(sizes, strides, self.offset());
}
Tensor unsqueeze(const Tensor& self, int64_t dim) {
  return self.unsqueeze(dim);
}

Tensor transpose(const Tensor& self, int64_t a, int64_t b) {
  return self.transpose(a, b);
}

Tensor t(const Tensor& self) {
  WICK_CHECK(self.dim() <= 2, "t() expects a tensor with <= 2 dimensions, but self is {}D",
             self.dim());
  return self.dim() < 2 ? self.detach() : self.transpose(0, 1);
}

Tensor permute(const Tensor& self, DimVector dims) {
  return self.permute(dims);
}

Tensor numpyT(const Tensor& self) {
  DimVector order;
  for (int64_t d = self.dim(); d-- > 0;) order.push_back(d);
  return self.permute(order);
}

Tensor conjugated(const Tensor& t) {
  if (!isComplex(t.dtype())) return t;
  Tensor out = t.clone();
  if (!t.device().isCpu()) {
    // The imaginary parts lie behind the real ones.
    DimVector strides;
    for (const int64_t stride : out.strides()) strides.push_back(2 * stride);
    const Tensor imaginary = Tensor::fromStorage(out.storage(), toRealType(out.dtype()),
                                                 out.sizes(), strides, 2 * out.offset() + 1);
    imaginary.copyFrom(ops::neg(imaginary));
    return out;
  }
  dispatch<kComplexes>("adjoint", t.dtype(), [&]<class T>() -> void {
    T* data = static_cast<T*>(out.storage()->data());
    std::transform(data, data + out.storage()->bytes() / sizeof(T), data,
                   [](T v) { return std::conj(v); });
  });
  return out;
}

Tensor mT(const Tensor& self) {
  WICK_CHECK(self.dim() >= 2 || self.dim() == 0,
             "tensor.mT is only supported on matrices or batches of matrices. Got {}-D tensor.",
             self.dim());
  return self.dim() == 0 ? self.detach() : self.transpose(-2, -1);
}

Tensor adjoint(const Tensor& self) {
  WICK_CHECK(self.dim() >= 2 || self.dim() == 0,
             "tensor.adjoint() is only supported on matrices or batches of matrices. Got {}-D "
             "tensor.",
             self.dim());
  return conjugated(self.dim() == 0 ? self : self.transpose(-2, -1));
}

Tensor matrixH(const Tensor& self) {
  WICK_CHECK(self.dim() == 2 || self.dim() == 0,
             "tensor.H is only supported on matrices (2-D tensors). Got {}-D tensor.{}", self.dim(),
             self.dim() > 2 ? " For batches of matrices, consider using tensor.mH" : "");
  return adjoint(self);
}

Tensor movedimList(const Tensor& self, DimVector source, DimVector destination) {
  return self.permute(movedDims(self.dim(), source, destination));
}

Tensor movedim(const Tensor& self, int64_t source, int64_t destination) {
  return movedimList(self, {source}, {destination});
}

Tensor expand(const Tensor& self, DimVector size, bool) {
  return self.expand(size);
}
Tensor broadcastTo(const Tensor& self, DimVector size) {
  return self.expand(size);
}
Tensor expandAs(const Tensor& self, const Tensor& other) {
  return self.expand(other.sizes());
}

std::vector<Tensor> broadcastTensors(std::vector<Tensor> tensors) {
  DimVector shape;
  for (const Tensor& t : tensors) shape = broadcastShapes(shape, t.sizes());
  for (Tensor& t : tensors) t = t.expand(shape);
  return tensors;
}

Tensor select(const Tensor& self, int64_t dim, int64_t index) {
  return self.select(dim, index);
}

Tensor slice(const Tensor& self, int64_t dim, std::optional<int64_t> start,
             std::optional<int64_t> end, int64_t step) {
  return self.slice(dim, start.value_or(0), end.value_or(INT64_MAX), step);
}

Tensor narrow(const Tensor& self, int64_t dim, int64_t start, int64_t length) {
  WICK_CHECK(self.dim() > 0, "narrow() cannot be applied to a 0-dim tensor.");
  WICK_CHECK(length >= 0, "narrow(): length must be non-negative.");
  int64_t n = self.size(dim);
  WICK_CHECK(start >= -n && start <= n,
             "Dimension out of range (expected to be in range of [{}, {}], but got {})", -n, n,
             start);
  if (start < 0) start += n;
  WICK_CHECK(length <= n - start, "start ({}) + length ({}) exceeds dimension size ({}).", start,
             length, n);
  return self.narrow(dim, start, length);
}

Tensor narrowTensor(const Tensor& self, int64_t dim, const Tensor& start, int64_t length) {
  WICK_CHECK(start.dim() == 0 && isIntegral(start.dtype(), false),
             "start must be an 0-dim integral Tensor.");
  return narrow(self, dim, start.item<int64_t>(), length);
}

Tensor asStrided(const Tensor& self, DimVector size, DimVector stride,
                 std::optional<int64_t> offset) {
  return self.asStrided(size, stride, offset.value_or(self.offset()));
}

Tensor unfold(const Tensor& self, int64_t dimension, int64_t size, int64_t step) {
  int64_t d = wrapDim(dimension, self.dim());
  int64_t n = self.dim() == 0 ? 1 : self.sizes()[d];
  WICK_CHECK(size >= 0, "size is {} but must be >= 0", size);
  WICK_CHECK(size <= n, "maximum size for tensor at dimension {} is {} but size is {}", d, n, size);
  WICK_CHECK(step > 0, "step is {} but must be > 0", step);
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  if (self.dim() == 0) {
    sizes.push_back(size);
    strides.push_back(1);
  } else {
    sizes.push_back(size);
    strides.push_back(strides[d]);
    sizes[d] = (n - size) / step + 1;
    strides[d] = steppedStride(strides[d], step);
  }
  return self.asStrided(sizes, strides, self.offset());
}

Tensor viewAsReal(const Tensor& self) {
  WICK_CHECK(isComplex(self.dtype()), "view_as_real is only supported for complex tensors");
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  for (int64_t& s : strides) s *= 2;
  sizes.push_back(2);
  strides.push_back(1);
  return Tensor::fromStorage(self.storage(), toRealType(self.dtype()), sizes, strides,
                             self.offset() * 2);
}

Tensor viewAsComplex(const Tensor& self) {
  WICK_CHECK(self.dtype() == DType::Float || self.dtype() == DType::Double,
             "view_as_complex is only supported for float and double tensors, but got a tensor of "
             "scalar type: {}",
             scalarTypeName(self.dtype()));
  WICK_CHECK(self.dim() > 0, "Input tensor must have one or more dimensions");
  WICK_CHECK(self.sizes().back() == 2, "Tensor must have a last dimension of size 2");
  WICK_CHECK(self.strides().back() == 1, "Tensor must have a last dimension with stride 1");
  DimVector sizes(self.sizes());
  DimVector strides(self.strides());
  sizes.pop_back();
  strides.pop_back();
  for (int64_t& s : strides) {
    WICK_CHECK(s % 2 == 0, "Tensor must have a stride divisible by 2 for all but last dimension");
    s /= 2;
  }
  WICK_CHECK(self.offset() % 2 == 0, "Tensor must have a storage_offset divisible by 2");
  return Tensor::fromStorage(self.storage(), toComplexType(self.dtype()), sizes, strides,
                             self.offset() / 2);
}

Tensor atleast1d(const Tensor& self) {
  return self.dim() == 0 ? self.reshape(DimVector{1}) : self;
}
Tensor atleast2d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape(DimVector{1, 1});
  return self.dim() == 1 ? self.unsqueeze(0) : self;
}
Tensor atleast3d(const Tensor& self) {
  if (self.dim() == 0) return self.reshape(DimVector{1, 1, 1});
  if (self.dim() == 1) return self.unsqueeze(0).unsqueeze(-1);
  return self.dim() == 2 ? self.unsqueeze(-1) : self;
}
template <Tensor (*F)(const Tensor&)>
std::vector<Tensor> eachOf(std::vector<Tensor> tensors) {
  for (Tensor& t : tensors) t = F(t);
  return tensors;
}

// Gives `self` the shape of a view of itself.
Tensor adopt(const Tensor& self, const Tensor& shape) {
  self.impl()->place(self.storage(), self.dtype(), DimVector(shape.sizes()),
                     DimVector(shape.strides()), shape.offset());
  return self;
}

template <auto F>
struct InPlaceOf;
template <class... Ps, Tensor (*F)(const Tensor&, Ps...)>
struct InPlaceOf<F> {
  static Tensor call(const Tensor& self, Ps... args) {
    return adopt(self, F(self, std::forward<Ps>(args)...));
  }
};

// The operators named …_copy: the same, on memory of their own.
template <auto F>
struct CopyOf;
template <class... Ps, Tensor (*F)(Ps...)>
struct CopyOf<F> {
  static Tensor call(Ps... args) {
    return F(std::forward<Ps>(args)...).clone(MemoryFormat::Contiguous);
  }
};
#define WICK_COPY_KERNEL(function) WICK_KERNEL(CopyOf<&function>::call)

// A view and its copy, with the arguments behind the first.
#define WICK_VIEW(name, overload, arguments, function, rule, flags)                            \
  {"aten::" name overload "(Tensor(a) self" arguments ") -> Tensor(a)", WICK_KERNEL(function), \
   kSavesNothing | flags, rule},                                                               \
      WICK_VIEW_COPY(name, overload, arguments, function, rule)
#define WICK_VIEW_COPY(name, overload, arguments, function, rule)          \
  {                                                                        \
    "aten::" name "_copy" overload "(Tensor self" arguments ") -> Tensor", \
        WICK_COPY_KERNEL(function), kOutForm | kNeutral, rule              \
  }
#define WICK_IN_PLACE(name, arguments, function)                             \
  {                                                                          \
    "aten::" name "(Tensor(a!) self" arguments ") -> Tensor(a!)",            \
        WICK_KERNEL(InPlaceOf<&function>::call), kChangesMetadata | kNeutral \
  }

const OperatorRecord kViewsRecords[] = {
    {"aten::view(Tensor(a) self, int[] size) -> Tensor(a)", WICK_KERNEL(view),
     kSavesNothing | kReadsStrides, shapes::view},
    WICK_VIEW("view", ".dtype", ", ScalarType dtype", viewDType, nullptr, kReadsStrides),
    {"aten::view_as(Tensor(a) self, Tensor other) -> Tensor(a)", WICK_KERNEL(viewAs),
     kNeutralMixed | kSavesNothing | kReadsStrides, shapes::viewAs},
    {"aten::reshape(Tensor(a) self, int[] shape) -> Tensor(a)", WICK_KERNEL(reshape),
     kNeutral | kSavesNothing | kMayCopy, shapes::view},
    {"aten::reshape_as(Tensor(a) self, Tensor other) -> Tensor(a)", WICK_KERNEL(reshapeAs),
     kNeutralMixed | kSavesNothing | kMayCopy, shapes::viewAs},
    WICK_VIEW("_reshape_alias", "", ", int[] size, int[] stride", reshapeAlias, shapes::view,
              kNoFlags),
    {"aten::_unsafe_view(Tensor self, int[] size) -> Tensor", WICK_KERNEL(view),
     kNeutral | kReadsStrides, shapes::view},
    {"aten::ravel(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(ravel),
     kNeutral | kSavesNothing | kMayCopy, shapes::flattened},
    WICK_VIEW("alias", "", "", alias, shapes::likeFirst, kNoFlags),
    {"aten::detach(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(detach),
     kNotDifferentiable | kNeutralMixed | kSavesNothing, shapes::likeFirst},
    {"aten::flatten.using_ints(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
     WICK_KERNEL(flatten), kNeutral | kSavesNothing | kMayCopy, shapes::flattened},
    {"aten::unflatten.int(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)",
     WICK_KERNEL(unflatten), kSavesNothing | kReadsStrides, shapes::unflattened},
    WICK_VIEW("squeeze", "", "", squeeze, shapes::squeezed, kNoFlags),
    WICK_VIEW("squeeze", ".dim", ", int dim", squeezeDim, shapes::squeezedDim, kNoFlags),
    WICK_VIEW("squeeze", ".dims", ", int[] dim", squeezeDims, nullptr, kNoFlags),
    WICK_VIEW("unsqueeze", "", ", int dim", unsqueeze, shapes::unsqueezed, kNoFlags),
    WICK_VIEW("transpose", ".int", ", int dim0, int dim1", transpose, shapes::transposed,
              kMovesElements),
    {"aten::swapaxes(Tensor(a) self, int axis0, int axis1) -> Tensor(a)", WICK_KERNEL(transpose),
     kSavesNothing | kMovesElements, shapes::transposed},
    {"aten::swapdims(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", WICK_KERNEL(transpose),
     kSavesNothing | kMovesElements, shapes::transposed},
    WICK_VIEW("t", "", "", t, shapes::transposedMatrix, kMovesElements),
    WICK_VIEW("permute", "", ", int[] dims", permute, shapes::permuted, kMovesElements),
    {"aten::numpy_T(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(numpyT), kMovesElements,
     shapes::reversedDims},
    {"aten::numpy_T.a(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(numpyT), kMovesElements,
     shapes::reversedDims},
    {"aten::mT(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(mT), kMovesElements,
     shapes::transposedLast},
    {"aten::mT.a(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(mT), kMovesElements,
     shapes::transposedLast},
    {"aten::mH(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(adjoint), kMovesElements,
     shapes::transposedLast},
    {"aten::mH.a(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(adjoint), kMovesElements,
     shapes::transposedLast},
    {"aten::matrix_H(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(matrixH), kNoFlags,
     shapes::transposedLast},
    {"aten::matrix_H.a(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(matrixH), kNoFlags,
     shapes::transposedLast},
    {"aten::adjoint(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(adjoint), kMovesElements,
     shapes::transposedLast},
    {"aten::movedim.intlist(Tensor(a) self, int[] source, int[] destination) -> Tensor(a)",
     WICK_KERNEL(movedimList), kSavesNothing | kMovesElements, shapes::movedDim},
    {"aten::movedim.int(Tensor(a) self, int source, int destination) -> Tensor(a)",
     WICK_KERNEL(movedim), kSavesNothing | kMovesElements, shapes::movedDim},
    WICK_VIEW("expand", "", ", int[] size, *, bool implicit=False", expand, shapes::expanded,
              kMovesElements),
    {"aten::expand_as(Tensor(a) self, Tensor other) -> Tensor(a)", WICK_KERNEL(expandAs),
     kNeutralMixed | kSavesNothing | kMovesElements, shapes::viewAs},
    {"aten::broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)", WICK_KERNEL(broadcastTo),
     kSavesNothing | kMovesElements, shapes::broadcastTo},
    {"aten::broadcast_tensors(Tensor[] tensors) -> Tensor[]", WICK_KERNEL(broadcastTensors),
     kMayReturnArgument | kNeutral | kMovesElements},
    WICK_VIEW("select", ".int", ", int dim, int index", select, shapes::selected, kMovesElements),
    {"aten::slice.Tensor(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1) -> "
     "Tensor(a)",
     WICK_KERNEL(slice), kSavesNothing | kMovesElements, shapes::sliced},
    {"aten::narrow(Tensor(a) self, int dim, int start, int length) -> Tensor(a)",
     WICK_KERNEL(narrow), kSavesNothing | kMovesElements, shapes::narrowed},
    {"aten::narrow_copy(Tensor self, int dim, int start, int length) -> Tensor",
     WICK_COPY_KERNEL(narrow), kOutForm | kOutSame | kNeutral, shapes::narrowed},
    {"aten::narrow.Tensor(Tensor(a) self, int dim, Tensor start, int length) -> Tensor(a)",
     WICK_KERNEL(narrowTensor), kSavesNothing | kMovesElements, shapes::narrowed},
    WICK_VIEW("diagonal", "", ", int offset=0, int dim1=0, int dim2=1", diagonalView,
              shapes::diagonal, kMovesElements),
    {"aten::linalg_diagonal(Tensor(a) A, *, int offset=0, int dim1=-2, int dim2=-1) -> Tensor(a)",
     WICK_KERNEL(diagonalView), kNoFlags, shapes::diagonal},
    WICK_VIEW("as_strided", "", ", int[] size, int[] stride, int? storage_offset=None", asStrided,
              shapes::strided, kReadsStrides),
    WICK_VIEW("unfold", "", ", int dimension, int size, int step", unfold, shapes::unfolded,
              kMovesElements),
    WICK_VIEW("view_as_real", "", "", viewAsReal, nullptr, kNoFlags),
    {"aten::view_as_complex(Tensor(a) self) -> Tensor(a)", WICK_KERNEL(viewAsComplex),
     kSavesNothing | kEagerCastFull | kReadsStrides},
    WICK_VIEW_COPY("view_as_complex", "", "", viewAsComplex, nullptr),
    {"aten::atleast_1d(Tensor self) -> Tensor", WICK_KERNEL(atleast1d),
     kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::atleast_1d.Sequence(Tensor[] tensors) -> Tensor[]", WICK_KERNEL(eachOf<atleast1d>),
     kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::atleast_2d(Tensor self) -> Tensor", WICK_KERNEL(atleast2d),
     kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::atleast_2d.Sequence(Tensor[] tensors) -> Tensor[]", WICK_KERNEL(eachOf<atleast2d>),
     kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::atleast_3d(Tensor self) -> Tensor", WICK_KERNEL(atleast3d),
     kMayReturnArgument | kNeutral | kSavesNothing},
    {"aten::atleast_3d.Sequence(Tensor[] tensors) -> Tensor[]", WICK_KERNEL(eachOf<atleast3d>),
     kMayReturnArgument | kNeutral | kSavesNothing},

    WICK_IN_PLACE("squeeze_", "", squeeze),
    WICK_IN_PLACE("squeeze_.dim", ", int dim", squeezeDim),
    WICK_IN_PLACE("squeeze_.dims", ", int[] dim", squeezeDims),
    WICK_IN_PLACE("unsqueeze_", ", int dim", unsqueeze),
    WICK_IN_PLACE("transpose_", ", int dim0, int dim1", transpose),
    WICK_IN_PLACE("swapaxes_", ", int axis0, int axis1", transpose),
    WICK_IN_PLACE("swapdims_", ", int dim0, int dim1", transpose),
    WICK_IN_PLACE("t_", "", t),
    {"aten::as_strided_(Tensor(a!) self, int[] size, int[] stride, int? storage_offset=None) -> "
     "Tensor(a!)",
     WICK_KERNEL(InPlaceOf<&asStrided>::call), kChangesMetadata | kNeutral | kReadsStrides},
    {"prim::view_copy(Tensor self, int[] size) -> Tensor", WICK_COPY_KERNEL(view), kNeutral},
    {"prim::reshape_copy(Tensor self, int[] shape) -> Tensor", WICK_COPY_KERNEL(reshape), kNeutral},
    {"prim::expand_copy(Tensor self, int[] size, *, bool implicit=False) -> Tensor",
     WICK_COPY_KERNEL(expand), kNeutral},
    {"prim::expand_as_copy(Tensor self, Tensor other) -> Tensor", WICK_COPY_KERNEL(expandAs),
     kNeutral},
    {"prim::squeeze_copy(Tensor self) -> Tensor", WICK_COPY_KERNEL(squeeze), kNeutral},
    {"aten::detach_copy(Tensor self) -> Tensor", WICK_COPY_KERNEL(detach),
     kOutForm | kNotDifferentiable | kNeutral, shapes::likeFirst},
    {"aten::view_copy(Tensor self, int[] size) -> Tensor", WICK_COPY_KERNEL(reshape),
     kOutForm | kNeutral, shapes::view},
    {"aten::slice_copy.Tensor(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) "
     "-> Tensor",
     WICK_COPY_KERNEL(slice), kNeutral, shapes::sliced},
};

const OperatorAlias kViewsAliases[] = {
    {"aten::moveaxis", "aten::movedim"},
};

const RegisterOperators kViewsRegistered(kViewsRecords, kViewsAliases);

}  // namespace

}  // namespace wick::ops
