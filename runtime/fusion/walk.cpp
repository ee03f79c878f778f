#include "runtime/fusion/walk.h"

#include <algorithm>
#include <numeric>

#include "core/parallel.h"
#include "core/transpose_tile.h"

namespace wick {

namespace {

struct Dims {
  int count = 0;
  std::array<int64_t, loop::kMaxRank> sizes;
  std::array<std::array<int64_t, kMaxAccesses>, loop::kMaxRank> steps;
};

// Adds a dimension outside of the last one, joined with it when possible.
void addDim(Dims& dims, int64_t size, std::span<const Touch> touches, size_t d) {
  if (size == 1) return;
  auto last = static_cast<size_t>(dims.count - 1);
  bool joins = dims.count > 0;
  for (size_t a = 0; joins && a < touches.size(); ++a) {
    joins = dims.steps[last][a] * dims.sizes[last] == touches[a].steps[d];
  }
  if (joins) {
    dims.sizes[last] *= size;
    return;
  }
  auto next = static_cast<size_t>(dims.count++);
  dims.sizes[next] = size;
  for (size_t a = 0; a < touches.size(); ++a) dims.steps[next][a] = touches[a].steps[d];
}

// Whether most of what tells them apart lies side by side from row to row. Loads count twice, for
// rows are read in several passes.
bool prefersAcross(const loop::Kernel& kernel, const Walk& walk) {
  int across = 0;
  for (size_t a = 0; a < kernel.accesses.size(); ++a) {
    if (kernel.accesses[a].isIndex() || walk.element_steps[a] == 0 || walk.steps[0][a] == 0) {
      continue;
    }
    const auto item = static_cast<int64_t>(itemSize(kernel.accesses[a].dtype));
    const int weight = a < kernel.accesses.size() - kernel.stores.size() ? 2 : 1;
    if (walk.element_steps[a] == item) across -= weight;
    if (walk.steps[0][a] == item) across += weight;
  }
  return across > 0;
}

constexpr int64_t kLine = 64;  // bytes of the cache
// A row of a tile is a multiple of the elements that compiled code takes at once.
constexpr int64_t kTileRows = 64, kTileElements = 64;
constexpr int kMaxPacked = 2;

// Whether all elements of a load may be read, and it moves in the same way everywhere.
bool isPlainLoad(const loop::Kernel& kernel, size_t access) {
  if (access >= kernel.accesses.size() - kernel.stores.size()) return false;
  return std::none_of(kernel.leaves.begin(), kernel.leaves.end(), [&](const loop::Leaf& leaf) {
    const bool reads = leaf.kind != loop::Leaf::Kind::Number &&
                       leaf.kind != loop::Leaf::Kind::Reduction && leaf.index == access;
    return reads &&
           (leaf.kind == loop::Leaf::Kind::Index || leaf.mask.valid() || leaf.offset.valid());
  });
}

// Whether the lines that a row leaps over push each other out of the cache before the next row
// reads on in them. Steps by a power of two meet in few of its sets.
bool losesLines(int64_t step, int64_t elements) {
  constexpr int64_t kSetBytes = 1 << 16, kWays = 8;
  return elements > kWays * kSetBytes / std::gcd(step, kSetBytes) / 2;
}

// Puts a dimension first that walks within lines where rows leap from line to line.
void planTiles(const loop::Kernel& kernel, Walk& walk, size_t accesses) {
  constexpr int64_t kMinRows = 8;
  walk.tiled = false;
  walk.packed = 0;
  for (size_t a = 0; a < accesses && !walk.tiled; ++a) {
    const int64_t step = std::abs(walk.element_steps[a]);
    if (step < kLine || !losesLines(step, walk.elements)) continue;
    for (size_t d = 0; d < static_cast<size_t>(walk.outer) && !walk.tiled; ++d) {
      if (walk.sizes[d] < kMinRows || walk.steps[d][a] == 0) continue;
      if (std::abs(walk.steps[d][a]) >= kLine) continue;
      std::swap(walk.sizes[0], walk.sizes[d]);
      std::swap(walk.steps[0], walk.steps[d]);
      walk.tiled = true;
    }
  }
  for (size_t a = 0; a < accesses && walk.tiled; ++a) {
    const auto item = static_cast<int64_t>(itemSize(kernel.accesses[a].dtype));
    if (walk.steps[0][a] != item || std::abs(walk.element_steps[a]) < kLine) continue;
    if (__builtin_popcountll(walk.packed) == kMaxPacked || !isPlainLoad(kernel, a)) continue;
    walk.packed |= uint64_t{1} << a;
  }
}

// Element e of row r lies at from + e * step + r and goes to to[r * kTileElements + e].
template <class T>
void turn(const char* from, int64_t step, int64_t rows, int64_t elements, T* to) {
  constexpr int64_t kBlock = kTransposeTile;
  for (int64_t begin = 0; begin < elements; begin += kBlock) {
    const int64_t end = std::min(begin + kBlock, elements);
    int64_t r = 0;
    if constexpr (std::is_same_v<T, float>) {
      for (; end - begin == kBlock && r + kBlock <= rows; r += kBlock) {
        transposeTile(reinterpret_cast<const float*>(from + begin * step) + r,
                      step / static_cast<int64_t>(sizeof(float)), to + r * kTileElements + begin,
                      kTileElements);
      }
    }
    for (; r < rows; ++r) {
      for (int64_t e = begin; e < end; ++e) {
        to[r * kTileElements + e] = reinterpret_cast<const T*>(from + e * step)[r];
      }
    }
  }
}
void turn(int64_t item, const char* from, int64_t step, int64_t rows, int64_t elements, void* to) {
  switch (item) {
    case 1:
      return turn(from, step, rows, elements, static_cast<uint8_t*>(to));
    case 2:
      return turn(from, step, rows, elements, static_cast<uint16_t*>(to));
    case 4:
      return turn(from, step, rows, elements, static_cast<float*>(to));
    default:
      return turn(from, step, rows, elements, static_cast<uint64_t*>(to));
  }
}

// A call of compiled code: words that stay, and those that change.
struct KernelCall {
  static constexpr size_t kNest = loop::kMaxRank * (1 + kMaxAccesses);
  std::array<int64_t, 2 + 3 * kMaxAccesses + kMaxAccesses + 1 + kNest> words;
};
struct Tile {
  alignas(kLine) std::array<int64_t, kTileRows * kTileElements> elements;
};

}  // namespace

void planWalk(const loop::Kernel& kernel, std::span<const int64_t> sizes,
              std::span<const Touch> touches, std::span<const int> order, Walk& walk) {
  Dims inner, outer;
  for (int d : order) {
    auto i = static_cast<size_t>(d);
    bool reduced = (kernel.reduced >> d & 1) != 0;
    addDim(reduced ? inner : outer, sizes[i], touches, i);
  }
  walk.nested = 0;
  for (int i = 1; i < inner.count; ++i) {
    auto to = static_cast<size_t>(walk.nested++);
    walk.nested_sizes[to] = inner.sizes[static_cast<size_t>(i)];
    walk.nested_steps[to] = inner.steps[static_cast<size_t>(i)];
  }
  const size_t n = touches.size();
  int first_outer = 0;
  if (kernel.reduced == 0 && outer.count > 0) {
    walk.elements = outer.sizes[0];
    std::copy_n(outer.steps[0].begin(), n, walk.element_steps.begin());
    first_outer = 1;
  } else if (inner.count > 0) {
    walk.elements = inner.sizes[0];
    std::copy_n(inner.steps[0].begin(), n, walk.element_steps.begin());
  } else {
    walk.elements = 1;
    std::fill_n(walk.element_steps.begin(), n, 0);
    for (size_t a = 0; a < n; ++a) {
      bool varies = false;
      for (int d = 0; d < kernel.rank; ++d) varies |= kernel.accesses[a].varies(d);
      if (varies) {
        walk.element_steps[a] = static_cast<int64_t>(itemSize(kernel.accesses[a].dtype));
      }
    }
  }
  walk.outer = 0;
  for (int i = first_outer; i < outer.count; ++i) {
    auto to = static_cast<size_t>(walk.outer++);
    walk.sizes[to] = outer.sizes[static_cast<size_t>(i)];
    std::copy_n(outer.steps[static_cast<size_t>(i)].begin(), n, walk.steps[to].begin());
  }
  if (walk.outer == 0) {
    walk.outer = 1;
    walk.sizes[0] = 1;
    std::fill_n(walk.steps[0].begin(), n, 0);
  }
  if (kernel.reduced == 0) planTiles(kernel, walk, n);
  walk.across_rows = kernel.reduced != 0 && walk.sizes[0] >= 8 && prefersAcross(kernel, walk);
}

loop::LaneStep laneStep(const loop::Kernel& kernel, const Walk& walk, size_t i) {
  if (walk.packed >> i & 1) return loop::LaneStep::Unit;
  int64_t step = walk.across_rows ? walk.steps[0][i] : walk.element_steps[i];
  const loop::Access& access = kernel.accesses[i];
  const int64_t item = access.isIndex() ? 1 : static_cast<int64_t>(itemSize(access.dtype));
  if (step == item) return loop::LaneStep::Unit;
  if (step == -item) return loop::LaneStep::Reverse;
  return step == 0 ? loop::LaneStep::Zero : loop::LaneStep::Other;
}

namespace {

// Calls compiled code for parts of a walk.
class Caller {
 public:
  Caller(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
         std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function)
      : kernel_(kernel),
        walk_(walk),
        touches_(touches),
        numbers_(numbers),
        flag_(flag),
        function_(function),
        layout_(kernel) {}

  // Rows first … last - 1, of each its elements begin … begin + count - 1.
  void run(int64_t first, int64_t last, int64_t begin, int64_t count) const {
    if (!walk_.tiled) return call(first, last, begin, count);
    while (first < last) {
      const int64_t row = first % walk_.sizes[0];
      const int64_t rows =
          std::min({kTileRows - row % kTileRows, walk_.sizes[0] - row, last - first});
      for (int64_t at = begin; at < begin + count; at += kTileElements) {
        call(first, first + rows, at, std::min(kTileElements, begin + count - at));
      }
      first += rows;
    }
  }

 private:
  using Words = loop::KernelWords;

  // What the call would read apart is turned around, and read from there.
  void packTiles(KernelCall& c, int64_t rows, int64_t count) const {
    static thread_local std::array<Tile, kMaxPacked> tiles;
    size_t next = 0;
    for (size_t a = 0; a < touches_.size(); ++a) {
      if ((walk_.packed >> a & 1) == 0) continue;
      Tile& tile = tiles[next++];
      const auto item = static_cast<int64_t>(itemSize(kernel_.accesses[a].dtype));
      turn(item, reinterpret_cast<const char*>(c.words[Words::base(a)]), walk_.element_steps[a],
           rows, count, tile.elements.data());
      c.words[Words::base(a)] = reinterpret_cast<int64_t>(tile.elements.data());
      c.words[Words::rowStep(a)] = kTileElements * item;
      c.words[Words::elementStep(a)] = item;
    }
  }

  void call(int64_t first, int64_t last, int64_t begin, int64_t count) const {
    const size_t n = touches_.size();
    KernelCall c;
    c.words[Words::kElements] = count;
    for (size_t a = 0; a < n; ++a) {
      c.words[Words::rowStep(a)] = walk_.steps[0][a];
      c.words[Words::elementStep(a)] = walk_.element_steps[a];
    }
    std::copy(numbers_.begin(), numbers_.end(),
              c.words.begin() + static_cast<int64_t>(layout_.numbers));
    c.words[layout_.flag] = reinterpret_cast<int64_t>(flag_);
    for (size_t l = 0; l < static_cast<size_t>(walk_.nested); ++l) {
      c.words[layout_.nestCount(l)] = walk_.nested_sizes[l];
      for (size_t a = 0; a < n; ++a) c.words[layout_.nestStep(l, a)] = walk_.nested_steps[l][a];
    }
    while (first < last) {
      const int64_t row = first % walk_.sizes[0];
      const int64_t rows = std::min(walk_.sizes[0] - row, last - first);
      c.words[Words::kRows] = rows;
      for (size_t a = 0; a < n; ++a) {
        c.words[Words::base(a)] = reinterpret_cast<int64_t>(
            touches_[a].base + begin * walk_.element_steps[a] + row * walk_.steps[0][a]);
      }
      int64_t rest = first / walk_.sizes[0];
      for (size_t d = 1; rest != 0 && d < static_cast<size_t>(walk_.outer); ++d) {
        const int64_t i = rest % walk_.sizes[d];
        rest /= walk_.sizes[d];
        for (size_t a = 0; a < n; ++a) c.words[Words::base(a)] += i * walk_.steps[d][a];
      }
      if (walk_.packed != 0) packTiles(c, rows, count);
      function_(c.words.data());
      first += rows;
    }
  }

  const loop::Kernel& kernel_;
  const Walk& walk_;
  const std::span<const Touch> touches_;
  const std::span<const int64_t> numbers_;
  int64_t* const flag_;
  loop::KernelFunction* const function_;
  const loop::KernelWords layout_;
};

}  // namespace

int64_t grainOf(const loop::Kernel& kernel) {
  const auto cost = static_cast<int64_t>(kernel.expression.nodes().size()) / 8;
  return std::max<int64_t>(1, kGrainSize / std::max<int64_t>(1, cost));
}

void runElements(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
                 std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function,
                 int64_t begin, int64_t count) {
  Caller(kernel, walk, touches, numbers, flag, function).run(0, walk.rows(), begin, count);
}

void runWalk(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
             std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function) {
  const Caller caller(kernel, walk, touches, numbers, flag, function);
  const int64_t rows = walk.rows();
  const int64_t grain = grainOf(kernel);
  const int64_t points = walk.pointsOfRow();
  if (rows * points <= grain) {
    caller.run(0, rows, 0, walk.elements);
  } else if (kernel.reduced == 0 && rows < omp_get_max_threads()) {
    // Multiples of 64 elements keep the pieces on lines of the cache.
    const int64_t pieces = (walk.elements + 63) / 64;
    parallelFor(pieces, std::max<int64_t>(1, grain / 64 / std::max<int64_t>(rows, 1)),
                [&](int64_t begin, int64_t end) {
                  begin *= 64;
                  caller.run(0, rows, begin, std::min(walk.elements, end * 64) - begin);
                });
  } else {
    parallelFor(rows, std::max<int64_t>(1, grain / std::max<int64_t>(points, 1)),
                [&](int64_t begin, int64_t end) { caller.run(begin, end, 0, walk.elements); });
  }
}

}  // namespace wick
