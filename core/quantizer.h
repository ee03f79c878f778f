// How the integers of a quantized tensor stand for real numbers: real = (integer - zero point) *
// scale, with one scale and zero point for the whole tensor or one for each index along an axis.
//
// A quantized tensor is an ordinary one at strides, of kind TensorKind::Quantized and a dtype of
// WICK_FORALL_QUANTIZED_DTYPES, whose `form` is a Quantizer. Views share it. Elements of QUInt4x2
// lie two in a byte in row-major order, the first in the lower half; such a tensor has memory for
// one byte an element, and the second half is unused.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/tensor.h"

namespace wick {

// The numbers are PyTorch's.
enum class QScheme : int8_t {
  PerTensorAffine = 0,
  PerChannelAffine = 1,
  PerTensorSymmetric = 2,
  PerChannelSymmetric = 3,
  PerChannelAffineFloatQParams = 4,
};
// "per_tensor_affine".
std::string_view toString(QScheme scheme);

// Immutable; may be shared between threads.
class Quantizer final : public RefCounted {
 public:
  static Ref<Quantizer> perTensor(double scale, int64_t zero_point);
  // Scales and zero points of one dimension, as many as the tensor has indices along `axis`. Two
  // floating tensors of float32 zero points make the scheme with float parameters, else scales
  // become float64 and zero points int64. RuntimeError when they do not fit each other.
  static Ref<Quantizer> perChannel(const Tensor& scales, const Tensor& zero_points, int64_t axis);

  QScheme scheme() const { return scheme_; }
  bool isPerTensor() const { return scheme_ == QScheme::PerTensorAffine; }
  // Per tensor.
  double scale() const { return scale_; }
  int64_t zeroPoint() const { return zero_point_; }
  // Per channel: float64 and int64, both float32 for float parameters. Contiguous.
  const Tensor& scales() const { return scales_; }
  const Tensor& zeroPoints() const { return zero_points_; }
  int64_t axis() const { return axis_; }
  // The parameters of one channel, whatever the scheme.
  double scaleOf(int64_t channel) const;
  double zeroPointOf(int64_t channel) const;
  bool equals(const Quantizer& other) const;

 private:
  QScheme scheme_ = QScheme::PerTensorAffine;
  double scale_ = 1;
  int64_t zero_point_ = 0;
  Tensor scales_;
  Tensor zero_points_;
  int64_t axis_ = 0;
};

// The integers of a dtype.
struct IntegerRange {
  int64_t least;
  int64_t most;
};
IntegerRange rangeOf(DType quantized);
// The dense dtype of the same integers: Char, Byte or Int. Byte for QUInt4x2.
DType integerDType(DType quantized);

inline bool isQuantized(const Tensor& t) {
  return t.defined() && t.kind() == TensorKind::Quantized;
}
// RuntimeError that begins with `op` unless the tensor is quantized.
const Quantizer& quantizerOf(const char* op, const Tensor& t);
// The same for those with one scale and a zero point that the dtype holds.
const Quantizer& perTensorQuantizerOf(const char* op, const Tensor& t);

// The integers as a dense tensor over the same memory.
Tensor integersOf(const Tensor& quantized);
// A quantized tensor over the memory of dense integers; `dtype` must be of these.
Tensor quantizedFrom(const Tensor& integers, DType dtype, Ref<RefCounted> quantizer);
// Uninitialized.
Tensor emptyQuantized(IntSpan sizes, DType dtype, Ref<Quantizer> quantizer,
                      MemoryFormat format = MemoryFormat::Contiguous);
// Uninitialized, in the order of dimensions that `like` has in memory.
Tensor emptyQuantizedLike(const Tensor& like, DType dtype, Ref<Quantizer> quantizer);

// RuntimeError unless the number is a quantized dtype.
DType quantizedDType(const char* op, int64_t number);

// As PyTorch's C++ side prints a quantized tensor, which is what programs see.
std::string formatQuantized(const Tensor& t);

}  // namespace wick
