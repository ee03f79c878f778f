#include "tests/codegen/check_fusion.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "ir/parser.h"
#include "passes/dead_code_elimination.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/random_programs.h"

namespace wick {

namespace {

template <class T>
bool sameNumber(T a, T b, double tolerance) {
  if constexpr (kIsComplex<T>) {
    return a == b;
  } else {
    auto x = static_cast<double>(a);
    auto y = static_cast<double>(b);
    if (std::isnan(x) || std::isnan(y)) {
      // Infinity times what is zero in the one and the smallest number in the other.
      const bool infinite = tolerance != 0 && (std::isinf(x) || std::isinf(y));
      return infinite || (std::isnan(x) && std::isnan(y));
    }
    if (tolerance == 0) return std::memcmp(&a, &b, sizeof a) == 0;
    if (x == y || std::fabs(x - y) <= tolerance * (1 + std::fabs(y))) return true;
    // A mean may be finite although the sum, in the dtype of the elements, is not.
    constexpr double kLargest = std::numeric_limits<float>::max();
    return std::isinf(x) && std::isfinite(y) && std::fabs(y) > kLargest / 1000;
  }
}

std::string describe(uint64_t seed, const Program& program, const std::string& what) {
  std::string text = fmt::format("seed {}: {}\n{}", seed, what, program.text);
  for (const IValue& a : program.arguments) {
    if (a.isTensor()) {
      Tensor t = a.toTensor();
      text += fmt::format("  {} strides {}\n", t.describe(), formatInts(t.strides()));
    } else {
      text += fmt::format("  {}\n", a.repr());
    }
  }
  return text;
}

// Tensors that nobody else holds, so that results may take their memory.
std::vector<IValue> ownArguments(const Program& program) {
  std::vector<IValue> own;
  for (const IValue& a : program.arguments) {
    // A copy has other strides than a contiguous tensor may have along single elements.
    const bool copies = a.isTensor() && DimVector(a.toTensor().strides()) ==
                                            contiguousStrides(a.toTensor().sizes());
    own.push_back(copies ? IValue(a.toTensor().clone()) : a);
  }
  return own;
}

FusionCheck check(uint64_t seed, ProgramKind kind, double tolerance) {
  Random random(seed);
  Program program = randomProgram(random, kind);
  // Whether code without use raises is not asked.
  auto plain = parseGraph(program.text);
  eliminateDeadCode(*plain);
  Outcome expected = runGraph(plain, program.arguments);
  setJitMode(JitMode::Sync);
  auto grouped = parseGraph(program.text);
  eliminateDeadCode(*grouped);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  options.min_computing_nodes = 1;
  formFusionGroups(*grouped, options);
  FusionStatistics before = fusionStatistics();
  Outcome got = runGraph(grouped, ownArguments(program));
  // Results in a reduced float may differ in its last place, and others be computed from them.
  const auto isReduced = [](const IValue& a) {
    return a.isTensor() && isReducedFloat(a.toTensor().dtype());
  };
  if (tolerance != 0 && (std::ranges::any_of(program.arguments, isReduced) ||
                         std::ranges::any_of(expected.tensors, isReducedFloat, &Tensor::dtype))) {
    tolerance = 0.02;
  }
  FusionCheck result;
  result.fused = fusionStatistics().launches > before.launches;
  if (got.error.empty() != expected.error.empty()) {
    result.failure =
        describe(seed, program, fmt::format("'{}' instead of '{}'", got.error, expected.error));
    return result;
  }
  for (size_t i = 0; i < expected.tensors.size(); ++i) {
    std::string difference = differenceOf(got.tensors[i], expected.tensors[i], tolerance,
                                          kind != ProgramKind::Reductions);
    if (!difference.empty()) {
      result.failure = describe(seed, program, fmt::format("output {}: {}", i, difference));
      return result;
    }
  }
  return result;
}

}  // namespace

std::string differenceOf(const Tensor& got, const Tensor& expected, double tolerance,
                         bool strides) {
  if (got.dtype() != expected.dtype() || DimVector(got.sizes()) != DimVector(expected.sizes())) {
    return fmt::format("{} instead of {}", got.describe(), expected.describe());
  }
  // Where there is no second element, strides lead nowhere.
  for (int64_t d = 0; strides && expected.numel() > 0 && d < expected.dim(); ++d) {
    if (expected.size(d) == 1 || got.stride(d) == expected.stride(d)) continue;
    return fmt::format("strides {} instead of {}", formatInts(got.strides()),
                       formatInts(expected.strides()));
  }
  Tensor a = got.contiguous(), b = expected.contiguous();
  std::string difference;
  dispatchAll(a.dtype(), [&]<class T>() {
    for (int64_t i = 0; i < a.numel() && difference.empty(); ++i) {
      T x = a.data<T>()[i], y = b.data<T>()[i];
      if (sameNumber(x, y, tolerance)) continue;
      if constexpr (!kIsComplex<T>) {
        difference = fmt::format("element {} of {}: {} instead of {}", i, a.describe(),
                                 static_cast<double>(x), static_cast<double>(y));
      }
    }
  });
  return difference;
}

FusionCheck checkPointwise(uint64_t seed) {
  return check(seed, ProgramKind::Pointwise, 0);
}

FusionCheck checkReductions(uint64_t seed) {
  return check(seed, ProgramKind::Reductions, 2e-4);
}

FusionCheck checkStructures(uint64_t seed) {
  return check(seed, ProgramKind::Structures, 2e-4);
}

}  // namespace wick
