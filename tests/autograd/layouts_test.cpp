// Networks that train with the channels of their images innermost (passes/training_layout.h),
// against the same ones row by row.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "core/optimization_limit.h"
#include "ir/parser.h"
#include "passes/training_layout.h"
#include "wick.h"

namespace wick::layouts_test {
namespace {

std::vector<Tensor> tensorsOf(const IValue& list) {
  std::vector<Tensor> out;
  for (const IValue& e : list.elements()) out.push_back(e.toTensor().detach());
  return out;
}

std::vector<Tensor> run(const std::string& source, bool laid_out) {
  setOptimizationLimits(laid_out ? "" : "training_layout=0");
  std::vector<Tensor> out = tensorsOf(compile(source).call("main", {}));
  setOptimizationLimits("");
  return out;
}

void expectNear(const std::vector<Tensor>& a, const std::vector<Tensor>& b, double tolerance) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    ASSERT_EQ(DimVector(a[i].sizes()), DimVector(b[i].sizes())) << i;
    const Tensor x = a[i].to(DType::Double).contiguous(), y = b[i].to(DType::Double).contiguous();
    for (int64_t k = 0; k < x.numel(); ++k) {
      const double p = x.data<double>()[k], q = y.data<double>()[k];
      ASSERT_NEAR(p, q, tolerance * (1 + std::fabs(q))) << "element " << k << " of tensor " << i;
    }
  }
}

// A program that gives the loss and the gradients of x [2, 3, 12, 10] and of three weights; the
// body computes `out` of them, by conv() with a norm that has the channels' statistics.
std::string program(const std::string& body) {
  return fmt::format(R"(
def norm(x: Tensor) -> Tensor:
    w = torch.linspace(0.5, 1.5, x.size(1))
    return torch.batch_norm(x, w, w - 1.0, None, None, True, 0.1, 1e-5, False)
def main() -> List[Tensor]:
    torch.manual_seed(3)
    x = torch.randn([2, 3, 12, 10]).requires_grad_()
    w1 = (torch.randn([8, 3, 3, 3]) * 0.3).requires_grad_()
    w2 = (torch.randn([8, 8, 3, 3]) * 0.2).requires_grad_()
    w3 = (torch.randn([5, 16, 1, 1]) * 0.3).requires_grad_()
{}
    loss = torch.cross_entropy_loss(out, torch.tensor([1, 3]))
    found = [loss]
    for g in torch.autograd.grad([loss], [x, w1, w2, w3]):
        assert g is not None
        found.append(g)
    return found
)",
                     body);
}

const char* const kBodies[] = {
    // Batch normalization, in place, pooling and a skip connection.
    "    a = torch.relu_(norm(torch.conv2d(x, w1, None, 1, 1)))\n"
    "    b = torch.relu(norm(torch.conv2d(a, w2, None, 1, 1)) + a)\n"
    "    c = torch.max_pool2d(torch.cat([a, b], 1), [2, 2])\n"
    "    out = torch.flatten(torch.adaptive_avg_pool2d(torch.conv2d(c, w3), [1, 1]), 1)\n",
    // Group normalization, upsampling, strides.
    "    a = torch.silu(torch.group_norm(torch.conv2d(x, w1, None, 2, 1), 4))\n"
    "    b = torch.group_norm(torch.conv2d(a, w2, None, 1, 1), 2)\n"
    "    u = torch.upsample_nearest2d(torch.cat([a, b], 1), [12, 10])\n"
    "    v = torch.upsample_bilinear2d(u, [9, 11], False)\n"
    "    out = torch.conv2d(v, w3).mean([2, 3])\n",
    // Pictures of a few pixels, whose convolutions are matrix products.
    "    s = torch.avg_pool2d(torch.conv2d(x, w1, None, 2, 1), [3, 3])\n"
    "    a = torch.tanh(torch.conv2d(s, w2, None, 1, 1))\n"
    "    out = torch.conv2d(torch.cat([a, s], 1), w3).sum([2, 3])\n",
};

TEST(TrainingLayout, GivesTheSameGradients) {
  for (const char* body : kBodies) {
    const std::string source = program(body);
    SCOPED_TRACE(source);
    expectNear(run(source, true), run(source, false), 2e-5);
  }
}

// A pass counts the convolutions whose strides nobody sees.
size_t laidOut(const std::string& rest) {
  const std::shared_ptr<Graph> graph = parseGraph(
      "graph(%x : Tensor, %w : Tensor, %b : Tensor, %c : bool):\n"
      "  %none : NoneType = prim::Constant()\n"
      "  %one : int = prim::Constant[value=1]()\n"
      "  %ones : int[] = prim::Constant[value=[1, 1]]()\n"
      "  %y : Tensor = aten::conv2d(%x, %w, %none, %ones, %ones, %ones, %one)\n" +
      rest);
  return layOutForTraining(*graph);
}

TEST(TrainingLayout, IsForWhatNobodyCanNotice) {
  EXPECT_EQ(laidOut("  %s : Tensor = aten::mean(%y, %none)\n  return (%s)\n"), 1u);
  EXPECT_EQ(laidOut("  return (%y)\n"), 0u);
  EXPECT_EQ(laidOut("  %s : int[] = aten::size(%y)\n  return (%s)\n"), 1u);
  EXPECT_EQ(laidOut("  %s : int = aten::stride(%y, %one)\n  return (%s)\n"), 0u);
  EXPECT_EQ(laidOut("  %v : Tensor = aten::view(%y, %ones)\n"
                    "  %s : Tensor = aten::mean(%v, %none)\n  return (%s)\n"),
            0u);
  // What draws random numbers gives them to elements in the order of memory.
  EXPECT_EQ(laidOut("  %v : Tensor = aten::rand_like(%y, %none, %none, %none, %none, %none)\n"
                    "  %s : Tensor = aten::mean(%v, %none)\n  return (%s)\n"),
            0u);
  const std::string flat =
      "  %f : Tensor = aten::flatten(%y, %one, %one)\n"
      "  %l : Tensor = aten::linear(%f, %b, %none)\n";
  EXPECT_EQ(laidOut(flat + "  return (%l)\n"), 1u);
  // A view that is written to is not the same as a copy.
  EXPECT_EQ(laidOut("  %w0 : Tensor = aten::relu_(%y)\n" + flat + "  return (%l)\n"), 0u);
  for (const char* returned : {"%s", "%r"}) {
    EXPECT_EQ(laidOut("  %r : Tensor = prim::If(%c)\n"
                      "    block0():\n"
                      "      %p : Tensor = aten::relu(%y)\n"
                      "      -> (%p)\n"
                      "    block1():\n"
                      "      -> (%y)\n"
                      "  %s : Tensor = aten::mean(%r, %none)\n"
                      "  return (" +
                      std::string(returned) + ")\n"),
              returned == std::string("%s") ? 1u : 0u);
  }
}

TEST(TrainingLayout, ShowsNowhere) {
  const std::vector<Tensor> out = tensorsOf(compile(R"(
def main() -> List[Tensor]:
    x = torch.randn([2, 3, 6, 6]).requires_grad_()
    w = torch.randn([4, 3, 3, 3]).requires_grad_()
    seen = torch.relu(torch.conv2d(x, w))
    flat = torch.conv2d(x, w).view([2, -1])
    unseen = torch.relu(torch.conv2d(x, w)).sum()
    g, h = torch.autograd.grad([seen.sum() + flat.sum() + unseen], [x, w])
    assert g is not None and h is not None
    return [seen, flat, g, h]
)")
                                                .call("main", {}));
  for (const Tensor& t : out) EXPECT_TRUE(t.isContiguous()) << t.describe();
}

}  // namespace
}  // namespace wick::layouts_test
