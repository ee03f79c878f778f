#include "runtime/jit_mode.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <string_view>

#include "codegen/llvm/vector_limit.h"
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

constexpr uint64_t kNoThreshold = std::numeric_limits<uint64_t>::max();
uint64_t parseThreshold(const char* text) {
  if (!text) return kNoThreshold;
  std::string_view digits = text;
  uint64_t value = 0;
  auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  bool whole = problem == std::errc() && end == digits.data() + digits.size();
  WICK_CHECK(whole && value != kNoThreshold, "WICK_JIT_THRESHOLD: expected a number, got '{}'",
             digits);
  return value;
}
std::atomic<uint64_t>& threshold() {
  static std::atomic<uint64_t> value{parseThreshold(std::getenv("WICK_JIT_THRESHOLD"))};
  return value;
}

}  // namespace

JitMode jitMode() {
  int mode = current.load(std::memory_order_relaxed);
  if (mode == kUnset) {
    int parsed = static_cast<int>(parse(std::getenv("WICK_JIT")));
    // Where code is made, on another thread, nobody would be told that it is wrong.
    codegen::vectorBitsLimit();
    if (current.compare_exchange_strong(mode, parsed)) mode = parsed;
  }
  return static_cast<JitMode>(mode);
}

void setJitMode(JitMode mode) {
  current.store(static_cast<int>(mode), std::memory_order_relaxed);
}

std::optional<uint64_t> jitThreshold() {
  uint64_t value = threshold().load(std::memory_order_relaxed);
  return value == kNoThreshold ? std::nullopt : std::optional(value);
}

void setJitThreshold(std::optional<uint64_t> value) {
  threshold().store(value.value_or(kNoThreshold), std::memory_order_relaxed);
}

}  // namespace wick
