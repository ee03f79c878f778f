#include "runtime/interpreter/register_stack.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

namespace wick {
namespace {

struct SpareBuffers {
  struct Buffer {
    IValue* data;
    size_t capacity;
  };
  std::vector<Buffer> buffers;
  ~SpareBuffers() {
    for (Buffer& b : buffers) std::free(b.data);
  }
};
thread_local SpareBuffers spare_buffers;

IValue* allocateRegisters(size_t capacity) {
  void* memory = std::malloc(capacity * sizeof(IValue));
  if (!memory) throw std::bad_alloc();
  return static_cast<IValue*>(memory);
}

}  // namespace

RegisterStack::RegisterStack() {
  auto& spare = spare_buffers.buffers;
  if (spare.empty()) {
    data_ = allocateRegisters(kInitialCapacity);
    capacity_ = kInitialCapacity;
  } else {
    data_ = spare.back().data;
    capacity_ = spare.back().capacity;
    spare.pop_back();
  }
}

RegisterStack::~RegisterStack() {
  constexpr size_t kMaxSpare = 4;
  constexpr size_t kMaxSpareCapacity = size_t{1} << 16;
  auto& spare = spare_buffers.buffers;
  if (spare.size() < kMaxSpare && capacity_ <= kMaxSpareCapacity) {
    spare.push_back({data_, capacity_});
  } else {
    std::free(data_);
  }
}

void RegisterStack::grow(size_t capacity) {
  // An IValue may be moved as bytes: nothing points into it.
  IValue* grown = allocateRegisters(capacity);
  std::memcpy(static_cast<void*>(grown), static_cast<const void*>(data_),
              capacity_ * sizeof(IValue));
  std::free(data_);
  data_ = grown;
  capacity_ = capacity;
}

}  // namespace wick
