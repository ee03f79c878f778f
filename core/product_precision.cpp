#include "core/product_precision.h"

#include <atomic>

namespace wick {

namespace {
std::atomic<bool> allowed{false};
}  // namespace

bool allowsTf32() {
  return allowed.load(std::memory_order_relaxed);
}
void setAllowsTf32(bool value) {
  allowed.store(value, std::memory_order_relaxed);
}

}  // namespace wick
