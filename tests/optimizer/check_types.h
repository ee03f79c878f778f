// Calls operators with random arguments and compares their results with what shape rules say.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "core/type.h"
#include "ir/symbolic_sizes.h"

namespace wick {

// Compares tensors of one run with their types: a symbol must stand for the same number wherever it
// is met, and an expression for what it says.
class TypeChecker {
 public:
  explicit TypeChecker(const SymbolicSizes& sizes) : sizes_(sizes) {}

  // "" or what does not hold of the tensor.
  std::string check(const Type& type, const Tensor& tensor);

 private:
  bool fits(const Size& s, int64_t number);
  const SymbolicSizes& sizes_;
  std::unordered_map<int64_t, int64_t> numbers_;
};

struct TypeCheckCounts {
  uint64_t calls = 0;   // that did not raise
  uint64_t dtypes = 0;  // results whose dtype the rule knew
  uint64_t ranks = 0;
  uint64_t sizes = 0;     // all of them, when the inputs were known completely
  uint64_t complete = 0;  // calls whose inputs were
};

// One random call of an operator for each seed from `first` on, `count` of them: the arguments'
// types are told in full or in part, propagateTypes says the types of the results, and the results
// must have them. Returns the failures; `counts` is filled by operator ("aten::add.Tensor").
// Operators without a rule are left out.
std::vector<std::string> checkOperatorTypes(const std::string& name, uint64_t first, uint64_t count,
                                            std::map<std::string, TypeCheckCounts>& counts);

// The same calls, after which tensors among the arguments must be as they were, to the bit, unless
// the operator says that it writes them (Operator::writtenArguments). `calls` counts those that did
// not raise.
std::vector<std::string> checkOperatorWrites(const std::string& name, uint64_t first,
                                             uint64_t count, uint64_t& calls);

// The names of all operators but derived forms and those that do more than compute.
std::vector<std::string> plainOperators();
// The names of the operators that have a rule, and of those that give tensors and have none.
std::vector<std::string> operatorsWithRules();
std::vector<std::string> operatorsWithoutRules();

}  // namespace wick
