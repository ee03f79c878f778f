// Questions about a tensor's memory, and assertions on tensors.
#include <complex>
#include <limits>
#include <optional>
#include <string>

#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/typed.h"

namespace wick::ops {

namespace {

// 0: none; 1: yes, a dimension repeats; 2: the strides do not tell.
int64_t internalOverlap(const Tensor& self) {
  if (self.isContiguous() || self.isNonOverlappingAndDense()) return 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (self.strides()[d] == 0 && self.sizes()[d] > 1) return 1;
  }
  return 2;
}

bool sameStorageNumel(const Tensor& self, const Tensor& other) {
  return self.storage()->bytes() / self.itemSize() == other.storage()->bytes() / other.itemSize();
}

bool isStridesLikeFormat(const Tensor& self, MemoryFormat format) {
  return format != MemoryFormat::Preserve && self.suggestMemoryFormat() == format;
}

void assertAsyncSaying(const Tensor& self, const std::string& message) {
  WICK_CHECK(self.numel() != 0, "Boolean value of Tensor with no values is ambiguous");
  WICK_CHECK(self.numel() == 1, "Boolean value of Tensor with more than one value is ambiguous");
  WICK_CHECK(self.item<bool>(), "{}", message);
}
void assertAsync(const Tensor& self) {
  assertAsyncSaying(self, "Expected Tensor with single nonzero value, but got zero");
}

void assertMetadata(const Tensor& a, const std::optional<DimVector>& size,
                    const std::optional<DimVector>& stride, std::optional<DType> dtype,
                    std::optional<Device> device, std::optional<int64_t> layout) {
  WICK_CHECK(!size || std::ranges::equal(a.sizes(), *size),
             "Tensor sizes mismatch! Expected: {}, Got: {}", formatInts(*size),
             formatInts(a.sizes()));
  WICK_CHECK(!stride || std::ranges::equal(a.strides(), *stride),
             "Tensor strides mismatch! Expected: {}, Got: {}", formatInts(*stride),
             formatInts(a.strides()));
  WICK_CHECK(!dtype || a.dtype() == *dtype, "Tensor dtype mismatch! Expected: {}, Got: {}",
             toString(*dtype), toString(a.dtype()));
  // "cuda" is any GPU.
  const bool is_there = !device || (a.device().type == device->type &&
                                    (device->index < 0 || a.device().index == device->index));
  WICK_CHECK(is_there, "Tensor device mismatch! Expected: {}, Got: {}", device->str(),
             a.device().str());
  static const OperatorHandle kLayout("prim::layout", "");
  if (!layout) return;
  const int64_t found = kLayout.all(a)[0].toInt();
  WICK_CHECK(found == *layout, "Tensor layout mismatch! Expected: {}, Got: {}", *layout, found);
}

void assertScalar(const IValue& condition, const std::string& message) {
  const bool holds = condition.isInt()      ? condition.toInt() != 0
                     : condition.isDouble() ? condition.toDouble() != 0
                     : condition.isBool()   ? condition.toBool()
                                            : condition.toComplex() != std::complex<double>();
  WICK_CHECK(holds, "{}", message);
}

void constrainRange(const IValue& size, std::optional<int64_t> least, std::optional<int64_t> most) {
  WICK_CHECK(size.isInt(), "Constraining SymFloat or Symbool is nyi");
  const int64_t from = least.value_or(std::numeric_limits<int64_t>::min());
  const int64_t to = most.value_or(std::numeric_limits<int64_t>::max());
  WICK_CHECK(from <= to, "Max must be greater than or equal to min. Got min={} max={}", from, to);
  const int64_t value = size.toInt();
  WICK_CHECK(from <= value && value <= to, "Invalid value range for {} between [{}, {}].", value,
             from, to);
}

void constrainRangeForSize(const IValue& size, std::optional<int64_t> least,
                           std::optional<int64_t> most) {
  constrainRange(size, least.value_or(0), most);
}

// A program may be anybody's, so it gets no hand on files.
void save(const IValue&, const std::string& filename) {
  throwRuntimeError("save: a program cannot write files ({}); return the value and save it outside",
                    filename);
}

constexpr OperatorRecord kStateRecords[] = {
    {"aten::_version(Tensor self) -> int",
     WICK_LAMBDA([](const Tensor& t) { return static_cast<int64_t>(t.storage()->version()); }),
     kNotDifferentiable | kNondeterministic | kNeutralMixed},
    {"aten::data(Tensor self) -> Tensor", WICK_LAMBDA([](const Tensor& t) { return t.detach(); }),
     kNeutral},

    {"aten::_debug_has_internal_overlap(Tensor self) -> int", WICK_KERNEL(internalOverlap),
     kNotDifferentiable | kNeutral},
    {"aten::_has_same_storage_numel(Tensor self, Tensor other) -> bool",
     WICK_KERNEL(sameStorageNumel), kNotDifferentiable | kNeutralMixed},
    {"aten::is_strides_like_format(Tensor self, MemoryFormat memory_format) -> bool",
     WICK_KERNEL(isStridesLikeFormat), kNotDifferentiable | kNeutralMixed},
    {"aten::_has_compatible_shallow_copy_type(Tensor self, Tensor from) -> bool",
     WICK_LAMBDA([](const Tensor& a, const Tensor& b) { return a.device() == b.device(); }),
     kNotDifferentiable},
    {"aten::_is_zerotensor(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kNeutralMixed},
    {"aten::is_distributed(Tensor self) -> bool", WICK_KERNEL(never),
     kNotDifferentiable | kNeutralMixed},

    {"aten::_assert_async(Tensor self) -> ()", WICK_KERNEL(assertAsync),
     kSideEffects | kNeutralMixed},
    {"aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", WICK_KERNEL(assertAsyncSaying),
     kSideEffects | kNeutralMixed},
    {"aten::_assert_scalar(Scalar self, str assert_msg) -> ()", WICK_KERNEL(assertScalar),
     kSideEffects},
    {"aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()",
     WICK_KERNEL(constrainRange), kSideEffects},
    {"aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()",
     WICK_KERNEL(constrainRangeForSize), kSideEffects},
    {"aten::_assert_tensor_metadata(Tensor a, int[]? size=None, int[]? stride=None, ScalarType? "
     "dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
     WICK_KERNEL(assertMetadata), kSideEffects | kNeutralMixed},

    {"aten::save(t item, str filename) -> ()", WICK_KERNEL(save), kSideEffects},
};

const RegisterOperators kStateRegistered(kStateRecords);

}  // namespace

}  // namespace wick::ops
