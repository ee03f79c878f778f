// Means, average pools and bilinear interpolation of quantized tensors. PyTorch computes them on the
// integers, and what lies in the middle of two of them is rounded before or after the zero point is
// added, which is the same only where that is even.
#include <algorithm>
#include <vector>

#include "core/counted_vector.h"
#include "core/parallel.h"
#include "ir/kind_kernels.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/quantized/through.h"

namespace wick::ops::quantized {

namespace {

// What the dense kernel of the same operator gives for another first argument.
Tensor denseResult(const CallFrame& frame, const Tensor& self) {
  std::vector<IValue> args(frame.args, frame.args + frame.num_args);
  args[0] = IValue(self);
  CallFrame inner{args.data(),       args.size(), frame.results,
                  frame.num_results, frame.op,    ~uint64_t{0}};
  frame.op->record().kernel(inner);
  return frame.results[0].toTensor();
}

// Float32 numbers that count steps of the scale as the result. `of_zero`: from the zero point, which
// is added after rounding; otherwise from the integer 0.
void giveRounded(const CallFrame& frame, const Tensor& self, const Tensor& steps, bool of_zero) {
  const char* op = frame.op->schema().name().c_str();
  const Quantizer& q = perTensorQuantizerOf(op, self);
  const Tensor rounded = quantize(op, steps, {1, of_zero ? q.zeroPoint() : 0}, self.dtype());
  frame.results[0] = IValue(quantizedFrom(integersOf(rounded), self.dtype(), self.form()));
}

bool hasChannelsInnermost(const Tensor& t) {
  switch (t.dim()) {
    case 3:  // [images, channels, length] of one channel, which is as good as innermost
      return t.size(1) == 1;
    case 4:
      return t.isContiguous(MemoryFormat::ChannelsLast);
    case 5:
      return t.isContiguous(MemoryFormat::ChannelsLast3d);
    default:
      return false;
  }
}

template <bool kOneDimension>
void averagePool(CallFrame& frame) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor self = frame.args[0].toTensor();
  const int64_t zero_point = perTensorQuantizerOf(op, self).zeroPoint();
  const Tensor steps = dequantize(
      op, quantizedFrom(integersOf(self), self.dtype(), Quantizer::perTensor(1, zero_point)));
  const Tensor mean = denseResult(frame, steps);
  const bool apart = (kOneDimension || self.dim() > 3) && hasChannelsInnermost(self);
  giveRounded(frame, self, apart ? mean : addScalar(mean, Scalar(zero_point), Scalar(1)), apart);
}

// Whether these are the last dimensions; none are all.
bool areInnermost(const Tensor& t, const IValue& dims) {
  if (!dims.isList()) return true;
  const std::vector<IValue>& given = dims.toList().elements;
  std::vector<bool> reduced(static_cast<size_t>(t.dim()), given.empty());
  for (const IValue& d : given) reduced[static_cast<size_t>(wrapDim(d.toInt(), t.dim()))] = true;
  return std::is_sorted(reduced.begin(), reduced.end());
}

void mean(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  const bool all = frame.op->schema().overload().empty();
  if (self.dim() > 0 && self.isContiguous() && (all || areInnermost(self, frame.args[1]))) {
    perTensorQuantizerOf(frame.op->schema().name().c_str(), self);
    const Tensor raw = denseResult(frame, integersOf(self).to(DType::Float));
    if (raw.dtype() == DType::Float) return giveRounded(frame, self, raw, false);
  }
  onRealsAndBack(frame);
}

// Where output elements along one dimension lie between input elements.
struct Between {
  int64_t low = 0, high = 0;
  float to_low = 1, to_high = 0;
};

CountedVector<Between> placesAlong(int64_t from, int64_t to, bool align, double factor) {
  float step = factor > 0 ? static_cast<float>(1.0 / factor)
                          : static_cast<float>(from) / static_cast<float>(to);
  if (align) {
    step = to > 1 ? static_cast<float>(from - 1) / static_cast<float>(to - 1) : 0.0f;
  }
  CountedVector<Between> places(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const auto x = static_cast<float>(i);
    const float at = align ? step * x : std::max(step * (x + 0.5f) - 0.5f, 0.0f);
    Between& b = places[static_cast<size_t>(i)];
    // A factor may be so small that `at` is no integer.
    b.low = at < static_cast<float>(from - 1) ? static_cast<int64_t>(at) : from - 1;
    b.high = std::min(b.low + 1, from - 1);
    b.to_high = at - static_cast<float>(b.low);
    b.to_low = 1.0f - b.to_high;
  }
  return places;
}

// The factor along a dimension that the call gives; 0 when it gives sizes alone.
double factorOf(const CallFrame& frame, size_t dim) {
  if (frame.op->schema().overload() == "vec") {
    const IValue& factors = frame.args[3];
    return factors.isList() ? factors.elements()[dim].toDouble() : 0;
  }
  const IValue& factor = frame.args[3 + dim];
  return factor.isNone() ? 0 : factor.toDouble();
}

void bilinear(CallFrame& frame) {
  const char* op = frame.op->schema().name().c_str();
  const Tensor self = frame.args[0].toTensor();
  const auto zero = static_cast<float>(perTensorQuantizerOf(op, self).zeroPoint());
  const Tensor raw = integersOf(self).to(DType::Float);
  // The dense kernel checks the arguments and knows the sizes.
  const Tensor out = denseResult(frame, raw);
  const bool align = frame.args[2].toBool();
  const int64_t height = out.size(2), width = out.size(3);
  const auto rows = placesAlong(raw.size(2), height, align, factorOf(frame, 0));
  const auto columns = placesAlong(raw.size(3), width, align, factorOf(frame, 1));
  parallelFor(out.size(0) * out.size(1), 1, [&](int64_t first, int64_t last) {
    for (int64_t plane = first; plane < last; ++plane) {
      const int64_t image = plane / out.size(1), channel = plane % out.size(1);
      const float* const from = raw.data<float>() + image * raw.stride(0) + channel * raw.stride(1);
      float* const to = out.data<float>() + image * out.stride(0) + channel * out.stride(1);
      for (int64_t y = 0; y < height; ++y) {
        const Between& row = rows[static_cast<size_t>(y)];
        const float* const low = from + row.low * raw.stride(2);
        const float* const high = from + row.high * raw.stride(2);
        for (int64_t x = 0; x < width; ++x) {
          const Between& c = columns[static_cast<size_t>(x)];
          const int64_t l = c.low * raw.stride(3), h = c.high * raw.stride(3);
          to[y * out.stride(2) + x * out.stride(3)] =
              row.to_low * (c.to_low * low[l] + c.to_high * low[h]) +
              row.to_high * (c.to_low * high[l] + c.to_high * high[h]) - zero;
        }
      }
    }
  });
  giveRounded(frame, self, out, true);
}

const KindKernel kAveragesKernels[] = {
    {"aten::mean", mean},
    {"aten::mean.dim", mean},
    {"aten::avg_pool1d", averagePool<true>},
    {"aten::avg_pool2d", averagePool<false>},
    {"aten::avg_pool3d", averagePool<false>},
    {"aten::adaptive_avg_pool1d", averagePool<true>},
    {"aten::adaptive_avg_pool2d", averagePool<false>},
    {"aten::adaptive_avg_pool3d", averagePool<false>},
    {"aten::_adaptive_avg_pool2d", averagePool<false>},
    {"aten::_adaptive_avg_pool3d", averagePool<false>},
    {"aten::upsample_bilinear2d", bilinear},
    {"aten::upsample_bilinear2d.vec", bilinear},
};
const RegisterKindKernels kAveragesRegistered(TensorKind::Quantized, kAveragesKernels);

}  // namespace

}  // namespace wick::ops::quantized
