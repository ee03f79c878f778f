// Regions of feature maps and deformable convolution on the device "ahead": torchvision's.
#include <fmt/format.h>

#include <limits>
#include <tuple>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

using Pair = std::tuple<Tensor, Tensor>;

struct Map {
  Tensor map, regions;
  int64_t height, width;  // that are pooled of a region
  int64_t cells() const { return height * width; }
  int64_t regionCount() const { return regions.size(0); }
};

Map mapOf(const char* op, const Tensor& input, const Tensor& rois, int64_t height, int64_t width) {
  WICK_CHECK(input.dim() == 4, "{}: expected an input of four dimensions, got {}", op, input.dim());
  WICK_CHECK(rois.dim() == 2 && rois.size(1) == 5,
             "{}: rois must have shape as Tensor[K, 5], got {}", op, formatInts(rois.sizes()));
  WICK_CHECK(rois.dtype() == input.dtype(), "{}: expected rois of type {}, got {}", op,
             toString(input.dtype()), toString(rois.dtype()));
  WICK_CHECK(height > 0 && width > 0, "{}: the pooled sizes must be positive, got {} and {}", op,
             height, width);
  checkedNumel(DimVector{height, width});
  WICK_CHECK(rois.size(0) == 0 || input.size(2) * input.size(3) > 0,
             "{}: the feature map has no elements", op);
  WICK_CHECK(isFloating(input.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(input.dtype()));
  return {here(input).contiguous(), here(rois).contiguous(), height, width};
}

Tensor numbersOf(double first, double second) {
  const double both[] = {first, second};
  return here(Tensor::fromData(both, DimVector{2}));
}

const char* const kOutside = "a region lies on no image, is not finite or is too large";

Tensor aligned(const char* op, const Map& m, double scale, int64_t ratio, double offset,
               bool least_size, bool own_channels) {
  constexpr int64_t kMostSamples = 1 << 20;
  WICK_CHECK(ratio <= kMostSamples, "{}: the sampling ratio {} is too large", op, ratio);
  const int64_t channels = own_channels ? m.map.size(1) / m.cells() : m.map.size(1);
  const Tensor out = Tensor::empty(DimVector{m.regionCount(), channels, m.height, m.width},
                                   m.map.dtype(), m.map.device());
  if (out.numel() == 0) return out;
  addFunction(op, fmt::format("alignedRegions<{}>", elementType(op, m.map)),
              {reads(m.map), reads(m.regions), reads(numbersOf(scale, offset)), writes(out)},
              {m.regionCount(), m.map.size(0), m.map.size(1), m.map.size(2), m.map.size(3),
               m.height, m.width, ratio, least_size ? 1 : 0, own_channels ? 1 : 0},
              fmt::format("{}: {}", op, kOutside));
  return out;
}

Tensor roiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t height,
                int64_t width, int64_t ratio, bool is_aligned) {
  const char* op = "roi_align";
  return aligned(op, mapOf(op, input, rois, height, width), scale, ratio, is_aligned ? 0.5 : 0.0,
                 !is_aligned, false);
}

// Which channel each cell of a position-sensitive result read.
Tensor channelMapping(const Tensor& pooled) {
  const int64_t each = pooled.numel() / std::max<int64_t>(pooled.size(0), 1);
  Tensor row = Tensor::empty(DimVector{each}, DType::Int);
  for (int64_t i = 0; i < each; ++i) row.data<int32_t>()[i] = static_cast<int32_t>(i);
  if (pooled.numel() == 0) return Tensor::empty(pooled.sizes(), DType::Int, pooled.device());
  return here(row).expand(DimVector{pooled.size(0), each}).reshape(pooled.sizes());
}
Pair psRoiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t height,
                int64_t width, int64_t ratio) {
  const char* op = "ps_roi_align";
  const Map m = mapOf(op, input, rois, height, width);
  WICK_CHECK(m.map.size(1) % m.cells() == 0,
             "{}: input channels must be a multiple of pooling height * pooling width, got {} and "
             "{} * {}",
             op, m.map.size(1), height, width);
  const Tensor out = aligned(op, m, scale, ratio, 0.5, false, true);
  return {out, channelMapping(out)};
}

Pair roiPool(const Tensor& input, const Tensor& rois, double scale, int64_t height, int64_t width) {
  const char* op = "roi_pool";
  const Map m = mapOf(op, input, rois, height, width);
  WICK_CHECK(m.map.size(2) * m.map.size(3) <= std::numeric_limits<int32_t>::max(),
             "{}: a feature map of {} elements is too large", op, m.map.size(2) * m.map.size(3));
  const DimVector sizes{m.regionCount(), m.map.size(1), height, width};
  const Tensor out = Tensor::empty(sizes, m.map.dtype(), m.map.device());
  const Tensor places = Tensor::empty(sizes, DType::Int, m.map.device());
  if (out.numel() > 0) {
    addFunction(
        op, fmt::format("greatestOfRegions<{}>", elementType(op, m.map)),
        {reads(m.map), reads(m.regions), reads(numbersOf(scale, 0)), writes(out), writes(places)},
        {m.regionCount(), m.map.size(0), m.map.size(1), m.map.size(2), m.map.size(3), height,
         width},
        fmt::format("{}: a region lies on no image", op));
  }
  return {out, places};
}

// The size of a result along one dimension.
int64_t outSize(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  constexpr int64_t kMost = int64_t{1} << 30;
  WICK_CHECK(std::max({size, kernel, stride, pad, dilation}) < kMost,
             "deform_conv2d: the sizes are too large");
  const int64_t free = size + 2 * pad - dilation * (kernel - 1) - 1;
  return free < 0 ? 0 : free / stride + 1;
}

Tensor deformConv(const Tensor& input, const Tensor& weight, const Tensor& offset,
                  const Tensor& mask, const Tensor& bias, int64_t stride_h, int64_t stride_w,
                  int64_t pad_h, int64_t pad_w, int64_t dilation_h, int64_t dilation_w,
                  int64_t groups, int64_t offset_groups, bool use_mask) {
  static const OperatorHandle kBmm{"aten::bmm", ""};
  const char* op = "deform_conv2d";
  WICK_CHECK(
      input.dim() == 4 && offset.dim() == 4 && weight.dim() == 4 && (!use_mask || mask.dim() == 4),
      "{}: expected an input, weights, offsets and a mask of four dimensions", op);
  const int64_t images = input.size(0), channels = input.size(1), h = input.size(2);
  const int64_t w = input.size(3), made = weight.size(0), kh = weight.size(2), kw = weight.size(3);
  WICK_CHECK(kh > 0 && kw > 0 && stride_h > 0 && stride_w > 0 && pad_h >= 0 && pad_w >= 0 &&
                 dilation_h > 0 && dilation_w > 0 && groups > 0 && offset_groups > 0,
             "{}: expected positive sizes, strides, dilations and groups", op);
  WICK_CHECK(channels % groups == 0 && weight.size(1) == channels / groups && made % groups == 0 &&
                 channels % offset_groups == 0,
             "{}: {} groups and {} offset groups do not divide {} channels and weights {}", op,
             groups, offset_groups, channels, formatInts(weight.sizes()));
  for (const Tensor* t : {&weight, &offset, &bias}) {
    WICK_CHECK(t->dtype() == input.dtype(), "{}: expected tensors of one type, got {} and {}", op,
               toString(input.dtype()), toString(t->dtype()));
  }
  const int64_t oh = outSize(h, kh, stride_h, pad_h, dilation_h);
  const int64_t ow = outSize(w, kw, stride_w, pad_w, dilation_w);
  WICK_CHECK(oh > 0 && ow > 0, "{}: Calculated output size too small - out_h: {} out_w: {}", op, oh,
             ow);
  const int64_t taps = kh * kw, places = oh * ow;
  const DimVector offsets{images, 2 * offset_groups * taps, oh, ow};
  const DimVector masks{images, offset_groups * taps, oh, ow};
  WICK_CHECK(
      DimVector(offset.sizes()) == offsets && (!use_mask || DimVector(mask.sizes()) == masks),
      "{}: expected offsets {} and a mask {}, got {} and {}", op, formatInts(offsets),
      formatInts(masks), formatInts(offset.sizes()), use_mask ? formatInts(mask.sizes()) : "none");
  WICK_CHECK(bias.dim() == 1 && bias.size(0) == made, "{}: expected a bias of {} elements, got {}",
             op, made, formatInts(bias.sizes()));
  const Tensor x = here(input).contiguous(), at = here(offset).contiguous();
  const Tensor keep = use_mask ? here(mask).contiguous() : Tensor();
  const Tensor out = Tensor::empty(DimVector{images, made, oh, ow}, x.dtype(), x.device());
  if (out.numel() == 0) return out;
  const Tensor rows =
      here(weight).reshape(DimVector{groups, made / groups, channels / groups * taps});
  const std::string function = fmt::format("deformedPatches<{}>", elementType(op, x));
  for (int64_t b = 0; b < images; ++b) {
    const Tensor columns =
        Tensor::empty(DimVector{groups, channels / groups * taps, places}, x.dtype(), x.device());
    addFunction(op, function,
                {reads(x.select(0, b)), reads(at.select(0, b)),
                 reads(keep.defined() ? keep.select(0, b) : keep), writes(columns)},
                {channels, h, w, offset_groups, kh, kw, oh, ow, stride_h, stride_w, pad_h, pad_w,
                 dilation_h, dilation_w});
    const Tensor product = kBmm(rows, columns);
    out.select(0, b).copyFrom(
        ops::add(product.view(DimVector{made, places}), here(bias).unsqueeze(1))
            .view(DimVector{made, oh, ow}));
  }
  return out;
}

const DeviceKernel kKernels[] = {
    {"torchvision::roi_align", WICK_KERNEL(roiAlign)},
    {"torchvision::ps_roi_align", WICK_KERNEL(psRoiAlign)},
    {"torchvision::roi_pool", WICK_KERNEL(roiPool)},
    {"torchvision::deform_conv2d", WICK_KERNEL(deformConv)},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

}  // namespace

}  // namespace wick::aot
