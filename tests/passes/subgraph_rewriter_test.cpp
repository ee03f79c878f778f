#include "passes/subgraph_rewriter.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "ir/parser.h"
#include "ir/verifier.h"
#include "tests/ir/test_operators.h"

namespace wick {
namespace {

// relu(x * y) becomes a single node that no other text has.
SubgraphRewriter reluOfProduct(SubgraphRewriter::Filter filter = nullptr) {
  SubgraphRewriter rewriter;
  rewriter.add(R"(graph(%x : Tensor, %y : Tensor):
  %p : Tensor = aten::mul(%x, %y)
  %r : Tensor = aten::relu(%p)
  return (%r)
)",
               R"(graph(%x : Tensor, %y : Tensor):
  %r : Tensor = test::relu_mul(%x, %y)
  return (%r)
)",
               std::move(filter));
  return rewriter;
}

std::string rewritten(SubgraphRewriter rewriter, const std::string& text, size_t expected) {
  auto graph = parseGraph(text);
  EXPECT_EQ(rewriter.run(*graph), expected) << graph->str();
  verify(*graph);
  return graph->str();
}

TEST(SubgraphRewriterTest, ReplacesEveryMatchAlsoInBlocks) {
  std::string out = rewritten(reluOfProduct(), R"(graph(%a : Tensor, %b : Tensor, %c : bool):
  %1 : Tensor = aten::mul(%a, %b)
  %named : Tensor = aten::relu(%1)
  %z : Tensor = prim::If(%c)
    block0():
      %2 : Tensor = aten::mul(%named, %named)
      %3 : Tensor = aten::relu(%2)
      -> (%3)
    block1():
      -> (%a)
  return (%z)
)",
                              2);
  EXPECT_NE(out.find("%named : Tensor = test::relu_mul(%a, %b)"), std::string::npos) << out;
  EXPECT_NE(out.find("test::relu_mul(%named, %named)"), std::string::npos) << out;
  EXPECT_EQ(out.find("aten::"), std::string::npos) << out;
}

TEST(SubgraphRewriterTest, InnerValuesMustBelongToTheMatch) {
  rewritten(reluOfProduct(), R"(graph(%a : Tensor, %b : Tensor):
  %1 : Tensor = aten::mul(%a, %b)
  %2 : Tensor = aten::relu(%1)
  return (%2, %1)
)",
            0);
}

TEST(SubgraphRewriterTest, WritesPreventIt) {
  rewritten(reluOfProduct(), R"(graph(%a : Tensor, %b : Tensor):
  %1 : Tensor = aten::mul(%a, %b)
  %2 : Tensor = aten::relu_(%a)
  %3 : Tensor = aten::relu(%1)
  return (%3, %2)
)",
            0);
}

TEST(SubgraphRewriterTest, TheFilterSeesTheMatch) {
  const char* text = R"(graph(%a : Tensor, %b : Tensor):
  %1 : Tensor = aten::mul(%a, %b)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::mul(%2, %2)
  %4 : Tensor = aten::relu(%3)
  return (%4)
)";
  rewritten(reluOfProduct([](const Match& m) { return m.value("x") == m.value("y"); }), text, 1);
  rewritten(reluOfProduct([](const Match& m) { return m.nodes().size() == 3; }), text, 0);
}

TEST(SubgraphRewriterTest, EqualInputsAndConstantsMustBeEqual) {
  SubgraphRewriter square;
  square.add(R"(graph(%x : int):
  %c : int = prim::Constant[value=2]()
  %s : int = aten::add(%x, %x)
  %r : int = aten::add(%s, %c)
  return (%r)
)",
             R"(graph(%x : int):
  %r : int = test::twice_and_two(%x)
  return (%r)
)");
  const auto text = [](const char* second, int constant) {
    return fmt::format(R"(graph(%x : int, %y : int):
  %c : int = prim::Constant[value={}]()
  %s : int = aten::add(%x, {})
  %r : int = aten::add(%s, %c)
  return (%r)
)",
                       constant, second);
  };
  rewritten(square, text("%x", 2), 1);
  rewritten(square, text("%y", 2), 0);
  rewritten(square, text("%x", 3), 0);
}

TEST(SubgraphRewriterTest, WrongRulesAreRefused) {
  SubgraphRewriter r;
  const char* one = "graph(%x : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n";
  const char* two =
      "graph(%x : Tensor, %y : Tensor):\n  %r : Tensor = aten::relu(%x)\n  return (%r)\n";
  EXPECT_THROW(r.add(one, two), UsageError);
  EXPECT_THROW(r.add("graph(%x : Tensor):\n  return (%x)\n", one), UsageError);
  EXPECT_THROW(r.add(R"(graph(%x : Tensor):
  %apart : Tensor = aten::relu(%x)
  %r : Tensor = aten::relu(%x)
  return (%r)
)",
                     one),
               UsageError);
  EXPECT_THROW(r.add("no graph", one), CompileError);
}

}  // namespace
}  // namespace wick
