// What prepack operators make of weights: the objects behind the classes
// torch.classes.quantized.*PackedParamsBase and torch.classes.rnn.CellParamsBase. Immutable once
// made, but for the packed form, which is made when it is first needed.
#pragma once

#include <mutex>

#include "core/native_class.h"
#include "runtime/kernels/int8_product.h"
#include "runtime/ops/quantized/values.h"

namespace wick::ops::quantized {

inline constexpr const char* kLinearClass =
    "__torch__.torch.classes.quantized.LinearPackedParamsBase";
inline constexpr const char* kConv2dClass =
    "__torch__.torch.classes.quantized.Conv2dPackedParamsBase";
inline constexpr const char* kConv3dClass =
    "__torch__.torch.classes.quantized.Conv3dPackedParamsBase";
inline constexpr const char* kEmbeddingClass =
    "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase";
inline constexpr const char* kCellClass = "__torch__.torch.classes.rnn.CellParamsBase";

// Scales and zero points of a weight's output channels: one of each, or as many as channels.
struct ChannelGrid {
  ChannelGrid(const char* op, const Tensor& weight, int64_t axis);
  double scale(int64_t channel) const {
    return scales[scales.size() == 1 ? 0 : static_cast<size_t>(channel)];
  }
  int32_t zeroPoint(int64_t channel) const {
    return zero_points[zero_points.size() == 1 ? 0 : static_cast<size_t>(channel)];
  }
  // Whether every zero point is 0.
  bool symmetric = true;
  CountedVector<double> scales;
  CountedVector<int32_t> zero_points;
};

// A linear layer: int8 weights [out, in], or float ones that lost what float16 cannot hold.
class LinearParams final : public RefCounted {
 public:
  // RuntimeError unless the weight is a matrix of qint8, or float32, and fits the bias.
  LinearParams(const char* op, const Tensor& weight, const Tensor& bias);

  bool isHalf() const { return !isQuantized(weight); }
  const PackedBytes& packed() const;
  const ChannelGrid& grid() const { return *grid_; }

  const Tensor weight;
  const Tensor bias;  // float32, or undefined

 private:
  std::unique_ptr<const ChannelGrid> grid_;
  mutable std::once_flag once_;
  mutable std::unique_ptr<const PackedBytes> packed_;
};

// A convolution over 2 or 3 dimensions; one over one dimension is one over two whose first has the
// size 1. The weight is [out, in / groups, …], of transposed ones [in, out / groups, …].
class ConvParams final : public RefCounted {
 public:
  struct Shape {
    DimVector stride, padding, output_padding, dilation;  // one number a dimension
    int64_t groups = 1;
    bool transposed = false;
  };
  // RuntimeError unless weight, bias and shape fit each other.
  ConvParams(const char* op, const Tensor& weight, const Tensor& bias, Shape shape);

  int64_t dims() const { return weight.dim() - 2; }
  int64_t inChannels() const {
    return shape.transposed ? weight.size(0) : weight.size(1) * shape.groups;
  }
  int64_t outChannels() const {
    return shape.transposed ? weight.size(1) * shape.groups : weight.size(0);
  }
  // Of each group: [out / groups, taps * in / groups], the channels of a tap side by side.
  const std::vector<PackedBytes>& packed() const;
  // Instead of it the bytes as [taps, channels], when isByChannel().
  const CountedVector<int8_t>& taps() const;
  // Whether taps() is what is packed: each channel by itself, zero points of 0.
  bool isByChannel() const {
    return shape.groups > 1 && shape.groups == inChannels() && shape.groups == outChannels() &&
           grid_->symmetric;
  }
  const ChannelGrid& grid() const { return *grid_; }

  const Tensor weight;
  const Tensor bias;
  const Shape shape;

 private:
  void pack() const;
  std::unique_ptr<const ChannelGrid> grid_;
  mutable std::once_flag once_;
  mutable std::vector<PackedBytes> packed_;
  mutable CountedVector<int8_t> taps_;
};

// Rows of bytes or nibbles with a scale and an offset for each.
class EmbeddingParams final : public RefCounted {
 public:
  // RuntimeError unless the weight is a matrix of quint8 or quint4x2, quantized per row with
  // floating parameters.
  EmbeddingParams(const char* op, const Tensor& weight);
  int64_t bits() const { return weight.dtype() == DType::QUInt4x2 ? 4 : 8; }
  const Tensor weight;
  // As embedding_bag_*_prepack makes it: bytes of a row, then its scale and offset.
  const Tensor rows;
};

// The two linear layers of a recurrent cell. The biases are the layers' own, kept apart for the
// archive.
class CellParams final : public RefCounted {
 public:
  enum class Kind { Dynamic, Half };
  Kind kind = Kind::Dynamic;
  bool reduce_range = false;
  IValue input_layer, hidden_layer;  // objects of kLinearClass
  Tensor input_bias, hidden_bias;    // Dynamic
};

IValue makeLinear(const char* op, const Tensor& weight, const Tensor& bias);
const LinearParams& linearOf(const char* op, const IValue& object);
const ConvParams& convOf(const char* op, const IValue& object);
const EmbeddingParams& embeddingOf(const char* op, const IValue& object);
const CellParams& cellOf(const char* op, const IValue& object);

// x times the transposed weight, plus the bias. `x` is quint8 or is quantized on the way, float16
// layers take it as it is. What is quantized is rounded to `grid`.
Tensor linearOnGrid(const char* op, const Tensor& x, const LinearParams& layer, const Grid& grid,
                    bool relu);
Tensor linearDynamic(const char* op, const Tensor& x, const LinearParams& layer, bool reduce_range,
                     bool relu);
Tensor linearHalf(const char* op, const Tensor& x, const LinearParams& layer, bool relu);

// [rows, columns] of floats as bytes with a scale and an offset behind each row, `bits` each.
Tensor packRows(const char* op, const Tensor& weight, int64_t bits, bool optimized, int64_t bins,
                double ratio);

}  // namespace wick::ops::quantized
