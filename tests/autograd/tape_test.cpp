// What is on the tape, and what comes back over it.
#include "autograd/tape.h"

#include <gtest/gtest.h>

#include <thread>

#include "autograd/engine.h"
#include "tests/error_text.h"
#include "wick.h"

namespace wick::tape_test {
namespace {

IValue run(const std::string& body, std::vector<IValue> arguments = {}) {
  const Program program = compile(body);
  return program.call("main", std::move(arguments));
}

std::string errorOf(const std::string& body) {
  return testing_errors::errorOf([&] { run(body); });
}

std::vector<double> numbers(const IValue& value) {
  const Tensor t = value.toTensor().detach().to(DType::Double).contiguous();
  return {t.data<double>(), t.data<double>() + t.numel()};
}

using Numbers = std::vector<double>;

TEST(Tape, GradientsOfASum) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    y = (x * x * 2 + x).sum()
    y.backward()
    g = x.grad
    assert g is not None
    return g
)")),
            (Numbers{5, 9, 13}));
}

TEST(Tape, ViewsMayBeLeaves) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([[1., 2.], [3., 4.]])
    v = x.t()
    v.requires_grad_()
    y = (v * v).sum() + (v + 1).sum()
    assert v.is_leaf and not x.requires_grad and not y.is_leaf
    y.backward()
    g = v.grad
    assert g is not None and v.is_leaf
    return g
)")),
            (Numbers{3, 7, 5, 9}));
}

TEST(Tape, GradientsAddUp) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2.]).requires_grad_()
    for i in range(3):
        (x * (i + 1)).sum().backward()
    g = x.grad
    assert g is not None
    return g
)")),
            (Numbers{6, 6}));
}

// The first gradient of a sum is one number for all elements.
TEST(Tape, GradientsOfSumsAddUp) {
  for (const char* sum :
       {"(x.sum() + y.sum())", "(x.sum() * 1.0 + y.mean())", "x.expand(3, 4).sum() + y.sum()"}) {
    const std::string body =
        std::string("def main():\n    x = torch.ones([4]).requires_grad_()\n") +
        "    y = torch.ones([4]).requires_grad_()\n    for i in range(3):\n        (" + sum +
        ").backward()\n    g = x.grad\n    assert g is not None\n    return g\n";
    const double once = std::string(sum).find("expand") != std::string::npos ? 3 : 1;
    EXPECT_EQ(numbers(run(body)), Numbers(4, 3 * once)) << sum;
  }
  EXPECT_EQ(numbers(run(R"(
def main():
    x = torch.ones([4]).requires_grad_()
    x.sum().backward(create_graph=True)
    x.sum().backward()
    g = x.grad
    assert g is not None
    return g
)")),
            Numbers(4, 2));
}

// A step size that is learned: its gradient is its own, however often the program writes the same number.
TEST(Tape, LeavesMadeOfConstantsKeepTheirIdentity) {
  constexpr const char* kStep = R"(
def main(x: Tensor):
    rate = torch.tensor(0.1, requires_grad=True)
    other = torch.tensor(0.1, requires_grad=True)
    a = x.detach().clone().requires_grad_()
    for i in range(3):
        l = (a * a * a).sum()
        ga = torch.autograd.grad([l], [a], create_graph=True)[0]
        assert ga is not None
        a = a - rate * ga
    g = torch.autograd.grad([a.sum() + other * 2.0], [rate, other])
    first, second = g[0], g[1]
    assert first is not None and second is not None
    return torch.stack([first, second])
)";
  const Program program = compile(kStep);
  for (int run = 0; run < 4; ++run) {
    const Numbers found = numbers(program.call("main", {Tensor::from({0.5f, 0.7f})}));
    EXPECT_NEAR(found[0], -3.2805, 1e-3) << run;  // PyTorch's eager mode
    EXPECT_EQ(found[1], 2) << run;
  }
}

TEST(Tape, SecondDerivatives) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2.]).requires_grad_()
    g = torch.autograd.grad([(x * x * x).sum()], [x], create_graph=True)[0]
    assert g is not None
    h = torch.autograd.grad([(g * g).sum()], [x])[0]
    assert h is not None
    return h
)")),
            (Numbers{36, 288}));  // d/dx (3 x^2)^2 = 36 x^3
}

TEST(Tape, WritesThroughViewsReachTheBase) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2.]).requires_grad_()
    a = torch.zeros([4])
    first = a[:2]
    a[1] = x[0] * 2
    a[2:] = x * 5
    b = (a * a).sum() + first.sum() * 3
    g = torch.autograd.grad([b], [x])[0]
    assert g is not None
    return g
)")),
            // a = [0, 2 x0, 5 x0, 5 x1]; 8 x0 + 50 x0 + 6, 50 x1
            (Numbers{64, 100}));
}

// The expected numbers are PyTorch's.
TEST(Tape, WritesThroughViewsOfAnotherDtypeReachTheBase) {
  const auto expectNear = [](const std::string& body, const Numbers& expected) {
    const Numbers found = numbers(run("def main() -> Tensor:\n" + body + R"(
    g = torch.autograd.grad([out], [x], create_graph=True)[0]
    assert g is not None
    h = torch.autograd.grad([(g * g).sum()], [x])[0]
    assert h is not None
    return torch.cat([g.flatten(), h.flatten()])
)"));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-9 * (1 + std::abs(expected[i]))) << i << body;
    }
  };
  expectNear(R"(
    x = torch.tensor([[1., 2.], [3., 4.], [5., 6.]], dtype=torch.double).requires_grad_()
    y = x * 2
    c = torch.view_as_complex(y)
    c.mul_(2 + 1j)
    c[1] = 7.
    out = (y ** 3).sum()
)",
             {600, 1200, 0, 0, 7704, 13488, 1440000, 2880000, 0, 0, 58072320, 112458240});
  expectNear(R"(
    x = torch.tensor([[1., 2.], [3., 4.], [5., 6.]], dtype=torch.double).requires_grad_()
    z = torch.view_as_complex(x * 2) * 1
    z.real.mul_(3)
    r = torch.view_as_real(z)
    r[0].copy_(x[1] * x[2])
    r[:, 1].mul_(r[:, 0].clone())
    out = (torch.view_as_real(z) ** 2).sum() + (z.imag * z.real.sin()).sum()
)",
             {0, 0, 99835.06254575083, 75199.49036473036, 103618.40263342629, 86379.73537296386, 0,
              0, 24924383792.130543, 21859268266.251713, 22368342386.227245, 18589845460.852364});
  // Here nothing but what is written has a gradient; the base begins at an odd number, where
  // PyTorch 1.13 takes another part of the gradient: |c|^2 (2 x + 4 x^3) by hand.
  expectNear(R"(
    b = torch.arange(9., dtype=torch.double)[1:].detach()
    x = torch.tensor([1., 2., 3.], dtype=torch.double).requires_grad_()
    c = torch.view_as_complex(b[1:7].view([3, 2]))
    c.mul_(torch.view_as_complex(torch.stack([x, x * x], 1)))
    out = (b * b).sum()
)",
             {78, 1476, 9690, 28392, 6051600, 181203000});
  expectNear(R"(
    x = torch.tensor([1., 2., 3.], dtype=torch.double).requires_grad_()
    y = torch.zeros([3], dtype=torch.cdouble)
    before = y.imag
    y.real.copy_(x)
    y.imag.add_(x * 2)
    out = (y * y).real.sum() + before.sum()
)",
             {-4, -10, -16, 48, 120, 192});
  // Views as integers have no gradient. A write to one counts as a write to its base.
  EXPECT_NE(errorOf(R"(
def main():
    x = torch.tensor([1., 2.], dtype=torch.double).requires_grad_()
    y = x * 2
    n = y.view(dtype=torch.long)
    assert not n.requires_grad
    n.bitwise_and_(-1)
    z = y * y
    n.bitwise_and_(-1)
    z.sum().backward()
)")
                .find("modified by an inplace operation"),
            std::string::npos);
  EXPECT_NE(errorOf(R"(
def main():
    x = torch.ones([2, 2]).requires_grad_()
    torch.view_as_complex(x).mul_(2)
    return x
)")
                .find("a view of a leaf Variable that requires grad"),
            std::string::npos);
}

TEST(Tape, WhatIsOverwrittenGetsNoGradient) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    y = x * 2
    y[1] = 7.
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return g
)")),
            (Numbers{2, 0, 2}));
}

TEST(Tape, ViewsMayChangeTheirShape) {
  for (const char* change : {"t_()", "transpose_(0, 1)", "swapaxes_(0, 1)", "unsqueeze_(0)",
                             "squeeze_(1)", "as_strided_([2], [2])"}) {
    EXPECT_EQ(numbers(run(std::string(R"(
def main() -> Tensor:
    x = torch.tensor([[1.], [2.], [3.]]).requires_grad_()
    y = x * 2
    v = y.as_strided([3, 1], [1, 1])
    v.)") + change + R"(
    v.mul_(3.)
    g = torch.autograd.grad([v.sum() + y.sum()], [x])[0]
    assert g is not None
    return g
)")),
              std::string(change).starts_with("as_strided") ? (Numbers{12, 2, 12})
                                                            : (Numbers{12, 12, 12}))
        << change;
  }
}

TEST(Tape, NothingIsRecordedWhereItIsSwitchedOff) {
  EXPECT_EQ(run(R"(
def main() -> List[bool]:
    x = torch.ones([2]).requires_grad_()
    with torch.no_grad():
        a = x + 1
    b = x + 1
    c = x.detach() + 1
    return [a.requires_grad, b.requires_grad, c.requires_grad, x.is_leaf, b.is_leaf]
)")
                .toList()
                .elements[1]
                .toBool(),
            true);
}

TEST(Tape, RefusesWhatPyTorchRefuses) {
  const auto contains = [](const std::string& error, const char* part) {
    EXPECT_NE(error.find(part), std::string::npos) << error;
  };
  contains(
      errorOf(
          "def main():\n    x = torch.ones([2]).requires_grad_()\n    x.add_(1)\n    return x\n"),
      "a leaf Variable that requires grad is being used in an in-place operation");
  contains(
      errorOf(
          "def main():\n    x = torch.ones([2]).requires_grad_()\n    x[0] = 1.\n    return x\n"),
      "a view of a leaf Variable that requires grad");
  contains(errorOf("def main():\n    x = torch.ones([2]).requires_grad_()\n    y = (x * x).sum()\n"
                   "    y.backward()\n    y.backward()\n"),
           "backward through the graph a second time");
  contains(errorOf("def main():\n    x = torch.ones([2]).requires_grad_()\n    y = x * 2\n"
                   "    z = (y * y).sum()\n    y.add_(1)\n    z.backward()\n    return y\n"),
           "modified by an inplace operation");
  contains(
      errorOf("def main():\n    x = torch.ones([2]).requires_grad_()\n    (x * 2).backward()\n"),
      "grad can be implicitly created only for scalar outputs");
  contains(errorOf("def main():\n    x = torch.ones([2])\n    x.sum().backward()\n"),
           "does not require grad");
  contains(errorOf("def main():\n    x = torch.ones([2], dtype=torch.int64).requires_grad_()\n    "
                   "return x\n"),
           "floating point");
  contains(errorOf("def main():\n    x = torch.ones([2]).requires_grad_()\n"
                   "    y = torch.ones([2]).requires_grad_()\n"
                   "    torch.autograd.grad([x.sum()], [y])\n"),
           "appears to not have been used in the graph");
  contains(errorOf("def main():\n    x = torch.ones([4]).requires_grad_()\n"
                   "    (x * 2).backward(torch.ones([3]))\n"),
           "invalid gradient at index 0 - got [3] but expected shape compatible with [4]");
  contains(errorOf("def main():\n    x = torch.ones([2]).requires_grad_()\n"
                   "    (x * 2).backward(torch.ones([2]) * 1j)\n"),
           "grad_output[0] has a dtype of complex64 and output[0] has a dtype of float32.");
  contains(errorOf("def main():\n    x = (torch.ones([2]) * 1j).requires_grad_()\n"
                   "    gradients: List[Optional[Tensor]] = [torch.ones([2])]\n"
                   "    torch.autograd.grad([x * 2], [x], gradients)\n"),
           "grad_output[0] has a dtype of float32 and output[0] has a dtype of complex64.");
  contains(errorOf("def main():\n    return torch.ones([2], dtype=torch.bool).requires_grad_()\n"),
           "Only Tensors of floating point and complex dtype can require gradients");
}

// What is written to, made by `view` without gradients, is multiplied by a tensor that requires
// one.
std::string writeToViewOf(const std::string& base, const std::string& view) {
  return errorOf("def main():\n    w = torch.ones([2, 2]).requires_grad_()\n    y = " + base +
                 "\n    with torch.no_grad():\n        " + view +
                 "\n    v.mul_(w)\n    return y\n");
}

TEST(Tape, ViewsMadeWithoutGradientsAreNotWrittenTo) {
  const char* const plain = "torch.ones([4, 2])";
  const char* const recorded = "torch.ones([4, 2]).requires_grad_() * 2";
  for (const char* base : {plain, recorded}) {
    for (const char* view :
         {"v = y[:2]", "v = y.reshape([2, 2, 2])[0]", "v, u = y.chunk(2)", "v = y.t().t()[2:]",
          "v = y.detach()[:2].view([2, 2])", "v = y[0].expand([2, 2])[:, :]"}) {
      const std::string error = writeToViewOf(base, view);
      EXPECT_NE(error.find("A view was created in no_grad mode"), std::string::npos)
          << base << "; " << view << ": " << error;
    }
    for (const char* view : {"v = y[:2].clone()", "v = y.t().contiguous().t()[:2].clone()",
                             "v = y.sort()[0][:2] * 1"}) {
      EXPECT_EQ(writeToViewOf(base, view), "no error") << base << "; " << view;
    }
  }
  // Also a view that was made when gradients were recorded, of one that was not.
  EXPECT_NE(errorOf("def main():\n    w = torch.ones([2]).requires_grad_()\n"
                    "    y = torch.ones([4])\n    with torch.no_grad():\n        v = y[:2]\n"
                    "    v.view([1, 2]).mul_(w)\n    return y\n")
                .find("no_grad mode"),
            std::string::npos);
  // What operators make for themselves is none of them.
  EXPECT_EQ(errorOf("def main():\n    w = torch.ones([2]).requires_grad_()\n"
                    "    a = torch.nn.functional.linear(w, torch.ones([3, 2]))\n"
                    "    b = a.sort()[0].flatten()\n    b.mul_(a)\n    return b\n"),
            "no error");
}

// As PyTorch: what broadcasting would have repeated is summed.
TEST(Tape, TakesLargerGradients) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.ones([2]).requires_grad_()
    g: List[Optional[Tensor]] = [torch.arange(6.).reshape([3, 2])]
    found = torch.autograd.grad([x * 2], [x], g)[0]
    assert found is not None
    return found
)")),
            (Numbers{12, 18}));
}

// Gradients from several users are added where they lie; others that see the same memory must not
// notice.
TEST(Tape, AddsGradientsOfSeveralUsers) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    y = x * 1.0
    g = torch.tensor([1., 10., 100.])
    a = y.expand([2, 3]).sum(0)
    b = y + y.flip([0])
    grads: List[Optional[Tensor]] = [g, g, g]
    found = torch.autograd.grad([a, b, y], [x, y], grads)
    p, q = found[0], found[1]
    assert p is not None and q is not None
    return torch.cat([p, q, g])
)")),
            (Numbers{104, 50, 401, 104, 50, 401, 1, 10, 100}));
}

// Neither the walk nor the end of a long tape may use the stack.
TEST(Tape, MayBeLong) {
  EXPECT_EQ(numbers(run(R"(
def main() -> Tensor:
    x = torch.ones([1]).requires_grad_()
    y = x
    for i in range(300000):
        y = y + 1.
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return g
)")),
            Numbers{1});
}

TEST(Tape, ThreadsWalkTapesOfTheirOwn) {
  const Program program = compile(R"(
def main(w: Tensor) -> Tensor:
    g = torch.autograd.grad([(w * w).sum()], [w])[0]
    assert g is not None
    return g
)");
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      const Tensor w = Tensor::full({4}, t, DType::Double);
      w.setRequiresGrad(true);
      for (int i = 0; i < 50; ++i) {
        EXPECT_EQ(numbers(program.call("main", {w})), Numbers(4, 2.0 * t));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST(Tape, ThreadsRecordGradientsOfOneLeafAndOneView) {
  const Program program = compile(R"(
def viewed(w: Tensor) -> Tensor:
    base = w * 1.
    view = base[1:]
    base.mul_(3.)
    return view

def sum_of_squares(w: Tensor, view: Tensor) -> Tensor:
    return (w * w).sum() + view.sum()
)");
  constexpr int kThreads = 8;
  for (int repeat = 0; repeat < 20; ++repeat) {
    const Tensor w = Tensor::full({4}, 2.0, DType::Double);
    w.setRequiresGrad(true);
    const Tensor view = program.call("viewed", {w}).toTensor();
    std::vector<Tensor> losses(kThreads);
    std::vector<std::thread> threads;
    // Nothing is known of the leaf, nor of the view since its base was written to, when they start.
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        losses[t] = program.call("sum_of_squares", {w, view}).toTensor();
      });
    }
    for (std::thread& thread : threads) thread.join();
    autograd::backward(losses, std::vector<Tensor>(kThreads), {});
    EXPECT_EQ(numbers(autograd::gradientOf(w)),
              (Numbers{4. * kThreads, 7. * kThreads, 7. * kThreads, 7. * kThreads}));
  }
}

TEST(Tape, AModuleTrains) {
  const Program program = compile(R"(
def main(steps: int) -> float:
    torch.manual_seed(0)
    w = torch.zeros([3]).requires_grad_()
    x = torch.randn([64, 3])
    y = x @ torch.tensor([1., -2., 3.])
    loss = torch.zeros([])
    for i in range(steps):
        loss = ((x @ w - y) ** 2).mean()
        g = torch.autograd.grad([loss], [w])[0]
        assert g is not None
        with torch.no_grad():
            w -= 0.1 * g
    return float(loss)
)");
  EXPECT_LT(program.call("main", {200}).toDouble(), 1e-6);
}

}  // namespace
}  // namespace wick::tape_test
