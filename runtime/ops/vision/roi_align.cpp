// roi_align and its position-sensitive form: cells of a region are means of samples between the
// elements of a feature map.
#include "core/budget.h"
#include "core/parallel.h"
#include "ir/operator.h"
#include "runtime/ops/vision/regions.h"

namespace wick::ops::vision {

namespace {

// The sum of a cell's samples on one plane.
template <class T, class S>
T cellSum(const S* plane, const Grid<T>& grid, int64_t cell_y, int64_t cell_x, int64_t width) {
  T sum = 0;
  for (int64_t iy = 0; iy < grid.rows; ++iy) {
    const Sample<T>& y = grid.y[cell_y * grid.rows + iy];
    if (!y.inside) continue;
    const S* const low = plane + y.low * width;
    const S* const high = plane + y.high * width;
    for (int64_t ix = 0; ix < grid.columns; ++ix) {
      const Sample<T>& x = grid.x[cell_x * grid.columns + ix];
      if (!x.inside) continue;
      sum += y.low_weight * x.low_weight * T(low[x.low]) +
             y.low_weight * x.high_weight * T(low[x.high]) +
             y.high_weight * x.low_weight * T(high[x.low]) +
             y.high_weight * x.high_weight * T(high[x.high]);
    }
  }
  return sum;
}

template <class T, class S>
void addToCell(S* plane, const Grid<T>& grid, int64_t cell_y, int64_t cell_x, int64_t width,
               T value) {
  for (int64_t iy = 0; iy < grid.rows; ++iy) {
    const Sample<T>& y = grid.y[cell_y * grid.rows + iy];
    if (!y.inside) continue;
    S* const low = plane + y.low * width;
    S* const high = plane + y.high * width;
    auto add = [](S& to, T v) { to = static_cast<S>(T(to) + v); };
    for (int64_t ix = 0; ix < grid.columns; ++ix) {
      const Sample<T>& x = grid.x[cell_x * grid.columns + ix];
      if (!x.inside) continue;
      add(low[x.low], value * y.low_weight * x.low_weight);
      add(low[x.high], value * y.low_weight * x.high_weight);
      add(high[x.low], value * y.high_weight * x.low_weight);
      add(high[x.high], value * y.high_weight * x.high_weight);
    }
  }
}

// How the two operators lay their grids. Without alignment regions are at least one element large.
struct Rule {
  const char* op;
  double offset;
  bool least_size;
  bool divides_by_one_at_least;
  bool position_sensitive;
};
Rule alignRule(const char* op, bool aligned) {
  return {op, aligned ? 0.5 : 0.0, !aligned, true, false};
}
constexpr Rule kPsRule{"ps_roi_align", 0.5, false, false, true};
constexpr Rule kPsBackward{"_ps_roi_align_backward", 0.5, false, false, true};

template <class T, class S>
Grid<T> gridFor(const Rule& rule, const S* roi, const Extents& e, double scale, int64_t ratio) {
  Grid<T> grid = gridOf<T>(rule.op, roi, e, static_cast<T>(scale), static_cast<T>(rule.offset),
                           rule.least_size, ratio);
  if (rule.divides_by_one_at_least) grid.count = std::max(grid.count, T(1));
  return grid;
}

Tensor pooled(const Rule& rule, const Tensor& input, const Tensor& rois, double scale,
              const Extents& e, int64_t ratio) {
  const int64_t count = rois.size(0), cells = e.cells();
  const int64_t channels = rule.position_sensitive ? channelsOfCells(rule.op, e) : e.channels;
  Tensor out =
      Tensor::empty(DimVector{count, channels, e.pooled_height, e.pooled_width}, input.dtype());
  const Tensor map = input.contiguous(), regions = rois.contiguous();
  dispatchMaps(rule.op, input.dtype(), [&]<class T, class S>() {
    const S* const from = map.data<S>();
    S* const to = out.data<S>();
    parallelFor(count, 1, [&](int64_t first, int64_t last) {
      Pace pace;
      for (int64_t n = first; n < last; ++n) {
        const Grid<T> grid = gridFor<T>(rule, regions.data<S>() + 5 * n, e, scale, ratio);
        const S* const image = from + grid.image * e.channels * e.plane();
        S* cell = to + n * channels * cells;
        for (int64_t c = 0; c < channels; ++c) {
          for (int64_t i = 0; i < cells; ++i, ++cell) {
            pace.step(4 * grid.rows * grid.columns + 4);
            const int64_t channel = rule.position_sensitive ? c * cells + i : c;
            const T sum = cellSum(image + channel * e.plane(), grid, i / e.pooled_width,
                                  i % e.pooled_width, e.width);
            *cell = static_cast<S>(sum / grid.count);
          }
        }
      }
    });
  });
  return out;
}

// `mapping`: of the position-sensitive form, which channel each cell read.
Tensor unpooled(const Rule& rule, const Tensor& grad, const Tensor& rois, const Tensor* mapping,
                double scale, const Extents& e, int64_t ratio) {
  const int64_t count = rois.size(0), cells = e.cells(), channels = grad.size(1);
  Tensor out = Tensor::zeros(DimVector{e.images, e.channels, e.height, e.width}, grad.dtype());
  const Tensor from = grad.contiguous(), regions = rois.contiguous();
  dispatchMaps(rule.op, grad.dtype(), [&]<class T, class S>() {
    S* const to = out.data<S>();
    Pace pace;
    for (int64_t n = 0; n < count; ++n) {
      const Grid<T> grid = gridFor<T>(rule, regions.data<S>() + 5 * n, e, scale, ratio);
      S* const image = to + grid.image * e.channels * e.plane();
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t i = 0; i < cells; ++i) {
          pace.step(8 * grid.rows * grid.columns + 4);
          const int64_t at = (n * channels + c) * cells + i;
          const int64_t channel = mapping ? mapping->data<int32_t>()[at] : c;
          WICK_CHECK(channel >= 0 && channel < e.channels,
                     "{}: the channel mapping holds {}, which is none of {} channels", rule.op,
                     channel, e.channels);
          addToCell(image + channel * e.plane(), grid, i / e.pooled_width, i % e.pooled_width,
                    e.width, T(from.data<S>()[at]) / grid.count);
        }
      }
    }
  });
  return out;
}

Tensor roiAlign(const Tensor& input, const Tensor& rois, double scale, int64_t pooled_height,
                int64_t pooled_width, int64_t sampling_ratio, bool aligned) {
  const Extents e = extentsOf("roi_align", input, rois, pooled_height, pooled_width);
  return pooled(alignRule("roi_align", aligned), input, rois, scale, e, sampling_ratio);
}
Tensor roiAlignBackward(const Tensor& grad, const Tensor& rois, double scale, int64_t pooled_height,
                        int64_t pooled_width, int64_t images, int64_t channels, int64_t height,
                        int64_t width, int64_t sampling_ratio, bool aligned) {
  constexpr const char* kName = "_roi_align_backward";
  const Extents e = extentsOfGradient(kName, grad, channels, rois, pooled_height, pooled_width,
                                      images, channels, height, width);
  return unpooled(alignRule(kName, aligned), grad, rois, nullptr, scale, e, sampling_ratio);
}

std::tuple<Tensor, Tensor> psRoiAlign(const Tensor& input, const Tensor& rois, double scale,
                                      int64_t pooled_height, int64_t pooled_width,
                                      int64_t sampling_ratio) {
  const Extents e = extentsOf("ps_roi_align", input, rois, pooled_height, pooled_width);
  Tensor out = pooled(kPsRule, input, rois, scale, e, sampling_ratio);
  return {out, channelMapping(out)};
}
Tensor psRoiAlignBackward(const Tensor& grad, const Tensor& rois, const Tensor& mapping,
                          double scale, int64_t pooled_height, int64_t pooled_width,
                          int64_t sampling_ratio, int64_t images, int64_t channels, int64_t height,
                          int64_t width) {
  const Extents e =
      extentsOfGradient(kPsBackward.op, grad, grad.dim() == 4 ? grad.size(1) : 0, rois,
                        pooled_height, pooled_width, images, channels, height, width);
  const Tensor channel = checkedMapping(kPsBackward.op, mapping, grad);
  return unpooled(kPsBackward, grad, rois, &channel, scale, e, sampling_ratio);
}

constexpr OperatorRecord kRoiAlignRecords[] = {
    {"torchvision::roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
     "int "
     "pooled_width, int sampling_ratio, bool aligned) -> Tensor",
     WICK_KERNEL(roiAlign)},
    {"torchvision::_roi_align_backward(Tensor grad, Tensor rois, float spatial_scale, int "
     "pooled_height, int pooled_width, int batch_size, int channels, int height, int width, int "
     "sampling_ratio, bool aligned) -> Tensor",
     WICK_KERNEL(roiAlignBackward)},
    {"torchvision::ps_roi_align(Tensor input, Tensor rois, float spatial_scale, int pooled_height, "
     "int pooled_width, int sampling_ratio) -> (Tensor, Tensor)",
     WICK_KERNEL(psRoiAlign)},
    {"torchvision::_ps_roi_align_backward(Tensor grad, Tensor rois, Tensor channel_mapping, float "
     "spatial_scale, int pooled_height, int pooled_width, int sampling_ratio, int batch_size, int "
     "channels, int height, int width) -> Tensor",
     WICK_KERNEL(psRoiAlignBackward)},
};
const RegisterOperators kRoiAlignRegistered(kRoiAlignRecords);

}  // namespace

}  // namespace wick::ops::vision
