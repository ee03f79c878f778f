// torch.autocast("cuda"): the dtypes that operators of each list give, which scope counts for which
// tensor, and functions that are called within a scope. Kernels are compiled and not run.
#include "runtime/autocast.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/value_conversions.h"
#include "frontend/compile.h"
#include "ir/function.h"
#include "runtime/call.h"
#include "runtime/cuda/compiler.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::autocast_test {
namespace {

using testing_errors::errorOf;

constexpr Device kCuda{DeviceType::CUDA, -1};

// Of the only function of a program, with `x` on the GPU.
Tensor resultOf(const std::string& source, DType type, const DimVector& sizes = {4, 4}) {
  const auto unit = compileSource(source);
  return callFunction(*unit->functions().front(), {IValue(Tensor::zeros(sizes, type, kCuda))})
      .toTensor();
}
// What an expression of `x` gives within a scope, when `x` has this dtype.
DType within(const std::string& scope, const std::string& expression, DType type,
             const DimVector& sizes = {4, 4}) {
  const Tensor r = resultOf(
      "def f(x: Tensor) -> Tensor:\n    with " + scope + ":\n        return " + expression + "\n",
      type, sizes);
  EXPECT_TRUE(r.device().isCuda()) << expression;
  return r.dtype();
}

struct Case {
  const char* expression;
  DimVector sizes = {0, 4};
};

TEST(Autocast, ProductsAreOfLowPrecision) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  // Results without elements: there is no library to multiply with.
  const std::vector<Case> cases = {
      {"torch.mm(x, x.t())"},
      {"x @ x.t()"},
      {"torch.matmul(x, x.t())"},
      {"torch.mv(x, x.new_zeros([4]))"},
      {"torch.addmm(x.new_zeros([1]), x, x.t())"},
      {"torch.addmv(x.new_zeros([1]), x, x.new_zeros([4]))"},
      {"torch.addr(x, x.new_zeros([0]), x.new_zeros([4]))"},
      {"torch.bmm(x[None], x.t()[None])"},
      {"torch.baddbmm(x.new_zeros([1]), x[None], x.t()[None])"},
      {"torch.addbmm(x.new_zeros([1]), x[None], x.t()[None])"},
      {"torch.nn.functional.linear(x, x.new_zeros([3, 4]))"},
      {"torch.prelu(x, x.new_zeros([4]))"},
      {"torch.conv1d(x, x.new_zeros([2, 3, 3]))", {0, 3, 8}},
      {"torch.conv2d(x, x.new_zeros([2, 3, 3, 3]))", {0, 3, 8, 8}},
      {"torch.conv3d(x, x.new_zeros([2, 3, 3, 3, 3]))", {0, 3, 4, 4, 4}},
      {"torch.conv_transpose1d(x, x.new_zeros([3, 2, 3]))", {0, 3, 8}},
      {"torch.gru_cell(x, x, x.new_zeros([12, 4]), x.new_zeros([12, 4]))"},
      {"torch.rnn_tanh_cell(x, x, x.new_zeros([4, 4]), x.new_zeros([4, 4]))"},
      {"torch.rnn_relu_cell(x, x, x.new_zeros([4, 4]), x.new_zeros([4, 4]))"},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(within("torch.autocast('cuda')", c.expression, DType::Float, c.sizes), DType::Half)
        << c.expression;
    EXPECT_EQ(within("torch.cuda.amp.autocast(dtype=torch.bfloat16)", c.expression, DType::Float,
                     c.sizes),
              DType::BFloat16)
        << c.expression;
    EXPECT_EQ(within("torch.cpu.amp.autocast()", c.expression, DType::Float, c.sizes), DType::Float)
        << c.expression;
  }
  // Float64 stays, and so does what is narrow already.
  EXPECT_EQ(within("torch.autocast('cuda')", "torch.mm(x, x.t())", DType::Double, {0, 4}),
            DType::Double);
  EXPECT_EQ(within("torch.autocast('cuda')", "torch.mm(x, x.t())", DType::BFloat16, {0, 4}),
            DType::BFloat16);
}

TEST(Autocast, WhatNeedsRangeIsFloat32) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  for (const char* expression : {"torch.acos(x)",
                                 "torch.asin(x)",
                                 "torch.cosh(x)",
                                 "torch.erfinv(x)",
                                 "torch.exp(x)",
                                 "torch.expm1(x)",
                                 "torch.log(x)",
                                 "torch.log10(x)",
                                 "torch.log2(x)",
                                 "torch.log1p(x)",
                                 "torch.reciprocal(x)",
                                 "torch.rsqrt(x)",
                                 "torch.sinh(x)",
                                 "torch.tan(x)",
                                 "torch.pow(x, 2)",
                                 "x ** x",
                                 "torch.nn.functional.softplus(x)",
                                 "torch.nn.functional.gelu(x)",
                                 "torch.layer_norm(x, [4])",
                                 "torch.native_layer_norm(x, [4], None, None, 1e-5)[0]",
                                 "torch.group_norm(x, 2)",
                                 "torch.cosine_similarity(x, x)",
                                 "torch.cosine_embedding_loss(x, x, x[0])",
                                 "torch.hinge_embedding_loss(x, x)",
                                 "torch.kl_div(x, x)",
                                 "torch.nn.functional.l1_loss(x, x)",
                                 "torch.nn.functional.smooth_l1_loss(x, x)",
                                 "torch.nn.functional.mse_loss(x, x)",
                                 "torch.margin_ranking_loss(x, x, x)",
                                 "torch.nn.functional.soft_margin_loss(x, x)",
                                 "torch.triplet_margin_loss(x, x, x)",
                                 "torch.binary_cross_entropy_with_logits(x, x)",
                                 "torch.dist(x, x)",
                                 "torch.cdist(x, x)",
                                 "torch.renorm(x, 2, 0, 1)",
                                 "torch.logsumexp(x, 0)",
                                 "torch.prod(x)",
                                 "torch.sum(x)",
                                 "torch.cumsum(x, 0)",
                                 "torch.cumprod(x, 0)",
                                 "torch.log_softmax(x, 0)",
                                 "torch.softmax(x, 0)"}) {
    EXPECT_EQ(within("torch.autocast('cuda')", expression, DType::Half), DType::Float)
        << expression;
    EXPECT_EQ(within("torch.autocast('cuda', enabled=False)", expression, DType::Half), DType::Half)
        << expression;
  }
  // A dtype that the call names is the result's.
  for (const char* expression :
       {"torch.sum(x, dtype=torch.float16)", "torch.prod(x, dtype=torch.float16)",
        "torch.cumsum(x, 0, dtype=torch.float16)", "torch.cumprod(x, 0, dtype=torch.float16)",
        "torch.softmax(x, 0, dtype=torch.float16)",
        "torch.log_softmax(x, 0, dtype=torch.float16)"}) {
    EXPECT_EQ(within("torch.autocast('cuda')", expression, DType::Half), DType::Half) << expression;
  }
}

TEST(Autocast, SeveralTensorsMeetInTheWidest) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  // `h` is of low precision, which the types tell only when the program runs.
  for (const char* expression :
       {"torch.add(h, x)", "x - h", "h * x", "torch.div(h, x)", "torch.addcmul(h, x, h)",
        "torch.addcdiv(x, h, h)", "torch.atan2(h, x)", "torch.cross(h[:, :3], x[:, :3], dim=1)"}) {
    const std::string source = std::string(
                                   "def f(x: Tensor) -> Tensor:\n"
                                   "    with torch.autocast('cuda'):\n"
                                   "        h = torch.prelu(x, x.new_zeros([1]))\n"
                                   "        return ") +
                               expression + "\n";
    EXPECT_EQ(resultOf(source, DType::Float).dtype(), DType::Float) << expression;
  }
  for (const char* expression : {"torch.relu(x)", "torch.tanh(x)", "torch.max(x)", "x.t()"}) {
    EXPECT_EQ(within("torch.autocast('cuda')", expression, DType::Half), DType::Half) << expression;
    EXPECT_EQ(within("torch.autocast('cuda')", expression, DType::Float), DType::Float)
        << expression;
  }
  EXPECT_NE(errorOf([&] {
              within("torch.autocast('cuda')", "torch.nn.functional.binary_cross_entropy(x, x)",
                     DType::Float);
            }).find("unsafe within autocast"),
            std::string::npos);
}

TEST(Autocast, ScopesNestAndEachIsForItsDevice) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  const auto unit = compileSource(R"(
def inner(a: Tensor) -> int:
    return torch.mm(a, a).dtype

def f(x: Tensor, c: Tensor) -> List[int]:
    out: List[int] = []
    with torch.autocast('cuda'):
        out += [inner(x), inner(c)]
        with torch.cpu.amp.autocast():
            out += [inner(x), inner(c)]
            with torch.cuda.amp.autocast(dtype=torch.bfloat16):
                out += [inner(x), inner(c)]
                with torch.autocast('cuda', enabled=False):
                    out += [inner(x), inner(c), int(torch.is_autocast_enabled())]
                out += [inner(x), int(torch.is_autocast_enabled())]
            out += [inner(x), int(torch.is_autocast_cpu_enabled())]
        out += [inner(c), int(torch.is_autocast_cpu_enabled())]
    out += [inner(x), int(torch.is_autocast_enabled())]
    return out
)");
  const IValue out = callFunction(*unit->findFunction("__torch__.f"),
                                  {IValue(Tensor::zeros({0, 0}, DType::Float, kCuda)),
                                   IValue(Tensor::zeros({0, 0}, DType::Float))});
  const int64_t f16 = 5, f32 = 6, bf16 = 15;
  EXPECT_EQ(out.to<std::vector<int64_t>>(),
            (std::vector<int64_t>{f16, f32, f16, bf16, bf16, bf16, f32, bf16, 0, bf16, 1, f16, 1,
                                  f32, 0, f32, 0}));
}

TEST(Autocast, FunctionsAreCalledWithinAScope) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  const auto unit = compileSource(R"(
def inner(a: Tensor) -> Tensor:
    return torch.mm(a, a)

def f(x: Tensor, times: int = 1) -> Tensor:
    for i in range(times):
        x = inner(x)
    return x

def unsafe(x: Tensor) -> Tensor:
    return torch.nn.functional.binary_cross_entropy(x, x)
)");
  GraphFunction& f = *unit->findFunction("__torch__.f");
  const IValue gpu(Tensor::zeros({0, 0}, DType::Float, kCuda));
  const IValue cpu(Tensor::zeros({0, 0}, DType::Float));
  const auto dtype = [&](GraphFunction& called, const IValue& x) {
    return callFunction(called, {x}).toTensor().dtype();
  };
  const auto half = withAutocast(f, DeviceType::CUDA);
  EXPECT_EQ(dtype(*half, gpu), DType::Half);
  EXPECT_EQ(dtype(*half, cpu), DType::Float);
  EXPECT_EQ(dtype(*withAutocast(f, DeviceType::CUDA, DType::BFloat16), gpu), DType::BFloat16);
  const auto on_cpu = withAutocast(f, DeviceType::CPU);
  EXPECT_EQ(dtype(*on_cpu, gpu), DType::Float);
  EXPECT_EQ(dtype(*on_cpu, cpu), DType::BFloat16);
  // The function itself is as it was.
  EXPECT_EQ(dtype(f, gpu), DType::Float);
  EXPECT_NE(errorOf([&] { withAutocast(f, DeviceType::Meta); }).find("cpu or cuda"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { withAutocast(f, DeviceType::CPU, DType::Float); }).find("bfloat16"),
            std::string::npos);
  EXPECT_NE(errorOf([&] {
              withAutocast(*unit->findFunction("__torch__.unsafe"), DeviceType::CUDA);
            }).find("unsafe within autocast"),
            std::string::npos);
}

}  // namespace
}  // namespace wick::cuda::autocast_test
