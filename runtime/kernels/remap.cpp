#include "runtime/kernels/remap.h"

#include <cstring>

#include "core/counted_vector.h"
#include "core/parallel.h"
#include "runtime/kernels/strided.h"

namespace wick {

namespace {

// Entries [begin, begin + size) of a table that go up or down by one.
struct Piece {
  int64_t begin, size, step;
};

// The table in such pieces. Empty when they are so short that entries are looked up one by one as
// fast.
CountedVector<Piece> piecesOf(const CountedVector<int64_t>& table) {
  constexpr int64_t kShortest = 8;
  const auto n = static_cast<int64_t>(table.size());
  const int64_t most = std::max<int64_t>(1, n / kShortest);
  CountedVector<Piece> pieces;
  for (int64_t i = 0; i < n;) {
    if (static_cast<int64_t>(pieces.size()) == most) return {};
    const int64_t step = i + 1 < n && table[i + 1] == table[i] - 1 ? -1 : 1;
    int64_t end = i + 1;
    while (end < n && table[end] == table[end - 1] + step) ++end;
    pieces.push_back({i, end - i, step});
    i = end;
  }
  return pieces;
}

template <class Word>
void movePiece(Word* to, const Word* from, const Piece& piece) {
  if (piece.step == 1) {
    std::memcpy(to, from, static_cast<size_t>(piece.size) * sizeof(Word));
  } else {
    for (int64_t i = 0; i < piece.size; ++i) to[i] = from[-i];
  }
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
  const CountedVector<Piece> pieces = piecesOf(inner);
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
        for (const Piece& piece : pieces) {
          movePiece(row + piece.begin, from + base + inner[piece.begin], piece);
        }
        if (pieces.empty()) {
          for (int64_t i = 0; i < n; ++i) row[i] = from[base + inner[i]];
        }
      }
    });
  });
}

void remapInto(void* out, const void* src, const std::vector<CountedVector<int64_t>>& tables,
               size_t item_size) {
  if (!tables.empty()) {
    // Rows that lie side by side are copied whole.
    const CountedVector<int64_t>& inner = tables.back();
    const CountedVector<Piece> pieces = piecesOf(inner);
    if (pieces.size() == 1 && pieces[0].step == 1) {
      std::vector<CountedVector<int64_t>> outer(tables.begin(), tables.end() - 1);
      const size_t bytes = inner.size() * item_size;
      const char* from = static_cast<const char*>(src);
      char* to = static_cast<char*>(out) + inner[0] * static_cast<int64_t>(item_size);
      forEachMapped(outer, [&](int64_t at, int64_t row) {
        std::memcpy(to + at * static_cast<int64_t>(item_size),
                    from + row * static_cast<int64_t>(bytes), bytes);
      });
      return;
    }
  }
  dispatchItemSize(item_size, [&]<class Word>() {
    const Word* from = static_cast<const Word*>(src);
    Word* to = static_cast<Word*>(out);
    forEachMapped(tables, [&](int64_t at, int64_t i) { to[at] = from[i]; });
  });
}

}  // namespace wick
