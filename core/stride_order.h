// The order of dimensions in memory, where strides tell it only in part.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace wick {

// Sets `order` to the dimensions 0 … n - 1 from the innermost to the outermost. `compare(a, b)`
// is negative when dimension a is known to lie within b, positive when b lies within a, and 0 when
// nothing is known about the two: those keep row-major order as far as the others let them. It need
// not be transitive, so this is an insertion sort: strides of zero compare as unknown, and results
// must come out in PyTorch's order (TensorIterator's reordering of dimensions).
template <class Index, class Compare>
void orderDimensions(std::span<Index> order, Compare compare) {
  const size_t n = order.size();
  for (size_t i = 0; i < n; ++i) order[i] = static_cast<Index>(n - 1 - i);
  for (size_t i = 1; i < n; ++i) {
    size_t at = i;
    for (size_t j = i; j-- > 0;) {
      const int c = compare(order[j], order[at]);
      if (c < 0) break;
      if (c > 0) {
        std::swap(order[j], order[at]);
        at = j;
      }
    }
  }
}

}  // namespace wick
