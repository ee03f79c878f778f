// A model on a GPU: cuda MODEL. Without a GPU it is computed on the CPU.
#include <wick/wick.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <vector>

int main(int argc, char** argv) {
  std::vector<float> pixels(28 * 28);
  for (size_t y = 5; y < 23; ++y)
    for (size_t x = 12; x < 15; ++x) pixels[y * 28 + x] = 1;
  const auto image = wick::Tensor::from(pixels, {1, 1, 28, 28});

  // How many there are: 0 without a driver, and in libwick-core.so.
  const bool there = wick::Device::count(wick::DeviceType::CUDA) > 0;
  const wick::Device device = there ? wick::Device::cuda(0) : wick::Device::cpu();
  if (!there) std::printf("no CUDA device: ");
  std::cout << "computed on " << device << std::endl;

  try {
    // Parameters, buffers and constants move, in place; arguments must be there, too.
    auto model = wick::load(argc > 1 ? argv[1] : "digits.pt").eval().to(device);
    const wick::GradModeGuard inference(false);
    const wick::Tensor scores = model({image.to(device)}).tensor();
    // The elements of a tensor are read on the CPU.
    const wick::Tensor fetched = scores.to(wick::Device::cpu()).contiguous();
    const auto row = fetched.span<float>();
    std::printf("%td\n", std::ranges::max_element(row) - row.begin());

    // Back again, in half precision and by the name of the device.
    model.to(wick::Device("cpu")).to(wick::DType::BFloat16);
    std::cout << model.parameters()[0].second.describe() << "\n";
  } catch (const wick::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
  return 0;
}
// Prints:
// no CUDA device: computed on cpu
// 1
// bfloat16[8, 1, 3, 3]
