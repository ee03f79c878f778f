#include "codegen/loop/layout.h"

#include <algorithm>
#include <cmath>

#include "core/strided_layout.h"

namespace wick::loop {

namespace {

// More operands than any operator on elements has.
constexpr size_t kMaxOperands = 8;

// The dimension that is the i-th from the innermost in a channels-last layout.
size_t channelsLastDim(int i, int rank) {
  return static_cast<size_t>(i == 0 ? 1 : i == rank - 1 ? 0 : rank - i);
}

}  // namespace

bool isRowMajor(const TensorLayout& t) {
  int64_t next = 1;
  bool fits = true;
  for (int d = t.rank; d-- > 0;) {
    auto i = static_cast<size_t>(d);
    if (t.sizes[i] == 0) return true;  // there are no elements
    fits &= t.sizes[i] == 1 || t.strides[i] == next;
    next *= t.sizes[i];
  }
  return fits;
}

// Where sizes leave it open (one channel, no spatial extent) the answer is no.
bool isChannelsLast(const TensorLayout& t) {
  if ((t.rank != 4 && t.rank != 5) || t.strides[1] == 0) return false;
  int64_t least = 0;
  for (int i = 0; i < t.rank; ++i) {
    const size_t d = channelsLastDim(i, t.rank);
    if (t.sizes[d] == 0 || t.strides[d] < least) return false;
    if (d == 0 && least == t.strides[1]) return false;
    least = t.strides[d] * std::max<int64_t>(t.sizes[d], 1);
  }
  return true;
}

void layChannelsLast(TensorLayout& t) {
  int64_t next = 1;
  for (int i = 0; i < t.rank; ++i) {
    const size_t d = channelsLastDim(i, t.rank);
    t.strides[d] = next;
    next *= std::max<int64_t>(t.sizes[d], 1);
  }
}

int64_t numelOf(const TensorLayout& t) {
  int64_t n = 1;
  for (int d = 0; d < t.rank; ++d) n *= t.sizes[static_cast<size_t>(d)];
  return n;
}

bool fits(const TensorLayout& t) {
  double elements = 1;
  double reach = std::abs(static_cast<double>(t.offset));
  for (int d = 0; d < t.rank; ++d) {
    const auto size = static_cast<double>(t.sizes[static_cast<size_t>(d)]);
    const auto stride = static_cast<double>(t.strides[static_cast<size_t>(d)]);
    if (size < 0) return false;
    elements *= std::max(size, 1.0);
    reach += std::abs(stride) * std::max(size, 1.0);
  }
  return elements <= static_cast<double>(kMaxElements) &&
         reach <= static_cast<double>(kMaxExtentBytes);
}

void layRowMajor(TensorLayout& t) {
  int64_t next = 1;
  for (int d = t.rank; d-- > 0;) {
    auto i = static_cast<size_t>(d);
    t.strides[i] = next;
    next *= std::max<int64_t>(t.sizes[i], 1);
  }
}

bool isOrdered(const TensorLayout& t) {
  int64_t inner = 0, inner_size = 0;
  for (int d = t.rank; d-- > 0;) {
    const int64_t stride = t.strides[static_cast<size_t>(d)];
    const int64_t size = t.sizes[static_cast<size_t>(d)];
    if (stride == 0) continue;
    // The longer dimension is the outer one where strides are equal.
    if (stride < inner || (stride == inner && size < inner_size)) return false;
    inner = stride;
    inner_size = size;
  }
  return true;
}

void layLike(const TensorLayout& from, TensorLayout& to) {
  const auto rank = static_cast<size_t>(from.rank);
  const IntSpan sizes(from.sizes.data(), rank), strides(from.strides.data(), rank);
  to = from;
  to.offset = 0;
  if (isRowMajor(from) || isDense(sizes, strides)) return;
  std::ranges::copy(denseStrides(sizes, strides), to.strides.begin());
}

bool pointwiseLayout(std::span<const TensorLayout* const> operands, bool has_number,
                     TensorLayout& result) {
  result.rank = 0;
  result.offset = 0;
  for (const TensorLayout* t : operands) result.rank = std::max(result.rank, t->rank);
  for (int d = 0; d < result.rank; ++d) {
    auto i = static_cast<size_t>(d);
    result.sizes[i] = 1;
    for (const TensorLayout* t : operands) {
      const int from = d - (result.rank - t->rank);
      const int64_t size = from < 0 ? 1 : t->sizes[static_cast<size_t>(from)];
      if (size == 1 || size == result.sizes[i]) continue;
      if (result.sizes[i] != 1) return false;
      result.sizes[i] = size;
    }
  }
  std::array<StridedShape, kMaxOperands> layouts;
  if (operands.size() > layouts.size()) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    const auto rank = static_cast<size_t>(operands[i]->rank);
    layouts[i] = {IntSpan(operands[i]->sizes.data(), rank),
                  IntSpan(operands[i]->strides.data(), rank)};
  }
  const DimVector strides =
      resultStrides(IntSpan(result.sizes.data(), static_cast<size_t>(result.rank)),
                    std::span(layouts.data(), operands.size()), has_number);
  std::ranges::copy(strides, result.strides.begin());
  return true;
}

}  // namespace wick::loop
