// Patterns and decompositions on IR text.
#include "passes/replace_patterns.h"

#include <gtest/gtest.h>

#include "ir/parser.h"
#include "ir/verifier.h"
#include "tests/ir/test_operators.h"

namespace wick::replace_patterns_test {
namespace {

constexpr const char* kBefore = R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::mul(%x, %y)
  %b : Tensor = aten::relu(%a)
  return (%b)
)";
constexpr const char* kAfter = R"(graph(%x : Tensor, %y : Tensor):
  %a : Tensor = aten::relu(%y)
  %b : Tensor = aten::mul(%a, %x)
  return (%b)
)";

// Returns how often the pattern occurs in the graph, and checks what becomes of it.
size_t replaced(const char* text, std::string* result = nullptr) {
  const PatternRule rule(*parseGraph(kBefore), *parseGraph(kAfter));
  const auto graph = parseGraph(text);
  const size_t count = rule.apply(*graph);
  verify(*graph);
  if (result) *result = graph->str();
  return count;
}

TEST(ReplacePatterns, ReplacesEachOccurrence) {
  std::string text;
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %q : Tensor):
  %1 : Tensor = aten::mul(%p, %q)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::mul(%2, %p)
  %4 : Tensor = aten::relu(%3)
  return (%4)
)",
                     &text),
            2);
  EXPECT_EQ(text, R"(graph(%p : Tensor,
      %q : Tensor):
  %a : Tensor = aten::relu(%q)
  %b : Tensor = aten::mul(%a, %p)
  %a.1 : Tensor = aten::relu(%p)
  %b.1 : Tensor = aten::mul(%a.1, %b)
  return (%b.1)
)");
}

TEST(ReplacePatterns, LooksIntoBlocks) {
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %c : bool):
  %r : Tensor = prim::If(%c)
    block0():
      %1 : Tensor = aten::mul(%p, %p)
      %2 : Tensor = aten::relu(%1)
      -> (%2)
    block1():
      -> (%p)
  return (%r)
)"),
            1);
}

TEST(ReplacePatterns, LeavesValuesThatAreUsedElsewhere) {
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %q : Tensor):
  %1 : Tensor = aten::mul(%p, %q)
  %2 : Tensor = aten::relu(%1)
  return (%1, %2)
)"),
            0);
}

TEST(ReplacePatterns, LeavesOccurrencesInTwoBlocks) {
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %c : bool):
  %1 : Tensor = aten::mul(%p, %p)
  %r : Tensor = prim::If(%c)
    block0():
      %2 : Tensor = aten::relu(%1)
      -> (%2)
    block1():
      -> (%p)
  return (%r)
)"),
            0);
}

TEST(ReplacePatterns, LooksAtWritesBetween) {
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %q : Tensor):
  %1 : Tensor = aten::mul(%p, %q)
  %w : Tensor = aten::relu_(%p)
  %2 : Tensor = aten::relu(%1)
  return (%2)
)"),
            0);
  EXPECT_EQ(replaced(R"(graph(%p : Tensor, %q : Tensor):
  %o : Tensor = aten::relu(%q)
  %1 : Tensor = aten::mul(%p, %q)
  %w : Tensor = aten::relu_(%o)
  %2 : Tensor = aten::relu(%1)
  return (%2, %w)
)"),
            1);
}

TEST(ReplacePatterns, OccurrencesDoNotOverlap) {
  const PatternRule twice(*parseGraph(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  %b : Tensor = aten::relu(%a)
  return (%b)
)"),
                          *parseGraph(R"(graph(%x : Tensor):
  %a : Tensor = aten::relu(%x)
  return (%a)
)"));
  const auto graph = parseGraph(R"(graph(%x : Tensor):
  %1 : Tensor = aten::relu(%x)
  %2 : Tensor = aten::relu(%1)
  %3 : Tensor = aten::relu(%2)
  %4 : Tensor = aten::relu(%3)
  %5 : Tensor = aten::relu(%4)
  return (%5)
)");
  EXPECT_EQ(twice.apply(*graph), 2);
  verify(*graph);
}

TEST(Decompose, KeepsTheOperatorInItsOwnReplacement) {
  const auto function = graphForRule(*parseGraph(R"(graph(%x : Tensor):
  %a : Tensor = aten::mul(%x, %x)
  %b : Tensor = aten::relu(%a)
  return (%b)
)"));
  const Operator& relu = decomposedOperator("aten::relu", *function);
  const auto graph = parseGraph(R"(graph(%x : Tensor):
  %1 : Tensor = aten::relu(%x)
  %2 : Tensor = aten::relu(%1)
  return (%2)
)");
  EXPECT_EQ(decompose(*graph, {{&relu, function}}), 2);
  verify(*graph);
  EXPECT_THROW(decomposedOperator("aten::mul", *function), UsageError);
  EXPECT_THROW(decomposedOperator("aten::reluu", *function), UsageError);
}

}  // namespace
}  // namespace wick::replace_patterns_test
