// Scalar arithmetic as C++17: each node of an Expression computes what the eager kernels compute, if
// the text is compiled with -ffp-contract=off. The text needs cppSupportText() in front.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/text/scalar_text.h"

namespace wick::codegen {

using NoCppText = NoText;

// "float": of elements in memory and of values alike.
std::string cppType(DType type);
// A number that is known, from its bits in memory.
std::string cppNumber(uint64_t bits, DType type);
// Of a node that is no input; `operands` are texts of operands, of dtypes `types`. Throws NoCppText.
std::string cppText(const ScalarNode& node, std::span<const std::string> operands,
                    std::span<const DType> types);
std::string cppConvert(const std::string& value, DType from, DType to);

// What the text of any node relies on: includes, macros, types and functions. It opens an unnamed
// namespace, in which the rest stands too.
std::string cppSupportText();
// The functions and tables beyond these that the nodes of an expression use, in an order in which they
// may be defined. One definition of a name serves all expressions.
struct CppFunction {
  std::string name;
  std::string text;
};
std::vector<CppFunction> cppFunctions(const Expression& expression);

}  // namespace wick::codegen
