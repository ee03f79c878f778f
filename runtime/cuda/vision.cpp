// torchvision's operators on boxes and aligned regions on CUDA devices, in the CPU's arithmetic.
#include <fmt/format.h>

#include <bit>

#include "codegen/cuda/special_text.h"
#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/element_texts.h"
#include "runtime/cuda/number_text.h"
#include "runtime/cuda/text_launch.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/vision/regions.h"

namespace wick::cuda {

namespace {

using ops::vision::Extents;

// One block goes through the boxes, the best first, and its threads through those behind each.
constexpr const char* kSuppress = R"(
typedef {type} T;
struct Words {{
  const T* boxes; const long long* order; unsigned char* kept; {limit} limit; long long n;
}};
__device__ __forceinline__ T larger(T a, T b) {{ return a < b ? b : a; }}
__device__ __forceinline__ T smaller(T a, T b) {{ return b < a ? b : a; }}
__device__ __forceinline__ T areaOf(const T* box) {{
  return (box[2] - box[0]) * (box[3] - box[1]);
}}
extern "C" __global__ void __launch_bounds__(256) suppress(const __grid_constant__ Words p) {{
  volatile unsigned char* const kept = p.kept;
  const double threshold = {threshold};
  for (long long j = threadIdx.x; j < p.n; j += 256) kept[j] = 1;
  for (long long i = 0; i < p.n; ++i) {{
    __syncthreads();
    if (!kept[i]) continue;
    const T* const a = p.boxes + 4 * p.order[i];
    for (long long j = i + 1 + threadIdx.x; j < p.n; j += 256) {{
      const T* const b = p.boxes + 4 * p.order[j];
      const T width = larger(0, smaller(a[2], b[2]) - larger(a[0], b[0]));
      const T height = larger(0, smaller(a[3], b[3]) - larger(a[1], b[1]));
      const T shared = width * height;
      const T overlap = shared / (areaOf(a) + areaOf(b) - shared);
      if ((double)overlap > threshold) kept[j] = 0;
    }}
  }}
}}
)";

}  // namespace

std::string suppressText(DType type, const char* type_of_limit, const char* threshold) {
  return textOf(kSuppress, type, fmt::arg("limit", type_of_limit),
                fmt::arg("threshold", threshold));
}

namespace {

Tensor nms(const Tensor& boxes, const Tensor& scores, double iou_threshold) {
  ops::vision::checkBoxes(boxes, scores);
  WICK_CHECK(boxes.dtype() == DType::Float || boxes.dtype() == DType::Double,
             "\"nms\" not implemented for '{}'", scalarTypeName(boxes.dtype()));
  const int64_t count = boxes.size(0);
  if (count == 0) return Tensor::empty(DimVector{0}, DType::Long, boxes.device());
  const Tensor order =
      ops::sortStable.all(scores, true, int64_t{0}, true)[1].toTensor().contiguous();
  const Tensor rows = boxes.contiguous();
  const Tensor kept = Tensor::empty(DimVector{count}, DType::Bool, boxes.device());
  launchPoints(
      boxes.device(), suppressText(boxes.dtype(), "double", "p.limit"), "suppress", 1,
      {wordOf(rows), wordOf(order), wordOf(kept), std::bit_cast<int64_t>(iou_threshold), count});
  return ops::maskedSelect(order, kept);
}

// ---- aligned regions ----

// Samples as on the CPU.
constexpr const char* kSamples =
#include "runtime/cuda/region_samples.inc"
    ;

constexpr const char* kRegions = R"(
typedef {type} T;
typedef wick::regions::Sample<T> Sample;
struct Words {{
  const T* map; const T* rois; const T* grad; const int* mapping; T* out;
  long long total, regions, images, channels, height, width, rows, columns, pooled_channels;
  long long ratio, options; double scale, offset; long long* flag; long long complaint;
}};
enum {{ kLeast = 1, kAtLeastOne = 2, kPositions = 4 }};
// A region on its grid of samples; false when it is too large or not finite.
struct Region {{ long long image, rows, columns; T y, x, cell_height, cell_width, count; }};
__device__ bool regionOf(const Words& p, long long n, Region& r) {{
  const T* const roi = p.rois + 5 * n;
  const T scale = (T)p.scale, offset = (T)p.offset;
  r.image = (long long)roi[0];
  r.x = roi[1] * scale - offset;
  r.y = roi[2] * scale - offset;
  T width = roi[3] * scale - offset - r.x, height = roi[4] * scale - offset - r.y;
  bool good = isfinite(width) && isfinite(height) && r.image >= 0 && r.image < p.images;
  if (p.options & kLeast) {{
    width = width < (T)1 ? (T)1 : width;
    height = height < (T)1 ? (T)1 : height;
  }}
  r.rows = good ? wick::regions::samplesOfCell(p.ratio, height, p.rows) : -1;
  r.columns = good ? wick::regions::samplesOfCell(p.ratio, width, p.columns) : -1;
  if (r.rows < 0 || r.columns < 0) {{
    *(volatile long long*)p.flag = p.complaint;
    return false;
  }}
  r.cell_height = height / (T)p.rows;
  r.cell_width = width / (T)p.columns;
  r.count = (T)(r.rows * r.columns);
  if ((p.options & kAtLeastOne) && r.count < (T)1) r.count = (T)1;
  return true;
}}
__device__ __forceinline__ T placeOf(T start, T cell, long long c, long long i, long long each) {{
  return start + (T)c * cell + ((T)i + (T).5) * cell / (T)each;
}}
extern "C" __global__ void __launch_bounds__(256) pooled(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long cells = p.rows * p.columns, cell = i % cells, c = i / cells % p.pooled_channels;
    Region r;
    p.out[i] = 0;
    if (!regionOf(p, i / cells / p.pooled_channels, r)) continue;
    const long long channel = (p.options & kPositions) ? c * cells + cell : c;
    const T* const plane = p.map + (r.image * p.channels + channel) * p.height * p.width;
    T sum = 0;
    for (long long iy = 0; iy < r.rows; ++iy) {{
      const T at_y = placeOf(r.y, r.cell_height, cell / p.columns, iy, r.rows);
      const Sample y = wick::regions::sampleAt(at_y, p.height);
      if (!y.inside) continue;
      const T* const low = plane + y.low * p.width;
      const T* const high = plane + y.high * p.width;
      for (long long ix = 0; ix < r.columns; ++ix) {{
        const T at_x = placeOf(r.x, r.cell_width, cell % p.columns, ix, r.columns);
        const Sample x = wick::regions::sampleAt(at_x, p.width);
        if (!x.inside) continue;
        sum += y.low_weight * x.low_weight * low[x.low] +
               y.low_weight * x.high_weight * low[x.high] +
               y.high_weight * x.low_weight * high[x.low] +
               y.high_weight * x.high_weight * high[x.high];
      }}
    }}
    p.out[i] = sum / r.count;
  }}
}}
// How much of a sample at `at` the element `own` has.
__device__ __forceinline__ T shareOf(T at, long long size, long long own) {{
  const Sample s = wick::regions::sampleAt(at, size);
  T share = 0;
  if (!s.inside) return share;
  if (s.low == own) share += s.low_weight;
  if (s.high == own) share += s.high_weight;
  return share;
}}
// Each element goes over all regions and takes what they give it, in their order.
extern "C" __global__ void __launch_bounds__(256) unpooled(const __grid_constant__ Words p) {{
  for (long long i = blockIdx.x * 256ll + threadIdx.x; i < p.total; i += gridDim.x * 256ll) {{
    const long long own_x = i % p.width, own_y = i / p.width % p.height;
    const long long own_channel = i / p.width / p.height % p.channels;
    const long long image = i / p.width / p.height / p.channels;
    const long long cells = p.rows * p.columns;
    T total = 0;
    for (long long n = 0; n < p.regions; ++n) {{
      Region r;
      if ((long long)p.rois[5 * n] != image || !regionOf(p, n, r)) continue;
      for (long long cy = 0; cy < p.rows; ++cy) {{
        for (long long iy = 0; iy < r.rows; ++iy) {{
          const T down = shareOf(placeOf(r.y, r.cell_height, cy, iy, r.rows), p.height, own_y);
          if (down == (T)0) continue;
          for (long long cx = 0; cx < p.columns; ++cx) {{
            T across = 0;
            for (long long ix = 0; ix < r.columns; ++ix) {{
              across += shareOf(placeOf(r.x, r.cell_width, cx, ix, r.columns), p.width, own_x);
            }}
            if (across == (T)0) continue;
            const long long cell = cy * p.columns + cx;
            const long long first = p.mapping ? 0 : own_channel;
            const long long last = p.mapping ? p.pooled_channels - 1 : own_channel;
            for (long long c = first; c <= last; ++c) {{
              const long long at = (n * p.pooled_channels + c) * cells + cell;
              if (p.mapping && p.mapping[at] != own_channel) continue;
              total += p.grad[at] / r.count * down * across;
            }}
          }}
        }}
      }}
    }}
    p.out[i] = total;
  }}
}}
)";

// How regions lie on the map: as RoiAlign, with or without alignment, or position-sensitive.
struct Rule {
  const char* op;
  double offset;
  int64_t options;
};
constexpr int64_t kLeast = 1, kAtLeastOne = 2, kPositions = 4;  // options
Rule alignRule(const char* op, bool aligned) {
  return {op, aligned ? 0.5 : 0.0, kAtLeastOne | (aligned ? 0 : kLeast)};
}

// `map`, `grad` and `mapping` only where the kernel has them.
void launchRegions(const Rule& rule, const char* kernel, const Tensor& map, const Tensor& rois,
                   const Tensor& grad, const Tensor& mapping, const Tensor& out, const Extents& e,
                   int64_t pooled_channels, double scale, int64_t ratio) {
  const DType type = out.dtype();
  WICK_CHECK(type == DType::Float || type == DType::Double, "\"{}\" not implemented for '{}'",
             rule.op, scalarTypeName(type));
  ops::vision::checkRatio(rule.op, ratio);
  if (out.numel() == 0) return;
  launchPoints(out.device(), codegen::standardText() + kSamples + textOf(kRegions, type), kernel,
               out.numel(),
               {wordOf(map), wordOf(rois), wordOf(grad), wordOf(mapping), wordOf(out), out.numel(),
                rois.size(0), e.images, e.channels, e.height, e.width, e.pooled_height,
                e.pooled_width, pooled_channels, ratio, rule.options, std::bit_cast<int64_t>(scale),
                std::bit_cast<int64_t>(rule.offset)},
               fmt::format("{}: a region is too large or not finite", rule.op));
}

Tensor pooled(const Rule& rule, const Tensor& input, const Tensor& rois, double scale,
              const Extents& e, int64_t ratio) {
  const int64_t channels =
      (rule.options & kPositions) != 0 ? ops::vision::channelsOfCells(rule.op, e) : e.channels;
  const Tensor out =
      Tensor::empty(DimVector{rois.size(0), channels, e.pooled_height, e.pooled_width},
                    input.dtype(), input.device());
  launchRegions(rule, "pooled", input.contiguous(), rois.contiguous(), {}, {}, out, e, channels,
                scale, ratio);
  return out;
}
Tensor unpooled(const Rule& rule, const Tensor& grad, const Tensor& rois, const Tensor& mapping,
                double scale, const Extents& e, int64_t ratio) {
  const Tensor out = Tensor::zeros(DimVector{e.images, e.channels, e.height, e.width}, grad.dtype(),
                                   grad.device());
  if (grad.numel() == 0) return out;
  launchRegions(rule, "unpooled", {}, rois.contiguous(), grad.contiguous(), mapping, out, e,
                grad.size(1), scale, ratio);
  return out;
}

Tensor roiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t pooled_height,
                int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  const Extents e = ops::vision::extentsOf("roi_align", input, rois, pooled_height, pooled_width);
  return pooled(alignRule("roi_align", aligned), input, rois, scale, e, sampling_ratio);
}
Tensor roiAlignBackward(const Tensor& grad, const Tensor& rois, double scale, int64_t pooled_height,
                        int64_t pooled_width, int64_t images, int64_t channels, int64_t height,
                        int64_t width, int64_t sampling_ratio, bool aligned) {
  constexpr const char* kName = "_roi_align_backward";
  const Extents e = ops::vision::extentsOfGradient(kName, grad, channels, rois, pooled_height,
                                                   pooled_width, images, channels, height, width);
  return unpooled(alignRule(kName, aligned), grad, rois, {}, scale, e, sampling_ratio);
}

// Position-sensitive: each cell of a channel of the result reads a channel of its own.
constexpr Rule kPsRule{"ps_roi_align", 0.5, kPositions};
constexpr Rule kPsBackward{"_ps_roi_align_backward", 0.5, kPositions};

std::tuple<Tensor, Tensor> psRoiAlign(const Tensor& input, const Tensor& rois, double scale,
                                      int64_t pooled_height, int64_t pooled_width,
                                      int64_t sampling_ratio) {
  const Extents e = ops::vision::extentsOf(kPsRule.op, input, rois, pooled_height, pooled_width);
  const Tensor out = pooled(kPsRule, input, rois, scale, e, sampling_ratio);
  return {out, ops::vision::channelMapping(out)};
}
Tensor psRoiAlignBackward(const Tensor& grad, const Tensor& rois, const Tensor& mapping,
                          double scale, int64_t pooled_height, int64_t pooled_width,
                          int64_t sampling_ratio, int64_t images, int64_t channels, int64_t height,
                          int64_t width) {
  const Extents e =
      ops::vision::extentsOfGradient(kPsBackward.op, grad, grad.dim() == 4 ? grad.size(1) : 0, rois,
                                     pooled_height, pooled_width, images, channels, height, width);
  const Tensor channel = ops::vision::checkedMapping(kPsBackward.op, mapping, grad);
  return unpooled(kPsBackward, grad, rois, channel, scale, e, sampling_ratio);
}

const DeviceKernel kVisionKernels[] = {
    {"torchvision::nms", WICK_KERNEL(nms)},
    {"torchvision::roi_align", WICK_KERNEL(roiAlign)},
    {"torchvision::_roi_align_backward", WICK_KERNEL(roiAlignBackward)},
    {"torchvision::ps_roi_align", WICK_KERNEL(psRoiAlign)},
    {"torchvision::_ps_roi_align_backward", WICK_KERNEL(psRoiAlignBackward)},
};
const RegisterDeviceKernels kVisionRegistered(DeviceType::CUDA, kVisionKernels);

}  // namespace

}  // namespace wick::cuda
