// Numbers that differ between examples as expressions of the sizes that differ.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "serialization/exported/size_arithmetic.h"

namespace wick::exported {

// Sizes of one tensor that a number may follow from.
using SizeVector = std::vector<SizeExpression>;

// The sizes of examples: one value for each symbol, in each example.
class SizeFit {
 public:
  // `examples[e][k]` is the size k in example e.
  SizeFit(std::vector<std::vector<int64_t>> examples, std::vector<OpenRange> ranges)
      : examples_(std::move(examples)), arithmetic_(std::move(ranges)) {}

  size_t count() const { return examples_.size(); }
  const std::vector<std::vector<int64_t>>& examples() const { return examples_; }
  const SizeArithmetic& arithmetic() const { return arithmetic_; }
  // Whether the expression gives these values, one for each example.
  bool gives(const SizeExpression& expression, const std::vector<int64_t>& values) const;
  // Returns the expression that gives `values`; nullopt when there is none, or when several do that are not the same for all sizes.
  // Tried are: one of the sizes in `near`, a·s + b and a·s·t + b of symbols and a·n + b of sizes in `near`, products of sizes that
  // are neighbours in `near`, the lesser or greater of two, (s + b) // d + c, and products of quotients.
  std::optional<SizeExpression> expressionOf(const std::vector<int64_t>& values,
                                             const std::vector<SizeVector>& near = {}) const;

 private:
  // An expression with its values in the examples.
  struct Base {
    SizeExpression expression;
    std::vector<int64_t> values;
  };
  std::optional<Base> baseOf(const SizeExpression& expression) const;
  std::optional<SizeExpression> affine(const std::vector<int64_t>& values, const Base& base) const;
  std::optional<SizeExpression> productOfNeighbours(const std::vector<int64_t>& values,
                                                    const std::vector<SizeVector>& near) const;
  std::optional<SizeExpression> extremeOf(const std::vector<int64_t>& values,
                                          const std::vector<Base>& bases) const;
  void addQuotients(const std::vector<int64_t>& values, const Base& base,
                    std::vector<SizeExpression>& into) const;
  void addProductsOfQuotients(const std::vector<int64_t>& values,
                              std::vector<SizeExpression>& into) const;
  std::optional<SizeExpression> onlyOne(const std::vector<SizeExpression>& candidates) const;
  const std::vector<std::vector<int64_t>>& probes() const;

  std::vector<std::vector<int64_t>> examples_;
  SizeArithmetic arithmetic_;
  mutable std::vector<std::vector<int64_t>> probes_;
};

}  // namespace wick::exported
