// The conversion to SSA and the exit transform, on graphs as the emitter makes them.
#include <gtest/gtest.h>

#include "frontend/convert_to_ssa.h"
#include "frontend/exit_transforms.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "tests/ir/test_operators.h"

namespace wick::lowering_test {
namespace {

std::shared_ptr<Graph> lower(const char* text) {
  auto graph = parseGraph(text);
  convertToSSA(graph);
  transformExits(graph);
  verify(*graph);
  std::string left = graph->str();
  for (const char* kind :
       {"prim::Load", "prim::Store", "prim::ReturnStmt", "prim::LoopContinuation", "prim::With"}) {
    EXPECT_EQ(left.find(kind), std::string::npos) << left;
  }
  return graph;
}

TEST(Lowering, BranchesMergeVariables) {
  auto graph = lower(R"(graph(%c : bool, %x : Tensor):
  = prim::Store[name="y"](%x)
  = prim::If(%c)
    block0():
      %1 : Tensor = prim::Load[name="y"]()
      %2 : Tensor = aten::relu(%1)
      = prim::Store[name="y"](%2)
      -> ()
    block1():
      -> ()
  %3 : Tensor = prim::Load[name="y"]()
  = prim::ReturnStmt(%3)
  %4 : Tensor = prim::Uninitialized()
  return (%4)
)");
  Node* branch = graph->outputs()[0]->node();
  ASSERT_EQ(branch->kind(), prim::If);
  EXPECT_EQ(branch->blocks()[1]->outputs()[0], graph->inputs()[1]);
}

TEST(Lowering, WhileCarriesVariablesAndBreaks) {
  auto graph = lower(R"(graph(%n : int, %stop : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %max : int = prim::Constant[value=9223372036854775807]()
  = prim::Store[name="i"](%zero)
  = prim::Loop(%max)
    block0(%trip : int):
      = prim::If(%stop)
        block0():
          = prim::BreakStmt()
          -> ()
        block1():
          -> ()
      %a : int = prim::Load[name="i"]()
      %b : int = aten::add(%a, %one)
      = prim::Store[name="i"](%b)
      -> ()
    block1():
      %c : int = prim::Load[name="i"]()
      %d : bool = aten::lt(%c, %n)
      -> (%d)
  %r : int = prim::Load[name="i"]()
  = prim::ReturnStmt(%r)
  %u : int = prim::Uninitialized()
  return (%u)
)");
  Node* loop = graph->outputs()[0]->node();
  ASSERT_EQ(loop->kind(), prim::Loop);
  EXPECT_EQ(loop->inputs().size(), 3u);
  EXPECT_EQ(loop->input(1)->node()->kind(), aten::lt);
  // The continue condition is False after a break and the loop's own otherwise.
  EXPECT_EQ(loop->blocks()[0]->outputs()[0]->node()->kind(), prim::If);
}

TEST(Lowering, ReturnInsideALoopLeavesIt) {
  auto graph = lower(R"(graph(%n : int, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=True]()
  = prim::Loop(%n, %true)
    block0(%i : int):
      %hit : bool = aten::eq(%i, %one)
      = prim::If(%hit)
        block0():
          = prim::ReturnStmt(%i)
          -> ()
        block1():
          -> ()
      -> (%true)
  = prim::ReturnStmt(%n)
  %u : int = prim::Uninitialized()
  return (%u)
)");
  Node* select = graph->outputs()[0]->node();
  ASSERT_EQ(select->kind(), prim::If);
  Node* loop = select->input(0)->node();
  ASSERT_EQ(loop->kind(), prim::Loop);
  size_t which = graph->outputs()[0]->offset();
  EXPECT_EQ(select->blocks()[0]->outputs()[which]->node(), loop);
  EXPECT_EQ(select->blocks()[1]->outputs()[which], graph->inputs()[0]);
}

TEST(Lowering, CodeAfterARaiseOnBothPathsIsDead) {
  auto graph = lower(R"(graph(%c : bool, %x : Tensor):
  %m : str = prim::Constant[value="no"]()
  = prim::If(%c)
    block0():
      = prim::RaiseException(%m)
      -> ()
    block1():
      = prim::ReturnStmt(%x)
      -> ()
  = aten::warn(%m)
  %u : Tensor = prim::Uninitialized()
  return (%u)
)");
  EXPECT_EQ(graph->str().find("aten::warn"), std::string::npos) << graph->str();
  EXPECT_EQ(graph->outputs()[0]->node()->kind(), prim::If);
}

TEST(Lowering, WithRunsItsExitOnAReturn) {
  auto graph = lower(R"(graph(%c : bool, %x : Tensor, %context : Any):
  %e : Tensor = prim::Enter(%context)
  = prim::If(%c)
    block0():
      = prim::ReturnStmt(%x)
      -> ()
    block1():
      -> ()
  %y : Tensor = aten::relu(%x)
  %1 : Tensor = prim::Exit(%context)
  %z : Tensor = aten::relu(%y)
  = prim::ReturnStmt(%z)
  %u : Tensor = prim::Uninitialized()
  return (%u)
)");
  int exits = 0;
  for (Node* n : graph->nodes()) exits += n->kind() == prim::Exit;
  EXPECT_EQ(exits, 1) << graph->str();
  EXPECT_EQ(graph->outputs()[0]->node()->kind(), prim::If) << graph->str();
}

TEST(Lowering, TypesOfTwoPathsMustUnify) {
  auto graph = parseGraph(R"(graph(%c : bool, %x : Tensor, %i : int):
  = prim::If(%c)
    block0():
      = prim::Store[name="y"](%x)
      -> ()
    block1():
      = prim::Store[name="y"](%i)
      -> ()
  return (%x)
)");
  convertToSSA(graph);  // int and Tensor become Union[Tensor, int], which nobody reads
  verify(*graph);
  EXPECT_EQ(graph->str().find("prim::Store"), std::string::npos);
}

}  // namespace
}  // namespace wick::lowering_test
