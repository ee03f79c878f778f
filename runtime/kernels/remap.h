// remap: an output whose every dimension looks its source position up in a table, for padding,
// flipping, rolling and selecting by index.
#pragma once

#include <cstdint>
#include <vector>

#include "core/counted_vector.h"
#include "core/dim_vector.h"

namespace wick {

// out[i0, i1, …] = src[tables[0][i0] + tables[1][i1] + …]; the tables hold element offsets, one
// entry an index of the output, which is row-major. `item_size` bytes are moved an element.
void remap(void* out, const void* src, const std::vector<CountedVector<int64_t>>& tables,
           size_t item_size);

// The other direction: out[tables[0][i0] + …] = src[i0, i1, …]. Where positions repeat, the last
// one in row-major order stays. Sequential.
void remapInto(void* out, const void* src, const std::vector<CountedVector<int64_t>>& tables,
               size_t item_size);

// Calls f(position of the table entries' sum, running index) for each index in row-major order.
template <class F>
void forEachMapped(const std::vector<CountedVector<int64_t>>& tables, F&& f) {
  int64_t count = 1;
  for (const auto& t : tables) count *= static_cast<int64_t>(t.size());
  if (count == 0) return;
  if (tables.empty()) {
    f(int64_t{0}, int64_t{0});
    return;
  }
  int64_t n = static_cast<int64_t>(tables.back().size());
  for (int64_t r = 0; r < count / n; ++r) {
    int64_t rest = r;
    int64_t base = 0;
    for (size_t d = tables.size() - 1; d-- > 0;) {
      int64_t size = static_cast<int64_t>(tables[d].size());
      base += tables[d][rest % size];
      rest /= size;
    }
    for (int64_t i = 0; i < n; ++i) f(base + tables.back()[i], r * n + i);
  }
}

}  // namespace wick
