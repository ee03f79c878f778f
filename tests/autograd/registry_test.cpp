// Every operator that makes tensors has a derivative, or a reason why not.
#include <gtest/gtest.h>

#include <cmath>

#include "autograd/formula.h"
#include "tests/error_text.h"
#include "tests/every_operator.h"
#include "wick.h"

namespace wick::registry_test {
namespace {

using autograd::Rule;

TEST(Derivatives, EveryOperatorHasOneOrAReason) {
  std::string missing;
  size_t count = 0;
  forEachOperator([&](const Operator& op) {
    const Rule& rule = autograd::ruleOf(op);
    if (rule.kind() != Rule::Kind::Missing || !rule.reason().empty()) return;
    missing += "  " + op.schema().str() + "\n";
    ++count;
  });
  EXPECT_EQ(count, 0u) << "operators with neither a derivative nor a reason why there is none:\n"
                       << missing;
}

std::vector<double> numbersOf(const std::string& body) {
  const IValue value = compile("def main() -> List[Tensor]:\n" + body).call("main", {});
  std::vector<double> out;
  for (const IValue& e : value.elements()) {
    const Tensor t = e.toTensor().detach().to(DType::Double).contiguous();
    out.insert(out.end(), t.data<double>(), t.data<double>() + t.numel());
  }
  return out;
}

std::string errorOf(const std::string& body) {
  return testing_errors::errorOf([&] { compile("def main():\n" + body).call("main", {}); });
}

void expectNear(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 2e-5 * std::max(1.0, std::fabs(expected[i]))) << i;
  }
}

TEST(Derivatives, ThatAreMissingAreErrorsThatNameOperatorAndArgument) {
  const std::string error = errorOf(
      "    x = torch.ones([3]).requires_grad_()\n"
      "    torch.heaviside(torch.ones([3]), x).sum().backward()\n");
  EXPECT_EQ(error.find("derivative for aten::heaviside is not implemented; it is needed for "
                       "argument 'values'"),
            0u)
      << error;
  EXPECT_EQ(errorOf("    x = torch.ones([3]).requires_grad_()\n    y = x * 2\n    "
                    "y.resize_([2])\n    return y\n"),
            "cannot resize variables that require grad");
  // The template may require one.
  EXPECT_EQ(errorOf("    x = torch.ones([3]).requires_grad_()\n    "
                    "torch.ones([2]).resize_as_(x)\n"),
            "no error");
}

// The numbers are PyTorch's.
TEST(Derivatives, OfLearnedGrids) {
  const std::string begin =
      "    x = torch.tensor([-0.32, -0.05, 0.07, 0.33, 0.71])\n"
      "    w = torch.tensor([1., 2., 3., 4., 5.])\n";
  expectNear(numbersOf(begin + R"(
    x.requires_grad_()
    s = torch.tensor([0.1]).requires_grad_()
    z = torch.tensor([1.]).requires_grad_()
    y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, 0, 5, 0.5)
    a, b, c = torch.autograd.grad([(y * w).sum()], [x, s, z])
    assert a is not None and b is not None and c is not None
    return [a, b, c]
)"),
             {0, 2, 3, 4, 0, 8.85, -0.3});
  expectNear(numbersOf(begin + R"(
    x = torch.stack([x, x * 2]).requires_grad_()
    s = torch.tensor([0.1, 0.2]).requires_grad_()
    z = torch.tensor([1., 2.]).requires_grad_()
    y = torch._fake_quantize_learnable_per_channel_affine(x, s, z, 0, 0, 5, 0.5)
    a, b, c = torch.autograd.grad([(y * w).sum()], [x, s, z])
    assert a is not None and b is not None and c is not None
    return [a, b, c]
)"),
             {0, 2, 3, 4, 0, 0, 2, 3, 4, 0, 8.85, 6.85, -0.3, -0.6});
  expectNear(numbersOf(begin + R"(
    x.requires_grad_()
    y = torch.fake_quantize_per_tensor_affine(x, 0.1, 1, 0, 5)
    a = torch.autograd.grad([(y * w).sum()], [x])[0]
    assert a is not None
    return [a]
)"),
             {0, 2, 3, 4, 0});
}

TEST(Derivatives, OfListsOfTensors) {
  expectNear(numbersOf(R"(
    a = torch.ones([2]).requires_grad_()
    b = torch.ones([3]).requires_grad_()
    flat = torch.ops.aten.flatten_dense_tensors([a, b])
    parts = torch.ops.aten.unflatten_dense_tensors(flat * 2, [a, b])
    first = parts[0] * 3
    g, h = torch.autograd.grad([first.sum() + parts[1].sum()], [a, b])
    assert g is not None and h is not None
    return [g, h]
)"),
             {6, 6, 2, 2, 2});
}

TEST(Derivatives, OfSamplesOfGamma) {
  // From differences of the distribution function, divided by the density.
  expectNear(numbersOf(R"(
    a = torch.tensor([0.3, 1., 2.5, 10., 100., 1e4], dtype=torch.float64)
    x = torch.tensor([0.05, 0.7, 3., 8., 112., 10050.], dtype=torch.float64)
    return [torch._standard_gamma_grad(a, x)]
)"),
             {0.494711, 0.973219, 1.169262, 0.907548, 1.059498, 1.002513});
}

}  // namespace
}  // namespace wick::registry_test
