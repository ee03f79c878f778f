// Compares a method that a GPU repeats as a graph with the same method run each time: calls in a row of
// two copies of an archive with the same arguments, which lie elsewhere in every second call.
//
//   check_methods step inputs.pt model.pt [inputs.pt model.pt ...]
//
// Inputs are a file of torch.save: a dict with "args" (tuple). Prints how far results and the modules'
// tensors are apart at the end, and what was captured.
#include <cmath>
#include <cstdio>

#include "core/device_backend.h"
#include "core/grad_mode.h"
#include "core/product_precision.h"
#include "runtime/call.h"
#include "runtime/cuda/call_graphs.h"
#include "runtime/device_moves.h"
#include "runtime/module.h"
#include "runtime/repeats.h"
#include "serialization/import.h"
#include "serialization/torch_save.h"

namespace wick {
namespace {

constexpr int kCalls = 12;

double distance(const Tensor& a, const Tensor& b) {
  const Tensor x = moveTo(a, Device()).to(DType::Double).contiguous();
  const Tensor y = moveTo(b, Device()).to(DType::Double).contiguous();
  double most = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    const double d = std::abs(x.data<double>()[i] - y.data<double>()[i]);
    if (std::isnan(d)) return d;
    most = std::max(most, d);
  }
  return most;
}

double distance(const Module& a, const Module& b) {
  std::vector<IValue> here, there;
  if (!collectState(*a.object(), here) || !collectState(*b.object(), there)) return NAN;
  double most = 0;
  for (size_t i = 0; i < here.size(); ++i) {
    if (!here[i].isTensor()) continue;
    const double d = distance(here[i].toTensor(), there[i].toTensor());
    if (!(d <= most)) most = d;
  }
  return most;
}

void check(const std::string& method, const std::string& inputs, const std::string& path) {
  const Device device = placeOf({DeviceType::CUDA, -1});
  const Module repeated = loadModule(path), run = loadModule(path);
  const IValue loaded = loadValue(inputs);
  const std::vector<IValue> given = loaded.toDict().find(IValue("args"))->elements();
  moveTensors(std::vector<IValue>{IValue(repeated.object()), IValue(run.object()), loaded}, device);
  RunOptions each_time;
  each_time.max_steps = std::numeric_limits<uint64_t>::max() - 1;
  const cuda::CallGraphStatistics before = cuda::callGraphStatistics();
  double results = 0, first = 0, last = 0;
  for (int i = 0; i < kCalls; ++i) {
    std::vector<IValue> arguments = given;
    if (i % 2 == 1) {
      for (IValue& v : arguments) v = IValue(v.toTensor().clone());
    }
    const Tensor found = callMethod(repeated.object(), repeated.method(method), arguments).toTensor();
    const Tensor expected =
        callMethod(run.object(), run.method(method), arguments, {}, each_time).toTensor();
    const double d = distance(found, expected);
    if (!(d <= results)) results = d;
    last = moveTo(found, Device()).to(DType::Double).item<double>();
    if (i == 0) first = last;
  }
  const cuda::CallGraphStatistics after = cuda::callGraphStatistics();
  std::printf("%s: from %.6g to %.6g, results apart by %.2g, tensors by %.2g; captured %lu, launched %lu\n",
              path.c_str(), first, last, results, distance(repeated, run),
              after.captured - before.captured, after.launched - before.launched);
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  wick::setAllowedTf32(wick::Tf32::Convolutions);
  for (int i = 2; i + 1 < argc; i += 2) wick::check(argv[1], argv[i], argv[i + 1]);
}
