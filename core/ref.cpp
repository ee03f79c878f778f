#include "core/ref.h"

#include <vector>

namespace wick {

namespace {

// Nested deletes that may recurse before the rest waits in the queue.
constexpr uint32_t kMaxNestedDeletes = 64;

constinit thread_local uint32_t nested_deletes = 0;
constinit thread_local std::vector<const RefCounted*>* waiting = nullptr;

}  // namespace

void RefCounted::destroy(const RefCounted* object) {
  if (nested_deletes >= kMaxNestedDeletes) {
    // Owned by the outermost delete on this thread, which is still running.
    if (!waiting) waiting = new std::vector<const RefCounted*>;
    waiting->push_back(object);
    return;
  }
  ++nested_deletes;
  delete object;
  if (nested_deletes == 1 && waiting) {
    while (!waiting->empty()) {
      const RefCounted* next = waiting->back();
      waiting->pop_back();
      delete next;
    }
    delete waiting;
    waiting = nullptr;
  }
  --nested_deletes;
}

}  // namespace wick
