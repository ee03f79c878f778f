// Walking several tensors of one shape in step, and moving elements whose dtype does not matter.
#pragma once

#include <array>
#include <cstdint>

#include "core/dim_vector.h"
#include "core/error.h"

namespace wick {

// An element of 16 bytes, for code that only moves elements.
struct Bytes16 {
  uint64_t words[2];
};

// Calls f.operator()<Word>() with an unsigned type of `item_size` bytes (1, 2, 4, 8 or 16).
template <class F>
decltype(auto) dispatchItemSize(size_t item_size, F&& f) {
  switch (item_size) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
    default:
      throw InternalError(__FILE__, __LINE__,
                          "no element has " + std::to_string(item_size) + " bytes");
  }
}

// Calls f(offsets) for every index of the shape `sizes` in row-major order, where offsets[k] is the
// position, in elements, of that index in the operand with strides[k]. Each strides[k] has as many
// entries as `sizes`.
template <size_t N, class F>
void forEachOffset(IntSpan sizes, const std::array<IntSpan, N>& strides, F&& f) {
  std::array<int64_t, N> offsets{};
  for (int64_t s : sizes) {
    if (s == 0) return;
  }
  size_t n = sizes.size();
  if (n == 0) {
    f(offsets);
    return;
  }
  DimVector index(n, 0);
  int64_t inner = sizes[n - 1];
  while (true) {
    std::array<int64_t, N> at = offsets;
    for (int64_t i = 0; i < inner; ++i) {
      f(at);
      for (size_t k = 0; k < N; ++k) at[k] += strides[k][n - 1];
    }
    size_t d = n - 1;
    while (d-- > 0) {
      for (size_t k = 0; k < N; ++k) offsets[k] += strides[k][d];
      if (++index[d] < sizes[d]) break;
      for (size_t k = 0; k < N; ++k) offsets[k] -= strides[k][d] * sizes[d];
      index[d] = 0;
    }
    if (d == static_cast<size_t>(-1)) return;
  }
}

}  // namespace wick
