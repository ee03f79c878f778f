// Walking several tensors of one shape in step, and moving elements whose dtype does not matter.
#pragma once

#include <cstdint>

#include "core/dim_vector.h"
#include "core/error.h"

namespace wick {

// An element of 16 bytes, for code that only moves elements.
struct Bytes16 {
  uint64_t words[2];
};

// Calls f.operator()<Word>() with an unsigned type of `item_size` bytes (1, 2, 4, 8 or 16).
template <class F>
decltype(auto) dispatchItemSize(size_t item_size, F&& f) {
  switch (item_size) {
    case 1:
      return f.template operator()<uint8_t>();
    case 2:
      return f.template operator()<uint16_t>();
    case 4:
      return f.template operator()<uint32_t>();
    case 8:
      return f.template operator()<uint64_t>();
    case 16:
      return f.template operator()<Bytes16>();
    default:
      throw InternalError(__FILE__, __LINE__,
                          "no element has " + std::to_string(item_size) + " bytes");
  }
}

}  // namespace wick
