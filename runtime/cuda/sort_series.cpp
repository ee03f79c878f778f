// The elements of a row become pairs of a key (as in runtime/ops/indexing/sort_keys.h: NaN is the
// largest, zeros are equal) and their position, padded to a power of two. A bitonic network sorts
// the pairs: stages within kChunk pairs in shared memory, wider steps in global memory. No two pairs
// are equal, so equal elements keep their order, and every run gives the same.
#include "runtime/cuda/sort_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <utility>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"

namespace wick::cuda {

namespace {

// Pairs that a block of threads sorts in shared memory.
constexpr int64_t kChunk = 1024;

// Words: addresses of from, values, indices, pairs, scratch; length, padded, count, mask, first, kept, quick.
constexpr const char* kElements = R"({preamble}
typedef {type} T;
typedef unsigned long long U;
{pair}
struct Words {{
  const T* from; T* values; long long* indices; P* pairs; P* scratch;
  long long length, padded, count; U mask; long long first, kept, quick;
}};
__device__ __forceinline__ K keyOf(T v) {{ {key} }}
)";
constexpr const char* kLoad = R"(
extern "C" __global__ void __launch_bounds__(256) load(const __grid_constant__ Words p) {
  const long long total = p.count * p.padded;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {
    const long long slice = i / p.padded, at = i % p.padded;
    p.pairs[i] = at < p.length ? pairOf(keyOf(p.from[slice * p.length + at]) ^ (K)p.mask, at)
                               : pairOf((K)~0ull, ~0ull);
  }
}
)";
constexpr const char* kStore = R"(
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
constexpr const char* kPairs = R"(
typedef unsigned long long U;
{pair}
struct Words {{ P* pairs; long long total, padded, from, to; }};

__device__ __forceinline__ void order(P& low, P& high, bool rising) {{
  const P a = low, b = high;
  if (isLess(b, a) == rising) {{ low = b; high = a; }}
}}
)";
constexpr const char* kSortChunks = R"(
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
)";
constexpr const char* kSortStep = R"(
extern "C" __global__ void __launch_bounds__(256) sortStep(const __grid_constant__ Words p) {
  for (long long t = blockIdx.x * 256ll + threadIdx.x; t < p.total / 2; t += gridDim.x * 256ll) {
    const long long low = 2 * t - (t & (p.to - 1));
    order(p.pairs[low], p.pairs[low + p.to], ((low & (p.padded - 1)) & p.from) == 0);
  }
}
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

// The addresses of a series.
enum Address : int { kNone = -1, kFrom, kValues, kIndices, kOfPairs, kScratch };

class Series {
 public:
  explicit Series(const RowsInOrder& rows) : rows_(rows) {
    WICK_CHECK(rows.length <= int64_t{1} << 40, "sort: a row of {} elements is too long",
               rows.length);
    narrow_ = itemSize(rows.type) <= 4 && rows.length < int64_t{1} << 32;
    padded_ = static_cast<int64_t>(
        std::bit_ceil(static_cast<uint64_t>(std::max<int64_t>(rows.length, 1))));
    int64_t words = 0;
    WICK_CHECK(!__builtin_mul_overflow(rows.count, padded_, &total_) &&
                   !__builtin_mul_overflow(total_, narrow_ ? 1 : 2, &words),
               "sort: {} rows of {} elements are too many", rows.count, rows.length);
    made_.memory.push_back(words);
    pairs_text_ = narrow_ ? kNarrowPair : kWidePair;
  }

  KernelSeries make() {
    load(kOfPairs);
    sort();
    add(elementText() + storeText(), "store", rows_.count * rows_.kept, numbers(),
        {kFrom, kValues, kIndices, kOfPairs, kNone});
    if (rows_.ties != RowsInOrder::Ties::ByPosition && rows_.length <= kMostReplayed) replay();
    return std::move(made_);
  }

 private:
  void add(std::string text, const char* name, int64_t points, std::vector<int64_t> numbers,
           std::vector<int> addresses) {
    made_.kernels.push_back(
        {std::move(text), name, points, std::move(addresses), std::move(numbers)});
  }
  void load(Address to) {
    add(elementText() + kLoad, "load", total_, numbers(), {kFrom, kNone, kNone, to, kNone});
  }

  void sort() {
    const std::string head = fmt::format(fmt::runtime(kPairs), fmt::arg("pair", pairs_text_));
    const std::string chunks =
        head + fmt::format(fmt::runtime(kSortChunks), fmt::arg("chunk", kChunk));
    const std::string step = head + kSortStep;
    const auto launch = [&](const std::string& text, const char* name, int64_t from, int64_t to) {
      made_.kernels.push_back({text, name, total_ / 4, {kOfPairs}, {total_, padded_, from, to}});
    };
    launch(chunks, "sortChunks", 2, std::min(padded_, kChunk));
    for (int64_t stage = 2 * kChunk; stage <= padded_; stage *= 2) {
      for (int64_t wide = stage / 2; wide >= kChunk; wide /= 2) {
        launch(step, "sortStep", stage, wide);
      }
      launch(chunks, "sortChunks", stage, stage);
    }
  }

  void replay() {
    made_.memory.push_back(made_.memory[0]);
    load(kScratch);
    std::vector<int64_t> given = numbers();
    given.back() = rows_.ties == RowsInOrder::Ties::AsOne ? 1 : 0;
    add(elementText() + kReplay, "replay", rows_.count, std::move(given),
        {kFrom, kValues, kIndices, kOfPairs, kScratch});
  }

  std::string elementText() const {
    return fmt::format(fmt::runtime(kElements),
                       fmt::arg("preamble", codegen::cudaPreamble(Expression())),
                       fmt::arg("type", codegen::cudaType(rows_.type)),
                       fmt::arg("pair", pairs_text_), fmt::arg("key", keyText(rows_.type)));
  }
  std::string storeText() const {
    using Chosen = RowsInOrder::Chosen;
    const bool floats = isFloating(rows_.type);
    std::string place = kFromFirst;
    if (rows_.chosen == Chosen::Median) place = medianPlace(floats, false);
    if (rows_.chosen == Chosen::MedianOfNumbers) place = medianPlace(floats, true);
    if (rows_.chosen == Chosen::Mode) place = modePlace(floats);
    return fmt::format(fmt::runtime(kStore), fmt::arg("place", place));
  }
  std::vector<int64_t> numbers() const {
    return {rows_.length, padded_, rows_.count, rows_.descending ? -1 : 0, rows_.first,
            rows_.kept,   0};
  }

  const RowsInOrder rows_;
  bool narrow_ = true;
  int64_t padded_ = 1, total_ = 0;
  const char* pairs_text_;
  KernelSeries made_;
};

}  // namespace

KernelSeries sortSeries(const RowsInOrder& rows) {
  return Series(rows).make();
}

}  // namespace wick::cuda
