#include "codegen/loop/layout.h"

#include <algorithm>
#include <cmath>

#include "core/stride_order.h"
#include "core/tensor.h"

namespace wick::loop {

namespace {

// The step of an operand along dimension d of `rank` broadcast ones.
int64_t stepOf(const TensorLayout& t, int d, int rank, int64_t size) {
  const int missing = rank - t.rank;
  if (d < missing) return 0;
  auto i = static_cast<size_t>(d - missing);
  return t.sizes[i] == 1 && size != 1 ? 0 : t.strides[i];
}

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

bool pointwiseLayout(std::span<const TensorLayout* const> operands, TensorLayout& result) {
  result.rank = 0;
  result.offset = 0;
  for (const TensorLayout* t : operands) result.rank = std::max(result.rank, t->rank);
  bool plain = true;
  for (int d = 0; d < result.rank; ++d) {
    auto i = static_cast<size_t>(d);
    result.sizes[i] = 1;
    for (const TensorLayout* t : operands) {
      const int from = d - (result.rank - t->rank);
      const int64_t size = from < 0 ? 1 : t->sizes[static_cast<size_t>(from)];
      if (t->rank > 0) plain &= from >= 0;
      if (size == 1 || size == result.sizes[i]) continue;
      if (result.sizes[i] != 1) return false;
      result.sizes[i] = size;
    }
  }
  for (const TensorLayout* t : operands) {
    plain &= t->rank == 0 ||
             (isRowMajor(*t) &&
              std::equal(t->sizes.begin(), t->sizes.begin() + t->rank, result.sizes.begin()));
  }
  // By the steps of the first operand that tells two dimensions apart.
  std::array<int, kMaxRank> order;
  auto compare = [&](int a, int b) {
    if (plain) return 0;
    const int64_t size_a = result.sizes[static_cast<size_t>(a)];
    const int64_t size_b = result.sizes[static_cast<size_t>(b)];
    for (const TensorLayout* t : operands) {
      const int64_t x = stepOf(*t, a, result.rank, size_a);
      const int64_t y = stepOf(*t, b, result.rank, size_b);
      if (x == 0 || y == 0) continue;
      if (x != y) return x < y ? -1 : 1;
      if (size_a > size_b) return 1;
    }
    return 0;
  };
  orderDimensions(std::span<int>(order.data(), static_cast<size_t>(result.rank)), compare);
  int64_t next = 1;
  for (int i = 0; i < result.rank; ++i) {
    auto d = static_cast<size_t>(order[static_cast<size_t>(i)]);
    result.strides[d] = next;
    next *= std::max<int64_t>(result.sizes[d], 1);
  }
  return true;
}

}  // namespace wick::loop
