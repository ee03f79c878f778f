#include "aot/cuda/functions.h"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "codegen/cuda/scalar_text.h"
#include "runtime/cuda/scans.h"

namespace wick::aot {

namespace {

// Each element counts those that come before it in its row, which is where it belongs: equal ones as they stand,
// NaN as the largest. So nothing is exchanged, and rows are better short: the work is the square of their length.
constexpr const char* kRank = R"({preamble}
typedef {type} T;
typedef unsigned long long K;
struct Words {{
  const T* x; T* values; long long* indices; long long rows, n, first, kept, descending;
}};
__device__ __forceinline__ K keyOf(T v, bool descending) {{
  K key;
  {key}
  return descending ? ~key : key;
}}
extern "C" __global__ void __launch_bounds__(256) rank(const __grid_constant__ Words p) {{
  const long long total = p.rows * p.n;
  const bool descending = p.descending != 0;
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < total; i += gridDim.x * 256ll) {{
    const long long row = i / p.n, own = i % p.n;
    const T* const x = p.x + row * p.n;
    const K key = keyOf(x[own], descending);
    long long before = -p.first;
    for (long long j = 0; j < own; ++j) before += keyOf(x[j], descending) <= key;
    for (long long j = own + 1; j < p.n; ++j) before += keyOf(x[j], descending) < key;
    if (before < 0 || before >= p.kept) continue;
    p.values[row * p.kept + before] = x[own];
    p.indices[row * p.kept + before] = own;
  }}
}}
)";

std::string rankText(DType type) {
  const char* const key =
      type == DType::Float
          ? "const unsigned bits = __float_as_uint(v + 0.0f);\n"
            "  key = v != v ? ~0ull : bits >> 31 != 0 ? (K)(~bits) : (K)(bits | 0x80000000u);"
      : type == DType::Double
          ? "const K bits = (K)__double_as_longlong(v + 0.0);\n"
            "  key = v != v ? ~0ull : bits >> 63 != 0 ? ~bits : bits | 0x8000000000000000ull;"
          : "key = (K)(long long)v ^ 0x8000000000000000ull;";
  return fmt::format(fmt::runtime(kRank), fmt::arg("preamble", codegen::cudaPreamble(Expression())),
                     fmt::arg("type", codegen::cudaType(type)), fmt::arg("key", key));
}

// Where values belong in sequences that are in order.
constexpr const char* kSearch = R"({preamble}
typedef {type} T;
struct Words {{
  const T* sequence; const T* values; long long* to; long long count, size, width, right;
}};
extern "C" __global__ void __launch_bounds__(256) search(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.count; i += gridDim.x * 256ll) {{
    const T* const sequence = p.sequence + (p.width == 0 ? 0 : i / p.width * p.size);
    const T v = p.values[i];
    long long low = 0, high = p.size;
    while (low < high) {{
      const long long middle = low + (high - low) / 2;
      const T m = sequence[middle];
      if (p.right != 0 ? !(m > v) : !(m >= v)) {{
        low = middle + 1;
      }} else {{
        high = middle;
      }}
    }}
    p.to[i] = low;
  }}
}}
)";

DeviceKernelStep kernelOf(std::string text, const char* name, int64_t points,
                          std::vector<FunctionStep::Operand> operands,
                          std::vector<int64_t> numbers) {
  return {std::move(text), name, points, std::move(operands), std::move(numbers)};
}

// Along a dimension: the numbers are outer, elements of a row, inner.
DeviceKernelStep scanned(const FunctionStep& s, bool product) {
  const int64_t rows = s.numbers[0] * s.numbers[2];
  constexpr int64_t kThreadsOfRow = 256;
  return kernelOf(cuda::scanText(s.operands[0].dtype, product), "scan", rows * kThreadsOfRow,
                  s.operands, {rows, s.numbers[1], s.numbers[2]});
}
DeviceKernelStep walked(const FunctionStep& s, cuda::Walked what) {
  const int64_t rows = s.numbers[0] * s.numbers[2];
  std::vector<FunctionStep::Operand> operands = s.operands;
  operands.resize(3);  // without positions there is no address
  return kernelOf(cuda::walkText(s.operands[0].dtype, what), "walk", rows, std::move(operands),
                  {rows, s.numbers[1], s.numbers[2]});
}

// The elements of rows that come at `first` and behind it, `kept` of them. The function's own memory is not needed.
DeviceKernelStep ranked(const FunctionStep& s, int64_t first, int64_t kept, bool descending) {
  return kernelOf(rankText(s.operands[0].dtype), "rank", s.numbers[0] * s.numbers[1],
                  {s.operands[0], s.operands[1], s.operands[2]},
                  {s.numbers[0], s.numbers[1], first, kept, descending ? 1 : 0});
}

}  // namespace

std::optional<DeviceKernelStep> cudaKernelOf(const FunctionStep& s) {
  const std::string_view function(s.function);
  const std::string_view name = function.substr(0, function.find('<'));
  const bool is_true = function.ends_with("true>");
  if (name == "cumulative") return scanned(s, is_true);
  if (name == "cumulativeExtremes") {
    return walked(s, is_true ? cuda::Walked::Largest : cuda::Walked::Smallest);
  }
  if (name == "cumulativeLogSum") return walked(s, cuda::Walked::LogSum);
  if (name == "sortRows") return ranked(s, 0, s.numbers[1], s.numbers[2] != 0);
  if (name == "topOfRows") return ranked(s, 0, s.numbers[2], s.numbers[3] != 0);
  if (name == "kthOfRows") return ranked(s, s.numbers[2] - 1, 1, false);
  // An order of the caller's could be out of range.
  if (name == "sortedPositions" && !s.operands[2].place) {
    return kernelOf(fmt::format(fmt::runtime(kSearch),
                                fmt::arg("preamble", codegen::cudaPreamble(Expression())),
                                fmt::arg("type", codegen::cudaType(s.operands[0].dtype))),
                    "search", s.numbers[0], {s.operands[0], s.operands[1], s.operands[3]},
                    {s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[4]});
  }
  return std::nullopt;
}

}  // namespace wick::aot
