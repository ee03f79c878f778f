// Graphs of derivatives (prim::DifferentiableGraph) against the tape, operator by operator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "autograd/loop_region.h"
#include "tests/autograd/graph_outcomes.h"
#include "tests/environment.h"

namespace wick::graphs_test {
namespace {

using Graphs = GraphsTest;

// A program that differentiates the body's `out`, a function of a, b [3, 4], c [4] and d [3, 1],
// twice.
std::string twice(const std::string& body, const std::string& dtype = "torch.float64") {
  return fmt::format(R"(
def value(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
{}
    return out
def main() -> List[Tensor]:
    a = (torch.sin(torch.arange(12, dtype=torch.float64) * 1.3) + 0.1).reshape([3, 4]).to({}).requires_grad_()
    b = (torch.cos(torch.arange(12, dtype=torch.float64) * 0.7) + 1.5).reshape([3, 4]).to({}).requires_grad_()
    c = torch.cos(torch.arange(4, dtype=torch.float64) * 2.9).to({}).requires_grad_()
    d = (torch.sin(torch.arange(3, dtype=torch.float64) * 0.4) + 0.3).reshape([3, 1]).to({})
    out = value(a, b, c, d)
    found = [out]
    total = torch.zeros([], dtype=out.dtype)
    for g in torch.autograd.grad([(out * out).sum()], [a, b, c], create_graph=True, allow_unused=True):
        if g is not None:
            found.append(g)
            total = total + (g * g).sum()
    if total.requires_grad:
        for g in torch.autograd.grad([total], [a, b, c], allow_unused=True):
            if g is not None:
                found.append(g)
    return found
)",
                     body, dtype, dtype, dtype, dtype);
}

TEST_F(Graphs, RunAsKernels) {
  const std::string source = twice("    out = torch.tanh(a * b + 0.5) * torch.sigmoid(b - a)");
  const Outcome graphs = outcomeOf(source, true), tape = outcomeOf(source, false);
  EXPECT_GT(graphs.launches, 4u);
  expectSame(source, graphs, tape, 1e-12);
}

// One operator is a graph where its arithmetic is long.
TEST_F(Graphs, LongOperatorsAlone) {
  const std::string source = R"(
def main() -> List[Tensor]:
    x = torch.ones([4, 3]).requires_grad_()
    return [torch.nn.functional.silu(x)]
)";
  const Outcome graphs = outcomeOf(source, true), tape = outcomeOf(source, false);
  EXPECT_GE(graphs.launches, 1 + tape.launches);
  expectSame(source, graphs, tape, 1e-6);
}

TEST_F(Graphs, SumOverWhatOperatorsRepeat) {
  for (const char* body :
       {"    out = (c * c + 1.0) * d * a", "    out = torch.exp(c * 0.3) * d + c",
        "    out = (a + c) * (c - d) + d * 2", "    out = c * c * 2 + c"}) {
    const std::string source = twice(body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
  }
}

// Of the tensors only a constant has other sizes than the rest.
TEST_F(Graphs, SumOverWhatConstantsRepeat) {
  const std::string source = R"(
def main() -> List[Tensor]:
    k = torch.tensor([[1.], [2.], [3.]])
    x = torch.tensor([0.5, 1.5]).requires_grad_()
    y = torch.tanh(x)
    z = k + y * 2
    g = torch.autograd.grad([(y * y).sum() + (z.detach() * y).sum()], [x])[0]
    assert g is not None
    return [g, z]
)";
  expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
}

// No gradient is another thing than zeros.
TEST_F(Graphs, ArgumentsOnWhichNothingDepends) {
  const std::string source = twice(
      "    t = torch.sigmoid(d) * b + 1.0\n    u = (t + c) * 2.0\n    out = u.detach() * t * a");
  const Outcome graphs = outcomeOf(source, true);
  expectSame(source, graphs, outcomeOf(source, false), 1e-12);
  EXPECT_EQ(graphs.tensors.size(), 5u);
}

// The walk reaches a graph with gradients of some of its results. Those of the others are not
// zeros: the second order would depend on what only these come from.
TEST_F(Graphs, ResultsWithoutGradients) {
  const std::string source = twice(R"(    t = torch.sqrt(c * c + 1)
    u = torch.tanh(b)
    v = torch.addcmul(u, t, u, value=0.2)
    w = v.detach() * u
    out = torch.addcmul(w, d, w, value=0.2) + d * a)");
  const Outcome graphs = outcomeOf(source, true);
  expectSame(source, graphs, outcomeOf(source, false), 1e-12);
  EXPECT_EQ(graphs.tensors.size(), 5u);
}

// Zeros times infinity would be NaN.
TEST_F(Graphs, InfinityInResultsWithoutGradients) {
  for (const char* second :
       {"torch.exp(t * 1000)", "torch.log1p(t - 4) / t", "torch.sqrt(t - 3)"}) {
    const std::string source = fmt::format(R"(
def main() -> List[Tensor]:
    x = torch.tensor([1., 1.5, 2.]).requires_grad_()
    t = x * x * 3
    y = torch.tanh(t) * 2
    z = {}
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return [g, z]
)",
                                           second);
    const Outcome graphs = outcomeOf(source, true);
    expectSame(source, graphs, outcomeOf(source, false), 1e-6);
    for (int64_t i = 0; i < 3; ++i) EXPECT_TRUE(std::isfinite(graphs.tensors[0].data<float>()[i]));
  }
}

TEST_F(Graphs, ResultsThatSeveralReadAndThatNeedNothing) {
  for (const char* body : {"    t = a * 2 + c\n    u = torch.relu(t) * b\n    out = torch.where(t "
                           "> 0.2, u, t * d).sum(1) + t[:, 0]",
                           "    k = d * 2 + 1\n    t = torch.tanh(k)\n    out = (t * k + a) * a",
                           "    t = a * b\n    with torch.no_grad():\n        w = t * 2 + b\n    "
                           "out = w * a + t * w"}) {
    const std::string source = twice(body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
  }
}

// A step without recording stays one when it is read by others beside it.
TEST_F(Graphs, KeepToTheGradientMode) {
  const Outcome out = outcomeOf(R"(
def main() -> List[Tensor]:
    x = torch.ones([3]).requires_grad_()
    with torch.no_grad():
        t = x * 3 + 1
    y = t * x + t
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return [g]
)",
                                true);
  for (int64_t i = 0; i < 3; ++i) EXPECT_EQ(out.tensors[0].data<float>()[i], 4.0f);
}

// Who asks for the gradient of a result that the graph reads itself gets all of it.
TEST_F(Graphs, GradientsOfWhatIsReadInsideAndOutside) {
  for (const char* body : {"y = x * 2\n    z = torch.tanh(y) * y + 1",
                           "y = torch.softmax(x * 2, 0)\n    z = torch.tanh(y) * y.sum()",
                           "y = x * 2\n    z = (y.expand([2, 3]) * x).sum(0) + y.flip([0])"}) {
    const std::string source = fmt::format(R"(
def main() -> List[Tensor]:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    {}
    g = torch.autograd.grad([z.sum()], [y, x])
    p, q = g[0], g[1]
    assert p is not None and q is not None
    return [p, q, y]
)",
                                           body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
  }
}

// Only what the tape saves must stay as it was.
TEST_F(Graphs, WritesToWhatTheTapeDoesNotSave) {
  for (const char* body :
       {"t = torch.tanh(x + w)\n    s = t * t\n    x.add_(1)",
        "t = torch.exp(x + w).sum(0, True)\n    s = t * w\n    x.add_(1)",
        "t = torch.softmax(w * 2, 0) + x\n    s = torch.relu(t + w)\n    t.add_(1)"}) {
    const std::string source = fmt::format(R"(
def main() -> List[Tensor]:
    w = torch.tensor([1., 2., 3.]).requires_grad_()
    x = torch.tensor([1., 2., 3.])
    {}
    g = torch.autograd.grad([s.sum()], [w])[0]
    assert g is not None
    return [g, s]
)",
                                           body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
  }
}

TEST_F(Graphs, RaiseWhatTheTapeRaises) {
  const char* written = R"(
def main() -> List[Tensor]:
    x = torch.ones([3]).requires_grad_()
    a = x * 2
    b = a * a * a + a
    c = b * 1
    with torch.no_grad():
        a.add_(1)
    torch.autograd.grad([b.sum()], [a])
    return [c]
)";
  const char* again = R"(
def main() -> List[Tensor]:
    x = torch.ones([3]).requires_grad_()
    y = (x * x * 2 + x).sum()
    torch.autograd.grad([y], [x])
    torch.autograd.grad([y], [x])
    return [x]
)";
  for (const char* source : {written, again}) {
    EXPECT_THROW(outcomeOf(source, true), RuntimeError) << source;
    EXPECT_THROW(outcomeOf(source, false), RuntimeError) << source;
  }
}

TEST_F(Graphs, OneStepOfTraining) {
  const std::string source = R"(
def main() -> List[Tensor]:
    w = torch.ones([4, 3]).requires_grad_()
    m = torch.zeros([4, 3])
    for i in range(3):
        y = torch.tanh(w * 0.5 + 0.1) * w - 1.0
        g = torch.autograd.grad([(y * y).sum()], [w])[0]
        assert g is not None
        with torch.no_grad():
            m.mul_(0.9).add_(g)
            w.sub_(m * 0.1)
    return [w, m]
)";
  expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
}

// Random chains of pointwise operators over shapes that repeat each other.
class RandomChain {
 public:
  explicit RandomChain(uint64_t seed) : random_(seed) {}

  std::string body() {
    std::string text;
    values_ = {"a", "b", "c", "d"};
    const int steps = 3 + static_cast<int>(random_() % 8);
    for (int i = 0; i < steps; ++i) {
      const std::string name = fmt::format("v{}", i);
      text += fmt::format("    {} = {}\n", name, expression());
      values_.push_back(name);
    }
    return text + fmt::format("    out = {} + {} * a", values_.back(), pick());
  }

 private:
  std::string pick() {
    // Late values more often.
    const size_t n = values_.size();
    return random_() % 2 == 0 ? values_[n - 1 - random_() % std::min<size_t>(n, 3)]
                              : values_[random_() % n];
  }
  std::string expression() {
    static const char* const kForms[] = {"{0} * {1}",
                                         "{0} + {1}",
                                         "{0} - {1} * 0.5",
                                         "{0} / (1.5 + {1} * {1})",
                                         "torch.tanh({0})",
                                         "torch.sigmoid({0}) * {1}",
                                         "torch.relu({0}) + {1}",
                                         "torch.exp(-({0} * {0}))",
                                         "torch.where({0} > {1}, {0}, {1} * 2)",
                                         "torch.sqrt({0} * {0} + 1)",
                                         "torch.maximum({0}, {1})",
                                         "torch.clamp({0}, -0.7, 0.9)",
                                         "torch.nn.functional.gelu({0})",
                                         "torch.nn.functional.silu({0})",
                                         "torch.nn.functional.leaky_relu({0}, 0.1)",
                                         "torch.atan2({0}, {1} * {1} + 1)",
                                         "torch.log1p({0} * {0})",
                                         "({0}) ** 2",
                                         "-{0}",
                                         "torch.sin({0}) - torch.cos({1})",
                                         "torch.lerp({0}, {1}, 0.3)",
                                         "torch.addcmul({0}, {1}, {0}, value=0.2)",
                                         "2.0 - {0}",
                                         "{0}.detach() * {1}"};
    const char* form = kForms[random_() % std::size(kForms)];
    return fmt::format(fmt::runtime(form), pick(), pick());
  }

  std::mt19937_64 random_;
  std::vector<std::string> values_;
};

// WICK_GRAPHS_COUNT=10000 WICK_GRAPHS_SEED=7 tries other chains.
TEST_F(Graphs, AgreeWithTheTapeOnRandomChains) {
  uint64_t launches = 0;
  const uint64_t first = numberFromEnvironment("WICK_GRAPHS_SEED", 0),
                 count = numberFromEnvironment("WICK_GRAPHS_COUNT", 30);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string source = twice(RandomChain(seed).body());
    const Outcome graphs = outcomeOf(source, true);
    launches += graphs.launches;
    expectSame(source, graphs, outcomeOf(source, false), 1e-9);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(launches, 2 * count);
}

// Programs of reductions, norms, products, losses and views besides, with branches and loops. Every
// expression has the sizes of a.
class RandomRegion {
 public:
  explicit RandomRegion(uint64_t seed) : random_(seed) {}

  std::string body() {
    // Each call draws the same numbers.
    std::string text =
        "    torch.manual_seed(3)\n"
        "    p0 = float(a.detach()[0, 1]) > float(c.detach()[1])\n"
        "    p1 = float(b.detach()[1, 0]) > 1.3\n";
    values_ = {"a", "b", "a * c", "b + d"};
    const int steps = 3 + static_cast<int>(random_() % 6);
    for (int i = 0; i < steps; ++i) {
      const std::string name = fmt::format("v{}", i);
      text += statement(name);
      values_.push_back(name);
    }
    return text + fmt::format("    out = {} + {} * a", values_.back(), pick());
  }

 private:
  // Branches whose condition is known before the graph begins, and others.
  std::string condition() {
    static const char* const kKnown[] = {"p0", "p1", "not p0", "p0 and p1"};
    return random_() % 4 == 0 ? fmt::format("float({}.detach().sum()) > 0.3", pick())
                              : kKnown[random_() % std::size(kKnown)];
  }
  std::string branch(const std::string& name, size_t indent, int depth) {
    const std::string blanks(indent, ' ');
    std::string text = fmt::format("{}if {}:\n", blanks, condition());
    const auto side = [&] {
      if (depth > 0 && random_() % 3 == 0) return branch(name, indent + 4, depth - 1);
      std::string lines;
      if (random_() % 3 == 0) lines = fmt::format("{}    t_{} = {}\n", blanks, name, expression());
      const std::string value = lines.empty() ? pick() : "t_" + name;
      return lines + (random_() % 4 == 0 ? fmt::format("{}    {} = {}\n", blanks, name, value)
                                         : fmt::format("{}    {} = {} * 0.5 + {}\n", blanks, name,
                                                       expression(), value));
    };
    text += side();
    if (random_() % 3 == 0) {
      return fmt::format("{}{} = {}\n", blanks, name, pick()) + text;
    }
    return text + blanks + "else:\n" + side();
  }
  // Of splits all parts are read, or some, or they are joined again.
  std::string parts(const std::string& name) {
    static const char* const kForms[] = {
        "    x_{0}, y_{0} = torch.chunk({1}, 2, 1)\n"
        "    {0} = torch.cat([torch.tanh(y_{0}), x_{0} * y_{0}], 1) + {2}\n",
        "    x_{0}, y_{0}, z_{0} = torch.unbind({1}, 0)\n"
        "    {0} = torch.stack([z_{0}, x_{0} * z_{0}, c]) * {2}\n",
        "    x_{0}, y_{0} = torch.split({1}, [1, 3], 1)\n    {0} = x_{0} * {2} + y_{0}.sum(1, "
        "True)\n",
        "    x_{0}, y_{0}, z_{0}, u_{0} = torch.split({1}, 1, 1)\n"
        "    {0} = torch.sigmoid(x_{0}) * {2} + torch.sigmoid(u_{0}) * torch.tanh(z_{0})\n",
        "    x_{0}, y_{0} = torch.chunk(torch.cat([{1}, {2}], 1), 2, 1)\n"
        "    {0} = x_{0} * torch.softmax(y_{0}, 1)\n"};
    return fmt::format(fmt::runtime(kForms[random_() % std::size(kForms)]), name, pick(), pick());
  }
  std::string statement(const std::string& name) {
    switch (random_() % 9) {
      case 0:
      case 1:
        return branch(name, 4, 2);
      case 8:
        return loop(name);
      case 2: {
        std::string text = fmt::format("    {} = {}\n    for i_{} in range({}):\n", name, pick(),
                                       name, random_() % 4);
        values_.push_back(name);
        if (random_() % 2 == 0) text += branch(name, 8, 1);
        return text + fmt::format("        {} = torch.tanh({}) * 0.9\n", name, expression());
      }
      case 3:
        return parts(name);
      default:
        return fmt::format("    {} = {}\n", name, expression());
    }
  }
  // Loops whose number of steps is known when they begin, so that each may be a graph: what they
  // carry, what they append, and branches within.
  std::string loop(const std::string& name) {
    const bool appends = random_() % 2 == 0, carries_two = random_() % 3 == 0;
    std::string text = fmt::format("    {} = {}\n", name, pick());
    if (appends) text += fmt::format("    l_{}: List[Tensor] = []\n", name);
    if (carries_two) text += fmt::format("    u_{} = {}\n", name, pick());
    text += fmt::format("    for i_{0} in range(d.size(0) - {1}):\n", name, random_() % 3);
    const size_t before = values_.size();
    values_.push_back(name);
    if (carries_two) values_.push_back("u_" + name);
    if (random_() % 3 == 0) {
      static const char* const kKnown[] = {"p0", "p1"};
      text += fmt::format("        if {0}:\n            {1} = torch.tanh({2})\n",
                          kKnown[random_() % 2], name, expression());
    }
    if (random_() % 2 == 0) {
      text += fmt::format("        {0} = {1} * d[i_{0}] + {0} * 0.3\n", name, expression());
    }
    if (carries_two) text += fmt::format("        u_{} = torch.sigmoid({})\n", name, expression());
    if (appends && random_() % 2 == 0) {
      text += fmt::format("        l_{0}.append({0} * {1})\n", name, pick());
    }
    text += fmt::format("        {} = torch.tanh({}) * 0.9\n", name, expression());
    if (appends) text += fmt::format("        l_{0}.append({0})\n", name);
    values_.resize(before);
    if (carries_two) values_.push_back("u_" + name);
    if (!appends) return text;
    return text +
           fmt::format("    l_{0}.append({0})\n    {0} = torch.stack(l_{0}).mean(0)\n", name);
  }
  std::string pick() {
    const size_t n = values_.size();
    return "(" +
           (random_() % 2 == 0 ? values_[n - 1 - random_() % std::min<size_t>(n, 3)]
                               : values_[random_() % n]) +
           ")";
  }
  std::string expression() {
    static const char* const kForms[] = {
        "{0} * {1}",
        "{0} - {1} * 0.5",
        "torch.tanh({0}) + {1}",
        "torch.nn.functional.gelu({0}) * 0.5 + {1}",
        "torch.nn.functional.silu({0}) * c",
        "torch.sigmoid({0}) * d",
        "torch.exp(-({0} * {0})) * {1}",
        "torch.softmax({0}, -1) * {1}",
        "torch.softmax({0} * 0.5, 0)",
        "torch.log_softmax({0}, 1) * 0.3",
        "{0}.sum(-1, keepdim=True) * 0.2 + {1}",
        "{0}.sum(0) * {1} * 0.2",
        "{0}.mean() + {1}",
        "({0} - {0}.mean(-1, True)) * {1}",
        "torch.nn.functional.layer_norm({0}, [4], c, c) * 0.4",
        "torch.nn.functional.layer_norm({0} + {1}, [3, 4]) * 0.3",
        "torch.matmul(torch.matmul({0}, {1}.transpose(0, 1)), {0}) * 0.05",
        "torch.matmul({0}, torch.matmul(torch.t({1}), {1})) * 0.05",
        "torch.nn.functional.linear({0}, torch.mm({1}.transpose(0, 1), b) * 0.2, c)",
        "torch.addmm(c, {0}, torch.mm(torch.t(b), a), beta=1, alpha=0.1)",
        "torch.bmm({0}.unsqueeze(0), torch.bmm({1}.reshape([1, 4, 3]), {0}.unsqueeze(0)) * "
        "0.05).squeeze(0)",
        "torch.nn.functional.mse_loss({0}, {1}) * 0.1 + {0}",
        "torch.nn.functional.smooth_l1_loss({0}, {1}) + {1}",
        "torch.nn.functional.nll_loss(torch.log_softmax({0}, 1), torch.tensor([0, 3, 1])) * {1}",
        "torch.nn.functional.cross_entropy({0}, torch.tensor([2, 2, 0])) * 0.3 + {1}",
        "torch.var({0}, [1], True, True) * 0.2 + {1}",
        "torch.logsumexp({0}, [-1], True) - {1}",
        "{0}.reshape([2, 6]).transpose(0, 1).reshape([3, 4]) * {1}",
        "{0}.permute([1, 0]).reshape([3, 4]) + {1}",
        "{0}.flatten().unsqueeze(0).expand([2, 12]).sum(0).reshape([3, 4]) * 0.3",
        "torch.where({0} > 0.05, {0}, {1} * 2)",
        "torch.nn.functional.cross_entropy({0}, torch.tensor([2, 1, 0]), "
        "weight=torch.tensor([0.5, 1., 2., 0.1], dtype=torch.float64), label_smoothing=0.2) * {1}",
        "torch.nn.functional.cross_entropy({0}, torch.softmax({1}, 1)) + {1}",
        "torch.nn.functional.cross_entropy({0}, torch.tensor([1, -100, 3]), reduction='none', "
        "label_smoothing=0.1).unsqueeze(1) * {1}",
        "torch.nn.functional.cross_entropy({0}, torch.softmax({1}, 1), weight=c, reduction='sum', "
        "label_smoothing=0.3) * 0.1 + {0}",
        "torch.cat([{0}[1:], {1}[0:1]]) * 0.7",
        "torch.stack([{0}, {1}, {0}], 1).sum(1) * 0.5",
        "{0}[:, 1:3].sum(1, True) + {1}",
        "{0}[1] * {1}",
        "{0}.select(1, 2).unsqueeze(1) * {1}",
        "{0}.narrow(1, 1, 2).mean() + {1}",
        "torch.nn.functional.embedding(torch.tensor([2, 0, 2]), {0}) + {1}",
        "torch.nn.functional.dropout({0}, 0.3) + {1}",
        "torch.nn.functional.dropout({0} * {1}, 0.5, p0)",
        "torch.nn.functional.scaled_dot_product_attention({0}, {1}, {0}) * 0.5",
        "torch.nn.functional.scaled_dot_product_attention({1}, {0} * 0.3, b, is_causal=True)",
        "torch.sqrt({0} * {0} + 1)"};
    const char* form = kForms[random_() % std::size(kForms)];
    return fmt::format(fmt::runtime(form), pick(), pick());
  }

  std::mt19937_64 random_;
  std::vector<std::string> values_;
};

// Values of the loss, and of the sum of the squares of its gradients, at points beside the one
// where `twice` differentiates, in a direction: at h, -h, h / 2 and -h / 2; and what the gradients
// say of the direction.
std::string besides(const std::string& body) {
  return fmt::format(R"(
def value(a: Tensor, b: Tensor, c: Tensor, d: Tensor) -> Tensor:
{}
    return out
def at(step: float, second: bool) -> List[Tensor]:
    n = torch.arange(12, dtype=torch.float64)
    directions = [torch.cos(n * 5.1).reshape([3, 4]), torch.sin(n * 3.7 + 1).reshape([3, 4]), torch.cos(torch.arange(4, dtype=torch.float64) * 1.9)]
    a = ((torch.sin(n * 1.3) + 0.1).reshape([3, 4]) + directions[0] * step).requires_grad_()
    b = ((torch.cos(n * 0.7) + 1.5).reshape([3, 4]) + directions[1] * step).requires_grad_()
    c = (torch.cos(torch.arange(4, dtype=torch.float64) * 2.9) + directions[2] * step).requires_grad_()
    d = (torch.sin(torch.arange(3, dtype=torch.float64) * 0.4) + 0.3).reshape([3, 1])
    out = value(a, b, c, d)
    loss = (out * out).sum()
    total = torch.zeros([], dtype=torch.float64)
    slope = torch.zeros([], dtype=torch.float64)
    k = 0
    for g in torch.autograd.grad([loss], [a, b, c], create_graph=second, allow_unused=True):
        if g is not None:
            total = total + (g * g).sum()
            slope = slope + (g * directions[k]).sum()
        k += 1
    found = [loss.detach(), total.detach(), slope.detach()]
    if second and total.requires_grad:
        slope2 = torch.zeros([], dtype=torch.float64)
        k = 0
        for g in torch.autograd.grad([total], [a, b, c], allow_unused=True):
            if g is not None:
                slope2 = slope2 + (g * directions[k]).sum()
            k += 1
        found.append(slope2)
    return found
def main() -> List[Tensor]:
    found = at(0., True)
    for step in [1e-4, -1e-4, 5e-5, -5e-5]:
        found.extend(at(step, False)[0:2])
    return found
)",
                     body);
}

// 1 when the slopes agree with the differences, 0 when these say nothing (a kink, rounding), else a
// failure.
int agreesWithDifferences(const std::string& source, const Outcome& found) {
  std::vector<double> v;
  for (const Tensor& t : found.tensors) v.push_back(t.data<double>()[0]);
  const bool second = v.size() == 12;
  const double* beside = v.data() + (second ? 4 : 3);
  int agreeing = 0;
  for (int order = 0; order < (second ? 2 : 1); ++order) {
    const double slope = v[static_cast<size_t>(2 + order)];
    const double wide = (beside[order] - beside[2 + order]) / 2e-4,
                 narrow = (beside[4 + order] - beside[6 + order]) / 1e-4;
    const double size = std::abs(v[static_cast<size_t>(order)]) + std::abs(narrow) + 1;
    if (!(std::abs(wide - narrow) < 1e-6 * size)) continue;
    EXPECT_NEAR(slope, narrow, 1e-5 * size) << "order " << order + 1 << " of\n" << source;
    agreeing = 1;
  }
  return agreeing;
}

TEST_F(Graphs, AgreeOnRandomRegions) {
  uint64_t checked = 0;
  const uint64_t loops_before = autograd::numLoopsAsGraphs();
  const uint64_t first = numberFromEnvironment("WICK_GRAPHS_SEED", 0),
                 count = numberFromEnvironment("WICK_GRAPHS_COUNT", 20);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    // Most time goes into making kernels.
    setJitMode(seed % 8 == 0 ? JitMode::Sync : JitMode::Background);
    setJitThreshold(seed % 8 == 0 ? std::optional<uint64_t>() : 1'000'000);
    const std::string body = RandomRegion(seed).body(), source = twice(body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-8);
    checked += static_cast<uint64_t>(agreesWithDifferences(body, outcomeOf(besides(body), true)));
    if (HasFatalFailure() || HasNonfatalFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(checked, count / 2);
  // Most programs have none; each that has one runs several times.
  EXPECT_GT(autograd::numLoopsAsGraphs() - loops_before, count / 2);
}

}  // namespace
}  // namespace wick::graphs_test
