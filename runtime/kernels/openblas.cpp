#include "runtime/kernels/openblas.h"

#include <dlfcn.h>

#include <mutex>

#include "core/error.h"

namespace wick {
namespace {

constexpr const char* kLibrary = "libopenblas.so.0";

// Never closed: its threads run until the process ends.
void* library() {
  static void* const handle = [] {
    void* opened = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
    WICK_CHECK(opened, "matrix operations need OpenBLAS, which cannot be loaded: {}", dlerror());
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
