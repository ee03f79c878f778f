// Types forwards through graphs, with the real operators.
#include "passes/propagate_types.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/shape_facts.h"
#include "ir/verifier.h"

namespace wick::propagate_types_test {
namespace {

Value* named(Block* block, const std::string& name) {
  for (Value* v : block->inputs()) {
    if (v->debugName() == name) return v;
  }
  for (Node* n : block->nodes()) {
    for (Value* v : n->outputs()) {
      if (v->debugName() == name) return v;
    }
    for (Block* sub : n->blocks()) {
      if (Value* v = named(sub, name)) return v;
    }
  }
  return nullptr;
}

struct Propagated {
  explicit Propagated(const std::string& text) : graph(parseGraph(text)) {
    propagateTypes(*graph, sizes);
    verify(*graph);
  }
  std::string type(const std::string& name) const {
    const Value* v = named(graph->block(), name);
    return v ? v->type()->str() : "no value " + name;
  }
  // The sizes as expressions.
  std::string expressions(const std::string& name) const {
    std::string out;
    const Sizes all = *factsOf(named(graph->block(), name))->sizes;
    for (const Size& s : all) {
      out += (out.empty() ? "" : ", ") + sizes.str(s);
    }
    return out;
  }
  SymbolicSizes sizes{-100};
  std::shared_ptr<Graph> graph;
};

TEST(PropagateTypes, PointwisePromotesAndBroadcasts) {
  Propagated g(
      R"(graph(%x : Float(SS(-1), 1, 4, device=cpu), %i : Long(3, 4, device=cpu), %z : Double()):
  %one : int = prim::Constant[value=1]()
  %half : float = prim::Constant[value=0.5]()
  %a : Tensor = aten::add(%x, %i, %one)
  %b : Tensor = aten::mul(%i, %half)
  %c : Tensor = aten::add(%i, %z, %one)
  %d : Tensor = aten::lt(%x, %one)
  %e : Tensor = aten::sqrt(%i)
  return (%a, %b, %c, %d, %e)
)");
  EXPECT_EQ(g.type("a"), "Float(SS(-1), 3, 4, device=cpu)");
  EXPECT_EQ(g.type("b"), "Float(3, 4, device=cpu)");
  EXPECT_EQ(g.type("c"), "Double(3, 4)");
  EXPECT_EQ(g.type("d"), "Bool(SS(-1), 1, 4, device=cpu)");
  EXPECT_EQ(g.type("e"), "Float(3, 4, device=cpu)");
}

TEST(PropagateTypes, UnknownSizesGetNames) {
  Propagated g(R"(graph(%x : Float(*, 4), %y : Float(*, 4)):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::add(%a, %x, %one)
  %c : Tensor = aten::add(%x, %y, %one)
  return (%a, %b, %c)
)");
  EXPECT_EQ(g.type("a"), g.type("x"));
  EXPECT_EQ(g.type("b"), g.type("x"));
  EXPECT_NE(g.type("c"), g.type("x"));
  EXPECT_NE(g.type("x"), g.type("y"));
}

TEST(PropagateTypes, SizesAreExpressions) {
  Propagated g(R"(graph(%x : Float(SS(-1), 3, SS(-2), SS(-2)), %w : Float(8, 3, 3, 3)):
  %none : NoneType = prim::Constant()
  %0 : int = prim::Constant[value=0]()
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %m : int = prim::Constant[value=-1]()
  %twos : int[] = prim::ListConstruct(%2, %2)
  %ones : int[] = prim::ListConstruct(%1, %1)
  %same : Tensor = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %1)
  %half : Tensor = aten::conv2d(%x, %w, %none, %twos, %ones, %ones, %1)
  %flat : Tensor = aten::flatten(%same, %1, %m)
  %n : int = aten::size(%x, %0)
  %l : int[] = prim::ListConstruct(%n, %m)
  %back : Tensor = aten::view(%flat, %l)
  %s : Tensor[] = prim::ListConstruct(%flat, %back)
  %cat : Tensor = aten::cat(%s, %0)
  %s2 : Tensor[] = prim::ListConstruct(%flat, %flat)
  %stack : Tensor = aten::stack(%s2, %1)
  return (%half, %cat, %stack)
)");
  EXPECT_EQ(g.expressions("same"), "SS(-1), 8, SS(-2), SS(-2)");
  EXPECT_EQ(g.expressions("half"),
            "SS(-1), 8, ((SS(-2) + -1) // (2)) + 1, ((SS(-2) + -1) // (2)) + 1");
  EXPECT_EQ(g.expressions("flat"), "SS(-1), 8*SS(-2)*SS(-2)");
  EXPECT_EQ(g.expressions("back"), g.expressions("flat"));
  EXPECT_EQ(g.expressions("cat"), "2*SS(-1), 8*SS(-2)*SS(-2)");
  EXPECT_EQ(g.expressions("stack"), "SS(-1), 2, 8*SS(-2)*SS(-2)");
}

TEST(PropagateTypes, BranchesKeepWhatTheyAgreeOn) {
  Propagated g(R"(graph(%c : bool, %x : Float(SS(-1), 4), %y : Float(SS(-1), 5), %z : Half(2)):
  %a : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::relu(%x)
      -> (%p)
    block1():
      %q : Tensor = aten::relu(%y)
      -> (%q)
  %b : Tensor = prim::If(%c)
    block0():
      -> (%x)
    block1():
      -> (%z)
  return (%a, %b)
)");
  EXPECT_EQ(g.type("a"), "Float(SS(-1), *)");
  EXPECT_EQ(g.type("b"), "Tensor");
}

TEST(PropagateTypes, LoopsForgetWhatChanges) {
  Propagated g(R"(graph(%n : int, %x : Float(2, 4), %y : Float(2, 4), %w : Float(1, 4)):
  %t : bool = prim::Constant[value=True]()
  %0 : int = prim::Constant[value=0]()
  %a : Tensor, %b : Tensor, %c : Tensor = prim::Loop(%n, %t, %x, %y, %w)
    block0(%i : int, %p : Tensor, %q : Tensor, %r : Tensor):
      %p2 : Tensor = aten::relu(%p)
      %l : Tensor[] = prim::ListConstruct(%q, %p)
      %q2 : Tensor = aten::cat(%l, %0)
      %r2 : Tensor = aten::relu(%q)
      -> (%t, %p2, %q2, %r2)
  return (%a, %b, %c)
)");
  EXPECT_EQ(g.type("a"), "Float(2, 4)");
  EXPECT_EQ(g.type("b"), "Float(*, 4)");
  EXPECT_EQ(g.type("c"), "Float(*, 4)");
}

TEST(PropagateTypes, MetadataWritesMakeUncertain) {
  Propagated g(R"(graph(%x : Float(2, 4), %y : Float(2, 4)):
  %1 : int = prim::Constant[value=1]()
  %0 : int = prim::Constant[value=0]()
  %a : Tensor = aten::relu(%x)
  %u : Tensor = aten::unsqueeze_(%a, %0)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::relu(%y)
  %d : Tensor = aten::add_(%c, %1, %1)
  return (%u, %b, %d)
)");
  EXPECT_EQ(g.type("a"), "Float");
  EXPECT_EQ(g.type("u"), "Float");
  EXPECT_EQ(g.type("b"), "Float");
  EXPECT_EQ(g.type("d"), "Float(2, 4)");
}

TEST(PropagateTypes, ListsThatChangeSayNothing) {
  Propagated g(R"(graph(%x : Float(2, 4), %y : Float(2, 4)):
  %0 : int = prim::Constant[value=0]()
  %l : Tensor[] = prim::ListConstruct(%x, %y)
  %k : Tensor[] = aten::append(%l, %x)
  %a : Tensor = aten::cat(%l, %0)
  %two : int = prim::Constant[value=2]()
  %parts : Tensor[] = aten::chunk(%x, %two, %0)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%parts)
  return (%a, %p)
)");
  EXPECT_EQ(g.type("a"), "Tensor");
  EXPECT_EQ(g.type("p"), "Float(1, 4)");
}

TEST(PropagateTypes, TuplesAndGradients) {
  Propagated g(R"(graph(%x : Float(2, requires_grad=0), %y : Float(3, requires_grad=0)):
  %t : (Tensor, Tensor) = prim::TupleConstruct(%x, %y)
  %a : Tensor, %b : Tensor = prim::TupleUnpack(%t)
  %c : Tensor = aten::relu(%b)
  return (%a, %c)
)");
  EXPECT_EQ(g.type("a"), "Float(2, requires_grad=0)");
  EXPECT_EQ(g.type("c"), "Float(3, requires_grad=0)");
  Propagated h(R"(graph(%x : Float(2, requires_grad=0), %y : Float(2)):
  %1 : int = prim::Constant[value=1]()
  %c : Tensor = aten::relu(%x)
  %d : Tensor = aten::add_(%c, %y, %1)
  return (%d)
)");
  EXPECT_EQ(h.type("d"), "Float(2)");
}

// n of them would keep n * n sizes.
TEST(PropagateTypes, ForgetsSizesOfVeryManyDims) {
  std::string text = "graph(%x0 : Float(2)):\n  %d : int = prim::Constant[value=0]()\n";
  for (int i = 0; i < 100; ++i) {
    text += "  %x" + std::to_string(i + 1) + " : Tensor = aten::unsqueeze(%x" + std::to_string(i) +
            ", %d)\n";
  }
  Propagated g(text + "  return (%x100)\n");
  EXPECT_EQ(factsOf(named(g.graph->block(), "x30"))->dim, 31u);
  EXPECT_EQ(factsOf(named(g.graph->block(), "x100"))->dim, std::nullopt);
  EXPECT_EQ(factsOf(named(g.graph->block(), "x100"))->dtype, DType::Float);
}

TEST(PropagateTypes, RunsAgainFromTheInputs) {
  auto graph = parseGraph(R"(graph(%x : Float(2, *)):
  %a : Tensor = aten::relu(%x)
  return (%a)
)");
  propagateTypes(*graph);
  std::string once = graph->str();
  propagateTypes(*graph);
  EXPECT_EQ(graph->str(), once);
  EXPECT_EQ(parseGraph(once)->str(), once);
  graph->inputs()[0]->setType(types::Tensor());
  propagateTypes(*graph);
  EXPECT_EQ(named(graph->block(), "a")->type()->str(), "Tensor");
}

// Loops in loops, which repeat each other's rounds, must not take exponential time.
TEST(PropagateTypes, DeepNestsStayLinear) {
  auto graph = std::make_shared<Graph>();
  Value* n = graph->addInput("n", types::Int());
  TensorType::Facts matrix;
  matrix.dtype = DType::Float;
  matrix.dim = 2;
  Value* x = graph->addInput("x", TensorType::create(matrix));
  Value* yes = graph->insertConstant(IValue(true));
  Block* block = graph->block();
  std::vector<std::pair<Block*, Value*>> open;
  for (int depth = 0; depth < 60; ++depth) {
    Node* loop = graph->create(prim::Loop, {n, yes, x}, 1);
    block->appendNode(loop);
    Block* body = loop->addBlock();
    body->addInput(types::Int());
    body->addInput();
    open.emplace_back(block, loop->output());
    block = body;
  }
  Node* relu = graph->create(aten::relu, {x});
  block->appendNode(relu);
  Value* result = relu->output();
  while (!open.empty()) {
    block->registerOutput(yes);
    block->registerOutput(result);
    block = open.back().first;
    result = open.back().second;
    open.pop_back();
  }
  block->registerOutput(result);
  propagateTypes(*graph);
  verify(*graph);
}

TEST(SymbolicSizes, EqualExpressionsAreOne) {
  SymbolicSizes sizes;
  Size n = sizes.fresh();
  Size m = sizes.fresh();
  EXPECT_EQ(sizes.add(n, m), sizes.add(m, n));
  EXPECT_EQ(sizes.multiply(sizes.add(n, 1), 2), sizes.add(sizes.add(n, n), 2));
  EXPECT_EQ(sizes.subtract(sizes.add(n, m), m), n);
  EXPECT_EQ(sizes.floorDivide(sizes.multiply(n, m), m), n);
  EXPECT_EQ(sizes.floorDivide(n, 2), sizes.floorDivide(n, 2));
  EXPECT_NE(sizes.multiply(sizes.floorDivide(n, 2), 2), n);
  EXPECT_FALSE(sizes.neverNegative(sizes.subtract(n, 1)));
  EXPECT_TRUE(sizes.neverNegative(sizes.multiply(n, m)));
  auto seven = [](int64_t) { return std::optional<int64_t>(7); };
  EXPECT_EQ(sizes.evaluate(sizes.floorDivide(sizes.subtract(n, 8), 2), seven), -1);
  EXPECT_EQ(sizes.evaluate(sizes.multiply(sizes.add(n, 3), m), seven), 70);
  EXPECT_EQ(sizes.floorDivide(n, 0), std::nullopt);
  EXPECT_EQ(sizes.subtract(1, 2), std::nullopt);
}

// Results by their own names are resized like those of `out`.
TEST(PropagateTypes, GivenResultsAreResized) {
  Propagated p(R"(graph(%x : Float(2, 2)):
  %zeros : int[] = prim::Constant[value=[0]]()
  %n : NoneType = prim::Constant()
  %mode : str = prim::Constant[value="reduced"]()
  %q : Tensor = aten::empty(%zeros, %n, %n, %n, %n, %n)
  %r : Tensor = aten::empty(%zeros, %n, %n, %n, %n, %n)
  %a : Tensor, %b : Tensor = aten::linalg_qr(%x, %mode, %q, %r)
  %y : Tensor = aten::relu(%q)
  return (%y)
)");
  EXPECT_EQ(factsOf(named(p.graph->block(), "q"))->dim, std::nullopt);
  EXPECT_EQ(factsOf(named(p.graph->block(), "y"))->dim, std::nullopt);
}

}  // namespace
}  // namespace wick::propagate_types_test
