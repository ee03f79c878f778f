// What may alias what, who writes it, and which nodes may pass each other.
#include "ir/alias_db.h"

#include <gtest/gtest.h>

#include "ir/function.h"
#include "ir/parser.h"
#include "ir/verifier.h"

namespace wick::alias_db_test {
namespace {

// A graph with its alias analysis; values and nodes by name.
class Analyzed {
 public:
  explicit Analyzed(const std::string& text,
                    const std::function<TypePtr(const std::string&)>& resolve = nullptr)
      : graph(parseGraph(text, resolve)), aliases(*graph) {
    name(graph->block());
  }
  Value* operator[](const std::string& name) const { return values_.at(name); }
  Node* node(const std::string& name) const { return values_.at(name)->node(); }
  bool mayAlias(const std::string& a, const std::string& b) const {
    return aliases.mayAlias(values_.at(a), values_.at(b));
  }
  bool mayContain(const std::string& a, const std::string& b) const {
    return aliases.mayContainAlias(values_.at(a), values_.at(b));
  }
  bool written(const std::string& a) const { return aliases.hasWriters(values_.at(a)); }
  bool escapes(const std::string& a) const { return aliases.escapesScope(values_.at(a)); }

  std::shared_ptr<Graph> graph;
  AliasDb aliases;

 private:
  void name(Block* b) {
    for (Value* v : b->inputs()) values_[v->debugName()] = v;
    for (Node* n : b->nodes()) {
      for (Value* v : n->outputs()) values_[v->debugName()] = v;
      for (Block* sub : n->blocks()) name(sub);
    }
  }
  std::unordered_map<std::string, Value*> values_;
};

TEST(AliasDb, ViewsShareMemoryAndNewTensorsDoNot) {
  Analyzed g(R"(graph(%a : Tensor, %b : Tensor):
  %one : int = prim::Constant[value=1]()
  %c : Tensor = aten::mul(%b, %b)
  %v : Tensor = aten::t(%c)
  %w : Tensor = aten::t(%v)
  %d : Tensor = aten::relu(%v)
  %e : Tensor = aten::add_(%w, %one, %one)
  return (%d)
)");
  EXPECT_TRUE(g.mayAlias("a", "b"));  // from outside
  EXPECT_FALSE(g.mayAlias("a", "c"));
  EXPECT_TRUE(g.mayAlias("c", "w"));
  EXPECT_TRUE(g.mayAlias("e", "c"));
  EXPECT_FALSE(g.mayAlias("c", "d"));
  EXPECT_TRUE(g.written("c"));
  EXPECT_FALSE(g.written("d"));
  EXPECT_FALSE(g.written("a"));
  EXPECT_TRUE(g.aliases.hasWriters(g.node("d")));  // reads what is written
  EXPECT_TRUE(g.aliases.hasWriters(g.node("c")));  // its result is written
  EXPECT_FALSE(g.aliases.writesOutside(g.node("e")));
  EXPECT_TRUE(g.escapes("a"));
  EXPECT_TRUE(g.escapes("d"));
  EXPECT_FALSE(g.escapes("c"));
}

// PyTorch's schemas do not say that these operators write to their arguments.
TEST(AliasDb, StatisticsAreWrittenInTraining) {
  Analyzed g(R"(graph(%x : Tensor, %m : Tensor, %trains : bool):
  %0 : NoneType = prim::Constant()
  %eps : float = prim::Constant[value=0.001]()
  %true : bool = prim::Constant[value=True]()
  %false : bool = prim::Constant[value=False]()
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %d : Tensor = aten::neg(%x)
  %e : Tensor = aten::neg(%x)
  %f : Tensor = aten::neg(%x)
  %trained : Tensor = aten::batch_norm(%x, %0, %0, %a, %b, %true, %eps, %eps, %true)
  %perhaps : Tensor = aten::instance_norm(%x, %0, %0, %c, %c, %trains, %eps, %eps, %true)
  %evaluated : Tensor = aten::batch_norm(%x, %0, %0, %d, %d, %false, %eps, %eps, %true)
  %without : Tensor = aten::batch_norm(%x, %0, %0, %0, %0, %true, %eps, %eps, %true)
  %s : Tensor, %t : Tensor = aten::batch_norm_update_stats(%x, %e, %0, %eps)
  %w : Tensor = aten::_no_grad_embedding_renorm_(%f, %x, %eps, %eps)
  %early : Tensor = aten::neg(%a)
  %again : Tensor = aten::batch_norm(%x, %0, %0, %m, %m, %true, %eps, %eps, %true)
  return (%early)
)");
  for (const char* written : {"a", "b", "c", "e", "f", "m"}) EXPECT_TRUE(g.written(written));
  EXPECT_FALSE(g.written("d"));
  EXPECT_FALSE(g.aliases.writes(g.node("evaluated")));
  EXPECT_FALSE(g.aliases.writes(g.node("without")));
  EXPECT_TRUE(g.node("trained")->hasSideEffects());
  EXPECT_FALSE(g.node("evaluated")->hasSideEffects());
  EXPECT_TRUE(g.mayAlias("w", "f"));
  EXPECT_TRUE(g.aliases.writesOutside(g.node("again")));
  EXPECT_FALSE(g.aliases.moveBeforeTopologicallyValid(g.node("early"), g.node("trained")));
}

TEST(AliasDb, InputsOfDifferentKindsDoNotAlias) {
  Analyzed g(R"(graph(%a : Tensor, %l : int[], %m : Tensor[], %o : Tensor?, %n : int):
  %x : int[] = aten::append(%l, %n)
  %u : Tensor = prim::unchecked_cast(%o)
  return (%x)
)");
  EXPECT_FALSE(g.mayAlias("a", "l"));
  EXPECT_FALSE(g.mayAlias("l", "m"));
  EXPECT_FALSE(g.mayAlias("a", "m"));
  EXPECT_TRUE(g.mayContain("a", "m"));  // it may hold it
  EXPECT_TRUE(g.mayAlias("a", "o"));
  EXPECT_TRUE(g.mayAlias("a", "u"));
  EXPECT_TRUE(g.written("l"));
  EXPECT_FALSE(g.written("m"));
  EXPECT_FALSE(g.written("a"));
  EXPECT_TRUE(g.aliases.writesOutside(g.node("x")));
}

TEST(AliasDb, BranchesJoinWithoutMergingTheirSources) {
  Analyzed g(R"(graph(%c : bool, %x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %p : Tensor = aten::t(%a)
      -> (%p)
    block1():
      -> (%b)
  %w : Tensor = aten::relu_(%r)
  return (%c)
)");
  EXPECT_TRUE(g.mayAlias("r", "a"));
  EXPECT_TRUE(g.mayAlias("r", "b"));
  EXPECT_FALSE(g.mayAlias("a", "b"));
  EXPECT_TRUE(g.written("a"));
  EXPECT_TRUE(g.written("b"));
  EXPECT_FALSE(g.written("x"));
}

TEST(AliasDb, LoopsCarryAliasesAround) {
  Analyzed g(R"(graph(%n : int, %x : Tensor):
  %t : bool = prim::Constant[value=True]()
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %p : Tensor, %q : Tensor = prim::Loop(%n, %t, %a, %b)
    block0(%i : int, %u : Tensor, %v : Tensor):
      %f : Tensor = aten::neg(%u)
      -> (%t, %v, %f)
  return (%n)
)");
  EXPECT_TRUE(g.mayAlias("p", "a"));
  EXPECT_TRUE(g.mayAlias("p", "b"));  // after one turn
  EXPECT_TRUE(g.mayAlias("p", "f"));  // after two
  EXPECT_TRUE(g.mayAlias("u", "f"));
  EXPECT_FALSE(g.mayAlias("a", "b"));
  EXPECT_FALSE(g.mayAlias("q", "x"));
}

TEST(AliasDb, ListsHoldWhatIsPutIn) {
  Analyzed g(R"(graph(%x : Tensor, %i : int, %o : Tensor[]):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %c : Tensor = aten::neg(%x)
  %l : Tensor[] = prim::ListConstruct(%a)
  %m : Tensor[] = aten::append(%l, %b)
  %k : Tensor[] = prim::ListConstruct(%c)
  %e : Tensor = aten::__getitem__(%l, %i)
  %f : Tensor = aten::__getitem__(%k, %i)
  %s : Tensor[] = aten::add(%k, %k)
  %g : Tensor = aten::__getitem__(%s, %i)
  %w : Tensor = aten::relu_(%e)
  return (%x)
)");
  EXPECT_TRUE(g.mayAlias("e", "a"));
  EXPECT_TRUE(g.mayAlias("e", "b"));
  EXPECT_FALSE(g.mayAlias("e", "c"));
  EXPECT_TRUE(g.mayAlias("f", "c"));
  EXPECT_FALSE(g.mayAlias("f", "a"));
  EXPECT_FALSE(g.mayAlias("e", "x"));
  EXPECT_TRUE(g.mayAlias("l", "m"));
  EXPECT_FALSE(g.mayAlias("l", "k"));
  EXPECT_FALSE(g.mayAlias("s", "k"));  // another list
  EXPECT_TRUE(g.mayAlias("g", "c"));   // of the same tensors
  EXPECT_TRUE(g.mayContain("l", "a"));
  EXPECT_FALSE(g.mayContain("l", "k"));
  EXPECT_TRUE(g.mayContain("s", "k"));
  EXPECT_TRUE(g.written("a"));
  EXPECT_FALSE(g.written("c"));
  EXPECT_FALSE(g.written("k"));
  EXPECT_TRUE(g.written("l"));  // by append
  EXPECT_TRUE(g.mayContain("o", "x"));
}

TEST(AliasDb, ContainersNestAndSplitsGiveViews) {
  Analyzed g(R"(graph(%x : Tensor, %i : int, %key : str):
  %a : Tensor = aten::relu(%x)
  %l : Tensor[] = aten::unbind(%a, %i)
  %p : Tensor, %q : Tensor = prim::ListUnpack(%l)
  %t : (Tensor, Tensor[]) = prim::TupleConstruct(%x, %l)
  %u : Tensor, %v : Tensor[] = prim::TupleUnpack(%t)
  %b : Tensor = aten::neg(%x)
  %d : Dict(str, Tensor) = prim::DictConstruct(%key, %b)
  %n : Tensor[] = aten::values(%d)
  %r : Tensor = aten::__getitem__(%n, %i)
  return (%i)
)");
  EXPECT_TRUE(g.mayAlias("p", "a"));
  EXPECT_TRUE(g.mayAlias("p", "q"));
  EXPECT_TRUE(g.mayAlias("v", "l"));
  EXPECT_TRUE(g.mayAlias("u", "x"));
  EXPECT_TRUE(g.mayContain("t", "a"));
  EXPECT_FALSE(g.mayContain("d", "a"));
  EXPECT_TRUE(g.mayAlias("r", "b"));
  EXPECT_FALSE(g.mayAlias("r", "a"));
  EXPECT_FALSE(g.mayAlias("n", "l"));
}

TEST(AliasDb, ObjectsHoldTheirAttributes) {
  auto box = std::make_shared<ClassType>("__torch__.Box", false);
  box->addAttribute("t", types::Tensor());
  Analyzed g(R"(graph(%self : __torch__.Box, %x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::neg(%x)
  %o : __torch__.Box = prim::CreateObject()
   = prim::SetAttr[name="t"](%o, %a)
  %e : Tensor = prim::GetAttr[name="t"](%o)
  %f : Tensor = prim::GetAttr[name="t"](%self)
   = prim::SetAttr[name="t"](%self, %b)
  return (%x)
)",
             [&](const std::string& name) { return name == box->name() ? box : nullptr; });
  EXPECT_TRUE(g.mayAlias("e", "a"));
  EXPECT_FALSE(g.mayAlias("e", "x"));
  EXPECT_TRUE(g.mayAlias("f", "x"));
  EXPECT_TRUE(g.mayAlias("f", "b"));
  EXPECT_TRUE(g.escapes("b"));
  EXPECT_FALSE(g.escapes("a"));
  EXPECT_TRUE(g.written("o"));
  EXPECT_FALSE(g.mayAlias("o", "self"));
}

TEST(AliasDb, ResultsThatMayBeAnArgument) {
  Analyzed g(R"(graph(%x : Tensor, %p : float, %f : bool, %key : str):
  %a : Tensor = aten::relu(%x)
  %d : Tensor = aten::dropout(%a, %p, %f)
  %e : Dict(str, Tensor) = prim::DictConstruct(%key, %a)
  %b : Tensor = aten::neg(%x)
  %r : Tensor = aten::get(%e, %key, %b)
  %l : Tensor[] = prim::ListConstruct(%b)
  %m : Tensor[] = aten::broadcast_tensors(%l)
  return (%x)
)");
  EXPECT_TRUE(g.mayAlias("d", "a"));
  EXPECT_TRUE(g.mayContain("m", "b"));
  EXPECT_TRUE(g.mayAlias("r", "a"));
  EXPECT_TRUE(g.mayAlias("r", "b"));
}

TEST(AliasDb, CallsSeeAndWriteWhatTheyCanReach) {
  CompilationUnit unit;
  GraphFunction* writes = unit.createFunction("writes", parseGraph(R"(graph(%x : Tensor):
  %w : Tensor = aten::relu_(%x)
  return (%w)
)"));
  GraphFunction* reads = unit.createFunction("reads", parseGraph(R"(graph(%x : Tensor):
  %w : Tensor = aten::relu(%x)
  return (%w)
)"));
  for (GraphFunction* callee : {writes, reads}) {
    Graph g;
    Value* x = g.addInput("x");
    Value* a = g.insertNode(g.create(aten::relu, {x}))->output();
    Value* b = g.insertNode(g.create(aten::relu, {x}))->output();
    Value* r = g.insertCall(callee, std::vector<Value*>{a});
    AliasDb aliases(g);
    EXPECT_TRUE(aliases.mayAlias(r, a));
    EXPECT_EQ(aliases.hasWriters(a), callee == writes);
    EXPECT_EQ(aliases.hasWriters(x), callee == writes);
    EXPECT_FALSE(aliases.hasWriters(b));
    EXPECT_FALSE(aliases.mayAlias(r, b));
    EXPECT_TRUE(aliases.hasOrderedEffects(r->node()));
  }
  // Through another function.
  for (GraphFunction* callee : {writes, reads}) {
    auto body = std::make_shared<Graph>();
    Value* p = body->addInput("p");
    body->registerOutput(body->insertCall(callee, std::vector<Value*>{p}));
    GraphFunction* outer = unit.createFunction("outer_" + callee->name(), body);
    Graph g;
    Value* a = g.insertNode(g.create(aten::relu, {g.addInput("x")}))->output();
    g.insertCall(outer, std::vector<Value*>{a});
    EXPECT_EQ(AliasDb(g).hasWriters(a), callee == writes) << callee->name();
  }
}

TEST(AliasDb, GroupsThatOnlyComputeGiveNewMemory) {
  const auto analyzed = [](const std::string& body) {
    return Analyzed(
        "graph(%a : Tensor):\n"
        "  %one : int = prim::Constant[value=1]()\n"
        "  %x : Tensor = aten::relu(%a)\n"
        "  %y : Tensor = aten::relu_(%x)\n"
        "  %g : Tensor = prim::FusionGroup[Subgraph=FusionGroup_0](%y)\n"
        "    with FusionGroup_0 = graph(%p : Tensor):\n" +
        body +
        "      return (%r)\n"
        "  %z : Tensor = aten::relu_(%g)\n"
        "  return (%z)\n");
  };
  const Analyzed computes = analyzed("      %r : Tensor = aten::mul(%p, %p)\n");
  EXPECT_FALSE(computes.mayAlias("g", "x"));
  EXPECT_FALSE(computes.mayAlias("g", "a"));
  EXPECT_FALSE(computes.written("a"));
  EXPECT_FALSE(computes.aliases.writesOutside(computes.node("y")));
  EXPECT_FALSE(computes.aliases.writesOutside(computes.node("z")));
  EXPECT_TRUE(computes.written("g"));
  // What runs operator by operator gives a view here, and writes there.
  const Analyzed views = analyzed("      %r : Tensor = aten::t(%p)\n");
  EXPECT_TRUE(views.mayAlias("g", "x"));
  EXPECT_TRUE(views.written("a"));
  const Analyzed writes = analyzed("      %r : Tensor = aten::mul_(%p, %p)\n");
  EXPECT_TRUE(writes.mayAlias("g", "x"));
  EXPECT_TRUE(writes.written("a"));
}

TEST(AliasDb, WaitSeesWhatTheForkMayHaveWritten) {
  auto body = parseGraph(R"(graph(%x : Tensor):
  %w : Tensor = aten::relu_(%x)
  return (%w)
)");
  Graph g;
  Value* x = g.addInput("x");
  Value* a = g.insertNode(g.create(aten::relu, {x}))->output();
  Value* b = g.insertNode(g.create(aten::relu, {x}))->output();
  Node* fork = g.insertNode(g.create(prim::fork, {a}));
  fork->setAttribute(attr::Subgraph, body);
  fork->output()->setType(types::Future(types::Tensor()));
  Node* read = g.insertNode(g.create(aten::neg, {a}));
  Node* other = g.insertNode(g.create(aten::neg, {b}));
  Node* wait = g.insertNode(g.create(aten::wait, {fork->output()}));
  AliasDb aliases(g);
  EXPECT_TRUE(aliases.hasWriters(a));
  EXPECT_FALSE(aliases.hasWriters(b));
  EXPECT_TRUE(aliases.mayAlias(wait->output(), a));
  EXPECT_FALSE(aliases.couldMoveAfterTopologically(read, wait));
  EXPECT_TRUE(aliases.couldMoveAfterTopologically(other, wait));
}

TEST(AliasDb, SortingObjectsCallsTheirScript) {
  auto box = std::make_shared<ClassType>("__torch__.Box", false);
  Analyzed g(R"(graph(%a : __torch__.Box, %n : int, %x : Tensor):
  %f : bool = prim::Constant[value=False]()
  %l : __torch__.Box[] = prim::ListConstruct(%a)
  %k : int[] = prim::ListConstruct(%n)
  %s : __torch__.Box[] = aten::sorted(%l)
  %t : int[] = aten::sorted(%k)
  return (%n)
)",
             [&](const std::string& name) { return name == box->name() ? box : nullptr; });
  EXPECT_TRUE(g.aliases.hasOrderedEffects(g.node("s")));
  EXPECT_TRUE(g.aliases.writesOutside(g.node("s")));
  EXPECT_FALSE(g.aliases.hasOrderedEffects(g.node("t")));
}

TEST(AliasDb, TextShowsLocationsAndWrites) {
  Analyzed g(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu_(%a)
  return (%b)
)");
  std::string text = g.aliases.str();
  EXPECT_NE(text.find("%x is {outside#"), std::string::npos) << text;
  EXPECT_NE(text.find("%a is {#"), std::string::npos) << text;
  EXPECT_NE(text.find("aten::relu_ writes {#"), std::string::npos) << text;
}

TEST(AliasDb, UpkeepOfValuesThatAPassAdds) {
  Analyzed g(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu_(%a)
  return (%x)
)");
  g.graph->setInsertPoint(g.graph->block());
  Value* fresh = g.graph->insertNode(g.graph->create(aten::relu, {g["x"]}))->output();
  Value* same = g.graph->insertNode(g.graph->create(aten::relu, {g["x"]}))->output();
  g.aliases.addFresh(fresh);
  g.aliases.addAlias(same, g["a"]);
  EXPECT_FALSE(g.aliases.mayAlias(fresh, g["a"]));
  EXPECT_TRUE(g.aliases.mayAlias(same, g["a"]));
  EXPECT_TRUE(g.aliases.hasWriters(same));
  g.aliases.removeNode(g.node("b"));
  EXPECT_FALSE(g.aliases.hasWriters(same));
}

// ---- moves ----

std::vector<std::string> order(const Graph& g) {
  std::vector<std::string> names;
  for (const Node* n : g.nodes()) {
    names.push_back(n->outputs().empty() ? std::string(n->kind().name())
                                         : n->outputs()[0]->debugName());
  }
  return names;
}
using Names = std::vector<std::string>;

TEST(Moves, DependentsMoveAlong) {
  Analyzed g(R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::neg(%x)
  %b : Tensor = aten::relu(%a)
  %c : Tensor = aten::neg(%y)
  %d : Tensor = aten::relu(%y)
  return (%b, %c, %d)
)");
  EXPECT_TRUE(g.aliases.moveAfterTopologicallyValid(g.node("a"), g.node("d")));
  EXPECT_EQ(order(*g.graph), (Names{"c", "d", "a", "b"}));
  EXPECT_TRUE(g.aliases.moveBeforeTopologicallyValid(g.node("b"), g.node("c")));
  EXPECT_EQ(order(*g.graph), (Names{"a", "b", "c", "d"}));
  EXPECT_TRUE(g.aliases.moveBeforeTopologicallyValid(g.node("a"), g.node("d")));
  EXPECT_EQ(order(*g.graph), (Names{"c", "a", "d", "b"}));  // b goes behind d
  EXPECT_FALSE(g.aliases.couldMoveAfterTopologically(g.node("a"), g.node("b")) &&
               g.aliases.couldMoveBeforeTopologically(g.node("b"), g.node("a")));
  verify(*g.graph);
}

TEST(Moves, ReadsAndWritesOfOneMemoryKeepTheirOrder) {
  Analyzed g(R"(graph(%x : Tensor, %y : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %v : Tensor = aten::t(%a)
  %r : Tensor = aten::relu(%v)
  %w : Tensor = aten::add_(%a, %one, %one)
  %f : Tensor = aten::neg(%y)
  %z : Tensor = aten::mul_(%v, %one)
  %s : Tensor = aten::relu(%y)
  return (%r, %a, %f, %s)
)");
  std::string before = g.graph->str();
  EXPECT_FALSE(g.aliases.moveAfterTopologicallyValid(g.node("r"), g.node("w")));  // WAR
  EXPECT_FALSE(g.aliases.moveBeforeTopologicallyValid(g.node("w"), g.node("r")));
  EXPECT_FALSE(g.aliases.moveAfterTopologicallyValid(g.node("w"), g.node("z")));  // WAW
  EXPECT_EQ(g.graph->str(), before);
  EXPECT_TRUE(g.aliases.moveBeforeTopologicallyValid(g.node("s"), g.node("w")));  // other memory
  EXPECT_TRUE(g.aliases.moveAfterTopologicallyValid(g.node("f"), g.node("z")));
  EXPECT_EQ(order(*g.graph), (Names{"one", "a", "v", "r", "s", "w", "z", "f"}));
}

TEST(Moves, EffectsKeepTheirOrder) {
  Analyzed g(R"(graph(%x : Tensor, %m : str):
   = prim::Print(%m)
  %a : Tensor = aten::neg(%x)
   = prim::Print(%x)
  %n : NoneType = prim::Constant()
  %r : Tensor = aten::rand_like(%x, %n, %n, %n, %n, %n)
  return (%a, %r)
)");
  std::vector<Node*> nodes(g.graph->nodes().begin(), g.graph->nodes().end());
  EXPECT_FALSE(g.aliases.moveAfterTopologicallyValid(nodes[0], nodes[2]));
  EXPECT_TRUE(g.aliases.moveBeforeTopologicallyValid(nodes[1], nodes[0]));
  EXPECT_FALSE(g.aliases.couldMoveBeforeTopologically(g.node("r"), nodes[2]));
}

TEST(Moves, BlocksCountForTheirNode) {
  Analyzed g(R"(graph(%c : bool, %x : Tensor):
  %one : int = prim::Constant[value=1]()
  %a : Tensor = aten::neg(%x)
  %r : Tensor = prim::If(%c)
    block0():
      %w : Tensor = aten::add_(%a, %one, %one)
      -> (%w)
    block1():
      -> (%x)
  %s : Tensor = aten::relu(%a)
  %t : Tensor = aten::relu(%x)
  return (%r, %s, %t)
)");
  EXPECT_FALSE(g.aliases.moveBeforeTopologicallyValid(g.node("s"), g.node("r")));
  EXPECT_TRUE(g.aliases.moveBeforeTopologicallyValid(g.node("t"), g.node("r")));
  EXPECT_FALSE(g.aliases.moveBeforeTopologicallyValid(g.node("r"), g.node("a")));
}

// A chain of branches that add one new tensor each: sets that grow along the graph must not make
// the analysis quadratic.
TEST(AliasDb, GrowingSetsStayLinear) {
  auto graph = std::make_shared<Graph>();
  Value* c = graph->addInput("c", types::Bool());
  Value* x = graph->addInput("x");
  Value* current = x;
  for (int i = 0; i < 20000; ++i) {
    Node* branch = graph->insertNode(graph->create(prim::If, {c}, 1));
    Block* then = branch->addBlock();
    Block* otherwise = branch->addBlock();
    Node* made = graph->create(aten::relu, {x});
    then->appendNode(made);
    then->registerOutput(made->output());
    otherwise->registerOutput(current);
    current = branch->output();
  }
  graph->registerOutput(current);
  AliasDb aliases(*graph);
  EXPECT_TRUE(aliases.mayAlias(current, x));
  EXPECT_FALSE(aliases.hasWriters(current));
}

}  // namespace
}  // namespace wick::alias_db_test
