// What elements select: where they are not zero, which values there are, which boxes stay. Sizes that elements decide are below
// 4,096 (Recording::size), so one block of threads goes over all of them.
#include <fmt/format.h>

#include <string>
#include <string_view>

#include "aot/cuda/function_steps.h"
#include "codegen/cuda/scalar_text.h"
#include "runtime/cuda/element_texts.h"

namespace wick::aot {

namespace {

// The numbers of flags that are set, or what `order` has for them, and how many there are.
constexpr const char* kSelect = R"(
struct Words {
  const unsigned char* flags; const long long* order; long long* to; long long* found; long long n;
};
extern "C" __global__ void __launch_bounds__(256) select(const __grid_constant__ Words p) {
  __shared__ int parts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long before = 0;
  for (long long begin = 0; begin < p.n; begin += 256) {
    const long long i = begin + threadIdx.x;
    const bool set = i < p.n && p.flags[i] != 0;
    const unsigned votes = __ballot_sync(0xffffffffu, set);
    if (lane == 0) parts[warp] = __popc(votes);
    __syncthreads();
    long long at = before + __popc(votes & ((1u << lane) - 1));
    for (int w = 0; w < 8; ++w) {
      if (w < warp) at += parts[w];
      before += parts[w];
    }
    if (set) p.to[at] = p.order ? p.order[i] : i;
    __syncthreads();
  }
  if (threadIdx.x == 0) *p.found = before;
}
)";
AnyStep selected(const Operand& flags, const Operand& order, const Operand& to,
                 const Operand& found, int64_t count) {
  return kernelOf(kSelect, "select", 1, {flags, order, to, found}, {count});
}

constexpr const char* kCoordinates = R"(
struct Words {{ const long long* from; long long* to; long long count; long long sizes[{dims}]; }};
extern "C" __global__ void __launch_bounds__(256) coordinates(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.count; i += gridDim.x * 256ll) {{
    long long rest = p.from[i];
    for (int d = {dims} - 1; d >= 0; --d) {{
      p.to[i * {dims} + d] = rest % p.sizes[d];
      rest /= p.sizes[d];
    }}
  }}
}}
)";
// The numbers: positions, then sizes. Without dimensions there are no coordinates.
std::vector<AnyStep> coordinates(const FunctionStep& s) {
  const size_t dims = s.numbers.size() - 1;
  if (dims == 0) return {};
  return {kernelOf(fmt::format(fmt::runtime(kCoordinates), fmt::arg("dims", dims)), "coordinates",
                   s.numbers[0], s.operands, s.numbers)};
}

// Of elements, which may be in order: those that differ from the one in front of them, which of these each is, and how often
// they occur. With `numbers_only` a NaN is no place and no occurrence, as wick_aot::distinctValues has it.
constexpr const char* kDistinct = R"(
typedef {type} T;
struct Words {{
  const T* x; const long long* order; T* values; long long* places; long long* occurrences;
  long long* starts; long long* found; long long n;
}};
__device__ __forceinline__ bool counts(T v) {{ return {counts}; }}
extern "C" __global__ void __launch_bounds__(256) distinct(const __grid_constant__ Words p) {{
  __shared__ int parts[8];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  long long before = 0;
  for (long long begin = 0; begin < p.n; begin += 256) {{
    const long long i = begin + threadIdx.x;
    const bool begins = i < p.n && (i == 0 || !(p.x[i - 1] == p.x[i]));
    const unsigned votes = __ballot_sync(0xffffffffu, begins);
    if (lane == 0) parts[warp] = __popc(votes);
    __syncthreads();
    // Its own beginning counts.
    long long at = before + __popc(votes & ((2u << lane) - 1)) - 1;
    for (int w = 0; w < 8; ++w) {{
      if (w < warp) at += parts[w];
      before += parts[w];
    }}
    if (begins) {{
      p.values[at] = p.x[i];
      p.starts[at] = i;
    }}
    if (i < p.n) p.places[p.order ? p.order[i] : i] = counts(p.x[i]) ? at : 0;
    __syncthreads();
  }}
  for (long long at = threadIdx.x; at < before; at += 256) {{
    const long long end = at + 1 < before ? p.starts[at + 1] : p.n;
    p.occurrences[at] = counts(p.values[at]) ? end - p.starts[at] : 0;
  }}
  if (threadIdx.x == 0) *p.found = before;
}}
)";
std::vector<AnyStep> distinct(const FunctionStep& s, bool sorts) {
  const int64_t count = s.numbers[0];
  const DType type = s.operands[0].dtype;
  // The memory of the function, of twice as many numbers.
  const Operand starts = s.operands[4], order = behind(s.operands[4], count);
  const Operand in_order = memoryOf(count, type);
  std::vector<AnyStep> steps;
  if (sorts) addOrder(steps, s.operands[0], in_order, order, count);
  const Operand none;
  steps.emplace_back(kernelOf(
      fmt::format(fmt::runtime(kDistinct), fmt::arg("type", codegen::cudaType(type)),
                  fmt::arg("counts", sorts ? "v == v" : "true")),
      "distinct", 1,
      {sorts ? asRead(in_order) : s.operands[0], sorts ? asRead(order) : none, s.operands[1],
       s.operands[2], s.operands[3], sorts ? asChanged(starts) : starts, s.operands[5]},
      {count}));
  return steps;
}

// Boxes, their order, the limit, memory, which stay, how many do.
std::vector<AnyStep> suppressed(const FunctionStep& s) {
  const int64_t count = s.numbers[0];
  const Operand& kept = s.operands[3];
  std::vector<AnyStep> steps;
  steps.emplace_back(kernelOf(cuda::suppressText(s.operands[0].dtype, "const double*", "*p.limit"),
                              "suppress", 1, {s.operands[0], s.operands[1], kept, s.operands[2]},
                              {count}));
  steps.push_back(selected(asRead(kept), s.operands[1], s.operands[4], s.operands[5], count));
  return steps;
}

}  // namespace

std::vector<AnyStep> selectingSteps(const FunctionStep& s, std::string_view name) {
  if (name == "positionsWhere") {
    return {selected(s.operands[0], Operand(), s.operands[1], s.operands[2], s.numbers[0])};
  }
  if (name == "coordinatesOf") return coordinates(s);
  if (name == "distinctValues") return distinct(s, true);
  if (name == "distinctNeighbours") return distinct(s, false);
  if (name == "bestBoxes") return suppressed(s);
  return {};
}

}  // namespace wick::aot
