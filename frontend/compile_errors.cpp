#include "frontend/compile_errors.h"

#include <algorithm>

namespace wick {

void CompileErrors::throwIfAny() const {
  if (all_.empty()) return;
  std::vector<const CompileError*> sorted;
  for (const CompileError& error : all_) sorted.push_back(&error);
  const bool one_text = std::all_of(all_.begin(), all_.end(), [&](const CompileError& error) {
    return error.range().source() == all_.front().range().source();
  });
  if (one_text) {
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
      return a->range().start() < b->range().start();
    });
  }
  CompileError together = *sorted.front();
  for (size_t i = 1; i < sorted.size(); ++i) together.append(*sorted[i]);
  throw together;
}

void CompileErrors::add(const CompileError& error) {
  ++tries_;
  // Where the error was met from, which may follow, makes no other error of it.
  const CompileError alone(error.range(), error.brief());
  if (seen_.insert(alone.what()).second) all_.push_back(error);
}

}  // namespace wick
