#include "passes/restore_operators.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/dead_code_elimination.h"
#include "passes/fusion_groups.h"
#include "passes/guard_nodes.h"
#include "tests/ir/test_operators.h"

namespace wick::restore_operators_test {
namespace {

using testing::HasSubstr;

std::string namesOf(const Graph& graph) {
  std::string names;
  for (const Node* node : graph.nodes()) {
    if (node->kind() != prim::Constant) names += std::string(node->kind().qualString()) + " ";
  }
  return names;
}

std::string restored(const std::string& text) {
  auto graph = parseGraph(text);
  EXPECT_TRUE(hasOwnOperators(*graph));
  restoreOperators(*graph);
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_FALSE(hasOwnOperators(*graph));
  return namesOf(*graph);
}

TEST(RestoreOperatorsTest, LayersBecomeTheirParts) {
  const std::string layer = R"(graph(%x : Tensor, %w : Tensor, %b : Tensor, %r : Tensor):
  %n : NoneType = prim::Constant()
  %a : str = prim::Constant[value="relu"]()
  %none : str = prim::Constant[value="none"]()
  %t : bool = prim::Constant[value=True]()
  %f : bool = prim::Constant[value=False]()
)";
  EXPECT_EQ(restored(layer + R"(  %y : Tensor = wick::linear_fused(%x, %w, %b, %r, %a, %f)
  return (%y)
)"),
            "aten::linear aten::add aten::relu ");
  EXPECT_EQ(restored(layer + R"(  %y : Tensor = wick::linear_fused(%x, %w, %b, %r, %none, %t)
  return (%y)
)"),
            "aten::linear aten::add_ ");
  EXPECT_EQ(restored(layer + R"(  %one : int = prim::Constant[value=1]()
  %s : int[] = prim::ListConstruct(%one, %one)
  %y : Tensor = wick::conv2d_fused(%x, %w, %n, %n, %s, %s, %s, %one, %a, %f)
  return (%y)
)"),
            "prim::ListConstruct aten::conv2d aten::relu ");
}

// What a program says by hand and no optimization would stays, and is named by whoever prints it.
TEST(RestoreOperatorsTest, LayersThatItDoesNotKnowStay) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %w : Tensor, %b : Tensor, %a : str):
  %f : bool = prim::Constant[value=False]()
  %y : Tensor = wick::linear_fused(%x, %w, %b, %b, %a, %f)
  return (%y)
)");
  restoreOperators(*graph);
  EXPECT_EQ(namesOf(*graph), "wick::linear_fused ");
}

TEST(RestoreOperatorsTest, GroupsAreDissolvedAndGuardsGo) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  return (%b)
)");
  FusionOptions options;
  options.kind_of = [](const Node* node) {
    return node->kind() == prim::Constant ? FusionKind::None : FusionKind::Pointwise;
  };
  formFusionGroups(*graph, options);
  ASSERT_EQ(namesOf(*graph), "prim::FusionGroup ");
  EXPECT_TRUE(hasOwnOperators(*graph));
  restoreOperators(*graph);
  verify(*graph);
  EXPECT_EQ(namesOf(*graph), "aten::mul aten::relu ");

  Node* relu = graph->outputs()[0]->node();
  Node* profile = graph->create(profileKind(), {relu->input(0)}, 0);
  profile->insertBefore(relu);
  EXPECT_TRUE(hasOwnOperators(*graph));
  restoreOperators(*graph);
  EXPECT_EQ(namesOf(*graph), "aten::mul aten::relu ");
}

TEST(RestoreOperatorsTest, GraphsThatSupposeTypesAreRefused) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  return (%a)
)");
  Node* mul = graph->outputs()[0]->node();
  graph->create(bailOutKind(), {mul->input(0)})->insertBefore(mul);
  try {
    restoreOperators(*graph);
    FAIL();
  } catch (const RuntimeError& error) {
    EXPECT_THAT(error.message(), HasSubstr("prim::BailOut"));
  }
}

}  // namespace
}  // namespace wick::restore_operators_test
