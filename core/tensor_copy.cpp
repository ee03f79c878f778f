// Tensor::copyFrom and fill.
//
// The two shapes become one list of dimensions with two strides each, ordered as the destination
// lies in memory and merged where both allow it. The two innermost dimensions form a plane; when
// the source runs along the other one (a transpose), the plane is walked in tiles, so that both
// sides use whole cache lines; words of 4 and 8 bytes are turned in registers. Rows, or tiles of
// rows, are what the threads share.
#include <immintrin.h>

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/memory_overlap.h"
#include "core/parallel.h"
#include "core/row_copy.h"
#include "core/tensor.h"
#include "core/transpose_tile.h"

namespace wick {

namespace {

// Half's conversions are instructions that no compiler makes vectors of. Gives how many elements
// were converted.
int64_t convertEights(Half* to, const float* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i),
                     _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
  }
  return i;
}
int64_t convertEights(float* to, const Half* from, int64_t n) {
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm256_storeu_ps(to + i,
                     _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}
// Numbers that do not fit become what convert() makes of them: the instruction's answer to them.
__attribute__((target("avx512f,avx512dq"))) int64_t truncateEights(int64_t* to, const float* from,
                                                                   int64_t n) {
  constexpr __mmask8 kAll = 0xff;
  int64_t i = 0;
  for (; i + 8 <= n; i += 8) {
    _mm512_storeu_si512(to + i, _mm512_maskz_cvttps_epi64(kAll, _mm256_loadu_ps(from + i)));
  }
  return i;
}
int64_t convertEights(int64_t* to, const float* from, int64_t n) {
  static const bool is_wide =
      __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq");
  return is_wide ? truncateEights(to, from, n) : 0;
}
template <class To, class From>
int64_t convertEights(To*, const From*, int64_t) {
  return 0;
}

template <class To, class From>
void convertRow(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n) {
  if (dst_step == sizeof(To) && src_step == sizeof(From)) {
    To* to = reinterpret_cast<To*>(dst);
    const From* from = reinterpret_cast<const From*>(src);
    for (int64_t i = convertEights(to, from, n); i < n; ++i) to[i] = convert<To>(from[i]);
    return;
  }
  for (int64_t i = 0; i < n; ++i) {
    *reinterpret_cast<To*>(dst + i * dst_step) =
        convert<To>(*reinterpret_cast<const From*>(src + i * src_step));
  }
}

struct Block16 {
  uint64_t words[2];
};

template <class Word>
void moveRow(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n) {
  if (dst_step == sizeof(Word) && src_step == sizeof(Word)) {
    std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(Word));
  } else if (dst_step == sizeof(Word) && src_step == 0) {
    std::fill_n(reinterpret_cast<Word*>(dst), n, *reinterpret_cast<const Word*>(src));
  } else {
    for (int64_t i = 0; i < n; ++i) {
      *reinterpret_cast<Word*>(dst + i * dst_step) =
          *reinterpret_cast<const Word*>(src + i * src_step);
    }
  }
}

}  // namespace

RowKernel rowKernel(DType to, DType from) {
  if (to == from) {
    switch (itemSize(to)) {
      case 1:
        return moveRow<uint8_t>;
      case 2:
        return moveRow<uint16_t>;
      case 4:
        return moveRow<uint32_t>;
      case 8:
        return moveRow<uint64_t>;
      default:
        return moveRow<Block16>;
    }
  }
  return dispatchAll(to, [&]<class To>() {
    return dispatchAll(from, [&]<class From>() -> RowKernel { return convertRow<To, From>; });
  });
}

namespace {

struct CopyDim {
  int64_t size;
  int64_t dst;  // steps in bytes
  int64_t src;
};

// Outermost first.
std::vector<CopyDim> planDims(const Tensor& dst, const Tensor& src) {
  std::vector<CopyDim> dims;
  int64_t to = static_cast<int64_t>(dst.itemSize());
  int64_t from = static_cast<int64_t>(src.itemSize());
  for (int64_t d = 0; d < dst.dim(); ++d) {
    if (dst.sizes()[d] != 1) {
      dims.push_back({dst.sizes()[d], dst.strides()[d] * to, src.strides()[d] * from});
    }
  }
  std::stable_sort(dims.begin(), dims.end(),
                   [](const CopyDim& a, const CopyDim& b) { return a.dst > b.dst; });
  std::vector<CopyDim> merged;
  for (const CopyDim& d : dims) {
    if (!merged.empty() && merged.back().dst == d.dst * d.size &&
        merged.back().src == d.src * d.size) {
      merged.back() = {merged.back().size * d.size, d.dst, d.src};
    } else {
      merged.push_back(d);
    }
  }
  while (merged.size() < 2) merged.insert(merged.begin(), {1, 0, 0});
  if (merged.size() == 2 && merged[1].size == 0) merged[0].size = 0;
  return merged;
}

constexpr int64_t kTile = 32;

// Brings the dimension along which the source is contiguous next to the innermost one. Returns
// whether tiles pay.
bool arrangeTiles(std::vector<CopyDim>& dims, int64_t src_item) {
  CopyDim& inner = dims.back();
  if (inner.src <= src_item || inner.size < 8) return false;
  for (size_t d = 0; d + 1 < dims.size(); ++d) {
    if (dims[d].src == src_item && dims[d].size >= 8) {
      std::rotate(dims.begin() + d, dims.begin() + d + 1, dims.end() - 1);
      return true;
    }
  }
  return false;
}

// The destination's rows [first, last) of a plane whose source runs along the columns: elements
// [begin, end) of each. A whole number of tiles; the number of elements that were done.
template <class Word, int64_t kSide>
int64_t turnTiles(char* dst, const char* src, const CopyDim& rows, int64_t first, int64_t last,
                  const CopyDim& inner, int64_t begin, int64_t end) {
  constexpr auto kWord = static_cast<int64_t>(sizeof(Word));
  const int64_t whole = begin + (end - begin) / kSide * kSide;
  const auto turn = [&](int64_t r, int64_t i) {
    transposeTile(reinterpret_cast<const Word*>(src + r * kWord + i * inner.src), inner.src / kWord,
                  reinterpret_cast<Word*>(dst + r * rows.dst + i * kWord), rows.dst / kWord);
  };
  // Lines that are far apart often share a place in the first cache: each is used up before others
  // are, on the side where they are further apart.
  if (inner.src >= rows.dst) {
    for (int64_t i = begin; i < whole; i += kSide) {
      for (int64_t r = first; r < last; r += kSide) turn(r, i);
    }
    return whole - begin;
  }
  constexpr int64_t kBlock = 64;
  for (int64_t block = begin; block < whole; block += kBlock) {
    const int64_t stop = std::min(whole, block + kBlock);
    for (int64_t r = first; r < last; r += kSide) {
      for (int64_t i = block; i < stop; i += kSide) turn(r, i);
    }
  }
  return whole - begin;
}

// Of words that are moved as they are. The number of rows from `first` that are done, a whole
// number of tiles, for elements [begin, begin + `columns`); sets `columns`, which was all.
int64_t turnBand(char* dst, const char* src, const CopyDim& rows, int64_t first, int64_t last,
                 const CopyDim& inner, int64_t begin, int64_t& columns) {
  const int64_t word = inner.dst;
  if (rows.src != word || inner.src % word != 0 || rows.dst % word != 0) return 0;
  if (word == 4) {
    const int64_t done = (last - first) / kTransposeTile * kTransposeTile;
    columns = turnTiles<float, kTransposeTile>(dst, src, rows, first, first + done, inner, begin,
                                               begin + columns);
    return done;
  }
  if (word == 8) {
    const int64_t done = (last - first) / kTransposeWideTile * kTransposeWideTile;
    columns = turnTiles<double, kTransposeWideTile>(dst, src, rows, first, first + done, inner,
                                                    begin, begin + columns);
    return done;
  }
  return 0;
}

// dst[i * kCount + k] = element i of the k-th source; these lie `apart` bytes behind one another.
template <class Word, int kCount>
void interleave(char* dst, const char* src, int64_t apart, int64_t n) {
  Word* to = reinterpret_cast<Word*>(dst);
  const Word* from[kCount];
  for (int k = 0; k < kCount; ++k) from[k] = reinterpret_cast<const Word*>(src + k * apart);
  for (int64_t i = 0; i < n; ++i) {
    for (int k = 0; k < kCount; ++k) to[i * kCount + k] = from[k][i];
  }
}

using InterleaveKernel = void (*)(char* dst, const char* src, int64_t apart, int64_t n);

template <int kCount>
InterleaveKernel interleaveKernel(int64_t item) {
  switch (item) {
    case 1:
      return interleave<uint8_t, kCount>;
    case 2:
      return interleave<uint16_t, kCount>;
    case 4:
      return interleave<uint32_t, kCount>;
    case 8:
      return interleave<uint64_t, kCount>;
    default:
      return interleave<Block16, kCount>;
  }
}

// Sources that run along the second dimension, while the innermost one takes elements in turn:
// what makes images larger (pixel_shuffle) and complex numbers of two parts. Null otherwise.
InterleaveKernel chooseInterleave(const CopyDim& rows, const CopyDim& inner, int64_t item) {
  if (inner.dst != item || rows.src != item || rows.dst != item * inner.size || inner.src < 0) {
    return nullptr;
  }
  switch (inner.size) {
    case 2:
      return interleaveKernel<2>(item);
    case 3:
      return interleaveKernel<3>(item);
    case 4:
      return interleaveKernel<4>(item);
    default:
      return nullptr;
  }
}

// Calls kernel(dst, src, first, end) for pieces of the last dimension, which has `length` elements:
// the elements [first, end) at every index of the dimensions in front.
template <class F>
void forEachOuter(char* dst, const char* src, std::span<const CopyDim> outer, int64_t length,
                  F&& kernel) {
  constexpr int64_t kPiece = 4096;
  int64_t planes = 1;
  for (const CopyDim& d : outer) planes *= d.size;
  const int64_t pieces = (length + kPiece - 1) / kPiece;
  const int64_t grain = std::max<int64_t>(1, kGrainSize / 4 / std::min(length, kPiece));
  parallelFor(planes * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      char* d = dst;
      const char* s = src;
      int64_t rest = w / pieces;
      for (size_t k = outer.size(); k-- > 0;) {
        const int64_t i = rest % outer[k].size;
        rest /= outer[k].size;
        d += i * outer[k].dst;
        s += i * outer[k].src;
      }
      const int64_t first = w % pieces * kPiece;
      kernel(d, s, first, std::min(length, first + kPiece));
    }
  });
}

// `moves`: elements are copied as they are.
void copyPlanes(char* dst, const char* src, std::vector<CopyDim> dims, RowKernel kernel,
                int64_t src_item, bool moves) {
  bool tiled = arrangeTiles(dims, src_item);
  CopyDim inner = dims.back();
  CopyDim rows = dims[dims.size() - 2];
  size_t outer_dims = dims.size() - 2;
  const InterleaveKernel together =
      moves && !tiled ? chooseInterleave(rows, inner, src_item) : nullptr;
  if (together) {
    forEachOuter(dst, src, std::span(dims).first(outer_dims), rows.size,
                 [&](char* d, const char* s, int64_t first, int64_t end) {
                   together(d + first * rows.dst, s + first * src_item, inner.src, end - first);
                 });
    return;
  }
  // Rows of so few elements cost more than their elements: the other dimension makes better ones.
  constexpr int64_t kFewElements = 4;
  if (!tiled && inner.size <= kFewElements && rows.size > 2 * inner.size) std::swap(inner, rows);
  int64_t planes = 1;
  for (size_t d = 0; d < outer_dims; ++d) planes *= dims[d].size;
  // One unit of work is a band of rows of one plane, enough of them that finding the band costs
  // little beside it; a single row is split along itself.
  constexpr int64_t kBandElements = 1024;
  int64_t band = std::max<int64_t>(1, kBandElements / std::max<int64_t>(1, inner.size));
  if (tiled) band = moves ? 2 * kTile : kTile;
  int64_t bands = (rows.size + band - 1) / band;
  if (planes * rows.size == 1 && !tiled) {
    parallelFor(inner.size, kGrainSize, [&](int64_t begin, int64_t end) {
      kernel(dst + begin * inner.dst, inner.dst, src + begin * inner.src, inner.src, end - begin);
    });
    return;
  }
  // Few long rows are cut along themselves as well.
  constexpr int64_t kLength = 2048;
  const int64_t length = tiled ? std::min(kLength, inner.size) : inner.size;
  const int64_t pieces = length == 0 ? 1 : (inner.size + length - 1) / length;
  int64_t unit = std::max<int64_t>(1, length * band);
  parallelFor(planes * bands * pieces, kGrainSize / unit, [&](int64_t begin, int64_t end) {
    for (int64_t w = begin; w < end; ++w) {
      const int64_t from = w % pieces * length, to = std::min(inner.size, from + length);
      int64_t rest = w / pieces / bands;
      char* d = dst;
      const char* s = src;
      for (size_t k = outer_dims; k-- > 0;) {
        int64_t i = rest % dims[k].size;
        rest /= dims[k].size;
        d += i * dims[k].dst;
        s += i * dims[k].src;
      }
      const int64_t first = w / pieces % bands * band;
      const int64_t last = std::min(rows.size, first + band);
      int64_t turned_columns = to - from, turned_rows = 0;
      if (tiled && moves) {
        turned_rows = turnBand(d, s, rows, first, last, inner, from, turned_columns);
        if (turned_rows == last - first && turned_columns == to - from) continue;
      }
      const int64_t step = tiled ? kTile : length;
      for (int64_t i = from; i < to; i += step) {
        const int64_t stop = std::min(i + step, to);
        for (int64_t r = first; r < last; ++r) {
          // Behind the tiles there may be some elements of their rows, and some rows.
          const int64_t at = r < first + turned_rows ? std::max(i, from + turned_columns) : i;
          if (at >= stop) continue;
          kernel(d + r * rows.dst + at * inner.dst, inner.dst, s + r * rows.src + at * inner.src,
                 inner.src, stop - at);
        }
      }
    }
  });
}

// The bytes [first, last) that a non-empty tensor touches.
std::pair<const char*, const char*> extent(const Tensor& t) {
  int64_t span = 1;
  for (int64_t d = 0; d < t.dim(); ++d) span += (t.sizes()[d] - 1) * t.strides()[d];
  const char* first = static_cast<const char*>(t.rawData());
  return {first, first + span * static_cast<int64_t>(t.itemSize())};
}

bool mayOverlap(const Tensor& a, const Tensor& b) {
  auto [a0, a1] = extent(a);
  auto [b0, b1] = extent(b);
  return a0 < b1 && b0 < a1;
}

// Of tensors on two devices: the source's bytes go over as they lie, and are spread there.
void copyAcross(const Tensor& to, const Tensor& source) {
  const DeviceType type = source.device().isCpu() ? to.device().type : source.device().type;
  DeviceBackend& backend = deviceBackend(type);
  const Tensor packed = source.isNonOverlappingAndDense() || !backend.holdsData()
                            ? source
                            : source.clone(MemoryFormat::Contiguous);
  const auto cross = [&](const Tensor& t) {
    backend.copyBytes(t.rawData(), t.device(), packed.rawData(), packed.device(),
                      static_cast<size_t>(packed.numel()) * packed.itemSize());
  };
  if (to.dtype() == packed.dtype() && std::ranges::equal(to.sizes(), packed.sizes()) &&
      std::ranges::equal(to.strides(), packed.strides())) {
    return cross(to);
  }
  const Tensor landed =
      Tensor::emptyStrided(packed.sizes(), packed.strides(), packed.dtype(), to.device());
  cross(landed);
  to.copyFrom(landed);
}

}  // namespace

const Tensor& Tensor::copyFrom(const Tensor& source) const {
  if (isSame(source)) return *this;
  WICK_CHECK(storage()->writable(), "copy_: the destination's memory is read-only");
  Tensor src = DimVector(source.sizes()) == DimVector(sizes()) ? source : source.expand(sizes());
  if (numel() == 0) return *this;
  checkNoInternalOverlap(*this);
  const bool on_cpu = device().isCpu() && src.device().isCpu();
  if (!on_cpu) {
    for (const Tensor* t : {this, static_cast<const Tensor*>(&src)}) {
      DeviceBackend& backend = deviceBackend(t->device().type);
      if (backend.hasMemory() || !backend.holdsData()) continue;
      backend.copyTensor(*this, src);
      return *this;
    }
  }
  if (!on_cpu && device().type == src.device().type && !deviceBackend(device().type).holdsData()) {
    return *this;
  }
  if (!on_cpu && device() != src.device()) {
    copyAcross(*this, source);
    return *this;
  }
  if (mayOverlap(*this, src)) {
    bool same_place = rawData() == src.rawData() && dtype() == src.dtype() &&
                      impl_->strides == src.impl_->strides;
    if (same_place) return *this;
    // Through a copy of the source's own elements, so that no element is written before it is read.
    src = source.clone(MemoryFormat::Contiguous).expand(sizes());
  }
  if (!on_cpu) {
    deviceBackend(device().type).copyElements(*this, src);
    return *this;
  }
  RowKernel kernel = rowKernel(dtype(), src.dtype());
  char* to = static_cast<char*>(rawData());
  const char* from = static_cast<const char*>(src.rawData());
  if (isContiguous() && src.isContiguous()) {
    int64_t to_size = static_cast<int64_t>(itemSize());
    int64_t from_size = static_cast<int64_t>(src.itemSize());
    parallelFor(numel(), kGrainSize, [&](int64_t begin, int64_t end) {
      kernel(to + begin * to_size, to_size, from + begin * from_size, from_size, end - begin);
    });
    return *this;
  }
  copyPlanes(to, from, planDims(*this, src), kernel, static_cast<int64_t>(src.itemSize()),
             dtype() == src.dtype());
  return *this;
}

const Tensor& Tensor::fill(double value) const {
  Tensor number = Tensor::empty({}, dtype());
  dispatchAll(dtype(), [&]<class T>() { *number.data<T>() = convert<T>(value); });
  return copyFrom(number);
}

}  // namespace wick
