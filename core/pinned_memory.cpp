#include "core/pinned_memory.h"

#include <atomic>
#include <memory>
#include <utility>

#include "core/device_backend.h"
#include "core/error.h"
#include "core/memory_limit.h"

namespace wick {

namespace {

std::atomic<PinnedMemory*> source{nullptr};
thread_local bool unwaited = false;

Tensor emptyPinned(IntSpan sizes, IntSpan strides, DType dtype) {
  PinnedMemory* const memory = source.load(std::memory_order_acquire);
  WICK_CHECK(memory, "pin_memory: this build of the engine has no support for CUDA");
  size_t bytes = 0;
  WICK_CHECK(
      !__builtin_mul_overflow(static_cast<size_t>(checkedNumel(sizes)), itemSize(dtype), &bytes),
      "pin_memory: the copy would be larger than any memory");
  if (bytes == 0) return Tensor::emptyStrided(sizes, strides, dtype);
  checkAllocation("pin_memory", bytes);
  void* const block = memory->allocate(bytes);
  std::shared_ptr<const void> owner(block, [memory, bytes](void* held) {
    memory->free(held);
    noteMemory(-static_cast<int64_t>(bytes));
  });
  noteMemory(static_cast<int64_t>(bytes));
  return Tensor::fromStorage(Storage::borrow(block, bytes, std::move(owner)), dtype,
                             DimVector(sizes), DimVector(strides), 0);
}

DimVector stridesOfCopy(const Tensor& t) {
  return t.isNonOverlappingAndDense() ? DimVector(t.strides())
                                      : denseStrides(t.sizes(), t.strides());
}

}  // namespace

void setPinnedMemory(PinnedMemory* memory) {
  source.store(memory, std::memory_order_release);
}

bool isPinned(const Tensor& tensor) {
  PinnedMemory* const memory = source.load(std::memory_order_acquire);
  return memory && tensor.isStrided() && tensor.device().isCpu() && tensor.numel() > 0 &&
         memory->holds(tensor.storage()->data());
}

Tensor pinned(const Tensor& tensor) {
  WICK_CHECK(tensor.isStrided() && tensor.device().isCpu(),
             "cannot pin {}: only dense CPU tensors can be pinned", tensor.describe());
  if (isPinned(tensor)) return tensor;
  const Tensor made = emptyPinned(tensor.sizes(), stridesOfCopy(tensor), tensor.dtype());
  made.copyFrom(tensor);
  return made;
}

UnwaitedCopies::UnwaitedCopies(bool on) : before_(std::exchange(unwaited, on)) {}
UnwaitedCopies::~UnwaitedCopies() {
  unwaited = before_;
}
bool UnwaitedCopies::active() {
  return unwaited;
}

Tensor moveUnwaited(const Tensor& tensor, Device device) {
  const UnwaitedCopies scope;
  device = placeOf(device);
  if (!device.isCpu() || !tensor.device().isCuda() || !tensor.isStrided()) {
    return moveTo(tensor, device);
  }
  const Tensor made = emptyPinned(tensor.sizes(), stridesOfCopy(tensor), tensor.dtype());
  made.copyFrom(tensor);
  return made;
}

}  // namespace wick
