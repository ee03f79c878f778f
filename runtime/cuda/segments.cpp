// segment_reduce on CUDA devices: one thread a result walks along its segment.
#include "runtime/ops/reduce/segments.h"

#include <fmt/format.h>

#include <bit>

#include "codegen/cuda/scalar_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"

namespace wick::cuda {

namespace {

constexpr const char* kSegmentsText = R"({preamble}
typedef {type} T;
typedef {wide} C;
struct Words {{
  const T* data; const long long* bounds; T* out; long long total, count, rows, inner; double start;
}};
extern "C" __global__ void __launch_bounds__(256) segments(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long column = i % p.inner, segment = i / p.inner, outer = segment / p.count;
    const long long first = p.bounds[2 * segment], last = p.bounds[2 * segment + 1];
    const T* const from = p.data + outer * p.rows * p.inner + column;
    C v = (C)p.start;
    T e;
    for (long long r = first; r < last; ++r) {{
      e = from[r * p.inner];
      const C x = {load};
      {step}
    }}
    {finish}
    p.out[i] = {store};
  }}
}}
)";

Tensor segmentReduce(const Tensor& data, const std::string& reduce, const Tensor& lengths,
                     const Tensor& indices, const Tensor& offsets, int64_t axis, bool partial,
                     const std::optional<Scalar>& initial) {
  using ops::Reduction;
  const ops::SegmentPlan plan =
      ops::planSegments(data, reduce, lengths, indices, offsets, axis, partial, initial);
  const DType type = data.dtype();
  WICK_CHECK(isFloating(type), "\"segment_reduce\" not implemented for '{}'", scalarTypeName(type));
  const Tensor out = Tensor::empty(plan.sizes, type, data.device());
  if (out.numel() == 0) return out;
  const DType wide = wideOf(type);
  // Sums and products are rounded at each step, as on the CPU.
  const auto rounded = [&](const char* value) {
    return fmt::format("e = {}; v = {};", codegen::cudaConvert(value, wide, type),
                       codegen::cudaConvert("e", type, wide));
  };
  std::string step, finish;
  switch (plan.reduction) {
    case Reduction::Amax:
      step = "if (x != x || x > v) v = x;";
      break;
    case Reduction::Amin:
      step = "if (x != x || x < v) v = x;";
      break;
    case Reduction::Prod:
      step = rounded("(v * x)");
      break;
    default:
      step = rounded("(v + x)");
  }
  if (plan.reduction == Reduction::Mean) {
    finish = fmt::format("if (last > first) v = v / (C)(last - first); {}",
                         plan.has_initial ? "" : "else v = (C)__int_as_float(0x7fc00000);");
  }
  const Tensor from = data.contiguous(), bounds = moveTo(plan.bounds, data.device());
  int64_t inner = 1;
  for (int64_t d = plan.axis + 1; d < data.dim(); ++d) inner *= data.size(d);
  const std::string text =
      textOf(kSegmentsText, type, fmt::arg("step", step), fmt::arg("finish", finish),
             fmt::arg("store", narrowedText("v", type)));
  launchPoints(data.device(), text, "segments", out.numel(),
               {wordOf(from), wordOf(bounds), wordOf(out), out.numel(), bounds.size(1),
                data.size(plan.axis), inner, std::bit_cast<int64_t>(plan.start)});
  return out;
}

const DeviceKernel kSegmentsKernels[] = {
    {"aten::segment_reduce", WICK_KERNEL(segmentReduce)},
};
const RegisterDeviceKernels kSegmentsRegistered(DeviceType::CUDA, kSegmentsKernels);

}  // namespace

}  // namespace wick::cuda
