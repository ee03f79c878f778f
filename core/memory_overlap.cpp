#include "core/memory_overlap.h"

#include <algorithm>

#include "core/error.h"

namespace wick {

namespace {

// The bytes of the storage from the first element of a tensor to behind the last.
struct ByteRange {
  int64_t begin, end;
};

ByteRange byteRangeOf(const Tensor& t) {
  int64_t last = 0;
  for (int64_t d = 0; d < t.dim(); ++d) last += (t.sizes()[d] - 1) * t.strides()[d];
  const int64_t size = static_cast<int64_t>(t.itemSize());
  return {t.offset() * size, (t.offset() + last + 1) * size};
}

[[noreturn]] void throwOverlap() {
  throwRuntimeError(
      "unsupported operation: some elements of the input tensor and the written-to tensor refer to "
      "a single memory location. Please clone() the tensor before performing the operation.");
}

}  // namespace

Overlap overlapOf(const Tensor& a, const Tensor& b) {
  if (a.isSame(b)) return Overlap::Full;
  if (!a.sharesStorage(b) || a.numel() == 0 || b.numel() == 0) return Overlap::None;
  const ByteRange first = byteRangeOf(a), second = byteRangeOf(b);
  if (first.end <= second.begin || second.end <= first.begin) return Overlap::None;
  const bool same = first.begin == second.begin && a.dtype() == b.dtype() &&
                    std::ranges::equal(a.sizes(), b.sizes()) &&
                    std::ranges::equal(a.strides(), b.strides());
  if (same) return Overlap::Full;
  if (a.isNonOverlappingAndDense() && b.isNonOverlappingAndDense()) return Overlap::Partial;
  return Overlap::Unknown;
}

void checkNoPartialOverlap(const Tensor& written, const Tensor& input) {
  if (overlapOf(written, input) == Overlap::Partial) throwOverlap();
}

void checkNoOverlap(const Tensor& written, const Tensor& input) {
  const Overlap overlap = overlapOf(written, input);
  if (overlap == Overlap::Partial || overlap == Overlap::Full) throwOverlap();
}

void checkNoInternalOverlap(const Tensor& written) {
  if (written.numel() == 0) return;
  for (int64_t d = 0; d < written.dim(); ++d) {
    WICK_CHECK(written.strides()[d] != 0 || written.sizes()[d] <= 1,
               "unsupported operation: more than one element of the written-to tensor refers to a "
               "single memory location. Please clone() the tensor before performing the "
               "operation.");
  }
}

}  // namespace wick
