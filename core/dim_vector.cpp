#include "core/dim_vector.h"

#include "core/error.h"

namespace wick {

void DimVector::checkRoom(size_t n) {
  constexpr size_t kMost = size_t{1} << 30;
  WICK_CHECK(n <= kMost, "a list of {} numbers is too long", n);
  checkAllocation("a list of numbers", n * sizeof(int64_t));
}

}  // namespace wick
