#include "core/strided_layout.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>

#include "core/stride_order.h"

namespace wick {
namespace {

template <size_t N>
bool isContiguousIn(const std::array<int, N>& order, IntSpan sizes, IntSpan strides) {
  if (sizes.size() != N) return false;
  int64_t expected = 1;
  for (int d : order) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool isRowMajor(IntSpan sizes, IntSpan strides) {
  if (std::ranges::find(sizes, 0) != sizes.end()) return true;  // there are no elements
  int64_t expected = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    if (sizes[d] == 1) continue;
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

bool areAllContiguous(std::span<const StridedShape> operands, MemoryFormat format) {
  return std::ranges::all_of(operands, [&](const StridedShape& each) {
    return isContiguous(each.sizes, each.strides, format);
  });
}

// The strides of a result whose operands all have its shape and lie alike, without gaps.
std::optional<DimVector> commonStrides(IntSpan shape, std::span<const StridedShape> operands) {
  const auto is_like_result = [&](const StridedShape& each) {
    return std::ranges::equal(each.sizes, shape);
  };
  if (!std::ranges::all_of(operands, is_like_result)) return std::nullopt;
  if (areAllContiguous(operands, MemoryFormat::Contiguous)) return contiguousStrides(shape);
  if (areAllContiguous(operands, MemoryFormat::ChannelsLast)) {
    return formatStrides(shape, MemoryFormat::ChannelsLast);
  }
  const IntSpan strides = operands[0].strides;
  const auto is_like_first = [&](const StridedShape& each) {
    return std::ranges::equal(each.strides, strides);
  };
  if (!std::ranges::all_of(operands, is_like_first) || !isDense(shape, strides)) {
    return std::nullopt;
  }
  return DimVector(strides);
}

// The distance of neighbours along dimension d of the result.
int64_t stepOf(const StridedShape& operand, size_t d, IntSpan shape) {
  const size_t missing = shape.size() - operand.sizes.size();
  if (d < missing) return 0;
  const size_t own = d - missing;
  return operand.sizes[own] == 1 && shape[d] != 1 ? 0 : operand.strides[own];
}

}  // namespace

bool isContiguous(IntSpan sizes, IntSpan strides, MemoryFormat format) {
  switch (format) {
    case MemoryFormat::Contiguous:
      return isRowMajor(sizes, strides);
    case MemoryFormat::ChannelsLast:
      return isContiguousIn(kChannelsLast, sizes, strides);
    case MemoryFormat::ChannelsLast3d:
      return isContiguousIn(kChannelsLast3d, sizes, strides);
    case MemoryFormat::Preserve:
      break;
  }
  return false;
}

bool isDense(IntSpan sizes, IntSpan strides) {
  DimVector order;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] != 1) order.push_back(static_cast<int64_t>(d));
  }
  std::ranges::sort(order, [&](int64_t a, int64_t b) { return strides[a] < strides[b]; });
  int64_t expected = 1;
  for (const int64_t d : order) {
    if (strides[d] != expected) return false;
    expected *= sizes[d];
  }
  return true;
}

DimVector resultStrides(IntSpan shape, std::span<const StridedShape> operands, bool has_number) {
  if (!has_number) {
    if (std::optional<DimVector> strides = commonStrides(shape, operands)) return *strides;
  }
  const size_t n = shape.size();
  DimVector order(n);
  // By the first operand that tells two dimensions apart: a step of zero says nothing, and of equal steps the longer dimension is
  // the outer one.
  orderDimensions(std::span<int64_t>(order.data(), n), [&](int64_t a, int64_t b) {
    for (const StridedShape& operand : operands) {
      const int64_t x = stepOf(operand, static_cast<size_t>(a), shape);
      const int64_t y = stepOf(operand, static_cast<size_t>(b), shape);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (shape[a] > shape[b]) return 1;
    }
    return 0;
  });
  if (std::ranges::is_sorted(order, std::greater())) return contiguousStrides(shape);
  DimVector strides(n, 1);
  int64_t next = 1;
  for (const int64_t d : order) {
    strides[d] = next;
    // Beyond what a tensor may have, which whoever places one refuses.
    if (__builtin_mul_overflow(next, shape[d], &next)) next = std::numeric_limits<int64_t>::max();
  }
  return strides;
}

}  // namespace wick
