// Deformable convolution: each element of the kernel reads the input where an offset of its own
// moves it, between elements. The samples are laid out as columns, which one matrix product turns
// into the result; the gradients go the same way back.
#include "runtime/ops/vision/deform_conv.h"

#include <algorithm>
#include <cmath>

#include "core/budget.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "ir/operator.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::ops::vision {

namespace {

// Elements of the result along one dimension.
int64_t outSize(int64_t size, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation) {
  int64_t reach = 0, padded = 0, free = 0;
  const bool fits = !__builtin_mul_overflow(dilation, kernel - 1, &reach) &&
                    !__builtin_mul_overflow(pad, int64_t{2}, &padded) &&
                    !__builtin_add_overflow(padded, size, &padded) &&
                    !__builtin_sub_overflow(padded, reach + 1, &free) && reach < kMaxElements &&
                    padded < kMaxElements;
  WICK_CHECK(fits, "deform_conv2d: the sizes are too large");
  return free < 0 ? 0 : free / stride + 1;
}

}  // namespace

Geometry geometryOf(const char* op, const Tensor& input, const Tensor& weight, const Tensor& offset,
                    const Tensor& mask, const Tensor& bias, const DimVector& numbers,
                    bool use_mask) {
  WICK_CHECK(
      input.dim() == 4 && offset.dim() == 4 && weight.dim() == 4 && (!use_mask || mask.dim() == 4),
      "{}: expected an input, weights, offsets and a mask of four dimensions", op);
  Geometry g{input.size(0),
             input.size(1),
             input.size(2),
             input.size(3),
             weight.size(0),
             weight.size(2),
             weight.size(3),
             0,
             0,
             numbers[0],
             numbers[1],
             numbers[2],
             numbers[3],
             numbers[4],
             numbers[5],
             numbers[6],
             numbers[7],
             use_mask};
  WICK_CHECK(g.kernel_height > 0 && g.kernel_width > 0, "{}: weight_h: {} weight_w: {}", op,
             g.kernel_height, g.kernel_width);
  WICK_CHECK(g.stride_h > 0 && g.stride_w > 0, "{}: stride_h: {} stride_w: {}", op, g.stride_h,
             g.stride_w);
  WICK_CHECK(g.pad_h >= 0 && g.pad_w >= 0, "{}: pad_h: {} pad_w: {}", op, g.pad_h, g.pad_w);
  WICK_CHECK(g.dilation_h > 0 && g.dilation_w > 0, "{}: dilation_h: {} dilation_w: {}", op,
             g.dilation_h, g.dilation_w);
  WICK_CHECK(g.groups > 0 && g.offset_groups > 0, "{}: groups: {} offset groups: {}", op, g.groups,
             g.offset_groups);
  WICK_CHECK(g.channels % g.groups == 0 && weight.size(1) == g.channels / g.groups,
             "{}: expected weights for {} channels in {} groups, got {} each", op, g.channels,
             g.groups, weight.size(1));
  WICK_CHECK(g.out_channels % g.groups == 0,
             "{}: the {} channels of the result are no multiple of {} groups", op, g.out_channels,
             g.groups);
  WICK_CHECK(g.channels % g.offset_groups == 0,
             "{}: the {} channels of the input are no multiple of {} offset groups", op, g.channels,
             g.offset_groups);
  for (const Tensor* t : {&weight, &offset, &bias}) {
    WICK_CHECK(t->dtype() == input.dtype(), "{}: expected tensors of one type, got {} and {}", op,
               toString(input.dtype()), toString(t->dtype()));
  }
  WICK_CHECK(!use_mask || mask.dtype() == input.dtype(), "{}: expected a mask of type {}, got {}",
             op, toString(input.dtype()), toString(mask.dtype()));
  g.out_height = outSize(g.height, g.kernel_height, g.stride_h, g.pad_h, g.dilation_h);
  g.out_width = outSize(g.width, g.kernel_width, g.stride_w, g.pad_w, g.dilation_w);
  WICK_CHECK(g.out_height > 0 && g.out_width > 0,
             "{}: Calculated output size too small - out_h: {} "
             "out_w: {}",
             op, g.out_height, g.out_width);
  const DimVector offsets{g.images, checkedNumel(DimVector{2, g.offset_groups, g.taps()}),
                          g.out_height, g.out_width};
  WICK_CHECK(std::ranges::equal(offset.sizes(), offsets),
             "{}: offset.shape is not valid: got {}, "
             "expected {}",
             op, formatInts(offset.sizes()), formatInts(offsets));
  const DimVector masks{g.images, offsets[1] / 2, g.out_height, g.out_width};
  WICK_CHECK(!use_mask || std::ranges::equal(mask.sizes(), masks),
             "{}: mask.shape is not valid: "
             "got {}, expected {}",
             op, formatInts(mask.sizes()), formatInts(masks));
  WICK_CHECK(bias.dim() == 1 && bias.size(0) == g.out_channels,
             "{}: expected a bias of {} elements, got {}", op, g.out_channels,
             formatInts(bias.sizes()));
  return g;
}

namespace {

// Four elements around a point, those outside of the plane zero.
template <class T>
struct Corners {
  int64_t y, x;  // of the first one
  T dy, dx;      // how far the point lies from it
  bool top, bottom, left, right;
};
template <class T>
Corners<T> cornersOf(T y, T x, const Geometry& g) {
  const T top = std::floor(y), left = std::floor(x);
  Corners<T> c{static_cast<int64_t>(top),
               static_cast<int64_t>(left),
               y - top,
               x - left,
               false,
               false,
               false,
               false};
  c.top = c.y >= 0 && c.y < g.height;
  c.bottom = c.y + 1 >= 0 && c.y + 1 < g.height;
  c.left = c.x >= 0 && c.x < g.width;
  c.right = c.x + 1 >= 0 && c.x + 1 < g.width;
  return c;
}
// Whether a point lies on the plane or beside it. False for what is not a number.
template <class T>
bool isNear(T y, T x, const Geometry& g) {
  return y > T(-1) && y < static_cast<T>(g.height) && x > T(-1) && x < static_cast<T>(g.width);
}
// Whether the value changes when the point moves: also on the edges, where it is zero. Points lie
// there when offsets are zero and there is padding.
template <class T>
bool isNearOrAtEdge(T y, T x, const Geometry& g) {
  return y >= T(-1) && y < static_cast<T>(g.height) && x >= T(-1) && x < static_cast<T>(g.width);
}
template <class T>
struct Read {
  T top_left, top_right, bottom_left, bottom_right;
};
template <class T>
Read<T> readCorners(const T* plane, const Corners<T>& c, const Geometry& g) {
  const T* const at = plane + c.y * g.width + c.x;
  return {c.top && c.left ? at[0] : T(0), c.top && c.right ? at[1] : T(0),
          c.bottom && c.left ? at[g.width] : T(0), c.bottom && c.right ? at[g.width + 1] : T(0)};
}
template <class T>
T between(const Read<T>& r, const Corners<T>& c) {
  return (1 - c.dy) * (1 - c.dx) * r.top_left + (1 - c.dy) * c.dx * r.top_right +
         c.dy * (1 - c.dx) * r.bottom_left + c.dy * c.dx * r.bottom_right;
}

// Calls f(column, y, x, mask, offset_at, mask_at) for the taps and positions of one channel of one
// image: the element of the columns, where the tap reads, and the elements that decided it.
template <class T, class F>
void forEachSample(const Geometry& g, const T* offsets, const T* masks, int64_t channel, F&& f) {
  const int64_t group = channel / g.channelsPerOffset(), places = g.places();
  for (int64_t tap = 0; tap < g.taps(); ++tap) {
    const int64_t i = tap / g.kernel_width, j = tap % g.kernel_width;
    const int64_t mask_at = (group * g.taps() + tap) * places, offset_at = 2 * mask_at;
    for (int64_t p = 0; p < places; ++p) {
      const int64_t base_y = p / g.out_width * g.stride_h - g.pad_h + i * g.dilation_h;
      const int64_t base_x = p % g.out_width * g.stride_w - g.pad_w + j * g.dilation_w;
      f((channel * g.taps() + tap) * places + p, static_cast<T>(base_y) + offsets[offset_at + p],
        static_cast<T>(base_x) + offsets[offset_at + places + p],
        g.use_mask ? masks[mask_at + p] : T(1), offset_at + p, mask_at + p);
    }
  }
}

// The samples of one image, [channels * taps, places].
template <class T>
void fillColumns(const Geometry& g, const T* image, const T* offsets, const T* masks, T* columns) {
  parallelFor(g.channels, std::max<int64_t>(1, kGrainSize / (g.taps() * g.places() + 1)),
              [&](int64_t first, int64_t last) {
                Pace pace;
                for (int64_t c = first; c < last; ++c) {
                  pace.step(4 * g.taps() * g.places());
                  const T* const plane = image + c * g.plane();
                  forEachSample(
                      g, offsets, masks, c, [&](int64_t at, T y, T x, T mask, int64_t, int64_t) {
                        if (!isNear(y, x, g)) {
                          columns[at] = T(0);
                          return;
                        }
                        const Corners<T> corners = cornersOf(y, x, g);
                        columns[at] = mask * between(readCorners(plane, corners, g), corners);
                      });
                }
              });
}

struct Operands {
  Tensor input, weight, offset, mask;
};
// Row-major, the weights as [groups, out channels, channels * taps] of each.
Operands operandsOf(const Geometry& g, const Tensor& input, const Tensor& weight,
                    const Tensor& offset, const Tensor& mask) {
  const DimVector shape{g.groups, g.out_channels / g.groups, g.channels / g.groups * g.taps()};
  return {input.contiguous(), weight.contiguous().view(shape), offset.contiguous(),
          mask.contiguous()};
}
template <class T>
const T* maskOf(const Geometry& g, const Operands& o, int64_t image) {
  return g.use_mask ? o.mask.data<T>() + image * g.offset_groups * g.taps() * g.places() : nullptr;
}
template <class T>
const T* offsetsOf(const Geometry& g, const Operands& o, int64_t image) {
  return o.offset.data<T>() + image * 2 * g.offset_groups * g.taps() * g.places();
}

Tensor columnsFor(const Geometry& g, DType dtype) {
  return Tensor::empty(DimVector{g.groups, g.channels / g.groups * g.taps(), g.places()}, dtype);
}

Tensor deformConv(const Tensor& input, const Tensor& weight, const Tensor& offset,
                  const Tensor& mask, const Tensor& bias, int64_t stride_h, int64_t stride_w,
                  int64_t pad_h, int64_t pad_w, int64_t dilation_h, int64_t dilation_w,
                  int64_t groups, int64_t offset_groups, bool use_mask) {
  const Geometry g = geometryOf(
      "deform_conv2d", input, weight, offset, mask, bias,
      DimVector{stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups},
      use_mask);
  Tensor out =
      Tensor::empty(DimVector{g.images, g.out_channels, g.out_height, g.out_width}, input.dtype());
  if (out.numel() == 0) return out;
  const Operands o = operandsOf(g, input, weight, offset, mask);
  const Tensor columns = columnsFor(g, input.dtype());
  dispatch<kFloats>("deform_conv2d", input.dtype(), [&]<class T>() {
    for (int64_t b = 0; b < g.images; ++b) {
      checkBudget();
      fillColumns(g, o.input.data<T>() + b * g.channels * g.plane(), offsetsOf<T>(g, o, b),
                  maskOf<T>(g, o, b), columns.data<T>());
      const Tensor product = ops::bmm(o.weight, columns);
      out.select(0, b).copyFrom(
          ops::add(product.view(DimVector{g.out_channels, g.places()}), bias.unsqueeze(1))
              .view(DimVector{g.out_channels, g.out_height, g.out_width}));
    }
  });
  return out;
}

// ---- gradients ----

// From the gradient of one image's columns those of its input, offsets and mask.
template <class T>
void scatterColumns(const Geometry& g, const T* image, const T* offsets, const T* masks,
                    const T* columns, T* to_image, T* to_offsets, T* to_masks) {
  // Channels of one group share offsets; groups share nothing.
  parallelFor(g.offset_groups, 1, [&](int64_t first, int64_t last) {
    Pace pace;
    for (int64_t c = first * g.channelsPerOffset(); c < last * g.channelsPerOffset(); ++c) {
      pace.step(8 * g.taps() * g.places());
      const T* const plane = image + c * g.plane();
      T* const into = to_image + c * g.plane();
      forEachSample(g, offsets, masks, c,
                    [&](int64_t at, T y, T x, T mask, int64_t offset_at, int64_t mask_at) {
                      if (!isNearOrAtEdge(y, x, g)) return;
                      const Corners<T> k = cornersOf(y, x, g);
                      const Read<T> r = readCorners(plane, k, g);
                      const T grad = columns[at], scaled = grad * mask;
                      T* const corner = into + k.y * g.width + k.x;
                      if (k.top && k.left) corner[0] += scaled * (1 - k.dy) * (1 - k.dx);
                      if (k.top && k.right) corner[1] += scaled * (1 - k.dy) * k.dx;
                      if (k.bottom && k.left) corner[g.width] += scaled * k.dy * (1 - k.dx);
                      if (k.bottom && k.right) corner[g.width + 1] += scaled * k.dy * k.dx;
                      to_offsets[offset_at] += scaled * (k.dx * (r.bottom_right - r.top_right) +
                                                         (1 - k.dx) * (r.bottom_left - r.top_left));
                      to_offsets[offset_at + g.places()] +=
                          scaled * (k.dy * (r.bottom_right - r.bottom_left) +
                                    (1 - k.dy) * (r.top_right - r.top_left));
                      if (to_masks) to_masks[mask_at] += grad * between(r, k);
                    });
    }
  });
}

using Gradients = std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor>;

Gradients deformConvBackward(const Tensor& grad, const Tensor& input, const Tensor& weight,
                             const Tensor& offset, const Tensor& mask, const Tensor& bias,
                             int64_t stride_h, int64_t stride_w, int64_t pad_h, int64_t pad_w,
                             int64_t dilation_h, int64_t dilation_w, int64_t groups,
                             int64_t offset_groups, bool use_mask) {
  constexpr const char* kName = "_deform_conv2d_backward";
  const Geometry g = geometryOf(
      kName, input, weight, offset, mask, bias,
      DimVector{stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, groups, offset_groups},
      use_mask);
  const DimVector grad_sizes{g.images, g.out_channels, g.out_height, g.out_width};
  WICK_CHECK(std::ranges::equal(grad.sizes(), grad_sizes) && grad.dtype() == input.dtype(),
             "{}: expected a gradient of sizes {} and type {}, got {}", kName,
             formatInts(grad_sizes), toString(input.dtype()), grad.describe());
  const Operands o = operandsOf(g, input, weight, offset, mask);
  const auto zerosLike = [](const Tensor& t) { return Tensor::zeros(t.sizes(), t.dtype()); };
  Tensor to_input = zerosLike(input), to_weight = zerosLike(o.weight);
  Tensor to_offset = zerosLike(offset), to_mask = zerosLike(mask);
  const Tensor columns = columnsFor(g, input.dtype()), rows = grad.contiguous();
  dispatch<kFloats>(kName, input.dtype(), [&]<class T>() {
    for (int64_t b = 0; b < g.images && grad.numel() > 0; ++b) {
      checkBudget();
      const Tensor part =
          rows.select(0, b).view(DimVector{g.groups, g.out_channels / g.groups, g.places()});
      const T* const image = o.input.data<T>() + b * g.channels * g.plane();
      fillColumns(g, image, offsetsOf<T>(g, o, b), maskOf<T>(g, o, b), columns.data<T>());
      to_weight = ops::add(to_weight, ops::bmm(part, columns.transpose(1, 2)));
      const Tensor back = Tensor(ops::bmm(o.weight.transpose(1, 2), part)).contiguous();
      const int64_t masks = g.offset_groups * g.taps() * g.places();
      scatterColumns(g, image, offsetsOf<T>(g, o, b), maskOf<T>(g, o, b), back.data<T>(),
                     to_input.data<T>() + b * g.channels * g.plane(),
                     to_offset.data<T>() + b * 2 * masks,
                     use_mask ? to_mask.data<T>() + b * masks : nullptr);
    }
  });
  const Tensor to_bias = sumDims(grad, IntSpan(DimVector{0, 2, 3}), false);
  return {to_input, to_weight.view(weight.sizes()), to_offset, to_mask, to_bias};
}

#define WICK_NUMBERS                                                                            \
  "Tensor offset, Tensor mask, Tensor bias, int stride_h, int stride_w, int pad_h, int pad_w, " \
  "int "                                                                                        \
  "dilation_h, int dilation_w, int groups, int offset_groups, bool use_mask) -> "

constexpr OperatorRecord kDeformConvRecords[] = {
    {"torchvision::deform_conv2d(Tensor input, Tensor weight, " WICK_NUMBERS "Tensor",
     WICK_KERNEL(deformConv)},
    {"torchvision::_deform_conv2d_backward(Tensor grad, Tensor input, Tensor weight, " WICK_NUMBERS
     "(Tensor, Tensor, Tensor, Tensor, Tensor)",
     WICK_KERNEL(deformConvBackward)},
};
const RegisterOperators kDeformConvRegistered(kDeformConvRecords);

}  // namespace

}  // namespace wick::ops::vision
