#include "runtime/kernels/remap.h"

#include <cstring>

#include "core/counted_vector.h"
#include "core/parallel.h"
#include "runtime/kernels/strided.h"

namespace wick {

namespace {

bool isRun(const CountedVector<int64_t>& table) {
  for (size_t i = 1; i < table.size(); ++i) {
    if (table[i] != table[0] + static_cast<int64_t>(i)) return false;
  }
  return true;
}

}  // namespace

void remap(void* out, const void* src, const std::vector<CountedVector<int64_t>>& tables,
           size_t item_size) {
  if (tables.empty()) {
    std::memcpy(out, src, item_size);
    return;
  }
  const CountedVector<int64_t>& inner = tables.back();
  int64_t n = static_cast<int64_t>(inner.size());
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < tables.size(); ++d) rows *= static_cast<int64_t>(tables[d].size());
  if (n == 0 || rows == 0) return;
  bool run = isRun(inner);
  dispatchItemSize(item_size, [&]<class Word>() {
    const Word* from = static_cast<const Word*>(src);
    Word* to = static_cast<Word*>(out);
    parallelFor(rows, kGrainSize / n, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r) {
        int64_t rest = r;
        int64_t base = 0;
        for (size_t d = tables.size() - 1; d-- > 0;) {
          int64_t size = static_cast<int64_t>(tables[d].size());
          base += tables[d][rest % size];
          rest /= size;
        }
        Word* row = to + r * n;
        if (run) {
          std::memcpy(row, from + base + inner[0], n * sizeof(Word));
        } else {
          for (int64_t i = 0; i < n; ++i) row[i] = from[base + inner[i]];
        }
      }
    });
  });
}

void remapInto(void* out, const void* src, const std::vector<CountedVector<int64_t>>& tables,
               size_t item_size) {
  dispatchItemSize(item_size, [&]<class Word>() {
    const Word* from = static_cast<const Word*>(src);
    Word* to = static_cast<Word*>(out);
    forEachMapped(tables, [&](int64_t at, int64_t i) { to[at] = from[i]; });
  });
}

}  // namespace wick
