// Fake quantization on the device "ahead": rounding to the grid of a quantized type, in floating point.
#include <fmt/format.h>

#include <string>

#include "aot/device.h"
#include "aot/kernel_maker.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/tensors/fake_quantize.h"

namespace wick::aot {

namespace {

// The grid scale * (q - zero_point) for integers q in [least, most]. Scales and zero points broadcast to what is
// rounded.
struct Grid {
  Tensor scale, zero_point;
  int64_t least, most;
  enum class Zero {
    Whole,       // an integer within the grid, which is checked
    CutOff,      // whatever lies behind its point
    Learned,     // rounded, and kept within the grid
    Fractional,  // as it is; what is rounded is the sum of it and the scaled value
  } zero = Zero::Whole;
};

class GridMaker {
 public:
  GridMaker(const std::string& op, const Tensor& x, const Grid& grid)
      : op_(op), x_(x), grid_(grid), maker_(x.sizes()), e_(maker_.expression()) {}

  Tensor run() {
    const Tensor out = Tensor::empty(x_.sizes(), x_.dtype(), x_.device());
    const DType wide = x_.dtype() == DType::Double ? DType::Double : DType::Float;
    const ExprBuilder w(e_, wide), f(e_, DType::Float), d(e_, DType::Double);
    const ScalarExpr x = e_.convert(maker_.load(x_), wide);
    const ScalarExpr scale = e_.convert(maker_.load(grid_.scale), DType::Float);
    const ScalarExpr scaled = w.mul(x, e_.convert(f.div(f.constant(1), scale), wide));
    ScalarExpr q, zero;  // an int64 and a float64
    if (grid_.zero == Grid::Zero::Fractional) {
      const ScalarExpr fraction = e_.convert(maker_.load(grid_.zero_point), DType::Float);
      const ScalarExpr sum = w.add(e_.convert(fraction, wide), scaled);
      q = whole(f.rint(e_.convert(sum, DType::Float)), DType::Float);
      zero = e_.convert(fraction, DType::Double);
    } else {
      const ScalarExpr point = zeroPoint();
      q = whole(w.add(e_.convert(point, wide), w.rint(scaled)), wide);
      zero = e_.convert(point, DType::Double);
    }
    const ExprBuilder n(e_, DType::Long);
    const ScalarExpr least = integer(grid_.least), most = integer(grid_.most);
    const ScalarExpr kept = n.select(n.lt(q, least), least, n.select(n.lt(most, q), most, q));
    maker_.store(
        d.mul(d.sub(e_.convert(kept, DType::Double), zero), e_.convert(scale, DType::Double)), out);
    maker_.finish(op_, fmt::format(fmt::runtime(ops::kZeroPointOutside), op_));
    return out;
  }

 private:
  ScalarExpr integer(int64_t v) { return e_.integer(v, DType::Long); }

  // What has no 64-bit integer is the least one, but what is too large for it among doubles the largest.
  ScalarExpr whole(ScalarExpr v, DType type) {
    const ScalarExpr n = e_.convert(v, DType::Long);
    if (type != DType::Double) return n;
    const ExprBuilder d(e_, DType::Double), l(e_, DType::Long);
    return l.select(d.ge(v, d.constant(0x1p63)), integer(INT64_MAX), n);
  }

  ScalarExpr zeroPoint() {
    const ExprBuilder d(e_, DType::Double), n(e_, DType::Long);
    ScalarExpr zero = e_.convert(maker_.load(grid_.zero_point), DType::Double);
    const ScalarExpr least = d.constant(static_cast<double>(grid_.least)),
                     most = d.constant(static_cast<double>(grid_.most));
    if (grid_.zero == Grid::Zero::Learned) {
      zero = d.select(d.either(d.isNan(zero), d.lt(zero, least)), least, zero);
      return e_.convert(d.rint(d.select(d.lt(most, zero), most, zero)), DType::Long);
    }
    if (grid_.zero == Grid::Zero::CutOff) {
      zero = d.trunc(zero);
      maker_.check(d.both(d.ge(zero, d.constant(INT32_MIN)), d.le(zero, d.constant(INT32_MAX))));
    } else {
      maker_.check(d.both(d.ge(zero, least), d.le(zero, most)));
    }
    return e_.convert(zero, DType::Long);
  }

  const std::string op_;
  const Tensor& x_;
  const Grid& grid_;
  KernelMaker maker_;
  Expression& e_;
};

Tensor quantized(const char* op, const Tensor& self, const Grid& grid) {
  ops::checkFakeQuantized(op, self, grid.least, grid.most);
  const Tensor x = here(self).contiguous();
  if (x.numel() == 0) return x.clone();
  return GridMaker(op, x, grid).run();
}

Tensor perTensor(const Tensor& self, double scale, int64_t zero_point, int64_t least,
                 int64_t most) {
  const char* op = "fake_quantize_per_tensor_affine";
  ops::checkZeroPoint(op, zero_point, least, most);
  return quantized(op, self,
                   {here(Tensor::scalar(scale).to(DType::Float)), here(Tensor::scalar(zero_point)),
                    least, most});
}
// Scales and zero points of one element.
Tensor one(const char* op, const Tensor& t) {
  WICK_CHECK(t.numel() == 1, "{}: expected one number, got {}", op, t.describe());
  return here(t).reshape(DimVector{});
}
Tensor perTensorOfTensors(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                          int64_t least, int64_t most) {
  const char* op = "fake_quantize_per_tensor_affine";
  return quantized(op, self,
                   {one(op, scale), one(op, zero_point), least, most, Grid::Zero::CutOff});
}
Tensor learnedPerTensor(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                        int64_t least, int64_t most, double) {
  const char* op = "_fake_quantize_learnable_per_tensor_affine";
  return quantized(op, self,
                   {one(op, scale), one(op, zero_point), least, most, Grid::Zero::Learned});
}

Grid channelGrid(const char* op, const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                 int64_t axis, int64_t least, int64_t most, Grid::Zero zero) {
  ops::checkChannelGrids(op, self, scale, zero_point, axis, zero == Grid::Zero::Learned);
  DimVector shape(static_cast<size_t>(self.dim()), 1);
  shape[static_cast<size_t>(axis)] = self.size(axis);
  return {here(scale).reshape(shape), here(zero_point).reshape(shape), least, most, zero};
}
Tensor perChannel(const Tensor& self, const Tensor& scale, const Tensor& zero_point, int64_t axis,
                  int64_t least, int64_t most) {
  const char* op = "fake_quantize_per_channel_affine";
  const bool fractional = isFloating(zero_point.dtype());
  return quantized(op, self,
                   channelGrid(op, self, scale, zero_point, axis, least, most,
                               fractional ? Grid::Zero::Fractional : Grid::Zero::Whole));
}
Tensor learnedPerChannel(const Tensor& self, const Tensor& scale, const Tensor& zero_point,
                         int64_t axis, int64_t least, int64_t most, double) {
  const char* op = "_fake_quantize_learnable_per_channel_affine";
  return quantized(
      op, self, channelGrid(op, self, scale, zero_point, axis, least, most, Grid::Zero::Learned));
}

const DeviceKernel kQuantizationKernels[] = {
    {"aten::fake_quantize_per_tensor_affine", WICK_KERNEL(perTensor)},
    {"aten::fake_quantize_per_tensor_affine.tensor_qparams", WICK_KERNEL(perTensorOfTensors)},
    {"aten::fake_quantize_per_channel_affine", WICK_KERNEL(perChannel)},
    {"aten::_fake_quantize_learnable_per_tensor_affine", WICK_KERNEL(learnedPerTensor)},
    {"aten::_fake_quantize_learnable_per_channel_affine", WICK_KERNEL(learnedPerChannel)},
};
const RegisterDeviceKernels kQuantizationRegistered(kAhead, kQuantizationKernels);

}  // namespace

}  // namespace wick::aot
