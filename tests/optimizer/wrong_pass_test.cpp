// A pass that is wrong once among many right changes: the search of `torchscript-cli bisect` must
// name it and the change.
#include <gtest/gtest.h>

#include "core/error_types.h"
#include "core/optimization_limit.h"
#include "ir/parser.h"
#include "ir/shape_facts.h"
#include "passes/dead_code_elimination.h"
#include "passes/node_traits.h"
#include "passes/peephole.h"
#include "runtime/interpreter/interpreter.h"
#include "tools/bisect.h"
#include "tools/comparison.h"

namespace wick::wrong_pass_test {
namespace {

// Turns x + x into x * 2, which is right, but x * 3 into x + 3.
bool doubleSums(Graph& graph) {
  bool changed = false;
  for (auto it = graph.nodes().begin(), end = graph.nodes().end(); it != end;) {
    Node* n = *it;
    ++it;
    if (n->outputs().size() != 1 || n->inputs().size() != 2) continue;
    bool sum = n->kind() == aten::add && n->input(0) == n->input(1);
    bool product = n->kind() == aten::mul && intOf(n->input(1)) == 3;
    if ((!sum && !product) || !WICK_MAY_OPTIMIZE("doubles {}", n->output()->debugName())) continue;
    InsertPointGuard guard(n);
    Value* other = sum ? graph.insertConstant(IValue(int64_t{2})) : n->input(1);
    Node* made = graph.insertNode(graph.create(sum ? aten::mul : aten::add, {n->input(0), other}));
    made->output()->setType(types::Int());
    replaceValue(n->output(), made->output());
    n->destroy();
    changed = true;
  }
  return changed;
}

TEST(Bisect, NamesAWrongPass) {
  std::string text = "graph(%x : int):\n  %three : int = prim::Constant[value=3]()\n";
  constexpr int kSums = 40;
  constexpr int kWrong = 23;
  std::string last = "x";
  for (int i = 0; i < kSums; ++i) {
    std::string next = "v" + std::to_string(i);
    bool wrong = i == kWrong;
    text += "  %" + next + " : int = aten::" + (wrong ? "mul" : "add") + "(%" + last + ", %" +
            (wrong ? "three" : last) + ")\n";
    last = next;
  }
  text += "  return (%" + last + ")\n";
  auto graph = parseGraph(text);
  auto result = [](const Graph& g) {
    return runCode(*Code::build(g.copy(), "program"), {IValue(int64_t{5})});
  };
  IValue expected = result(*graph);
  std::string culprit;
  uint64_t made = 0;
  auto isRight = [&](const std::string& limits) {
    setOptimizationLimits(limits);
    auto copy = graph->copy();
    simplifyPeepholes(*copy);
    doubleSums(*copy);
    eliminateDeadCode(*copy);
    made = optimizationsMade();
    culprit = lastOptimizingPass();
    return cli::differences(result(*copy), expected, {}, "").empty();
  };
  ASSERT_FALSE(isRight("*=1000000"));
  ASSERT_GE(made, uint64_t{kSums});
  uint64_t first =
      cli::firstWrong(made, [&](uint64_t n) { return isRight("*=" + std::to_string(n)); });
  EXPECT_FALSE(isRight("*=" + std::to_string(first)));
  EXPECT_EQ(culprit, "wrong_pass_test");
  EXPECT_EQ(first, uint64_t{kWrong + 1});
  EXPECT_TRUE(isRight("wrong_pass_test=" + std::to_string(kWrong)));
  EXPECT_FALSE(isRight("wrong_pass_test=" + std::to_string(kWrong + 1)));
  setOptimizationLimits("");
  for (const std::string wrong : {"inliner", "inliner=-1", "=3", "inliner=3:dead_code"}) {
    try {
      setOptimizationLimits(wrong);
      FAIL() << wrong;
    } catch (const UsageError& e) {
      EXPECT_EQ(
          e.message(),
          "optimization limits: expected NAME=NUMBER pairs separated by ':', got '" + wrong + "'");
    }
  }
}

}  // namespace
}  // namespace wick::wrong_pass_test
