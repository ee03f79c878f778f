#include "autograd/size_pattern.h"

#include <map>

#include "core/error.h"

namespace wick::autograd {

bool SizePattern::serves(std::span<const int64_t> numbers) const {
  WICK_ASSERT(numbers.size() == size(), "{} numbers for a pattern of {}", numbers.size(), size());
  std::vector<std::optional<int64_t>> found(num_classes_);
  for (size_t i = 0; i < size(); ++i) {
    if (!classes_[i]) {
      if (numbers[i] != numbers_[i]) return false;
      continue;
    }
    std::optional<int64_t>& number = found[*classes_[i]];
    if (number && *number != numbers[i]) return false;
    number = numbers[i];
  }
  return true;
}

SizePattern SizePattern::with(std::span<const int64_t> numbers) const {
  WICK_ASSERT(numbers.size() == size(), "{} numbers for a pattern of {}", numbers.size(), size());
  SizePattern out(numbers_);
  // Two stay equal that were equal before and are now.
  struct Pair {
    std::optional<size_t> before;
    int64_t first, now;
    auto operator<=>(const Pair&) const = default;
  };
  std::map<Pair, size_t> classes;
  for (size_t i = 0; i < size(); ++i) {
    if (!classes_[i] && numbers[i] == numbers_[i]) continue;
    const Pair pair{classes_[i], classes_[i] ? 0 : numbers_[i], numbers[i]};
    out.classes_[i] = classes.try_emplace(pair, classes.size()).first->second;
  }
  out.num_classes_ = classes.size();
  return out;
}

}  // namespace wick::autograd
