// Which dtypes the tensors of out= arguments may have.
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.h"
#include "core/function_schema.h"

namespace wick {

enum class OutputRule : uint8_t {
  Castable,  // those that the result's dtype can be cast to, as with PyTorch's iterators
  Real,      // those of them that are not complex
  Same,      // the result's dtype alone
  Any,
  Boolean,  // also uint8, where true and false are meant
};

// PyTorch's rule for an overload, by name: nothing else of an operator tells.
OutputRule outputRuleOf(const FunctionSchema& schema);

// RuntimeError, which names the operator, when a result of dtype `result` cannot be written to `out`.
void checkOutput(const std::string& name, OutputRule rule, DType result, DType out);

}  // namespace wick
