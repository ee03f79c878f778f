// Numbers that differ between examples as expressions of the sizes that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace wick::exported {

// The sizes of examples: one value for each symbol, in each example.
class SizeFit {
 public:
  // `examples[e][k]` is the size k in example e.
  explicit SizeFit(std::vector<std::vector<int64_t>> examples) : examples_(std::move(examples)) {}

  size_t count() const { return examples_.size(); }
  // Returns the expression of symbols s0, s1, … in SymPy's notation that gives `values`, one for each example: a·s + b, a·s·t + b,
  // the lesser or the greater one of a size and a number or of two sizes, (s + b) // d + c, or a product of such quotients;
  // nullopt when none of these does, "" when the values are equal.
  std::optional<std::string> expressionOf(const std::vector<int64_t>& values) const;

 private:
  std::optional<std::string> affine(const std::vector<int64_t>& values) const;
  std::optional<std::string> product(const std::vector<int64_t>& values) const;
  std::optional<std::string> extreme(const std::vector<int64_t>& values) const;
  std::optional<std::string> quotient(const std::vector<int64_t>& values) const;
  std::optional<std::string> productOfQuotients(const std::vector<int64_t>& values) const;

  std::vector<std::vector<int64_t>> examples_;
};

}  // namespace wick::exported
