// Affine grids, patches of images as columns and back.
#include "core/budget.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "core/wrapped.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/linear_algebra/linear_algebra.h"

namespace wick {
namespace {

// Base coordinates in [-1, 1], homogeneous, times the transposed affine matrices.
Tensor affineGridGenerator(const Tensor& theta, const DimVector& size, bool align) {
  const char* op = "affine_grid_generator";
  WICK_CHECK(size.size() == 4 || size.size() == 5,
             "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  int64_t spatial = static_cast<int64_t>(size.size()) - 2;
  WICK_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial &&
                 theta.size(2) == spatial + 1,
             "{}: Expected a batch of {}x{} affine matrices of shape {}x{}x{}, but got {}", op,
             spatial, spatial + 1, size[0], spatial, spatial + 1, formatInts(theta.sizes()));
  DimVector shape(size.begin() + 2, size.end());
  int64_t points = checkedNumel(shape);
  Tensor base = Tensor::empty(DimVector{1, points, spatial + 1}, DType::Double);
  parallelFor(points, kGrainSize / 4, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t rest = p;
      double* row = base.data<double>() + p * (spatial + 1);
      for (int64_t d = spatial; d-- > 0;) {
        int64_t n = shape[static_cast<size_t>(d)], i = rest % n;
        rest /= n;
        double at = n > 1 ? -1 + 2.0 * static_cast<double>(i) / static_cast<double>(n - 1) : 0;
        if (!align && n > 1) at *= static_cast<double>(n - 1) / static_cast<double>(n);
        row[spatial - 1 - d] = at;  // x, the last dimension, comes first
      }
      row[spatial] = 1;
    }
  });
  Tensor grid = matmul(moveTo(base.to(theta.dtype()), theta.device()), theta.transpose(1, 2));
  DimVector sizes{size[0]};
  for (int64_t s : shape) sizes.push_back(s);
  sizes.push_back(spatial);
  return grid.view(sizes);
}

struct Patches {
  int64_t kernel[2], dilation[2], padding[2], stride[2], image[2], steps[2];
};

Patches patchesOf(const char* op, IntSpan image, const DimVector& kernel, const DimVector& dilation,
                  const DimVector& padding, const DimVector& stride) {
  Patches p;
  DimVector k = expandInts(op, "kernel_size", kernel, 2),
            dil = expandInts(op, "dilation", dilation, 2);
  DimVector pad = expandInts(op, "padding", padding, 2), s = expandInts(op, "stride", stride, 2);
  constexpr int64_t kLargest = int64_t{1} << 30;
  for (size_t d = 0; d < 2; ++d) {
    WICK_CHECK(k[d] > 0 && dil[d] > 0 && s[d] > 0 && pad[d] >= 0,
               "{}: kernel size, dilation and stride should be greater than zero and padding not "
               "negative",
               op);
    WICK_CHECK(image[d] >= 0 && std::max({k[d], dil[d], s[d], pad[d], image[d]}) < kLargest,
               "{}: a size is out of range", op);
    p.kernel[d] = k[d];
    p.dilation[d] = dil[d];
    p.padding[d] = pad[d];
    p.stride[d] = s[d];
    p.image[d] = image[d];
    int64_t room = image[d] + 2 * pad[d] - dil[d] * (k[d] - 1) - 1;
    p.steps[d] = room < 0 ? 0 : room / s[d] + 1;
    WICK_CHECK(p.steps[d] > 0,
               "{}: Given input with spatial size {}, the array of sliding blocks "
               "has no elements along dimension {}",
               op, formatInts(image), d);
  }
  return p;
}

// Calls visit(pixel or -1 in the padding, column element) for one channel.
template <class Visit>
void forEachPatch(const Patches& p, Visit&& visit) {
  int64_t column = 0;
  Pace pace;
  for (int64_t kh = 0; kh < p.kernel[0]; ++kh) {
    for (int64_t kw = 0; kw < p.kernel[1]; ++kw) {
      pace.step();
      for (int64_t oh = 0; oh < p.steps[0]; ++oh) {
        pace.step(p.steps[1]);
        int64_t h = oh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
        for (int64_t ow = 0; ow < p.steps[1]; ++ow, ++column) {
          int64_t w = ow * p.stride[1] - p.padding[1] + kw * p.dilation[1];
          bool in = h >= 0 && h < p.image[0] && w >= 0 && w < p.image[1];
          visit(in ? h * p.image[1] + w : -1, column);
        }
      }
    }
  }
}

// Columns of the patches as rows that are copied from an image's pixels, or zero.
WeightedRows rowsOfPatches(const Patches& p) {
  WeightedRows rows;
  rows.start.push_back(0);
  forEachPatch(p, [&](int64_t pixel, int64_t) {
    if (pixel >= 0) {
      rows.place.push_back(pixel);
      rows.weight.push_back(1);
    }
    rows.start.push_back(static_cast<int64_t>(rows.place.size()));
  });
  return rows;
}

// `x` [planes, …] through the table, each plane `made` elements long afterwards; in a dtype that the
// device can add.
Tensor throughRows(const char* op, const Tensor& x, int64_t planes, int64_t made,
                   const WeightedRows& rows) {
  const bool narrow = isReducedFloat(x.dtype()) || x.dtype() == DType::Bool;
  const Tensor from = narrow ? x.to(DType::Float) : x;
  const Tensor out = Tensor::empty(DimVector{planes, made}, from.dtype(), x.device());
  deviceLayers(op, x.device())
      .weightedRows(op, from, out, x.numel() / std::max<int64_t>(1, planes), 1, rows);
  return out.to(x.dtype());
}

Tensor im2col(const Tensor& self, const DimVector& kernel, const DimVector& dilation,
              const DimVector& padding, const DimVector& stride) {
  const char* op = "im2col";
  WICK_CHECK(self.dim() == 3 || self.dim() == 4, "{}: Expected 3D or 4D input tensor, got {}", op,
             formatInts(self.sizes()));
  Patches p = patchesOf(op, self.sizes().last(2), kernel, dilation, padding, stride);
  int64_t channels = self.size(-3), samples = self.dim() == 4 ? self.size(0) : 1;
  int64_t area = p.kernel[0] * p.kernel[1], steps = p.steps[0] * p.steps[1];
  Tensor x = self.contiguous();
  const DimVector sizes{samples, checkedNumel(DimVector{channels, area}), steps};
  if (!x.device().isCpu()) {
    const Tensor out =
        throughRows(op, x, samples * channels, area * steps, rowsOfPatches(p)).reshape(sizes);
    return self.dim() == 3 ? out.squeeze(0) : out;
  }
  Tensor out = Tensor::empty(sizes, self.dtype());
  dispatchAll(self.dtype(), [&]<class T>() {
    parallelFor(samples * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* from = x.data<T>() + plane * p.image[0] * p.image[1];
        T* to = out.data<T>() + plane * area * steps;
        forEachPatch(p, [&](int64_t i, int64_t c) { to[c] = i < 0 ? T(0) : from[i]; });
      }
    });
  });
  return self.dim() == 3 ? out.squeeze(0) : out;
}

Tensor col2im(const Tensor& self, const DimVector& output_size, const DimVector& kernel,
              const DimVector& dilation, const DimVector& padding, const DimVector& stride) {
  const char* op = "col2im";
  WICK_CHECK(self.dim() == 2 || self.dim() == 3, "{}: Expected 2D or 3D input tensor, got {}", op,
             formatInts(self.sizes()));
  DimVector image = expandInts(op, "output_size", output_size, 2);
  Patches p = patchesOf(op, image, kernel, dilation, padding, stride);
  int64_t area = checkedNumel(DimVector{p.kernel[0], p.kernel[1]});
  int64_t steps = checkedNumel(DimVector{p.steps[0], p.steps[1]});
  WICK_CHECK(self.size(-2) % area == 0 && self.size(-1) == steps,
             "{}: Expected {} columns and a multiple of {} rows, got {}", op, steps, area,
             formatInts(self.sizes()));
  int64_t channels = self.size(-2) / area, samples = self.dim() == 3 ? self.size(0) : 1;
  Tensor x = self.contiguous();
  const DimVector sizes{samples, channels, image[0], image[1]};
  if (!x.device().isCpu()) {
    const int64_t pixels = checkedNumel(image);
    const Tensor out =
        throughRows(op, x, samples * channels, pixels, rowsOfPatches(p).transposed(pixels))
            .reshape(sizes);
    return self.dim() == 2 ? out.squeeze(0) : out;
  }
  Tensor out = Tensor::zeros(sizes, self.dtype());
  dispatch<kAnyDType & ~kBool>(op, self.dtype(), [&]<class T>() {
    parallelFor(samples * channels, 1, [&](int64_t begin, int64_t end) {
      for (int64_t plane = begin; plane < end; ++plane) {
        const T* from = x.data<T>() + plane * area * steps;
        T* to = out.data<T>() + plane * p.image[0] * p.image[1];
        forEachPatch(p, [&](int64_t i, int64_t c) {
          if (i >= 0) to[i] = wrappedSum(to[i], from[c]);
        });
      }
    });
  });
  return self.dim() == 2 ? out.squeeze(0) : out;
}

constexpr OperatorRecord kSamplingRecords[] = {
    {"aten::affine_grid_generator(Tensor theta, int[] size, bool align_corners) -> Tensor",
     WICK_KERNEL(affineGridGenerator), kNeutral},
    {"aten::im2col(Tensor self, int[2] kernel_size, int[2] dilation, int[2] padding, int[2] "
     "stride) -> Tensor",
     WICK_KERNEL(im2col), kOutForm | kNeutral},
    {"aten::col2im(Tensor self, int[2] output_size, int[2] kernel_size, int[2] dilation, int[2] "
     "padding, int[2] stride) -> Tensor",
     WICK_KERNEL(col2im), kOutForm | kNeutral},
};

const RegisterOperators kSamplingRegistered(kSamplingRecords);

}  // namespace
}  // namespace wick
