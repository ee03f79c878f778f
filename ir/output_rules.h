// Which dtypes the tensors of out= arguments may have.
#pragma once

#include <cstdint>
#include <string>

#include "core/dtype.h"

namespace wick {

enum class OutputRule : uint8_t {
  Castable,  // those that the result's dtype can be cast to, as with PyTorch's iterators
  Real,      // those of them that are not complex
  Same,      // the result's dtype alone
  Any,
  Boolean,  // also uint8, where true and false are meant
};

// RuntimeError, which names the operator, when a result of dtype `result` cannot be written to `out`.
void checkOutput(const std::string& name, OutputRule rule, DType result, DType out);

}  // namespace wick
