// The innermost loop of copies: one strided row of elements, converted from one dtype to another.
#pragma once

#include "core/dtype.h"

namespace wick {

// Copies n elements; the steps are in bytes. The rows must not overlap.
using RowKernel = void (*)(char* dst, int64_t dst_step, const char* src, int64_t src_step,
                           int64_t n);

// The loop that converts as core/convert.h does; a plain move when the dtypes are equal.
RowKernel rowKernel(DType to, DType from);

}  // namespace wick
