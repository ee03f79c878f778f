// Which of the numbers in a call's arguments - sizes of tensors, ints - a plan takes as they are,
// and which only as equal to each other.
//
//   x [32, 4], w [4, 8]            sizes as they are
//   x [7, 4], w [4, 8]         →   x [n, 4], w [4, 8]: for every n, also 4
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace wick::autograd {

class SizePattern {
 public:
  // Serves calls with these numbers.
  explicit SizePattern(std::span<const int64_t> numbers)
      : numbers_(numbers.begin(), numbers.end()), classes_(numbers.size()) {}

  bool serves(std::span<const int64_t> numbers) const;
  // The most special pattern that serves what this one does, and these numbers, of the same count.
  SizePattern with(std::span<const int64_t> numbers) const;

  size_t size() const { return numbers_.size(); }
  // The class of a number that may differ from call to call; those of one class are equal in each.
  std::optional<size_t> classOf(size_t i) const { return classes_[i]; }
  // A number that may not.
  int64_t number(size_t i) const { return numbers_[i]; }
  size_t numClasses() const { return num_classes_; }

 private:
  std::vector<int64_t> numbers_;  // of the first call
  std::vector<std::optional<size_t>> classes_;
  size_t num_classes_ = 0;
};

}  // namespace wick::autograd
