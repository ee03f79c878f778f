#include "runtime/kernels/openblas.h"

#include <dlfcn.h>

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

}  // namespace

void* openBlasFunction(const char* name) {
  void* function = dlsym(library(), name);
  WICK_CHECK(function, "matrix operations need {}, which {} lacks", name, kLibrary);
  return function;
}

}  // namespace wick
