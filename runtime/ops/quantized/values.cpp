#include "runtime/ops/quantized/values.h"

#include <immintrin.h>

#include "core/counted_vector.h"
#include "ir/device_kernels.h"
#include "runtime/ops/common.h"
#include "runtime/ops/quantized/byte_lanes.h"

namespace wick::ops::quantized {

void checkOnCpu(const CallFrame& frame) {
  const DeviceType type = deviceOfArguments(*frame.op, frame.args, frame.num_args);
  WICK_CHECK(type == DeviceType::CPU, "{}: expected tensors on the CPU, got one on {}",
             frame.op->schema().name(), Device{type, -1}.str());
}

namespace {

Tensor rewrapped(const Tensor& dense, const Tensor& like) {
  return quantizedFrom(dense, like.dtype(), like.form());
}

// How many elements one index along the axis has inside of it, and how many indices there are.
DimSplit splitOf(const char* op, const Tensor& t, const Quantizer& quantizer) {
  WICK_CHECK(quantizer.axis() < t.dim(),
             "{}: Channel axis out of range in per channel affine quantization. Got: {} Expected: "
             "[0, {})",
             op, quantizer.axis(), t.dim());
  const DimSplit split = splitAt(t.sizes(), quantizer.axis());
  WICK_CHECK(split.size == quantizer.scales().numel(),
             "{}: expected a scale for each of {} indices along dimension {}, got {}", op,
             split.size, quantizer.axis(), quantizer.scales().numel());
  return split;
}

// PyTorch packs two to a byte in row-major order.
struct Nibbles {
  uint8_t* bytes;
  int64_t get(int64_t i) const { return bytes[i / 2] >> (i % 2 * 4) & 15; }
  void set(int64_t i, int64_t v) const {
    const int shift = static_cast<int>(i % 2 * 4);
    if (shift == 0) bytes[i / 2] = 0;
    bytes[i / 2] |= static_cast<uint8_t>(v << shift);
  }
};

int64_t clampedFraction(float value, float inverse, float zero, const IntegerRange& range) {
  const float rounded = std::rint(value * inverse + zero);
  if (!(rounded >= -0x1p63f && rounded < 0x1p63f)) return range.least;
  return std::clamp(static_cast<int64_t>(rounded), range.least, range.most);
}

template <class T>
void roundBytes(const float* from, T* to, int64_t n, const Rounding& r) {
  const auto least = static_cast<float>(r.range.least), most = static_cast<float>(r.range.most);
  const ByteLanes lanes(r.zero_point, r.range, least);
  const __m256 inverse = _mm256_set1_ps(r.inverse);
  int64_t i = 0;
  for (; i + ByteLanes::kCount <= n; i += ByteLanes::kCount) {
    __m256 steps[4];
    for (int64_t k = 0; k < 4; ++k) {
      steps[k] = _mm256_mul_ps(_mm256_loadu_ps(from + i + 8 * k), inverse);
    }
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), lanes.round(steps));
  }
  for (; i < n; ++i) {
    float v = r.zero_point + std::rint(from[i] * r.inverse);
    v = v < 0x1p63f ? v : least;
    v = v > least ? v : least;
    v = v < most ? v : most;
    to[i] = static_cast<T>(static_cast<int32_t>(v));
  }
}

}  // namespace

void checkGrid(const char* op, const Grid& grid, DType dtype) {
  const IntegerRange range = rangeOf(dtype);
  WICK_CHECK(grid.zero_point <= range.most, "{} zero_point {} is above upper bound.", op,
             grid.zero_point);
  WICK_CHECK(grid.zero_point >= range.least, "{} zero_point {} is below lower bound.", op,
             grid.zero_point);
}

std::array<float, 256> realTable(const Tensor& q, const Quantizer& quantizer) {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) {
    const int64_t integer = q.dtype() == DType::QInt8 ? static_cast<int8_t>(i) : i;
    table[static_cast<size_t>(i)] = realOf(integer, quantizer.scale(), quantizer.zeroPoint());
  }
  return table;
}

void roundRun(const float* from, void* to, int64_t n, const Grid& grid, DType dtype) {
  const Rounding rounding(grid, dtype);
  if (dtype == DType::QInt8) return roundBytes(from, static_cast<int8_t*>(to), n, rounding);
  if (dtype == DType::QUInt8) return roundBytes(from, static_cast<uint8_t*>(to), n, rounding);
  auto* ints = static_cast<int32_t*>(to);
  for (int64_t i = 0; i < n; ++i) ints[i] = static_cast<int32_t>(rounding(from[i]));
}

Tensor quantize(const char* op, const Tensor& x, const Grid& grid, DType dtype) {
  WICK_CHECK(x.defined() && x.kind() == TensorKind::Dense && x.dtype() == DType::Float,
             "{}: Quantize only works on Float Tensor, got {}", op,
             x.defined() ? x.describe() : "None");
  WICK_CHECK(x.device().isCpu(), "{}: expected a tensor on the CPU, got one on {}", op,
             x.device().str());
  WICK_CHECK(dtype != DType::QUInt4x2, "{}: quint4x2 is quantized per channel only", op);
  checkGrid(op, grid, dtype);
  const Tensor from = x.contiguous(x.suggestMemoryFormat());
  Tensor result =
      emptyQuantizedLike(from, dtype, Quantizer::perTensor(grid.scale, grid.zero_point));
  const float* in = from.data<float>();
  auto* out = static_cast<char*>(result.rawData());
  const auto size = static_cast<int64_t>(result.itemSize());
  parallelFor(from.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
    roundRun(in + begin, out + begin * size, end - begin, grid, dtype);
  });
  return result;
}

Tensor quantizePerChannel(const char* op, const Tensor& x, Ref<Quantizer> quantizer, DType dtype) {
  WICK_CHECK(x.defined() && x.kind() == TensorKind::Dense && x.dtype() == DType::Float,
             "{}: Quantize only works on Float Tensor, got {}", op,
             x.defined() ? x.describe() : "None");
  const Tensor from = x.contiguous();
  const DimSplit split = splitOf(op, from, *quantizer);
  const bool fractional = quantizer->scheme() == QScheme::PerChannelAffineFloatQParams;
  WICK_CHECK(dtype != DType::QUInt4x2 || fractional,
             "{}: quint4x2 takes floating zero points only, got {}", op,
             quantizer->zeroPoints().describe());
  if (!fractional) {
    for (int64_t c = 0; c < split.size; ++c) {
      checkGrid(op, {1, quantizer->zeroPoints().data<int64_t>()[c]}, dtype);
    }
  }
  Tensor result = emptyQuantized(from.sizes(), dtype, quantizer);
  const float* in = from.data<float>();
  const IntegerRange range = rangeOf(dtype);
  Pace pace;
  dispatchIntegers(dtype, [&]<class T>() {
    T* out = integers<T>(result);
    const Nibbles nibbles{reinterpret_cast<uint8_t*>(out)};
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t c = 0; c < split.size; ++c) {
        const Grid grid{quantizer->scaleOf(c),
                        fractional ? 0 : quantizer->zeroPoints().data<int64_t>()[c]};
        const Rounding rounding(grid, dtype);
        const auto zero = static_cast<float>(quantizer->zeroPointOf(c));
        const int64_t at = (o * split.size + c) * split.inner;
        pace.step(split.inner);
        for (int64_t i = at; i < at + split.inner; ++i) {
          const int64_t v =
              fractional ? clampedFraction(in[i], rounding.inverse, zero, range) : rounding(in[i]);
          if (dtype == DType::QUInt4x2) {
            nibbles.set(i, v);
          } else {
            out[i] = static_cast<T>(v);
          }
        }
      }
    }
  });
  return result;
}

Tensor dequantize(const char* op, const Tensor& q) {
  const Quantizer& quantizer = quantizerOf(op, q);
  if (quantizer.isPerTensor()) {
    const Tensor from = inSomeOrder(q);
    Tensor result = Tensor::emptyLike(from, DType::Float);
    float* out = result.data<float>();
    dispatchIntegers(q.dtype(), [&]<class T>() {
      const T* in = integers<T>(from);
      if constexpr (sizeof(T) == 1) {
        const std::array<float, 256> table = realTable(q, quantizer);
        parallelFor(from.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) out[i] = table[static_cast<uint8_t>(in[i])];
        });
      } else {
        parallelFor(from.numel(), kGrainSize, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            out[i] = realOf(in[i], quantizer.scale(), quantizer.zeroPoint());
          }
        });
      }
    });
    return result;
  }
  const Tensor from = contiguous(q);
  const DimSplit split = splitOf(op, from, quantizer);
  Tensor result = Tensor::empty(from.sizes(), DType::Float);
  float* out = result.data<float>();
  Pace pace;
  dispatchIntegers(q.dtype(), [&]<class T>() {
    const T* in = integers<T>(from);
    const Nibbles nibbles{static_cast<uint8_t*>(from.rawData())};
    for (int64_t o = 0; o < split.outer; ++o) {
      for (int64_t c = 0; c < split.size; ++c) {
        const double scale = quantizer.scaleOf(c);
        const auto zero = static_cast<float>(quantizer.zeroPointOf(c));
        const int64_t at = (o * split.size + c) * split.inner;
        pace.step(split.inner);
        for (int64_t i = at; i < at + split.inner; ++i) {
          const auto integer = static_cast<float>(
              q.dtype() == DType::QUInt4x2 ? nibbles.get(i) : static_cast<int64_t>(in[i]));
          out[i] = static_cast<float>(static_cast<double>(integer - zero) * scale);
        }
      }
    }
  });
  return result;
}

Tensor inSomeOrder(const Tensor& q) {
  return contiguous(q, q.suggestMemoryFormat());
}

Tensor contiguous(const Tensor& q, MemoryFormat format) {
  if (q.isContiguous(format)) return q;
  WICK_CHECK(q.dtype() != DType::QUInt4x2, "contiguous: a view of a {} cannot be copied",
             q.describe());
  return rewrapped(integersOf(q).contiguous(format), q);
}

Tensor clone(const Tensor& q, MemoryFormat format) {
  return rewrapped(integersOf(q).clone(format), q);
}

void copyInto(const char* op, const Tensor& destination, const Tensor& source) {
  WICK_CHECK(destination.storage()->writable(), "{}: the destination's memory is read-only", op);
  WICK_CHECK(isQuantized(destination),
             "{}: Copying from quantized Tensor to non-quantized Tensor is not allowed, please use "
             "dequantize to get a float Tensor from a quantized Tensor",
             op);
  WICK_CHECK(source.kind() == TensorKind::Quantized || source.kind() == TensorKind::Dense,
             "{}: expected a dense or a quantized tensor, got a {} one", op,
             toString(source.kind()));
  if (isQuantized(source)) {
    WICK_CHECK(quantizerOf(op, destination).scheme() == quantizerOf(op, source).scheme(),
               "{}: Quantized Copy only works with same qscheme", op);
    WICK_CHECK(destination.dtype() == source.dtype(),
               "{}: expected a source of dtype {} as the destination's, got {}", op,
               toString(destination.dtype()), toString(source.dtype()));
    integersOf(destination).copyFrom(integersOf(source));
    destination.impl()->become(TensorKind::Quantized, source.form());
    return;
  }
  const Quantizer& quantizer = quantizerOf(op, destination);
  const DType dtype = destination.dtype();
  if (quantizer.isPerTensor()) {
    const Grid grid = gridOf(perTensorQuantizerOf(op, destination));
    integersOf(destination).copyFrom(integersOf(quantize(op, source, grid, dtype)));
    return;
  }
  WICK_CHECK(dtype != DType::QUInt4x2 || destination.isContiguous(),
             "{}: a view of a {} cannot be written to", op, destination.describe());
  const Tensor rounded = quantizePerChannel(
      op, source.expand(destination.sizes()),
      Quantizer::perChannel(quantizer.scales(), quantizer.zeroPoints(), quantizer.axis()), dtype);
  integersOf(destination).copyFrom(integersOf(rounded));
}

}  // namespace wick::ops::quantized
