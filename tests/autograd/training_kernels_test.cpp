// Kernels that only gradients use: of float32, where images are small and large, against the same
// in double, which goes other ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "wick.h"

namespace wick::training_kernels_test {
namespace {

double numberOf(const std::string& body) {
  return compile(body).call("main", {}).toTensor().detach().to(DType::Double).item<double>();
}

struct Case {
  const char* x;  // sizes
  const char* w;
  const char* expression;
};

class TrainingKernels : public testing::TestWithParam<Case> {};

#define WICK_F "torch.nn.functional."
constexpr Case kCases[] = {
    // Few steps of large kernels: products with the weight as it lies in memory.
    {"[2, 8, 4, 4]", "[32, 8, 3, 3]", "torch.conv2d(x, w, None, [1, 1], [1, 1])"},
    {"[2, 8, 7, 6]", "[32, 8, 3, 3]", "torch.conv2d(x, w, w[:, 0, 0, 0], [2, 2], [1, 1])"},
    {"[1, 8, 9, 8]", "[32, 8, 3, 2]", "torch.conv2d(x, w, None, [2, 3], [0, 1], [2, 1])"},
    {"[1, 8, 9, 8]", "[64, 8, 3, 3]", "torch.conv2d(x, w, None, [4, 4])"},
    {"[2, 16, 3, 3]", "[32, 16, 1, 1]", "torch.conv2d(x, w, w[:, 1, 0, 0])"},
    {"[2, 16, 5, 5]", "[32, 16, 1, 1]", "torch.conv2d(x, w, None, [2, 2])"},
    {"[2, 16, 3, 3]", "[32, 16, 1, 1]", "torch.conv2d(x, w, None, [1, 1], [1, 1])"},
    {"[2, 4, 9]", "[40, 4, 3]", "torch.conv1d(x, w, None, [2], [2], [2])"},
    {"[1, 2, 3, 4, 3]", "[50, 2, 2, 3, 2]", "torch.conv3d(x, w, None, [1, 2, 1], [1, 1, 0])"},
    {"[8, 4, 4]", "[32, 8, 3, 3]", "torch.conv2d(x, w, None, [1, 1], [1, 1])"},
    {"[2, 8, 4, 4]", "[32, 8, 3, 3]",
     "torch.conv2d(x.contiguous(memory_format=torch.channels_last), w, None, [1, 1], [1, 1])"},
    // Many steps, and several groups: oneDNN's own convolutions.
    {"[2, 4, 12, 12]", "[8, 4, 3, 3]", "torch.conv2d(x, w, None, [1, 1], [1, 1])"},
    {"[2, 16, 4, 4]", "[32, 4, 3, 3]", "torch.conv2d(x, w, None, [1, 1], [1, 1], [1, 1], 4)"},
    {"[2, 8, 4, 4]", "[8, 16, 3, 3]", "torch.conv_transpose2d(x, w, None, [2, 2], [1, 1])"},
    // Planes of any length.
    {"[3, 4, 5, 7]", "[4, 2]", WICK_F "batch_norm(x, None, None, w[:, 0], w[:, 1], True)"},
    {"[2, 4, 40, 41]", "[4, 2]", WICK_F "batch_norm(x + 5, None, None, w[:, 0], w[:, 1], True)"},
    {"[2, 3]", "[3, 2]", WICK_F "batch_norm(x, None, None, None, w[:, 1], True)"},
    {"[2, 6, 5, 7]", "[6, 2]", WICK_F "group_norm(x, 3, w[:, 0], w[:, 1])"},
    {"[2, 6, 40]", "[6, 2]", WICK_F "group_norm(x - 3, 2)"},
    {"[2, 4, 8, 9]", "[4, 2]",
     WICK_F "group_norm(x.contiguous(memory_format=torch.channels_last), 2, w[:, 0], w[:, 1])"},
    {"[2, 3, 5, 6]", "[1]", WICK_F "interpolate(x, scale_factor=2.0)"},
    {"[2, 3, 5, 6]", "[1]", WICK_F "interpolate(x, size=[3, 11], mode='bilinear')"},
    {"[2, 9, 7, 8]", "[1]", WICK_F "max_pool2d(x, 3, 2, 1)"},
    {"[2, 3, 7, 8]", "[1]", WICK_F "max_pool2d(x, 2)"},
    // Layers of an LSTM: w_ih, w_hh and both biases are columns.
    {"[5, 2, 3]", "[8, 7]",
     "torch.lstm(x, [x[0:1, :, :2], x[1:2, :, 1:]], [w[:, :3], w[:, 3:5], w[:, 5], w[:, 6]], True, "
     "1, 0.0, True, False, False)[0]"},
    {"[3, 2, 9]", "[160, 54]",
     "torch.cat([t.flatten() for t in torch.lstm(x, [x[:2, :, :1].expand(2, 2, 20), x[1:, :, "
     "2:3].expand(2, 2, 20)], [w[:80, :9], w[:80, 9:29], w[80:, :9], w[80:, 9:29]], False, 1, 0.0, "
     "True, True, False)])"},
};
#undef WICK_F
INSTANTIATE_TEST_SUITE_P(Cases, TrainingKernels, testing::ValuesIn(kCases));

// Values, gradients and gradients of gradients.
TEST_P(TrainingKernels, AgreeWithDouble) {
  const Case& c = GetParam();
  const std::string program =
      fmt::format(R"(
def weighed(t: Tensor) -> Tensor:
    return (t * torch.cos(torch.arange(t.numel(), dtype=torch.float64) * 1.7).reshape(t.size()).to(t.dtype)).sum()
def made(dtype: int) -> List[Tensor]:
    xs: List[int] = {x}
    ws: List[int] = {w}
    nx = 1
    for s in xs:
        nx *= s
    nw = 1
    for s in ws:
        nw *= s
    x = torch.sin(torch.arange(nx, dtype=torch.float64) * 1.3).reshape(xs).to(dtype).requires_grad_()
    w = torch.cos(torch.arange(nw, dtype=torch.float64) * 2.9).reshape(ws).to(dtype).requires_grad_()
    out = {expression}
    found = [out.detach()]
    firsts = torch.autograd.grad([weighed(out * out)], [x, w], create_graph=True, allow_unused=True)
    total = torch.zeros([], dtype=dtype)
    for g in firsts:
        if g is not None:
            found.append(g.detach())
            total = total + weighed(g)
    if total.requires_grad:
        for g in torch.autograd.grad([total], [x, w], allow_unused=True):
            if g is not None:
                found.append(g)
    return found
def main() -> Tensor:
    a = made(torch.float32)
    b = made(torch.float64)
    worst = torch.zeros([], dtype=torch.float64)
    for i in range(len(a)):
        assert a[i].dtype == torch.float32 and a[i].size() == b[i].size()
        worst = torch.maximum(worst, (a[i].to(torch.float64) - b[i]).abs().max() / (1 + b[i].abs().max()))
    return worst
)",
                  fmt::arg("x", c.x), fmt::arg("w", c.w), fmt::arg("expression", c.expression));
  EXPECT_LT(numberOf(program), 2e-5) << c.expression;
}

// The layer and its gradient against steps that the tape follows, to the second order.
TEST(TrainingKernels, LayersOfAnLstmAreTheirSteps) {
  for (const char* steps : {"5", "1", "0"}) {
    const std::string program = fmt::format(R"(
def values(sizes: List[int], factor: float) -> Tensor:
    n = 1
    for s in sizes:
        n *= s
    return torch.sin(torch.arange(n, dtype=torch.float64) * factor).reshape(sizes).requires_grad_()
def weighed(t: Tensor) -> Tensor:
    return (t * torch.cos(torch.arange(t.numel(), dtype=torch.float64) * 1.7).reshape(t.size())).sum()
def stepped(gates: Tensor, h: Tensor, c: Tensor, w: Tensor, b: Tensor, reverse: bool) -> List[Tensor]:
    outputs: List[Tensor] = []
    eye = torch.eye(12, dtype=torch.float64)
    zero = torch.zeros([12], dtype=torch.float64)
    for i in range(gates.size(0)):
        h, c = torch.lstm_cell(gates[gates.size(0) - 1 - i if reverse else i], [h, c], eye, w, zero, b)
        outputs.append(h)
    if reverse:
        outputs.reverse()
    return [torch.stack(outputs) if len(outputs) > 0 else torch.empty([0, 2, 3], dtype=torch.float64), h, c]
def found(own: bool, reverse: bool) -> List[Tensor]:
    inputs = [values([{steps}, 2, 12], 1.3), values([2, 3], 0.7), values([2, 3], 2.1), values([12, 3], 1.9), values([12], 0.9)]
    gates, h, c, w, b = inputs
    if own:
        out, last_h, last_c, cells, activated = torch.ops.wick.lstm_layer(gates, h, c, w, b, reverse)
        results = [out, last_h, last_c]
    else:
        results = stepped(gates, h, c, w, b, reverse)
    loss = weighed(results[0]) + weighed(results[1] * results[1]) + weighed(results[2])
    all = [r.detach() for r in results]
    firsts = torch.autograd.grad([loss], inputs, create_graph=True, allow_unused=True)
    total = torch.zeros([], dtype=torch.float64)
    for g in firsts:
        if g is None:
            all.append(torch.zeros([1]))
        else:
            all.append(g.detach() if g.numel() > 0 and bool((g != 0).any()) else torch.zeros([1]))
            total = total + weighed(g * g)
    for g in torch.autograd.grad([total], inputs, allow_unused=True):
        if g is None:
            all.append(torch.zeros([1]))
        else:
            all.append(g if g.numel() > 0 and bool((g != 0).any()) else torch.zeros([1]))
    return all
def main() -> Tensor:
    worst = torch.zeros([], dtype=torch.float64)
    for reverse in [False, True]:
        a = found(True, reverse)
        b = found(False, reverse)
        assert len(a) == 13
        for i in range(len(a)):
            assert a[i].size() == b[i].size()
            if a[i].numel() > 0:
                worst = torch.maximum(worst, (a[i] - b[i]).abs().max())
    return worst
)",
                                            fmt::arg("steps", steps));
    EXPECT_LT(numberOf(program), 1e-12) << steps << " steps";
  }
}

TEST(TrainingKernels, WeightsOfOtherRanksAreRefused) {
  EXPECT_THROW(numberOf(R"(
def main() -> Tensor:
    return torch.conv2d(torch.ones([1, 2, 3, 3, 3]), torch.ones([4, 2, 1, 1, 1]).requires_grad_())
)"),
               RuntimeError);
}

}  // namespace
}  // namespace wick::training_kernels_test
