#include "runtime/kernels/openblas.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <algorithm>
#include <iterator>
#include <mutex>
#include <string_view>

#include "core/error.h"

namespace wick {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

constexpr const char* kCoreVariable = "OPENBLAS_CORETYPE";

template <class Function>
Function* find(void* library, const char* name) {
  return reinterpret_cast<Function*>(dlsym(library, name));
}

// Releases before 0.3.25 take processors that they do not know, as Intel's of 2023, for ones of 2004:
// products take five times as long then. Nobody has called the library yet, so another choice is safe.
void chooseKernels(void* library) {
  auto* const name = find<char*()>(library, "openblas_get_corename");
  auto* const forget = find<void()>(library, "gotoblas_dynamic_quit");
  auto* const choose = find<void()>(library, "gotoblas_dynamic_init");
  // What the user asks for stays.
  if (!name || !forget || !choose || getenv(kCoreVariable)) return;
  constexpr std::string_view kWithoutAvx[] = {"Atom",       "Barcelona",    "Bobcat", "Core2",
                                              "Dunnington", "Katmai",       "Nano",   "Nehalem",
                                              "Opteron",    "Opteron_SSE3", "Penryn", "Prescott"};
  const std::string_view chosen = name();
  if (std::ranges::find(kWithoutAvx, chosen) == std::end(kWithoutAvx)) return;
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                    __builtin_cpu_supports("avx512cd");
  setenv(kCoreVariable, wide ? "SkylakeX" : "Haswell", 1);
  forget();
  choose();
  unsetenv(kCoreVariable);
}

// Never closed: its threads run until the process ends.
void* library() {
  static void* const handle = [] {
    void* opened = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    WICK_CHECK(opened, "matrix operations need OpenBLAS, which cannot be loaded: {}", dlerror());
    chooseKernels(opened);
    return opened;
  }();
  return handle;
}

// Calls that run, and the number of threads that the last of them sets again.
struct Running {
  std::mutex mutex;
  int calls = 0;
  int threads = 1;
};
Running& running() {
  static Running& r = *new Running;
  return r;
}

}  // namespace

OneBlasThread::OneBlasThread() {
  static auto* const get =
      reinterpret_cast<int (*)()>(openBlasFunction("openblas_get_num_threads"));
  static auto* const set =
      reinterpret_cast<void (*)(int)>(openBlasFunction("openblas_set_num_threads"));
  Running& r = running();
  std::lock_guard lock(r.mutex);
  if (r.calls++ > 0) return;
  r.threads = get();
  set(1);
}

OneBlasThread::~OneBlasThread() {
  static auto* const set =
      reinterpret_cast<void (*)(int)>(openBlasFunction("openblas_set_num_threads"));
  Running& r = running();
  std::lock_guard lock(r.mutex);
  if (--r.calls == 0) set(r.threads);
}

void* openBlasFunction(const char* name) {
  void* function = dlsym(library(), name);
  WICK_CHECK(function, "matrix operations need {}, which {} lacks", name, kLibrary);
  return function;
}

}  // namespace wick
