// TensorKey: what plans are specialized on of one tensor, in one word.
#pragma once

#include <cstdint>

#include "core/ivalue.h"

namespace wick {

// State (absent or a tensor), dtype, rank, device, requires_grad and layout class of a value that
// is a tensor or None. No sizes: a plan serves all of them. Each property may be unknown, which is
// what joining keys that differ leaves.
class TensorKey {
 public:
  enum class Layout : uint8_t {
    Contiguous,
    ChannelsLast,  // of four or five dimensions
    Strided,       // all others
  };

  TensorKey() = default;  // indeterminate
  // Of a value that is neither a dense tensor nor None nothing is known. A few nanoseconds.
  static TensorKey of(const IValue& value) {
    if (value.isTensor()) return of(static_cast<const TensorImpl&>(*value.rawObject()));
    return TensorKey(value.isNone() ? kAbsent : kUnknown);
  }
  static TensorKey fromBits(uint64_t bits) { return TensorKey(bits); }
  static TensorKey unknown() { return TensorKey(kUnknown); }
  // What values of a TensorType, or of NoneType, are like; the layout stays unknown.
  static TensorKey ofType(const Type& type);

  uint64_t bits() const { return bits_; }
  bool isAbsent() const { return (bits_ & 0xff) == 0; }
  bool isTensor() const { return (bits_ & 0xff) == 1; }
  // The type that a value with this key has, when it was declared to be a Tensor or an Optional of
  // one: NoneType, a TensorType with facts, or `declared` when nothing is known.
  TypePtr refine(const TypePtr& declared) const;
  // What both say.
  friend TensorKey join(TensorKey a, TensorKey b);
  // Which bits of a key count when it is compared with this one.
  uint64_t mask() const;
  friend bool operator==(TensorKey, TensorKey) = default;

 private:
  // A byte each; 0xff is unknown.
  enum Field { kState, kDType, kRank, kDeviceType, kDeviceIndex, kRequiresGrad, kLayout };
  static constexpr uint64_t kAbsent = 0;
  static constexpr uint64_t kUnknown = 0x00ffffffffffffff;
  static constexpr uint64_t kLargestRank = 0xfe;

  explicit TensorKey(uint64_t bits) : bits_(bits) {}
  static TensorKey of(const TensorImpl& tensor) {
    if (tensor.kind != TensorKind::Dense) [[unlikely]]
      return unknown();
    const Device device = tensor.storage->device();
    auto field = [](uint64_t value, Field f) { return value << (8 * f); };
    uint64_t rank = tensor.sizes.size() < kLargestRank ? tensor.sizes.size() : kLargestRank;
    return TensorKey(1 | field(static_cast<uint8_t>(tensor.dtype), kDType) | field(rank, kRank) |
                     field(static_cast<uint8_t>(device.type), kDeviceType) |
                     field(static_cast<uint8_t>(device.index + 1), kDeviceIndex) |
                     field(tensor.requires_grad, kRequiresGrad) |
                     field(tensor.contiguous ? 0 : stridedLayout(tensor), kLayout));
  }
  static uint8_t stridedLayout(const TensorImpl& tensor);
  uint64_t byte(Field f) const { return bits_ >> (8 * f) & 0xff; }

  uint64_t bits_;
};

}  // namespace wick
