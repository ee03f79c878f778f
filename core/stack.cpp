#include "core/stack.h"

#include <pthread.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <exception>

#include "core/error.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace wick {

namespace {

// New stacks are at least this large, so that nested work seldom needs another. Pages that are
// never touched cost nothing.
constexpr size_t kLeastStack = size_t{16} << 20;

// The lowest address of the stack that this thread runs on; null until asked for.
constinit thread_local const char* stack_end = nullptr;

const char* endOfThreadStack() {
  pthread_attr_t attributes;
  void* low = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) == 0) {
    pthread_attr_getstack(&attributes, &low, &size);
    pthread_attr_destroy(&attributes);
  }
  // The main thread's stack grows on demand up to its limit; a guard may lie below it.
  return static_cast<const char*>(low) + (size_t{64} << 10);
}

// Memory for one stack with an inaccessible page below it.
class StackMemory {
 public:
  explicit StackMemory(size_t bytes)
      : guard_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
        bytes_((bytes + guard_ - 1) / guard_ * guard_ + guard_) {
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    WICK_CHECK(memory_ != MAP_FAILED, "not enough memory for a stack of {} bytes", bytes);
    mprotect(memory_, guard_, PROT_NONE);
#if defined(__SANITIZE_ADDRESS__)
    // What an exception left of the frames of an earlier stack at this address.
    __asan_unpoison_memory_region(memory_, bytes_);
#endif
  }
  ~StackMemory() {
    munmap(memory_, bytes_);
  }
  StackMemory(const StackMemory&) = delete;
  StackMemory& operator=(const StackMemory&) = delete;

  char* low() const {
    return static_cast<char*>(memory_) + guard_;
  }
  size_t size() const {
    return bytes_ - guard_;
  }

 private:
  size_t guard_;
  size_t bytes_;
  void* memory_;
};

// One call on a new stack. Exceptions must not leave that stack's first frame; they are carried
// over.
struct Crossing {
  void (*call)(void*);
  void* context;
  std::exception_ptr error;
  ucontext_t there;
  ucontext_t back;
#if defined(__SANITIZE_ADDRESS__)
  void* own_fake_stack = nullptr;
  const void* caller_stack = nullptr;
  size_t caller_size = 0;
#endif
#if defined(__SANITIZE_THREAD__)
  void* caller_fiber = nullptr;
#endif

  // What TSan writes at the end of a function belongs to the fiber on which the function began, and
  // this one ends on its caller's.
  __attribute__((no_sanitize_thread)) void run() {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(nullptr, &caller_stack, &caller_size);
#endif
    try {
      call(context);
    } catch (...) {
      error = std::current_exception();
    }
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(nullptr, caller_stack, caller_size);
#endif
#if defined(__SANITIZE_THREAD__)
    __tsan_switch_to_fiber(caller_fiber, 0);
#endif
  }
};

// makecontext hands over ints only.
__attribute__((no_sanitize_thread)) void enter(unsigned high, unsigned low) {
  auto address = (static_cast<uintptr_t>(high) << 32) | low;
  reinterpret_cast<Crossing*>(address)->run();
}

}  // namespace

size_t stackLeft() {
  if (stack_end == nullptr) stack_end = endOfThreadStack();
  auto here = static_cast<const char*>(__builtin_frame_address(0));
  return here > stack_end ? static_cast<size_t>(here - stack_end) : 0;
}

void detail::callOnNewStack(size_t bytes, void (*call)(void*), void* context) {
  StackMemory memory(std::max(bytes + bytes / 4, kLeastStack));
  Crossing crossing{};
  crossing.call = call;
  crossing.context = context;
  getcontext(&crossing.there);
  crossing.there.uc_stack.ss_sp = memory.low();
  crossing.there.uc_stack.ss_size = memory.size();
  crossing.there.uc_link = &crossing.back;
  auto address = reinterpret_cast<uintptr_t>(&crossing);
  makecontext(&crossing.there, reinterpret_cast<void (*)()>(&enter), 2,
              static_cast<unsigned>(address >> 32), static_cast<unsigned>(address));
  const char* outer_end = stack_end;
  stack_end = memory.low();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&crossing.own_fake_stack, memory.low(), memory.size());
#endif
#if defined(__SANITIZE_THREAD__)
  crossing.caller_fiber = __tsan_get_current_fiber();
  void* fiber = __tsan_create_fiber(0);
  __tsan_switch_to_fiber(fiber, 0);
#endif
  swapcontext(&crossing.back, &crossing.there);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(crossing.own_fake_stack, nullptr, nullptr);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_destroy_fiber(fiber);
#endif
  stack_end = outer_end;
  if (crossing.error) std::rethrow_exception(crossing.error);
}

}  // namespace wick
