#include "core/product_precision.h"

#include <atomic>

namespace wick {

namespace {
std::atomic<Tf32> allowed{Tf32::Off};
}  // namespace

Tf32 allowedTf32() {
  return allowed.load(std::memory_order_relaxed);
}
void setAllowedTf32(Tf32 value) {
  allowed.store(value, std::memory_order_relaxed);
}

}  // namespace wick
