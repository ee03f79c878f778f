// The allocation limit (core/tensor.h) for memory that is no tensor's.
#pragma once

#include <cstddef>

namespace wick {

// RuntimeError when `bytes` more would exceed what setAllocationLimit allows. What a program can
// make large at once (long strings, long lists) asks here before; such memory is not counted in
// allocatedBytes(). `op` names the operator in the message. Thread-safe.
void checkAllocation(const char* op, size_t bytes);

}  // namespace wick
