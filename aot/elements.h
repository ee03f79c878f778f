// Steps that move, order and add up elements, by functions of runtime/wick_aot_elements.h.
#pragma once

#include <string>
#include <vector>

#include "aot/program.h"
#include "core/tensor.h"
#include "runtime/kernels/device_layers.h"

namespace wick::aot {

// Operands of a FunctionStep: tensors of the device; an undefined one is a null pointer.
FunctionStep::Operand reads(const Tensor& t);
FunctionStep::Operand writes(const Tensor& t);
FunctionStep::Operand changes(const Tensor& t);
// As words of its elements' size, whatever they mean.
FunctionStep::Operand asWords(FunctionStep::Operand operand);
// int64 numbers that functions write or work with.
Tensor integers(int64_t count);
Tensor number();
// Two float64 numbers that are known.
Tensor numbersOf(double first, double second = 0);
// "float32[2, 3]": a tensor in a message, without the device, which only the recording knows.
std::string shown(const Tensor& t);
// "uint32_t": the C++ type of an element of so many bytes, whatever it means.
std::string wordOf(size_t bytes);
// The C++ type of the elements. NotAhead for those that functions do not take: booleans, reduced floats,
// complex numbers.
std::string elementType(const char* op, const Tensor& t);

void addFunction(const char* op, std::string function, std::vector<FunctionStep::Operand> operands,
                 std::vector<int64_t> numbers, std::string complaint = "");

// As DeviceLayers has it.
void addWeightedRows(const char* op, const Tensor& x, const Tensor& out, int64_t source_rows,
                     int64_t inner, const WeightedRows& rows);

}  // namespace wick::aot
