#include "lazy/effects.h"

#include <string_view>
#include <unordered_set>

namespace wick::lazy {

namespace {

// Filled before main().
std::unordered_set<std::string_view>& names() {
  static auto& made = *new std::unordered_set<std::string_view>;
  return made;
}

}  // namespace

RecordEffects::RecordEffects(std::span<const char* const> given) {
  for (const char* name : given) names().insert(name);
}

bool hasRecordedEffects(const Operator& op) {
  return op.has(kSideEffects) && names().contains(op.schema().name());
}

}  // namespace wick::lazy
