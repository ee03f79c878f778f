// What counts as a difference between a device's results and the CPU's.
#include "tests/cuda/perturbed.h"

#include <gtest/gtest.h>

#include "ir/parser.h"

namespace wick::perturbed_test {
namespace {

Tensor numbers(std::vector<float> values) {
  return Tensor::fromData(values.data(), DimVector{static_cast<int64_t>(values.size())}).clone();
}

struct Case {
  Program program;
  std::vector<Tensor> expected;
};
Case make(const std::string& text, std::vector<Tensor> arguments) {
  Case made;
  made.program.text = text;
  for (const Tensor& t : arguments) made.program.arguments.emplace_back(t);
  made.expected = runGraph(parseGraph(text), made.program.arguments).tensors;
  return made;
}
bool differs(const Case& c, std::vector<float> got) {
  return differsSteadily(c.program, {numbers(std::move(got))}, c.expected, 2e-4);
}

TEST(Perturbed, ALastPlaceOfALargeArgumentExplainsItsCosine) {
  const Case c = make(R"(graph(%x0 : Tensor):
  %v0 : Tensor = aten::exp(%x0)
  %v1 : Tensor = aten::cos(%v0)
  return (%v1)
)",
                      {numbers({12.5f, 0.0f})});
  const float* there = c.expected[0].data<float>();
  EXPECT_FALSE(differs(c, {there[0], there[1]}));
  EXPECT_FALSE(differs(c, {there[0] + 0.01f, there[1]}));
  EXPECT_TRUE(differs(c, {there[0] + 3.0f, there[1]}));
  // The cosine of one is what it is.
  EXPECT_TRUE(differs(c, {there[0], there[1] + 0.01f}));
}

TEST(Perturbed, AQuotientOfManyUnitsExplainsItsRemainder) {
  const Case c = make(R"(graph(%x0 : Tensor, %x1 : Tensor):
  %v0 : Tensor = aten::exp(%x1)
  %v1 : Tensor = aten::remainder(%x0, %v0)
  return (%v1)
)",
                      {numbers({1e7f, 5.0f}), numbers({-0.3f, 0.5f})});
  const float* there = c.expected[0].data<float>();
  EXPECT_FALSE(differs(c, {there[0] > 0.3f ? there[0] - 0.3f : there[0] + 0.3f, there[1]}));
  EXPECT_TRUE(differs(c, {there[0], there[1] + 0.01f}));
}

TEST(Perturbed, WholeNumbersAreNotMoved) {
  const Case c = make(R"(graph(%x0 : Tensor):
  %c0 : int = prim::Constant[value=3]()
  %v0 : Tensor = aten::gt(%x0, %c0)
  %v1 : Tensor = aten::logical_not(%v0)
  return (%v1)
)",
                      {numbers({3.0f, 4.0f})});
  EXPECT_FALSE(differsSteadily(c.program, c.expected, c.expected, 0));
}

}  // namespace
}  // namespace wick::perturbed_test
