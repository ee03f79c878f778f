// Work of the standard library on many elements that leaves off when the budget of the calling
// thread (core/budget.h) is exhausted.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "core/budget.h"

namespace wick {

// The comparison `before`, for std::sort and its kin, which then raise what Pace raises. `pace`
// must outlive them. `weight` is a comparison's, in plain steps.
template <class Compare>
auto paced(Pace& pace, Compare before, int64_t weight = 1) {
  return [&pace, before, weight](const auto& a, const auto& b) {
    pace.step(weight);
    return before(a, b);
  };
}

// Sorts of more elements than this take so long that their comparisons should be paced.
inline constexpr int64_t kLongSort = int64_t{1} << 18;

namespace detail {
// Memory that is touched for the first time takes the system a millisecond for each of these.
inline constexpr size_t kBytesAtOnce = size_t{4} << 20;
}  // namespace detail

// std::memset with zero.
inline void clearBytes(void* to, size_t bytes) {
  auto* at = static_cast<char*>(to);
  for (; bytes > detail::kBytesAtOnce; bytes -= detail::kBytesAtOnce) {
    std::memset(at, 0, detail::kBytesAtOnce);
    at += detail::kBytesAtOnce;
    checkBudget();
  }
  if (bytes > 0) std::memset(at, 0, bytes);
}

// std::memcpy.
inline void copyBytes(void* to, const void* from, size_t bytes) {
  auto* at = static_cast<char*>(to);
  const auto* source = static_cast<const char*>(from);
  for (; bytes > detail::kBytesAtOnce; bytes -= detail::kBytesAtOnce) {
    std::memcpy(at, source, detail::kBytesAtOnce);
    at += detail::kBytesAtOnce;
    source += detail::kBytesAtOnce;
    checkBudget();
  }
  if (bytes > 0) std::memcpy(at, source, bytes);
}

}  // namespace wick
