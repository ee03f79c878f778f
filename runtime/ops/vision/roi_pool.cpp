// roi_pool, the greatest element of each cell of a region, and ps_roi_pool, the mean, where each
// cell reads a channel of its own. Cells consist of whole elements.
#include <limits>

#include "core/budget.h"
#include "core/parallel.h"
#include "ir/operator.h"
#include "runtime/ops/vision/regions.h"

namespace wick::ops::vision {

namespace {

// A region in whole elements.
struct Window {
  int64_t image, x, y, width, height;
};

template <class T, class S>
Window windowOf(const S* roi, double scale, int64_t beyond) {
  using std::round;
  auto corner = [&](int i) { return wholeNumber(round(T(roi[i]) * static_cast<T>(scale))); };
  const int64_t x = corner(1), y = corner(2), x_end = corner(3), y_end = corner(4);
  return {static_cast<int64_t>(roi[0]), x, y, std::max<int64_t>(x_end - x + beyond, 1),
          std::max<int64_t>(y_end - y + beyond, 1)};
}

struct Range {
  int64_t begin, end;
  bool empty() const { return end <= begin; }
  int64_t size() const { return end - begin; }
};

// The elements of cell `i` of `cells` along one dimension, within [0, limit].
template <class T>
Range cellOf(int64_t i, int64_t cells, int64_t start, int64_t extent, int64_t limit) {
  const T size = static_cast<T>(extent) / static_cast<T>(cells);
  using std::ceil, std::floor;
  const auto begin = static_cast<int64_t>(floor(static_cast<T>(i) * size));
  const auto end = static_cast<int64_t>(ceil(static_cast<T>(i + 1) * size));
  return {std::clamp<int64_t>(begin + start, 0, limit), std::clamp<int64_t>(end + start, 0, limit)};
}

std::tuple<Tensor, Tensor> roiPool(const Tensor& input, const Tensor& rois, double scale,
                                   int64_t pooled_height, int64_t pooled_width) {
  const Extents e = extentsOf("roi_pool", input, rois, pooled_height, pooled_width);
  checkPlaces("roi_pool", e);
  const int64_t count = rois.size(0), cells = e.cells();
  const DimVector sizes{count, e.channels, pooled_height, pooled_width};
  Tensor out = Tensor::empty(sizes, input.dtype()), places = Tensor::empty(sizes, DType::Int);
  const Tensor map = input.contiguous(), regions = rois.contiguous();
  dispatchMaps("roi_pool", input.dtype(), [&]<class T, class S>() {
    parallelFor(count, 1, [&](int64_t first, int64_t last) {
      Pace pace;
      for (int64_t n = first; n < last; ++n) {
        const Window w = windowOf<T>(regions.data<S>() + 5 * n, scale, 1);
        for (int64_t i = 0; i < cells; ++i) {
          const Range ys = cellOf<T>(i / pooled_width, pooled_height, w.y, w.height, e.height);
          const Range xs = cellOf<T>(i % pooled_width, pooled_width, w.x, w.width, e.width);
          const bool empty = ys.empty() || xs.empty();
          for (int64_t c = 0; c < e.channels; ++c) {
            pace.step(empty ? 1 : ys.size() * xs.size());
            const S* const plane = map.data<S>() + (w.image * e.channels + c) * e.plane();
            // What is no greater than this has no place, which torchvision's gradients rely on.
            T greatest = empty ? T(0) : T(-std::numeric_limits<float>::max());
            int64_t place = -1;
            for (int64_t y = ys.begin; y < ys.end; ++y) {
              for (int64_t x = xs.begin; x < xs.end; ++x) {
                const T element(plane[y * e.width + x]);
                if (!(element > greatest)) continue;
                greatest = element;
                place = y * e.width + x;
              }
            }
            const int64_t at = (n * e.channels + c) * cells + i;
            out.data<S>()[at] = static_cast<S>(greatest);
            places.data<int32_t>()[at] = static_cast<int32_t>(place);
          }
        }
      }
    });
  });
  return {out, places};
}

Tensor roiPoolBackward(const Tensor& grad, const Tensor& rois, const Tensor& argmax, double,
                       int64_t pooled_height, int64_t pooled_width, int64_t images,
                       int64_t channels, int64_t height, int64_t width) {
  constexpr const char* kName = "_roi_pool_backward";
  const Extents e = extentsOfGradient(kName, grad, channels, rois, pooled_height, pooled_width,
                                      images, channels, height, width);
  const Tensor places = checkedMapping(kName, argmax, grad);
  Tensor out = Tensor::zeros(DimVector{images, channels, height, width}, grad.dtype());
  const Tensor from = grad.contiguous(), regions = rois.contiguous();
  const int64_t cells = e.cells();
  dispatchMaps(kName, grad.dtype(), [&]<class T, class S>() {
    Pace pace;
    for (int64_t at = 0; at < from.numel(); ++at) {
      pace.step();
      const int64_t place = places.data<int32_t>()[at];
      if (place == -1) continue;
      WICK_CHECK(place >= 0 && place < e.plane(), "{}: {} is none of {} places", kName, place,
                 e.plane());
      const int64_t n = at / (cells * channels), c = at / cells % channels;
      const auto image = static_cast<int64_t>(regions.data<S>()[5 * n]);
      S& to = out.data<S>()[(image * channels + c) * e.plane() + place];
      to = static_cast<S>(T(to) + T(from.data<S>()[at]));
    }
  });
  return out;
}

// Of the position-sensitive form cells end before the last row and column (`margin` 1), but those
// that a gradient is spread over do not (0), as in torchvision.
template <class T, class F>
void forEachCell(const Window& w, const Extents& e, int64_t margin, F&& f) {
  for (int64_t i = 0; i < e.cells(); ++i) {
    f(i, cellOf<T>(i / e.pooled_width, e.pooled_height, w.y, w.height, e.height - margin),
      cellOf<T>(i % e.pooled_width, e.pooled_width, w.x, w.width, e.width - margin));
  }
}

std::tuple<Tensor, Tensor> psRoiPool(const Tensor& input, const Tensor& rois, double scale,
                                     int64_t pooled_height, int64_t pooled_width) {
  const Extents e = extentsOf("ps_roi_pool", input, rois, pooled_height, pooled_width);
  const int64_t count = rois.size(0), cells = e.cells();
  const int64_t channels = channelsOfCells("ps_roi_pool", e);
  Tensor out =
      Tensor::empty(DimVector{count, channels, pooled_height, pooled_width}, input.dtype());
  const Tensor map = input.contiguous(), regions = rois.contiguous();
  dispatchMaps("ps_roi_pool", input.dtype(), [&]<class T, class S>() {
    parallelFor(count, 1, [&](int64_t first, int64_t last) {
      Pace pace;
      for (int64_t n = first; n < last; ++n) {
        const Window w = windowOf<T>(regions.data<S>() + 5 * n, scale, 0);
        forEachCell<T>(w, e, 1, [&](int64_t i, Range ys, Range xs) {
          for (int64_t c = 0; c < channels; ++c) {
            pace.step(ys.size() * xs.size() + 1);
            const S* const plane =
                map.data<S>() + (w.image * e.channels + c * cells + i) * e.plane();
            T sum = 0;
            for (int64_t y = ys.begin; y < ys.end; ++y) {
              for (int64_t x = xs.begin; x < xs.end; ++x) sum += T(plane[y * e.width + x]);
            }
            const bool empty = ys.empty() || xs.empty();
            out.data<S>()[(n * channels + c) * cells + i] =
                static_cast<S>(empty ? T(0) : sum / static_cast<T>(ys.size() * xs.size()));
          }
        });
      }
    });
  });
  return {out, channelMapping(out)};
}

Tensor psRoiPoolBackward(const Tensor& grad, const Tensor& rois, const Tensor& mapping,
                         double scale, int64_t pooled_height, int64_t pooled_width, int64_t images,
                         int64_t channels, int64_t height, int64_t width) {
  constexpr const char* kName = "_ps_roi_pool_backward";
  const int64_t grad_channels = grad.dim() == 4 ? grad.size(1) : 0;
  const Extents e = extentsOfGradient(kName, grad, grad_channels, rois, pooled_height, pooled_width,
                                      images, channels, height, width);
  const Tensor channel = checkedMapping(kName, mapping, grad);
  Tensor out = Tensor::zeros(DimVector{images, channels, height, width}, grad.dtype());
  const Tensor from = grad.contiguous(), regions = rois.contiguous();
  const int64_t cells = e.cells();
  dispatchMaps(kName, grad.dtype(), [&]<class T, class S>() {
    Pace pace;
    for (int64_t n = 0; n < rois.size(0); ++n) {
      const Window w = windowOf<T>(regions.data<S>() + 5 * n, scale, 0);
      forEachCell<T>(w, e, 0, [&](int64_t i, Range ys, Range xs) {
        if (ys.empty() || xs.empty()) return;
        for (int64_t c = 0; c < grad_channels; ++c) {
          pace.step(ys.size() * xs.size());
          const int64_t at = (n * grad_channels + c) * cells + i;
          const int64_t into = channel.data<int32_t>()[at];
          WICK_CHECK(into >= 0 && into < channels,
                     "{}: the channel mapping holds {}, which is none of {} channels", kName, into,
                     channels);
          S* const plane = out.data<S>() + (w.image * channels + into) * e.plane();
          const T share = T(from.data<S>()[at]) / static_cast<T>(ys.size() * xs.size());
          for (int64_t y = ys.begin; y < ys.end; ++y) {
            for (int64_t x = xs.begin; x < xs.end; ++x) {
              S& to = plane[y * e.width + x];
              to = static_cast<S>(T(to) + share);
            }
          }
        }
      });
    }
  });
  return out;
}

#define WICK_POOL                                                            \
  "(Tensor input, Tensor rois, float spatial_scale, int pooled_height, int " \
  "pooled_width) -> (Tensor, Tensor)"
#define WICK_BACK                                                                                  \
  ", float spatial_scale, int pooled_height, int pooled_width, int batch_size, int channels, int " \
  "height, int width) -> Tensor"

constexpr OperatorRecord kRoiPoolRecords[] = {
    {"torchvision::roi_pool" WICK_POOL, WICK_KERNEL(roiPool)},
    {"torchvision::_roi_pool_backward(Tensor grad, Tensor rois, Tensor argmax" WICK_BACK,
     WICK_KERNEL(roiPoolBackward)},
    {"torchvision::ps_roi_pool" WICK_POOL, WICK_KERNEL(psRoiPool)},
    {"torchvision::_ps_roi_pool_backward(Tensor grad, Tensor rois, Tensor "
     "channel_mapping" WICK_BACK,
     WICK_KERNEL(psRoiPoolBackward)},
};
const RegisterOperators kRoiPoolRegistered(kRoiPoolRecords);

}  // namespace

}  // namespace wick::ops::vision
