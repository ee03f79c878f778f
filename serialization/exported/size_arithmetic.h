// Arithmetic on expressions of the sizes that a program leaves open.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "serialization/exported/size_expression.h"

namespace wick::exported {

// The values that an open size may have.
struct OpenRange {
  int64_t least = 1;
  int64_t most = 64;
};

// Makes expressions over the symbols s0, s1, …, in a form that is simple where all sizes in the ranges allow it.
class SizeArithmetic {
 public:
  explicit SizeArithmetic(std::vector<OpenRange> ranges) : ranges_(std::move(ranges)) {}

  const std::vector<OpenRange>& ranges() const { return ranges_; }
  static SizeExpression number(int64_t value);
  static SizeExpression symbol(size_t index);
  SizeExpression sum(const SizeExpression& a, const SizeExpression& b) const;
  SizeExpression difference(const SizeExpression& a, const SizeExpression& b) const;
  SizeExpression product(const SizeExpression& a, const SizeExpression& b) const;
  // Rounded down; the divisor is not zero.
  SizeExpression quotient(const SizeExpression& a, const SizeExpression& b) const;
  SizeExpression remainder(const SizeExpression& a, const SizeExpression& b) const;
  SizeExpression least(const SizeExpression& a, const SizeExpression& b) const;
  SizeExpression most(const SizeExpression& a, const SizeExpression& b) const;

  // Bounds that hold for all sizes, if not the narrowest.
  std::pair<int64_t, int64_t> bounds(const SizeExpression& expression) const;
  // Whether the value may leave the ints of 64 bits for sizes in the ranges, of up to a million.
  bool mayOverflow(const SizeExpression& expression) const;
  // The value at sizes by the numbers of their symbols; nullopt for a division by zero and numbers that are too large.
  static std::optional<int64_t> valueAt(const SizeExpression& expression,
                                        const std::vector<int64_t>& sizes);

 private:
  std::vector<OpenRange> ranges_;
};

}  // namespace wick::exported
