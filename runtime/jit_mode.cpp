#include "runtime/jit_mode.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "core/error.h"

namespace wick {
namespace {

JitMode parse(const char* text) {
  std::string_view mode = text ? text : "background";
  if (mode == "off") return JitMode::Off;
  if (mode == "background") return JitMode::Background;
  if (mode == "sync") return JitMode::Sync;
  throwRuntimeError("WICK_JIT: expected 'off', 'background' or 'sync', got '{}'", mode);
}

constexpr int kUnset = -1;
std::atomic<int> current{kUnset};

}  // namespace

JitMode jitMode() {
  int mode = current.load(std::memory_order_relaxed);
  if (mode == kUnset) {
    int parsed = static_cast<int>(parse(std::getenv("WICK_JIT")));
    if (current.compare_exchange_strong(mode, parsed)) mode = parsed;
  }
  return static_cast<JitMode>(mode);
}

void setJitMode(JitMode mode) {
  current.store(static_cast<int>(mode), std::memory_order_relaxed);
}

}  // namespace wick
