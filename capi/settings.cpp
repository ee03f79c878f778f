// Settings of capi/wick.h: of the process and of the calling thread.
#include "capi/guard.h"
#include "core/messages.h"

namespace wick::capi {
namespace {

constexpr int kMaxThreads = 1024;  // setNumThreads (runtime/threads.h)

// The setting of wick_set_grad on this thread, and how many runs called a function of the caller's.
thread_local std::optional<bool> grad;
thread_local int runs = 0;

}  // namespace

GradScope::GradScope(std::optional<bool> by_default) {
  if (runs > 0) return;
  const std::optional<bool> mode = grad ? grad : by_default;
  if (mode) guard_.emplace(*mode);
}

WithinRun::WithinRun() {
  ++runs;
}

WithinRun::~WithinRun() {
  --runs;
}

}  // namespace wick::capi

using namespace wick::capi;

extern "C" {

wick_status wick_set_threads(int threads) {
  return guarded([&] {
    if (threads < 1 || threads > kMaxThreads) {
      throwUsage("wick_set_threads: expected 1 to {} threads, got {}", kMaxThreads, threads);
    }
    wick::setNumThreads(threads);
  });
}

wick_status wick_set_memory_limit(uint64_t bytes) {
  return guarded([&] { wick::setAllocationLimit(bytes); });
}

wick_status wick_set_seed(uint64_t seed) {
  return guarded([&] { wick::defaultGenerator().seed(seed); });
}

wick_status wick_set_grad(int on) {
  return guarded([&] { grad = on != 0; });
}

wick_status wick_set_warning_handler(void (*handler)(void* data, const char* message), void* data) {
  return guarded([&] {
    wick::WarningHandler taken;
    if (handler) {
      taken = [handler, data](const std::string& message) { handler(data, message.c_str()); };
    }
    wick::setWarningHandler(std::move(taken));
  });
}

wick_status wick_set_log(const char* files, void (*handler)(void* data, const char* line),
                         void* data) {
  return guarded([&] {
    known(files, "wick_set_log", "files");
    wick::LogHandler taken;
    if (handler) {
      taken = [handler, data](std::string_view line) { handler(data, std::string(line).c_str()); };
    }
    wick::setLogHandler(std::move(taken));
    wick::setLogFiles(files);
  });
}

}  // extern "C"
