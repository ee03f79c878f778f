// How many places there are, where elements decide it.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace wick::aot {

// Of positions, which are int64, dense, and end the call with `complaint` where they are negative: how many places there
// must be so that all of them are among them, `least` at least.
int64_t placesFor(const char* op, const Tensor& at, int64_t least, const std::string& complaint);

}  // namespace wick::aot
