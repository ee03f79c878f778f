// IR text in, the pass, IR text out.
#include <gtest/gtest.h>

#include <cmath>

#include "ir/function.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "passes/constant_propagation.h"
#include "passes/dead_code_elimination.h"
#include "passes/fold_scales.h"
#include "passes/form_linears.h"
#include "passes/freeze.h"
#include "passes/fuse_epilogues.h"
#include "passes/inline_calls.h"
#include "passes/inline_forks.h"
#include "passes/node_traits.h"
#include "tests/ir/test_operators.h"

namespace wick::passes_test {
namespace {

bool contains(const Graph& graph, const std::string& text) {
  return graph.str().find(text) != std::string::npos;
}

// Lists that each hold the one before twice: a tree of 2^60 numbers.
TEST(NodeTraits, ComparesSharedConstantsOnce) {
  const auto tower = [](int64_t number) {
    IValue value(makeTuple({IValue(number)}));
    for (int i = 0; i < 60; ++i) value = IValue(makeTuple({value, value}));
    return value;
  };
  EXPECT_TRUE(sameConstant(tower(1), tower(1)));
  EXPECT_FALSE(sameConstant(tower(1), tower(2)));
}

// A fork of `body` in front of the first wait, with x.
Node* insertFork(Graph& graph, const char* body) {
  Node* fork = graph.create(prim::fork, {graph.inputs()[0]});
  fork->setAttribute(attr::Subgraph, parseGraph(body));
  fork->output()->setType(types::Future(types::Tensor()));
  graph.block()->prependNode(fork);
  return fork;
}
constexpr const char* kForked = R"(graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)";

TEST(InlineForks, WaitsBecomeTheResults) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %f : Future[Tensor]):
  %a : Tensor = aten::wait(%f)
  %b : Tensor = aten::wait(%f)
  return (%a, %b)
)");
  Node* second = insertFork(*graph, kForked);
  insertFork(*graph, kForked);  // nobody waits for it
  graph->inputs()[1]->replaceAllUsesWith(second->output());
  const std::vector<InlinedFork> forks = inlineForks(*graph);
  verify(*graph);
  ASSERT_EQ(forks.size(), 2u);
  EXPECT_EQ(forks[0].number, 0u);
  EXPECT_EQ(forks[1].number, 1u);
  EXPECT_EQ(forks[1].inputs, std::vector<Value*>{graph->inputs()[0]});
  EXPECT_FALSE(contains(*graph, "fork")) << graph->str();
  EXPECT_FALSE(contains(*graph, "wait")) << graph->str();
  EXPECT_EQ(graph->outputs()[0], graph->outputs()[1]);
  EXPECT_EQ(graph->outputs()[0]->node()->kind(), Symbol::aten("relu"));
}

TEST(InlineForks, AFutureThatIsHeldStays) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %f : Future[Tensor]):
  %a : Tensor = aten::wait(%f)
  return (%a, %f)
)");
  Node* fork = insertFork(*graph, kForked);
  graph->inputs()[1]->replaceAllUsesWith(fork->output());
  EXPECT_TRUE(inlineForks(*graph).empty());
  EXPECT_TRUE(contains(*graph, "prim::fork"));
  EXPECT_TRUE(contains(*graph, "aten::wait"));
}

// Each level forks the one below twice: there are 2^40 in all.
TEST(InlineForks, StopsWhereForksHaveTooManyForks) {
  std::shared_ptr<Graph> forked = parseGraph(kForked);
  for (int level = 0; level < 40; ++level) {
    const auto next = parseGraph(R"(graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%x)
)");
    Value* given = next->inputs()[0];
    for (int k = 0; k < 2; ++k) {
      Node* fork = next->create(prim::fork, {given});
      fork->setAttribute(attr::Subgraph, forked);
      fork->output()->setType(types::Future(types::Tensor()));
      next->block()->appendNode(fork);
      Node* wait = next->create(aten::wait, {fork->output()});
      wait->output()->setType(types::Tensor());
      next->block()->appendNode(wait);
      given = wait->output();
    }
    next->block()->replaceOutput(0, given);
    forked = next;
  }
  EXPECT_EQ(inlineForks(*forked).size(), 2u);
  EXPECT_TRUE(std::ranges::any_of(forked->block()->nodes(),
                                  [](const Node* n) { return n->kind() == prim::fork; }));
}

TEST(DeadCode, RemovesWhatNobodyReads) {
  auto graph = parseGraph(R"(graph(%x : Tensor, %n : int, %c : bool):
  %1 : Tensor = aten::relu(%x)
  %2 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=True]()
  %a : int, %b : int = prim::Loop(%n, %t, %n, %n)
    block0(%i : int, %p : int, %q : int):
      %p2 : int = aten::add(%p, %2)
      %q2 : int = aten::add(%q, %p)
      -> (%t, %p2, %q2)
  %u : int, %v : int = prim::If(%c)
    block0():
      -> (%a, %n)
    block1():
      %m : int = aten::add(%n, %n)
      -> (%a, %m)
  %w : Tensor = aten::relu_(%x)
  return (%u)
)");
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_FALSE(contains(*graph, "aten::relu("));
  EXPECT_TRUE(contains(*graph, "aten::relu_("));  // a write stays
  EXPECT_FALSE(contains(*graph, "%q")) << graph->str();
  EXPECT_FALSE(contains(*graph, "%m")) << graph->str();
  EXPECT_TRUE(contains(*graph, "%p2")) << graph->str();
}

TEST(DeadCode, KeepsCarriedValuesThatFeedLiveOnes) {
  auto graph = parseGraph(R"(graph(%n : int):
  %2 : int = prim::Constant[value=1]()
  %t : bool = prim::Constant[value=True]()
  %a : int, %b : int, %c : int = prim::Loop(%n, %t, %n, %n, %n)
    block0(%i : int, %p : int, %q : int, %r : int):
      %p2 : int = aten::add(%p, %q)
      %q2 : int = aten::add(%q, %r)
      %r2 : int = aten::add(%r, %2)
      -> (%t, %p2, %q2, %r2)
  return (%a)
)");
  std::string before = graph->str();
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_EQ(graph->str(), before);
}

TEST(Constants, FoldOperatorsAndBranches) {
  auto graph = parseGraph(R"(graph(%x : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = aten::add(%1, %1)
  %3 : bool = aten::lt(%1, %2)
  %y : Tensor = prim::If(%3)
    block0():
      %5 : Tensor = aten::relu(%x)
      -> (%5)
    block1():
      -> (%x)
  return (%y)
)");
  propagateConstants(*graph);
  eliminateDeadCode(*graph);
  verify(*graph);
  EXPECT_EQ(graph->outputs()[0]->node()->kind(), aten::relu);
  EXPECT_FALSE(contains(*graph, "prim::If")) << graph->str();
}

TEST(Constants, ListsThatMayBeWrittenStay) {
  auto graph = parseGraph(R"(graph():
  %1 : int = prim::Constant[value=1]()
  %2 : int[] = prim::ListConstruct(%1, %1)
  return (%2)
)");
  propagateConstants(*graph);
  verify(*graph);
  EXPECT_TRUE(contains(*graph, "prim::ListConstruct"));
}

TEST(Constants, NoneOfBothBranchesIsNone) {
  auto graph = parseGraph(R"(graph(%c : bool, %x : Tensor):
  %n : NoneType = prim::Constant()
  %a : Tensor?, %b : Tensor? = prim::If(%c)
    block0():
      -> (%n, %n)
    block1():
      -> (%n, %x)
  return (%a, %b)
)");
  propagateConstants(*graph);
  verify(*graph);
  EXPECT_EQ(graph->outputs()[0]->type()->kind(), TypeKind::None) << graph->str();
  EXPECT_NE(graph->outputs()[1]->type()->kind(), TypeKind::None) << graph->str();
}

TEST(Constants, ErrorsAreLeftToTheRun) {
  auto graph = parseGraph(R"(graph():
  %1 : Tensor = prim::Constant[value=tensor<float32>[1]{1.0}]()
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::relu(%2)
  return (%3)
)");
  propagateConstants(*graph);  // the test's relu raises
  verify(*graph);
  EXPECT_TRUE(contains(*graph, "aten::relu"));
}

TEST(Inline, FlattensCallsAndRemembersThem) {
  CompilationUnit unit;
  GraphFunction* inner = unit.createFunction("__torch__.inner", parseGraph(R"(graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)"));
  auto middle_graph = std::make_shared<Graph>();
  Value* x = middle_graph->addInput("x");
  Value* once = middle_graph->insertCall(inner, std::vector<Value*>{x});
  middle_graph->registerOutput(middle_graph->insertCall(inner, std::vector<Value*>{once}));
  GraphFunction* middle = unit.createFunction("__torch__.middle", middle_graph);
  Graph outer;
  Value* a = outer.addInput("a");
  outer.registerOutput(outer.insertCall(middle, std::vector<Value*>{a}));
  inlineCalls(outer);
  verify(outer);
  EXPECT_FALSE(contains(outer, "prim::CallFunction")) << outer.str();
  const Node* relu = outer.outputs()[0]->node();
  ASSERT_EQ(relu->kind(), aten::relu);
  ASSERT_NE(relu->inlinedFrom(), nullptr);
  EXPECT_EQ(relu->inlinedFrom()->function, "inner");
  ASSERT_NE(relu->inlinedFrom()->caller, nullptr);
  EXPECT_EQ(relu->inlinedFrom()->caller->function, "middle");
}

// A pass makes a node in front of the one that it replaces.
TEST(Inline, WhatReplacesANodeIsOfItsCall) {
  CompilationUnit unit;
  GraphFunction* inner = unit.createFunction("__torch__.inner", parseGraph(R"(graph(%x : Tensor):
  %y : Tensor = aten::relu(%x)
  return (%y)
)"));
  Graph outer;
  Value* a = outer.addInput("a");
  outer.registerOutput(outer.insertCall(inner, std::vector<Value*>{a}));
  inlineCalls(outer);
  Node* relu = outer.outputs()[0]->node();
  ASSERT_NE(relu->inlinedFrom(), nullptr);
  EXPECT_EQ(outer.create(aten::add, 1)->inlinedFrom(), nullptr);
  const InsertPointGuard guard(relu);
  EXPECT_EQ(outer.create(aten::add, 1)->inlinedFrom(), nullptr);
  const RangeGuard range(&outer, relu->range());
  EXPECT_EQ(outer.create(aten::add, 1)->inlinedFrom(), relu->inlinedFrom());
}

ObjectRef moduleWith(TypePtr weight_type, IValue weight) {
  auto type = std::make_shared<ClassType>("__torch__.M", true);
  type->addAttribute("weight", std::move(weight_type), true);
  type->addAttribute("training", types::Bool());
  ObjectRef object = makeRef<Object>(type, nullptr);
  object->setAttr("weight", std::move(weight));
  object->setAttr("training", IValue(false));
  return object;
}

std::shared_ptr<Graph> methodGraph(const ObjectRef& self, const std::string& body) {
  return parseGraph(body, [self](const std::string& name) -> TypePtr {
    return name == "__torch__.M" ? TypePtr(self->type()) : nullptr;
  });
}

TEST(Freeze, AttributesBecomeConstants) {
  ObjectRef self = moduleWith(types::Tensor(), IValue(Tensor::zeros(DimVector{2}, DType::Float)));
  auto graph = methodGraph(self, R"(graph(%self : __torch__.M, %x : Tensor):
  %training : bool = prim::GetAttr[name="training"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %y : Tensor = prim::If(%training)
    block0():
      %z : Tensor = aten::relu_(%w)
      -> (%z)
    block1():
      %v : Tensor = aten::mul(%x, %w)
      -> (%v)
  return (%y)
)");
  freezeModule(*graph, self);
  verify(*graph);
  EXPECT_EQ(graph->inputs().size(), 1u);
  EXPECT_FALSE(contains(*graph, "prim::GetAttr")) << graph->str();
  EXPECT_EQ(graph->outputs()[0]->node()->kind(), aten::mul);
}

// On the same memory, and one tensor for all that read it.
TEST(Freeze, ConstantsRequireNoGradient) {
  Tensor weight = Tensor::zeros(DimVector{2}, DType::Float);
  weight.setRequiresGrad(true);
  ObjectRef self = moduleWith(types::Tensor(), IValue(weight));
  auto graph = methodGraph(self, R"(graph(%self : __torch__.M):
  %v : Tensor = prim::GetAttr[name="weight"](%self)
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  return (%v, %w)
)");
  freezeModule(*graph, self);
  verify(*graph);
  const Tensor& v = graph->outputs()[0]->node()->ivalue(attr::value).toTensor();
  const Tensor& w = graph->outputs()[1]->node()->ivalue(attr::value).toTensor();
  EXPECT_FALSE(v.requiresGrad());
  EXPECT_EQ(v.data<float>(), weight.data<float>());
  EXPECT_EQ(v.impl(), w.impl());
  EXPECT_TRUE(weight.requiresGrad());
}

TEST(Freeze, ConstantsWithinContainersRequireNoGradient) {
  Tensor weight = Tensor::zeros(DimVector{2}, DType::Float);
  weight.setRequiresGrad(true);
  const IValue tuple(makeTuple({IValue(weight), IValue(1)}));
  const IValue list(makeList(tuple.type(), {tuple, tuple}));
  const auto dict = makeRef<DictObject>(types::String(), list.type());
  dict->set(IValue("a"), list);
  const IValue value{DictRef(dict)};
  ObjectRef self = moduleWith(value.type(), value);
  auto graph = methodGraph(self, R"(graph(%self : __torch__.M):
  %v : Dict[str, List[Tuple[Tensor, int]]] = prim::GetAttr[name="weight"](%self)
  return (%v)
)");
  freezeModule(*graph, self);
  verify(*graph);
  const IValue frozen = graph->outputs()[0]->node()->ivalue(attr::value);
  const std::vector<IValue>& tuples = frozen.toDict().find(IValue("a"))->elements();
  const Tensor& v = tuples[0].elements()[0].toTensor();
  EXPECT_FALSE(v.requiresGrad());
  EXPECT_EQ(v.data<float>(), weight.data<float>());
  EXPECT_EQ(tuples[0].rawObject(), tuples[1].rawObject());
  EXPECT_TRUE(weight.requiresGrad());
}

// `weight` is read only, but lies in the memory that another attribute writes to.
TEST(Freeze, MemoryThatAnotherAttributeWritesStaysAttributes) {
  const Tensor weight = Tensor::zeros(DimVector{2}, DType::Float);
  auto type = std::make_shared<ClassType>("__torch__.M", true);
  type->addAttribute("weight", types::Tensor(), true);
  type->addAttribute("other", types::Tensor());
  const ObjectRef both = makeRef<Object>(type, nullptr);
  both->setAttr("weight", IValue(weight));
  both->setAttr("other", IValue(weight.view(DimVector{2, 1})));
  auto graph = methodGraph(both, R"(graph(%self : __torch__.M, %x : Tensor):
  %o : Tensor = prim::GetAttr[name="other"](%self)
  %z : Tensor = aten::relu_(%o)
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  %y : Tensor = aten::mul(%x, %w)
  return (%y)
)");
  freezeModule(*graph, both);
  verify(*graph);
  EXPECT_TRUE(contains(*graph, "prim::GetAttr[name=\"weight\"]")) << graph->str();
}

TEST(Freeze, WrittenAttributesStayAttributes) {
  for (const char* write :
       {"%z : Tensor = aten::relu_(%w)",
        "%s : int[] = prim::ListConstruct()\n  %r : Tensor = aten::view(%w, %s)\n  %z : Tensor "
        "= aten::relu_(%r)",
        "= prim::SetAttr[name=\"weight\"](%self, %x)"}) {
    ObjectRef self = moduleWith(types::Tensor(), IValue(Tensor::zeros(DimVector{2}, DType::Float)));
    auto graph = methodGraph(self, std::string(R"(graph(%self : __torch__.M, %x : Tensor):
  %w : Tensor = prim::GetAttr[name="weight"](%self)
  )") + write + R"(
  %y : Tensor = aten::mul(%x, %w)
  return (%y)
)");
    freezeModule(*graph, self);
    verify(*graph);
    EXPECT_TRUE(contains(*graph, "prim::GetAttr")) << write << "\n" << graph->str();
  }
}

constexpr const char* kConvHead = R"(graph(%x : Tensor, %r : Tensor):
  %w : Tensor = prim::Constant[value=tensor<float32>[2, 1, 1, 1]{1.0, -2.0}]()
  %n : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %ones : int[] = prim::Constant[value=[1, 1]]()
  %zeros : int[] = prim::Constant[value=[0, 0]]()
  %a : Tensor = aten::conv2d(%x, %w, %n, %ones, %zeros, %ones, %one)
)";

TEST(FuseEpilogues, TakesResidualAndActivation) {
  auto graph = parseGraph(std::string(kConvHead) + R"(
  %s : Tensor = aten::add_(%a, %r, %one)
  %y : Tensor = aten::relu_(%s)
  return (%y)
)");
  EXPECT_EQ(fuseEpilogues(*graph), 1u);
  verify(*graph);
  Node* fused = graph->outputs()[0]->node();
  EXPECT_EQ(fused->kind().qualString(), "wick::conv2d_fused");
  EXPECT_EQ(fused->input(3), graph->inputs()[1]);
  EXPECT_EQ(constantOf(fused->input(8))->toString(), "relu");
  EXPECT_TRUE(constantOf(fused->input(9))->toBool());
}

// Of reduced floats too; others keep the layout that they have.
TEST(FuseEpilogues, OrdersWeightsByChannels) {
  for (const DType dtype : {DType::Float, DType::Half, DType::BFloat16, DType::Double}) {
    auto graph = parseGraph(std::string(kConvHead) + R"(
  %y : Tensor = aten::relu(%a)
  return (%y)
)");
    Node* conv = graph->outputs()[0]->node()->input(0)->node();
    {
      InsertPointGuard guard(conv);
      const Tensor weight = Tensor::zeros({4, 2, 3, 3}, dtype);
      conv->replaceInput(1, graph->insertConstant(IValue(weight)));
    }
    ASSERT_EQ(fuseEpilogues(*graph), 1u) << toString(dtype);
    const Tensor weight = constantOf(graph->outputs()[0]->node()->input(1))->toTensor();
    EXPECT_EQ(weight.isContiguous(MemoryFormat::ChannelsLast), dtype != DType::Double)
        << toString(dtype);
  }
}

TEST(FuseEpilogues, LeavesResultsThatOthersReadAndWritesInBetween) {
  auto shared = parseGraph(std::string(kConvHead) + R"(
  %y : Tensor = aten::relu(%a)
  return (%y, %a)
)");
  fuseEpilogues(*shared);
  verify(*shared);
  EXPECT_TRUE(contains(*shared, "aten::relu("));
  auto written = parseGraph(std::string(kConvHead) + R"(
  %z : Tensor = aten::relu_(%x)
  %y : Tensor = aten::relu(%a)
  return (%y)
)");
  fuseEpilogues(*written);
  verify(*written);
  EXPECT_TRUE(contains(*written, "aten::relu(")) << written->str();
}

constexpr const char* kLinearHead = R"(graph(%x : Tensor, %r : Tensor):
  %w : Tensor = prim::Constant[value=tensor<float32>[2, 2]{1.0, -2.0, 0.5, 3.0}]()
  %b : Tensor = prim::Constant[value=tensor<float32>[2]{0.25, -1.0}]()
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::linear(%x, %w, %b)
)";

TEST(FuseEpilogues, LinearTakesResidualAndActivation) {
  auto graph = parseGraph(std::string(kLinearHead) + R"(
  %s : Tensor = aten::add(%r, %a, %one)
  %y : Tensor = aten::relu(%s)
  return (%y)
)");
  EXPECT_EQ(fuseEpilogues(*graph), 1u);
  verify(*graph);
  Node* fused = graph->outputs()[0]->node();
  EXPECT_EQ(fused->kind().qualString(), "wick::linear_fused");
  EXPECT_EQ(fused->input(3), graph->inputs()[1]);
  EXPECT_EQ(constantOf(fused->input(4))->toString(), "relu");
  EXPECT_FALSE(constantOf(fused->input(5))->toBool());
}

TEST(FuseEpilogues, LinearStaysWhereNothingOrTooMuchFollows) {
  for (const char* rest : {"return (%a)\n",
                           // Read twice.
                           "%y : Tensor = aten::relu(%a)\n  return (%y, %a)\n",
                           // The input is written before.
                           "%z : Tensor = aten::relu_(%x)\n  %y : Tensor = aten::relu(%a)\n"
                           "  return (%y)\n"}) {
    auto graph = parseGraph(std::string(kLinearHead) + "  " + rest);
    EXPECT_EQ(fuseEpilogues(*graph), 0u) << rest;
    EXPECT_TRUE(contains(*graph, "aten::linear("));
  }
}

TEST(FoldScales, MultipliesAndDividesByNumbers) {
  for (const char* operation : {"mul", "div"}) {
    auto graph = parseGraph(std::string(kLinearHead) + R"(
  %f : float = prim::Constant[value=8.0]()
  %y : Tensor = aten::)" + operation +
                            R"((%a, %f)
  return (%y)
)");
    EXPECT_EQ(foldScales(*graph), 1u);
    verify(*graph);
    Node* linear = graph->outputs()[0]->node();
    ASSERT_EQ(linear->kind().qualString(), "aten::linear");
    const float factor = operation == std::string("mul") ? 8.0f : 0.125f;
    const Tensor w = constantOf(linear->input(1))->toTensor();
    const Tensor b = constantOf(linear->input(2))->toTensor();
    constexpr float kWeight[] = {1.0f, -2.0f, 0.5f, 3.0f};
    for (int i = 0; i < 4; ++i) {
      EXPECT_EQ(w.data<float>()[i], factor * kWeight[i]);
    }
    EXPECT_EQ(b.data<float>()[0], factor * 0.25f);
    EXPECT_EQ(b.data<float>()[1], -factor);
  }
}

TEST(FoldScales, LeavesWhatWeightsCannotTell) {
  for (const char* rest : {
           "%f : int = prim::Constant[value=0]()\n  %y : Tensor = aten::mul(%a, %f)\n",
           "%f : int = prim::Constant[value=0]()\n  %y : Tensor = aten::div(%a, %f)\n",
           "%y : Tensor = aten::mul(%a, %r)\n",
           "%f : int = prim::Constant[value=2]()\n  %z : Tensor = aten::mul(%a, %f)\n"
           "  %y : Tensor = aten::add(%a, %z, %one)\n",
       }) {
    auto graph = parseGraph(std::string(kLinearHead) + "  " + rest + "  return (%y)\n");
    EXPECT_EQ(foldScales(*graph), 0u) << rest;
  }
}

constexpr const char* kProductHead = R"(graph(%x : Tensor, %r : Tensor):
  %c : Tensor = prim::Constant[value=tensor<float32>[2, 3]{1.0, 2.0, 3.0, 4.0, 5.0, 6.0}]()
  %b : Tensor = prim::Constant[value=tensor<float32>[3]{0.5, -1.0, 2.0}]()
  %two : int = prim::Constant[value=2]()
  %one : int = prim::Constant[value=1]()
)";

TEST(FormLinears, FromProductsWithConstants) {
  for (const char* rest :
       {"%y : Tensor = aten::mm(%x, %c)\n", "%y : Tensor = aten::matmul(%x, %c)\n",
        "%y : Tensor = aten::addmm(%b, %x, %c, %one, %one)\n",
        "%p : Tensor = aten::matmul(%x, %c)\n  %y : Tensor = aten::add_(%p, %b, %one)\n",
        "%p : Tensor = aten::mm(%x, %c)\n  %y : Tensor = aten::add(%b, %p, %one)\n"}) {
    auto graph = parseGraph(std::string(kProductHead) + "  " + rest + "  return (%y)\n");
    EXPECT_GE(formLinears(*graph), 1u) << rest;
    verify(*graph);
    const Node* layer = graph->outputs()[0]->node();
    ASSERT_EQ(layer->kind().qualString(), "aten::linear") << rest;
    EXPECT_EQ(layer->input(0), graph->inputs()[0]);
    const Tensor weight = constantOf(layer->input(1))->toTensor();
    EXPECT_EQ(DimVector(weight.sizes()), (DimVector{3, 2}));
    EXPECT_EQ(weight.contiguous().data<float>()[1], 4.0f);
    const bool biased = std::string(rest).find("%b") != std::string::npos;
    EXPECT_EQ(constantOf(layer->input(2))->isTensor(), biased) << rest;
  }
}

TEST(FormLinears, LeavesWhatIsNoLayer) {
  for (const char* rest : {
           "%y : Tensor = aten::mm(%x, %r)\n",
           "%y : Tensor = aten::mm(%c, %x)\n",
           "%y : Tensor = aten::matmul(%x, %b)\n",
           "%y : Tensor = aten::addmm(%b, %x, %c, %two, %one)\n",
           "%y : Tensor = aten::addmm(%r, %x, %c, %one, %one)\n",
           "%y : Tensor = aten::addmm(%c, %x, %c, %one, %one)\n",
       }) {
    auto graph = parseGraph(std::string(kProductHead) + "  " + rest + "  return (%y)\n");
    EXPECT_EQ(formLinears(*graph), 0u) << rest;
  }
}

TEST(FormLinears, LeavesSumsThatAreNoBias) {
  for (const char* rest : {
           // Twice the vector; another vector; a product that is read twice.
           "%y : Tensor = aten::add(%p, %b, %two)\n",
           "%y : Tensor = aten::add(%p, %r, %one)\n",
           "%q : Tensor = aten::add(%p, %b, %one)\n  %y : Tensor = aten::mul(%q, %p)\n",
       }) {
    auto graph = parseGraph(std::string(kProductHead) + "  %p : Tensor = aten::mm(%x, %c)\n  " +
                            rest + "  return (%y)\n");
    EXPECT_EQ(formLinears(*graph), 1u) << rest;
    EXPECT_TRUE(contains(*graph, "aten::add(")) << graph->str();
  }
}

}  // namespace
}  // namespace wick::passes_test
