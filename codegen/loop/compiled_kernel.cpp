#include "codegen/loop/compiled_kernel.h"

#include <atomic>

namespace wick::loop {

namespace {

std::atomic<KernelCompiler> current{nullptr};

}  // namespace

KernelCompiler kernelCompiler() {
  return current.load(std::memory_order_acquire);
}
void setKernelCompiler(KernelCompiler compiler) {
  current.store(compiler, std::memory_order_release);
}

}  // namespace wick::loop
