#pragma once

namespace wick {

// Gives list.sort() a way to run a class's __lt__ (runtime/ops/values/order.h). To be called before a
// program runs; calling it again changes nothing. Thread-safe.
void installObjectOrder();

}  // namespace wick
