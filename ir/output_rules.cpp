#include "ir/output_rules.h"

#include "core/error.h"

namespace wick {

void checkOutput(const std::string& name, OutputRule rule, DType result, DType out) {
  if (result == out || rule == OutputRule::Any) return;
  if (rule == OutputRule::Boolean && (out == DType::Byte || out == DType::Bool)) return;
  WICK_CHECK(rule == OutputRule::Castable || (rule == OutputRule::Real && !isComplex(out)),
             "{}: Expected out tensor to have dtype {}, but got {} instead", name, toString(result),
             toString(out));
  WICK_CHECK(canCast(result, out), "{}: result type {} can't be cast to the desired output type {}",
             name, toString(result), toString(out));
}

}  // namespace wick
