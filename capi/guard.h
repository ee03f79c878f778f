// What every function of capi/wick.h is written with: the handles, and the one place where an
// exception becomes a status.
#pragma once

#include <fmt/core.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "../wick.h"  // not the C header beside this file
#include "capi/wick.h"
#include "core/budget.h"
#include "core/grad_mode.h"

struct wick_program {
  wick::Program program;
};

struct wick_module {
  wick::Module module;
};

struct wick_value {
  wick::IValue value;
};

struct wick_interrupt {
  std::shared_ptr<std::atomic<bool>> flag;
};

namespace wick::capi {

// Notes the exception that is being handled as the thread's last error.
wick_status noteException() noexcept;

// Runs `f` and turns what it throws into a status.
template <class F>
wick_status guarded(F&& f) noexcept {
  try {
    std::forward<F>(f)();
    return WICK_OK;
  } catch (...) {
    return noteException();
  }
}

template <class... Args>
[[noreturn]] void throwUsage(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError(fmt::format(format, std::forward<Args>(args)...));
}

// How many failures the thread has noted, which tells whether a function of somebody's own notes one.
uint64_t notedFailures() noexcept;
// Throws the thread's last error, of a function that returned `status`, as what it was. `before` is
// what notedFailures() was when the function was called.
[[noreturn]] void throwLastError(wick_status status, uint64_t before);

// The pointer, which must not be null; `name` is the argument's in capi/wick.h.
template <class T>
T& known(T* pointer, const char* function, const char* name) {
  if (!pointer) throwUsage("{}: {} must not be NULL", function, name);
  return *pointer;
}

// Hands a new handle out.
inline void give(IValue value, wick_value** out) {
  *out = new wick_value{std::move(value)};
}

// A struct of the caller's says how much of it there is; it may know more members than this library.
inline void checkSize(size_t found, size_t known_size, const char* type, const char* function,
                      const std::string& name) {
  constexpr size_t kMost = 4096;
  if (found < known_size || found > kMost || found % alignof(void*) != 0) {
    throwUsage("{}: {}.struct_size must be sizeof({}), {}; got {}", function, name, type,
               known_size, found);
  }
}

// The calling thread works in the gradient mode of calls (wick_set_grad) while this lives.
// `by_default`: on while that was never called; nullopt: as the thread's mode is.
class GradScope {
 public:
  explicit GradScope(std::optional<bool> by_default);

 private:
  std::optional<GradModeGuard> guard_;
};

// While it lives the engine runs a function of the caller's on this thread, whose calls go by the
// mode of the run.
class WithinRun {
 public:
  WithinRun();
  ~WithinRun();
  WithinRun(const WithinRun&) = delete;
  WithinRun& operator=(const WithinRun&) = delete;
};

// The calling thread works under the limits while this lives. UsageError for limits that make no
// sense.
class LimitScope {
 public:
  LimitScope(const wick_limits* limits, const char* function);
  // With the limit of steps, which runs alone have. All else they take from the thread.
  const RunOptions& runOptions() const { return run_options_; }
  // For errors that say otherwise what ended the work: throws when a limit did.
  void check() const { budget_.check(); }

 private:
  RunOptions run_options_;
  Budget budget_;
  BudgetScope scope_;
};

// A question to a value of another kind is the caller's mistake, not a program's.
template <class F>
auto asked(const char* function, F&& f) {
  try {
    return f();
  } catch (const RuntimeError& error) {
    throwUsage("{}: {}", function, error.brief());
  }
}

// For the functions that give one value of another out.
template <class F>
wick_status derive(const wick_value* value, wick_value** out, const char* function, F f) {
  return guarded([&] {
    known(value, function, "value");
    known(out, function, "the result");
    give(f(value->value), out);
  });
}

// For the functions that make a value.
template <class F>
wick_status make(wick_value** out, const char* function, F f) {
  return guarded([&] {
    known(out, function, "value");
    give(f(), out);
  });
}

// For the functions that read a plain C value.
template <class T, class F>
wick_status read(const wick_value* value, T* out, const char* function, F f) {
  return guarded([&] {
    known(value, function, "value");
    known(out, function, "the result");
    *out = asked(function, [&] { return f(value->value); });
  });
}

// The handles of arguments as values.
std::vector<IValue> valuesOf(wick_value* const* handles, size_t count, const char* function);
// The entries of a dict with texts as keys; none for null.
Kwargs namedOf(const wick_value* named, const char* function);

// A device from its name.
Device deviceOf(const char* name, const char* function);
DType dtypeOf(wick_dtype number, const char* function);

}  // namespace wick::capi
