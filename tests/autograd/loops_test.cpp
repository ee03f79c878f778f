// Loops that are differentiated as a whole, against the tape.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "autograd/loop_region.h"
#include "autograd/tape.h"
#include "tests/autograd/graph_outcomes.h"

namespace wick::loops_test {
namespace {

using Loops = GraphsTest;

// `value` with its gradients, and the gradients of their squares, for several numbers of steps.
std::string differentiated(const std::string& body, const std::string& counts = "0, 1, 2, 5",
                           const std::string& leaves = "x, h, w") {
  return fmt::format(R"(
def value(x: Tensor, h: Tensor, w: Tensor, n: int, p: bool) -> Tensor:
{}
def main() -> List[Tensor]:
    found: List[Tensor] = []
    for n in [{}]:
        torch.manual_seed(2)
        x = torch.sin(torch.arange(30, dtype=torch.float64)).reshape([5, 2, 3]).requires_grad_()
        h = torch.cos(torch.arange(6, dtype=torch.float64)).reshape([2, 3]).requires_grad_()
        w = (torch.sin(torch.arange(9, dtype=torch.float64)).reshape([3, 3]) * 0.5).requires_grad_()
        y = value(x, h, w, n, n != 2)
        found.append(y)
        if y.requires_grad:
            total = torch.zeros([], dtype=torch.float64)
            for g in torch.autograd.grad([(y * y).sum()], [{}], create_graph=True, allow_unused=True):
                if g is not None:
                    found.append(g)
                    total = total + (g * g).sum()
                else:
                    found.append(torch.full([1], 7.))
            if total.requires_grad:
                for g in torch.autograd.grad([total], [x, h, w], allow_unused=True):
                    found.append(torch.full([1], 7.) if g is None else g)
        else:
            found.append(torch.full([2], 7.))
    return found
)",
                     body, counts, leaves);
}

// How many loops were graphs.
uint64_t agree(const std::string& source) {
  const uint64_t before = autograd::numLoopsAsGraphs();
  const Outcome graphs = outcomeOf(source, true);
  const uint64_t made = autograd::numLoopsAsGraphs() - before;
  const Outcome tape = outcomeOf(source, false);
  EXPECT_EQ(autograd::numLoopsAsGraphs(), before + made) << "a graph where there should be none";
  expectSame(source, graphs, tape, 1e-10);
  return made;
}

TEST_F(Loops, AreOneNode) {
  for (const char* body :
       {"    for i in range(n):\n        h = torch.tanh(x[i] + torch.mm(h, w))\n    return h",
        "    for i in range(n):\n        h = torch.tanh(torch.mm(h, w)) * h + x[0]\n"
        "    return h * 2 + x.sum()",
        // Two carried values; the gradient of one comes alone.
        "    c = h * 0.5\n    for i in range(n):\n"
        "        g = torch.sigmoid(torch.mm(h, w) + x[i])\n        c = g * c + torch.tanh(g)\n"
        "        h = torch.sigmoid(x[i]) * torch.tanh(c)\n    return h",
        // What needs no gradient at first.
        "    h = torch.zeros([2, 3], dtype=torch.float64)\n    for i in range(n):\n"
        "        h = torch.softmax(x[i] @ w + h, -1)\n    return h",
        // Numbers of iterations, and arithmetic with them.
        "    for i in range(n - 1, -1, -1):\n        h = torch.tanh(x[i] + h @ w) * i\n"
        "    return h",
        "    for i in range(n):\n        h = torch.tanh(x[n - 1 - i] + h @ w)\n    return h",
        // Sizes that only running tells.
        "    for i in range(n):\n        h = torch.tanh(x[0:i + 1].mean(0) * h) @ w\n"
        "    return h",
        // Branches that are known, which hand on what they get at times.
        "    for i in range(n):\n        if p:\n            h = torch.tanh(h @ w) + x[i]\n"
        "        h = torch.sigmoid(h) * h\n    return h",
        // Draws.
        "    for i in range(n):\n"
        "        h = torch.nn.functional.dropout(torch.tanh(h @ w), 0.4, p) + x[i]\n"
        "    return h * torch.rand([2, 3], dtype=torch.float64)"}) {
    EXPECT_GE(agree(differentiated(body)), 6U) << body;
    if (HasFatalFailure()) return;
  }
}

TEST_F(Loops, AppendToLists) {
  for (const char* body :
       {"    outs: List[Tensor] = []\n    for i in range(n):\n"
        "        h = torch.tanh(x[i] + torch.mm(h, w))\n        outs.append(h)\n"
        "    return torch.stack(outs) * 2 if n > 0 else h",
        "    outs: List[Tensor] = []\n    for i in range(n):\n        outs.append(h)\n"
        "        h = torch.tanh(x[i] + torch.mm(h, w))\n        outs.append(x[i] * h)\n"
        "    outs.append(h)\n    return torch.cat(outs)",
        "    a: List[Tensor] = []\n    b = [h]\n    for i in range(n):\n"
        "        h = torch.tanh(torch.mm(h, w))\n        a.append(h * x[i])\n"
        "        b.append(torch.sigmoid(h))\n    a.append(w[0:2])\n"
        "    return torch.stack(a).sum() * torch.stack(b)",
        // Elements that the loop does not read again.
        "    a: List[Tensor] = []\n    for i in range(n):\n"
        "        h = torch.tanh(torch.mm(h, w))\n        a.append(h * x[i])\n"
        "    t = h * 2\n    for v in a:\n        t = t * v\n    return t"}) {
    EXPECT_GE(agree(differentiated(body)), 6U) << body;
    if (HasFatalFailure()) return;
  }
}

// Gradients with regard to results of iterations, which flow within the loop too.
TEST_F(Loops, LeaveWhatOthersAskForToTheTape) {
  for (const char* body :
       {"    outs: List[Tensor] = []\n    for i in range(n):\n"
        "        h = torch.tanh(x[i] + torch.mm(h, w))\n        outs.append(h)\n"
        "    t = outs[n // 2]\n    g = torch.autograd.grad([h.sum()], [t], create_graph=True)[0]\n"
        "    assert g is not None\n    return g * h",
        "    y = h\n    for i in range(n):\n        h = torch.tanh(x[i] + torch.mm(h, w))\n"
        "        y = torch.sigmoid(h) * 2\n"
        "    g = torch.autograd.grad([y.sum()], [h], create_graph=True)[0]\n"
        "    assert g is not None\n    return g * y"}) {
    EXPECT_EQ(agree(differentiated(body, "1, 2, 5")), 0U) << body;
    if (HasFatalFailure()) return;
  }
}

TEST_F(Loops, LeaveToTheTapeWhatChanges) {
  for (const char* body :
       {// Sizes.
        "    for i in range(n):\n        h = torch.cat([torch.tanh(h), x[i] @ w])\n    return h",
        // Values that change places.
        "    c = h * 2\n    for i in range(n):\n        d = torch.tanh(h @ w)\n        h = c\n"
        "        c = d * 2\n    return h * c",
        // What needs gradients.
        "    c = torch.ones([2, 3], dtype=torch.float64)\n    h = c\n    for i in range(n):\n"
        "        h = c * 2 + torch.sigmoid(c)\n        c = torch.tanh(c @ w)\n    return h",
        "    c = torch.ones([2, 3], dtype=torch.float64)\n    for i in range(n):\n"
        "        h = torch.tanh(c * 2) * 3\n    return h",
        // Ends that are not known.
        "    for i in range(n):\n        h = torch.tanh(h @ w) * 2\n        if float(h.sum()) > "
        "0:\n"
        "            break\n    return h",
        "    i = 0\n    while i < n:\n        h = torch.tanh(h @ w) * 2\n        i += 1 if p else "
        "2\n"
        "    return h"}) {
    agree(differentiated(body));
    if (HasFatalFailure()) return;
  }
  const uint64_t before = autograd::numLoopsAsGraphs();
  outcomeOf(
      differentiated("    for i in range(n):\n        h = torch.cat([torch.tanh(h), x[i] @ w])"
                     "\n    return h"),
      true);
  EXPECT_EQ(autograd::numLoopsAsGraphs(), before);
}

std::string messageOf(const std::string& source, bool graphs) {
  try {
    outcomeOf(source, graphs);
  } catch (const RuntimeError& e) {
    return e.brief();
  }
  return "";
}

TEST_F(Loops, RaiseWhatTheTapeRaises) {
  for (const char* body :
       {"    for i in range(n):\n        h = torch.tanh(x[i] + torch.mm(h, w))\n    return h",
        "    for i in range(n):\n        h = torch.tanh(h @ w) +\\\n"
        "            torch.nn.functional.embedding(torch.tensor([1, 4]) - i, w)\n    return h",
        "    for i in range(n):\n        h = torch.tanh(torch.mm(h, w.t()[0:2]))\n    return h",
        "    for i in range(n):\n        h = torch.tanh(torch.mm(h, w))\n"
        "    g = torch.autograd.grad([h.sum()], [w])[0]\n"
        "    torch.autograd.grad([h.sum()], [w])\n    return h",
        "    outs: List[Tensor] = []\n    for i in range(n):\n"
        "        h = torch.tanh(torch.mm(h, w))\n        outs.append(h)\n"
        "    y = torch.stack(outs)\n    h.mul_(2)\n"
        "    torch.autograd.grad([y.sum()], [w])\n    return h"}) {
    const std::string source = differentiated(body, "6");
    const std::string tape = messageOf(source, false);
    EXPECT_NE(tape, "") << body;
    if (tape.find("modified by an inplace") == std::string::npos) {
      EXPECT_EQ(messageOf(source, true), tape) << body;
    } else {
      EXPECT_NE(messageOf(source, true).find("modified by an inplace"), std::string::npos);
    }
  }
}

// A second walk where the first one kept what it read, and other sizes at the same place.
TEST_F(Loops, ServeSeveralWalksAndSizes) {
  const std::string source = R"(
def value(x: Tensor, h: Tensor, w: Tensor) -> Tensor:
    outs: List[Tensor] = []
    for i in range(x.size(0)):
        h = torch.tanh(x[i] + torch.mm(h, w))
        outs.append(h)
    return torch.stack(outs)
def main() -> List[Tensor]:
    found: List[Tensor] = []
    for n in [3, 2, 7, 1, 4]:
        x = torch.sin(torch.arange(n * n * 3., dtype=torch.float64)).reshape([n, n, 3])
        h = torch.zeros([n, 3], dtype=torch.float64)
        w = torch.cos(torch.arange(9., dtype=torch.float64)).reshape([3, 3]).requires_grad_()
        y = value(x, h, w)
        for k in range(2):
            g = torch.autograd.grad([y[n // 2].sum() * (k + 1)], [w], retain_graph=True)[0]
            assert g is not None
            found.append(g)
        y.sum().backward()
        g = w.grad
        assert g is not None
        found.append(g)
    return found
)";
  EXPECT_EQ(agree(source), 10U);
}

// The tape gets one node for any number of steps.
TEST_F(Loops, PutOneNodeOnTheTape) {
  const Program program = compile(
      "def value(h: Tensor, w: Tensor, n: int) -> Tensor:\n    for i in range(n):\n"
      "        h = torch.tanh(torch.mm(h, w))\n    return h\n");
  Tensor h = Tensor::full({2, 2}, 0.5, DType::Double), w = Tensor::full({2, 2}, 0.1, DType::Double);
  w.setRequiresGrad(true);
  program.call("value", {h, w, 3});
  const uint64_t before = autograd::Node::nextSequence();
  const Tensor y = program.call("value", {h, w, 100}).toTensor();
  EXPECT_LE(autograd::Node::nextSequence() - before, 2U);
  EXPECT_EQ(autograd::gradientEdge(y).node->name(), "DifferentiableGraphBackward");
  EXPECT_FALSE(program.call("value", {h, w, -3}).toTensor().requiresGrad());
}

}  // namespace
}  // namespace wick::loops_test
