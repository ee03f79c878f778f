// What the pipeline offers to those who debug it: logs, limits, levels, stages.
#include "passes/pipeline.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/log.h"
#include "core/optimization_limit.h"
#include "ir/parser.h"
#include "tests/ir/test_operators.h"

namespace wick::pipeline_test {
namespace {

constexpr const char* kProgram = R"(graph(%x : int):
  %1 : int = prim::Constant[value=1]()
  %2 : int = aten::add(%1, %1)
  %3 : int = aten::add(%2, %2)
  %4 : int = aten::add(%x, %3)
  return (%4)
)";

int count(const Graph& graph, Symbol kind) {
  int n = 0;
  for (Node* node : graph.block()->nodes()) n += node->kind() == kind;
  return n;
}

std::string& logged() {
  static std::string text;
  return text;
}

class PipelineTest : public testing::Test {
 protected:
  void SetUp() override {
    logged().clear();
    setLogHandler([](std::string_view line) { logged() += line; });
  }
  void TearDown() override {
    setLogFiles("");
    setLogHandler(nullptr);
    setOptimizationLimits("");
    setOptimizationLevel(OptimizationLevel::Default);
  }
};

const Symbol kAdd = Symbol::fromQualString("aten::add");

TEST_F(PipelineTest, LimitsStopAPassAtANumber) {
  for (int limit : {0, 1, 2, 3}) {
    setOptimizationLimits(fmt::format("constant_propagation={}", limit));
    auto graph = parseGraph(kProgram);
    runPipeline(*graph);
    EXPECT_EQ(count(*graph, kAdd), 3 - std::min(limit, 2)) << graph->str();
  }
}

TEST_F(PipelineTest, TheLimitOfAllPassesNamesTheLastOne) {
  setOptimizationLimits("*=1");
  auto graph = parseGraph(kProgram);
  runPipeline(*graph);
  EXPECT_EQ(optimizationsMade(), 1u);
  EXPECT_EQ(lastOptimizingPass(), "constant_propagation");
  EXPECT_EQ(count(*graph, kAdd), 2);
}

TEST_F(PipelineTest, LimitsMustBePairs) {
  for (const char* text : {"peephole", "peephole=", "=x", "peephole=-1", "peephole=1x"}) {
    EXPECT_THROW(setOptimizationLimits(text), UsageError) << text;
  }
}

TEST_F(PipelineTest, LogsTheFilesThatAreNamed) {
  auto run = [] {
    logged().clear();
    auto graph = parseGraph(kProgram);
    runPipeline(*graph);
  };
  run();
  EXPECT_EQ(logged(), "");
  setLogFiles("inline_calls:constant_propagation");
  run();
  EXPECT_NE(logged().find("[UPDATE constant_propagation.cpp:"), std::string::npos) << logged();
  EXPECT_EQ(logged().find("[DUMP pipeline.cpp"), std::string::npos);
  setLogFiles("pipeline.cpp");
  run();
  EXPECT_NE(logged().find("after constant_propagation:\ngraph("), std::string::npos) << logged();
  EXPECT_EQ(logged().find("UPDATE"), std::string::npos);
  setLogFiles("*");
  run();
  EXPECT_NE(logged().find("UPDATE"), std::string::npos);
}

TEST_F(PipelineTest, DebugLinesNeedTheirMark) {
  setLogFiles("pipeline_test");
  GRAPH_DEBUG("one");
  EXPECT_EQ(logged(), "");
  setLogFiles(">pipeline_test");
  GRAPH_DEBUG("{}", "two");
  EXPECT_NE(logged().find("] two\n"), std::string::npos);
}

TEST_F(PipelineTest, LevelNoneLeavesTheGraph) {
  setOptimizationLevel(OptimizationLevel::None);
  auto graph = parseGraph(kProgram);
  std::string before = graph->str();
  runPipeline(*graph);
  EXPECT_EQ(graph->str(), before);
}

TEST_F(PipelineTest, StressReachesAFixedPoint) {
  setOptimizationLevel(OptimizationLevel::Stress);
  auto graph = parseGraph(kProgram);
  runPipeline(*graph);
  std::string once = graph->str();
  runPipeline(*graph);
  EXPECT_EQ(graph->str(), once);
  EXPECT_EQ(count(*graph, kAdd), 1);
}

// So that kernels may take them in.
TEST_F(PipelineTest, OperatorsDoNotWriteWhatNobodyElseSees) {
  auto graph = parseGraph(R"(graph(%x : Tensor):
  %1 : Tensor = aten::relu(%x)
  %2 : Tensor = aten::relu_(%1)
  %3 : Tensor = aten::relu_(%x)
  return (%2, %3)
)");
  runPhase(*graph, Phase::PostDerivative);
  EXPECT_NE(graph->str().find("aten::relu(%1)"), std::string::npos) << graph->str();
  EXPECT_NE(graph->str().find("aten::relu_(%x)"), std::string::npos) << graph->str();
}

TEST_F(PipelineTest, EndsAfterTheNamedPass) {
  auto graph = parseGraph(kProgram);
  runPipeline(*graph, pipelinePasses()[0].name);
  EXPECT_EQ(count(*graph, kAdd), 3);
}

TEST_F(PipelineTest, IsItsPhasesInOrder) {
  std::vector<const char*> names;
  for (Phase phase : kPhases) {
    for (const PipelinePass& pass : passesOf(phase)) names.push_back(pass.name);
  }
  ASSERT_EQ(names.size(), pipelinePasses().size());
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(names[i], pipelinePasses()[i].name);

  auto whole = parseGraph(kProgram);
  runPipeline(*whole);
  auto parts = parseGraph(kProgram);
  for (Phase phase : kPhases) EXPECT_FALSE(runPhase(*parts, phase));
  EXPECT_EQ(parts->str(), whole->str());
}

TEST_F(PipelineTest, EndsAfterTheNamedPhase) {
  auto whole = parseGraph(kProgram);
  EXPECT_TRUE(runPhase(*whole, Phase::Required, "required"));
  auto graph = parseGraph(kProgram);
  runPipeline(*graph, "required");
  EXPECT_EQ(graph->str(), whole->str());
}

}  // namespace
}  // namespace wick::pipeline_test
