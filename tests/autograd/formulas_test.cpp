// The derivatives of operators.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/formula.h"
#include "tests/every_operator.h"
#include "wick.h"

namespace wick {
namespace {

using autograd::Rule;

// A formula is compiled when its operator is first differentiated; here all are.
TEST(Formulas, Compile) {
  size_t count = 0;
  forEachOperator([&](const Operator& op) {
    const Rule& rule = autograd::ruleOf(op);
    try {
      if (rule.kind() == Rule::Kind::Script) {
        rule.script();
        ++count;
      } else if (rule.kind() == Rule::Kind::Formula) {
        uint64_t all = 0;
        for (size_t i = 0; i < op.schema().arguments().size() && i < 64; ++i) {
          if (!rule.covers(i)) continue;
          rule.gradients(uint64_t{1} << i);
          all |= uint64_t{1} << i;
        }
        if (all != 0) rule.gradients(all);
        ++count;
      }
    } catch (const Error& e) {
      ADD_FAILURE() << op.schema().str() << ": " << e.what();
    }
  });
  EXPECT_GT(count, 300u);
}

bool conjugates(const Block* block) {
  return std::ranges::any_of(block->nodes(), [](const Node* node) {
    return (node->kind() == Symbol::aten("conj") &&
            node->input(0)->type()->kind() == TypeKind::Tensor) ||
           std::ranges::any_of(node->blocks(), conjugates);
  });
}

// What is between pointwise operators keeps them from becoming one kernel.
TEST(Formulas, OfRealsConjugateNothing) {
  size_t count = 0;
  for (const char* name : {"aten::mul", "aten::silu", "aten::tanh", "aten::matmul"}) {
    forEachOperator([&](const Operator& op) {
      const Rule& rule = autograd::ruleOf(op);
      // A number may be complex beside real tensors.
      const bool takes_number = op.schema().overload() == "Scalar";
      if (op.schema().name() != name || rule.kind() != Rule::Kind::Formula || takes_number) return;
      const autograd::GradientFunction& gradients = rule.gradients(1);
      if (!conjugates(gradients.function->graph()->block())) return;
      ASSERT_NE(gradients.of_reals, nullptr) << name;
      EXPECT_FALSE(conjugates(gradients.of_reals->graph()->block())) << name;
      ++count;
    });
  }
  EXPECT_GE(count, 3u);
}

// Complex numbers that a formula makes of real ones keep theirs: d|fft(x)|^2 = 2 * n * x.
TEST(Formulas, ComplexNumbersBetweenRealsAreConjugated) {
  const IValue made = compile(R"(
def main() -> Tensor:
    x = torch.tensor([0.5, -1.5, 2.0, 0.25]).requires_grad_()
    y = torch.fft.fft(x)
    g = torch.autograd.grad([torch.real(y * y.conj()).sum()], [x])[0]
    assert g is not None
    return g
)")
                          .call("main", {});
  const double expected[] = {4, -12, 16, 2};
  for (int64_t i = 0; i < 4; ++i) {
    EXPECT_NEAR(made.toTensor().contiguous().data<float>()[i], expected[i], 1e-4);
  }
}

// Gradients against differences of the function's values, and gradients of gradients.
// The values are of a and b, matrices of doubles between 0.3 and 0.9.
class Differences : public testing::TestWithParam<const char*> {};

INSTANTIATE_TEST_SUITE_P(
    Expressions, Differences,
    testing::Values("a + b", "a - b * 2", "a * b", "a / b", "torch.exp(a)", "torch.log(a)",
                    "torch.sin(a) * torch.cos(b)", "torch.tanh(a)", "torch.sigmoid(a)", "a ** 3",
                    "a ** b", "torch.sqrt(a)", "torch.rsqrt(a)", "torch.atan2(a, b)",
                    "torch.erf(a)", "torch.lgamma(a)", "torch.logaddexp(a, b)",
                    "torch.lerp(a, b, 0.3)", "torch.addcmul(a, a, b)", "a @ b.t()", "a.t() @ b",
                    "a.sum(0)", "a.mean(1, True)", "a.prod(1)", "a.var(0)", "a.std(1)",
                    "a.logsumexp(1)", "a.cumsum(1)", "a.cumprod(1)", "a.logcumsumexp(0)",
                    "a.amax(1)", "torch.sort(a, 1)[0]", "torch.cat([a, b], 1)",
                    "torch.stack([a, b])", "a.reshape([-1])[2:5]",
                    "a.transpose(0, 1).unfold(0, 2, 1)", "a.expand([2, 3, 4])", "a.repeat([2, 2])",
                    "a.roll(1, 0)", "a.flip([1])", "a.tril()", "torch.where(a > b, a * a, b)",
                    "a[[0, 2, 2]]", "a.index_select(1, torch.tensor([1, 1, 3]))",
                    "a.gather(1, torch.tensor([[0, 1], [3, 3], [2, 0]]))",
                    "a.masked_fill(b > 0.5, 2.)", "torch.nn.functional.gelu(a)",
                    "torch.nn.functional.silu(a)", "torch.nn.functional.softplus(a)",
                    "torch.nn.functional.elu(-a)", "torch.polygamma(1, a)", "torch.special.i1(a)"));

TEST_P(Differences, Agree) {
  const Program program = compile(fmt::format(R"(
def value(a: Tensor, b: Tensor) -> Tensor:
    out = {}
    return (out * torch.linspace(0.5, 1.5, out.numel(), dtype=torch.float64).reshape(out.size())).sum()
def slopes(a: Tensor, b: Tensor, again: bool) -> List[Tensor]:
    a = a.detach().clone().requires_grad_()
    b = b.detach().clone().requires_grad_()
    v = value(a, b)
    if again:
        first = torch.autograd.grad([v], [a, b], create_graph=True, allow_unused=True)
        v = torch.zeros([], dtype=torch.float64) + 0 * (a.sum() + b.sum())
        for g in first:
            if g is not None:
                v = v + (g * g).sum()
    out: List[Tensor] = [v]
    for g in torch.autograd.grad([v], [a, b], allow_unused=True):
        out.append(torch.zeros([3, 4], dtype=torch.float64) if g is None else g)
    return out
)",
                                              GetParam()));
  const auto matrix = [](double seed) {
    Tensor t = Tensor::empty({3, 4}, DType::Double);
    for (int i = 0; i < 12; ++i) t.data<double>()[i] = 0.6 + 0.3 * std::sin(seed + 1.7 * i);
    return t;
  };
  for (const bool again : {false, true}) {
    std::vector<Tensor> at{matrix(1), matrix(2)};
    const auto slopes = [&] { return program.call("slopes", {at[0], at[1], again}); };
    const IValue found = slopes();
    for (size_t k = 0; k < 2; ++k) {
      const Tensor gradient = found.elements()[1 + k].toTensor().contiguous();
      for (int i = 0; i < 12; ++i) {
        constexpr double kStep = 1e-5;
        double& x = at[k].data<double>()[i];
        const double before = x;
        x = before + kStep;
        const double up = slopes().elements()[0].toTensor().item<double>();
        x = before - kStep;
        const double down = slopes().elements()[0].toTensor().item<double>();
        x = before;
        const double expected = (up - down) / (2 * kStep);
        EXPECT_NEAR(gradient.data<double>()[i], expected, 1e-5 * std::max(1.0, std::fabs(expected)))
            << (again ? "second" : "first") << " derivative, input " << k << ", element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace wick
