#include "aot/cuda/functions.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "aot/cuda/function_steps.h"
#include "aot/device.h"
#include "aot/elements.h"
#include "codegen/cuda/scalar_text.h"
#include "core/tensor.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/sort_series.h"

namespace wick::aot {

using How = FunctionStep::How;

Operand memoryOf(int64_t words, DType dtype) {
  Operand operand = writes(Tensor::empty(DimVector{words}, DType::Long, Device{kAhead, -1}));
  operand.dtype = dtype;
  return operand;
}
Operand asRead(Operand operand) {
  operand.how = How::Reads;
  return operand;
}
Operand asChanged(Operand operand) {
  operand.how = How::Changes;
  return operand;
}
Operand behind(Operand operand, int64_t words) {
  if (operand.place) operand.place->offset += words * static_cast<int64_t>(sizeof(int64_t));
  return operand;
}

void addSeries(std::vector<AnyStep>& steps, const cuda::KernelSeries& series,
               std::vector<Operand> given) {
  std::vector<Operand> all = std::move(given);
  for (const int64_t words : series.memory) all.push_back(memoryOf(words));
  for (const cuda::KernelSeries::Kernel& kernel : series.kernels) {
    std::vector<Operand> operands;
    for (const int address : kernel.addresses) {
      operands.push_back(address < 0 ? Operand() : all[static_cast<size_t>(address)]);
    }
    // What one kernel has written others change.
    for (const int address : kernel.addresses) {
      if (address >= 0 && all[static_cast<size_t>(address)].how == How::Writes) {
        all[static_cast<size_t>(address)].how = How::Changes;
      }
    }
    steps.emplace_back(
        kernelOf(kernel.text, kernel.name, kernel.points, std::move(operands), kernel.numbers));
  }
}

void addOrder(std::vector<AnyStep>& steps, const Operand& from, const Operand& values,
              const Operand& order, int64_t count) {
  cuda::RowsInOrder rows;
  rows.type = from.dtype;
  rows.count = 1;
  rows.length = rows.kept = count;
  addSeries(steps, cuda::sortSeries(rows), {from, values, order});
}

namespace {

// ---- how many elements fall into each part of a range ----

// Counts become zero, and the ends of all elements those of none; one block of threads.
constexpr const char* kPrepareBins = R"(
struct Words { unsigned long long* counts; unsigned long long* ends; long long bins; };
extern "C" __global__ void __launch_bounds__(256) prepareBins(const __grid_constant__ Words p) {
  for (long long b = threadIdx.x; b < p.bins; b += 256) p.counts[b] = 0;
  if (threadIdx.x == 0) {
    p.ends[0] = ~0ull;
    p.ends[1] = p.ends[2] = 0;
  }
}
)";
// Numbers as keys in their order, and back. The least and the largest do not depend on which thread comes first.
constexpr const char* kKeys = R"(
typedef {type} T;
typedef unsigned long long K;
typedef {bits} B;
constexpr B kSign = (B)1 << (8 * sizeof(B) - 1);
__device__ __forceinline__ K keyOf(T v) {{
  const B bits = (B){to_bits}(v + (T)0);
  return (K)((bits & kSign) != 0 ? (B)~bits : (B)(bits | kSign));
}}
__device__ __forceinline__ T numberOf(K key) {{
  const B k = (B)key;
  return {from_bits}((k & kSign) != 0 ? (B)(k & ~kSign) : (B)~k);
}}
)";
constexpr const char* kEndsOfAll = R"(
struct Words { const T* x; const T* range; K* ends; long long n; };
extern "C" __global__ void __launch_bounds__(256) endsOfAll(const __grid_constant__ Words p) {
  if (!(p.range[0] == p.range[1])) return;
  K least = ~0ull, largest = 0;
  bool nan = false;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {
    const T v = p.x[i];
    if (v != v) { nan = true; continue; }
    const K key = keyOf(v);
    least = key < least ? key : least;
    largest = key > largest ? key : largest;
  }
  atomicMin(p.ends, least);
  atomicMax(p.ends + 1, largest);
  if (nan) atomicMax(p.ends + 2, 1ull);
}
)";
constexpr const char* kFillBinsText = R"(
struct Words {
  const T* x; const T* range; const K* ends; K* counts; long long n, bins;
  volatile long long* flag; long long complaint;
};
extern "C" __global__ void __launch_bounds__(256) fill(const __grid_constant__ Words p) {
  T low = p.range[0], high = p.range[1];
  bool good = true;
  if (low == high) {
    low = numberOf(p.ends[0]);
    high = numberOf(p.ends[1]);
    good = p.ends[2] == 0;
  }
  if (!good || !isfinite(low) || !isfinite(high)) {
    if (threadIdx.x == 0) *p.flag = p.complaint;
    return;
  }
  if (low == high) {
    low -= (T)1;
    high += (T)1;
  }
  const T span = high - low, parts = (T)p.bins;
  const bool overflows = !isfinite(span * parts);
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {
    const T v = p.x[i];
    if (v < low || v > high) continue;
    const T at = overflows ? (v - low) / span * parts : (v - low) * parts / span;
    const long long bin = at > (T)0 ? (long long)at : 0;
    atomicAdd(p.counts + (bin < p.bins ? bin : p.bins - 1), 1ull);
  }
}
)";
constexpr const char* kBinsAsNumbers = R"(
typedef {type} T;
struct Words {{ const long long* counts; T* to; long long bins; }};
extern "C" __global__ void __launch_bounds__(256) numbers(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.bins; i += gridDim.x * 256ll) {{
    p.to[i] = (T)p.counts[i];
  }}
}}
)";

std::string keysText(DType type) {
  const bool wide = type == DType::Double;
  return fmt::format(fmt::runtime(kKeys), fmt::arg("type", codegen::cudaType(type)),
                     fmt::arg("bits", wide ? "unsigned long long" : "unsigned"),
                     fmt::arg("to_bits", wide ? "__double_as_longlong" : "__float_as_uint"),
                     fmt::arg("from_bits", wide ? "__longlong_as_double" : "__uint_as_float"));
}

// Elements, the range, results, memory for counts; how many elements and parts.
std::vector<AnyStep> binned(const FunctionStep& s) {
  const DType type = s.operands[0].dtype;
  const int64_t n = s.numbers[0], bins = s.numbers[1];
  const Operand ends = memoryOf(3), &counts = s.operands[3];
  std::vector<AnyStep> steps;
  steps.emplace_back(kernelOf(kPrepareBins, "prepareBins", 1, {counts, ends}, {bins}));
  steps.emplace_back(kernelOf(keysText(type) + kEndsOfAll, "endsOfAll", n,
                              {s.operands[0], s.operands[1], asChanged(ends)}, {n}));
  steps.emplace_back(FunctionStep{kFillBins,
                                  {s.operands[0], s.operands[1], asRead(ends), asChanged(counts)},
                                  {n, bins},
                                  s.complaint});
  steps.emplace_back(
      kernelOf(fmt::format(fmt::runtime(kBinsAsNumbers), fmt::arg("type", codegen::cudaType(type))),
               "numbers", bins, {asRead(counts), s.operands[2]}, {bins}));
  return steps;
}

std::string_view nameOf(const FunctionStep& s) {
  const std::string_view function(s.function);
  return function.substr(0, function.find('<'));
}

}  // namespace

std::vector<AnyStep> cudaStepsOf(const FunctionStep& s) {
  const std::string_view name = nameOf(s);
  // Single kernels that check something.
  if (name == "bagsOfRows" || name == "sortedPositions") return {s};
  if (name == "sampleGrid") {
    return {kernelOf(cuda::gridSamplesText(s.operands[0].dtype), "samples",
                     s.numbers[0] * s.numbers[2], s.operands, s.numbers)};
  }
  if (name == "binCounts") return binned(s);
  for (const auto steps : {orderingSteps, writingSteps, selectingSteps}) {
    std::vector<AnyStep> made = steps(s, name);
    if (!made.empty()) return made;
  }
  return {};
}

std::optional<DeviceKernelStep> checkingKernelOf(const FunctionStep& s) {
  const std::string_view name = nameOf(s);
  const std::vector<int64_t>& n = s.numbers;
  if (name == kAddCounts) return kernelOf(addCountsText(), "addUp", 1, s.operands, n);
  if (name == kFillBins) {
    return kernelOf(keysText(s.operands[0].dtype) + kFillBinsText, "fill", n[0], s.operands, n);
  }
  if (name == "bagsOfRows") {
    // Rows, width, indices, bags, whether there is a last start, mode, padding.
    return kernelOf(cuda::bagsText(s.operands[0].dtype), "bags", n[3] * n[1], s.operands,
                    {n[0], n[1], n[3], n[2], n[3] + n[4], n[6], n[5]});
  }
  if (name == "sortedPositions") {
    // Values, elements of a sequence, values a row, how many are ordered, right.
    return kernelOf(cuda::positionsText(s.operands[0].dtype, n[4] != 0), "positions", n[0],
                    s.operands, {n[0], n[1], n[2]});
  }
  return std::nullopt;
}

}  // namespace wick::aot
