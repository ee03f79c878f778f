// What goes along a dimension, orders its elements, or looks for a place among them.
#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>

#include "aot/cuda/function_steps.h"
#include "codegen/cuda/scalar_text.h"
#include "runtime/cuda/scans.h"
#include "runtime/cuda/sort_series.h"

namespace wick::aot {

namespace {

// Each element counts those that come before it in its row, which is where it belongs: equal ones as they stand,
// NaN as the largest. So nothing is exchanged, one launch is enough, and rows are better short: the work is the square of
// their length.
constexpr int64_t kMostRanked = 256;
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

// Along a dimension: the numbers are outer, elements of a row, inner.
AnyStep scanned(const FunctionStep& s, bool product) {
  const int64_t rows = s.numbers[0] * s.numbers[2];
  constexpr int64_t kThreadsOfRow = 256;
  return kernelOf(cuda::scanText(s.operands[0].dtype, product), "scan", rows * kThreadsOfRow,
                  s.operands, {rows, s.numbers[1], s.numbers[2]});
}
AnyStep walked(const FunctionStep& s, cuda::Walked what) {
  const int64_t rows = s.numbers[0] * s.numbers[2];
  std::vector<Operand> operands = s.operands;
  operands.resize(3);  // without positions there is no address
  return kernelOf(cuda::walkText(s.operands[0].dtype, what), "walk", rows, std::move(operands),
                  {rows, s.numbers[1], s.numbers[2]});
}

using Rows = cuda::RowsInOrder;
// The function's own memory is not needed.
std::vector<AnyStep> ordered(const FunctionStep& s, Rows rows) {
  rows.type = s.operands[0].dtype;
  rows.count = s.numbers[0];
  rows.length = s.numbers[1];
  const std::vector<Operand> operands = {s.operands[0], s.operands[1], s.operands[2]};
  std::vector<AnyStep> steps;
  if (rows.length <= kMostRanked && rows.chosen == Rows::Chosen::FromFirst) {
    steps.emplace_back(
        kernelOf(rankText(rows.type), "rank", rows.count * rows.length, operands,
                 {rows.count, rows.length, rows.first, rows.kept, rows.descending ? 1 : 0}));
  } else {
    addSeries(steps, cuda::sortSeries(rows), operands);
  }
  return steps;
}
std::vector<AnyStep> ordered(const FunctionStep& s, int64_t first, int64_t kept, bool descending,
                             Rows::Ties ties) {
  Rows rows;
  rows.first = first;
  rows.kept = kept;
  rows.descending = descending;
  rows.ties = ties;
  return ordered(s, rows);
}
std::vector<AnyStep> chosen(const FunctionStep& s, Rows::Chosen what) {
  Rows rows;
  rows.chosen = what;
  return ordered(s, rows);
}

}  // namespace

std::vector<AnyStep> orderingSteps(const FunctionStep& s, std::string_view name) {
  const bool is_true = std::string_view(s.function).ends_with("true>");
  const auto one = [](AnyStep step) { return std::vector<AnyStep>{std::move(step)}; };
  if (name == "cumulative") return one(scanned(s, is_true));
  if (name == "cumulativeExtremes") {
    return one(walked(s, is_true ? cuda::Walked::Largest : cuda::Walked::Smallest));
  }
  if (name == "cumulativeLogSum") return one(walked(s, cuda::Walked::LogSum));
  if (name == "sortRows") {
    return ordered(s, 0, s.numbers[1], s.numbers[2] != 0, Rows::Ties::ByPosition);
  }
  if (name == "topOfRows") {
    return ordered(s, 0, s.numbers[2], s.numbers[3] != 0, Rows::Ties::AsTop);
  }
  if (name == "kthOfRows") return ordered(s, s.numbers[2] - 1, 1, false, Rows::Ties::AsOne);
  if (name == "medianOfRows") {
    return chosen(s, s.numbers[2] != 0 ? Rows::Chosen::MedianOfNumbers : Rows::Chosen::Median);
  }
  if (name == "modeOfRows") return chosen(s, Rows::Chosen::Mode);
  return {};
}

}  // namespace wick::aot
