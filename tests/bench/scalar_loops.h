// The programs of interpreter_bench written by hand, for comparison.
#pragma once

#include <cstdint>

namespace wick {

int64_t fibonacciInC(int64_t n);
int64_t collatzInC(int64_t n);
int64_t mandelbrotInC(int64_t n);

}  // namespace wick
