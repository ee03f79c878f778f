// Writes at positions that may repeat. What threads do in no order is never what decides: positions are sorted together
// with the numbers of their elements, and one thread goes along those that are equal.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "aot/cuda/function_steps.h"
#include "core/error.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/reduce_at.h"

namespace wick::aot {

namespace {

// Of several elements for one position the last stays. Positions below zero are out of range.
constexpr const char* kPut = R"(
typedef {type} T;
struct Words {{ T* to; const T* from; const long long* places; const long long* order; long long n; }};
extern "C" __global__ void __launch_bounds__(256) put(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    const long long place = p.places[i];
    if (place < 0 || (i + 1 < p.n && p.places[i + 1] == place)) continue;
    p.to[place] = p.from[p.order[i]];
  }}
}}
)";

// The numbers: how many. `kernel` is given to, from, positions in order, and the numbers of their elements.
std::vector<AnyStep> inOrder(const FunctionStep& s, std::string text, const char* kernel) {
  const int64_t count = s.numbers[0];
  const Operand places = memoryOf(count), order = memoryOf(count);
  std::vector<AnyStep> steps;
  addOrder(steps, s.operands[1], places, order, count);
  steps.emplace_back(kernelOf(std::move(text), kernel, count,
                              {s.operands[0], s.operands[2], asRead(places), asRead(order)},
                              {count}));
  return steps;
}

ops::Reduction reductionOf(std::string_view function) {
  const auto is = [&](std::string_view name) { return function.ends_with(name); };
  if (is("::Sum>")) return ops::Reduction::Sum;
  if (is("::Prod>")) return ops::Reduction::Prod;
  if (is("::Mean>")) return ops::Reduction::Mean;
  WICK_ASSERT(is("::Max>") || is("::Min>"), "a reduction that nobody knows");
  return is("::Max>") ? ops::Reduction::Amax : ops::Reduction::Amin;
}

// ---- where a mask is true ----

// How many elements a block of threads goes over.
constexpr int64_t kChunk = 2048;
constexpr const char* kCountSet = R"(
struct Words { const unsigned char* mask; long long* counts; long long n, chunks; };
extern "C" __global__ void __launch_bounds__(256) countSet(const __grid_constant__ Words p) {
  __shared__ int parts[8];
  for (long long chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {
    int count = 0;
    for (int k = 0; k < 2048; k += 256) {
      const long long i = chunk * 2048 + k + threadIdx.x;
      count += __popc(__ballot_sync(0xffffffffu, i < p.n && p.mask[i] != 0));
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = count;
    __syncthreads();
    if (threadIdx.x == 0) {
      long long all = 0;
      for (int w = 0; w < 8; ++w) all += parts[w];
      p.counts[chunk] = all;
    }
    __syncthreads();
  }
}
)";
// Counts become how many come before; one block of threads.
constexpr const char* kAddUp = R"(
struct Words {
  long long* counts; long long chunks, most; volatile long long* flag; long long complaint;
};
extern "C" __global__ void __launch_bounds__(256) addUp(const __grid_constant__ Words p) {
  __shared__ long long parts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long before = 0;
  for (long long begin = 0; begin < p.chunks; begin += 256) {
    const long long i = begin + threadIdx.x, own = i < p.chunks ? p.counts[i] : 0;
    long long sum = own;
    for (int step = 1; step < 32; step *= 2) {
      const long long other = __shfl_up_sync(0xffffffffu, sum, step);
      if (lane >= step) sum += other;
    }
    if (lane == 31) parts[warp] = sum;
    __syncthreads();
    long long at = before;
    for (int w = 0; w < 8; ++w) {
      if (w < warp) at += parts[w];
      before += parts[w];
    }
    if (i < p.chunks) p.counts[i] = at + sum - own;
    __syncthreads();
  }
  if (threadIdx.x == 0 && before > p.most) *p.flag = p.complaint;
}
)";
constexpr const char* kPlaceSet = R"(
typedef {type} T;
struct Words {{
  T* to; const unsigned char* mask; const T* from; const long long* counts; long long n, most, chunks;
}};
extern "C" __global__ void __launch_bounds__(256) placeSet(const __grid_constant__ Words p) {{
  __shared__ int parts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  for (long long chunk = blockIdx.x; chunk < p.chunks; chunk += gridDim.x) {{
    long long before = p.counts[chunk];
    for (int k = 0; k < 2048; k += 256) {{
      const long long i = chunk * 2048 + k + threadIdx.x;
      const bool set = i < p.n && p.mask[i] != 0;
      const unsigned votes = __ballot_sync(0xffffffffu, set);
      if (lane == 0) parts[warp] = __popc(votes);
      __syncthreads();
      long long at = before + __popc(votes & ((1u << lane) - 1));
      for (int w = 0; w < 8; ++w) {{
        if (w < warp) at += parts[w];
        before += parts[w];
      }}
      if (set && at < p.most) p.to[i] = p.from[at];
      __syncthreads();
    }}
  }}
}}
)";

// The numbers: elements, and how many values there are.
std::vector<AnyStep> placed(const FunctionStep& s) {
  const int64_t n = s.numbers[0], most = s.numbers[1], chunks = (n + kChunk - 1) / kChunk;
  const Operand counts = memoryOf(chunks);
  std::vector<AnyStep> steps;
  steps.emplace_back(
      kernelOf(kCountSet, "countSet", chunks * 256, {s.operands[1], counts}, {n, chunks}));
  steps.emplace_back(FunctionStep{kAddCounts, {asChanged(counts)}, {chunks, most}, s.complaint});
  steps.emplace_back(kernelOf(
      fmt::format(fmt::runtime(kPlaceSet), fmt::arg("type", cuda::movedType(s.operands[0].bytes))),
      "placeSet", chunks * 256, {s.operands[0], s.operands[1], s.operands[2], asRead(counts)},
      {n, most, chunks}));
  return steps;
}

}  // namespace

std::vector<AnyStep> writingSteps(const FunctionStep& s, std::string_view name) {
  const DType type = s.operands.empty() ? DType::Float : s.operands[0].dtype;
  if (name == "putAt") {
    return inOrder(
        s, fmt::format(fmt::runtime(kPut), fmt::arg("type", cuda::movedType(s.operands[0].bytes))),
        "put");
  }
  if (name == "addAt") {
    return inOrder(s, cuda::reduceRunsText(type, ops::Reduction::Sum, true), "reduceRuns");
  }
  if (name == "reduceAt") {
    return inOrder(s, cuda::reduceRunsText(type, reductionOf(s.function), s.numbers[1] != 0),
                   "reduceRuns");
  }
  if (name == "putWhere") return placed(s);
  return {};
}

std::string addCountsText() {
  return kAddUp;
}

}  // namespace wick::aot
