// Padding: by a constant, by reflection, by the edge, around.
#include "runtime/kernels/remap.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

enum class PadMode { Reflect = 0, Replicate = 1, Circular = 2, Constant = 3 };

// A pad further below is as good as none that fits, and sums with it could overflow.
constexpr int64_t kLeastPad = -(int64_t{1} << 62);

Tensor constantPad(const Tensor& self, DimVector pad, Scalar value) {
  WICK_CHECK(pad.size() % 2 == 0, "Length of pad must be even but instead it equals {}",
             pad.size());
  int64_t padded = static_cast<int64_t>(pad.size() / 2);
  WICK_CHECK(self.dim() >= padded,
             "Length of pad should be no more than twice the number of dimensions of the input. "
             "Pad length is {} while the input has {} dimensions.",
             pad.size(), self.dim());
  DimVector sizes(self.sizes());
  Tensor inner = self;
  // The pads are listed from the last dimension backwards.
  for (int64_t k = 0; k < padded; ++k) {
    int64_t d = self.dim() - 1 - k;
    int64_t before = pad[2 * k];
    int64_t after = pad[2 * k + 1];
    int64_t size = self.sizes()[d];
    int64_t padded_size = 0;
    WICK_CHECK(before >= kLeastPad && after >= kLeastPad &&
                   !__builtin_add_overflow(size, before, &padded_size) &&
                   !__builtin_add_overflow(padded_size, after, &padded_size) && padded_size >= 0,
               "The input size {}, plus negative padding {} and {} resulted in a negative output "
               "size, which is invalid. Check dimension {} of your input.",
               size, before, after, d);
    sizes[d] = padded_size;
    int64_t first = std::max<int64_t>(0, -before);
    inner = inner.slice(d, first, size + std::min<int64_t>(0, after));
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device(), self.suggestMemoryFormat());
  fillWith(out, value);
  Tensor window = out;
  for (int64_t k = 0; k < padded; ++k) {
    int64_t d = self.dim() - 1 - k;
    window = window.narrow(d, std::max<int64_t>(0, pad[2 * k]), inner.sizes()[d]);
  }
  if (inner.numel() > 0) window.copyFrom(inner);
  return out;
}

// Where position i of a padded dimension comes from; i counts from the start of the input.
int64_t sourceOf(PadMode mode, int64_t i, int64_t n) {
  switch (mode) {
    case PadMode::Reflect:
      return i < 0 ? -i : i >= n ? 2 * (n - 1) - i : i;
    case PadMode::Replicate:
      return std::clamp<int64_t>(i, 0, n - 1);
    default:
      return i < 0 ? i + n : i >= n ? i - n : i;
  }
}

// Whether the pads reach no further than what negative ones leave of n elements.
bool circularFits(int64_t n, int64_t before, int64_t after) {
  if (before >= 0 && after >= 0) return true;
  int64_t kept = 0;
  return !__builtin_add_overflow(n, std::min<int64_t>(0, before), &kept) &&
         !__builtin_add_overflow(kept, std::min<int64_t>(0, after), &kept) && before <= kept &&
         after <= kept;
}

// What dimension d has when it is padded.
int64_t paddedSize(const char* op, PadMode mode, const Tensor& self, int64_t d, int64_t before,
                   int64_t after) {
  const int64_t n = self.size(d);
  WICK_CHECK(n > 0, "{}: Expected a non-empty input in dimension {}, but got {}", op, d,
             formatInts(self.sizes()));
  const bool fits = mode == PadMode::Reflect ? before < n && after < n
                    : mode == PadMode::Circular
                        ? before <= n && after <= n && circularFits(n, before, after)
                        : true;
  WICK_CHECK(fits,
             "{}: Padding size should be less than the corresponding input dimension, but got: "
             "padding ({}, {}) at dimension {} of input {}",
             op, before, after, d, formatInts(self.sizes()));
  int64_t size = 0;
  WICK_CHECK(before >= kLeastPad && after >= kLeastPad &&
                 !__builtin_add_overflow(n, before, &size) &&
                 !__builtin_add_overflow(size, after, &size) &&
                 (size >= 1 || (mode == PadMode::Circular && size == 0)),
             "{}: input (size {} in dimension {}) is too small for padding ({}, {})", op, n, d,
             before, after);
  return size;
}

// On devices dimensions are put together of pieces. That of positions [first, end), counted from the beginning of the input,
// all of which lie on one side of it: before its first element, in it, or behind its last one.
Tensor pieceOf(PadMode mode, const Tensor& t, int64_t d, int64_t first, int64_t end) {
  const int64_t n = t.size(d);
  if (first >= 0 && first < n) return t.narrow(d, first, end - first);
  const bool before = first < 0;
  switch (mode) {
    case PadMode::Reflect: {
      const int64_t lowest = before ? 1 - end : 2 * (n - 1) - (end - 1);
      return ops::flip(t.narrow(d, lowest, end - first), DimVector{d});
    }
    case PadMode::Circular:
      return t.narrow(d, before ? first + n : first - n, end - first);
    default: {
      DimVector sizes(t.sizes());
      sizes[static_cast<size_t>(d)] = end - first;
      return t.narrow(d, before ? 0 : n - 1, 1).expand(sizes);
    }
  }
}
Tensor padByPieces(PadMode mode, Tensor t, int64_t d, int64_t before, int64_t after) {
  if (mode == PadMode::Circular) {
    const int64_t first = std::max<int64_t>(0, -before);
    t = t.narrow(d, first, t.size(d) - first - std::max<int64_t>(0, -after));
    before = std::max<int64_t>(0, before);
    after = std::max<int64_t>(0, after);
  }
  const int64_t n = t.size(d), low = -before, high = n + after;
  const int64_t cuts[] = {low, std::clamp<int64_t>(0, low, high), std::clamp(n, low, high), high};
  std::vector<Tensor> pieces;
  for (size_t i = 0; i < 3; ++i) {
    if (cuts[i] < cuts[i + 1]) pieces.push_back(pieceOf(mode, t, d, cuts[i], cuts[i + 1]));
  }
  if (pieces.empty()) return t.narrow(d, 0, 0);
  return pieces.size() == 1 ? pieces[0] : cat(pieces, d);
}

// Pads the last pad.size() / 2 dimensions.
Tensor padByMode(const char* op, PadMode mode, const Tensor& self, const DimVector& pad) {
  const auto padded = static_cast<int64_t>(pad.size() / 2);
  DimVector sizes(self.sizes());
  for (int64_t k = 0; k < padded; ++k) {
    const int64_t d = self.dim() - 1 - k;
    sizes[d] = paddedSize(op, mode, self, d, pad[2 * k], pad[2 * k + 1]);
  }
  checkedNumel(sizes);
  const MemoryFormat format =
      mode == PadMode::Replicate ? self.suggestMemoryFormat() : MemoryFormat::Contiguous;
  if (!self.device().isCpu()) {
    Tensor t = self;
    for (int64_t k = 0; k < padded; ++k) {
      t = padByPieces(mode, t, self.dim() - 1 - k, pad[2 * k], pad[2 * k + 1]);
    }
    return t.clone(format);
  }
  std::vector<OffsetTable> tables(static_cast<size_t>(self.dim()));
  for (int64_t d = 0; d < self.dim(); ++d) {
    int64_t n = self.sizes()[d];
    int64_t stride = self.strides()[d];
    int64_t k = self.dim() - 1 - d;
    int64_t before = k < padded ? pad[2 * k] : 0;
    int64_t after = k < padded ? pad[2 * k + 1] : 0;
    tables[d].resize(static_cast<size_t>(sizes[d]));
    // What negative pads cut off is not seen by the wrapping either.
    bool circular = mode == PadMode::Circular;
    int64_t first = circular ? std::max<int64_t>(0, -before) : 0;
    int64_t kept = circular ? n - first - std::max<int64_t>(0, -after) : n;
    for (int64_t i = 0; i < sizes[d]; ++i) {
      tables[d][i] = (first + sourceOf(mode, i - before - first, kept)) * stride;
    }
  }
  Tensor out = Tensor::empty(sizes, self.dtype(), self.device());
  if (out.numel() > 0) remap(out.rawData(), self.rawData(), tables, self.itemSize());
  return out.contiguous(format);
}

// The batch dimension may be empty; the others may not.
void checkRank(const char* op, const Tensor& self, int64_t spatial) {
  WICK_CHECK(self.dim() == spatial + 1 || self.dim() == spatial + 2,
             "{}: Expected {}D or {}D (batch mode) tensor with possibly 0 batch size and other "
             "non-zero dimensions for input, but got: {}",
             op, spatial + 1, spatial + 2, formatInts(self.sizes()));
}

template <PadMode kMode, int kSpatial>
Tensor padSpatial(const Tensor& self, DimVector padding) {
  constexpr const char* kNames[2][3] = {
      {"reflection_pad1d", "reflection_pad2d", "reflection_pad3d"},
      {"replication_pad1d", "replication_pad2d", "replication_pad3d"}};
  const char* op = kNames[static_cast<int>(kMode)][kSpatial - 1];
  WICK_CHECK(padding.size() == 2 * kSpatial, "{}: padding size is expected to be {}, but got: {}",
             op, 2 * kSpatial, padding.size());
  checkRank(op, self, kSpatial);
  return padByMode(op, kMode, self, padding);
}

Tensor padCircular(const Tensor& self, DimVector pad) {
  WICK_CHECK(static_cast<int64_t>(pad.size()) + 4 == 2 * self.dim() ||
                 static_cast<int64_t>(pad.size()) + 2 == 2 * self.dim(),
             "Invalid padding size, expected {} but got {}", 2 * (self.dim() - 2), pad.size());
  return padByMode("_pad_circular", PadMode::Circular, self, pad);
}

Tensor padWith(const Tensor& self, const DimVector& pad, PadMode mode, const std::string& name,
               std::optional<double> value) {
  WICK_CHECK(pad.size() % 2 == 0, "Padding length must be divisible by 2");
  int64_t spatial = static_cast<int64_t>(pad.size() / 2);
  WICK_CHECK(self.dim() >= spatial, "Padding length too large");
  if (mode == PadMode::Constant) return constantPad(self, pad, Scalar(value.value_or(0.0)));
  WICK_CHECK(!value || *value == 0, "Padding mode \"{}\" doesn't take in value argument", name);
  bool known =
      spatial >= 1 && spatial <= 3 && (self.dim() == spatial + 1 || self.dim() == spatial + 2);
  WICK_CHECK(known, "Only 2D, 3D, 4D, 5D padding with non-constant padding are supported for now");
  return mode == PadMode::Circular ? padCircular(self, pad) : padByMode("pad", mode, self, pad);
}

Tensor pad(const Tensor& self, DimVector pad, std::string mode, std::optional<double> value) {
  constexpr const char* kModes[] = {"reflect", "replicate", "circular", "constant"};
  for (int i = 0; i < 4; ++i) {
    if (mode == kModes[i]) return padWith(self, pad, static_cast<PadMode>(i), mode, value);
  }
  throwRuntimeError("Unrecognised padding mode {}", mode);
}
Tensor padEnum(const Tensor& self, DimVector pad, int64_t mode, std::optional<double> value) {
  WICK_CHECK(mode >= 0 && mode <= 3, "Unrecognised padding mode {}", mode);
  return padWith(self, pad, static_cast<PadMode>(mode), std::to_string(mode), value);
}

constexpr PadMode kReflect = PadMode::Reflect;
constexpr PadMode kReplicate = PadMode::Replicate;

const OperatorRecord kPaddingRecords[] = {
    {"aten::pad(Tensor self, int[] pad, str mode=\"constant\", float? value=None) -> Tensor",
     WICK_KERNEL(pad), kNeutral | kEagerCastPadding, shapes::padded},
    {"aten::_pad_enum(Tensor self, int[] pad, int mode, float? value=None) -> Tensor",
     WICK_KERNEL(padEnum), kNeutral, shapes::padded},
    {"aten::_pad_circular(Tensor self, int[] pad) -> Tensor", WICK_KERNEL(padCircular), kNeutral},
    {"aten::constant_pad_nd(Tensor self, int[] pad, Scalar value=0) -> Tensor",
     WICK_KERNEL(constantPad), kOutForm | kOutAny | kNeutralLast | kSavesNothing | kKeepsOrder,
     shapes::padded},
    {"aten::reflection_pad1d(Tensor self, int[2] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReflect, 1>)), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     shapes::padded},
    {"aten::reflection_pad2d(Tensor self, int[4] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReflect, 2>)), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     shapes::padded},
    {"aten::reflection_pad3d(Tensor self, int[6] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReflect, 3>)), kOutForm | kOutSame | kNeutral, shapes::padded},
    {"aten::replication_pad1d(Tensor self, int[2] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReplicate, 1>)), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     shapes::padded},
    {"aten::replication_pad2d(Tensor self, int[4] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReplicate, 2>)), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     shapes::padded},
    {"aten::replication_pad3d(Tensor self, int[6] padding) -> Tensor",
     WICK_KERNEL((padSpatial<kReplicate, 3>)), kOutForm | kOutSame | kNeutral | kEagerCastFull,
     shapes::padded},
};

const RegisterOperators kPaddingRegistered(kPaddingRecords);

}  // namespace

Tensor paddedAtEnd(const Tensor& t, IntSpan sizes) {
  if (std::ranges::equal(t.sizes(), sizes)) return t;
  DimVector pads;
  for (size_t d = sizes.size(); d-- > 0;) {
    pads.push_back(0);
    pads.push_back(sizes[d] - t.sizes()[d]);
  }
  return ops::constantPad(t, pads, Scalar(0));
}

}  // namespace wick::ops
