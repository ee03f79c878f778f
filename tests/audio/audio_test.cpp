// torchaudio's operators against what they are defined by: recurrences and sums over all ways,
// written out as programs; gradients against differences.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "core/error.h"
#include "wick.h"

namespace wick::audio_test {
namespace {

const char* const kHelpers = R"(
def wave(sizes: List[int], k: float, a: float) -> Tensor:
    n = 1
    for s in sizes:
        n *= s
    return torch.sin(torch.arange(n, dtype=torch.float64) * k + a).view(sizes)

def weighted(t: Tensor) -> Tensor:
    return (t * wave(t.size(), 1.3, 0.2).to(t.dtype)).sum()

def lfilter_by_hand(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    y = torch.zeros_like(x)
    for i in range(x.size(0)):
        for c in range(x.size(1)):
            for n in range(x.size(2)):
                sum = torch.zeros([], dtype=x.dtype)
                for k in range(b.size(1)):
                    if n - k >= 0:
                        sum = sum + b[c, k] * x[i, c, n - k]
                        if k > 0:
                            sum = sum - a[c, k] * y[i, c, n - k]
                y[i, c, n] = sum / a[c, 0]
    return y

def lfilter_differs() -> float:
    x = wave([2, 3, 9], 0.7, 0.0)
    a = torch.tensor([[1.5, -0.4, 0.2], [0.8, 0.3, -0.1], [-2.0, 0.5, 0.5]], dtype=torch.float64)
    b = wave([3, 3], 1.9, 0.4)
    return float((torch.ops.torchaudio._lfilter(x, a, b) - lfilter_by_hand(x, a, b)).abs().max())

def lfilter_of_one_row_differs() -> float:
    x = wave([2, 4, 7], 0.7, 0.0)
    a = torch.tensor([1.5, -0.4, 0.2, 0.05], dtype=torch.float64)
    b = wave([4], 1.9, 0.4)
    whole = torch.ops.torchaudio._lfilter(x, a, b)
    parts = lfilter_by_hand(x, a.expand(4, 4), b.expand(4, 4))
    return float((whole - parts).abs().max())

def lfilter_gradient_differs() -> float:
    x = wave([2, 2, 6], 0.7, 0.0).requires_grad_()
    a = torch.tensor([[1.5, -0.4, 0.2], [0.8, 0.3, -0.1]], dtype=torch.float64).requires_grad_()
    b = wave([2, 3], 1.9, 0.4).requires_grad_()
    operands = [x, a, b]
    grads = torch.autograd.grad([weighted(torch.ops.torchaudio._lfilter(x, a, b))], operands)
    worst = 0.0
    for i in range(3):
        g = grads[i]
        assert g is not None
        with torch.no_grad():
            flat = operands[i].detach().view(-1)
            for j in range(flat.numel()):
                kept = float(flat[j])
                flat[j] = kept + 1e-6
                more = weighted(torch.ops.torchaudio._lfilter(x, a, b))
                flat[j] = kept - 1e-6
                less = weighted(torch.ops.torchaudio._lfilter(x, a, b))
                flat[j] = kept
                worst = max(worst, abs(float((more - less) / 2e-6 - g.view(-1)[j])))
    return worst

def core_loop_differs() -> float:
    x = wave([2, 9], 0.7, 0.0)
    flipped = torch.tensor([0.2, -0.4, 1.0], dtype=torch.float64)
    out = torch.zeros(2, 11, dtype=torch.float64)
    torch.ops.torchaudio._lfilter_core_loop(x, flipped, out)
    a = flipped.flip(0).expand(1, 3)
    b = torch.tensor([[1.0, 0.0, 0.0]], dtype=torch.float64)
    return float((out[:, 2:] - lfilter_by_hand(x.unsqueeze(1), a, b).squeeze(1)).abs().max())

def overdrive_differs() -> float:
    x = wave([2, 8], 0.7, 0.0)
    raised = wave([2, 8], 1.1, 0.3)
    last_in = torch.zeros(2, dtype=torch.float64)
    last_out = torch.zeros(2, dtype=torch.float64)
    out = torch.zeros(2, 8, dtype=torch.float64)
    torch.ops.torchaudio._overdrive_core_loop(x, raised, last_in, last_out, out)
    worst = float((last_in - raised[:, 7]).abs().max())
    for c in range(2):
        before = 0.0
        state = 0.0
        for n in range(8):
            state = float(raised[c, n]) - before + 0.995 * state
            before = float(raised[c, n])
            worst = max(worst, abs(float(x[c, n]) * 0.5 + state * 0.75 - float(out[c, n])))
        worst = max(worst, abs(float(last_out[c]) - state))
    return worst

# The probability of all ways from a cell, by recursion of depth times + targets made a loop over
# bit patterns: which of the steps but the last give a target.
def likelihood(p: Tensor, targets: List[int], times: int) -> Tensor:
    total = torch.zeros([], dtype=p.dtype)
    steps = times - 1 + len(targets)
    for pattern in range(1 << steps):
        t = 0
        u = 0
        way = torch.zeros([], dtype=p.dtype)
        fits = True
        for i in range(steps):
            if (pattern >> i) & 1 == 1:
                if u < len(targets):
                    way = way + p[t, u, targets[u]]
                    u += 1
                else:
                    fits = False
            else:
                if t < times - 1:
                    way = way + p[t, u, 0]
                    t += 1
                else:
                    fits = False
        if fits:
            total = total + torch.exp(way + p[t, u, 0])
    return torch.log(total)

def rnnt_differs(fused: bool, clamp: float) -> Tuple[float, float]:
    logits = wave([2, 4, 4, 5], 2.3, 0.1).float().requires_grad_()
    targets = torch.tensor([[1, 2, 3], [4, 4, 0]], dtype=torch.int32)
    times = torch.tensor([4, 3], dtype=torch.int32)
    counts = torch.tensor([3, 2], dtype=torch.int32)
    p = torch.log_softmax(logits, -1) if fused else logits
    costs, other = torch.ops.torchaudio.rnnt_loss(logits, targets, times, counts, 0, clamp, fused)
    expected = torch.stack([-likelihood(p[0], [1, 2, 3], 4), -likelihood(p[1], [4, 4], 3)])
    wanted = torch.autograd.grad([expected[0] * 2 + expected[1]], [logits], retain_graph=True)[0]
    found = torch.autograd.grad([costs[0] * 2 + costs[1]], [logits])[0]
    assert wanted is not None and found is not None
    if clamp > 0:
        scale = torch.tensor([2.0, 1.0]).view(2, 1, 1, 1)
        wanted = (wanted / scale).clamp(-clamp, clamp) * scale
    return float((costs - expected).abs().max()), float((found - wanted).abs().max())

# What a path of classes says: repeats and then blanks are left out.
def said(path: List[int]) -> List[int]:
    out: List[int] = []
    last = -1
    for c in path:
        if c != last and c != 0:
            out.append(c)
        last = c
    return out

# How much better the best path is than the one that was found.
def alignment_lacks(labels: List[int], times: int, k: float) -> float:
    scores = torch.log_softmax(wave([1, times, 3], k, 0.3), -1)
    paths, same = torch.ops.torchaudio.forced_align(
        scores, torch.tensor([labels], dtype=torch.int64), torch.tensor([times]),
        torch.tensor([len(labels)]), 0)
    found: List[int] = []
    total = 0.0
    for t in range(times):
        found.append(int(paths[0, t]))
        total += float(scores[0, t, int(paths[0, t])])
    assert said(found) == labels, str(found)
    best = -1e30
    for number in range(int(3 ** times)):
        path: List[int] = []
        rest = number
        sum = 0.0
        for t in range(times):
            path.append(rest % 3)
            sum += float(scores[0, t, rest % 3])
            rest = rest // 3
        if said(path) == labels:
            best = max(best, sum)
    return best - total
)";

Program& program() {
  static Program all = compile(kHelpers);
  return all;
}

TEST(Audio, FiltersAreTheirRecurrences) {
  for (const char* function : {"lfilter_differs", "lfilter_of_one_row_differs", "core_loop_differs",
                               "overdrive_differs"}) {
    EXPECT_LT(program().call(function, {}).toDouble(), 1e-12) << function;
  }
}

TEST(Audio, FiltersHaveGradients) {
  EXPECT_LT(program().call("lfilter_gradient_differs", {}).toDouble(), 1e-7);
}

TEST(Audio, TransducerLossSumsAllWays) {
  for (const bool fused : {true, false}) {
    for (const double clamp : {-1.0, 0.1}) {
      const IValue differs = program().call("rnnt_differs", {IValue(fused), IValue(clamp)});
      EXPECT_LT(differs[0].toDouble(), 1e-5) << fused << " " << clamp;
      EXPECT_LT(differs[1].toDouble(), 1e-5) << fused << " " << clamp;
    }
  }
}

TEST(Audio, AlignmentIsTheBestWay) {
  const std::vector<std::vector<int64_t>> texts = {{1}, {1, 2}, {2, 2}, {1, 2, 1}, {1, 1, 1}, {}};
  for (const std::vector<int64_t>& text : texts) {
    for (const int64_t times : {5, 6}) {
      for (const double k : {0.4, 1.7, 2.9, 5.3}) {
        const IValue lacks =
            program().call("alignment_lacks", {makeIntList(text), IValue(times), IValue(k)});
        EXPECT_LT(lacks.toDouble(), 1e-12) << testing::PrintToString(text) << times << " " << k;
      }
    }
  }
}

TEST(Audio, WrongArgumentsAreErrors) {
  const char* const kCalls[] = {
      "torch.ops.torchaudio._lfilter(torch.ones(1, 2, 4), torch.ones(3, 2), torch.ones(3, 2))",
      "torch.ops.torchaudio._lfilter(torch.ones(1, 2, 4), torch.ones(2, 0), torch.ones(2, 0))",
      "torch.ops.torchaudio._lfilter(torch.ones(1, 2, 4), torch.ones(2, 3), torch.ones(2, 2))",
      "torch.ops.torchaudio._lfilter_core_loop(torch.ones(2, 4), torch.ones(3), torch.ones(2, 5))",
      "torch.ops.torchaudio._lfilter_core_loop(torch.ones(2, 4), torch.ones(0), torch.ones(2, 3))",
      "torch.ops.torchaudio._lfilter_core_loop(torch.ones(2, 4), torch.ones(3), "
      "torch.ones(2, 6).double())",
      "torch.ops.torchaudio._lfilter_core_loop(torch.ones(2, 4), torch.ones(3), "
      "torch.ones(6, 2).t())",
      "loss([[9]], 2, 1)",
      "loss([[-1]], 2, 1)",
      "loss([[1]], 3, 1)",
      "loss([[1]], 0, 1)",
      "loss([[1]], 2, 2)",
      "loss([[1]], 2, -1)",
      "loss([[1, 1]], 2, 1)",
      "align([7], 4)",
      "align([-1], 4)",
      "align([1, 1, 1], 4)",
      "align([1], 3)",
  };
  const char* const kMore = R"(
def loss(targets: List[List[int]], times: int, count: int) -> Tensor:
    return torch.ops.torchaudio.rnnt_loss(
        torch.ones(1, 2, 2, 5), torch.tensor(targets, dtype=torch.int32),
        torch.tensor([times], dtype=torch.int32), torch.tensor([count], dtype=torch.int32),
        0, -1.0, True)[0]

def align(labels: List[int], times: int) -> Tensor:
    return torch.ops.torchaudio.forced_align(
        torch.zeros(1, 4, 3), torch.tensor([labels]), torch.tensor([times]),
        torch.tensor([len(labels)]), 0)[0]
)";
  for (const char* call : kCalls) {
    Program wrong =
        compile(std::string(kMore) + "def main() -> Tensor:\n    return " + call + "\n");
    EXPECT_THROW(wrong.call("main", {}), RuntimeError) << call;
  }
}

}  // namespace
}  // namespace wick::audio_test
