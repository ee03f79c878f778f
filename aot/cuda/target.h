// Models that are compiled ahead of time for CUDA devices. docs/aot.md, "CUDA".
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "aot/target.h"

namespace wick::aot {

// An architecture, sm_MAJORMINOR.
struct CudaArchitecture {
  int major, minor;
};
// "sm_80,sm_90"; RuntimeError for another text.
std::vector<CudaArchitecture> parseArchitectures(std::string_view list);
inline constexpr const char* kUsualArchitectures = "sm_80,sm_90";

// The kernels have machine code for each of these, and PTX of the latest for those that come later. No device is
// needed, but the compiler (runtime/cuda/compiler.h) is.
std::unique_ptr<Target> cudaTarget(std::vector<CudaArchitecture> architectures);

}  // namespace wick::aot
