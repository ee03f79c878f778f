// The derivatives of operators.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "autograd/formula.h"
#include "tests/every_operator.h"
#include "wick.h"

namespace wick::formulas_test {
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

// The numbers are PyTorch's.
TEST(Formulas, OfReductionsWithSeveralRanksOrSegments) {
  auto program = compile(R"(
def vector_quantile(x: Tensor, q: Tensor) -> List[Tensor]:
    x.requires_grad_(True)
    q.requires_grad_(True)
    torch.quantile(x, q, 0, True).sum().backward()
    return [x.grad, q.grad]
def matrix_quantile(x: Tensor, q: Tensor, dim: int) -> List[Tensor]:
    x.requires_grad_(True)
    q.requires_grad_(True)
    torch.quantile(x, q, dim, True).sum().backward()
    return [x.grad, q.grad]
def segments(x: Tensor, lengths: Tensor) -> Tensor:
    x.requires_grad_(True)
    torch.segment_reduce(x, "mean", lengths=lengths, axis=1, unsafe=True).sum().backward()
    return x.grad
def no_difference(x: Tensor, more: Tensor) -> Tensor:
    x.requires_grad_(True)
    torch.diff(x, 0, 0, more).pow(2).sum().backward()
    return x.grad
)");
  const auto expect = [](const IValue& found, std::initializer_list<float> expected) {
    const Tensor t = found.toTensor().contiguous();
    ASSERT_EQ(static_cast<size_t>(t.numel()), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(t.data<float>()[i], expected.begin()[i], 1e-5) << "element " << i;
    }
  };
  const auto floats = [](std::initializer_list<float> values, const DimVector& sizes) {
    return Tensor::fromData(values.begin(), sizes);
  };
  const IValue one =
      program.call("vector_quantile", {floats({-2, -1.6f}, {2}), floats({0.03f, 0.36f}, {2})});
  expect(one.elements()[0], {1.61f, 0.39f});
  expect(one.elements()[1], {0.4f, 0.4f});
  const auto matrix = [&] { return floats({0, 1, 2, 3, 4, 5}, {3, 2}); };
  const IValue columns =
      program.call("matrix_quantile", {matrix(), floats({0.1f, 0.2f}, {2}), int64_t{0}});
  expect(columns.elements()[0], {1.4f, 1.4f, 0.6f, 0.6f, 0, 0});
  expect(columns.elements()[1], {8, 8});
  const IValue rows =
      program.call("matrix_quantile", {matrix(), floats({0.1f, 0.2f}, {2}), int64_t{-1}});
  expect(rows.elements()[0], {1.7f, 0.3f, 1.7f, 0.3f, 1.7f, 0.3f});
  expect(rows.elements()[1], {3, 3});
  const int64_t lengths[] = {1, 2, 3, 0};
  const float third = 1 / 3.f;
  expect(program.call("segments", {floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, {2, 3, 2}),
                                   Tensor::fromData(lengths, DimVector{2, 2})}),
         {1, 1, 0.5f, 0.5f, 0.5f, 0.5f, third, third, third, third, third, third});
  expect(program.call("no_difference", {floats({1, 2}, {2}), floats({5, 6, 7}, {3})}), {2, 4});
}

TEST(Formulas, OfShapesDependOnOneTensor) {
  auto program = compile(R"(
def needs(x: Tensor, like: Tensor) -> List[bool]:
    like.requires_grad_(True)
    return [x.expand_as(like).requires_grad, x.view_as(like).requires_grad, x.reshape_as(like).requires_grad,
            x.type_as(like).requires_grad, x.to(like).requires_grad, torch.ops.aten.copy(like, x).requires_grad]
def each(x: Tensor, y: Tensor) -> List[bool]:
    x.requires_grad_(True)
    return [t.requires_grad for t in torch.broadcast_tensors([x, y[:, None]])]
def weighted(x: Tensor, target: Tensor, weight: Tensor) -> Tensor:
    target.requires_grad_(True)
    torch.nn.functional.binary_cross_entropy(x, target, weight).backward()
    return target.grad
)");
  const auto pair = [](float a, float b) {
    const float values[] = {a, b};
    return Tensor::fromData(values, DimVector{2});
  };
  const IValue needs = program.call("needs", {pair(1, 2), pair(3, 4)});
  for (const IValue& needed : needs.elements()) EXPECT_FALSE(needed.toBool());
  const IValue each = program.call("each", {pair(1, 2), pair(3, 4)});
  EXPECT_TRUE(each[0].toBool());
  EXPECT_FALSE(each[1].toBool());
  const Tensor gradient =
      program.call("weighted", {pair(0.2f, 0.3f), pair(0.4f, 0.5f), pair(0.1f, 0.9f)}).toTensor();
  EXPECT_NEAR(gradient.data<float>()[0], 0.0693147f, 1e-6);
  EXPECT_NEAR(gradient.data<float>()[1], 0.3812840f, 1e-6);
}

TEST(Formulas, OfWritesThatDependOnNothing) {
  auto program = compile(R"(
def slope(x: Tensor, y: Tensor, name: str) -> Tuple[Tensor, bool]:
    x.requires_grad_(True)
    z = x * 2
    if name == "eq":
        z.eq_(y)
    elif name == "lt":
        z.lt_(3.0)
    elif name == "draw":
        z.uniform_()
    elif name == "copy":
        z.copy_(y)
    elif name == "zero":
        z.zero_()
    elif name == "fill":
        z = torch.ops.aten.fill(z, 3.0)
    else:
        z = torch.ops.aten.fill(z, y[0])
    (z * 3).sum().backward()
    grad = x.grad
    assert grad is not None
    return grad, z.requires_grad
)");
  for (const char* name : {"eq", "lt", "draw", "copy", "zero", "fill", "fill_tensor"}) {
    const IValue result =
        program.call("slope", {Tensor::from({1.f, 2.f}), Tensor::from({2.f, 5.f}), name});
    EXPECT_TRUE(result[1].toBool()) << name;
    const Tensor grad = result[0].toTensor();
    for (int64_t i = 0; i < 2; ++i) EXPECT_EQ(grad.data<float>()[i], 0.f) << name;
  }
}

// As in PyTorch their results require gradients, which nobody can compute.
TEST(Formulas, NotInPyTorch) {
  for (const char* made : {"torch.nextafter(x, x)", "torch.unique(x)", "torch.unique(x, dim=0)",
                           "torch.unique_consecutive(x)", "torch.histogram(x, 2)[0]"}) {
    auto program = compile(std::string("def f(x: Tensor):\n    x.requires_grad_(True)\n    y = ") +
                           made + "\n    assert y.requires_grad\n    y.sum().backward()\n");
    try {
      program.call("f", {Tensor::from({1.f, 2.f})});
      ADD_FAILURE() << made << " has a gradient";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("is not implemented"), std::string::npos)
          << made << ": " << error.what();
    }
  }
}

TEST(Formulas, OfBroadcastAndOverlappingParts) {
  auto program = compile(R"(
def vecdot(x: Tensor, y: Tensor) -> Tensor:
    x.requires_grad_(True)
    torch.linalg.vecdot(x, y, dim=1).sum().backward()
    grad = x.grad
    assert grad is not None
    return grad
def split(x: Tensor, weights: Tensor) -> Tensor:
    x.requires_grad_(True)
    loss = torch.zeros([])
    for i, piece in enumerate(torch.tensor_split(x, [2, 1])):
        loss = loss + piece.sum() * weights[i]
    loss.backward()
    grad = x.grad
    assert grad is not None
    return grad
def singular(a: Tensor, b: Tensor) -> bool:
    b.requires_grad_(True)
    torch.linalg.solve_ex(a, b)[0].sum().backward()
    return b.grad is not None
def padded(i: Tensor, x: Tensor) -> Tuple[Tensor, bool]:
    x.requires_grad_(True)
    y = torch.nn.utils.rnn.pad_sequence([i, x])
    return y, y.requires_grad
)");
  const auto values = [](const Tensor& t) {
    const Tensor all = t.contiguous();
    return std::vector<float>(all.data<float>(), all.data<float>() + all.numel());
  };
  const Tensor y = Tensor::from({1.f, 2.f, 3.f, 4.f, 5.f, 6.f}, {3, 2});
  EXPECT_EQ(values(program.call("vecdot", {Tensor::from({1.f, 1.f}), y}).toTensor()),
            (std::vector<float>{9, 12}));
  EXPECT_EQ(
      values(
          program.call("split", {Tensor::from({1.f, 2.f, 3.f}), Tensor::from({1.f, 10.f, 100.f})})
              .toTensor()),
      (std::vector<float>{1, 101, 100}));
  EXPECT_TRUE(program
                  .call("singular", {Tensor::from({1.f, 1.f, 1.f, 1.f}, {2, 2}),
                                     Tensor::from({1.f, 2.f}, {2, 1})})
                  .toBool());
  const IValue padded =
      program.call("padded", {Tensor::from({int64_t{1}, int64_t{2}}), Tensor::from({1.5f})});
  EXPECT_EQ(padded[0].toTensor().dtype(), DType::Long);
  EXPECT_FALSE(padded[1].toBool());
}

TEST(Formulas, OfProductsOfTwoDTypes) {
  auto program = compile(R"(
def outer(x: Tensor, y: Tensor) -> Tensor:
    x.requires_grad_(True)
    torch.outer(x, y).sum().backward()
    grad = x.grad
    assert grad is not None
    return grad
def addr(x: Tensor, y: Tensor) -> Tensor:
    y.requires_grad_(True)
    torch.addr(torch.ones([2, 3]), x, y).sum().backward()
    grad = y.grad
    assert grad is not None
    return grad
)");
  const Tensor numbers = Tensor::from({int64_t{2}, int64_t{5}});
  const Tensor x = program.call("outer", {Tensor::from({1.f, 2.f, 3.f}), numbers}).toTensor();
  EXPECT_EQ(x.contiguous().data<float>()[2], 7.f);
  const Tensor y = program.call("addr", {numbers, Tensor::from({1.f, 2.f, 3.f})}).toTensor();
  EXPECT_EQ(y.contiguous().data<float>()[2], 7.f);
}

TEST(Formulas, FloorDivisionHasNone) {
  auto program = compile(R"(
def slope(x: Tensor) -> Tensor:
    x.requires_grad_(True)
    torch.floor_divide(x, 2).sum().backward()
    return x.grad
)");
  EXPECT_THROW(program.call("slope", {Tensor::scalar(5.0f)}), Error);
}

}  // namespace
}  // namespace wick::formulas_test
