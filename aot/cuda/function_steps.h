// What the kinds of functions share: kernels over operands, and memory between them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "aot/cuda/functions.h"
#include "runtime/cuda/kernel_series.h"

namespace wick::aot {

using Operand = FunctionStep::Operand;

// Memory of `words` words of 64 bits, which the next kernel writes first.
Operand memoryOf(int64_t words, DType dtype = DType::Long);
Operand asRead(Operand operand);
Operand asChanged(Operand operand);
// Another part of the same memory.
Operand behind(Operand operand, int64_t words);

inline DeviceKernelStep kernelOf(std::string text, const char* name, int64_t points,
                                 std::vector<Operand> operands, std::vector<int64_t> numbers) {
  return {std::move(text), name, points, std::move(operands), std::move(numbers)};
}
// The kernels of a series, over the operands that it is given.
void addSeries(std::vector<AnyStep>& steps, const cuda::KernelSeries& series,
               std::vector<Operand> given);
// `values` and `order` become the elements of one row in order, and their numbers before.
void addOrder(std::vector<AnyStep>& steps, const Operand& from, const Operand& values,
              const Operand& order, int64_t count);

// The functions by what they do; empty for others. `name` is that of the function without its arguments.
std::vector<AnyStep> orderingSteps(const FunctionStep& step, std::string_view name);
std::vector<AnyStep> writingSteps(const FunctionStep& step, std::string_view name);
std::vector<AnyStep> selectingSteps(const FunctionStep& step, std::string_view name);

// In a FunctionStep that a kernel writes: the sum of counts, and the bins of a histogram. Of the device alone.
inline constexpr const char* kAddCounts = "addCounts";
inline constexpr const char* kFillBins = "fillBins";
std::string addCountsText();

}  // namespace wick::aot
