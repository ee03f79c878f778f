// Room for recursion: walks over deep trees and graphs run on a stack that is large enough for
// them, whatever the size of the calling thread's stack.
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>

namespace wick {

// Bytes of stack below the caller's frame.
size_t stackLeft();

namespace detail {
void callOnNewStack(size_t bytes, void (*call)(void*), void* context);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// Sanitizers make frames several times larger.
inline constexpr size_t kFrameScale = 6;
#else
inline constexpr size_t kFrameScale = 1;
#endif
}  // namespace detail

// Calls `work` with at least `bytes` of stack: where it stands if there is that much left, else on
// a new stack, on the same thread. Exceptions pass through. `bytes` is what an ordinary build
// needs; it is scaled for sanitizers. Throws RuntimeError when there is no memory for the stack.
template <class F>
void withStack(size_t bytes, F&& work) {
  bytes *= detail::kFrameScale;
  if (stackLeft() >= bytes) {
    work();
    return;
  }
  auto call = [](void* context) { (*static_cast<std::remove_reference_t<F>*>(context))(); };
  detail::callOnNewStack(bytes, call, const_cast<void*>(static_cast<const void*>(&work)));
}

}  // namespace wick
