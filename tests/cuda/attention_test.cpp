// Attention in one kernel: its text compiles for all that it is chosen for, results have the right
// sizes and lie as the queries do, and everything else is computed by products. What it computes is
// compared by check_attention on a machine with a GPU.
#include <gtest/gtest.h>

#include "frontend/compile.h"
#include "ir/function.h"
#include "runtime/call.h"
#include "runtime/cuda/compiler.h"
#include "runtime/inference.h"
#include "runtime/module.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/error_text.h"

namespace wick::cuda::attention_test {
namespace {

using testing_errors::errorOf;

constexpr Device kCuda{DeviceType::CUDA, -1};
const OperatorHandle kAttention{"aten::scaled_dot_product_attention", ""};
const OperatorHandle kMultiHead{"aten::_native_multi_head_attention", ""};

Tensor zeros(DimVector sizes, DType type = DType::Half) {
  return Tensor::zeros(sizes, type, kCuda);
}

// Launches of a call whose kernels are compiled.
template <class F>
uint64_t launchesOf(FakeDriver& driver, F call) {
  call();
  const uint64_t before = driver.state().launches;
  call();
  return driver.state().launches - before;
}

TEST(Attention, IsOneKernel) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  for (const DType type : {DType::Half, DType::Float}) {
    for (const int64_t width : {8, 72}) {
      // Few rows and many, which the warps share in another way each.
      for (const DimVector& size :
           {DimVector{1, 2, 5, width}, DimVector{2, 12, 100, width}, DimVector{8, 16, 70, width}}) {
        const Tensor q = zeros(size, type), k = zeros({size[0], size[1], 33, width}, type);
        const Tensor allowed = zeros({size[2], 33}, DType::Bool);
        const Tensor added = zeros({size[0], 1, size[2], 33}, type);
        Tensor out;
        EXPECT_EQ(launchesOf(driver, [&] { out = kAttention(q, k, k); }), 1) << width;
        EXPECT_EQ(DimVector(out.sizes()), size);
        EXPECT_EQ(out.dtype(), type);
        EXPECT_TRUE(out.isContiguous());
        EXPECT_EQ(launchesOf(driver, [&] { kAttention(q, k, k, allowed); }), 1);
        EXPECT_EQ(launchesOf(driver, [&] { kAttention(q, k, k, added); }), 1);
        EXPECT_EQ(launchesOf(driver, [&] { kAttention(q, k, k, Tensor(), 0.0, true); }), 1);
      }
    }
  }
  EXPECT_EQ(launchesOf(driver,
                       [&] {
                         kAttention(zeros({7, 16}), zeros({9, 16}), zeros({9, 16}));
                       }),
            1);
  const Tensor three = kAttention(zeros({3, 7, 16}), zeros({3, 9, 16}), zeros({3, 9, 16}));
  EXPECT_EQ(DimVector(three.sizes()), (DimVector{3, 7, 16}));
  // Several heads of queries to one of keys.
  const Tensor grouped =
      kAttention(zeros({2, 8, 5, 16}), zeros({2, 2, 9, 16}), zeros({2, 2, 9, 16}), Tensor(), 0.0,
                 false, std::optional<double>(), true);
  EXPECT_EQ(DimVector(grouped.sizes()), (DimVector{2, 8, 5, 16}));
}

TEST(Attention, ResultsLieAsQueriesDo) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  // Heads within rows, as layers of many heads cut them.
  const Tensor all = zeros({2, 10, 3 * 4 * 32});
  const auto part = [&](int64_t i) {
    return all.narrow(2, i * 128, 128).reshape(DimVector{2, 10, 4, 32}).transpose(1, 2);
  };
  Tensor out;
  const Tensor q = part(0), k = part(1), v = part(2);
  EXPECT_EQ(launchesOf(driver, [&] { out = kAttention(q, k, v); }), 1);
  EXPECT_TRUE(out.transpose(1, 2).isContiguous());
  // Rows that cannot be read 16 bytes at a time are copied first.
  const Tensor odd = zeros({2, 4, 10, 33}).narrow(3, 1, 32);
  EXPECT_GT(launchesOf(driver, [&] { kAttention(odd, k, v); }), 1);
}

TEST(Attention, RefusesWhatTheCpuRefuses) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  const Tensor q = zeros({2, 4, 16}), k = zeros({2, 6, 16});
  EXPECT_NE(errorOf([&] {
              kAttention(q, k, k, zeros({4, 6}, DType::Bool), 0.0, true);
            }).find("Explicit attn_mask should not be set"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { kAttention(zeros({16}), k, k); }).find("two or more dimensions"),
            std::string::npos);
}

TEST(Attention, WrittenOutItBecomesTheOperator) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  const auto unit = compileSource(R"(
class Attend(Module):
    w: Tensor
    def forward(self, x: Tensor) -> Tensor:
        q = x.view([2, 10, 4, 32]).transpose(1, 2)
        scores = torch.matmul(q, q.transpose(-2, -1)) * 0.5
        y = torch.matmul(torch.softmax(scores, -1), q)
        return torch.mul(y.transpose(1, 2).reshape([2, 10, 128]), self.w)
    def returned(self, x: Tensor) -> Tensor:
        q = x.view([2, 10, 4, 32]).transpose(1, 2)
        return torch.matmul(torch.softmax(torch.matmul(q, q.transpose(-2, -1)), -1), q * self.w[0])
    def traced(self, x: Tensor) -> Tensor:
        q = x.view([2, 10, 4, 32]).transpose(1, 2)
        scale = torch.pow(torch.floor_divide(torch.ops.prim.NumToTensor(x.size(2)), 4), -0.5)
        scores = torch.mul(torch.matmul(q, q.transpose(-2, -1)), scale)
        y = torch.matmul(torch.softmax(scores, -1), q)
        return torch.mul(y.transpose(1, 2).reshape([2, 10, 128]), self.w)
    def scaled(self, x: Tensor, s: Tensor) -> Tensor:
        q = x.view([2, 10, 4, 32]).transpose(1, 2)
        scores = torch.matmul(q, q.transpose(-2, -1)) * s
        y = torch.matmul(torch.softmax(scores, -1), q)
        return torch.mul(y.transpose(1, 2).reshape([2, 10, 128]), self.w)
    def masked(self, x: Tensor, b: Tensor) -> Tensor:
        q = x.view([2, 10, 4, 32]).transpose(1, 2)
        scores = torch.matmul(q, q.transpose(-2, -1)) / 2.0 + b
        y = torch.matmul(torch.softmax(scores, -1), q)
        return torch.mul(y.transpose(1, 2).reshape([2, 10, 128]), self.w)
)");
  const auto counts = [&](const Tensor& w, const char* method) {
    const TypePtr type = unit->findType("__torch__.Attend");
    auto object = makeRef<Object>(type->as<ClassType>()->shared(), unit);
    object->setSlot(*type->as<ClassType>()->findAttribute("w"), IValue(w));
    const ObjectRef self(std::move(object));
    const std::string text =
        optimizeForInference(self, *unit->findFunction(std::string("__torch__.Attend.") + method))
            ->graph()
            ->str();
    return std::pair(text.find("aten::scaled_dot_product_attention") != std::string::npos,
                     text.find("aten::softmax") != std::string::npos);
  };
  EXPECT_EQ(counts(zeros({128}), "forward"), std::pair(true, false));
  // Traces compute the scale from sizes.
  EXPECT_EQ(counts(zeros({128}), "traced"), std::pair(true, false));
  // A factor that may have dimensions is another matter.
  EXPECT_EQ(counts(zeros({128}), "scaled"), std::pair(false, true));
  // Where there is no kernel for it, products stay.
  EXPECT_EQ(counts(zeros({128}, DType::Double), "forward"), std::pair(false, true));
  EXPECT_EQ(counts(Tensor::zeros(DimVector{128}, DType::Half), "forward"), std::pair(false, true));
  // The caller would see how the result lies, and what is added might be booleans.
  EXPECT_EQ(counts(zeros({128}), "returned"), std::pair(false, true));
  EXPECT_EQ(counts(zeros({128}), "masked"), std::pair(false, true));
}

}  // namespace
}  // namespace wick::cuda::attention_test
