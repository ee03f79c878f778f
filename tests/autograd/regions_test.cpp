// Graphs of derivatives that hold more than pointwise operators: which sizes they serve, what they
// go on over, and losses that are differentiated where they are computed.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "autograd/region_plan.h"
#include "autograd/tape.h"
#include "tests/autograd/graph_outcomes.h"

namespace wick::regions_test {
namespace {

using Regions = GraphsTest;

// Whether the tensor comes from one graph, and this from leaves alone.
void expectOneGraph(const Tensor& y, const std::string& what) {
  const autograd::Edge edge = autograd::gradientEdge(y);
  ASSERT_TRUE(edge) << what;
  EXPECT_EQ(edge.node->name(), "DifferentiableGraphBackward") << what;
  for (const autograd::Edge& next : edge.node->next()) {
    EXPECT_TRUE(!next || next.node->name() == "AccumulateGrad") << what;
  }
}

// Graphs go on over branches whose condition is known before them.
TEST_F(Regions, GoOnOverBranches) {
  const auto count = [](const std::string& body, const char* flags) {
    return fmt::format(R"(
def value(x: Tensor, p: bool, q: bool) -> Tensor:
    h = torch.softmax(x * 2, 0)
{}
    return torch.tanh(h) * h.sum()
def main() -> List[Tensor]:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    found: List[Tensor] = []
    for p, q in [{}]:
        y = value(x, p, q)
        g = torch.autograd.grad([y.sum()], [x], create_graph=True)[0]
        assert g is not None
        found.append(y)
        found.append(g)
        g = torch.autograd.grad([(g * g).sum()], [x])[0]
        assert g is not None
        found.append(g)
    return found
)",
                       body, flags);
  };
  const char* all = "(True, True), (True, False), (False, True), (False, False), (True, True)";
  for (const char* body :
       {"    if p:\n        h = torch.relu(h) * 2\n    else:\n        h = torch.sigmoid(h).sum() * "
        "h",
        "    if p:\n        h = torch.softmax(h + x, 0)",
        "    if p:\n        if q:\n            h = h * x\n        t = torch.exp(h)\n"
        "        h = t * t + h\n    else:\n        h = h if q else x",
        "    u = h\n    if p:\n        u = h * 3\n    if q:\n        h = torch.tanh(u) + h"}) {
    const std::string source = count(body, all);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
    const Program program = compile(source);
    for (const bool p : {true, false}) {
      Tensor x = Tensor::empty({3}, DType::Float);
      for (int i = 0; i < 3; ++i) x.data<float>()[i] = 0.5f * static_cast<float>(i) - 0.2f;
      x.setRequiresGrad(true);
      const Tensor y = program.call("value", {x, p, true}).toTensor();
      expectOneGraph(y, body);
    }
  }
}

// A step of an LSTM: what is split and joined again stays in one graph.
TEST_F(Regions, GoOnOverPartsAndJoins) {
  const std::string source = R"(
def value(x: Tensor, h: Tensor, w: Tensor) -> Tensor:
    gates = torch.nn.functional.linear(torch.cat([x, h], 1), w)
    i, f, g, o = torch.chunk(gates, 4, 1)
    c = torch.sigmoid(f) * h + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c) + x[:, 1:3]
def main() -> List[Tensor]:
    x = torch.sin(torch.arange(6.).reshape([2, 3])).requires_grad_()
    h = torch.cos(torch.arange(4.).reshape([2, 2])).requires_grad_()
    w = torch.sin(torch.arange(40.).reshape([8, 5])).requires_grad_()
    y = value(x, h, w)
    found = [y]
    for g in torch.autograd.grad([(y * y).sum()], [x, h, w]):
        assert g is not None
        found.append(g)
    return found
)";
  expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-5);
  const Program program = compile(source);
  const auto leaf = [](DimVector sizes) {
    Tensor t = Tensor::zeros(std::move(sizes), DType::Float);
    t.setRequiresGrad(true);
    return t;
  };
  const Tensor y = program.call("value", {leaf({2, 3}), leaf({2, 2}), leaf({8, 5})}).toTensor();
  const autograd::Edge edge = autograd::gradientEdge(y);
  ASSERT_TRUE(edge);
  EXPECT_EQ(edge.node->name(), "DifferentiableGraphBackward");
  for (const autograd::Edge& next : edge.node->next()) {
    EXPECT_TRUE(!next || next.node->name() == "AccumulateGrad");
  }
}

// Calls `value(x, e, w, q, train)` of a program that differentiates it twice, drawing numbers before,
// between and after.
std::string drawing(const std::string& body) {
  return fmt::format(R"(
def value(x: Tensor, e: Tensor, w: Tensor, q: Tensor, train: bool) -> Tensor:
    h = torch.nn.functional.linear(torch.nn.functional.embedding(x, e), w)
{}
def main() -> List[Tensor]:
    found: List[Tensor] = []
    for train in [True, False, True]:
        torch.manual_seed(5)
        x = torch.tensor([1, 0, 2, 1])
        e = torch.sin(torch.arange(12, dtype=torch.float64)).reshape([3, 4]).requires_grad_()
        w = torch.cos(torch.arange(24, dtype=torch.float64)).reshape([6, 4]).requires_grad_()
        q = torch.sin(torch.arange(36, dtype=torch.float64)).reshape([6, 6]).requires_grad_()
        y = value(x, e, w, q, train)
        found.append(y)
        total = torch.rand([1], dtype=torch.float64).sum()
        for g in torch.autograd.grad([(y * y).sum()], [e, w, q], create_graph=True):
            assert g is not None
            found.append(g)
            total = total + (g * g).sum()
        for g in torch.autograd.grad([total], [e, w, q]):
            assert g is not None
            found.append(g)
        found.append(torch.rand([2]))
    return found
)",
                     body);
}

// Rows of a table, dropout, with the numbers that the tape would draw, and attention.
TEST_F(Regions, GoOnOverEmbeddingsDropoutAndAttention) {
  for (const char* body :
       {"    h = torch.nn.functional.dropout(torch.relu(h), 0.3, train)\n    return torch.mm(h, q) "
        "* 2",
        // Across the order in memory, several at a time, all and nothing.
        "    t = torch.nn.functional.dropout(torch.tanh(torch.mm(h, q)).transpose(0, 1), 0.5, "
        "train)\n"
        "    u = torch.nn.functional.dropout(h, 0.25) + torch.nn.functional.dropout(h, 1.0, "
        "train)\n"
        "    return torch.nn.functional.layer_norm(u + t.transpose(0, 1), [6])",
        "    k = torch.matmul(h, q)\n"
        "    s = torch.nn.functional.scaled_dot_product_attention(h, k, torch.tanh(h))\n"
        "    return s * 2 + h",
        "    k = torch.matmul(h, q)\n    s = torch.nn.functional.scaled_dot_product_attention("
        "h.unsqueeze(0), k.unsqueeze(0), torch.tanh(h).unsqueeze(0), is_causal=True)\n"
        "    return torch.nn.functional.dropout(s.squeeze(0) + h, 0.1, train) * 3"}) {
    const std::string source = drawing(body);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-9);
    const Program program = compile(source);
    const auto leaf = [](DimVector sizes) {
      Tensor t = Tensor::full(std::move(sizes), 0.5, DType::Double);
      t.setRequiresGrad(true);
      return t;
    };
    for (const bool train : {true, false}) {
      const Tensor x = Tensor::zeros({4}, DType::Long);
      const Tensor y =
          program.call("value", {x, leaf({3, 4}), leaf({6, 4}), leaf({6, 6}), train}).toTensor();
      expectOneGraph(y, body);
    }
  }
}

// A mask of booleans, one of numbers, other scales; and rows that are not there.
TEST_F(Regions, AttentionWithMasks) {
  for (const char* call : {"h, k, h, attn_mask=m > 0", "h, k, torch.tanh(h), attn_mask=m",
                           "h, k, h, scale=0.3", "h, k, h, attn_mask=(m > 0).unsqueeze(0)"}) {
    const std::string source = drawing(
        fmt::format("    k = torch.matmul(h, q)\n"
                    "    m = torch.cos(torch.arange(16, dtype=torch.float64)).reshape([4, 4])\n"
                    "    return torch.nn.functional.scaled_dot_product_attention({}) + h * 0.5",
                    call));
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-9);
  }
  const Program program = compile(drawing("    return torch.mm(h, q) * 2"));
  Tensor w = Tensor::zeros({6, 4}, DType::Double);
  w.setRequiresGrad(true);
  const Tensor e = Tensor::zeros({3, 4}, DType::Double), q = Tensor::zeros({6, 6}, DType::Double);
  EXPECT_THROW(program.call("value", {Tensor::full({4}, 3, DType::Long), e, w, q, true}), Error);
}

// Cross entropy with all that it takes is part of a graph, and raises as before.
TEST_F(Regions, GoOnOverCrossEntropy) {
  for (const char* call :
       {"torch.tensor([0, 3])", "torch.tensor([0, 3]), weight=v", "torch.tensor([0, -100])",
        "torch.tensor([2, 1]), reduction='none'", "torch.tensor([2, 1]), reduction='sum', weight=v",
        "torch.tensor([2, 1]), label_smoothing=0.3", "torch.tensor([2, -100]), label_smoothing=0.3",
        "torch.tensor([2, 1]), weight=v, label_smoothing=0.3",
        "torch.tensor([2, -100]), weight=v, reduction='none', label_smoothing=0.3",
        "torch.tensor([2, 1]), weight=v, reduction='sum', label_smoothing=0.3",
        "torch.softmax(w[0:2], 1)", "torch.softmax(w[0:2], 1), weight=v, reduction='sum'",
        "torch.softmax(w[0:2], 1), weight=v, label_smoothing=0.2",
        "torch.softmax(w[0:2], 1), reduction='none', label_smoothing=0.2"}) {
    const std::string source = fmt::format(R"(
def value(x: Tensor, w: Tensor, v: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(torch.tanh(x) @ w, {})
def main() -> List[Tensor]:
    x = torch.sin(torch.arange(6., dtype=torch.float64).reshape([2, 3])).requires_grad_()
    w = torch.cos(torch.arange(12., dtype=torch.float64).reshape([3, 4])).requires_grad_()
    y = value(x, w, torch.tensor([0.5, 1., 2., 0.1], dtype=torch.float64))
    found = [y]
    total = torch.zeros([], dtype=torch.float64)
    for g in torch.autograd.grad([(y * y).sum()], [x, w], create_graph=True):
        assert g is not None
        found.append(g)
        total = total + (g * g).sum()
    for g in torch.autograd.grad([total], [x, w]):
        assert g is not None
        found.append(g)
    return found
)",
                                           call);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
    Tensor x = Tensor::zeros({2, 3}, DType::Double), w = Tensor::zeros({3, 4}, DType::Double);
    x.setRequiresGrad(true);
    w.setRequiresGrad(true);
    const Tensor y =
        compile(source).call("value", {x, w, Tensor::full({4}, 1, DType::Double)}).toTensor();
    const autograd::Edge edge = autograd::gradientEdge(y);
    ASSERT_TRUE(edge);
    EXPECT_EQ(edge.node->name(), "DifferentiableGraphBackward") << call;
  }
  for (const char* call :
       {"torch.tensor([0, 4])", "torch.tensor([0, 1, 2])", "torch.ones([2, 4], dtype=torch.long)",
        "torch.tensor([0, 1]), label_smoothing=1.5"}) {
    std::string messages[2];
    for (const bool graphs : {false, true}) {
      try {
        outcomeOf(fmt::format(R"(
def main() -> List[Tensor]:
    x = torch.ones([2, 3]).requires_grad_()
    w = torch.ones([3, 4])
    return [torch.nn.functional.cross_entropy(torch.tanh(x) @ w, {})]
)",
                              call),
                  graphs);
      } catch (const RuntimeError& e) {
        messages[graphs ? 1 : 0] = e.brief();
      }
    }
    EXPECT_NE(messages[0], "") << call;
    EXPECT_EQ(messages[0], messages[1]) << call;
  }
}

// What a branch hands on is the tensor itself, whose gradient is found where it comes from.
TEST_F(Regions, BranchesThatHandOnWhatTheyGet) {
  for (const char* p : {"True", "False"}) {
    const std::string source = fmt::format(R"(
def pick(x: Tensor, p: bool) -> Tuple[Tensor, Tensor, Tensor]:
    y = x * 2
    z = y
    if p:
        z = torch.softmax(y, 0)
    w = x
    if p:
        w = torch.tanh(x) * x.sum()
    return z, torch.exp(w) * z + y, w
def main() -> List[Tensor]:
    x = torch.tensor([1., 2., 3.]).requires_grad_()
    z, out, w = pick(x, {})
    g = torch.autograd.grad([out.sum()], [z, x, w])
    a, b, c = g[0], g[1], g[2]
    assert a is not None and b is not None and c is not None
    return [a, b, c, out]
)",
                                           p);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-6);
  }
}

// A program `value(x, w, b, n)` and its gradients, as graphs and on the tape.
class Sizes {
 public:
  explicit Sizes(const std::string& body)
      : source_(fmt::format(R"(
def value(x: Tensor, w: Tensor, b: Tensor, n: int) -> Tensor:
{}
    return out
def main(x: Tensor, w: Tensor, b: Tensor, n: int) -> Tuple[Tensor, List[Tensor]]:
    out = value(x, w, b, n)
    found = [out.detach()]
    leaves = [x, w, b]
    total = torch.zeros([], dtype=out.dtype)
    for g in torch.autograd.grad([(out * out).sum()], leaves, create_graph=True, allow_unused=True):
        if g is not None:
            found.append(g.detach())
            total = total + (g * g).sum()
    for g in torch.autograd.grad([total], leaves, allow_unused=True):
        if g is not None:
            found.append(g)
    return out, found
)",
                            body)),
        graphs_(compile(source_)),
        tape_(compile(source_)) {}

  // Whether a graph computed the value; the two must agree.
  bool agree(DimVector x_sizes, int64_t n) {
    std::vector<IValue> arguments;
    for (const DimVector& sizes : {x_sizes, DimVector{4, 3}, DimVector{4}}) {
      Tensor t = Tensor::empty(sizes, DType::Double);
      for (int64_t i = 0; i < t.numel(); ++i) t.data<double>()[i] = 0.1 + std::sin(0.7 * i + n);
      t.setRequiresGrad(true);
      arguments.emplace_back(t);
    }
    arguments.emplace_back(n);
    setOptimizationLimits("fusion_groups=0:form_loop_graphs=0");
    const Outcome tape = outcome(tape_.call("main", arguments));
    setOptimizationLimits("");
    const IValue found = graphs_.call("main", arguments);
    expectSame(source_, outcome(found), tape, 1e-11);
    const autograd::Edge edge = autograd::gradientEdge(found.elements()[0].toTensor());
    return edge && edge.node->name() == "DifferentiableGraphBackward";
  }

 private:
  static Outcome outcome(const IValue& made) {
    Outcome out;
    for (const IValue& e : made.elements()[1].elements()) out.tensors.push_back(e.toTensor());
    return out;
  }
  std::string source_;
  Program graphs_, tape_;
};

// Sizes that change from call to call need no plans of their own, and never the tape.
TEST_F(Regions, OnePlanForManySizes) {
  setJitMode(JitMode::Background);
  setJitThreshold(1'000'000);
  for (const char* body :
       {"    out = torch.softmax(torch.nn.functional.linear(torch.tanh(x), w, b), -1)",
        "    h = torch.nn.functional.linear(x, w, b)\n    out = h.mean(0) * b + "
        "(h - h.mean(-1, True)) * torch.sigmoid(h).sum(0)",
        "    out = torch.nn.functional.layer_norm(torch.nn.functional.linear(x, w), [4], b, b) + b",
        "    h = torch.nn.functional.linear(x, w, b).reshape([n, 2, 2])\n"
        "    out = torch.matmul(h, h.transpose(1, 2)).flatten(1) * torch.softmax(b, 0)",
        "    out = torch.matmul(torch.softmax(x, 0).t(), torch.nn.functional.linear(x, w, b)) * "
        "b.sum()",
        "    out = torch.var(torch.nn.functional.linear(x, w, b), [0], False, True) * b + "
        "torch.log_softmax(x @ w.t(), 0).sum()",
        "    h = x.unsqueeze(0).expand([2, n, 3]).reshape([2 * n, 3])\n"
        "    out = torch.softmax(torch.nn.functional.linear(h, w, b), 0) * h.sum(1, True)"}) {
    Sizes sizes(body);
    std::mt19937_64 random(7);
    uint64_t before = autograd::RegionPlan::numMade();
    for (int call = 0; call < 60; ++call) {
      const auto n = static_cast<int64_t>(call == 0 ? 4 : 1 + random() % 40);
      EXPECT_TRUE(sizes.agree({n, 3}, n)) << n << " rows of\n" << body;
      if (HasFatalFailure()) return;
      // The second call needs a plan for any size.
      if (call == 3) before = autograd::RegionPlan::numMade();
    }
    EXPECT_EQ(autograd::RegionPlan::numMade(), before) << body;
  }
}

// What an operator repeats may be one row at times, and equal sizes may be so by chance.
TEST_F(Regions, SizesThatAreOneOrEqualAtTimes) {
  setJitMode(JitMode::Background);
  setJitThreshold(1'000'000);
  for (const char* body : {"    out = torch.softmax(x, 0) * b[0:3] + x.mean()",
                           "    out = x * x.sum(0, True) * w.sum(0) + torch.tanh(x)"}) {
    Sizes sizes(body);
    for (const int64_t n : {1, 3, 1, 5, 3, 2, 1, 7}) {
      EXPECT_TRUE(sizes.agree({n, 3}, n)) << body;
      EXPECT_TRUE(sizes.agree({2, n, 3}, n)) << body;
      EXPECT_TRUE(sizes.agree({n, n, 3}, n)) << body;
      if (HasFatalFailure()) return;
    }
  }
}

// ---- losses that are differentiated where they are computed ----

uint64_t nodesOnTape(const std::string& source, const char* limits) {
  setOptimizationLimits(limits);
  const Program program = compile(source);
  program.call("main", {});
  const uint64_t before = autograd::Node::nextSequence();
  program.call("main", {});
  setOptimizationLimits("");
  return autograd::Node::nextSequence() - before;
}

// Whether a graph and the call that differentiates it are one: then the tape has fewer nodes.
bool joins(const std::string& source) {
  return nodesOnTape(source, "") < nodesOnTape(source, "form_groups=0");
}

std::string step(const std::string& rest, const std::string& flag = "True") {
  return fmt::format(R"(
def loss_of(x: Tensor, w: Tensor, b: Tensor, y: Tensor) -> Tensor:
    h = torch.nn.functional.gelu(torch.nn.functional.linear(x, w, b))
    h = torch.nn.functional.layer_norm(h, [4], b, b) if {} else h
    return torch.nn.functional.cross_entropy(h, y)
def main() -> List[Tensor]:
    x = torch.sin(torch.arange(6., dtype=torch.float64).reshape([2, 3]))
    w = torch.cos(torch.arange(12., dtype=torch.float64).reshape([4, 3])).requires_grad_()
    b = torch.sin(torch.arange(4., dtype=torch.float64)).requires_grad_()
    found: List[Tensor] = []
    for i in range(3):
        loss = loss_of(x, w, b, torch.tensor([3, 1]))
{}
    return found
)",
                     flag, rest);
}

TEST_F(Regions, LossesDifferentiatedWhereTheyAreComputed) {
  for (const char* rest : {R"(        g = torch.autograd.grad([loss], [w, b])
        dw, db = g[0], g[1]
        assert dw is not None and db is not None
        with torch.no_grad():
            w.sub_(dw * 0.1)
            b.sub_(db * 0.1)
        found.append(loss.detach())
        found.append(dw))",
                           R"(        loss.backward()
        for p in [w, b]:
            g = p.grad
            assert g is not None
            with torch.no_grad():
                p.sub_(g * 0.1)
            found.append(g.clone())
        found.append(loss.detach()))",
                           R"(        params = [b]
        for g in torch.autograd.grad([loss], params):
            assert g is not None
            found.append(g)
            with torch.no_grad():
                params[0].sub_(g * float(loss)))"}) {
    for (const char* flag : {"True", "False"}) {
      const std::string source = step(rest, flag);
      EXPECT_TRUE(joins(source)) << source;
      expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
    }
  }
}

// A region that draws keeps its turn when it is joined with the call that differentiates it, and is
// not joined past others that draw.
TEST_F(Regions, LossesThatDrawKeepTheirTurn) {
  for (const bool between : {false, true}) {
    const std::string source = fmt::format(R"(
def main() -> List[Tensor]:
    torch.manual_seed(1)
    e = torch.randn([7, 6], dtype=torch.float64).requires_grad_()
    w = torch.randn([6, 6], dtype=torch.float64).requires_grad_()
    x, y = torch.randint(0, 7, [5]), torch.randint(0, 6, [5])
    found: List[Tensor] = []
    for i in range(3):
        h = torch.nn.functional.dropout(torch.nn.functional.embedding(x, e), 0.2, i != 1)
        h = h + torch.nn.functional.scaled_dot_product_attention(h, torch.mm(h, w), h)
        h = torch.nn.functional.dropout(torch.nn.functional.layer_norm(torch.mm(h, w), [6]), 0.4)
        loss = torch.nn.functional.cross_entropy(h, y)
        r = torch.{}([2])
        for g in torch.autograd.grad([loss], [e, w]):
            assert g is not None
            found.append(g)
        found.extend([loss.detach(), r, torch.rand([2])])
    return found
)",
                                           between ? "rand" : "zeros");
    EXPECT_EQ(joins(source), !between);
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-10);
  }
}

// Whoever else may ask the tape for the loss finds it there.
TEST_F(Regions, LossesThatOthersReadStayOnTheTape) {
  for (const char* rest : {R"(        dw = torch.autograd.grad([loss], [w], create_graph=True)[0]
        assert dw is not None
        again = torch.autograd.grad([(dw * dw).sum()], [w])[0]
        assert again is not None
        found.append(again))",
                           R"(        dw = torch.autograd.grad([loss], [w], retain_graph=True)[0]
        db = torch.autograd.grad([loss], [b])[0]
        assert dw is not None and db is not None
        found.extend([dw, db]))",
                           R"(        found.append(loss)
        g = torch.autograd.grad([loss], [w])[0]
        assert g is not None
        found.append(g))",
                           R"(        other = loss * 2
        g = torch.autograd.grad([loss], [w], retain_graph=True)[0]
        assert g is not None
        found.append(g)
        g = torch.autograd.grad([other], [w])[0]
        assert g is not None
        found.append(g))"}) {
    const std::string source = step(rest);
    EXPECT_FALSE(joins(source)) << source;
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
  }
}

// Gradients that flow on, parameters that are one tensor, and errors are the tape's.
TEST_F(Regions, JointGraphsLeaveToTheTapeWhatIsItsOwn) {
  const char* const kProgram = R"(
def main() -> List[Tensor]:
    w = torch.tensor([0.5, -0.25, 2.], dtype=torch.float64).requires_grad_()
    b = torch.tensor([1., 2., 3.], dtype=torch.float64).requires_grad_()
{}
    found: List[Tensor] = []
    for g in torch.autograd.grad([loss], [w, b], allow_unused={}):
        found.append(torch.full([3], 7., dtype=torch.float64) if g is None else g)
    return found
)";
  for (const char* body :
       {"    v = torch.sort(w)[0]\n    loss = (torch.softmax(v * b, 0) * w).sum()",
        "    v = w\n    loss = (torch.softmax(v * w, 0) * b).sum()",
        "    loss = (torch.softmax(w, 0) * torch.tensor([1., 2., 3.], dtype=torch.float64)).sum()",
        "    v = w.detach()\n    loss = (torch.softmax(v * w, 0) * b).sum()"}) {
    const std::string source = fmt::format(fmt::runtime(kProgram), body, "True");
    expectSame(source, outcomeOf(source, true), outcomeOf(source, false), 1e-12);
  }
  for (const char* body :
       {"    loss = (torch.softmax(w, 0) * 2.).sum()", "    loss = torch.softmax(w, 0) * b",
        "    loss = (torch.softmax(w.detach(), 0) * b.detach()).sum()"}) {
    const std::string source = fmt::format(fmt::runtime(kProgram), body, "False");
    std::string messages[2];
    for (const bool graphs : {false, true}) {
      try {
        outcomeOf(source, graphs);
      } catch (const RuntimeError& e) {
        messages[graphs ? 1 : 0] = e.brief();
      }
    }
    EXPECT_NE(messages[0], "") << source;
    EXPECT_EQ(messages[0], messages[1]) << source;
  }
}

}  // namespace
}  // namespace wick::regions_test
