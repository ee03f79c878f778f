// Compares calls that a GPU repeats as graphs with the CPU: archives in evaluation mode, six calls
// each with other arguments; the later ones come from a graph.
//
//   check_repeats model.pt 1x3x224x224 [model.pt 1x64 …]
//
// Prints the largest difference of each archive beside the largest result, and what was captured.
#include <cmath>
#include <cstdio>
#include <random>
#include <sstream>

#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "runtime/call.h"
#include "runtime/cuda/call_graphs.h"
#include "runtime/device_moves.h"
#include "runtime/inference.h"
#include "runtime/module.h"
#include "serialization/import.h"

namespace wick {
namespace {

DimVector sizesOf(const std::string& text) {
  DimVector sizes;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, 'x');) sizes.push_back(std::stoll(word));
  return sizes;
}

Tensor randomTensor(const DimVector& sizes, std::mt19937& random) {
  const Tensor t = Tensor::empty(sizes, DType::Float);
  std::normal_distribution<float> normal;
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(random);
  return t;
}

std::shared_ptr<GraphFunction> prepared(const Module& module) {
  return optimizeForInference(module.object(), module.method("forward"));
}

void check(const std::string& path, const DimVector& sizes) {
  Module here = loadModule(path), there = loadModule(path);
  here.eval();
  there.eval();
  const Device device = placeOf({DeviceType::CUDA, -1});
  moveTensors(std::vector<IValue>{IValue(there.object())}, device);
  const auto on_cpu = prepared(here), on_device = prepared(there);
  std::mt19937 random(1);
  const cuda::CallGraphStatistics before = cuda::callGraphStatistics();
  double largest = 0, difference = 0;
  std::vector<Tensor> kept;  // so that arguments lie elsewhere each time
  for (int i = 0; i < 6; ++i) {
    const Tensor x = randomTensor(sizes, random);
    kept.push_back(moveTo(x, device));
    const Tensor expected = callFunction(*on_cpu, {IValue(x)}).toTensor().contiguous();
    const Tensor found =
        moveTo(callFunction(*on_device, {IValue(kept.back())}).toTensor(), Device()).contiguous();
    for (int64_t k = 0; k < expected.numel(); ++k) {
      const double e = expected.data<float>()[k], f = found.data<float>()[k];
      largest = std::max(largest, std::abs(e));
      difference = std::isnan(f) ? f : std::max(difference, std::abs(e - f));
    }
  }
  const cuda::CallGraphStatistics after = cuda::callGraphStatistics();
  std::printf("%s: differs by %.2g of %.2g; captured %lu, launched %lu\n", path.c_str(), difference,
              largest, after.captured - before.captured, after.launched - before.launched);
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::setGradEnabled(false);
  for (int i = 1; i + 1 < argc; i += 2) wick::check(argv[i], wick::sizesOf(argv[i + 1]));
}
