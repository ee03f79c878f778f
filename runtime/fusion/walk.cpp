#include "runtime/fusion/walk.h"

#include "core/parallel.h"

namespace wick {

namespace {

// Of float32 additions, about: what makes a second thread pay.
int64_t costOfElement(const loop::Kernel& kernel) {
  return std::max<int64_t>(1, static_cast<int64_t>(kernel.expression.nodes().size()) / 8);
}

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

// Whether most of the inputs that tell them apart lie side by side from row to row.
bool prefersAcross(const loop::Kernel& kernel, const Walk& walk) {
  int across = 0;
  for (size_t a = 0; a < kernel.accesses.size(); ++a) {
    if (kernel.accesses[a].isIndex()) continue;
    auto item = static_cast<int64_t>(itemSize(kernel.accesses[a].dtype));
    if (walk.element_steps[a] == item) --across;
    if (walk.steps[0][a] == item && walk.element_steps[a] != 0) ++across;
  }
  return across > 0;
}

// A call of compiled code: words that stay, and those that change.
struct Call {
  std::array<int64_t, 2 + 3 * kMaxAccesses + kMaxAccesses + 1> words;
};

}  // namespace

bool planWalk(const loop::Kernel& kernel, std::span<const int64_t> sizes,
              std::span<const Touch> touches, std::span<const int> order, Walk& walk) {
  Dims inner, outer;
  for (int d : order) {
    auto i = static_cast<size_t>(d);
    bool reduced = (kernel.reduced >> d & 1) != 0;
    addDim(reduced ? inner : outer, sizes[i], touches, i);
  }
  if (kernel.reduced != 0 && inner.count > 1) return false;
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
  walk.across_rows = kernel.reduced != 0 && walk.sizes[0] >= 8 && prefersAcross(kernel, walk);
  return true;
}

loop::LaneStep laneStep(const loop::Kernel& kernel, const Walk& walk, size_t i) {
  int64_t step = walk.across_rows ? walk.steps[0][i] : walk.element_steps[i];
  const loop::Access& access = kernel.accesses[i];
  if (step == (access.isIndex() ? 1 : static_cast<int64_t>(itemSize(access.dtype)))) {
    return loop::LaneStep::Unit;
  }
  return step == 0 ? loop::LaneStep::Zero : loop::LaneStep::Other;
}

void runWalk(const loop::Kernel& kernel, const Walk& walk, std::span<const Touch> touches,
             std::span<const int64_t> numbers, int64_t* flag, loop::KernelFunction* function) {
  using Words = loop::KernelWords;
  const size_t n = touches.size();
  const loop::KernelWords layout(kernel);
  // Rows first … last - 1 of one innermost outer dimension, elements begin … begin + count - 1.
  auto call = [&](int64_t first, int64_t last, int64_t begin, int64_t count) {
    Call c;
    c.words[Words::kElements] = count;
    for (size_t a = 0; a < n; ++a) {
      c.words[Words::rowStep(a)] = walk.steps[0][a];
      c.words[Words::elementStep(a)] = walk.element_steps[a];
    }
    std::copy(numbers.begin(), numbers.end(),
              c.words.begin() + static_cast<int64_t>(layout.numbers));
    c.words[layout.flag] = reinterpret_cast<int64_t>(flag);
    while (first < last) {
      const int64_t row = first % walk.sizes[0];
      const int64_t rows = std::min(walk.sizes[0] - row, last - first);
      c.words[Words::kRows] = rows;
      for (size_t a = 0; a < n; ++a) {
        c.words[Words::base(a)] = reinterpret_cast<int64_t>(
            touches[a].base + begin * walk.element_steps[a] + row * walk.steps[0][a]);
      }
      int64_t rest = first / walk.sizes[0];
      for (size_t d = 1; rest != 0 && d < static_cast<size_t>(walk.outer); ++d) {
        const int64_t i = rest % walk.sizes[d];
        rest /= walk.sizes[d];
        for (size_t a = 0; a < n; ++a) c.words[Words::base(a)] += i * walk.steps[d][a];
      }
      function(c.words.data());
      first += rows;
    }
  };
  const int64_t rows = walk.rows();
  const int64_t grain = std::max<int64_t>(1, kGrainSize / costOfElement(kernel));
  if (rows * walk.elements <= grain) {
    call(0, rows, 0, walk.elements);
  } else if (kernel.reduced == 0 && rows < omp_get_max_threads()) {
    // Multiples of 64 elements keep the pieces on lines of the cache.
    const int64_t pieces = (walk.elements + 63) / 64;
    parallelFor(pieces, std::max<int64_t>(1, grain / 64 / std::max<int64_t>(rows, 1)),
                [&](int64_t begin, int64_t end) {
                  begin *= 64;
                  call(0, rows, begin, std::min(walk.elements, end * 64) - begin);
                });
  } else {
    parallelFor(rows, std::max<int64_t>(1, grain / std::max<int64_t>(walk.elements, 1)),
                [&](int64_t begin, int64_t end) { call(begin, end, 0, walk.elements); });
  }
}

}  // namespace wick
