// Kernels that only gradients use: of float32, where images are small and large, against the same
// in double, which goes other ways.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "wick.h"

namespace wick {
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

TEST(TrainingKernels, WeightsOfOtherRanksAreRefused) {
  EXPECT_THROW(numberOf(R"(
def main() -> Tensor:
    return torch.conv2d(torch.ones([1, 2, 3, 3, 3]), torch.ones([4, 2, 1, 1, 1]).requires_grad_())
)"),
               RuntimeError);
}

}  // namespace
}  // namespace wick
