// Places are sorted together with their elements' numbers; where a run of one place begins, a thread
// goes along it.
#include "runtime/cuda/reduce_at.h"

#include <fmt/format.h>

#include "codegen/cuda/scalar_text.h"
#include "core/error.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

constexpr const char* kText = R"({preamble}{numbers}
typedef {type} T;
typedef {accumulator} A;
struct Words {{ T* to; const T* from; const long long* places; const long long* order; long long n; }};
extern "C" __global__ void __launch_bounds__(256) reduceRuns(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.n; i += gridDim.x * 256ll) {{
    const long long place = p.places[i];
    if (place < 0 || (i > 0 && p.places[i - 1] == place)) continue;
    T e = p.to[place];
    A sum = {summed};
    long long count = {include} ? 1 : 0;
    for (long long j = i; j < p.n && p.places[j] == place; ++j) {{
      e = p.from[p.order[j]];
      const A v = {summed};
      if (count == 0) {{ sum = v; }} else {{ {step} {round} }}
      ++count;
    }}
    {finish}
    p.to[place] = {store};
  }}
}}
)";

}  // namespace

std::string reduceRunsText(DType type, ops::Reduction how, bool include_self) {
  using ops::Reduction;
  const bool whole = isIntegral(type, true);
  const DType wide = isReducedFloat(type) ? DType::Float : whole ? DType::Long : type;
  std::string step, finish;
  switch (how) {
    case Reduction::Sum:
    case Reduction::Mean:
      step =
          whole ? "sum = (A)((unsigned long long)sum + (unsigned long long)v);" : "sum = sum + v;";
      break;
    case Reduction::Prod:
      step =
          whole ? "sum = (A)((unsigned long long)sum * (unsigned long long)v);" : "sum = sum * v;";
      break;
    case Reduction::Amax:
      step = "if (v != v || v > sum) sum = v;";
      break;
    case Reduction::Amin:
      step = "if (v != v || v < sum) sum = v;";
      break;
  }
  if (how == Reduction::Mean) {
    finish = whole             ? "A rest = sum % count; sum = sum / count; if (rest < 0) --sum;"
             : isComplex(type) ? "sum.re = sum.re / count; sum.im = sum.im / count;"
                               : "sum = sum / (A)count;";
  }
  // Of reduced floats each step is rounded, as on the CPU.
  const std::string round =
      isReducedFloat(type)
          ? fmt::format("e = {}; sum = {};", codegen::cudaConvert("sum", wide, type),
                        codegen::cudaConvert("e", type, wide))
          : "";
  const bool complex = isComplex(type);
  return textOf(kText, type, fmt::arg("accumulator", numberType(wide)),
                fmt::arg("summed", complex ? "e" : codegen::cudaConvert("e", type, wide)),
                fmt::arg("include", include_self ? "true" : "false"), fmt::arg("step", step),
                fmt::arg("round", round), fmt::arg("finish", finish),
                fmt::arg("store", complex ? "sum" : codegen::cudaConvert("sum", wide, type)));
}

void reduceAt(const char* op, const Tensor& target, const Tensor& places, const Tensor& source,
              ops::Reduction how, bool include_self) {
  using ops::Reduction;
  const DType type = target.dtype();
  WICK_CHECK(
      !isComplex(type) || how == Reduction::Sum || how == Reduction::Prod || how == Reduction::Mean,
      "{}: no reduction of {} elements", op, toString(type));
  WICK_CHECK(source.dtype() == type && source.numel() == places.numel(),
             "{}: {} elements do not fit {} places", op, source.describe(), places.numel());
  if (places.numel() == 0) return;
  if (places.numel() == 0) return;
  const std::vector<IValue> sorted = ops::sortStable.all(places, true, int64_t{0}, false);
  const Tensor runs = sorted[0].toTensor(), order = sorted[1].toTensor();
  // What was expanded has one element for all of them.
  const Tensor from = source.contiguous();
  const int64_t n = places.numel();
  launchPoints(target.device(), reduceRunsText(type, how, include_self), "reduceRuns", n,
               {wordOf(target), wordOf(from), wordOf(runs), wordOf(order), n});
}

}  // namespace wick::cuda
