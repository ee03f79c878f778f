#include "ir/graph.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"
#include "tests/ir/test_operators.h"

namespace wick::graph_test {
namespace {

constexpr const char* kLoopText = R"(graph(%x.1 : Tensor,
      %n : int,
      %flag : bool):
  %3 : int = prim::Constant[value=1]()
  %4 : bool = prim::Constant[value=True]()
  %x : Tensor = prim::Loop(%n, %4, %x.1)
    block0(%i : int, %y : Tensor):
      %z : Tensor = prim::If(%flag)
        block0():
          %a : Tensor = aten::add(%y, %y, %3)
          -> (%a)
        block1():
          %b : Tensor = aten::mul(%y, %x.1)
          -> (%b)
      -> (%4, %z)
  return (%x)
)";

TEST(GraphText, RoundTrips) {
  auto graph = parseGraph(kLoopText);
  verify(*graph);
  auto again = parseGraph(graph->str());
  verify(*again);
  EXPECT_EQ(graph->str(), again->str());
  EXPECT_NE(graph->str().find("%z : Tensor = prim::If(%flag)"), std::string::npos);
}

TEST(GraphText, RoundTripsConstantsAndTypes) {
  const char* text = R"(graph(%a : Float(2, *, strides=[3, 1], requires_grad=0, device=cpu),
      %b : Dict(str, Tensor[]),
      %c : (int, float?)[]):
  %1 : str = prim::Constant[value="a \"b\"\n\x01"]()
  %2 : float = prim::Constant[value=-1e-05]()
  %3 : int[] = prim::Constant[value=[1, -2]]()
  %4 : Tensor = prim::Constant[value=tensor<float32>[2, 2]{1.0, 2.5, -inf, nan}]()
  %5 : Device = prim::Constant[value="cuda:1"]()
  %6 : complex = prim::Constant[value=complex(1.0, -2.0)]()
  %7 : NoneType = prim::Constant()
  %8 : bool = prim::isinstance[types=types [int, str?]](%2)
  return (%1, %2, %3, %4, %5, %6, %7, %8)
)";
  auto graph = parseGraph(text);
  verify(*graph);
  EXPECT_EQ(graph->str(), parseGraph(graph->str())->str());
  EXPECT_EQ(constantOf(graph->outputs()[0])->toString(), "a \"b\"\n\x01");
  EXPECT_EQ(constantOf(graph->outputs()[2])->toDims(), (DimVector{1, -2}));
  EXPECT_TRUE(constantOf(graph->outputs()[6])->isNone());
  EXPECT_EQ(graph->inputs()[2]->type()->contained()[0]->contained()[1]->kind(), TypeKind::Optional);
}

TEST(GraphText, ASharedGraphIsPrintedOnce) {
  // Each level holds the one below twice: printed with each node, the text would double 30 times.
  auto level = std::make_shared<Graph>();
  level->registerOutput(level->addInput("x", types::Tensor()));
  for (int i = 0; i < 30; ++i) {
    auto above = std::make_shared<Graph>();
    Value* x = above->addInput("x", types::Tensor());
    for (int k = 0; k < 2; ++k) {
      Node* fork = above->insertNode(above->create(prim::fork, {x}));
      fork->output()->setType(types::Future(types::Tensor()));
      fork->setAttribute(attr::Subgraph, level);
    }
    above->registerOutput(x);
    level = above;
  }
  const std::string text = level->str();
  EXPECT_LT(text.size(), 20000u);
  auto again = parseGraph(text);
  EXPECT_EQ(again->str(), text);
  auto nodes = again->nodes();
  const Node* first = *nodes.begin();
  EXPECT_EQ(first->subgraph(attr::Subgraph), first->next()->subgraph(attr::Subgraph));
}

TEST(GraphText, RefusesMalformedText) {
  for (const char* text : {"", "graph(", "graph(%x : Tensor):\n  return (%y)",
                           "graph():\n  %1 : int = prim::Constant[value=",
                           "graph():\n  %1 : Nonsense = prim::Constant()\n  return (%1)",
                           "graph(%x : int, %x : int):\n  return (%x)"}) {
    EXPECT_THROW(parseGraph(text), Error) << text;
  }
}

TEST(Graph, UsesFollowEdits) {
  Graph graph;
  Value* a = graph.addInput("a");
  Value* b = graph.addInput("b");
  Node* n = graph.insertNode(graph.create(aten::mul, {a, a}));
  n->insertInput(0, b);
  n->insertInput(2, b);
  EXPECT_EQ(n->inputs(), (std::vector<Value*>{b, a, b, a}));
  n->removeInput(0);
  n->removeInput(1);
  graph.registerOutput(n->output());
  verify(graph);
  EXPECT_EQ(a->uses().size(), 2u);
  EXPECT_FALSE(b->hasUses());
  a->replaceAllUsesWith(b);
  EXPECT_EQ(b->uses().size(), 2u);
  verify(graph);
}

TEST(Graph, NamesStayUnique) {
  Graph graph;
  Value* a = graph.addInput("x");
  Value* b = graph.addInput("x");
  Value* c = graph.addInput("x.1");
  EXPECT_EQ(a->debugName(), "x");
  EXPECT_EQ(b->debugName(), "x.1");
  EXPECT_EQ(c->debugName(), "x.2");
  EXPECT_EQ(c->debugNameBase(), "x");
}

TEST(Graph, OrderSurvivesManyInsertionsAtOnePlace) {
  Graph graph;
  Value* x = graph.addInput("x");
  Node* last = graph.insertNode(graph.create(aten::relu, {x}));
  std::vector<Node*> inserted;
  for (int i = 0; i < 200; ++i) {
    Node* n = graph.create(aten::relu, {x});
    n->insertBefore(last);
    inserted.push_back(n);
  }
  for (size_t i = 1; i < inserted.size(); ++i) EXPECT_TRUE(inserted[i - 1]->isBefore(inserted[i]));
  EXPECT_TRUE(inserted.back()->isBefore(last));
  EXPECT_TRUE(last->isAfter(inserted.front()));
}

TEST(Graph, OrderOfNestedNodes) {
  auto graph = parseGraph(kLoopText);
  Node* loop = graph->outputs()[0]->node();
  Node* branch = *loop->blocks()[0]->nodes().begin();
  Node* add = *branch->blocks()[0]->nodes().begin();
  Node* mul = *branch->blocks()[1]->nodes().begin();
  EXPECT_TRUE(loop->isBefore(add));
  EXPECT_FALSE(add->isBefore(loop));
  EXPECT_TRUE(add->isBefore(mul));
  EXPECT_TRUE(graph->inputs()[0]->node()->isBefore(add));
  EXPECT_TRUE(add->isBefore(graph->returnNode()));
}

TEST(Graph, CopyIsDeep) {
  auto graph = parseGraph(kLoopText);
  auto copy = graph->copy();
  std::string before = copy->str();
  graph->outputs()[0]->node()->blocks()[0]->inputs()[1]->setDebugName("renamed");
  EXPECT_EQ(copy->str(), before);
  verify(*copy);
}

TEST(Verifier, FindsWhatIsWrong) {
  Graph graph;
  Value* c = graph.addInput("c", types::Int());
  Node* branch = graph.insertNode(graph.create(prim::If, {c}, 0));
  branch->addBlock();
  branch->addBlock();
  EXPECT_THROW(verify(graph), InternalError);  // the condition is no bool
  c->setType(types::Bool());
  verify(graph);
  Value* inside =
      branch->blocks()[0]->appendNode(graph.createConstant(IValue(int64_t{1})))->output();
  graph.registerOutput(inside);
  EXPECT_THROW(verify(graph), InternalError);  // out of scope
}

TEST(Operators, OverloadsFormsAndAliases) {
  OperatorRegistry& registry = OperatorRegistry::instance();
  EXPECT_EQ(registry.overloads(aten::add).size(), 3u);  // Tensor, int, out
  const Operator* inplace = registry.find(aten::add_, "Tensor");
  ASSERT_NE(inplace, nullptr);
  EXPECT_EQ(inplace->schema().str(),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  const Operator* alias = registry.find(Symbol::aten("rectify_"), "");
  ASSERT_NE(alias, nullptr);
  EXPECT_EQ(alias->schema().name(), "aten::rectify_");
  EXPECT_TRUE(registry.overloads(Symbol::aten("no_such_operator")).empty());
}

TEST(Operators, NodesFindTheirOverload) {
  auto graph = parseGraph(
      "graph(%x : Tensor, %i : int):\n  %1 : int = aten::add(%i, %i)\n  %2 : Tensor = "
      "aten::add(%x, %x, %i)\n"
      "  %3 : Tensor = aten::add(%x, %x)\n  return (%1)");
  auto it = graph->nodes().begin();
  EXPECT_TRUE((*it)->matches(aten::add, "int"));
  ++it;
  EXPECT_TRUE((*it)->matches(aten::add, "Tensor"));
  ++it;
  EXPECT_EQ((*it)->maybeOperator(), nullptr);
  EXPECT_THROW((*it)->getOperator(), CompileError);
}

TEST(Graph, OrderSurvivesInsertionsBeforeAndBetween) {
  Graph g;
  Node* last = g.insertNode(g.createConstant(IValue(0)));
  std::vector<Node*> inserted;
  for (int i = 0; i < 5000; ++i) {
    Node* n = g.createConstant(IValue(i));
    n->insertBefore(i % 3 ? last : inserted.empty() ? last : inserted.back());
    inserted.push_back(n);
    ASSERT_TRUE(n->isBefore(last));
    if (i % 3 == 0 && i > 0) {
      ASSERT_TRUE(n->isBefore(inserted[i - 1]));
    }
  }
  int at = 0;
  for (Node* n = *g.nodes().begin(); n->next() != g.returnNode(); n = n->next(), ++at) {
    ASSERT_TRUE(n->isBefore(n->next())) << at;
    ASSERT_FALSE(n->next()->isBefore(n)) << at;
  }
  verify(g);
}

TEST(Graph, UsesStayInStepWhenInputsMove) {
  Graph g;
  Value* a = g.insertConstant(IValue(1));
  Value* b = g.insertConstant(IValue(2));
  std::vector<Node*> nodes;
  for (int i = 0; i < 4; ++i) {
    nodes.push_back(g.insertNode(g.createTuple(std::vector<Value*>{a, b, a, b})));
  }
  nodes[1]->insertInput(1, a);
  nodes[2]->removeInput(0);
  nodes[0]->replaceInput(2, b);
  nodes[3]->destroy();
  a->replaceAllUsesAfterWith(nodes[0], b);
  EXPECT_EQ(a->uses().size(), 1u);
  EXPECT_EQ(b->uses().size(), 3u + 5u + 3u);
  for (Value* v : {a, b}) {
    for (const Use& use : v->uses()) EXPECT_EQ(use.user->input(use.offset), v);
  }
  verify(g);
  nodes[1]->removeAllInputs();
  b->replaceAllUsesWith(a);
  EXPECT_EQ(a->uses().size(), 4u + 3u);
  verify(g);
}

}  // namespace
}  // namespace wick::graph_test
