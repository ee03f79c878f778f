// Runs an archive 10,000 times on a GPU, each time with another batch size or length, and prints the
// memory of the device and of the process now and then. Needs a GPU:
//   check_sizes model.pt SIZES CALLS       SIZES as 4x128x768; the first two change
// The exit code is 1 when memory grew by more than a twentieth over the last half.
#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "runtime/call.h"
#include "runtime/cuda/device.h"
#include "runtime/device_moves.h"
#include "runtime/inference.h"
#include "runtime/module.h"
#include "serialization/import.h"

namespace wick {
namespace {

double residentMb() {
  std::ifstream file("/proc/self/statm");
  double pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * 4096 / (1 << 20);
}

int run(const std::string& path, const std::string& sizes_text, int calls) {
  DimVector sizes;
  std::istringstream words(sizes_text);
  for (std::string word; std::getline(words, word, 'x');) sizes.push_back(std::stoll(word));
  const Module module = loadModule(path);
  module.eval();
  const Device device = placeOf({DeviceType::CUDA, -1});
  moveTensors(std::vector<IValue>{IValue(module.object())}, device);
  const auto function = optimizeForInference(module.object(), module.method("forward"));
  DType dtype = DType::Float;
  for (const auto& [name, parameter] : module.parameters()) dtype = parameter.dtype();
  std::mt19937 random(1);
  double half_device = 0, half_process = 0, now_device = 0, now_process = 0;
  for (int i = 1; i <= calls; ++i) {
    DimVector now = sizes;
    for (size_t d = 0; d < now.size() && d < 2; ++d) now[d] = 1 + random() % sizes[d];
    callFunction(*function, {IValue(Tensor::zeros(now, dtype, device))});
    if (i % std::max(1, calls / 10) != 0) continue;
    deviceBackend(device.type).synchronize(device);
    now_device =
        static_cast<double>(cuda::deviceAt(device.index).allocator().statistics().reserved) /
        (1 << 20);
    now_process = residentMb();
    fmt::print("{} calls: {:.1f} MB on the device, {:.1f} MB in the process\n", i, now_device,
               now_process);
    if (i * 2 <= calls) half_device = now_device, half_process = now_process;
  }
  return now_device > 1.05 * half_device || now_process > 1.05 * half_process ? 1 : 0;
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::setGradEnabled(false);
  if (argc < 3) return 2;
  return wick::run(argv[1], argv[2], argc > 3 ? std::atoi(argv[3]) : 10000);
}
