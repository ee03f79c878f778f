// Several walks over one tape: graphs of derivatives raise where the tape raises that has each operator
// by itself, and with the same words.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "core/error_types.h"
#include "tests/autograd/graph_outcomes.h"
#include "tests/environment.h"

namespace wick::walks_test {
namespace {

using Walks = GraphsTest;

struct Ending {
  Outcome outcome;
  std::string error;  // empty when there was none
};

Ending endingOf(const std::string& source, bool graphs) {
  Ending made;
  try {
    made.outcome = outcomeOf(source, graphs);
  } catch (const RuntimeError& e) {
    made.error = e.what();
    setOptimizationLimits("");
  }
  return made;
}

// Leaves out which of several tensors that were written to is named: the backward passes come to them
// in their own orders.
std::string withoutNamedTensor(std::string error) {
  const std::string before = "has been modified by an inplace operation: ";
  const size_t at = error.find(before);
  return at == std::string::npos ? error : error.substr(0, at + before.size());
}

void expectSameEnding(const std::string& source, const Ending& graphs, const Ending& tape) {
  ASSERT_EQ(withoutNamedTensor(graphs.error), withoutNamedTensor(tape.error)) << source;
  if (graphs.error.empty()) expectSame(source, graphs.outcome, tape.outcome, 1e-8);
}

// Random values of four numbers, and random walks from sums of them.
class RandomWalks {
 public:
  explicit RandomWalks(uint64_t seed) : random_(seed) {}

  std::string source() {
    std::string text = R"(
def unless(g: Optional[Tensor], t: Tensor) -> Tensor:
    return torch.zeros_like(t) if g is None else g
def main() -> List[Tensor]:
    torch.manual_seed(3)
    found: List[Tensor] = []
    n = torch.arange(4, dtype=torch.float64)
    x = (torch.sin(n * 1.3) + 0.1).requires_grad_()
    y = (torch.cos(n * 0.7) + 0.4).requires_grad_()
    w = torch.cos(n * 2.9).requires_grad_()
    m = torch.sin(torch.arange(16, dtype=torch.float64) * 0.9).reshape([4, 4]).requires_grad_()
    k = torch.sin(n + 2)
    ((x.sum() + y.sum() + w.sum() + m.sum()) * 0).backward()
    p = float(x.detach()[1]) > 0.3
)";
    values_ = {"x", "y", "w", "k"};
    const int steps = 3 + choose(9);
    for (int i = 0; i < steps; ++i) text += statement(fmt::format("v{}", i));
    text += walk("last");
    return text + R"(    for t in [x, y, w, m]:
        found.append(t.grad.clone())
    return found
)";
  }

 private:
  int choose(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  std::string pick() {
    const int n = static_cast<int>(values_.size());
    return choose(2) == 0 ? values_[static_cast<size_t>(n - 1 - choose(std::min(n, 3)))]
                          : values_[static_cast<size_t>(choose(n))];
  }
  std::string leaf() {
    static const char* const kLeaves[] = {"x", "y", "w"};
    return kLeaves[choose(3)];
  }

  std::string statement(const std::string& name) {
    switch (choose(12)) {
      case 0:
      case 1:
      case 2:
        return walk(name);
      case 3:
        return write();
      case 4:
        return loop(name);
      case 5: {
        const std::string text = fmt::format("    {0} = {1}\n    if p:\n        {0} = {2}\n", name,
                                             pick(), expression());
        values_.push_back(name);
        return text;
      }
      default: {
        const std::string text = fmt::format("    {} = {}\n", name, expression());
        values_.push_back(name);
        return text;
      }
    }
  }

  std::string write() {
    static const char* const kUnrecorded[] = {"{}.add_(0.25)", "{}[1:3].mul_(1.5)", "{}.zero_()"};
    const std::string what =
        fmt::format(fmt::runtime(kUnrecorded[choose(3)]), choose(2) == 0 ? leaf() : pick());
    if (choose(4) != 0) return fmt::format("    with torch.no_grad():\n        {}\n", what);
    // A leaf must not be written to while that is recorded.
    const std::string to = pick();
    return to[0] == 'v' ? fmt::format("    {0} = {0} * 1.5\n    {0}.add_({1})\n", to, pick()) : "";
  }

  std::string loop(const std::string& name) {
    std::string text = fmt::format("    {} = {}\n", name, pick());
    const bool appends = choose(2) == 0;
    if (appends) text += fmt::format("    l_{}: List[Tensor] = []\n", name);
    text += fmt::format("    for i_{} in range({}):\n", name, choose(4));
    values_.push_back(name);
    text += fmt::format("        {} = {}\n", name, expression());
    if (choose(2) == 0) text += fmt::format("        {0} = torch.tanh({0}) * {1}\n", name, pick());
    if (appends) {
      text += fmt::format("        l_{0}.append({0} * {1})\n", name, pick());
      text += fmt::format("    l_{0}.append({0})\n    s_{0} = torch.stack(l_{0}).sum(0)\n", name);
      values_.push_back("s_" + name);
    }
    return text;
  }

  std::string walk(const std::string& name) {
    static const char* const kFlags[] = {"False", "True", "None"};
    std::string text = fmt::format("    t_{} = {}\n", name, loss());
    std::string indent = "    ";
    text += fmt::format("    if t_{}.requires_grad:\n", name);
    indent += "    ";
    const char* const retain = kFlags[choose(3)];
    const bool create = choose(4) == 0;
    if (choose(3) == 0) {
      return text + fmt::format("{}t_{}.backward(retain_graph={}, create_graph={})\n", indent, name,
                                retain, create ? "True" : "False");
    }
    std::vector<std::string> inputs;
    for (const char* leaf : {"x", "y", "w", "m"}) {
      if (choose(5) < 2) inputs.emplace_back(leaf);
    }
    if (inputs.empty()) inputs.push_back(leaf());
    // Others than leaves may need no gradient.
    if (const std::string v = pick(); choose(3) == 0 && v[0] == 'v') {
      text += fmt::format(
          "{0}if {1}.requires_grad:\n{0}    found.append(unless("
          "torch.autograd.grad([t_{2}], [{1}], retain_graph=True, "
          "allow_unused=True)[0], {1}).detach())\n",
          indent, v, name);
    }
    text += fmt::format(
        "{}for g_{} in torch.autograd.grad([t_{}], [{}], retain_graph={}, create_graph={}, "
        "allow_unused=True):\n{}    if g_{} is not None:\n{}        found.append(g_{}.detach())\n",
        indent, name, name, fmt::join(inputs, ", "), retain, create ? "True" : "False", indent,
        name, indent, name);
    if (create && choose(2) == 0) {
      text += fmt::format(
          "{0}h_{1} = unless(torch.autograd.grad([t_{1}], [{2}], create_graph=True, "
          "allow_unused=True)[0], {2})\n{0}if h_{1}.requires_grad:\n"
          "{0}    h_{1}.sum().backward()\n",
          indent, name, leaf());
    }
    return text;
  }
  std::string loss() {
    static const char* const kForms[] = {"{0}.sum()", "({0} * 3).sum()", "{0}.sum() + {1}.sum()",
                                         "({0} * {1}).sum()", "{0}.sum() * {1}.sum()"};
    return fmt::format(fmt::runtime(kForms[choose(5)]), pick(), pick());
  }
  std::string expression() {
    static const char* const kForms[] = {
        "{0} * {1}",
        "{0} + {1}",
        "{0} - {1}",
        "{0} * 0.5 + {1}",
        "torch.tanh({0})",
        "torch.exp({0} * 0.3)",
        "{0}.sin()",
        "torch.sigmoid({0} + {1}) * {1}",
        "torch.relu({0})",
        "torch.where({0} > 0, {0}, {1})",
        "{0}.detach() * {1}",
        "{0}.abs() + {1}.cos()",
        "{0} * {1}.sum()",
        "{0}.sum() + {1}",
        "({0}.unsqueeze(1) * {1}).mean(0)",
        "({0}.unsqueeze(1) + {1}).sum(1)",
        "torch.softmax({0}, 0)",
        "torch.softmax({0}, 0) * {1}",
        "torch.nn.functional.layer_norm({0}, [4], {1}, {0})",
        "torch.nn.functional.gelu({0})",
        "torch.nn.functional.silu({0}) - {1}",
        "torch.matmul(m, {0})",
        "torch.nn.functional.linear({0}, m, {1})",
        "torch.matmul({0}.reshape([2, 2]), {1}.view([2, 2])).reshape([4])",
        "{0}.reshape([2, 2]).t().reshape([4]) * {1}",
        "torch.matmul({0}.view([2, 2]).t(), torch.tanh({1}).view([2, 2])).flatten()",
        "torch.cat([{0}[0:2], {1}[2:4]])",
        "{0}.expand([3, 4]).sum(0)",
        "torch.nn.functional.mse_loss({0}, {1}) + {0}",
        "torch.nn.functional.dropout({0}, 0.4)",
        "{0}.clone()",
        "torch.maximum({0}, {1})",
        "torch.lerp({0}, {1}, 0.3)",
        "{0} ** 2",
        "-{0}"};
    return fmt::format(fmt::runtime(kForms[choose(static_cast<int>(std::size(kForms)))]), pick(),
                       pick());
  }

  std::mt19937_64 random_;
  std::vector<std::string> values_;
};

// A graph is not run when only another of its results leads to a wanted leaf, and nobody waits for it.
TEST_F(Walks, GoPastAGraphsOtherResults) {
  const std::string source = R"(
def main() -> List[Tensor]:
    n = torch.arange(4, dtype=torch.float64)
    y = (torch.cos(n * 0.7) + 0.4).requires_grad_()
    w = torch.cos(n * 2.9).requires_grad_()
    v0 = y * w
    v1 = torch.matmul(v0.view([2, 2]), torch.tanh(w).view([2, 2])).view([4])
    t = v1.sum()
    found: List[Tensor] = []
    if t.requires_grad:
        g = torch.autograd.grad([t], [y], retain_graph=True, allow_unused=True)[0]
        assert g is not None
        found.append(g)
    v4 = w.reshape([2, 2]).reshape([4]) * v0
    l: List[Tensor] = []
    for i in range(0):
        l.append(v1 * w)
    l.append(v1)
    last = torch.stack(l).sum()
    h = torch.autograd.grad([last], [v4], retain_graph=True, allow_unused=True)[0]
    assert h is None
    return found
)";
  const Ending graphs = endingOf(source, true);
  EXPECT_EQ(graphs.error, "");
  expectSameEnding(source, graphs, endingOf(source, false));
}

// A walk that wants the gradient of one result of a graph does not go to the graph by another, through
// operators that have let go of what they kept.
TEST_F(Walks, WantNoOtherResultsOfAGraph) {
  const std::string source = R"(
def main() -> List[Tensor]:
    n = torch.arange(4, dtype=torch.float64)
    x = (torch.sin(n * 1.3) + 0.1).requires_grad_()
    y = (torch.cos(n * 0.7) + 0.4).requires_grad_()
    w = torch.cos(n * 2.9).requires_grad_()
    p = float(x.detach()[1]) > 0.3
    v0 = (x.unsqueeze(1) * w).mean(0)
    l: List[Tensor] = []
    v1 = w
    for i in range(2):
        v1 = y.reshape([2, 2]).t().reshape([4]) * v0
        l.append(v1 * v0)
    l.append(v1)
    s = torch.stack(l).sum(0)
    v2 = (v0.unsqueeze(1) * s).mean(0)
    v3 = torch.maximum(v1, s)
    with torch.no_grad():
        y[1:3].mul_(1.5)
    v5 = y
    if p:
        v5 = torch.nn.functional.gelu(v2)
    r = v2.sum() * v5.sum()
    if r.requires_grad:
        r.backward()
    t = v5.sum()
    found: List[Tensor] = []
    if t.requires_grad:
        g = torch.autograd.grad([t], [v3], retain_graph=True, allow_unused=True)[0]
        assert g is None
        found.append(x.detach())
    t.backward()
    return found
)";
  const Ending tape = endingOf(source, false);
  EXPECT_THAT(tape.error, testing::HasSubstr("a second time"));
  EXPECT_THAT(tape.error, testing::HasSubstr("t.backward()"));
  expectSameEnding(source, endingOf(source, true), tape);
}

// WICK_WALKS_COUNT=10000 WICK_WALKS_SEED=7 tries others.
TEST_F(Walks, EndAsOnTheTape) {
  const uint64_t first = numberFromEnvironment("WICK_WALKS_SEED", 0),
                 count = numberFromEnvironment("WICK_WALKS_COUNT", 200);
  uint64_t again = 0, written = 0, fine = 0;
  for (uint64_t seed = first; seed < first + count; ++seed) {
    // Most time goes into making kernels.
    const bool kernels = seed % 16 == 0;
    setJitMode(kernels ? JitMode::Sync : JitMode::Background);
    setJitThreshold(kernels ? std::optional<uint64_t>() : 1'000'000);
    const std::string source = RandomWalks(seed).source();
    const Ending tape = endingOf(source, false);
    expectSameEnding(source, endingOf(source, true), tape);
    again += tape.error.find("a second time") != std::string::npos;
    written += tape.error.find("by an inplace operation") != std::string::npos;
    fine += tape.error.empty();
    if (HasFatalFailure()) {
      ADD_FAILURE() << "seed " << seed;
      return;
    }
  }
  EXPECT_GT(again, count / 20);
  EXPECT_GT(written, count / 100);
  EXPECT_GT(fine, count / 10);
}

}  // namespace
}  // namespace wick::walks_test
