#include "runtime/executor/tensor_key.h"

namespace wick {

uint8_t TensorKey::stridedLayout(const TensorImpl& tensor) {
  // Strides fall from the channels (dimension 1) outwards: channels, last, ..., 2, batch.
  const size_t rank = tensor.sizes.size();
  if (rank != 4 && rank != 5) return static_cast<uint8_t>(Layout::Strided);
  int64_t expected = 1;
  auto fits = [&](size_t d) {
    bool right = tensor.sizes[d] == 1 || tensor.strides[d] == expected;
    expected *= tensor.sizes[d];
    return right;
  };
  bool last = fits(1);
  for (size_t d = rank - 1; d >= 2; --d) last = last && fits(d);
  last = last && fits(0);
  return static_cast<uint8_t>(last ? Layout::ChannelsLast : Layout::Strided);
}

TensorKey TensorKey::ofType(const Type& type) {
  if (type.kind() == TypeKind::None) return TensorKey(kUnknown << 8 & kUnknown);
  const auto* tensor = type.as<TensorType>();
  if (!tensor) return unknown();
  const TensorType::Facts& facts = tensor->facts();
  uint64_t bits = kUnknown;
  auto set = [&](Field f, uint64_t value) {
    bits = (bits & ~(uint64_t{0xff} << (8 * f))) | value << (8 * f);
  };
  set(kState, facts.undefined ? 0 : 1);
  if (facts.dtype) set(kDType, static_cast<uint8_t>(*facts.dtype));
  if (facts.dim) set(kRank, std::min<uint64_t>(*facts.dim, kLargestRank));
  if (facts.device) {
    set(kDeviceType, static_cast<uint8_t>(facts.device->type));
    set(kDeviceIndex, static_cast<uint8_t>(facts.device->index + 1));
  }
  if (facts.requires_grad) set(kRequiresGrad, *facts.requires_grad ? 1 : 0);
  return TensorKey(bits);
}

TypePtr TensorKey::refine(const TypePtr& declared) const {
  if (isAbsent()) return types::None();
  if (!isTensor()) return declared;
  TensorType::Facts facts;
  if (byte(kDType) != 0xff) facts.dtype = static_cast<DType>(byte(kDType));
  if (byte(kRank) < kLargestRank) facts.dim = byte(kRank);
  if (byte(kDeviceType) != 0xff && byte(kDeviceIndex) != 0xff) {
    facts.device = Device{static_cast<DeviceType>(byte(kDeviceType)),
                          static_cast<int8_t>(byte(kDeviceIndex) - 1)};
  }
  if (byte(kRequiresGrad) != 0xff) facts.requires_grad = byte(kRequiresGrad) != 0;
  return TensorType::create(std::move(facts));
}

TensorKey join(TensorKey a, TensorKey b) {
  uint64_t bits = a.bits_;
  for (int f = TensorKey::kState; f <= TensorKey::kLayout; ++f) {
    uint64_t byte = uint64_t{0xff} << (8 * f);
    if ((a.bits_ & byte) != (b.bits_ & byte)) bits |= byte;
  }
  return TensorKey(bits);
}

uint64_t TensorKey::mask() const {
  uint64_t mask = 0;
  for (int f = kState; f <= kLayout; ++f) {
    if (byte(static_cast<Field>(f)) != 0xff) mask |= uint64_t{0xff} << (8 * f);
  }
  return mask;
}

}  // namespace wick
