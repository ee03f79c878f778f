// Regions of feature maps and deformable convolution on the device "ahead": torchvision's.
#include "runtime/ops/vision/regions.h"

#include <fmt/format.h>

#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/vision/deform_conv.h"

namespace wick::aot {

namespace {

using namespace ops::vision;

struct Map {
  Extents e;
  Tensor map, regions;
  int64_t regionCount() const { return regions.size(0); }
  std::vector<int64_t> numbers() const {
    return {regionCount(), e.images,        e.channels,    e.height,
            e.width,       e.pooled_height, e.pooled_width};
  }
};

Map mapOf(const char* op, const Tensor& input, const Tensor& rois, int64_t height, int64_t width) {
  const Extents e = extentsOfMap(op, input, rois, height, width);
  WICK_CHECK(isFloating(input.dtype()), "\"{}\" not implemented for '{}'", op,
             scalarTypeName(input.dtype()));
  return {e, here(input).contiguous(), here(rois).contiguous()};
}

const char* const kOutside = "a region lies on no image, is not finite or is too large";

Tensor aligned(const char* op, const Map& m, double scale, int64_t ratio, double offset,
               bool least_size, bool own_channels) {
  checkRatio(op, ratio);
  const int64_t channels = own_channels ? channelsOfCells(op, m.e) : m.e.channels;
  const DimVector sizes{m.regionCount(), channels, m.e.pooled_height, m.e.pooled_width};
  const Tensor out = Tensor::empty(sizes, m.map.dtype(), m.map.device());
  if (out.numel() == 0) return out;
  std::vector<int64_t> numbers = m.numbers();
  numbers.insert(numbers.end(), {ratio, least_size ? 1 : 0, own_channels ? 1 : 0});
  addFunction(op, fmt::format("alignedRegions<{}>", elementType(op, m.map)),
              {reads(m.map), reads(m.regions), reads(numbersOf(scale, offset)), writes(out)},
              std::move(numbers), fmt::format("{}: {}", op, kOutside));
  return out;
}

Tensor roiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t height,
                int64_t width, int64_t ratio, bool is_aligned) {
  const char* op = "roi_align";
  return aligned(op, mapOf(op, input, rois, height, width), scale, ratio, is_aligned ? 0.5 : 0.0,
                 !is_aligned, false);
}

Pair psRoiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t height,
                int64_t width, int64_t ratio) {
  const char* op = "ps_roi_align";
  const Map m = mapOf(op, input, rois, height, width);
  const Tensor out = aligned(op, m, scale, ratio, 0.5, false, true);
  return {out, channelMapping(out)};
}

Pair roiPool(const Tensor& input, const Tensor& rois, double scale, int64_t height, int64_t width) {
  const char* op = "roi_pool";
  const Map m = mapOf(op, input, rois, height, width);
  checkPlaces(op, m.e);
  const DimVector sizes{m.regionCount(), m.e.channels, height, width};
  const Tensor out = Tensor::empty(sizes, m.map.dtype(), m.map.device());
  const Tensor places = Tensor::empty(sizes, DType::Int, m.map.device());
  if (out.numel() > 0) {
    addFunction(
        op, fmt::format("greatestOfRegions<{}>", elementType(op, m.map)),
        {reads(m.map), reads(m.regions), reads(numbersOf(scale, 0)), writes(out), writes(places)},
        m.numbers(), fmt::format("{}: a region lies on no image", op));
  }
  return {out, places};
}

Tensor deformConv(const Tensor& input, const Tensor& weight, const Tensor& offset,
                  const Tensor& mask, const Tensor& bias, int64_t stride_h, int64_t stride_w,
                  int64_t pad_h, int64_t pad_w, int64_t dilation_h, int64_t dilation_w,
                  int64_t groups, int64_t offset_groups, bool use_mask) {
  const char* op = "deform_conv2d";
  const Geometry g = geometryOf(
      op, input, weight, offset, mask, bias,
      DimVector{stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups},
      use_mask);
  const int64_t oh = g.out_height, ow = g.out_width, made = g.out_channels, places = g.places();
  const int64_t each = g.channels / groups * g.taps();  // rows of a group's columns
  const Tensor x = here(input).contiguous(), at = here(offset).contiguous();
  const Tensor keep = use_mask ? here(mask).contiguous() : Tensor();
  const Tensor out = Tensor::empty(DimVector{g.images, made, oh, ow}, x.dtype(), x.device());
  if (out.numel() == 0) return out;
  const Tensor rows = here(weight).reshape(DimVector{groups, made / groups, each});
  const std::string function = fmt::format("deformedPatches<{}>", elementType(op, x));
  for (int64_t b = 0; b < g.images; ++b) {
    const Tensor columns = Tensor::empty(DimVector{groups, each, places}, x.dtype(), x.device());
    addFunction(op, function,
                {reads(x.select(0, b)), reads(at.select(0, b)),
                 reads(keep.defined() ? keep.select(0, b) : keep), writes(columns)},
                {g.channels, g.height, g.width, offset_groups, g.kernel_height, g.kernel_width, oh,
                 ow, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w});
    const Tensor product = ops::bmm(rows, columns);
    out.select(0, b).copyFrom(
        ops::add(product.view(DimVector{made, places}), here(bias).unsqueeze(1))
            .view(DimVector{made, oh, ow}));
  }
  return out;
}

const DeviceKernel kRegionsKernels[] = {
    {"torchvision::roi_align", WICK_KERNEL(roiAlign)},
    {"torchvision::ps_roi_align", WICK_KERNEL(psRoiAlign)},
    {"torchvision::roi_pool", WICK_KERNEL(roiPool)},
    {"torchvision::deform_conv2d", WICK_KERNEL(deformConv)},
};
const RegisterDeviceKernels kRegionsRegistered(kAhead, kRegionsKernels);

}  // namespace

}  // namespace wick::aot
