// Passes that need to know shapes: IR text in, the pass, IR text and numbers out.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/parser.h"
#include "ir/shape_facts.h"
#include "ir/verifier.h"
#include "passes/dead_code_elimination.h"
#include "passes/erase_shape_computations.h"
#include "passes/eval_mode.h"
#include "passes/fuse_epilogues.h"
#include "passes/join_linears.h"
#include "passes/peephole.h"
#include "passes/pipeline.h"
#include "passes/raised_conditions.h"
#include "runtime/interpreter/interpreter.h"

namespace wick::shape_passes_test {
namespace {

size_t count(const Graph& graph, const std::string& text) {
  std::string all = graph.str();
  size_t n = 0;
  for (size_t at = all.find(text); at != std::string::npos; at = all.find(text, at + 1)) ++n;
  return n;
}

Tensor numbers(const DimVector& sizes, double scale) {
  Tensor t = Tensor::empty(sizes, DType::Double);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = std::sin(double(i) * scale + scale);
  return t.to(DType::Float);
}

std::vector<Tensor> run(const Graph& graph, const std::vector<IValue>& arguments) {
  IValue result = runCode(*Code::build(graph.copy(), "test"), arguments);
  if (result.isTensor()) return {result.toTensor()};
  std::vector<Tensor> out;
  for (const IValue& v : result.elements()) out.push_back(v.toTensor());
  return out;
}

double difference(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (size_t i = 0; i < a.size() && i < b.size(); ++i) {
    EXPECT_EQ(DimVector(a[i].sizes()), DimVector(b[i].sizes()));
    Tensor x = a[i].to(DType::Double).contiguous();
    Tensor y = b[i].to(DType::Double).contiguous();
    for (int64_t k = 0; k < x.numel(); ++k) {
      most = std::max(most, std::fabs(x.data<double>()[k] - y.data<double>()[k]));
    }
  }
  return most;
}

TEST(EraseShapeComputations, AnswersWhatTypesTell) {
  auto graph =
      parseGraph(R"(graph(%x : Float(SS(-1), 4, device=cpu), %y : Float(SS(-1), 4, device=cpu)):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %d : int = prim::dtype(%x)
  %f : bool = aten::is_floating_point(%x)
  %r : int = aten::dim(%x)
  %four : int = aten::size(%x, %one)
  %n : int = aten::size(%x, %zero)
  %z : Tensor = aten::relu(%y)
  %m : int = aten::size(%z, %zero)
  %same : bool = aten::eq(%n, %m)
  %positive : bool = aten::ge(%m, %zero)
  %unknown : bool = aten::gt(%m, %one)
  %e : int = aten::numel(%x)
  %p : int = aten::mul(%m, %four)
  return (%d, %f, %r, %four, %n, %m, %same, %positive, %unknown, %e, %p)
)");
  EXPECT_TRUE(eraseShapeComputations(*graph));
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::size"), 1u) << graph->str();
  EXPECT_EQ(count(*graph, "aten::relu"), 0u) << graph->str();
  EXPECT_EQ(count(*graph, "aten::mul"), 0u) << graph->str();  // equals numel
  EXPECT_EQ(count(*graph, "aten::eq"), 0u);
  EXPECT_EQ(count(*graph, "aten::ge"), 0u);
  EXPECT_EQ(count(*graph, "aten::gt"), 1u);
  EXPECT_EQ(count(*graph, "dtype"), 0u);
  EXPECT_FALSE(eraseShapeComputations(*graph));
}

TEST(EraseShapeComputations, KeepsWhatMayRaiseOrChange) {
  auto graph = parseGraph(R"(graph(%x : Float(SS(-1), 4), %y : Float(SS(-1), 4)):
  %zero : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %u : Tensor = aten::unsqueeze_(%a, %zero)
  %n : int = aten::size(%a, %zero)
  %m : int = aten::size(%y, %zero)
  %e : int = aten::numel(%y)
  %q : int = aten::floordiv(%e, %m)
  return (%n, %q)
)");
  eraseShapeComputations(*graph);
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::size"), 2u) << graph->str();
  EXPECT_EQ(count(*graph, "aten::floordiv"), 1u) << graph->str();
}

TEST(EraseShapeComputations, BranchesDoNotLendTheirInts) {
  auto graph = parseGraph(R"(graph(%c : bool, %x : Float(SS(-1), 4)):
  %zero : int = prim::Constant[value=0]()
  %a : int = prim::If(%c)
    block0():
      %n : int = aten::size(%x, %zero)
      -> (%n)
    block1():
      -> (%zero)
  %m : int = aten::size(%x, %zero)
  return (%a, %m)
)");
  eraseShapeComputations(*graph);
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::size"), 2u) << graph->str();
}

TEST(EraseShapeComputations, CastsToTheSameGo) {
  auto graph = parseGraph(R"(graph(%x : Float(2, device=cpu), %h : Half(2), %c : bool):
  %none : NoneType = prim::Constant()
  %f : bool = prim::Constant[value=False]()
  %t : bool = prim::Constant[value=True]()
  %float : int = prim::Constant[value=6]()
  %a : Tensor = aten::to(%x, %float, %f, %f, %none)
  %b : Tensor = aten::to(%a, %float, %f, %t, %none)
  %d : Tensor = aten::to(%h, %float, %f, %f, %none)
  %e : Tensor = aten::to(%x, %float, %f, %c, %none)
  %g : Tensor = aten::type_as(%x, %b)
  %i : Tensor = aten::type_as(%x, %h)
  return (%b, %d, %e, %g, %i)
)");
  EXPECT_TRUE(eraseShapeComputations(*graph));
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::to("), 3u) << graph->str();
  EXPECT_EQ(count(*graph, "aten::type_as("), 1u) << graph->str();
}

TEST(EraseShapeComputations, RanksComeFromTheFirstInput) {
  const std::string body = R"(  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::mul(%a, %one)
  %c : Tensor = aten::add(%a, %b, %one)
  %d : Tensor = aten::add(%c, %y, %one)
  %r : int = aten::dim(%c)
  %s : int = aten::dim(%d)
)";
  auto graph = parseGraph("graph(%x : Tensor, %y : Tensor):\n" + body + "  return (%r, %s)\n");
  eraseShapeComputations(*graph);
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::dim(%x)"), 1u) << graph->str();
  EXPECT_EQ(count(*graph, "aten::dim(%d)"), 1u) << graph->str();
  graph = parseGraph("graph(%x : Tensor, %y : Tensor):\n" + body +
                     "  %u : Tensor = aten::unsqueeze_(%a, %one)\n  return (%r, %s)\n");
  eraseShapeComputations(*graph);
  EXPECT_EQ(count(*graph, "aten::dim(%c)"), 1u) << graph->str();
}

TEST(RaisedConditions, WhatFollowsKnows) {
  auto graph = parseGraph(R"(graph(%d : int, %c : bool):
  %four : int = prim::Constant[value=4]()
  %m : str = prim::Constant[value="no"]()
  %none : NoneType = prim::Constant()
  %before : int = aten::add(%d, %d)
  %bad : bool = aten::ne(%d, %four)
   = prim::If(%bad)
    block0():
      %inside : str = aten::format(%m, %d)
       = prim::RaiseException(%inside, %none)
      -> ()
    block1():
      -> ()
  %after : int = aten::mul(%d, %d)
  %r : int = prim::If(%c)
    block0():
      %n : bool = aten::__not__(%c)
       = prim::If(%n)
        block0():
           = prim::RaiseException(%m, %none)
          -> ()
        block1():
          -> ()
      %e : int = prim::Int(%c)
      -> (%e)
    block1():
      -> (%d)
  return (%bad, %before, %after, %r, %c)
)");
  EXPECT_TRUE(useRaisedConditions(*graph));
  verify(*graph);
  std::string text = graph->str();
  EXPECT_EQ(text.find("aten::mul(%d, %d)"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::add(%d, %d)"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::format(%m, %d)"), std::string::npos) << text;
  EXPECT_EQ(text.find("-> (%d)"), std::string::npos) << text;
  EXPECT_EQ(text.find("prim::Int(%c)"), std::string::npos) << text;
  EXPECT_EQ(text.find("return (%bad"), std::string::npos) << text;
  EXPECT_NE(text.find(", %c)\n"), std::string::npos) << text;  // not known behind the branch
  EXPECT_FALSE(useRaisedConditions(*graph));
}

TEST(RaisedConditions, BlocksKnowWhatLedToThem) {
  auto graph = parseGraph(R"(graph(%c : bool, %d : int):
  %four : int = prim::Constant[value=4]()
  %same : bool = aten::eq(%d, %four)
  %y : bool, %k : int = prim::If(%same)
    block0():
      %twice : int = aten::add(%d, %d)
      %other : bool = prim::If(%c)
        block0():
          -> (%c)
        block1():
          -> (%same)
      -> (%other, %twice)
    block1():
      %thrice : int = aten::mul(%d, %d)
      -> (%same, %thrice)
  return (%y, %k, %c)
)");
  EXPECT_TRUE(useRaisedConditions(*graph));
  verify(*graph);
  std::string text = graph->str();
  EXPECT_EQ(text.find("aten::add(%d, %d)"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::mul(%d, %d)"), std::string::npos) << text;
  EXPECT_EQ(text.find("-> (%c)"), std::string::npos) << text;
  EXPECT_EQ(text.find("-> (%same"), std::string::npos) << text;
  EXPECT_NE(text.find(", %c)\n"), std::string::npos) << text;
  EXPECT_FALSE(useRaisedConditions(*graph)) << text;
}

TEST(ForkBodies, GetThePipelineToo) {
  auto body = parseGraph(R"(graph(%x : int):
  %1 : int = prim::Constant[value=1]()
  %2 : int = aten::add(%1, %1)
  %3 : int = aten::mul(%x, %2)
  return (%3)
)");
  auto graph = std::make_shared<Graph>();
  Value* x = graph->addInput("x", types::Int());
  Node* fork = graph->insertNode(graph->create(prim::fork, {x}));
  fork->setAttribute(attr::Subgraph, body);
  fork->output()->setType(types::Future(types::Int()));
  Node* wait = graph->insertNode(graph->create(aten::wait, {fork->output()}));
  wait->output()->setType(types::Int());
  graph->registerOutput(wait->output());
  auto copy = graph->copy();
  runPipeline(*copy);
  verify(*copy);
  EXPECT_EQ(count(*copy, "aten::add"), 0u) << copy->str();
  EXPECT_EQ(count(*graph, "aten::add"), 1u);  // the other keeps its body
  EXPECT_EQ(runCode(*Code::build(copy, "test"), {IValue(int64_t{21})}).toInt(), 42);
}

TEST(EvalMode, DropoutGoes) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %c : bool):
  %f : bool = prim::Constant[value=False]()
  %t : bool = prim::Constant[value=True]()
  %p : float = prim::Constant[value=0.5]()
  %two : float = prim::Constant[value=2.]()
  %a : Tensor = aten::dropout(%x, %p, %f)
  %b : Tensor = aten::dropout(%a, %p, %t)
  %d : Tensor = aten::feature_dropout(%b, %p, %c)
  %e : Tensor = aten::dropout(%d, %two, %f)
  return (%e)
)");
  EXPECT_TRUE(removeDropout(*graph));
  verify(*graph);
  EXPECT_EQ(count(*graph, "aten::dropout"), 2u) << graph->str();  // one trains, one raises
}

// Three linear layers of one input.
struct Attention {
  Attention(const std::string& q, const std::string& k, const std::string& v) {
    graph = std::make_shared<Graph>();
    Value* x = graph->addInput("x");
    std::vector<Value*> layers;
    for (int i = 0; i < 3; ++i) {
      Value* w = graph->insertConstant(IValue(numbers({6, 4}, 0.3 + i)));
      Value* b = graph->insertConstant(IValue(numbers({6}, 0.7 + i)));
      Node* linear = graph->insertNode(graph->create(Symbol::aten("linear"), {x, w, b}));
      layers.push_back(linear->output());
    }
    const std::string kinds[] = {q, k, v};
    for (int i = 0; i < 3; ++i) {
      Value* out = layers[i];
      if (!kinds[i].empty()) {
        out = graph->insertNode(graph->create(Symbol::aten(kinds[i]), {out}))->output();
      }
      graph->registerOutput(out);
    }
  }
  std::shared_ptr<Graph> graph;
};

TEST(JoinLinears, LayersOfOneInputBecomeOne) {
  Attention a("relu", "tanh", "neg");
  std::vector<IValue> x{IValue(numbers({2, 5, 4}, 0.1))};
  std::vector<Tensor> before = run(*a.graph, x);
  EXPECT_EQ(joinLinears(*a.graph), 3u);
  verify(*a.graph);
  EXPECT_EQ(count(*a.graph, "aten::linear"), 1u) << a.graph->str();
  EXPECT_LT(difference(run(*a.graph, x), before), 1e-5);
}

TEST(JoinLinears, PartsThatCallersSeeStay) {
  Attention a("relu", "", "neg");
  EXPECT_EQ(joinLinears(*a.graph), 2u);
  verify(*a.graph);
  EXPECT_EQ(count(*a.graph, "aten::linear"), 2u) << a.graph->str();
  Attention written("relu", "neg_", "neg_");
  EXPECT_EQ(joinLinears(*written.graph), 0u);
}

TEST(JoinLinears, ViewsThatNeedDenseRowsPreventIt) {
  for (bool splits : {true, false}) {
    Attention a("relu", "relu", "relu");
    a.graph->inputs()[0]->setType(
        parseGraph("graph(%x : Float(2, 5, 4)):\n  return (%x)\n")->inputs()[0]->type());
    Node* user = a.graph->outputs()[0]->node();
    InsertPointGuard guard(user);
    Value* sizes = a.graph->insertConstant(
        IValue(makeIntList(splits ? DimVector{2, 5, 3, 2} : DimVector{60})));
    Node* view =
        a.graph->insertNode(a.graph->create(Symbol::aten("view"), {user->input(0), sizes}));
    user->replaceInput(0, view->output());
    EXPECT_EQ(joinLinears(*a.graph), splits ? 3u : 2u) << a.graph->str();
    verify(*a.graph);
    run(*a.graph, {IValue(numbers({2, 5, 4}, 0.1))});
  }
}

TEST(FuseEpilogues, ActivationsKeepTheirNumbers) {
  for (const char* name :
       {"relu", "relu_", "sigmoid", "tanh", "silu_", "relu6", "hardswish", "gelu"}) {
    for (bool residual : {false, true}) {
      auto graph = std::make_shared<Graph>();
      Value* x = graph->addInput("x");
      Value* r = graph->addInput("r");
      auto ints = [&](int64_t i) { return graph->insertConstant(IValue(makeIntList({i, i}))); };
      auto number = [&](int64_t i) { return graph->insertConstant(IValue(i)); };
      Value* last =
          graph
              ->insertNode(graph->create(
                  aten::conv2d, {x, graph->insertConstant(IValue(numbers({4, 3, 3, 3}, 0.7))),
                                 graph->insertConstant(IValue(numbers({4}, 0.3))), ints(1), ints(1),
                                 ints(1), number(1)}))
              ->output();
      if (residual) {
        last = graph->insertNode(graph->create(aten::add, {last, r, number(1)}))->output();
      }
      std::vector<Value*> inputs{last};
      if (name == std::string("gelu")) inputs.push_back(graph->insertConstant(IValue("none")));
      last = graph->insertNode(graph->create(Symbol::aten(name), inputs))->output();
      graph->registerOutput(last);
      std::vector<IValue> args{IValue(numbers({2, 3, 8, 8}, 0.9)),
                               IValue(numbers({2, 4, 8, 8}, 0.4))};
      std::vector<Tensor> before = run(*graph, args);
      EXPECT_EQ(fuseEpilogues(*graph), 1u);
      eliminateDeadCode(*graph);
      verify(*graph);
      bool relu = name == std::string("relu") || name == std::string("relu_");
      bool whole = !residual || relu;
      EXPECT_EQ(count(*graph, std::string("aten::") + name + "("), whole ? 0u : 1u) << graph->str();
      EXPECT_LT(difference(run(*graph, args), before), 1e-5) << name;
    }
  }
}

// Products of both sizes: those of oneDNN and those that are too small for it.
TEST(FuseEpilogues, LinearLayersKeepTheirNumbers) {
  for (int64_t width : {6, 96}) {
    for (const char* name : {"none", "relu", "sigmoid", "tanh", "silu", "relu6", "hardswish"}) {
      for (const DimVector& residual :
           {DimVector{}, DimVector{2, 20, width}, DimVector{width}, DimVector{3, 1, 1, width}}) {
        auto graph = std::make_shared<Graph>();
        Value* x = graph->addInput("x");
        Value* r = graph->addInput("r");
        const bool adds = !residual.empty();
        if (!adds && name == std::string("none")) continue;
        auto constant = [&](Tensor t) { return graph->insertConstant(IValue(std::move(t))); };
        auto append = [&](const char* kind, std::vector<Value*> inputs) {
          return graph->insertNode(graph->create(Symbol::aten(kind), inputs))->output();
        };
        Value* last = append(
            "linear", {x, constant(numbers({width, 30}, 0.7)), constant(numbers({width}, 0.3))});
        if (adds) last = append("add", {r, last, graph->insertConstant(IValue(int64_t{1}))});
        if (name != std::string("none")) last = append(name, {last});
        graph->registerOutput(last);
        std::vector<IValue> args{IValue(numbers({2, 20, 30}, 0.9)),
                                 IValue(numbers(adds ? residual : DimVector{1}, 0.4))};
        std::vector<Tensor> before = run(*graph, args);
        EXPECT_EQ(fuseEpilogues(*graph), 1u);
        eliminateDeadCode(*graph);
        verify(*graph);
        EXPECT_EQ(count(*graph, "wick::linear_fused("), 1u);
        const bool exact = name == std::string("none") || name == std::string("relu");
        EXPECT_LE(difference(run(*graph, args), before), exact ? 0 : 1e-6) << name << " " << width;
      }
    }
  }
}

}  // namespace
}  // namespace wick::shape_passes_test
