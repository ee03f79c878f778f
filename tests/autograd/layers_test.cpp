// The derivatives of layers and losses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "wick.h"

namespace wick::layers_test {
namespace {

IValue run(const std::string& body) {
  const Program program = compile(body);
  return program.call("main", {});
}

double numberOf(const std::string& body) {
  return run(body).toTensor().detach().to(DType::Double).item<double>();
}

// Expressions of x [2, 4, 6] and w [4, 2, 3], and whether they have second derivatives.
class Layers : public testing::TestWithParam<std::pair<const char*, bool>> {};

#define WICK_F "torch.nn.functional."
constexpr const char* kTwice[] = {
    "torch.conv1d(x, w, None, [2], [1], [1], 2)",
    WICK_F "conv1d(x, w[:, :, :2], None, 1, 'same', 1, 2)",
    "torch.conv_transpose1d(x, w, None, [3], [1], [2], 2, [1])",
    "torch.conv2d(x.reshape([2, 2, 2, 6]), w.reshape([4, 2, 1, 3]), w[0].reshape([6])[:4])",
    "torch.conv3d(x.reshape([1, 2, 2, 2, 6]), w.reshape([4, 2, 1, 1, 3]), None, [1, 1, 2])",
    WICK_F "max_pool1d(x, 3, 2, 1)",
    WICK_F "max_pool2d(x, 2)",
    WICK_F "avg_pool1d(x, 3, 2, 1, True, False)",
    WICK_F "avg_pool2d(x, [3, 2], [1, 2], [1, 0])",
    WICK_F "adaptive_avg_pool2d(x, [3, 4])",
    WICK_F "adaptive_max_pool1d(x, 4)",
    WICK_F "pad(x, [2, 3], 'reflect')",
    WICK_F "pad(x, [1, -1], 'replicate')",
    WICK_F "pad(x, [1, 2], 'circular')",
    WICK_F "pad(x, [1, 2, -1, 0])",
    WICK_F "unfold(x.reshape([1, 2, 4, 6]), 2, 1, 1, [2, 1])",
    WICK_F "interpolate(x, size=[9], mode='linear')",
    WICK_F "interpolate(x.unsqueeze(0), size=[3, 9], mode='bicubic', align_corners=True)",
    WICK_F "interpolate(x.unsqueeze(0), scale_factor=[0.6, 1.7], mode='bilinear')",
    WICK_F "interpolate(x, size=[4], mode='nearest-exact')",
    WICK_F "batch_norm(x, None, None, w[:, 0, 0], w[:, 0, 1], True)",
    WICK_F
    "batch_norm(x, 0.3 * torch.ones([4], dtype=torch.float64), 1.5 * torch.ones([4], "
    "dtype=torch.float64), w[:, 0, 0], w[:, 0, 1], False)",
    WICK_F "instance_norm(x)",
    WICK_F "group_norm(x, 2, w[:, 0, 0], w[:, 0, 1])",
    WICK_F "layer_norm(x, [6], w[0].reshape([6]), w[1].reshape([6]))",
    WICK_F "local_response_norm(x, 3)",
    WICK_F "glu(x, 2)",
    "torch.softmax(x, 1)",
    "torch.log_softmax(x, 2)",
    WICK_F
    "cross_entropy(x, torch.tensor([[0, 1, 2, 3, 0, 1], [3, 3, 2, 1, 0, 1]]), 0.7 * "
    "torch.ones([4], dtype=torch.float64))",
    WICK_F "cross_entropy(x, torch.softmax(x * 2, 1), label_smoothing=0.2)",
    WICK_F
    "binary_cross_entropy(torch.sigmoid(x), 0.3 * torch.ones([2, 4, 6], dtype=torch.float64))",
    WICK_F "binary_cross_entropy_with_logits(x[0], x[1], reduction='sum')",
    WICK_F "huber_loss(x[0], x[1], delta=0.1)",
    WICK_F "kl_div(x[0], torch.sigmoid(x[1]))",
    WICK_F "cosine_similarity(x[0], x[1])",
    WICK_F "triplet_margin_loss(x[0], x[1], w.reshape([4, 6]))",
    WICK_F "multi_margin_loss(x[0], torch.tensor([1, 5, 0, 2]))",
    "torch.embedding(w.reshape([8, 3]), torch.tensor([1, 7, 1]))",
    WICK_F "pixel_shuffle(x.reshape([1, 4, 2, 6]), 2)",
    "torch.scaled_dot_product_attention(x, x * 2, x.flip([1]))",
    "torch.gru(x, w[:, :, 0].reshape([1, 4, 2]), [x.reshape([-1])[:36].reshape([6, 6]), "
    "w.reshape([-1])[:12].reshape([6, 2])], False, 1, 0., True, False, False)[0]",
};
constexpr const char* kOnce[] = {
    WICK_F
    "grid_sample(x.reshape([1, 2, 4, 6]), w.reshape([1, 3, 4, 2]), 'bilinear', 'border', False)",
    WICK_F
    "grid_sample(x.reshape([1, 2, 4, 6]), w.reshape([1, 3, 4, 2]), 'bicubic', 'zeros', True)",
    "torch.ctc_loss(torch.log_softmax(x.transpose(0, 1), 2), torch.tensor([[1, 1], [2, 3]]), [4, "
    "3], "
    "[2, 2])",
    WICK_F
    "embedding_bag(torch.tensor([1, 7, 1, 0]), w.reshape([8, 3]), torch.tensor([0, 1]), "
    "mode='mean', padding_idx=0)",
};
#undef WICK_F

std::vector<std::pair<const char*, bool>> expressions() {
  std::vector<std::pair<const char*, bool>> out;
  for (const char* e : kTwice) out.emplace_back(e, true);
  for (const char* e : kOnce) out.emplace_back(e, false);
  return out;
}
INSTANTIATE_TEST_SUITE_P(Expressions, Layers, testing::ValuesIn(expressions()));

// How far gradients, and gradients of gradients, are from differences of values.
TEST_P(Layers, GradientsAreDifferences) {
  const auto [expression, twice] = GetParam();
  const std::string program = fmt::format(R"(
def weighed(t: Tensor) -> Tensor:
    return ((t + 0.4 * t * t) * torch.cos(torch.arange(t.numel(), dtype=torch.float64) * 1.7).reshape(t.size())).sum()
def value(x: Tensor, w: Tensor) -> Tensor:
    return weighed({})
def slope(x: Tensor, w: Tensor) -> List[Tensor]:
    x = x.detach().clone().requires_grad_()
    w = w.detach().clone().requires_grad_()
    out: List[Tensor] = []
    for g in torch.autograd.grad([value(x, w)], [x, w], allow_unused=True):
        out.append(torch.zeros([1]) if g is None else g)
    return out
def slope_value(x: Tensor, w: Tensor) -> Tensor:
    total = torch.zeros([], dtype=torch.float64)
    for g in torch.autograd.grad([value(x, w)], [x, w], create_graph=True, allow_unused=True):
        if g is not None:
            total = total + weighed(g)
    return total
def slope_of_slope(x: Tensor, w: Tensor) -> List[Tensor]:
    x = x.detach().clone().requires_grad_()
    w = w.detach().clone().requires_grad_()
    out: List[Tensor] = []
    for g in torch.autograd.grad([slope_value(x, w)], [x, w], allow_unused=True):
        out.append(torch.zeros([1]) if g is None else g)
    return out
def at(x: Tensor, w: Tensor, again: bool) -> Tensor:
    if again:
        return slope_value(x.detach().clone().requires_grad_(), w.detach().clone().requires_grad_()).detach()
    return value(x, w)
def furthest(again: bool) -> Tensor:
    x = torch.sin(torch.arange(48, dtype=torch.float64) * 1.3).reshape([2, 4, 6])
    w = (torch.cos(torch.arange(24, dtype=torch.float64) * 2.9) * 0.4 + 0.5).reshape([4, 2, 3])
    slopes = slope_of_slope(x, w) if again else slope(x, w)
    worst = torch.zeros([], dtype=torch.float64)
    for trial in range(3):
        dx = torch.cos(torch.arange(48, dtype=torch.float64) * (0.7 + trial)).reshape(x.size()) * 1e-6
        dw = torch.sin(torch.arange(24, dtype=torch.float64) * (1.9 + trial)).reshape(w.size()) * 1e-6
        step = (at(x + dx, w + dw, again) - at(x - dx, w - dw, again)) / 2
        told = (slopes[0] * dx).sum() + (slopes[1] * dw).sum()
        worst = torch.maximum(worst, torch.abs(step - told) / (1e-6 * (1 + torch.abs(told) * 1e6)))
    return worst
def main() -> Tensor:
    return furthest({})
)",
                                          expression, "{}");
  EXPECT_LT(numberOf(fmt::format(fmt::runtime(program), "False")), 1e-5) << expression;
  if (twice) {
    EXPECT_LT(numberOf(fmt::format(fmt::runtime(program), "True")), 1e-4) << expression;
  }
}

TEST(BatchNorm, KeepsStatisticsWhileRecording) {
  EXPECT_NEAR(numberOf(R"(
def main() -> Tensor:
    x = torch.tensor([[1.], [3.]]).requires_grad_()
    mean = torch.zeros([1])
    var = torch.ones([1])
    y = torch.nn.functional.batch_norm(x, mean, var, None, None, True, 0.5)
    return mean * 100 + var
)"),
              101.5, 1e-4);
}

// The statistics that the first call read have changed when its gradient is taken.
TEST(BatchNorm, TwoTrainingStepsBeforeTheGradient) {
  EXPECT_NO_THROW(run(R"(
def main() -> Tensor:
    x = torch.tensor([[1.], [3.]]).requires_grad_()
    mean = torch.zeros([1])
    var = torch.ones([1])
    y = torch.nn.functional.batch_norm(x, mean, var, None, None, True)
    z = torch.nn.functional.batch_norm(x * 2, mean, var, None, None, True)
    (y * z).sum().backward()
    return mean
)"));
}

TEST(Dropout, InPlaceKeepsTheSameElements) {
  EXPECT_EQ(numberOf(R"(
def main() -> Tensor:
    x = torch.ones([100]).requires_grad_()
    y = torch.dropout_(x * 3, 0.5, True)
    g = torch.autograd.grad([y.sum()], [x])[0]
    assert g is not None
    return (g - y.detach()).abs().sum()
)"),
            0);
}

}  // namespace
}  // namespace wick::layers_test
