// Chains of operators that are long, or have more arguments than a kernel takes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>

#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"

namespace wick::long_chains_test {
namespace {

// Long chains are computed by several vectors at a time, and what is left by one and by parts of one.
TEST(LongChains, HaveTheOperatorsBits) {
  setJitMode(JitMode::Sync);
  std::string text =
      "graph(%v0 : Tensor, %y : Tensor, %s : float):\n"
      "  %one : int = prim::Constant[value=1]()\n";
  constexpr int kLength = 48;
  for (int i = 0; i < kLength; i += 4) {
    text += fmt::format(
        "  %v{} : Tensor = aten::mul(%v{}, %s)\n  %v{} : Tensor = aten::add(%v{}, %y, %one)\n"
        "  %v{} : Tensor = aten::relu(%v{})\n  %v{} : Tensor = aten::sub(%v{}, %y, %one)\n",
        i + 1, i, i + 2, i + 1, i + 3, i + 2, i + 4, i + 3);
  }
  text += fmt::format("  return (%v{}, %v{})\n", kLength, kLength / 2);
  auto fused = parseGraph(text);
  formKernelGroups(*fused);
  const auto kernels = Code::build(fused, "forward");
  const auto plain = Code::build(parseGraph(text), "forward");
  const auto compare = [&](const Tensor& x, const Tensor& y) {
    const std::string what = x.describe();
    const uint64_t before = fusionStatistics().launches;
    const IValue found = runCode(*kernels, {IValue(x), IValue(y), IValue(0.75)});
    EXPECT_GT(fusionStatistics().launches, before) << what;
    const IValue expected = runCode(*plain, {IValue(x), IValue(y), IValue(0.75)});
    for (size_t r = 0; r < 2; ++r) {
      const Tensor a = found.elements()[r].toTensor().contiguous();
      const Tensor b = expected.elements()[r].toTensor().contiguous();
      ASSERT_EQ(a.dtype(), b.dtype()) << what;
      ASSERT_EQ(a.numel(), b.numel()) << what;
      const size_t bytes = static_cast<size_t>(a.numel()) * a.itemSize();
      EXPECT_EQ(std::memcmp(a.rawData(), b.rawData(), bytes), 0) << what;
    }
  };
  for (const DType dtype : {DType::Float, DType::Double, DType::BFloat16}) {
    for (const int64_t n : {1, 7, 8, 31, 32, 33, 64, 100, 5000}) {
      const Tensor numbers = Tensor::empty({3, 2 * n}, DType::Float);
      for (int64_t i = 0; i < numbers.numel(); ++i) {
        numbers.data<float>()[i] = static_cast<float>((i * 37 % 101 - 50) * 0.125);
      }
      const Tensor x = numbers.to(dtype);
      const Tensor row = x.slice(0, 0, 1, 1).slice(1, 0, n, 1);
      compare(x.slice(1, 0, n, 1).contiguous(), row);
      compare(x.slice(1, 0, 2 * n, 2), row);  // every other element
      compare(x.slice(1, n, 2 * n, 1), Tensor::full({}, 0.5, dtype));
    }
  }
}

// More arguments than a kernel takes are several kernels, not none.
TEST(LongChains, OfManyArgumentsAreSeveralKernels) {
  setJitMode(JitMode::Sync);
  constexpr int kLength = 150;
  std::string inputs = "%v0 : Tensor", lines;
  std::vector<IValue> given{IValue(Tensor::full({100}, 0.5, DType::Float))};
  for (int i = 0; i < kLength; ++i) {
    inputs += fmt::format(", %s{} : float", i);
    lines += fmt::format("  %v{} : Tensor = aten::mul(%v{}, %s{})\n", i + 1, i, i);
    given.emplace_back(1 + 0.001 * i);
  }
  const std::string text = fmt::format("graph({}):\n{}  return (%v{})\n", inputs, lines, kLength);
  auto fused = parseGraph(text);
  formKernelGroups(*fused);
  const FusionStatistics before = fusionStatistics();
  const Tensor found = runCode(*Code::build(fused, "forward"), given).toTensor();
  EXPECT_GE(fusionStatistics().launches, before.launches + 3);
  EXPECT_EQ(fusionStatistics().fallbacks, before.fallbacks);
  const Tensor expected = runCode(*Code::build(parseGraph(text), "forward"), given).toTensor();
  EXPECT_EQ(std::memcmp(found.rawData(), expected.rawData(), 400), 0);
}

}  // namespace
}  // namespace wick::long_chains_test
