#include "core/suggestions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace wick {

namespace {

// A letter more, less or exchanged costs kEdit; two neighbours that are swapped, the likelier
// mistake, a bit less.
constexpr size_t kEdit = 4;
constexpr size_t kSwap = 3;

// The least cost of turning one into the other.
size_t editCost(const std::string& a, const std::string& b) {
  std::vector<size_t> before(b.size() + 1);  // two rows up
  std::vector<size_t> above(b.size() + 1);
  std::vector<size_t> row(b.size() + 1);
  for (size_t j = 0; j <= b.size(); ++j) row[j] = j * kEdit;
  for (size_t i = 1; i <= a.size(); ++i) {
    before.swap(above);
    above.swap(row);
    row[0] = i * kEdit;
    for (size_t j = 1; j <= b.size(); ++j) {
      size_t cost = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : kEdit);
      cost = std::min({cost, above[j] + kEdit, row[j - 1] + kEdit});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost = std::min(cost, before[j - 2] + kSwap);
      }
      row[j] = cost;
    }
  }
  return row[b.size()];
}

// Longer names are nobody's typing mistake, and the distance costs the product of the lengths.
constexpr size_t kMaxLength = 64;

}  // namespace

std::string didYouMean(const std::string& name, const std::set<std::string>& candidates) {
  if (name.size() > kMaxLength) return "";
  // One wrong letter in a short name, two or a third of a longer one.
  size_t best_cost = kEdit * (name.size() <= 3 ? 1 : std::max<size_t>(2, name.size() / 3)) + 1;
  const std::string* best = nullptr;
  for (const std::string& candidate : candidates) {
    if (candidate.size() > kMaxLength || candidate == name) continue;
    size_t cost = editCost(name, candidate);
    if (cost < best_cost && cost < kEdit * name.size()) {
      best_cost = cost;
      best = &candidate;
    }
  }
  return best ? fmt::format("; did you mean '{}'?", *best) : "";
}

}  // namespace wick
