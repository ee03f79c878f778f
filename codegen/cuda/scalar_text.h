// Scalar arithmetic as CUDA C: each node of an Expression computes what the eager kernels of the CPU
// compute. Nothing is contracted or approximated; the text is to be compiled with -fmad=false.
#pragma once

#include <span>
#include <string>

#include "codegen/text/scalar_text.h"

namespace wick::codegen {

using NoCudaText = NoText;

// "float": of elements in memory and of values alike.
std::string cudaType(DType type);
// `value` is the bits of an element (Number arguments of kernels), a long long.
std::string cudaFromBits(const std::string& value, DType type);
// Of a node that is no input; `operands` are texts of operands, of dtypes `types`.
std::string cudaText(const ScalarNode& node, std::span<const std::string> operands,
                     std::span<const DType> types);
std::string cudaConvert(const std::string& value, DType from, DType to);
// The definitions that the texts of these expressions' nodes rely on.
std::string cudaPreamble(const Expression& expression);

}  // namespace wick::codegen
