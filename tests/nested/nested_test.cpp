// Nested tensors: the fast path of nn.TransformerEncoder against PyTorch 1.13, operators on them, and
// what is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/nested_form.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::nested_test {
namespace {

using testing::HasSubstr;

const std::string kData = "tests/nested/data/";

std::vector<float> numbers(const Tensor& t) {
  const Tensor dense = t.contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

void expectNear(const Tensor& found, const Tensor& expected) {
  ASSERT_EQ(DimVector(found.sizes()), DimVector(expected.sizes()));
  const std::vector<float> a = numbers(found), b = numbers(expected);
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 2e-5) << i;
}

TEST(NestedTest, EncodersAgreeWithPyTorch) {
  const IValue values = loadValue(kData + "values.pt");
  const Tensor x = values["x"].tensor(), mask = values["mask"].tensor();
  // Weights that require gradients keep encoders from it.
  const GradModeGuard no_grad(false);
  for (const char* name : {"norm_last", "norm_first"}) {
    const Module model = load(kData + name + ".pt").eval();
    for (int call = 0; call < 3; ++call) {
      const Tensor y = model({x, IValue(), mask}).tensor();
      expectNear(y, values[name].tensor());
      expectNear(model({x}).tensor(), values[std::string(name) + "_plain"].tensor());
    }
  }
}

// With a mask the sequences are packed, and what is padding becomes 0; PyTorch's encoders that
// normalize first do not do that.
TEST(NestedTest, PaddingBecomesZeroOnTheFastPath) {
  const IValue values = loadValue(kData + "values.pt");
  const Module model = load(kData + "norm_last.pt").eval();
  const auto padding = [&] {
    const Tensor y = model({values["x"], IValue(), values["mask"]}).tensor();
    return y.select(0, 1).select(0, 4).select(0, 0).item<float>();
  };
  EXPECT_NE(padding(), 0);
  const GradModeGuard no_grad(false);
  EXPECT_EQ(padding(), 0);
}

constexpr const char* kMake = R"(
def make() -> Tensor:
    a = torch.arange(6).reshape(2, 3).float()
    b = torch.arange(3).reshape(1, 3).float() + 10
    return torch._nested_tensor_from_tensor_list([a, b])
)";

// A function of a nested tensor of parts [2, 3] and [1, 3], as a program.
IValue evaluate(const std::string& expression) {
  static int number = 0;
  const Program p = compile(std::string(kMake) + "def f():\n    n = make()\n    return " +
                            expression + "\n" + "# " + std::to_string(++number) + "\n");
  IValue result;
  for (int call = 0; call < 2; ++call) result = p.call("f", {});
  return result;
}
std::string refusalOf(const std::string& expression) {
  return testing_errors::errorOf([&] { evaluate(expression); });
}
std::vector<float> padded(const std::string& expression) {
  return numbers(evaluate("torch.nested.to_padded_tensor(" + expression + ", -1.0)").tensor());
}

using Floats = std::vector<float>;

TEST(NestedTest, TellsItsSizes) {
  EXPECT_TRUE(evaluate("n.is_nested").toBool());
  EXPECT_EQ(evaluate("n.dim()").toInt(), 3);
  EXPECT_EQ(evaluate("n.numel()").toInt(), 9);
  EXPECT_EQ(evaluate("n.size(0)").toInt(), 2);
  EXPECT_EQ(evaluate("n.size(-1)").toInt(), 3);
  EXPECT_THAT(refusalOf("n.size(1)"), HasSubstr("dimension 1 is irregular"));
  EXPECT_THAT(refusalOf("n.size()"), HasSubstr("dimension 1 is irregular"));
  EXPECT_TRUE(evaluate("n.is_contiguous()").toBool());
  EXPECT_FALSE(evaluate("n.transpose(1, 2).is_contiguous()").toBool());
  EXPECT_EQ(evaluate("str(n)").toString(),
            "nested_tensor([\n  tensor([[0., 1., 2.],\n          [3., 4., 5.]]),\n  tensor([[10., "
            "11., 12.]])\n])");
}

// The numbers are PyTorch 1.13's.
TEST(NestedTest, ComputesPartByPart) {
  EXPECT_EQ(padded("n * 2"), (Floats{0, 2, 4, 6, 8, 10, 20, 22, 24, -1, -1, -1}));
  EXPECT_EQ(padded("n + n"), (Floats{0, 2, 4, 6, 8, 10, 20, 22, 24, -1, -1, -1}));
  EXPECT_EQ(padded("torch.relu(n - 4)"), (Floats{0, 0, 0, 0, 0, 1, 6, 7, 8, -1, -1, -1}));
  EXPECT_EQ(padded("torch.bmm(n, n.transpose(1, 2))"), (Floats{5, 14, 14, 50, 365, -1, -1, -1}));
  EXPECT_EQ(padded("n.transpose(1, 2)"), (Floats{0, 3, 1, 4, 2, 5, 10, -1, 11, -1, 12, -1}));
  EXPECT_EQ(padded("n.reshape(2, -1, 3, 1)").size(), 12u);
  EXPECT_EQ(padded("torch.sum(n, [-1], keepdim=True)"), (Floats{3, 12, 33, -1}));
  EXPECT_EQ(padded("torch.nn.functional.linear(n, torch.ones(1, 3), torch.ones(1))"),
            (Floats{4, 13, 34, -1}));
  EXPECT_EQ(numbers(evaluate("n[1]").tensor()), (Floats{10, 11, 12}));
  EXPECT_EQ(numbers(evaluate("torch.unbind(n)[0][1]").tensor()), (Floats{3, 4, 5}));
  expectNear(evaluate("torch.nested.to_padded_tensor(torch.softmax(n, -1), 0.0).sum(-1)").tensor(),
             Tensor::from({1.f, 1.f, 1.f, 0.f}, {2, 2}));
  EXPECT_EQ(numbers(evaluate("torch.nested.to_padded_tensor(n, 7.0, [2, 2, 4])").tensor()),
            (Floats{0, 1, 2, 7, 3, 4, 5, 7, 10, 11, 12, 7, 7, 7, 7, 7}));
}

TEST(NestedTest, PartsShareMemory) {
  const Program p = compile(std::string(kMake) + R"(
def f() -> float:
    n = make()
    n[0].add_(100)
    n.mul_(2)
    return float(torch.nested.to_padded_tensor(n, 0.0).sum())
)");
  EXPECT_EQ(p.call("f", {}).toDouble(), 2 * (48 + 600));
}

TEST(NestedTest, MasksMakeThem) {
  const Program p = compile(R"(
def f(x: Tensor, mask: Tensor, check: bool) -> Tensor:
    return torch.nested.to_padded_tensor(torch._nested_tensor_from_mask(x, mask, check), 0.0)
def aligned(x: Tensor, mask: Tensor) -> bool:
    return torch._nested_tensor_from_mask_left_aligned(x, mask)
)");
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {2, 3, 1});
  const auto mask = [](std::initializer_list<double> values) {
    return Tensor::from(values).to(DType::Bool).view(DimVector{2, 3});
  };
  EXPECT_EQ(numbers(p.call("f", {x, mask({1, 1, 0, 1, 0, 0}), true}).tensor()),
            (Floats{1, 2, 4, 0}));
  EXPECT_TRUE(p.call("aligned", {x, mask({1, 1, 0, 1, 0, 0})}).toBool());
  EXPECT_FALSE(p.call("aligned", {x, mask({1, 0, 1, 1, 0, 0})}).toBool());
  // Gaps that nobody looks for: as many leading rows as there are true ones.
  EXPECT_EQ(numbers(p.call("f", {x, mask({1, 0, 1, 1, 0, 0}), false}).tensor()),
            (Floats{1, 2, 4, 0}));
  EXPECT_THROW(p.call("f", {x, mask({1, 0, 1, 1, 0, 0}), true}), RuntimeError);
  EXPECT_EQ(p.call("f", {x, mask({0, 0, 0, 0, 0, 0}), true}).tensor().numel(), 0);
  EXPECT_THROW(p.call("f", {x, x, true}), RuntimeError);
}

TEST(NestedTest, WhatCannotBeIsRefused) {
  const std::pair<const char*, const char*> cases[] = {
      {"n + torch.ones(3)", "Expected both self and other to be nested"},
      {"n + torch._nested_tensor_from_tensor_list([torch.ones(1, 3), torch.ones(1, 3)])",
       "broadcasting"},
      {"n.transpose(0, 1)", "dimension 0 cannot be transposed"},
      {"torch.unbind(n, 1)", "unbound along dimension 0"},
      {"n.select(1, 0)", "selected along dimension 0"},
      {"n.select(0, 2)", "out of bounds"},
      {"torch.softmax(n, 0)", "across nested dimension 0"},
      {"torch.nested.to_padded_tensor(n, 0.0, [2, 1, 3])", "Truncation is not supported"},
      {"torch.nested.to_padded_tensor(n, 0.0, [2, 3])", "Broadcasting is not supported"},
      {"torch.nested.to_padded_tensor(torch.ones(2), 0.0)", "expected a nested tensor"},
      {"torch.nn.functional.linear(n, torch.ones(2, 4))", "Shape mismatch"},
      {"n.reshape(1, -1, 3)", "implicit batch dimension"},
      {"torch.sum(n, [1], keepdim=True)", "across the last dimension"},
      {"torch.cat([n, n])", "cat: not available for nested tensors"},
      {"torch._nested_from_padded(torch.ones(2, 3), torch.tensor([[2], [4]]))",
       "does not lie within"},
      {"torch._nested_from_padded(torch.ones(2, 3), torch.tensor([[2], [-1]]))",
       "does not lie within"},
  };
  for (const auto& [expression, message] : cases) {
    EXPECT_THAT(refusalOf(expression), HasSubstr(message)) << expression;
  }
  EXPECT_THROW(saveValue(evaluate("n"), testing::TempDir() + "/nested.pt"), RuntimeError);
}

}  // namespace
}  // namespace wick::nested_test
