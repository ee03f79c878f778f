// Graphs of derivatives (prim::DifferentiableGraph) against the tape, operator by operator.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <random>

#include "core/optimization_limit.h"
#include "runtime/fusion/fusion_site.h"
#include "runtime/jit_mode.h"
#include "wick.h"

namespace wick {
namespace {

// Kernels as soon as they are asked for.
class Graphs : public testing::Test {
 protected:
  void SetUp() override {
    before_ = jitMode();
    setJitMode(JitMode::Sync);
  }
  void TearDown() override {
    setJitMode(before_);
    setOptimizationLimits("");
  }

 private:
  JitMode before_;
};

struct Outcome {
  std::vector<Tensor> tensors;
  uint64_t launches = 0;
};

Outcome outcomeOf(const std::string& source, bool graphs) {
  setOptimizationLimits(graphs ? "" : "fusion_groups=0");
  const Program program = compile(source);
  const uint64_t before = fusionStatistics().launches;
  Outcome out;
  // The second call finds what the first one made.
  for (int call = 0; call < 2; ++call) {
    out.tensors.clear();
    const IValue made = program.call("main", {});
    for (const IValue& e : made.elements()) out.tensors.push_back(e.toTensor().detach());
  }
  out.launches = fusionStatistics().launches - before;
  setOptimizationLimits("");
  return out;
}

void expectSame(const std::string& source, const Outcome& a, const Outcome& b, double tolerance) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size()) << source;
  for (size_t i = 0; i < a.tensors.size(); ++i) {
    const Tensor x = a.tensors[i].to(DType::Double).contiguous(),
                 y = b.tensors[i].to(DType::Double).contiguous();
    ASSERT_EQ(DimVector(x.sizes()), DimVector(y.sizes())) << source;
    ASSERT_EQ(a.tensors[i].dtype(), b.tensors[i].dtype()) << source;
    for (int64_t k = 0; k < x.numel(); ++k) {
      const double p = x.data<double>()[k], q = y.data<double>()[k];
      if (std::isnan(p) && std::isnan(q)) continue;
      ASSERT_NEAR(p, q, tolerance * (1 + std::abs(q))) << "tensor " << i << " of\n" << source;
    }
  }
}

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

uint64_t numberFromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text ? std::stoull(text) : otherwise;
}

// WICK_GRAPHS_COUNT=10000 WICK_GRAPHS_SEED=7 tries other chains.
TEST_F(Graphs, AgreeWithTheTapeOnRandomChains) {
  uint64_t launches = 0;
  const uint64_t first = numberFromEnvironment("WICK_GRAPHS_SEED", 0),
                 count = numberFromEnvironment("WICK_GRAPHS_COUNT", 60);
  for (uint64_t seed = first; seed < first + count; ++seed) {
    const std::string source = twice(RandomChain(seed).body());
    const Outcome graphs = outcomeOf(source, true);
    launches += graphs.launches;
    expectSame(source, graphs, outcomeOf(source, false), 1e-9);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(launches, 2 * count);
}

}  // namespace
}  // namespace wick
