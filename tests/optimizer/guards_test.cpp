// Profiles, guards and bail-outs: IR text in, what must stand in the text that comes out.
#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/bail_outs.h"
#include "passes/eliminate_guards.h"
#include "passes/guard_nodes.h"
#include "passes/insert_guards.h"
#include "passes/insert_profiles.h"
#include "passes/move_guards.h"

namespace wick::guards_test {
namespace {

size_t count(const Block* b, Symbol kind) {
  size_t n = 0;
  for (const Node* node : b->nodes()) {
    n += node->kind() == kind;
    for (const Block* sub : node->blocks()) n += count(sub, kind);
  }
  return n;
}
size_t count(const Graph& graph, Symbol kind) {
  return count(graph.block(), kind);
}

TypePtr floats(size_t rank) {
  TensorType::Facts facts;
  facts.dtype = DType::Float;
  facts.dim = rank;
  return TensorType::create(facts);
}

const TypeOfProfile kAllVectors = [](size_t, const TypePtr&) { return floats(1); };

// The nodes of a block in order, by kind.
std::string kinds(const Block* b) {
  std::string text;
  for (const Node* n : b->nodes()) {
    if (n->kind() != prim::Constant) text += std::string(n->kind().qualString()) + " ";
  }
  return text;
}

const char* const kTwoQuestions = R"(graph(%x : Tensor, %c : bool):
  %a : Tensor = aten::relu(%x)
  %d : int = prim::dtype(%a)
  %e : int = aten::dim(%a)
  %s : int = aten::add(%d, %e)
  %y : int = prim::If(%c)
    block0():
      %f : int = aten::dim(%a)
      -> (%f)
    block1():
      %g : int = aten::dim(%x)
      -> (%g)
  return (%s, %y)
)";

TEST(InsertProfiles, OneInFrontOfTheFirstQuestion) {
  auto graph = parseGraph(kTwoQuestions);
  EXPECT_EQ(insertProfiles(*graph, ProfileChoice::Useful), 2u);
  verify(*graph);
  EXPECT_EQ(kinds(graph->block()),
            "aten::relu prim::profile prim::dtype aten::dim aten::add prim::If prim::profile ");
  EXPECT_EQ(count(*graph, profileKind()), 3u);
}

TEST(InsertProfiles, NoneOfWhatIsKnown) {
  auto graph = parseGraph(R"(graph(%x : Float(*), %y : Tensor):
  %a : int = prim::dtype(%x)
  %b : Tensor = aten::relu(%y)
  return (%a, %b)
)");
  EXPECT_EQ(insertProfiles(*graph, ProfileChoice::Useful), 0u);
  EXPECT_EQ(count(*graph, profileKind()), 0u);
  EXPECT_EQ(insertProfiles(*graph, ProfileChoice::Everything), 1u);
}

TEST(InsertGuards, LaterUsersReadTheGuard) {
  auto graph = parseGraph(kTwoQuestions);
  insertProfiles(*graph, ProfileChoice::Useful);
  insertGuards(*graph, kAllVectors);
  verify(*graph);
  EXPECT_EQ(count(*graph, profileKind()), 0u);
  EXPECT_EQ(count(*graph, guardKind()), 2u);
  std::string text = graph->str();
  EXPECT_NE(text.find("Float(*) = prim::Guard"), std::string::npos) << text;
  for (const Node* n : graph->nodes()) {
    if (n->kind() == Symbol::prim("dtype")) {
      EXPECT_EQ(n->input(0)->node()->kind(), guardKind());
    }
  }
}

TEST(InsertGuards, OnlyWhereTheTypeSaysMore) {
  auto graph = parseGraph(kTwoQuestions);
  insertProfiles(*graph, ProfileChoice::Useful);
  insertGuards(*graph, [](size_t value, const TypePtr& declared) -> TypePtr {
    return value == 0 ? nullptr : declared;
  });
  EXPECT_EQ(count(*graph, guardKind()), 0u);
}

TEST(EliminateGuards, WhatFollowsFromAGuardNeedsNone) {
  auto graph = parseGraph(R"(graph(%x : Tensor):
  %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%x)
  %a : Tensor = aten::relu(%g)
  %h : Float(*) = prim::Guard[types=types [Float(*)], profiles=[1]](%a)
  %b : Tensor = aten::neg(%h)
  return (%b)
)");
  eliminateGuards(*graph);
  verify(*graph);
  EXPECT_EQ(kinds(graph->block()), "prim::Guard aten::relu aten::neg ");
  EXPECT_EQ(graph->outputs()[0]->type()->as<TensorType>()->facts().dtype, DType::Float);
}

TEST(EliminateGuards, OneThatSaysMoreStays) {
  auto graph = parseGraph(R"(graph(%x : Tensor):
  %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%x)
  %a : Tensor = aten::relu(%g)
  %h : Float(*, *) = prim::Guard[types=types [Float(*, *)], profiles=[1]](%a)
  return (%h)
)");
  eliminateGuards(*graph);
  EXPECT_EQ(count(*graph, guardKind()), 2u);
}

TEST(MoveGuards, UpToTheDefinitionAndTogether) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%y)
  %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%x)
  %c : Tensor = aten::neg(%g)
  %h : Float(*) = prim::Guard[types=types [Float(*)], profiles=[1]](%y)
  %d : Tensor = aten::neg(%h)
  %k : Float(*) = prim::Guard[types=types [Float(*)], profiles=[2]](%b)
  return (%a, %c, %d, %k)
)");
  moveGuards(*graph);
  verify(*graph);
  EXPECT_EQ(kinds(graph->block()),
            "prim::Guard prim::Guard aten::relu aten::relu prim::Guard aten::neg aten::neg ");
  coalesceGuards(*graph);
  verify(*graph);
  EXPECT_EQ(kinds(graph->block()),
            "prim::Guard aten::relu aten::relu prim::Guard aten::neg aten::neg ");
  const Node* first = *graph->nodes().begin();
  EXPECT_EQ(first->outputs().size(), 2u);
  EXPECT_EQ(first->ivalue(Symbol::attr("profiles")).elements().size(), 2u);
}

TEST(MoveGuards, OutOfLoopsButNotOutOfBranches) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %n : int, %c : bool):
  %t : bool = prim::Constant[value=True]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%x)
      %h : Float(*) = prim::Guard[types=types [Float(*)], profiles=[1]](%p)
      %q : Tensor = aten::mul(%g, %h)
      -> (%t, %q)
  %s : Tensor = prim::If(%c)
    block0():
      %a : Tensor = aten::neg(%r)
      %k : Float(*) = prim::Guard[types=types [Float(*)], profiles=[2]](%x)
      %b : Tensor = aten::mul(%a, %k)
      -> (%b)
    block1():
      -> (%r)
  return (%s)
)");
  moveGuards(*graph);
  verify(*graph);
  EXPECT_EQ(kinds(graph->block()), "prim::Guard prim::Loop prim::If ");
  for (const Node* n : graph->nodes()) {
    if (n->blocks().empty()) continue;
    bool loop = n->kind() == prim::Loop;
    EXPECT_EQ(kinds(n->blocks()[0]),
              loop ? "prim::Guard aten::mul " : "prim::Guard aten::neg aten::mul ");
  }
}

TEST(BailOuts, CarryWhatTheRestReads) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %y : Tensor, %z : Tensor):
  %two : int = prim::Constant[value=2]()
  %a : Tensor = aten::relu(%x)
  %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%a)
  %b : Tensor = aten::add(%g, %y, %two)
  return (%b)
)");
  auto points = insertBailOuts(*graph);
  verify(*graph);
  ASSERT_EQ(points->points.size(), 1u);
  std::string text = graph->str();
  EXPECT_NE(text.find("prim::BailOut"), std::string::npos) << text;
  EXPECT_NE(text.find("](%a, %a, %y)"), std::string::npos) << text;
  auto rest = continuationAt(*points, 0);
  verify(*rest);
  EXPECT_EQ(rest->inputs().size(), 2u);
  EXPECT_EQ(kinds(rest->block()), "aten::add ");
  EXPECT_EQ(rest->outputs().size(), 1u);
}

TEST(BailOuts, GoOnWithTheRemainingTurns) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %n : int):
  %t : bool = prim::Constant[value=True]()
  %r : Tensor = prim::Loop(%n, %t, %x)
    block0(%i : int, %p : Tensor):
      %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%p)
      %q : Tensor = aten::mul(%g, %i)
      -> (%t, %q)
  %s : Tensor = aten::neg(%r)
  return (%s)
)");
  auto points = insertBailOuts(*graph);
  auto rest = continuationAt(*points, 0);
  verify(*rest);
  EXPECT_EQ(kinds(rest->block()), "aten::mul aten::add aten::sub prim::Loop aten::neg ");
  EXPECT_EQ(count(*rest, guardKind()), 0u);
}

TEST(BailOuts, ThereIsALimit) {
  auto graph = std::make_shared<Graph>();
  Value* v = graph->addInput("x", types::Tensor());
  for (size_t i = 0; i < kMaxBailOuts + 5; ++i) {
    Node* guard = graph->insertNode(graph->create(guardKind(), {v}));
    guard->output()->setType(floats(1));
    guard->setAttribute(attr::types, std::vector<TypePtr>{floats(1)});
    guard->setAttribute(Symbol::attr("profiles"), IValue(makeIntList({0})));
    v = graph->insertNode(graph->create(Symbol::aten("relu"), {guard->output()}))->output();
  }
  graph->registerOutput(v);
  v->setType(floats(1));
  EXPECT_EQ(insertBailOuts(*graph)->points.size(), kMaxBailOuts);
  verify(*graph);
  EXPECT_EQ(count(*graph, guardKind()), 0u);
  EXPECT_EQ(count(*graph, bailOutKind()), kMaxBailOuts);
  // Its type followed from a guard that was dropped.
  EXPECT_FALSE(v->type()->as<TensorType>()->facts().dtype);
}

TEST(SameComputation, LooksThroughGuards) {
  auto plain = parseGraph(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  return (%a)
)");
  auto guarded = parseGraph(R"(graph(%x : Tensor):
  %g : Float(*) = prim::Guard[types=types [Float(*)], profiles=[0]](%x)
  %a : Float(*) = aten::relu(%g)
  return (%a)
)");
  auto other = parseGraph(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  return (%x)
)");
  EXPECT_TRUE(sameComputation(*plain, *guarded));
  EXPECT_FALSE(sameComputation(*plain, *other));
}

}  // namespace
}  // namespace wick::guards_test
