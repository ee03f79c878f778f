#include "frontend/suggestions.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <vector>

namespace wick {

namespace {

// Insertions, deletions and replacements that turn one into the other.
size_t editDistance(const std::string& a, const std::string& b) {
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({row[j] + 1, row[j - 1] + 1, replaced});
    }
  }
  return row[b.size()];
}

// Longer names are nobody's typing mistake, and the distance costs the product of the lengths.
constexpr size_t kMaxLength = 64;

}  // namespace

std::string didYouMean(const std::string& name, const std::set<std::string>& candidates) {
  if (name.size() > kMaxLength) return "";
  // One wrong letter in a short name, two (as in swapped letters) or a third of a longer one.
  size_t best_distance = (name.size() <= 3 ? 1 : std::max<size_t>(2, name.size() / 3)) + 1;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength || candidate == name) continue;
    size_t distance = editDistance(name, candidate);
    if (distance < best_distance && distance < name.size()) {
      best_distance = distance;
      best = &candidate;
    }
  }
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

}  // namespace wick
