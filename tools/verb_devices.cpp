#include <fmt/format.h>

#include "runtime/cuda/compiler.h"
#include "runtime/cuda/device.h"
#include "tools/verbs.h"

namespace wick::cli {

void devicesVerb(const Options&) {
  std::string text = "cpu\n";
  const int count = cuda::deviceCount();
  for (int i = 0; i < count; ++i) {
    const cuda::DeviceFacts& facts = cuda::deviceAt(i).facts();
    text += fmt::format("cuda:{}  {}, compute capability {}.{}, {} multiprocessors, {:.1f} GB\n", i,
                        facts.name, facts.major, facts.minor, facts.multiprocessors,
                        static_cast<double>(facts.memory) * 1e-9);
  }
  if (count == 0) {
    text += fmt::format("no CUDA device: {}\n", cuda::whyNoDevice());
    // It needs no device.
    if (cuda::hasCompiler()) {
      text += fmt::format("build --device cuda compiles for other machines, by NVRTC {}\n",
                          cuda::compilerVersion());
    }
    return print(text);
  }
  text += cuda::hasCompiler()
              ? fmt::format("kernels are compiled by NVRTC {}\n", cuda::compilerVersion())
              : "no compiler for CUDA kernels: the library libnvrtc cannot be opened\n";
  print(text);
}

}  // namespace wick::cli
