// Operators about positions: non-zero elements, diagonals, and writing a view's worth of elements
// into a copy.
#include "core/convert.h"
#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/reduce.h"
#include "runtime/ops/common.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

int64_t countSet(const uint8_t* flags, int64_t n) {
  int64_t count = 0;
  // In parts that a narrow sum holds.
  constexpr int64_t kPart = 1 << 16;
  for (int64_t begin = 0; begin < n; begin += kPart) {
    uint32_t part = 0;
    for (int64_t i = begin; i < std::min(n, begin + kPart); ++i) part += flags[i] != 0 ? 1 : 0;
    count += part;
  }
  return count;
}

// Writes the positions of the first `left` set flags, which there are, from element `first` on.
void storePositions(const uint8_t* flags, int64_t first, int64_t left, IntSpan sizes, int64_t* to) {
  const size_t dims = sizes.size();
  if (dims == 0) return;
  DimVector at(dims, 0);
  int64_t rest = first;
  for (size_t d = dims; d-- > 0;) {
    at[d] = rest % sizes[d];
    rest /= sizes[d];
  }
  const int64_t length = sizes[dims - 1];
  for (const uint8_t* row = flags + first - at[dims - 1]; left > 0; row += length) {
    // Each is written, and the next one over it unless it is set: that is faster than asking.
    for (int64_t i = at[dims - 1]; i < length && left > 0; ++i) {
      for (size_t d = 0; d + 1 < dims; ++d) to[d] = at[d];
      to[dims - 1] = i;
      const int64_t set = row[i] != 0 ? 1 : 0;
      to += set * static_cast<int64_t>(dims);
      left -= set;
    }
    at[dims - 1] = 0;
    for (size_t d = dims - 1; d-- > 0;) {
      if (++at[d] < sizes[d]) break;
      at[d] = 0;
    }
  }
}

}  // namespace

Tensor nonzeroPositions(const Tensor& self) {
  Tensor flags = self.to(DType::Bool).contiguous();
  // As bytes: one that is neither 0 nor 1, which only a view of another dtype can have written,
  // must be the same to those who count and to those who store.
  const auto* data = static_cast<const uint8_t*>(flags.rawData());
  constexpr int64_t kChunk = 1 << 15;
  const int64_t n = flags.numel(), chunks = (n + kChunk - 1) / kChunk;
  CountedVector<int64_t> before(static_cast<size_t>(chunks + 1), 0);
  parallelFor(chunks, kGrainSize / kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      const int64_t first = c * kChunk;
      before[c + 1] = countSet(data + first, std::min(kChunk, n - first));
    }
  });
  for (int64_t c = 0; c < chunks; ++c) before[c + 1] += before[c];
  const int64_t dims = self.dim();
  Tensor out = Tensor::empty(DimVector{before[chunks], dims}, DType::Long);
  int64_t* const to = out.data<int64_t>();
  parallelFor(chunks, kGrainSize / kChunk, [&](int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; ++c) {
      storePositions(data, c * kChunk, before[c + 1] - before[c], self.sizes(),
                     to + before[c] * dims);
    }
  });
  return out;
}

namespace {

Tensor nonzeroKernel(const Tensor& self) {
  return nonzeroPositions(self);
}

// One index vector a dimension; a zero-dim tensor counts as one element.
std::vector<Tensor> nonzeroEach(const Tensor& self) {
  Tensor positions = nonzeroPositions(atLeast1d(self));
  std::vector<Tensor> out;
  for (int64_t d = 0; d < positions.sizes()[1]; ++d) out.push_back(positions.select(1, d));
  return out;
}

template <class T>
struct CountOp {
  using Acc = int64_t;
  Acc init() const { return 0; }
  void step(Acc& a, T v) const { a += convert<bool>(v) ? 1 : 0; }
  int64_t row(Acc& a, const T* p, int64_t n) const {
    constexpr int64_t kPart = 1 << 16;  // that a narrow sum holds
    for (int64_t begin = 0; begin < n; begin += kPart) {
      uint32_t part = 0;
      for (int64_t i = begin; i < std::min(n, begin + kPart); ++i)
        part += convert<bool>(p[i]) ? 1 : 0;
      a += part;
    }
    return n;
  }
  void merge(Acc& a, const Acc& b) const { a += b; }
  int64_t finish(const Acc& a) const { return a; }
};

Tensor countNonzeroDims(const Tensor& self, DimVector dims) {
  const std::vector<bool> reduced = reduce::dimMask("count_nonzero", self, dims);
  if (self.dtype() == DType::Bool) {
    // As bytes, for the same reason as above.
    const Tensor bytes = Tensor::fromStorage(self.storage(), DType::Byte, self.sizes(),
                                             self.strides(), self.offset());
    return reduce::apply<uint8_t, int64_t>(CountOp<uint8_t>(), bytes, reduced, false);
  }
  return dispatchAll(self.dtype(), [&]<class T>() {
    return reduce::apply<T, int64_t>(CountOp<T>(), self, reduced, false);
  });
}
Tensor countNonzero(const Tensor& self, std::optional<int64_t> dim) {
  return countNonzeroDims(self, dim ? DimVector{*dim} : DimVector{});
}

Tensor diagEmbed(const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) {
  int64_t dims = self.dim() + 1;
  int64_t a = wrapDim(dim1, dims);
  int64_t b = wrapDim(dim2, dims);
  WICK_CHECK(a != b, "diagonal dimensions cannot be identical {}, {}", dim1, dim2);
  WICK_CHECK(self.dim() > 0, "diag_embed: expected at least one dimension");
  int64_t side = 0;
  WICK_CHECK(offset != INT64_MIN &&
                 !__builtin_add_overflow(self.size(-1), offset < 0 ? -offset : offset, &side),
             "diag_embed: offset {} is too large", offset);
  DimVector sizes(self.sizes().begin(), self.sizes().end() - 1);
  sizes.insert(static_cast<size_t>(std::min(a, b)), side);
  sizes.insert(static_cast<size_t>(std::max(a, b)), side);
  Tensor out = Tensor::zeros(sizes, self.dtype(), self.device());
  diagonalView(out, offset, a, b).copyFrom(self);
  return out;
}

Tensor diag(const Tensor& self, int64_t offset) {
  WICK_CHECK(self.dim() == 1 || self.dim() == 2, "diag: matrix or a vector expected, got {} dims",
             self.dim());
  if (self.dim() == 1) return diagEmbed(self, offset, 0, 1);
  return diagonalView(self, offset, 0, 1).clone(MemoryFormat::Contiguous);
}
Tensor diagflat(const Tensor& self, int64_t offset) {
  return diagEmbed(self.flatten(), offset, 0, 1);
}

Tensor trace(const Tensor& self) {
  WICK_CHECK(self.dim() == 2, "trace: expected a matrix, but got tensor with dim {}", self.dim());
  Tensor line = diagonalView(self, 0, 0, 1).contiguous();
  Tensor out = Tensor::empty({}, isIntegral(self.dtype(), false) ? DType::Long : self.dtype());
  dispatch<kIntegers | kFloats | kComplexes>("trace", self.dtype(), [&]<class T>() -> void {
    if constexpr (std::is_integral_v<T>) {
      uint64_t sum = 0;
      for (int64_t i = 0; i < line.numel(); ++i) sum += static_cast<uint64_t>(line.data<T>()[i]);
      *out.data<int64_t>() = static_cast<int64_t>(sum);
    } else {
      using W = std::conditional_t<kIsComplex<T>, std::complex<double>, double>;
      W sum = 0;
      for (int64_t i = 0; i < line.numel(); ++i) sum += convert<W>(line.data<T>()[i]);
      *out.data<T>() = convert<T>(sum);
    }
  });
  return out;
}

// A copy of `self` whose part `view_of(copy)` holds `src`.
template <class F>
Tensor scatterView(const Tensor& self, const Tensor& src, F&& view_of) {
  Tensor out = self.clone();
  Tensor slice = view_of(out);
  WICK_CHECK(std::ranges::equal(slice.sizes(), src.sizes()),
             "expected src to have a size equal to the slice of self. src size = {}, slice size = "
             "{}",
             formatInts(src.sizes()), formatInts(slice.sizes()));
  slice.copyFrom(src);
  return out;
}
Tensor selectScatter(const Tensor& self, const Tensor& src, int64_t dim, int64_t index) {
  return scatterView(self, src, [&](const Tensor& t) { return t.select(dim, index); });
}
Tensor sliceScatter(const Tensor& self, const Tensor& src, int64_t dim,
                    std::optional<int64_t> start, std::optional<int64_t> end, int64_t step) {
  return scatterView(self, src, [&](const Tensor& t) {
    return t.slice(dim, start.value_or(0), end.value_or(INT64_MAX), step);
  });
}
Tensor diagonalScatter(const Tensor& self, const Tensor& src, int64_t offset, int64_t dim1,
                       int64_t dim2) {
  return scatterView(self, src,
                     [&](const Tensor& t) { return diagonalView(t, offset, dim1, dim2); });
}
Tensor asStridedScatter(const Tensor& self, const Tensor& src, DimVector size, DimVector stride,
                        std::optional<int64_t> offset) {
  return scatterView(self, src, [&](const Tensor& t) {
    return t.asStrided(size, stride, offset.value_or(t.offset()));
  });
}

const OperatorRecord kSelectionRecords[] = {
    {"aten::nonzero(Tensor self) -> Tensor", WICK_KERNEL(nonzeroKernel),
     kNotDifferentiable | kOutForm | kRefusesOverlap | kOutSame, shapes::nonzeroPlaces},
    {"aten::argwhere(Tensor self) -> Tensor", WICK_KERNEL(nonzeroKernel), kNotDifferentiable,
     shapes::nonzeroPlaces},
    {"aten::nonzero_numpy(Tensor self) -> Tensor[]", WICK_KERNEL(nonzeroEach), kNotDifferentiable},
    {"aten::where(Tensor condition) -> Tensor[]", WICK_KERNEL(nonzeroEach), kNotDifferentiable},
    {"aten::count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
     WICK_KERNEL(countNonzeroDims), kNotDifferentiable | kOutForm | kOutAny, shapes::reducedLong},
    {"aten::count_nonzero(Tensor self, int? dim=None) -> Tensor", WICK_KERNEL(countNonzero),
     kNotDifferentiable | kOutForm | kOutAny, shapes::reducedLong},
    {"aten::diag(Tensor self, int diagonal=0) -> Tensor", WICK_KERNEL(diag),
     kOutForm | kOutSame | kNeutral | kSavesNothing},
    {"aten::diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
     WICK_KERNEL(diagEmbed), kOutForm | kOutAny | kNeutral | kSavesNothing},
    {"aten::diagflat(Tensor self, int offset=0) -> Tensor", WICK_KERNEL(diagflat), kNeutral},
    {"aten::trace(Tensor self) -> Tensor", WICK_KERNEL(trace),
     kOutForm | kOutAny | kEagerCastFull | kSavesNothing},
    {"aten::select_scatter(Tensor self, Tensor src, int dim, int index) -> Tensor",
     WICK_KERNEL(selectScatter), kOutForm | kOutAny | kNeutral | kSavesNothing, shapes::likeFirst},
    {"aten::slice_scatter(Tensor self, Tensor src, int dim=0, int? start=None, int? end=None, int "
     "step=1) -> Tensor",
     WICK_KERNEL(sliceScatter), kOutForm | kNeutral, shapes::likeFirst},
    {"aten::diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> "
     "Tensor",
     WICK_KERNEL(diagonalScatter), kOutForm | kOutAny | kNeutral, shapes::likeFirst},
    {"aten::as_strided_scatter(Tensor self, Tensor src, int[] size, int[] stride, int? "
     "storage_offset=None) -> Tensor",
     WICK_KERNEL(asStridedScatter), kOutForm | kOutAny | kNeutral, shapes::likeFirst},
};

const RegisterOperators kSelectionRegistered(kSelectionRecords);

}  // namespace

}  // namespace wick::ops
