// torchvision's operators and their gradients against what torchvision 0.14 gives: sums of results,
// weighted sums of results and of gradients.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "wick.h"

namespace wick::vision_test {
namespace {

const char* const kHelpers = R"(
def wave(sizes: List[int], k: float, a: float) -> Tensor:
    n = 1
    for s in sizes:
        n *= s
    return torch.sin(torch.arange(n, dtype=torch.float64) * k + a).view(sizes)

def weighted(t: Tensor) -> Tensor:
    return (t * torch.arange(1, t.numel() + 1, dtype=t.dtype).view(t.size())).sum()

def regions() -> Tensor:
    return torch.tensor([[0, 0.5, 0.7, 5.2, 6.1], [1, 2.0, 1.0, 3.0, 2.5],
                         [0, -2.0, -1.0, 4.0, 9.0], [1, 6.0, 6.0, 6.2, 6.1]], dtype=torch.float64)

def roi_align(ratio: int, aligned: bool) -> List[float]:
    x = wave([2, 3, 8, 7], 0.7, 0.0).requires_grad_()
    r = torch.ops.torchvision.roi_align(x, regions(), 0.5, 2, 3, ratio, aligned)
    total = weighted(r)
    g = torch.autograd.grad([total], [x])[0]
    assert g is not None
    return [float(r.sum()), float(total), float(g.sum()), float(weighted(g))]

def pooled(which: str) -> List[float]:
    channels = 3 if which == "roi_pool" else 12
    x = wave([2, channels, 8, 7], 0.7, 0.0).requires_grad_()
    if which == "roi_pool":
        r, places = torch.ops.torchvision.roi_pool(x, regions(), 0.8, 2, 2)
    elif which == "ps_roi_align":
        r, places = torch.ops.torchvision.ps_roi_align(x, regions(), 0.8, 2, 2, 2)
    else:
        r, places = torch.ops.torchvision.ps_roi_pool(x, regions(), 0.8, 2, 2)
    total = weighted(r)
    g = torch.autograd.grad([total], [x])[0]
    assert g is not None
    return [float(r.sum()), float(total), float(weighted(places.double())), float(weighted(g))]

def deform(groups: int, offset_groups: int, use_mask: bool, stride: int, pad: int,
           dilation: int) -> List[float]:
    w = wave([4, 4 // groups, 2, 3], 1.1, 0.0).requires_grad_()
    x = wave([2, 4, 6, 7], 0.7, 0.0).requires_grad_()
    oh = (6 + 2 * pad - dilation - 1) // stride + 1
    ow = (7 + 2 * pad - dilation * 2 - 1) // stride + 1
    offset = (wave([2, offset_groups * 12, oh, ow], 2.3, 0.0) * 1.7).detach().requires_grad_()
    mask = (wave([2, offset_groups * 6, oh, ow], 0.3, 0.0) + 1.1).detach().requires_grad_()
    b = wave([4], 3.0, 0.0).requires_grad_()
    r = torch.ops.torchvision.deform_conv2d(x, w, offset, mask, b, stride, stride, pad, pad,
                                            dilation, dilation, groups, offset_groups, use_mask)
    total = weighted(r)
    found = [float(r.sum()), float(total)]
    for g in torch.autograd.grad([total], [x, w, offset, mask, b]):
        assert g is not None
        found.append(float(weighted(g)))
    return found

def deform_at_rest() -> List[float]:
    offset = torch.zeros(1, 18, 4, 5, dtype=torch.float64).requires_grad_()
    x, w, b = wave([1, 2, 4, 5], 0.7, 0.0), wave([2, 2, 3, 3], 1.1, 0.0), wave([2], 3.0, 0.0)
    none = torch.zeros(1, 1, dtype=torch.float64)
    r = torch.ops.torchvision.deform_conv2d(x, w, offset, none, b, 1, 1, 1, 1, 1, 1, 1, 1, False)
    g = torch.autograd.grad([weighted(r)], [offset])[0]
    assert g is not None
    return [float(weighted(r)), float(weighted(g)), float(g.abs().sum())]

def half(which: str) -> List[float]:
    x = wave([2, 12, 8, 7], 0.7, 0.0).half().requires_grad_()
    rois = regions().half()
    if which == "roi_align":
        r = torch.ops.torchvision.roi_align(x, rois, 0.55, 2, 3, 2, True)
    elif which == "roi_align of any size":
        r = torch.ops.torchvision.roi_align(x, rois, 0.55, 2, 3, -1, False)
    elif which == "roi_pool":
        r = torch.ops.torchvision.roi_pool(x, rois, 0.8, 2, 2)[0]
    elif which == "ps_roi_align":
        r = torch.ops.torchvision.ps_roi_align(x, rois, 0.8, 2, 2, 2)[0]
    else:
        r = torch.ops.torchvision.ps_roi_pool(x, rois, 0.8, 2, 2)[0]
    assert r.dtype == torch.float16
    g = torch.autograd.grad([r.float().sum()], [x])[0]
    assert g is not None
    return [float(weighted(r.double())), float(weighted(g.double()))]

def nms(threshold: float) -> List[float]:
    boxes = torch.tensor([[0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [0, 0, 10, 10],
                          [21, 21, 29, 29], [0, 0, 0, 0]], dtype=torch.float32)
    scores = torch.tensor([0.5, 0.9, 0.3, 0.9, 0.3, 0.1])
    kept: List[float] = []
    for i in torch.ops.torchvision.nms(boxes, scores, threshold):
        kept.append(float(i))
    return kept

)";

std::vector<double> run(const std::string& call) {
  Program program = compile(kHelpers + ("def main() -> List[float]:\n    return " + call + "\n"));
  std::vector<double> found;
  const IValue result = program.call("main", {});
  for (const IValue& v : result.elements()) found.push_back(v.toDouble());
  return found;
}

// Six digits were recorded.
void expectValues(const std::string& call, const std::vector<double>& expected) {
  std::vector<double> found;
  ASSERT_NO_THROW(found = run(call)) << call;
  ASSERT_EQ(found.size(), expected.size()) << call;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found[i], expected[i], 1e-5 * std::abs(expected[i]) + 1e-9) << call << " at " << i;
  }
}

TEST(Vision, RegionsAsInTorchvision) {
  expectValues("roi_align(-1, False)", {-4.31816, -179.938, 2628, 492172});
  expectValues("roi_align(2, False)", {-4.23782, -178.637, 2628, 492095});
  expectValues("roi_align(-1, True)", {-3.69846, -228.443, 2628, 477321});
  expectValues("roi_align(2, True)", {-3.88069, -235.804, 2494.5, 467530});
  expectValues("pooled('roi_pool')", {22.0792, 451.077, 33399, 230575});
  expectValues("pooled('ps_roi_align')", {1.83623, 23.4061, 7040, 886766});
  expectValues("pooled('ps_roi_pool')", {-1.28002, -38.769, 7040, 918668});
}

// float16 is rounded after every operation, so that results are the same to the bit; gradients are
// off by a rounding here and there.
TEST(Vision, HalfRegionsAsInTorchvision) {
  const auto expect = [](const std::string& which, double forward, double backward) {
    const std::vector<double> found = run("half('" + which + "')");
    EXPECT_NEAR(found[0], forward, 1e-9) << which;
    EXPECT_NEAR(found[1], backward, 1e-3 * backward) << which;
  };
  expect("roi_align", 122.89517211914062, 185530.83782958984);
  expect("roi_align of any size", -179.65246963500977, 190807.1502685547);
  expect("roi_pool", 6385.944625854492, 128546.0);
  expect("ps_roi_align", 23.555419921875, 31020.42010116577);
  expect("ps_roi_pool", -38.76702880859375, 32011.808166503906);
  // torchvision has them for float16 only.
  EXPECT_THROW(run("[float(torch.ops.torchvision.roi_pool(wave([2, 1, 8, 7], 0.7, 0.0).bfloat16(), "
                   "regions().bfloat16(), 1.0, 1, 1)[0].sum())]"),
               RuntimeError);
}

TEST(Vision, DeformableConvolutionAsInTorchvision) {
  expectValues("deform(1, 1, False, 1, 0, 1)",
               {14.3999, 2232.69, 280084, -227228, -31438.5, 0, 56500});
  expectValues("deform(2, 2, True, 2, 1, 1)",
               {22.3622, 1332.72, 829368, 50558, -1.98714e+06, 288236, 23200});
  expectValues("deform(1, 4, True, 1, 2, 2)",
               {28.2569, 16766.6, 1.16343e+06, 404951, 3.64124e+07, 1.08219e+07, 282800});
  // Points that lie exactly on the edge of the padding.
  expectValues("deform_at_rest()", {270.382, 2965.31, 6892});
}

TEST(Vision, BoxesOfEqualScoresKeepTheirOrder) {
  expectValues("nms(0.3)", {1, 2, 5});
  expectValues("nms(0.5)", {1, 2, 5});
  expectValues("nms(0.7)", {1, 3, 2, 4, 5});
}

TEST(Vision, NothingToDo) {
  Program program = compile(
      "def f() -> Tuple[Tensor, Tensor]:\n"
      "    return (torch.ops.torchvision.nms(torch.zeros(0, 4), torch.zeros(0), 0.5),\n"
      "            torch.ops.torchvision.roi_align(torch.ones(1, 2, 4, 4), torch.zeros(0, 5), "
      "1.0,\n"
      "                                            2, 2, 2, False))\n");
  const IValue results = program.call("f", {});
  EXPECT_EQ(results[0].toTensor().numel(), 0);
  EXPECT_EQ(DimVector(results[1].toTensor().sizes()), (DimVector{0, 2, 2, 2}));
}

// Wrong shapes, numbers of images, regions without end: errors, whatever memory lies beside.
TEST(Vision, WrongArgumentsAreErrors) {
  const char* const kCalls[] = {
      "torch.ops.torchvision.nms(torch.zeros(3, 5), torch.zeros(3), 0.5)",
      "torch.ops.torchvision.nms(torch.zeros(3, 4), torch.zeros(2), 0.5)",
      "torch.ops.torchvision.nms(torch.zeros(3, 4), torch.zeros(3, 1), 0.5)",
      "torch.ops.torchvision.nms(torch.zeros(3, 4), torch.zeros(3).double(), 0.5)",
      "torch.ops.torchvision.roi_align(x, torch.tensor([[1.0, 0, 0, 1, 1]]), 1.0, 2, 2, 2, False)",
      "torch.ops.torchvision.roi_align(x, torch.tensor([[-1.0, 0, 0, 1, 1]]), 1.0, 2, 2, 2, False)",
      "torch.ops.torchvision.roi_align(x, torch.tensor([[float('nan'), 0, 0, 1, 1]]), 1.0, 2, 2, "
      "2, "
      "False)",
      "torch.ops.torchvision.roi_align(x, torch.tensor([[0.0, 0, 0, 1e30, 1]]), 1.0, 2, 2, -1, "
      "False)",
      "torch.ops.torchvision.roi_align(x, torch.tensor([[0.0, 0, 0, float('inf'), 1]]), 1.0, 2, 2, "
      "2, False)",
      "torch.ops.torchvision.roi_align(x, torch.zeros(1, 4), 1.0, 2, 2, 2, False)",
      "torch.ops.torchvision.roi_align(x, torch.zeros(1, 5), 1.0, 0, 2, 2, False)",
      "torch.ops.torchvision.roi_align(x, torch.zeros(1, 5), 1.0, 1 << 62, 2, 2, False)",
      "torch.ops.torchvision.roi_align(x, torch.zeros(1, 5), 1.0, 2, 2, 1 << 40, False)",
      "torch.ops.torchvision.roi_align(x[0], torch.zeros(1, 5), 1.0, 2, 2, 2, False)",
      "torch.ops.torchvision.ps_roi_align(x, torch.zeros(1, 5), 1.0, 3, 3, 2)[0]",
      "torch.ops.torchvision._roi_pool_backward(torch.ones(1, 2, 1, 1), torch.zeros(1, 5), "
      "torch.full([1, 2, 1, 1], 99, dtype=torch.int32), 1.0, 1, 1, 1, 2, 4, 4)",
      "torch.ops.torchvision._ps_roi_pool_backward(torch.ones(1, 2, 1, 1), "
      "torch.tensor([[0.0, 0, 0, 3, 3]]), torch.full([1, 2, 1, 1], 99, dtype=torch.int32), 1.0, 1, "
      "1, 1, 2, 4, 4)",
      "torch.ops.torchvision.deform_conv2d(x, torch.ones(1, 2, 3, 3), torch.zeros(1, 4, 2, 2), x, "
      "torch.zeros(1), 1, 1, 0, 0, 1, 1, 1, 1, False)",
      "torch.ops.torchvision.deform_conv2d(x, torch.ones(1, 2, 3, 3), torch.zeros(1, 18, 2, 2), x, "
      "torch.zeros(1), 1, 1, 0, 0, 1 << 62, 1, 1, 1, False)",
      "torch.ops.torchvision.deform_conv2d(x, torch.ones(1, 2, 3, 3), torch.zeros(1, 18, 2, 2), x, "
      "torch.zeros(1), 0, 1, 0, 0, 1, 1, 1, 1, False)",
  };
  for (const char* call : kCalls) {
    Program program =
        compile(std::string("def f(x: Tensor) -> Tensor:\n    return ") + call + "\n");
    EXPECT_THROW(program.call("f", {Tensor::zeros({1, 2, 4, 4}, DType::Float)}), RuntimeError)
        << call;
  }
}

// torchvision spreads the gradient over the last row and column, which the mean leaves out.
TEST(Vision, GradientOfPositionSensitivePoolReachesTheLastRow) {
  Program program = compile(R"(
def f(x: Tensor, r: Tensor) -> Tensor:
    x.requires_grad_(True)
    y = torch.ops.torchvision.ps_roi_pool(x, r, 0.25, 1, 1)[0]
    y.sum().backward()
    return x.grad
)");
  const Tensor r = Tensor::from({0.f, 0.2625951f, 5.1370835f, 2.9126330f, 9.9642801f}, {1, 5});
  const Tensor grad =
      program.call("f", {Tensor::full({1, 1, 4, 1}, 2, DType::Float), r}).toTensor();
  const std::vector<float> want{0, 1, 0, 0};
  const auto got = grad.contiguous().span<float>();
  EXPECT_EQ(std::vector<float>(got.begin(), got.end()), want);
}

// Coordinates far outside read nothing.
TEST(Vision, RegionsOutside) {
  for (const char* operation :
       {"roi_align(x, r, 1.0, 2, 2, 2, False)", "roi_pool(x, r, 1.0, 2, 2)[0]",
        "ps_roi_pool(x, r, 1.0, 2, 1)[0]"}) {
    Program program = compile(
        std::string("def f(x: Tensor, r: Tensor) -> Tensor:\n    return torch.ops.torchvision.") +
        operation + "\n");
    const Tensor r =
        Tensor::from({0.f, 1e20f, 1e20f, 2e20f, 2e20f, 0.f, -9e8f, -9e8f, -8e8f, -8e8f}, {2, 5});
    const Tensor out =
        program.call("f", {Tensor::full({1, 2, 4, 4}, 7, DType::Float), r}).toTensor();
    for (const float v : out.contiguous().span<float>()) EXPECT_EQ(v, 0.f) << operation;
  }
}

}  // namespace
}  // namespace wick::vision_test
