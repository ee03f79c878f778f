#include "passes/fusion_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "tests/ir/test_operators.h"

namespace wick::fusion_groups_test {
namespace {

FusionOptions testOptions() {
  FusionOptions options;
  options.kind_of = [](const Node* node) {
    const std::string_view name = node->kind().qualString();
    if (name == "aten::mul" || name == "aten::relu") return FusionKind::Pointwise;
    if (name == "aten::view") return FusionKind::View;
    return FusionKind::None;
  };
  return options;
}

// The numbers of nodes in the groups of the graph, in its order.
std::vector<size_t> groupsOf(const Graph& graph) {
  std::vector<size_t> sizes;
  for (const Node* node : graph.nodes()) {
    if (node->kind() != prim::FusionGroup) continue;
    size_t n = 0;
    for (const Node* inner : node->subgraph(attr::Subgraph)->nodes()) {
      n += inner->kind() != prim::Constant;
    }
    sizes.push_back(n);
  }
  return sizes;
}

std::vector<size_t> fused(const std::string& text, const FusionOptions& options = testOptions()) {
  auto graph = parseGraph(text);
  formFusionGroups(*graph, options);
  verify(*graph);
  std::vector<size_t> sizes = groupsOf(*graph);
  // The text form carries groups, and dissolving leaves none.
  const std::string numbered_anew = parseGraph(graph->str())->str();
  EXPECT_EQ(parseGraph(numbered_anew)->str(), numbered_anew);
  dissolveFusionGroups(*graph);
  verify(*graph);
  EXPECT_TRUE(groupsOf(*graph).empty());
  return sizes;
}

using Sizes = std::vector<size_t>;

// How often the pass asks about readers when each of `n` nodes reads one value.
size_t questionsAbout(size_t n) {
  std::string text =
      "graph(%x : Tensor):\n  %w : Tensor = aten::relu(%x)\n  %0 : Tensor = aten::mul(%x, %w)\n";
  for (size_t i = 1; i < n; ++i) {
    text +=
        "  %" + std::to_string(i) + " : Tensor = aten::mul(%" + std::to_string(i - 1) + ", %w)\n";
  }
  text += "  return (%" + std::to_string(n - 1) + ")\n";
  FusionOptions options = testOptions();
  options.max_nodes = 50;
  size_t asked = 0;
  options.exposes = [&](const Node*) {
    ++asked;
    return false;
  };
  auto graph = parseGraph(text);
  formFusionGroups(*graph, options);
  verify(*graph);
  EXPECT_GE(groupsOf(*graph).size(), n / 60);
  return asked;
}

TEST(FusionGroupsTest, AValueWithManyReadersCostsNoMoreForEach) {
  EXPECT_LE(questionsAbout(4000), 4 * questionsAbout(1000) + 1000);
}

TEST(FusionGroupsTest, AChainIsOneGroup) {
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::mul(%2, %1)
  return (%3)
)"),
            Sizes{3});
}

TEST(FusionGroupsTest, ResultsThatOthersUseLeaveTheGroup) {
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::relu(%1)
  return (%2, %1)
)"),
            Sizes{2});
}

TEST(FusionGroupsTest, NodesThatReadTheSameAreOneGroup) {
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%y, %y)
  %2 : Tensor = aten::mul(%1, %x)
  %3 : Tensor = aten::relu(%x)
  return (%2, %3)
)"),
            Sizes{3});
  // What the group needs cannot move behind it.
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %1 : Tensor = aten::mul(%x, %x)
  %2 : Tensor = aten::add(%1, %y, %one)
  %3 : Tensor = aten::mul(%2, %x)
  return (%3)
)"),
            Sizes{});
}

TEST(FusionGroupsTest, OneNodeIsNoGroup) {
  EXPECT_EQ(fused(R"(graph(%x : Tensor):
  %1 : Tensor = aten::relu(%x)
  return (%1)
)"),
            Sizes{});
}

TEST(FusionGroupsTest, WritesStayBetweenTheNodesThatReadAndMake) {
  // The first product reads %x before it is written, the second one behind.
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor):
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::relu_(%x)
  %3 : Tensor = aten::mul(%1, %x)
  return (%3, %2)
)"),
            Sizes{});
}

TEST(FusionGroupsTest, NodesOfOthersMoveOutOfTheWay) {
  EXPECT_EQ(fused(R"(graph(%x : Tensor, %y : Tensor, %n : int):
  %1 : Tensor = aten::mul(%x, %y)
  %m : int = aten::add(%n, %n)
  %2 : Tensor = aten::relu(%1)
  return (%2, %m)
)"),
            Sizes{2});
}

TEST(FusionGroupsTest, ViewsEnterOnlyWhenTheyStayInside) {
  const auto text = [](const char* results) {
    return std::string(R"(graph(%x : Tensor, %n : int):
  %s : int[] = prim::ListConstruct(%n)
  %1 : Tensor = aten::relu(%x)
  %v : Tensor = aten::view(%1, %s)
  %2 : Tensor = aten::relu(%v)
  %3 : Tensor = aten::mul(%2, %2)
  return ()") +
           results + ")\n";
  };
  EXPECT_EQ(fused(text("%3")), Sizes{5});
  EXPECT_EQ(fused(text("%3, %v")), Sizes{2});
}

TEST(FusionGroupsTest, ListsThatOthersReadEnterAsCopies) {
  const auto text = [](const char* write) {
    return std::string(R"(graph(%x : Tensor, %n : int):
  %s : int[] = prim::ListConstruct(%n)
  %1 : Tensor = aten::relu(%x)
  %v : Tensor = aten::view(%1, %s)
  %2 : Tensor = aten::relu(%v)
  %3 : Tensor = aten::relu(%2)
)") + write +
           "  return (%3, %s)\n";
  };
  EXPECT_EQ(fused(text("")), Sizes{5});
  EXPECT_EQ(fused(text("  %0 : int[] = aten::append(%s, %n)\n")), Sizes{2});
}

TEST(FusionGroupsTest, GroupsHaveLimits) {
  std::string text = "graph(%x : Tensor):\n  %v0 : Tensor = aten::relu(%x)\n";
  for (int i = 1; i < 10; ++i)
    text += fmt::format("  %v{} : Tensor = aten::relu(%v{})\n", i, i - 1);
  text += "  return (%v9)\n";
  FusionOptions options = testOptions();
  options.max_nodes = 4;
  EXPECT_EQ(fused(text, options), (Sizes{2, 4, 4}));
}

TEST(FusionGroupsTest, BlocksHaveTheirOwn) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %c : bool):
  %z : Tensor = prim::If(%c)
    block0():
      %1 : Tensor = aten::relu(%x)
      %2 : Tensor = aten::mul(%1, %x)
      -> (%2)
    block1():
      -> (%x)
  return (%z)
)");
  formFusionGroups(*graph, testOptions());
  verify(*graph);
  EXPECT_NE(graph->str().find("prim::FusionGroup"), std::string::npos) << graph->str();
}

}  // namespace
}  // namespace wick::fusion_groups_test
