// The reference evaluator of expressions: one node at a time, on plain numbers.
#pragma once

#include <cstring>
#include <span>
#include <vector>

#include "codegen/scalar/expression.h"
#include "core/dtype_dispatch.h"

namespace wick {

// In expressions numbers have these dtypes; in memory reduced floats too, and never complex ones.
inline constexpr unsigned kComputedDTypes = kIntegers | kBool | kFloats;
inline constexpr unsigned kStoredDTypes = kComputedDTypes | kReducedFloats;

// The bits of a number of some dtype, in the low bytes.
using ScalarBits = uint64_t;
template <class T>
T fromScalarBits(ScalarBits bits) {
  static_assert(sizeof(T) <= sizeof bits);
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
  return value;
}
template <class T>
ScalarBits toScalarBits(T value) {
  static_assert(sizeof value <= sizeof(ScalarBits));
  ScalarBits bits = 0;
  std::memcpy(&bits, &value, sizeof value);
  return bits;
}

// What a node gives for its operands' values, which have the dtypes `types`. Input nodes have no
// value of their own: InternalError.
ScalarBits evaluateNode(const ScalarNode& node, std::span<const ScalarBits> operands,
                        std::span<const DType> types);
// Values of all nodes, in their order; inputs[i] is the value of Input i.
std::vector<ScalarBits> evaluate(const Expression& expression, std::span<const ScalarBits> inputs);

}  // namespace wick
