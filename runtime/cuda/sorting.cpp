// Operators that order elements along a dimension, on CUDA devices.
//
// The elements of a slice become pairs of a key (as in runtime/ops/indexing/sort_keys.h: NaN is the
// largest, zeros are equal) and their position, padded to a power of two. A bitonic network sorts
// the pairs: stages within kChunk pairs in shared memory, wider steps in global memory. No two pairs
// are equal, so equal elements keep their order, and every run gives the same.
#include <fmt/format.h>

#include <bit>

#include "codegen/cuda/scalar_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

// Pairs that a block of threads sorts in shared memory.
constexpr int64_t kChunk = 1024;

// Words: from, pairs, values, indices, length, padded, count, mask, first, kept, scratch, quick.
constexpr const char* kText = R"({preamble}
typedef {type} T;
typedef unsigned long long U;
{pair}
struct Words {{
  const T* from; P* pairs; T* values; long long* indices;
  long long length, padded, count; U mask; long long first, kept; P* scratch; long long quick;
}};
__device__ __forceinline__ K keyOf(T v) {{ {key} }}

extern "C" __global__ void __launch_bounds__(256) load(const __grid_constant__ Words p) {{
  const long long total = p.count * p.padded;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long slice = i / p.padded, at = i % p.padded;
    p.pairs[i] = at < p.length ? pairOf(keyOf(p.from[slice * p.length + at]) ^ (K)p.mask, at)
                               : pairOf((K)~0ull, ~0ull);
  }}
}}

// Where the element that belongs to place `at` of a result stands among the sorted pairs.
__device__ __forceinline__ long long placeOf(const Words& p, const P* pairs, long long at) {{
{place}
}}

extern "C" __global__ void __launch_bounds__(256) store(const __grid_constant__ Words p) {{
  const long long total = p.count * p.kept;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long slice = i / p.kept;
    const P* const pairs = p.pairs + slice * p.padded;
    const long long index = indexOf(pairs[placeOf(p, pairs, i % p.kept)]);
    p.values[i] = p.from[slice * p.length + index];
    p.indices[i] = index;
  }}
}}
)";

// Which of equal elements topk and kthvalue choose follows, on the CPU, from how PyTorch's algorithms move
// them: libstdc++'s std::partial_sort, std::nth_element and std::sort, and a selection of its own. Where
// equal elements matter, a thread does the same with the slice's pairs, compared by their keys alone.
constexpr const char* kReplay = R"(
__device__ __forceinline__ bool before(const P& a, const P& b) { return keyIn(a) < keyIn(b); }
__device__ __forceinline__ void exchange(P& a, P& b) { const P t = a; a = b; b = t; }

__device__ void adjustHeap(P* a, long long hole, long long length, P value) {
  const long long top = hole;
  long long child = hole;
  while (child < (length - 1) / 2) {
    child = 2 * (child + 1);
    if (before(a[child], a[child - 1])) --child;
    a[hole] = a[child];
    hole = child;
  }
  if ((length & 1) == 0 && child == (length - 2) / 2) {
    child = 2 * (child + 1);
    a[hole] = a[child - 1];
    hole = child - 1;
  }
  while (hole > top && before(a[(hole - 1) / 2], value)) {
    a[hole] = a[(hole - 1) / 2];
    hole = (hole - 1) / 2;
  }
  a[hole] = value;
}
__device__ void popHeap(P* a, long long length, long long to) {
  const P value = a[to];
  a[to] = a[0];
  adjustHeap(a, 0, length, value);
}
// The first `middle` of `length` become a heap of the least.
__device__ void selectHeap(P* a, long long middle, long long length) {
  for (long long parent = (middle - 2) / 2; middle > 1 && parent >= 0; --parent) {
    adjustHeap(a, parent, middle, a[parent]);
  }
  for (long long i = middle; i < length; ++i) {
    if (before(a[i], a[0])) popHeap(a, middle, i);
  }
}
__device__ void sortPart(P* a, long long middle, long long length) {
  selectHeap(a, middle, length);
  for (long long n = middle; n > 1; --n) popHeap(a, n - 1, n - 1);
}
__device__ void insertBack(P* a, long long i) {
  const P value = a[i];
  for (; before(value, a[i - 1]); --i) a[i] = a[i - 1];
  a[i] = value;
}
__device__ void insertionSort(P* a, long long first, long long last) {
  for (long long i = first + 1; i < last; ++i) {
    if (before(a[i], a[first])) {
      const P value = a[i];
      for (long long j = i; j > first; --j) a[j] = a[j - 1];
      a[first] = value;
    } else {
      insertBack(a, i);
    }
  }
}
// Around the median of three, which goes to the first place.
__device__ long long partition(P* a, long long first, long long last) {
  P &x = a[first + 1], &y = a[first + (last - first) / 2], &z = a[last - 1], &to = a[first];
  if (before(x, y)) {
    exchange(to, before(y, z) ? y : before(x, z) ? z : x);
  } else {
    exchange(to, before(x, z) ? x : before(y, z) ? z : y);
  }
  long long i = first + 1, j = last;
  while (true) {
    while (before(a[i], a[first])) ++i;
    --j;
    while (before(a[first], a[j])) --j;
    if (i >= j) return i;
    exchange(a[i], a[j]);
    ++i;
  }
}
__device__ __forceinline__ int twiceLog(long long n) { return 2 * (63 - __clzll(n)); }
__device__ void selectNth(P* a, long long nth, long long length) {
  if (nth == length) return;
  long long first = 0, last = length;
  for (int depth = twiceLog(length); last - first > 3; --depth) {
    if (depth == 0) {
      selectHeap(a + first, nth + 1 - first, last - first);
      exchange(a[first], a[nth]);
      return;
    }
    const long long cut = partition(a, first, last);
    if (cut <= nth) first = cut; else last = cut;
  }
  insertionSort(a, first, last);
}
__device__ void sortAll(P* a, long long length) {
  if (length < 1) return;
  long long firsts[64], lasts[64];
  int depths[64], open = 1;
  firsts[0] = 0;
  lasts[0] = length;
  depths[0] = twiceLog(length);
  while (open > 0) {
    --open;
    const long long first = firsts[open];
    long long last = lasts[open];
    int depth = depths[open];
    while (last - first > 16) {
      if (depth == 0) {
        sortPart(a + first, last - first, last - first);
        break;
      }
      --depth;
      const long long cut = partition(a, first, last);
      firsts[open] = cut;
      lasts[open] = last;
      depths[open++] = depth;
      last = cut;
    }
  }
  insertionSort(a, 0, length < 16 ? length : 16);
  for (long long i = 16; i < length; ++i) insertBack(a, i);
}
__device__ void selectTop(P* a, long long k, long long length) {
  if (k <= length / 64) {
    sortPart(a, k, length);
  } else {
    selectNth(a, k - 1, length);
    sortAll(a, k - 1);
  }
}
__device__ void selectQuick(P* a, long long k, long long length) {
  long long low = 0, high = length - 1;
  while (low < high) {
    if (high == low + 1) {
      if (before(a[high], a[low])) exchange(a[low], a[high]);
      return;
    }
    exchange(a[low + (high - low) / 2], a[low + 1]);
    if (before(a[high], a[low + 1])) exchange(a[low + 1], a[high]);
    if (before(a[high], a[low])) exchange(a[low], a[high]);
    if (before(a[low], a[low + 1])) exchange(a[low + 1], a[low]);
    const K pivot = keyIn(a[low]);
    long long i = low + 1, j = high;
    while (true) {
      do ++i; while (pivot > keyIn(a[i]));
      do --j; while (keyIn(a[j]) > pivot);
      if (j < i) break;
      exchange(a[i], a[j]);
    }
    exchange(a[low], a[j]);
    if (j <= k) low = i;
    if (j >= k) high = j - 1;
  }
}

extern "C" __global__ void __launch_bounds__(256) replay(const __grid_constant__ Words p) {
  const long long step = gridDim.x * 256ll;
  for (long long slice = blockIdx.x * 256ll + threadIdx.x; slice < p.count; slice += step) {
    const P* const sorted = p.pairs + slice * p.padded;
    const long long end = p.first + p.kept;
    bool ties = false;
    for (long long i = p.first > 0 ? p.first : 1; i <= end && i < p.length; ++i) {
      ties = ties || keyIn(sorted[i - 1]) == keyIn(sorted[i]);
    }
    if (!ties) continue;
    P* const pairs = p.scratch + slice * p.padded;
    if (p.first > 0 || p.quick) {
      selectQuick(pairs, p.first, p.length);
    } else {
      selectTop(pairs, p.kept, p.length);
    }
    for (long long i = 0; i < p.kept; ++i) {
      const long long index = indexOf(pairs[p.first + i]);
      p.values[slice * p.kept + i] = p.from[slice * p.length + index];
      p.indices[slice * p.kept + i] = index;
    }
  }
}
)";
// Longer slices keep the order of their positions: one thread would take too long.
constexpr int64_t kMostReplayed = 1 << 14;

// Words: pairs, total, padded, first and last stage; of a step: pairs, total, padded, stage, step.
constexpr const char* kSortText = R"(
typedef unsigned long long U;
{pair}
struct Words {{ P* pairs; long long total, padded, from, to; }};

__device__ __forceinline__ void order(P& low, P& high, bool rising) {{
  const P a = low, b = high;
  if (isLess(b, a) == rising) {{ low = b; high = a; }}
}}

extern "C" __global__ void __launch_bounds__(256) sortChunks(const __grid_constant__ Words p) {{
  __shared__ P s[{chunk}];
  for (long long base = blockIdx.x * {chunk}ll; base < p.total; base += gridDim.x * {chunk}ll) {{
    for (int e = threadIdx.x; e < {chunk}; e += 256) {{
      s[e] = base + e < p.total ? p.pairs[base + e] : pairOf((K)~0ull, ~0ull);
    }}
    __syncthreads();
    for (long long stage = p.from; stage <= p.to; stage *= 2) {{
      const long long half = stage / 2;
      for (int step = half < {chunk} / 2 ? (int)half : {chunk} / 2; step > 0; step /= 2) {{
        for (int t = threadIdx.x; t < {chunk} / 2; t += 256) {{
          const int low = 2 * t - (t & (step - 1));
          order(s[low], s[low + step], (((base + low) & (p.padded - 1)) & stage) == 0);
        }}
        __syncthreads();
      }}
    }}
    for (int e = threadIdx.x; e < {chunk}; e += 256) {{
      if (base + e < p.total) p.pairs[base + e] = s[e];
    }}
    __syncthreads();
  }}
}}

extern "C" __global__ void __launch_bounds__(256) sortStep(const __grid_constant__ Words p) {{
  for (long long t = blockIdx.x * 256ll + threadIdx.x; t < p.total / 2; t += gridDim.x * 256ll) {{
    const long long low = 2 * t - (t & (p.to - 1));
    order(p.pairs[low], p.pairs[low + p.to], ((low & (p.padded - 1)) & p.from) == 0);
  }}
}}
)";

// Keys and positions of 32 bits each in one word, or of 64 bits side by side.
constexpr const char* kNarrowPair = R"(
typedef unsigned K;
typedef U P;
__device__ __forceinline__ P pairOf(K key, U index) { return ((U)key << 32) | (unsigned)index; }
__device__ __forceinline__ K keyIn(P p) { return (K)(p >> 32); }
__device__ __forceinline__ long long indexOf(P p) { return (long long)(unsigned)p; }
__device__ __forceinline__ bool isLess(P a, P b) { return a < b; }
)";
constexpr const char* kWidePair = R"(
typedef U K;
struct __align__(16) P { U key, index; };
__device__ __forceinline__ P pairOf(K key, U index) { P p; p.key = key; p.index = index; return p; }
__device__ __forceinline__ K keyIn(P p) { return p.key; }
__device__ __forceinline__ long long indexOf(P p) { return (long long)p.index; }
__device__ __forceinline__ bool isLess(P a, P b) {
  return a.key < b.key || (a.key == b.key && a.index < b.index);
}
)";

std::string keyText(DType type) {
  switch (type) {
    case DType::Double:
      return "const U bits = (U)__double_as_longlong(v + 0.0); if (v != v) return (K)~0ull; "
             "return (bits >> 63) != 0 ? (K)~bits : (K)(bits | 0x8000000000000000ull);";
    case DType::Long:
      return "return (K)((U)v ^ 0x8000000000000000ull);";
    case DType::Bool:
    case DType::Byte:
      return "return (K)v;";
    default:
      break;
  }
  // 64-bit keys of narrow elements are for slices of more than four billion.
  if (isIntegral(type, false)) {
    return "return sizeof(K) == 4 ? (K)((unsigned)(int)v ^ 0x80000000u) : "
           "(K)((U)(long long)v ^ 0x8000000000000000ull);";
  }
  return fmt::format(
      "const float number = {}; const unsigned bits = __float_as_uint(number + 0.0f); "
      "if (number != number) return (K)~0ull; "
      "return (bits >> 31) != 0 ? (K)(unsigned)~bits : (K)(bits | 0x80000000u);",
      codegen::cudaConvert("v", type, DType::Float));
}

constexpr const char* kFromFirst = "  return p.first + at;";

// The middle of the numbers: NaN stands behind them.
std::string medianPlace(bool is_float, bool ignore_nan) {
  if (!is_float) return "  return (p.length - 1) / 2;";
  return fmt::format(
      "  long long low = 0, high = p.length;\n"
      "  while (low < high) {{\n"
      "    const long long middle = low + (high - low) / 2;\n"
      "    if (keyIn(pairs[middle]) == (K)~0ull) high = middle; else low = middle + 1;\n"
      "  }}\n"
      "  if ({}) return low;\n"
      "  return low > 0 ? (low - 1) / 2 : 0;",
      ignore_nan ? "false" : "low < p.length");
}

// The last of the longest run of equal elements; of several runs the first. NaN equals nothing.
std::string modePlace(bool is_float) {
  return fmt::format(
      "  long long best = 0, most = 0, run = 0;\n"
      "  for (long long i = 0; i < p.length; ++i) {{\n"
      "    ++run;\n"
      "    const K key = keyIn(pairs[i]);\n"
      "    if (i + 1 < p.length && keyIn(pairs[i + 1]) == key && {}) continue;\n"
      "    if (run > most) {{ best = i; most = run; }}\n"
      "    run = 0;\n"
      "  }}\n"
      "  return best;",
      is_float ? "key != (K)~0ull" : "true");
}

struct Pair {
  Tensor values, indices;
};

// Sorted slices of a tensor along a dimension.
class Sorted {
 public:
  Sorted(const char* op, const Tensor& self, int64_t dim, bool descending)
      : self_(self), dim_(dim), descending_(descending) {
    WICK_CHECK(!isComplex(self.dtype()), "{}: no kernel for dtype {}", op, toString(self.dtype()));
    const Tensor t = self.dim() == 0 ? self.unsqueeze(0) : self;
    moved_ = t.transpose(dim, t.dim() - 1).contiguous();
    length_ = t.size(dim);
    count_ = length_ == 0 ? 0 : moved_.numel() / length_;
    narrow_ = self.itemSize() <= 4 && length_ < int64_t{1} << 32;
    WICK_CHECK(length_ <= int64_t{1} << 40, "{}: a slice of {} elements is too long", op, length_);
    padded_ =
        static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(length_, 1))));
    if (count_ > 0) sort();
  }

  // How equal elements are chosen: by their positions, or as PyTorch's selection of the first ones or of
  // one does on the CPU.
  enum class Ties { ByPosition, AsTop, AsOne };

  // For each slice `kept` elements and their positions; the text `place` says which, from `first`.
  Pair results(const std::string& place, int64_t first, int64_t kept, bool reduced, bool keepdim,
               Ties ties = Ties::ByPosition) {
    DimVector sizes(moved_.sizes());
    sizes.back() = kept;
    const Tensor values = Tensor::empty(sizes, self_.dtype(), self_.device());
    const Tensor indices = Tensor::empty(sizes, DType::Long, self_.device());
    if (count_ > 0 && kept > 0) {
      CudaDevice& device = enter(self_.device());
      launchText(device, elementText(place), "store", gridFor(count_ * kept, device),
                 words(values, indices, first, kept));
      if (ties != Ties::ByPosition && length_ <= kMostReplayed) {
        const Tensor scratch = Tensor::empty(pairs_.sizes(), DType::Long, self_.device());
        std::vector<int64_t> given = words(values, indices, first, kept);
        given[1] = wordOf(scratch);
        const std::string text = elementText(kFromFirst) + kReplay;
        launchText(device, text, "load", gridFor(count_ * padded_, device), given);
        given[1] = wordOf(pairs_);
        given[10] = wordOf(scratch);
        given[11] = ties == Ties::AsOne ? 1 : 0;
        launchText(device, text, "replay", gridFor(count_, device), given);
      }
    }
    const auto finish = [&](const Tensor& t) {
      Tensor back = t.transpose(dim_, t.dim() - 1);
      if (self_.dim() == 0 || (reduced && !keepdim)) back = back.select(dim_, 0);
      return back.contiguous();
    };
    return {finish(values), finish(indices)};
  }

 private:
  std::string pairText() const { return narrow_ ? kNarrowPair : kWidePair; }
  std::string elementText(const std::string& place) const {
    return fmt::format(
        fmt::runtime(kText), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
        fmt::arg("type", codegen::cudaType(self_.dtype())), fmt::arg("pair", pairText()),
        fmt::arg("key", keyText(self_.dtype())), fmt::arg("place", place));
  }
  std::vector<int64_t> words(const Tensor& values, const Tensor& indices, int64_t first,
                             int64_t kept) const {
    const int64_t mask = descending_ ? -1 : 0;
    return {wordOf(moved_),
            wordOf(pairs_),
            values.defined() ? wordOf(values) : 0,
            indices.defined() ? wordOf(indices) : 0,
            length_,
            padded_,
            count_,
            mask,
            first,
            kept,
            0,
            0};
  }

  void sort() {
    int64_t total = 0;
    WICK_CHECK(!__builtin_mul_overflow(count_, padded_, &total),
               "sort: {} slices of {} elements "
               "are too many",
               count_, length_);
    CudaDevice& device = enter(self_.device());
    pairs_ = Tensor::empty(DimVector{total, narrow_ ? 1 : 2}, DType::Long, self_.device());
    launchText(device, elementText(kFromFirst), "load", gridFor(total, device),
               words({}, {}, 0, 0));
    const std::string text = fmt::format(fmt::runtime(kSortText), fmt::arg("pair", pairText()),
                                         fmt::arg("chunk", kChunk));
    const auto launchSort = [&](const char* name, int64_t from, int64_t to) {
      launchText(device, text, name, gridFor(total / 4, device),
                 {wordOf(pairs_), total, padded_, from, to});
    };
    launchSort("sortChunks", 2, std::min(padded_, kChunk));
    for (int64_t stage = 2 * kChunk; stage <= padded_; stage *= 2) {
      for (int64_t step = stage / 2; step >= kChunk; step /= 2) launchSort("sortStep", stage, step);
      launchSort("sortChunks", stage, stage);
    }
  }

  Tensor self_, moved_, pairs_;
  int64_t dim_, length_ = 0, count_ = 0, padded_ = 1;
  bool descending_, narrow_ = true;
};

using Results = std::tuple<Tensor, Tensor>;

Results sortStable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  dim = wrapDim(dim, self.dim());
  Pair sorted = Sorted("sort", self, dim, descending)
                    .results(kFromFirst, 0, self.dim() == 0 ? 1 : self.size(dim), false, false);
  return {std::move(sorted.values), std::move(sorted.indices)};
}
Results sort(const Tensor& self, int64_t dim, bool descending) {
  return sortStable(self, true, dim, descending);
}
Tensor argsort(const Tensor& self, int64_t dim, bool descending) {
  return std::get<1>(sort(self, dim, descending));
}
Tensor argsortStable(const Tensor& self, bool, int64_t dim, bool descending) {
  return std::get<1>(sort(self, dim, descending));
}
Tensor msort(const Tensor& self) {
  return std::get<0>(sort(self, 0, false));
}

Results topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  dim = wrapDim(dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WICK_CHECK(k >= 0 && k <= length, "topk: selected index k out of range: {} of {}", k, length);
  WICK_CHECK(self.dtype() != DType::Bool, "topk: no kernel for dtype bool");
  Pair top = Sorted("topk", self, dim, largest)
                 .results(kFromFirst, 0, k, false, false, Sorted::Ties::AsTop);
  return {std::move(top.values), std::move(top.indices)};
}

// One element of each slice.
Results picked(const char* op, const Tensor& self, int64_t dim, bool keepdim,
               const std::string& place, int64_t first,
               Sorted::Ties ties = Sorted::Ties::ByPosition) {
  WICK_CHECK(self.dim() == 0 || self.size(dim) > 0,
             "{}(): Expected reduction dim {} to have non-zero size.", op, dim);
  Pair one = Sorted(op, self, dim, false).results(place, first, 1, true, keepdim, ties);
  return {std::move(one.values), std::move(one.indices)};
}

Results kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WICK_CHECK(length == 0 || (k >= 1 && k <= length),
             "kthvalue(): selected number k out of range for dimension {}", dim);
  return picked("kthvalue", self, dim, keepdim, kFromFirst, k - 1, Sorted::Ties::AsOne);
}

template <bool kIgnoreNan>
Results medianDim(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  return picked("median", self, dim, keepdim, medianPlace(isFloating(self.dtype()), kIgnoreNan), 0);
}
template <bool kIgnoreNan>
Tensor medianAll(const Tensor& self) {
  if (self.numel() == 0) throw NotOnDevice();
  return std::get<0>(medianDim<kIgnoreNan>(self.reshape(DimVector{-1}), 0, false));
}
Results mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  return picked("mode", self, dim, keepdim, modePlace(isFloating(self.dtype())), 0);
}

const DeviceKernel kKernels[] = {
    {"aten::sort", WICK_KERNEL(sort)},
    {"aten::sort.stable", WICK_KERNEL(sortStable)},
    {"aten::argsort", WICK_KERNEL(argsort)},
    {"aten::argsort.stable", WICK_KERNEL(argsortStable)},
    {"aten::msort", WICK_KERNEL(msort)},
    {"aten::topk", WICK_KERNEL(topk)},
    {"aten::kthvalue", WICK_KERNEL(kthvalue)},
    {"aten::median.dim", WICK_KERNEL(medianDim<false>)},
    {"aten::nanmedian.dim", WICK_KERNEL(medianDim<true>)},
    {"aten::mode", WICK_KERNEL(mode)},
};
const DeviceKernel kLast[] = {
    {"aten::median", WICK_KERNEL(medianAll<false>)},
    {"aten::nanmedian", WICK_KERNEL(medianAll<true>)},
};
const RegisterDeviceKernels registered(DeviceType::CUDA, kKernels);
const RegisterDeviceKernels last(DeviceType::CUDA, kLast, TableRule::Last);

}  // namespace

}  // namespace wick::cuda
