// Operators on single numbers that compiled models compute by a function of wick_aot_numbers.h.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/dtype.h"

namespace wick::aot {

struct NumberFunction {
  // What it takes and gives; `Wider`: floats when one of its operands is a float.
  enum class Kind : uint8_t { Ints, Floats, Wider, ToInt };
  std::string_view op;  // "aten::floordiv"
  size_t operands;
  const char* name;  // in wick_aot
  Kind kind;
  // The same here and now: what it raises, or null. One of the two may be null.
  const char* (*of_ints)(const int64_t* from, int64_t* to);
  const char* (*of_floats)(const double* from, void* to);

  // What it computes with, and gives, when some operand is a float or none is.
  DType operandType(bool any_float) const;
  DType resultType(bool any_float) const;
};

// The function of an operator with so many operands, all of them numbers; null for others. `gives_int` tells
// powers of ints apart, which are floats or ints.
const NumberFunction* numberFunction(std::string_view op, size_t operands, bool gives_int);
// By its own name.
const NumberFunction* numberFunctionNamed(std::string_view name);

}  // namespace wick::aot
