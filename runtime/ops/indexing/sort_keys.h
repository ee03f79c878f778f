// Elements as whole numbers without sign, which compare as PyTorch orders elements: NaN is larger
// than every number, and zeros of both signs are equal. What orders elements works on these, so it
// exists for two widths instead of for each dtype.
#pragma once

#include <cstdint>

#include "core/dtype.h"

namespace wick::ops {

// Writes the keys of `count` elements of `dtype`, a real number or bool of at most sizeof(K) bytes.
// Descending keys fall where elements rise. K is uint32_t or uint64_t.
template <class K>
void fillSortKeys(DType dtype, const void* from, int64_t count, bool descending, K* to);

// The ascending key of NaN. For integers it is that of the largest number.
template <class K>
inline constexpr K kNanKey = ~K{0};

}  // namespace wick::ops
