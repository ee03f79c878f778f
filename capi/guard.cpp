#include "capi/guard.h"

#include <cmath>
#include <cstddef>
#include <new>

#include "core/error_types.h"
#include "core/source_origin.h"
#include "serialization/file_kind.h"

namespace wick::capi {
namespace {

// More seconds than anybody waits, fewer than overflow the clock.
constexpr double kMaxSeconds = 1e9;

struct LastError {
  std::string message;
  std::string class_name;
  std::string file;
  wick_error shown{sizeof(wick_error), WICK_OK, "", "", "", 0, 0};
  uint64_t failures = 0;  // so far
};

LastError& lastError() {
  thread_local LastError error;
  return error;
}

void setPlace(LastError& error, const SourceRange& range) {
  if (!range.valid()) return;
  const Source& source = *range.source();
  error.file = source.name();
  error.shown.line = source.lineNumber(range.start());
  error.shown.column = range.start() - source.lineStart(range.start()) + 1;
}

wick_status statusOf(const std::string& class_name) {
  if (class_name == "TimeoutError") return WICK_ERROR_TIME;
  if (class_name == "MemoryError") return WICK_ERROR_MEMORY;
  if (class_name == "KeyboardInterrupt") return WICK_ERROR_INTERRUPTED;
  return WICK_ERROR_RUNTIME;
}

// Fills in the exception that is being handled.
void describe(LastError& error) {
  try {
    throw;
  } catch (const CompileError& e) {
    error.shown.status = WICK_ERROR_COMPILE;
    error.message = e.what();
    setPlace(error, e.range());
  } catch (const RuntimeError& e) {
    error.shown.status = statusOf(e.className());
    error.message = e.what();
    error.class_name = e.className();
    // In the user's own program, as in the message.
    if (!e.frames().empty()) setPlace(error, userRange(e.frames().front().range));
  } catch (const LoadError& e) {
    error.shown.status = WICK_ERROR_LOAD;
    error.message = messageFor(e, Interface::C);
  } catch (const UsageError& e) {
    error.shown.status = WICK_ERROR_USAGE;
    error.message = e.what();
  } catch (const std::bad_alloc&) {
    error.shown.status = WICK_ERROR_MEMORY;
    error.message = "out of memory";
  } catch (const std::exception& e) {
    error.shown.status = WICK_ERROR_INTERNAL;
    error.message = e.what();
  } catch (...) {
    error.shown.status = WICK_ERROR_INTERNAL;
    error.message = "an exception of unknown kind";
  }
}

}  // namespace

wick_status noteException() noexcept {
  try {
    LastError& error = lastError();
    ++error.failures;
    error.message.clear();
    error.class_name.clear();
    error.file.clear();
    error.shown = {sizeof(wick_error), WICK_ERROR_INTERNAL, "", "", "", 0, 0};
    describe(error);
    error.shown.message = error.message.c_str();
    error.shown.class_name = error.class_name.c_str();
    error.shown.file = error.file.c_str();
    return error.shown.status;
  } catch (...) {  // no memory for the message
    lastError().shown = {sizeof(wick_error), WICK_ERROR_MEMORY, "out of memory", "", "", 0, 0};
    return WICK_ERROR_MEMORY;
  }
}

uint64_t notedFailures() noexcept {
  return lastError().failures;
}

void throwLastError(wick_status status, uint64_t before) {
  const LastError& error = lastError();
  if (error.failures == before) {
    throw RuntimeError(fmt::format("the function failed with status {} and gave no reason",
                                   static_cast<int>(status)));
  }
  const std::string message = error.shown.message;
  switch (error.shown.status) {
    case WICK_ERROR_TIME:
      throw RuntimeError(message, "TimeoutError");
    case WICK_ERROR_MEMORY:
      throw RuntimeError(message, "MemoryError");
    case WICK_ERROR_INTERRUPTED:
      throw RuntimeError(message, "KeyboardInterrupt");
    default:
      throw RuntimeError(message,
                         error.class_name.empty() ? std::string("RuntimeError") : error.class_name);
  }
}

namespace {

Budget::Bounds boundsOf(const wick_limits* limits, const char* function) {
  Budget::Bounds bounds;
  if (!limits) return bounds;
  checkSize(limits->struct_size, sizeof(wick_limits), "wick_limits", function, "limits");
  if (!(limits->seconds >= 0)) {
    throwUsage("{}: limits->seconds must not be negative, got {}", function, limits->seconds);
  }
  if (limits->seconds > 0 && limits->seconds < kMaxSeconds) {
    bounds.deadline =
        std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                               std::chrono::duration<double>(limits->seconds));
  }
  bounds.memory = limits->memory;
  if (limits->interrupt) bounds.interrupt = limits->interrupt->flag;
  return bounds;
}

}  // namespace

LimitScope::LimitScope(const wick_limits* limits, const char* function)
    : budget_(boundsOf(limits, function)), scope_(budget_.bounded() ? &budget_ : nullptr) {
  if (limits && limits->steps > 0) run_options_.max_steps = limits->steps;
}

std::vector<IValue> valuesOf(wick_value* const* handles, size_t count, const char* function) {
  if (count > 0 && !handles) {
    throwUsage("{}: expected an array of {} handles, got NULL", function, count);
  }
  if (count > kMaxListElements) throwUsage("{}: {} values are too many", function, count);
  std::vector<IValue> values;
  values.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (!handles[i]) throwUsage("{}: handle {} of {} is NULL", function, i, count);
    values.push_back(handles[i]->value);
  }
  return values;
}

Kwargs namedOf(const wick_value* named, const char* function) {
  Kwargs result;
  if (!named || named->value.isNone()) return result;
  if (!named->value.isDict()) {
    throwUsage("{}: named arguments must be a dict, got {}", function, named->value.tagName());
  }
  for (auto& [key, value] : named->value.items()) {
    if (!key.isString()) {
      throwUsage("{}: names of arguments must be texts, got {}", function, key.tagName());
    }
    result.emplace_back(key.toString(), value);
  }
  return result;
}

}  // namespace wick::capi

using namespace wick::capi;

extern "C" {

const wick_error* wick_last_error(void) {
  return &lastError().shown;
}

const char* wick_version(void) {
  return wick::version();
}

wick_status wick_interrupt_new(wick_interrupt** interrupt) {
  return guarded([&] {
    known(interrupt, "wick_interrupt_new", "interrupt") =
        new wick_interrupt{std::make_shared<std::atomic<bool>>(false)};
  });
}

// The flags are lock-free, so that signal handlers may set them.
wick_status wick_interrupt_set(wick_interrupt* interrupt) {
  static_assert(std::atomic<bool>::is_always_lock_free);
  if (interrupt) {
    interrupt->flag->store(true, std::memory_order_relaxed);
    return WICK_OK;
  }
  return guarded([&] { known(interrupt, "wick_interrupt_set", "interrupt"); });
}

wick_status wick_interrupt_clear(wick_interrupt* interrupt) {
  return guarded([&] {
    known(interrupt, "wick_interrupt_clear", "interrupt")
        .flag->store(false, std::memory_order_relaxed);
  });
}

void wick_interrupt_free(wick_interrupt* interrupt) {
  delete interrupt;
}

}  // extern "C"
