// Gradients through nested tensors: against the same operators on each part, and against PyTorch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "wick.h"

namespace wick::nested_gradients_test {
namespace {

using testing::HasSubstr;
using Floats = std::vector<float>;

Floats numbers(const Tensor& t) {
  const Tensor dense = t.contiguous();
  return {dense.data<float>(), dense.data<float>() + dense.numel()};
}

// Both give the gradients of a, b, w and bias; `nested` is an expression over n, `dense` one over x,
// which stands for a part.
constexpr const char* kSource = R"(
def of_nested(a: Tensor, b: Tensor, w: Tensor, bias: Tensor) -> List[Optional[Tensor]]:
    n = torch._nested_tensor_from_tensor_list([a, b])
    y = torch.nested.to_padded_tensor({nested}, 0.0)
    return torch.autograd.grad([(y * y).sum() / 100], [a, b, w, bias], allow_unused=True)

def part(x: Tensor, w: Tensor, bias: Tensor) -> Tensor:
    y = {dense}
    return (y * y).sum() / 100

def of_parts(a: Tensor, b: Tensor, w: Tensor, bias: Tensor) -> List[Optional[Tensor]]:
    loss = part(a, w, bias) + part(b, w, bias)
    return torch.autograd.grad([loss], [a, b, w, bias], allow_unused=True)

def second(a: Tensor, b: Tensor, w: Tensor, bias: Tensor) -> Optional[Tensor]:
    n = torch._nested_tensor_from_tensor_list([a, b])
    y = torch.nested.to_padded_tensor({nested}, 0.0)
    g = torch.autograd.grad([(y * y * y).sum() / 100], [a], create_graph=True)[0]
    assert g is not None
    return torch.autograd.grad([(g * g).sum()], [a], allow_unused=True)[0]
)";

std::vector<IValue> arguments() {
  const auto leaf = [](std::initializer_list<float> values, DimVector sizes) {
    Tensor t = Tensor::from(values).view(sizes).clone();
    t.setRequiresGrad(true);
    return IValue(t);
  };
  return {leaf({0, 1, 2, 3, 4, 5}, {2, 3}), leaf({10, 11, 12}, {1, 3}),
          leaf({1, 2, 3, 0.5f, -1, 2}, {2, 3}), leaf({1, -1}, {2})};
}

Program programOf(const std::string& nested, const std::string& dense) {
  std::string source = kSource;
  const auto put = [&](const std::string& name, const std::string& text) {
    for (size_t at; (at = source.find(name)) != std::string::npos;) {
      source.replace(at, name.size(), text);
    }
  };
  put("{nested}", nested);
  put("{dense}", dense);
  return compile(source);
}

TEST(NestedGradients, AgreeWithThoseOfTheParts) {
  const std::pair<const char*, const char*> cases[] = {
      {"n", "x"},
      {"n.clone()", "x"},
      {"n + n", "x + x"},
      {"n * n", "x * x"},
      {"n - n * 2", "x - x * 2"},
      {"n / (n + 1)", "x / (x + 1)"},
      {"n * torch.tensor(3.0)", "x * 3"},
      {"torch.add(n, n, alpha=3)", "x + x * 3"},
      {"torch.relu(n - 2)", "torch.relu(x - 2)"},
      {"torch.nn.functional.gelu(n)", "torch.nn.functional.gelu(x)"},
      {"torch.nn.functional.silu(n)", "torch.nn.functional.silu(x)"},
      {"torch.tanh(n * 0.1)", "torch.tanh(x * 0.1)"},
      {"torch.sigmoid(n)", "torch.sigmoid(x)"},
      {"torch.exp(-n)", "torch.exp(-x)"},
      {"torch.softmax(n, -1)", "torch.softmax(x, -1)"},
      {"torch.softmax(n * 0.3, 2)", "torch.softmax(x * 0.3, 1)"},
      {"torch.nn.functional.linear(n, w, bias)", "torch.nn.functional.linear(x, w, bias)"},
      {"torch.nn.functional.linear(n, w)", "torch.nn.functional.linear(x, w)"},
      {"torch.nn.functional.layer_norm(n, [3], w[0], w[1])",
       "torch.nn.functional.layer_norm(x, [3], w[0], w[1])"},
      {"torch.bmm(n, n.transpose(1, 2))", "torch.mm(x, x.t())"},
      {"torch.matmul(n, n.transpose(1, 2))", "torch.mm(x, x.t())"},
      {"n.reshape(2, -1, 3, 1) * 2", "x * 2"},
      {"n.transpose(1, 2).contiguous()", "x"},
      {"torch.sum(n, [-1], keepdim=True)", "torch.sum(x, [-1], keepdim=True)"},
      {"torch._nested_tensor_from_tensor_list([p * p for p in torch.unbind(n)])", "x * x"},
      {"torch._nested_tensor_from_tensor_list([n[0], n[1] * 1])", "x"},
      {"torch.dropout(n, 0.5, False)", "x"},
      {"torch.abs(torch.neg(n))", "x"},
      {"torch.sin(n) + torch.cos(n) * 2", "torch.sin(x) + torch.cos(x) * 2"},
      {"torch.sgn(n) * n", "torch.sgn(x) * x"},
      {"torch.sub(n, n * 2, alpha=3)", "x * -5"},
      {"(n - 2) / 4", "(x - 2) / 4"},
      {"n.to(torch.float64)", "x.to(torch.float64)"},
      {"n.view(2, -1, 3, 1)", "x"},
      {"torch._nested_tensor_layer_norm(n, w[0], w[1], 1e-5)",
       "torch.nn.functional.layer_norm(x, [3], w[0], w[1])"},
      {"torch.nn.functional.embedding(torch._nested_tensor_from_tensor_list([torch.tensor([0, 1]), "
       "torch.tensor([1])]), w) + n",
       "w[2 - x.size(0):] + x"},
      {"(n * 2).relu_()", "torch.relu(x * 2)"},
      {"(n * 2).mul_(n)", "2 * x * x"},
      {"torch._nested_from_padded_and_nested_example(torch.nested.to_padded_tensor(n, 3.0), n) * 2",
       "x * 2"},
  };
  for (const auto& [nested, dense] : cases) {
    const Program p = programOf(nested, dense);
    for (int call = 0; call < 2; ++call) {
      const IValue found = p.call("of_nested", arguments());
      const IValue expected = p.call("of_parts", arguments());
      for (size_t i = 0; i < 4; ++i) {
        const IValue got = found[i], want = expected[i];
        ASSERT_EQ(got.isNone(), want.isNone()) << nested << " " << i;
        if (got.isNone()) continue;
        const Floats a = numbers(got.tensor()), b = numbers(want.tensor());
        ASSERT_EQ(a.size(), b.size()) << nested;
        for (size_t k = 0; k < a.size(); ++k) {
          ASSERT_NEAR(a[k], b[k], 1e-5 + 1e-4 * std::abs(b[k])) << nested << " " << i << " " << k;
        }
      }
    }
  }
}

// PyTorch 1.13's numbers.
TEST(NestedGradients, AgreeWithPyTorch) {
  const Program p = programOf("torch.nn.functional.linear(n, w, bias)", "x");
  const IValue found = p.call("of_nested", arguments());
  const Floats expected[] = {{0.2f, 0.32f, 0.62f, 0.605f, 0.95f, 1.88f},
                             {1.55f, 2.42f, 4.82f},
                             {15.42f, 17.52f, 19.62f, 3.79f, 4.3f, 4.81f},
                             {2.1f, 0.51f}};
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_THAT(numbers(found[i].tensor()),
                testing::Pointwise(testing::FloatNear(1e-4f), expected[i]));
  }
}

TEST(NestedGradients, DenseTensorsThatBecomeNested) {
  const Program p = compile(R"(
def mask(x: Tensor, m: Tensor) -> Tensor:
    y = torch.nested.to_padded_tensor(torch._nested_tensor_from_mask(x, m) * 3, 0.0)
    g = torch.autograd.grad([(y * y).sum()], [x])[0]
    assert g is not None
    return g
def padded(x: Tensor, sizes: Tensor) -> Tensor:
    y = torch.nested.to_padded_tensor(torch._nested_from_padded(x, sizes) * 3, 0.0)
    g = torch.autograd.grad([(y * y).sum()], [x])[0]
    assert g is not None
    return g
def swapped(x: Tensor, sizes: Tensor) -> Tensor:
    n = torch._nested_from_padded(x, sizes, True)
    y = torch.nested.to_padded_tensor(n * n, 0.0)
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return g
def leaf() -> Tensor:
    n = torch._nested_tensor_from_tensor_list([torch.ones(2, 3), torch.ones(1, 3)])
    n.requires_grad_()
    torch.nested.to_padded_tensor(n * 2, 0.0).sum().backward()
    g = n.grad
    assert g is not None
    return torch.nested.to_padded_tensor(g, -1.0)
)");
  Tensor x =
      Tensor::from({0.f, 1.f, 2.f, 3.f, 4.f, 5.f, 6.f, 7.f, 8.f, 9.f, 10.f, 11.f}, {2, 3, 2});
  x.setRequiresGrad(true);
  const Tensor mask = Tensor::from({1., 1., 0., 1., 0., 0.}).to(DType::Bool).view(DimVector{2, 3});
  const Floats expected = {0, 18, 36, 54, 0, 0, 108, 126, 0, 0, 0, 0};
  EXPECT_EQ(numbers(p.call("mask", {x, mask}).tensor()), expected);
  const Tensor sizes = Tensor::from({2., 2., 1., 2.}).to(DType::Long).view(DimVector{2, 2});
  EXPECT_EQ(numbers(p.call("padded", {x, sizes}).tensor()), expected);
  // One part of two heads, whose first two rows count.
  Tensor heads = x.detach().clone().view(DimVector{1, 2, 3, 2});
  heads.setRequiresGrad(true);
  const Tensor rows = Tensor::from({2., 4.}).to(DType::Long).view(DimVector{1, 2});
  EXPECT_EQ(numbers(p.call("swapped", {heads, rows}).tensor()),
            (Floats{0, 2, 4, 6, 0, 0, 12, 14, 16, 18, 0, 0}));
  EXPECT_EQ(numbers(p.call("leaf", {}).tensor()), (Floats{2, 2, 2, 2, 2, 2, 2, 2, 2, -1, -1, -1}));
}

TEST(NestedGradients, HaveGradientsOfTheirOwn) {
  // y = x^2, loss = sum y^3 / 100: g = 6 x^5 / 100, and d(sum g^2) = 2 g 30 x^4 / 100.
  const Program p = programOf("n * n", "x");
  const Floats found = numbers(p.call("second", arguments()).tensor());
  for (size_t i = 0; i < found.size(); ++i) {
    const double x = static_cast<double>(i);
    EXPECT_NEAR(found[i], 2 * 0.06 * std::pow(x, 5) * 0.3 * std::pow(x, 4), 1e-3 * std::pow(x, 9));
  }
}

TEST(NestedGradients, WhatHasNoneSaysSo) {
  const auto refusalOf = [](const char* nested) {
    try {
      programOf(nested, "x").call("of_nested", arguments());
    } catch (const RuntimeError& error) {
      return error.brief();
    }
    return std::string("no error");
  };
  EXPECT_THAT(refusalOf("n + torch._nested_tensor_from_tensor_list([b, b])"),
              HasSubstr("do not broadcast"));
  EXPECT_THAT(refusalOf("torch.softmax(n, 0)"), HasSubstr("across nested dimension 0"));
}

}  // namespace
}  // namespace wick::nested_gradients_test
