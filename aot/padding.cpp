// Padding on the device "ahead": pieces of the tensor side by side, so that its text is the same for many sizes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "aot/device.h"
#include "aot/recording.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

enum class Mode { Reflect, Replicate, Circular, Constant };

// Pads that no tensor has room for, and sums with which could overflow.
constexpr int64_t kLargestPad = int64_t{1} << 40;

void checkPads(const char* op, Mode mode, const Tensor& self, const DimVector& pad) {
  for (size_t k = 0; 2 * k < pad.size(); ++k) {
    const int64_t d = self.dim() - 1 - static_cast<int64_t>(k), n = self.size(d);
    const int64_t before = pad[2 * k], after = pad[2 * k + 1];
    WICK_CHECK(n > 0, "{}: Expected a non-empty input in dimension {}, but got {}", op, d,
               formatInts(self.sizes()));
    WICK_CHECK(std::max({before, after, -before, -after}) < kLargestPad,
               "{}: padding ({}, {}) at dimension {} is out of range", op, before, after, d);
    // What negative pads cut off is not seen by the wrapping.
    const int64_t kept = n + std::min<int64_t>(0, before) + std::min<int64_t>(0, after);
    const bool fits = mode == Mode::Reflect    ? before < n && after < n
                      : mode == Mode::Circular ? before <= kept && after <= kept
                                               : true;
    WICK_CHECK(fits,
               "{}: Padding size should be less than the corresponding input dimension, but got: "
               "padding ({}, {}) at dimension {} of input {}",
               op, before, after, d, formatInts(self.sizes()));
    const int64_t size = n + before + after;
    WICK_CHECK(size >= 1 || (mode == Mode::Circular && size == 0),
               "{}: input (size {} in dimension {}) is too small for padding ({}, {})", op, n, d,
               before, after);
  }
}

// The elements at positions [first, end) of a padded dimension, counted from the beginning of the input, all of which
// lie on one side of it: before its first element, in it, or behind its last one.
Tensor pieceOf(Mode mode, const Tensor& t, int64_t d, int64_t first, int64_t end) {
  const int64_t n = t.size(d);
  if (first >= 0 && first < n) return t.narrow(d, first, end - first);
  const bool before = first < 0;
  switch (mode) {
    case Mode::Reflect: {
      static const OperatorHandle kFlip{"aten::flip", ""};
      const int64_t lowest = before ? 1 - end : 2 * (n - 1) - (end - 1);
      return kFlip(t.narrow(d, lowest, end - first), DimVector{d});
    }
    case Mode::Circular:
      return t.narrow(d, before ? first + n : first - n, end - first);
    default: {
      DimVector sizes(t.sizes());
      sizes[static_cast<size_t>(d)] = end - first;
      return t.narrow(d, before ? 0 : n - 1, 1).expand(sizes);
    }
  }
}

Tensor padDimension(Mode mode, Tensor t, int64_t d, int64_t before, int64_t after) {
  if (mode == Mode::Circular) {
    const int64_t first = std::max<int64_t>(0, -before);
    t = t.narrow(d, first, t.size(d) - first - std::max<int64_t>(0, -after));
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  const int64_t n = t.size(d), low = -before, high = n + after;
  const int64_t cuts[] = {low, std::clamp<int64_t>(0, low, high), std::clamp(n, low, high), high};
  std::vector<IValue> pieces;
  for (size_t i = 0; i < 3; ++i) {
    if (cuts[i] < cuts[i + 1]) pieces.emplace_back(pieceOf(mode, t, d, cuts[i], cuts[i + 1]));
  }
  if (pieces.empty()) return t.narrow(d, 0, 0);
  return pieces.size() == 1 ? pieces[0].toTensor()
                            : ops::cat(makeList(types::Tensor(), std::move(pieces)), d);
}

Tensor padByMode(const char* op, Mode mode, const Tensor& self, const DimVector& pad) {
  checkPads(op, mode, self, pad);
  Tensor t = here(self);
  for (size_t k = 0; 2 * k < pad.size(); ++k) {
    t = padDimension(mode, t, self.dim() - 1 - static_cast<int64_t>(k), pad[2 * k], pad[2 * k + 1]);
  }
  const MemoryFormat format =
      mode == Mode::Replicate ? self.suggestMemoryFormat() : MemoryFormat::Contiguous;
  return t.clone(format);
}

Tensor padWith(Mode mode, const std::string& name, const Tensor& self, const DimVector& pad,
               std::optional<double> value) {
  WICK_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  const auto spatial = static_cast<int64_t>(pad.size() / 2);
  WICK_CHECK(self.dim() >= spatial, "Padding length too large");
  if (mode == Mode::Constant) {
    static const OperatorHandle kPad{"aten::constant_pad_nd", ""};
    return kPad(self, pad, Scalar(value.value_or(0.0)));
  }
  WICK_CHECK(!value || *value == 0, "Padding mode \"{}\" doesn't take in value argument", name);
  WICK_CHECK(
      spatial >= 1 && spatial <= 3 && (self.dim() == spatial + 1 || self.dim() == spatial + 2),
      "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  return padByMode("pad", mode, self, pad);
}
constexpr std::array<std::string_view, 4> kModes = {"reflect", "replicate", "circular", "constant"};

Tensor pad(const Tensor& self, const DimVector& pad, const std::string& mode,
           std::optional<double> value) {
  const auto found = std::ranges::find(kModes, mode);
  WICK_CHECK(found != kModes.end(), "Unrecognised padding mode {}", mode);
  return padWith(static_cast<Mode>(found - kModes.begin()), mode, self, pad, value);
}
Tensor padEnum(const Tensor& self, const DimVector& pad, int64_t mode,
               std::optional<double> value) {
  WICK_CHECK(mode >= 0 && mode <= 3, "Unrecognised padding mode {}", mode);
  return padWith(static_cast<Mode>(mode), std::to_string(mode), self, pad, value);
}
Tensor padCircular(const Tensor& self, const DimVector& pad) {
  WICK_CHECK(static_cast<int64_t>(pad.size()) + 4 == 2 * self.dim() ||
                 static_cast<int64_t>(pad.size()) + 2 == 2 * self.dim(),
             "Invalid padding size, expected {} but got {}", 2 * (self.dim() - 2), pad.size());
  return padByMode("_pad_circular", Mode::Circular, self, pad);
}
template <Mode kMode, size_t kSpatial>
Tensor padSpatial(const Tensor& self, const DimVector& padding) {
  const char* op = kMode == Mode::Reflect ? "reflection_pad" : "replication_pad";
  WICK_CHECK(padding.size() == 2 * kSpatial,
             "{}{}d: padding size is expected to be {}, but got: {}", op, kSpatial, 2 * kSpatial,
             padding.size());
  WICK_CHECK(self.dim() == kSpatial + 1 || self.dim() == kSpatial + 2,
             "{}{}d: Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other "
             "non-zero dimensions for input, but got: {}",
             op, kSpatial, kSpatial + 1, kSpatial + 2, formatInts(self.sizes()));
  return padByMode(op, kMode, self, padding);
}

const DeviceKernel kKernels[] = {
    {"aten::pad", WICK_KERNEL(pad)},
    {"aten::_pad_enum", WICK_KERNEL(padEnum)},
    {"aten::_pad_circular", WICK_KERNEL(padCircular)},
    {"aten::reflection_pad1d", WICK_KERNEL((padSpatial<Mode::Reflect, 1>))},
    {"aten::reflection_pad2d", WICK_KERNEL((padSpatial<Mode::Reflect, 2>))},
    {"aten::reflection_pad3d", WICK_KERNEL((padSpatial<Mode::Reflect, 3>))},
    {"aten::replication_pad1d", WICK_KERNEL((padSpatial<Mode::Replicate, 1>))},
    {"aten::replication_pad2d", WICK_KERNEL((padSpatial<Mode::Replicate, 2>))},
    {"aten::replication_pad3d", WICK_KERNEL((padSpatial<Mode::Replicate, 3>))},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

// Where it has no loop form: the engine's own, which copies into a window.
void own(CallFrame& frame) {
  frame.op->record().kernel(frame);
}
const DeviceKernel kLast[] = {
    {"aten::constant_pad_nd", own},
};
const RegisterDeviceKernels last(kAhead, kLast, TableRule::Last);

}  // namespace

}  // namespace wick::aot
