#include "frontend/carried_values.h"

#include "core/error.h"

namespace wick {

namespace {

constexpr size_t kFree = 100'000;
constexpr size_t kForNode = 2;

}  // namespace

void CarriedValues::add(size_t count, size_t nodes, const SourceRange& range) {
  count_ += count;
  if (count_ <= kFree + kForNode * nodes) return;
  throwCompileError(
      range,
      "the branches, loops and early exits here hand on too much, each at every level "
      "around it: split the function into several");
}

}  // namespace wick
