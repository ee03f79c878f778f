#include "runtime/cuda/text_launch.h"

#include <algorithm>

#include "runtime/cuda/kernel_series.h"
#include "runtime/cuda/loop_kernel.h"
#include "runtime/cuda/text_kernel.h"

namespace wick::cuda {

unsigned gridFor(int64_t points, const CudaDevice& device) {
  const int64_t blocks = (points + kTextBlock - 1) / kTextBlock;
  return static_cast<unsigned>(
      std::clamp<int64_t>(blocks, 1, int64_t{device.facts().multiprocessors} * 256));
}

void launchText(CudaDevice& device, const std::string& text, const char* name, unsigned grid,
                std::vector<int64_t> words) {
  launch(functionOf(device, text, name), grid, kTextBlock, words.data(), name);
}

void launchPoints(Device device, const std::string& text, const char* name, int64_t points,
                  std::vector<int64_t> words, const std::string& complaint) {
  CudaDevice& entered = enter(device);
  if (!complaint.empty()) {
    words.push_back(static_cast<int64_t>(entered.flagAddress()));
    words.push_back(entered.complaint(complaint));
  }
  launchText(entered, text, name, gridFor(points, entered), std::move(words));
}

void launchText(CudaDevice& device, const TextKernel& kernel) {
  std::vector<int64_t> words;
  for (const TextKernel::Operand& operand : kernel.operands)
    words.push_back(wordOf(operand.tensor));
  words.insert(words.end(), kernel.numbers.begin(), kernel.numbers.end());
  launchText(device, kernel.text, kernel.name, gridFor(kernel.points, device), std::move(words));
}

void launchSeries(CudaDevice& device, const KernelSeries& series,
                  const std::vector<Tensor>& given) {
  std::vector<Tensor> all = given;
  for (const int64_t words : series.memory) {
    all.push_back(Tensor::empty(DimVector{words}, DType::Long, given.front().device()));
  }
  for (const KernelSeries::Kernel& kernel : series.kernels) {
    std::vector<int64_t> words;
    for (const int address : kernel.addresses) {
      words.push_back(address < 0 ? 0 : wordOf(all[static_cast<size_t>(address)]));
    }
    words.insert(words.end(), kernel.numbers.begin(), kernel.numbers.end());
    launchText(device, kernel.text, kernel.name, gridFor(kernel.points, device), words);
  }
}

}  // namespace wick::cuda
