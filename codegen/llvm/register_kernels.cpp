// Linking this makes fusion groups run as machine code.
#include "codegen/llvm/kernels.h"

namespace wick::codegen {

namespace {

loop::CompiledKernel compileKernel(const std::string& name, const loop::Kernel& kernel,
                                   const loop::LaneLayout& layout) {
  auto code = compile(kernelRequest(name, kernel, layout));
  return {code->function<loop::KernelFunction>(name), code};
}

[[maybe_unused]] const bool registered = (loop::setKernelCompiler(compileKernel), true);

}  // namespace

}  // namespace wick::codegen
