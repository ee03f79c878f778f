// Runs random groups of operators as kernels of a GPU, and operator by operator on the CPU, and
// compares. Needs a GPU:
//   bazel run -c opt //tests/cuda:check_groups -- [COUNT [FIRST_SEED
//   [pointwise|reductions|structures]]]
// Prints those that differ; the exit code is 1 when there are any. Arithmetic has the bits of the
// CPU, functions are within two units in the last place, and sums are added in another order, so
// results must be close. Elements that change much when one step's result changes in its last places
// (the cosine of a large exponential) are left out, and such groups counted. What the device refuses by
// name is counted.
#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "core/device_backend.h"
#include "ir/parser.h"
#include "passes/dead_code_elimination.h"
#include "passes/fusion_groups.h"
#include "runtime/device_moves.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/check_fusion.h"
#include "tests/codegen/random_programs.h"
#include "tests/cuda/perturbed.h"

namespace wick {
namespace {

struct Counts {
  uint64_t fused = 0, refused = 0, unsteady = 0, failures = 0;
};

IValue onDevice(const IValue& v, Device device) {
  if (!v.isTensor() || !v.toTensor().defined()) return v;
  // With the strides that it has here.
  const Tensor t = v.toTensor();
  const IValue moved(t.detach());
  moveTensors(std::span(&moved, 1), device);
  return moved;
}

std::string check(uint64_t seed, ProgramKind kind, Device device, Counts& counts) {
  Random random(seed);
  const Program program = randomProgram(random, kind);
  const auto plain = parseGraph(program.text);
  eliminateDeadCode(*plain);
  const Outcome expected = runGraph(plain, program.arguments);
  const auto grouped = parseGraph(program.text);
  eliminateDeadCode(*grouped);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  options.min_computing_nodes = 1;
  formFusionGroups(*grouped, options);
  std::vector<IValue> arguments;
  for (const IValue& v : program.arguments) arguments.push_back(onDevice(v, device));
  const FusionStatistics before = fusionStatistics();
  Outcome got = runGraph(grouped, arguments);
  try {
    // What a kernel finds wrong shows when the device is waited for.
    deviceBackend(device.type).synchronize(device);
    for (Tensor& t : got.tensors) t = moveTo(t, Device());
  } catch (const RuntimeError& e) {
    if (got.error.empty()) got.error = e.brief();
  }
  counts.fused += fusionStatistics().launches > before.launches;
  const auto failure = [&](const std::string& what) {
    std::string text = fmt::format("seed {}: {}\n{}", seed, what, program.text);
    for (const IValue& v : program.arguments) {
      if (v.isTensor() && v.toTensor().defined()) text += v.toTensor().describe() + '\n';
    }
    return text;
  };
  if (expected.error.empty() && got.error.find("not available") != std::string::npos) {
    ++counts.refused;
    return {};
  }
  // On a GPU integers are divided by zero without a word, as in PyTorch.
  if (expected.error.find("ZeroDivisionError") != std::string::npos) return {};
  if (got.error.empty() != expected.error.empty()) {
    return failure(fmt::format("'{}' instead of '{}'", got.error, expected.error));
  }
  const auto isReduced = [](const Tensor& t) { return isReducedFloat(t.dtype()); };
  const bool reduced = std::ranges::any_of(expected.tensors, isReduced) ||
                       std::ranges::any_of(program.arguments, [&](const IValue& v) {
                         return v.isTensor() && v.toTensor().defined() && isReduced(v.toTensor());
                       });
  const double tolerance = reduced ? 0.02 : 2e-4;
  std::string found;
  for (size_t i = 0; i < expected.tensors.size() && got.error.empty() && found.empty(); ++i) {
    found = differenceOf(got.tensors[i], expected.tensors[i], tolerance, false);
    if (!found.empty()) found = fmt::format("output {}: {}", i, found);
  }
  if (found.empty()) return {};
  if (!differsSteadily(program, got.tensors, expected.tensors, tolerance)) {
    ++counts.unsteady;
    return {};
  }
  return failure(found);
}

}  // namespace
}  // namespace wick

int main(int argc, char** argv) {
  using namespace wick;
  const uint64_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  const uint64_t first = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1;
  const std::string_view name = argc > 3 ? argv[3] : "pointwise";
  const ProgramKind kind = name == "reductions"   ? ProgramKind::Reductions
                           : name == "structures" ? ProgramKind::Structures
                                                  : ProgramKind::Pointwise;
  setJitMode(JitMode::Sync);
  const Device device = placeOf({DeviceType::CUDA, -1});
  Counts counts;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    std::string failure;
    try {
      failure = check(seed, kind, device, counts);
    } catch (const std::exception& e) {
      failure = fmt::format("seed {}: {}", seed, e.what());
    }
    if (failure.empty()) continue;
    constexpr uint64_t kMaxShown = 5;
    if (++counts.failures <= kMaxShown) fmt::print("{}\n", failure);
  }
  fmt::print(
      "{} groups, {} of them ran as kernels, {} refused, {} with elements left out, {} "
      "failures\n",
      count, counts.fused, counts.refused, counts.unsteady, counts.failures);
  return counts.failures == 0 ? 0 : 1;
}
