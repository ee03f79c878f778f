// A bounded walk over values in tuples and lists. Walks that are not this one do more: they go into objects
// and dicts, each once (runtime/device_moves.h), or tell what contains what (collectState in
// runtime/repeats.h).
#pragma once

#include <algorithm>
#include <cstddef>

#include "core/ivalue.h"

namespace wick {

// Calls `leaf` for each value that is no tuple and no list, in tuples and lists within each other. False, at
// once, where it gives false, and where these are too many or nest too deeply: programs make lists that
// hold one list twice, which holds another one twice, and so on.
template <class F>
bool allElements(const IValue& value, F&& leaf) {
  constexpr size_t kMost = 100000;
  constexpr int kDeepest = 64;
  size_t seen = 0;
  const auto walk = [&](const auto& self, const IValue& v, int depth) -> bool {
    if (++seen > kMost || depth > kDeepest) return false;
    if (!v.isTuple() && !v.isList()) return leaf(v);
    return std::ranges::all_of(v.elements(),
                               [&](const IValue& e) { return self(self, e, depth + 1); });
  };
  return walk(walk, value, 0);
}

}  // namespace wick
