#include "passes/write_groups.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/fusion_groups.h"
#include "tests/ir/test_operators.h"

namespace wick::write_groups_test {
namespace {

// The names of the operators in each group of the graph, behind each a blank.
std::vector<std::string> groupsOf(const std::string& body) {
  auto graph = parseGraph("graph(%x : Tensor, %y : Tensor):\n" + body);
  WriteGroupOptions options;
  options.writes = [](const Node* node) {
    return std::string_view(node->kind().qualString()).ends_with("_");
  };
  options.updates = [](const Node* node) { return node->kind() == aten::batch_norm; };
  options.computes = [](const Node* node) { return node->kind() == Symbol::aten("mul"); };
  formWriteGroups(*graph, options);
  verify(*graph);
  std::vector<std::string> groups;
  for (const Node* node : graph->nodes()) {
    if (node->kind() != prim::FusionGroup) continue;
    std::string& names = groups.emplace_back();
    for (const Node* inner : node->subgraph(attr::Subgraph)->nodes()) {
      if (inner->kind() == prim::Constant) continue;
      names += std::string(inner->kind().qualString()).substr(6) + " ";
    }
  }
  dissolveFusionGroups(*graph);
  verify(*graph);
  return groups;
}

using Groups = std::vector<std::string>;

TEST(WriteGroupsTest, NeighboursThatWriteTheSameAreOneGroup) {
  EXPECT_EQ(groupsOf(R"(  %1 : Tensor = aten::mul_(%x, %y)
  %2 : Tensor = aten::mul(%1, %y)
  %3 : Tensor = aten::relu_(%x)
  %4 : Tensor = aten::mul_(%1, %2)
  %5 : Tensor = aten::mul(%x, %y)
  return (%4, %2, %5)
)"),
            Groups{"mul_ mul relu_ mul_ "});
}

TEST(WriteGroupsTest, OneTensorAGroup) {
  EXPECT_EQ(groupsOf(R"(  %1 : Tensor = aten::mul_(%x, %y)
  %2 : Tensor = aten::relu_(%x)
  %3 : Tensor = aten::relu_(%y)
  %4 : Tensor = aten::mul_(%y, %x)
  return (%2, %4)
)"),
            (Groups{"mul_ relu_ ", "relu_ mul_ "}));
}

TEST(WriteGroupsTest, WhatStandsBetweenEndsIt) {
  EXPECT_EQ(groupsOf(R"(  %1 : Tensor = aten::relu_(%x)
  %2 : Tensor = aten::relu(%x)
  %3 : Tensor = aten::mul_(%x, %2)
  return (%3)
)"),
            Groups{});
}

TEST(WriteGroupsTest, WhatIsMadeInsideIsNotWritten) {
  EXPECT_EQ(groupsOf(R"(  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::relu_(%1)
  %3 : Tensor = aten::mul_(%1, %y)
  return (%1)
)"),
            Groups{"relu_ mul_ "});
}

TEST(WriteGroupsTest, WhatIsComputedBehindAnUpdateBelongsToIt) {
  EXPECT_EQ(groupsOf(R"(  %t : bool = prim::Constant[value=True]()
  %e : float = prim::Constant[value=0.1]()
  %1 : Tensor = aten::mul(%x, %y)
  %2 : Tensor = aten::batch_norm(%1, %y, %y, %y, %y, %t, %e, %e, %t)
  %3 : Tensor = aten::mul(%2, %y)
  %4 : Tensor = aten::mul(%x, %x)
  return (%3, %4)
)"),
            Groups{"mul batch_norm mul "});
  EXPECT_EQ(groupsOf(R"(  %t : bool = prim::Constant[value=True]()
  %e : float = prim::Constant[value=0.1]()
  %2 : Tensor = aten::batch_norm(%x, %y, %y, %y, %y, %t, %e, %e, %t)
  %4 : Tensor = aten::mul(%x, %x)
  return (%2, %4)
)"),
            Groups{"batch_norm "});
}

TEST(WriteGroupsTest, WhatNoWriteReadsStaysInFront) {
  EXPECT_EQ(groupsOf(R"(  %1 : Tensor = aten::mul(%y, %y)
  %2 : Tensor = aten::relu_(%x)
  return (%1, %2)
)"),
            Groups{});
}

}  // namespace
}  // namespace wick::write_groups_test
