#include "runtime/fusion/split_walk.h"

#include <algorithm>

#include "core/parallel.h"

namespace wick {

namespace {

using Place = loop::RowStage::Place;

// One element a row for each reduction, or for each of its parts.
class RowResults {
 public:
  RowResults(const loop::Kernel& kernel, int64_t parts, int64_t rows)
      : words_per_reduction_(static_cast<size_t>(parts * rows)),
        words_(kernel.reductions.size() * words_per_reduction_) {}
  char* of(size_t reduction) {
    return reinterpret_cast<char*>(words_.data() + reduction * words_per_reduction_);
  }

 private:
  size_t words_per_reduction_;
  std::vector<int64_t> words_;  // an item takes one at most
};

}  // namespace

RowCut planCut(const loop::Kernel& kernel, const Walk& walk) {
  // As many rows are enough for all threads; below so many points nothing is gained.
  constexpr int64_t kEnoughRows = 16, kLeastGrains = 4;
  constexpr int64_t kMostParts = 128;
  constexpr int64_t kVectors = 256;  // elements that compiled code takes at once, at most
  RowCut cut;
  const int64_t rows = walk.rows();
  if (kernel.reductions.empty() || rows == 0 || rows >= kEnoughRows) return cut;
  const int64_t points = rows * walk.pointsOfRow(), grain = grainOf(kernel);
  if (points < kLeastGrains * grain) return cut;
  const int64_t wanted = std::clamp<int64_t>(2 * points / grain, 2, kMostParts);
  cut.loop = walk.nested - 1;
  const auto sizeOf = [&](int loop) {
    return loop < 0 ? walk.elements : walk.nested_sizes[static_cast<size_t>(loop)];
  };
  for (int loop = walk.nested - 2; loop >= RowCut::kElements; --loop) {
    if (sizeOf(cut.loop) < wanted && sizeOf(loop) > sizeOf(cut.loop)) cut.loop = loop;
  }
  const int64_t size = sizeOf(cut.loop);
  cut.size = (size + wanted - 1) / wanted;
  if (cut.loop == RowCut::kElements) cut.size = (cut.size + kVectors - 1) / kVectors * kVectors;
  cut.parts = (size + cut.size - 1) / cut.size;
  return cut;
}

Walk stageWalk(const loop::RowStage& stage, const Walk& whole, bool per_row) {
  Walk walk;
  walk.elements = per_row ? 1 : whole.elements;
  walk.nested = per_row ? 0 : whole.nested;
  walk.nested_sizes = whole.nested_sizes;
  walk.outer = whole.outer;
  walk.sizes = whole.sizes;
  walk.across_rows = whole.across_rows;
  const auto outer = static_cast<size_t>(walk.outer), nested = static_cast<size_t>(walk.nested);
  for (size_t i = 0; i < stage.places.size(); ++i) {
    const size_t a = stage.places[i].index;
    if (stage.places[i].kind == Place::Kind::Access) {
      walk.element_steps[i] = whole.element_steps[a];
      for (size_t l = 0; l < nested; ++l) walk.nested_steps[l][i] = whole.nested_steps[l][a];
      for (size_t d = 0; d < outer; ++d) walk.steps[d][i] = whole.steps[d][a];
      continue;
    }
    walk.element_steps[i] = 0;
    for (size_t l = 0; l < nested; ++l) walk.nested_steps[l][i] = 0;
    auto next = static_cast<int64_t>(itemSize(stage.kernel.accesses[i].dtype));
    for (size_t d = 0; d < outer; ++d) {
      walk.steps[d][i] = next;
      next *= walk.sizes[d];
    }
  }
  return walk;
}

void runSplit(const loop::Kernel& kernel, const loop::SplitRows& split, const RowCut& cut,
              const Walk& whole, std::span<const Touch> touches, std::span<const int64_t> numbers,
              int64_t* flag, std::span<loop::KernelFunction* const> functions) {
  const int64_t rows = whole.rows();
  RowResults results(kernel, 1, rows), parts(kernel, cut.parts, rows);
  std::vector<int64_t> stage_numbers(numbers.begin(), numbers.end());
  stage_numbers.push_back(whole.pointsOfRow());
  for (size_t s = 0; s < split.stages.size(); ++s) {
    const loop::RowStage& stage = split.stages[s];
    const bool per_row = split.ends_per_row && s + 1 == split.stages.size();
    const Walk walk = stageWalk(stage, whole, per_row);
    std::vector<Touch> first(stage.places.size());
    for (size_t i = 0; i < first.size(); ++i) {
      const Place& place = stage.places[i];
      first[i].base = place.kind == Place::Kind::Access   ? touches[place.index].base
                      : place.kind == Place::Kind::Result ? results.of(place.index)
                                                          : parts.of(place.index);
    }
    if (per_row) {
      runElements(stage.kernel, walk, first, stage_numbers, flag, functions[s], 0, 1);
      continue;
    }
    parallelFor(cut.parts, 1, [&](int64_t begin, int64_t end) {
      Walk part_walk = walk;
      std::vector<Touch> part_touches = first;
      for (int64_t part = begin; part < end; ++part) {
        const int64_t at = part * cut.size;
        const bool within = cut.loop == RowCut::kElements;
        const auto loop = static_cast<size_t>(within ? 0 : cut.loop);
        const int64_t size = within ? walk.elements : walk.nested_sizes[loop];
        const int64_t count = std::min(cut.size, size - at);
        for (size_t i = 0; i < first.size(); ++i) {
          int64_t offset = within ? 0 : at * walk.nested_steps[loop][i];
          if (stage.places[i].kind == Place::Kind::Part) {
            offset = part * rows * static_cast<int64_t>(itemSize(stage.kernel.accesses[i].dtype));
          }
          part_touches[i].base = first[i].base + offset;
        }
        if (!within) part_walk.nested_sizes[loop] = count;
        runElements(stage.kernel, part_walk, part_touches, stage_numbers, flag, functions[s],
                    within ? at : 0, within ? count : walk.elements);
      }
    });
    for (size_t i = 0; i < first.size(); ++i) {
      if (stage.places[i].kind != Place::Kind::Part) continue;
      const uint32_t r = stage.places[i].index;
      loop::combineParts(kernel.reductions[r].op, stage.kernel.accesses[i].dtype, parts.of(r),
                         cut.parts, rows, results.of(r));
    }
  }
}

}  // namespace wick
