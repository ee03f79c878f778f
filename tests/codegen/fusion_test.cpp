#include <gtest/gtest.h>

#include "ir/parser.h"
#include "runtime/fusion/form_groups.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/interpreter/interpreter.h"
#include "runtime/jit_mode.h"
#include "tests/codegen/check_fusion.h"

namespace wick {
namespace {

TEST(FusionTest, PointwiseGroupsGiveTheSameBits) {
  int fused = 0;
  for (uint64_t seed = 1; seed <= 250; ++seed) {
    FusionCheck check = checkPointwise(seed);
    EXPECT_EQ(check.failure, "");
    fused += check.fused;
  }
  EXPECT_GT(fused, 80);
}

TEST(FusionTest, ReductionsAreClose) {
  int fused = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    FusionCheck check = checkReductions(seed);
    EXPECT_EQ(check.failure, "");
    fused += check.fused;
  }
  EXPECT_GT(fused, 40);
}

std::shared_ptr<Graph> groupedGraph(const char* text) {
  auto graph = parseGraph(text);
  FusionOptions options;
  options.kind_of = kernelKindOf;
  formFusionGroups(*graph, options);
  return graph;
}

constexpr const char* kChain = R"(graph(%x : Tensor, %b : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : Tensor = aten::add(%x, %b, %1)
  %3 : Tensor = aten::tanh(%2)
  %4 : Tensor = aten::mul(%3, %x)
  return (%4)
)";

TEST(FusionTest, NewSizesCompileNothing) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(kChain), "forward");
  auto run = [&](int64_t batch) {
    runCode(*code, {IValue(Tensor::full({batch, 19}, 0.5, DType::Float)),
                    IValue(Tensor::full({19}, 0.25, DType::Float))});
  };
  run(7);
  FusionStatistics before = fusionStatistics();
  for (int64_t i = 0; i < 1000; ++i) run(2 + i * 37 % 501);
  FusionStatistics after = fusionStatistics();
  EXPECT_EQ(after.kernels, before.kernels);
  EXPECT_EQ(after.variants, before.variants);
  EXPECT_EQ(after.launches, before.launches + 1000);
}

TEST(FusionTest, NothingIsFusedWhileTheSwitchIsOff) {
  setJitMode(JitMode::Off);
  auto graph = parseGraph(kChain);
  formKernelGroups(*graph);
  for (const Node* node : graph->nodes()) EXPECT_NE(node->kind(), prim::FusionGroup);
  setJitMode(JitMode::Sync);
  formKernelGroups(*graph);
  bool grouped = false;
  for (const Node* node : graph->nodes()) grouped |= node->kind() == prim::FusionGroup;
  EXPECT_TRUE(grouped);
}

TEST(FusionTest, WrongShapesRaiseTheOperatorsError) {
  setJitMode(JitMode::Sync);
  auto code = Code::build(groupedGraph(kChain), "forward");
  try {
    runCode(*code, {IValue(Tensor::full({3, 4}, 1, DType::Float)),
                    IValue(Tensor::full({5}, 1, DType::Float))});
    FAIL() << "no error";
  } catch (const RuntimeError& e) {
    EXPECT_NE(std::string(e.what()).find("must match"), std::string::npos) << e.what();
  }
}

}  // namespace
}  // namespace wick
