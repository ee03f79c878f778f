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

// Words: from, pairs, values, indices, length, padded, count, mask, first, kept.
constexpr const char* kText = R"({preamble}
typedef {type} T;
typedef unsigned long long U;
{pair}
struct Words {{
  const T* from; P* pairs; T* values; long long* indices;
  long long length, padded, count; U mask; long long first, kept;
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

  // For each slice `kept` elements and their positions; the text `place` says which, from `first`.
  Pair results(const std::string& place, int64_t first, int64_t kept, bool reduced, bool keepdim) {
    DimVector sizes(moved_.sizes());
    sizes.back() = kept;
    const Tensor values = Tensor::empty(sizes, self_.dtype(), self_.device());
    const Tensor indices = Tensor::empty(sizes, DType::Long, self_.device());
    if (count_ > 0 && kept > 0) {
      CudaDevice& device = enter(self_.device());
      launchText(device, elementText(place), "store", gridFor(count_ * kept, device),
                 words(values, indices, first, kept));
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
            kept};
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
  Pair top = Sorted("topk", self, dim, largest).results(kFromFirst, 0, k, false, false);
  return {std::move(top.values), std::move(top.indices)};
}

// One element of each slice.
Results picked(const char* op, const Tensor& self, int64_t dim, bool keepdim,
               const std::string& place, int64_t first) {
  WICK_CHECK(self.dim() == 0 || self.size(dim) > 0,
             "{}(): Expected reduction dim {} to have non-zero size.", op, dim);
  Pair one = Sorted(op, self, dim, false).results(place, first, 1, true, keepdim);
  return {std::move(one.values), std::move(one.indices)};
}

Results kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WICK_CHECK(length == 0 || (k >= 1 && k <= length),
             "kthvalue(): selected number k out of range for dimension {}", dim);
  return picked("kthvalue", self, dim, keepdim, kFromFirst, k - 1);
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

// ---- unique ----

struct Runs {
  Tensor values, inverse, counts;  // the second and third where they are asked for
};

// Runs of equal neighbours of a flat tensor.
Runs runsOf(const Tensor& flat, bool with_inverse, bool with_counts) {
  static const OperatorHandle kDiffers{"aten::ne", "Tensor"}, kNonzero{"aten::nonzero", ""},
      kCumsum{"aten::cumsum", ""}, kIndexSelect{"aten::index_select", ""};
  const int64_t n = flat.numel();
  const Device device = flat.device();
  Runs runs;
  if (n == 0) {
    runs.values = flat.clone();
    runs.inverse = Tensor::zeros(DimVector{0}, DType::Long, device);
    runs.counts = runs.inverse.clone();
    return runs;
  }
  const Tensor starts = Tensor::empty(DimVector{n}, DType::Bool, device);
  ops::fillWith(starts, Scalar(true));
  if (n > 1) {
    starts.narrow(0, 1, n - 1)
        .copyFrom(kDiffers(flat.narrow(0, 1, n - 1), flat.narrow(0, 0, n - 1)));
  }
  const Tensor places = kNonzero(starts).reshape(DimVector{-1});
  runs.values = kIndexSelect(flat, 0, places);
  if (with_inverse) {
    const Tensor one = Tensor::zeros(DimVector{}, DType::Long, device);
    ops::fillWith(one, Scalar(1));
    runs.inverse = ops::sub(kCumsum(starts.to(DType::Long), 0), one);
  }
  if (with_counts) {
    const Tensor ends = Tensor::empty(places.sizes(), DType::Long, device);
    ops::fillWith(ends, Scalar(n));
    const int64_t found = places.numel();
    if (found > 1) ends.narrow(0, 0, found - 1).copyFrom(places.narrow(0, 1, found - 1));
    runs.counts = ops::sub(ends, places);
  }
  return runs;
}

using ThreeResults = std::tuple<Tensor, Tensor, Tensor>;

ThreeResults asResults(const Tensor& self, const Runs& runs) {
  const Tensor none = Tensor::empty(DimVector{0}, DType::Long, self.device());
  return {runs.values, runs.inverse.defined() ? runs.inverse.reshape(self.sizes()) : none,
          runs.counts.defined() ? runs.counts : none};
}

ThreeResults unique(const Tensor& self, bool, bool return_inverse, bool return_counts) {
  static const OperatorHandle kScatter{"aten::scatter", "src"};
  const Tensor flat = self.reshape(DimVector{-1});
  if (flat.numel() == 0) return asResults(self, runsOf(flat, return_inverse, return_counts));
  const auto [sorted, order] = sort(flat, 0, false);
  Runs runs = runsOf(sorted, return_inverse, return_counts);
  // From the order of sorting back to that of the elements.
  if (return_inverse) {
    runs.inverse =
        kScatter(Tensor::zeros(order.sizes(), DType::Long, self.device()), 0, order, runs.inverse);
  }
  return asResults(self, runs);
}
ThreeResults uniqueConsecutive(const Tensor& self, bool return_inverse, bool return_counts,
                               std::optional<int64_t> dim) {
  if (dim && self.dim() != 1) throw NotOnDevice();
  return asResults(self, runsOf(self.reshape(DimVector{-1}), return_inverse, return_counts));
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
    {"aten::_unique2", WICK_KERNEL(unique)},
};
const DeviceKernel kLast[] = {
    {"aten::median", WICK_KERNEL(medianAll<false>)},
    {"aten::nanmedian", WICK_KERNEL(medianAll<true>)},
    {"aten::unique_consecutive", WICK_KERNEL(uniqueConsecutive)},
};
const RegisterDeviceKernels registered(DeviceType::CUDA, kKernels);
const RegisterDeviceKernels last(DeviceType::CUDA, kLast, TableRule::Last);

}  // namespace

}  // namespace wick::cuda
