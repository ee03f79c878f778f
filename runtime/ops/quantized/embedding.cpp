// Embeddings whose rows are bytes, nibbles or pairs of bits with a scale and an offset for each
// row, packed behind its elements: float32 behind bytes, float16 behind the others.
#include <cstring>

#include "core/half.h"
#include "ir/operator.h"
#include "runtime/ops/quantized/choose_grid.h"
#include "runtime/ops/quantized/packed_params.h"
#include "runtime/ops/quantized/record_flags.h"

namespace wick::ops::quantized {

namespace {

// How rows of so many bits an element lie.
struct RowFormat {
  int64_t bits;
  int64_t columns;  // elements

  static int64_t tail(int64_t bits) { return bits == 8 ? 8 : 4; }
  int64_t dataBytes() const { return (columns * bits + 7) / 8; }
  int64_t bytes() const { return dataBytes() + tail(bits); }

  // Scale and offset.
  std::pair<float, float> line(const uint8_t* row) const {
    const uint8_t* at = row + dataBytes();
    if (bits == 8) {
      float values[2];
      std::memcpy(values, at, sizeof(values));
      return {values[0], values[1]};
    }
    Half values[2];
    std::memcpy(values, at, sizeof(values));
    return {static_cast<float>(values[0]), static_cast<float>(values[1])};
  }
  void setLine(uint8_t* row, float scale, float offset) const {
    uint8_t* at = row + dataBytes();
    if (bits == 8) {
      const float values[2] = {scale, offset};
      std::memcpy(at, values, sizeof(values));
    } else {
      const Half values[2] = {Half(scale), Half(offset)};
      std::memcpy(at, values, sizeof(values));
    }
  }
  int64_t get(const uint8_t* row, int64_t c) const {
    const int64_t each = 8 / bits;
    return row[c / each] >> (c % each * bits) & ((1 << bits) - 1);
  }
  void set(uint8_t* row, int64_t c, int64_t v) const {
    const int64_t each = 8 / bits;
    if (c % each == 0) row[c / each] = 0;
    row[c / each] |= static_cast<uint8_t>(v << (c % each * bits));
  }
};

RowFormat formatOf(const char* op, const Tensor& packed, int64_t bits) {
  WICK_CHECK(packed.kind() == TensorKind::Dense && packed.dtype() == DType::Byte &&
                 packed.dim() == 2 && packed.size(1) >= RowFormat::tail(bits),
             "{}: expected packed rows, a matrix of uint8, got {}", op, packed.describe());
  return {bits, (packed.size(1) - RowFormat::tail(bits)) * (8 / bits)};
}

// ---- packing ----

Tensor rowsOf(const char* op, const Tensor& weight) {
  quantizerOf(op, weight);
  WICK_CHECK(
      weight.dim() == 2 && (weight.dtype() == DType::QUInt8 || weight.dtype() == DType::QUInt4x2),
      "{}: expected a matrix of quint8 or quint4x2, got {}", op, weight.describe());
  const Quantizer& q = quantizerOf(op, weight);
  WICK_CHECK(q.scheme() == QScheme::PerChannelAffineFloatQParams && q.axis() == 0 &&
                 q.scales().numel() == weight.size(0),
             "{}: expected rows quantized with floating scales and zero points, got one quantized "
             "{}",
             op, toString(q.scheme()));
  const Tensor from = contiguous(weight);
  const RowFormat format{weight.dtype() == DType::QUInt8 ? 8 : 4, weight.size(1)};
  const RowFormat flat{format.bits, weight.numel()};
  Tensor rows = Tensor::zeros({weight.size(0), format.bytes()}, DType::Byte);
  const auto* bytes = integers<uint8_t>(from);
  Pace pace;
  for (int64_t r = 0; r < weight.size(0); ++r) {
    uint8_t* row = rows.data<uint8_t>() + r * format.bytes();
    pace.step(format.columns);
    for (int64_t c = 0; c < format.columns; ++c) {
      format.set(row, c, flat.get(bytes, r * format.columns + c));
    }
    const auto scale = static_cast<float>(q.scaleOf(r));
    format.setLine(row, scale, static_cast<float>(q.zeroPointOf(r)) * scale * -1);
  }
  return rows;
}

Tensor unpackRows(const char* op, const Tensor& packed, int64_t bits) {
  const RowFormat format = formatOf(op, packed, bits);
  const Tensor rows = packed.contiguous();
  Tensor result = Tensor::empty({rows.size(0), format.columns}, DType::Float);
  Pace pace;
  for (int64_t r = 0; r < rows.size(0); ++r) {
    const uint8_t* row = rows.data<uint8_t>() + r * format.bytes();
    const auto [scale, offset] = format.line(row);
    float* to = result.data<float>() + r * format.columns;
    pace.step(format.columns);
    for (int64_t c = 0; c < format.columns; ++c) {
      to[c] = static_cast<float>(format.get(row, c)) * scale + offset;
    }
  }
  return result;
}

// ---- looking up ----

struct Lookup {
  Tensor rows;
  RowFormat format;
  Tensor indices;  // int64, 1-d
  Tensor weights;  // float32, or undefined
  Tensor mapping;  // int64 from pruned to kept rows, or undefined
};

Tensor as64(const char* op, const char* what, const Tensor& t) {
  WICK_CHECK(t.dtype() == DType::Int || t.dtype() == DType::Long,
             "{}: Expect 32 or 64 bit {}, but found {} instead.", op, what, toString(t.dtype()));
  return t.to(DType::Long).contiguous();
}

// The sum of the rows that indices [begin, end) name.
void sumRows(const char* op, const Lookup& l, int64_t begin, int64_t end, float* out) {
  std::fill(out, out + l.format.columns, 0.0f);
  const int64_t count = l.mapping.defined() ? l.mapping.numel() : l.rows.size(0);
  for (int64_t i = begin; i < end; ++i) {
    int64_t index = l.indices.data<int64_t>()[i];
    WICK_CHECK(index >= 0 && index < count, "{}: index {} is out of range, there are {} rows", op,
               index, count);
    if (l.mapping.defined()) {
      index = l.mapping.data<int64_t>()[index];
      if (index == -1) continue;
      WICK_CHECK(index >= 0 && index < l.rows.size(0), "{}: the mapping names row {}, there are {}",
                 op, index, l.rows.size(0));
    }
    const uint8_t* row = l.rows.data<uint8_t>() + index * l.format.bytes();
    auto [scale, offset] = l.format.line(row);
    if (l.weights.defined()) {
      const float w = l.weights.data<float>()[i];
      scale *= w;
      offset *= w;
    }
    if (l.format.bits == 8) {
      for (int64_t c = 0; c < l.format.columns; ++c) {
        out[c] += static_cast<float>(row[c]) * scale + offset;
      }
    } else {
      for (int64_t c = 0; c < l.format.columns; ++c) {
        out[c] += static_cast<float>(l.format.get(row, c)) * scale + offset;
      }
    }
  }
}

Tensor mappingOf(const char* op, bool pruned, const Tensor& mapping) {
  if (!pruned || !mapping.defined()) return {};
  const Tensor m = as64(op, "compressed_indices_mapping", mapping);
  // A single 0 says that nothing was pruned.
  return m.numel() == 1 && m.data<int64_t>()[0] == 0 ? Tensor() : m;
}

Tensor bags(const char* op, const Tensor& rows, const RowFormat& format, const Tensor& indices,
            const Tensor& given_offsets, bool pruned, const Tensor& weights, const Tensor& mapping,
            bool include_last) {
  WICK_CHECK(indices.dim() == 1 || indices.dim() == 2,
             "{}: qembedding/qembedding_bag operator supports 1 or 2d indices, got {}", op,
             indices.dim());
  Lookup l{rows.contiguous(),
           format,
           as64(op, "indices", indices).flatten(),
           {},
           mappingOf(op, pruned, mapping)};
  if (weights.defined()) {
    WICK_CHECK(weights.dtype() == DType::Float && weights.numel() == indices.numel(),
               "{}: expected a float32 weight for each of {} indices, got {}", op, indices.numel(),
               weights.describe());
    l.weights = weights.contiguous().flatten();
  }
  Tensor offsets;
  const int64_t total = indices.numel();
  if (indices.dim() == 2) {
    WICK_CHECK(!given_offsets.defined(),
               "{}: embedding_bag operator requires offsets to be None for 2D indices.", op);
  } else {
    WICK_CHECK(given_offsets.defined(),
               "{}: embedding_bag operator requires offsets to be set for 1D indices.", op);
    offsets = as64(op, "offsets", given_offsets);
    WICK_CHECK(offsets.dim() == 1, "{}: expected offsets of one dimension, got {}", op,
               given_offsets.describe());
  }
  const int64_t count = offsets.defined() ? offsets.numel() : indices.size(0);
  const int64_t bag_count =
      offsets.defined() && include_last ? std::max<int64_t>(count - 1, 0) : count;
  WICK_CHECK(!offsets.defined() || !include_last || count >= 1,
             "{}: include_last_offset: numOffset should be at least 1", op);
  const auto start = [&](int64_t bag) {
    if (!offsets.defined()) return bag * indices.size(1);
    return bag < count ? offsets.data<int64_t>()[bag] : total;
  };
  for (int64_t bag = 0; bag < bag_count; ++bag) {
    WICK_CHECK(start(bag) >= 0 && start(bag) <= start(bag + 1) && start(bag + 1) <= total,
               "{}: bag {} is from {} to {} of {} indices", op, bag, start(bag), start(bag + 1),
               total);
  }
  Tensor result = Tensor::empty({bag_count, format.columns}, DType::Float);
  float* out = result.data<float>();
  const int64_t each = std::max<int64_t>(1, total / std::max<int64_t>(bag_count, 1));
  parallelFor(bag_count,
              std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, each * format.columns)),
              [&](int64_t begin, int64_t end) {
                for (int64_t bag = begin; bag < end; ++bag) {
                  sumRows(op, l, start(bag), start(bag + 1), out + bag * format.columns);
                }
              });
  return result;
}

template <int kBits>
Tensor rowwise(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool, int64_t,
               bool pruned, const Tensor& weights, const Tensor& mapping, bool include_last) {
  const char* op = "quantized::embedding_bag_rowwise_offsets";
  return bags(op, weight, formatOf(op, weight, kBits), indices, offsets, pruned, weights, mapping,
              include_last);
}

template <int kBits>
const EmbeddingParams& paramsOf(const char* op, const IValue& packed) {
  const EmbeddingParams& params = embeddingOf(op, packed);
  WICK_CHECK(params.bits() == kBits, "{}: expected a weight of {} bits, got one of {}", op, kBits,
             params.bits());
  return params;
}

template <int kBits>
Tensor bag(const IValue& packed, const Tensor& indices, const Tensor& offsets, bool, int64_t,
           bool pruned, const Tensor& weights, const Tensor& mapping, bool include_last) {
  const char* op = kBits == 8 ? "quantized::embedding_bag_byte" : "quantized::embedding_bag_4bit";
  const EmbeddingParams& params = paramsOf<kBits>(op, packed);
  return bags(op, params.rows, {kBits, params.weight.size(1)}, indices, offsets, pruned, weights,
              mapping, include_last);
}

template <int kBits>
Tensor embedding(const IValue& packed, const Tensor& indices, bool) {
  const char* op = kBits == 8 ? "quantized::embedding_byte" : "quantized::embedding_4bit";
  const EmbeddingParams& params = paramsOf<kBits>(op, packed);
  WICK_CHECK(indices.dim() == 1 || indices.dim() == 2,
             "{}: qembedding/qembedding_bag operator supports 1 or 2d indices, got {}", op,
             indices.dim());
  // Each index is a bag of its own.
  const Tensor each = indices.reshape({-1, 1});
  const Tensor found =
      bags(op, params.rows, {kBits, params.weight.size(1)}, each, {}, false, {}, {}, false);
  DimVector sizes(indices.sizes());
  sizes.push_back(params.weight.size(1));
  return found.reshape(sizes);
}

IValue prepackBag(const Tensor& weight) {
  return makeNative(kEmbeddingClass,
                    makeRef<EmbeddingParams>("quantized::embedding_bag_prepack", weight));
}
Tensor unpackBag(const IValue& packed) {
  return embeddingOf("quantized::embedding_bag_unpack", packed).weight;
}
int64_t bitRate(const IValue& packed) {
  return embeddingOf("packed_class::embedding_bit_rate", packed).bits();
}
int64_t version(const IValue& packed) {
  embeddingOf("packed_class::embedding_version", packed);
  return 1;
}

Tensor prepackBytes(const Tensor& weight) {
  return packRows("quantized::embedding_bag_byte_prepack", weight, 8, false, 200, 0.16);
}
template <int kBits>
Tensor prepackBits(const Tensor& weight, bool optimized, int64_t bins, double ratio) {
  return packRows("quantized::embedding_bag_prepack", weight, kBits, optimized, bins, ratio);
}
template <int kBits>
Tensor unpackBits(const Tensor& weight) {
  return unpackRows("quantized::embedding_bag_unpack", weight, kBits);
}

#define WICK_EMBEDDING "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"
#define WICK_BAG_REST                                                                          \
  " weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, " \
  "bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? "                       \
  "compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor"
#define WICK_BITS_REST \
  "(Tensor weight, bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor"

const OperatorRecord kEmbeddingRecords[] = {
    {"quantized::embedding_bag_prepack(Tensor weight) -> " WICK_EMBEDDING " W_prepack",
     WICK_CPU_KERNEL(prepackBag), kPlain},
    {"quantized::embedding_bag_unpack(" WICK_EMBEDDING " W_prepack) -> Tensor W_origin",
     WICK_CPU_KERNEL(unpackBag), kPlain},
    {"quantized::embedding_byte(" WICK_EMBEDDING
     " weight, Tensor indices, bool pruned_weights=False) -> Tensor",
     WICK_CPU_KERNEL(embedding<8>), kPlain},
    {"quantized::embedding_4bit(" WICK_EMBEDDING
     " weight, Tensor indices, bool pruned_weights=False) -> Tensor",
     WICK_CPU_KERNEL(embedding<4>), kPlain},
    {"quantized::embedding_bag_byte(" WICK_EMBEDDING WICK_BAG_REST, WICK_CPU_KERNEL(bag<8>),
     kPlain},
    {"quantized::embedding_bag_4bit(" WICK_EMBEDDING WICK_BAG_REST, WICK_CPU_KERNEL(bag<4>),
     kPlain},
    {"quantized::embedding_bag_byte_rowwise_offsets(Tensor" WICK_BAG_REST,
     WICK_CPU_KERNEL(rowwise<8>), kPlain},
    {"quantized::embedding_bag_4bit_rowwise_offsets(Tensor" WICK_BAG_REST,
     WICK_CPU_KERNEL(rowwise<4>), kPlain},
    {"quantized::embedding_bag_2bit_rowwise_offsets(Tensor" WICK_BAG_REST,
     WICK_CPU_KERNEL(rowwise<2>), kPlain},
    {"quantized::embedding_bag_byte_prepack(Tensor weight) -> Tensor",
     WICK_CPU_KERNEL(prepackBytes), kPlain},
    {"quantized::embedding_bag_4bit_prepack" WICK_BITS_REST, WICK_CPU_KERNEL(prepackBits<4>),
     kPlain},
    {"quantized::embedding_bag_2bit_prepack" WICK_BITS_REST, WICK_CPU_KERNEL(prepackBits<2>),
     kPlain},
    {"quantized::embedding_bag_byte_unpack(Tensor weight) -> Tensor",
     WICK_CPU_KERNEL(unpackBits<8>), kPlain},
    {"quantized::embedding_bag_4bit_unpack(Tensor weight) -> Tensor",
     WICK_CPU_KERNEL(unpackBits<4>), kPlain},
    {"quantized::embedding_bag_2bit_unpack(Tensor weight) -> Tensor",
     WICK_CPU_KERNEL(unpackBits<2>), kPlain},
    {"packed_class::embedding_bit_rate(" WICK_EMBEDDING " W_prepack) -> int",
     WICK_CPU_KERNEL(bitRate), kPlain},
    {"packed_class::embedding_version(" WICK_EMBEDDING " W_prepack) -> int",
     WICK_CPU_KERNEL(version), kPlain},
};
const RegisterOperators kEmbeddingRegistered(kEmbeddingRecords);

// The nearest whole number from 0 to `most`. NaN is 0, as in PyTorch.
uint8_t levelOf(float steps, float most) {
  const float whole = std::rint(steps);
  return whole > 0 ? static_cast<uint8_t>(std::min(whole, most)) : 0;
}

}  // namespace

EmbeddingParams::EmbeddingParams(const char* op, const Tensor& w)
    : weight(w), rows(rowsOf(op, w)) {}

Tensor packRows(const char* op, const Tensor& weight, int64_t bits, bool optimized, int64_t bins,
                double ratio) {
  WICK_CHECK(weight.kind() == TensorKind::Dense && weight.dim() == 2 && isFloating(weight.dtype()),
             "{}: expected a floating matrix, got {}", op, weight.describe());
  WICK_CHECK(weight.size(1) > 0 && bins > 0, "{}: expected rows with elements, got {}", op,
             weight.describe());
  const Tensor from = weight.to(DType::Float).contiguous();
  const RowFormat format{bits, from.size(1)};
  const auto most = static_cast<float>((1 << bits) - 1);
  Tensor result = Tensor::zeros({from.size(0), format.bytes()}, DType::Byte);
  Pace pace;
  for (int64_t r = 0; r < from.size(0); ++r) {
    const float* row = from.data<float>() + r * format.columns;
    uint8_t* to = result.data<uint8_t>() + r * format.bytes();
    pace.step(format.columns);
    const auto [least, largest] = std::minmax_element(row, row + format.columns);
    float low = *least, high = *largest;
    if (bits == 8) {
      const float range = high - low, inverse = 255.0f / (range + 1e-8f);
      for (int64_t c = 0; c < format.columns; ++c) {
        to[c] = levelOf((row[c] - low) * inverse, 255);
      }
      format.setLine(to, range / 255.0f, low);
      continue;
    }
    if (optimized) std::tie(high, low) = searchRange(row, format.columns, bins, ratio, bits);
    low = static_cast<float>(Half(low));
    const float range = high - low;
    auto scale = static_cast<float>(Half(range == 0 ? 1.0f : range / most));
    float inverse = scale == 0 ? 1.0f : 1.0f / scale;
    if (scale == 0 || std::isinf(inverse)) scale = inverse = 1.0f;
    for (int64_t c = 0; c < format.columns; ++c) {
      format.set(to, c, levelOf((row[c] - low) * inverse, most));
    }
    format.setLine(to, scale, low);
  }
  return result;
}

}  // namespace wick::ops::quantized
