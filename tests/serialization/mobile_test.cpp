// Modules after PyTorch's optimize_for_mobile (make_mobile.py), whose layers are objects that hold the weights.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "runtime/inference.h"
#include "tests/serialization/data_files.h"
#include "wick.h"

namespace wick::mobile_test {
namespace {

using testing::HasSubstr;

Tensor saved(const char* name) {
  return loadValue(dataPath("mobile_values.pt")).toDict().find(name)->toTensor();
}

void expectClose(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.describe(), b.describe());
  for (int64_t i = 0; i < a.numel(); ++i) {
    EXPECT_NEAR(a.contiguous().data<float>()[i], b.contiguous().data<float>()[i], 1e-5) << i;
  }
}

TEST(MobileTest, GivesPyTorchsResult) {
  const Module module = load(dataPath("mobile.pt"));
  const Tensor x = saved("input"), expected = saved("result");
  for (int run = 0; run < 4; ++run) expectClose(module.forward({x}).toTensor(), expected);
  expectClose(optimizeForInference(module)({x}).toTensor(), expected);
}

TEST(MobileTest, IsSavedWithItsWeights) {
  const std::string path = testing::TempDir() + "mobile_again.pt";
  load(dataPath("mobile.pt")).save(path);
  expectClose(load(path).forward({saved("input")}).toTensor(), saved("result"));
}

std::string errorOf(const std::string& statements, const Tensor& x) {
  const Program program = compile(
      "def f(x: Tensor):\n    w = torch.ones(4, 3)\n    k = torch.ones(4, 2, 3, 3)\n" + statements);
  try {
    program.call("f", {x});
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(MobileTest, LayersAreMadeInSource) {
  const Program program = compile(R"(
def linear(x: Tensor):
    layer = torch.ops.prepacked.linear_clamp_prepack(torch.ones(4, 3), torch.ones(4), 0.5, 6)
    return torch.ops.prepacked.linear_clamp_run(x, layer)
def conv(x: Tensor):
    layer = torch.ops.prepacked.conv2d_clamp_prepack(torch.ones(4, 2, 3, 3), None, [1, 1], [1, 1], [1, 1], 1)
    return torch.ops.prepacked.conv2d_clamp_run(x, layer)
)");
  const Tensor x = Tensor::from({0.f, 1.f, 2.f, 3.f, 4.f, 5.f, -6.f, -7.f, -8.f}, {3, 3});
  EXPECT_EQ(program.call("linear", {x}).repr(),
            "tensor([[4.0000, 4.0000, 4.0000, 4.0000],\n        [6.0000, 6.0000, 6.0000, 6.0000],\n"
            "        [0.5000, 0.5000, 0.5000, 0.5000]])");
  EXPECT_EQ(
      program.call("conv", {Tensor::full({1, 2, 4, 5}, 1, DType::Float)}).toTensor().describe(),
      "float32[1, 4, 4, 5]");
}

TEST(MobileTest, LayersThatDoNotFitAreRefused) {
  const Tensor x = Tensor::full({2, 3}, 1, DType::Float);
  const auto linear = [](const std::string& arguments, const std::string& input) {
    return "    l = torch.ops.prepacked.linear_clamp_prepack(" + arguments +
           ")\n    return torch.ops.prepacked.linear_clamp_run(" + input + ", l)\n";
  };
  EXPECT_EQ(errorOf(linear("w", "x"), x), "");
  for (const char* arguments : {"w.double()", "w[0]", "w[:0]", "w, torch.ones(3)", "w, None, 2, 1",
                                "w, None, 1, 1", "w.requires_grad_()", "w, torch.ones(4).half()"}) {
    EXPECT_THAT(errorOf(linear(arguments, "x"), x), HasSubstr("Linear not available")) << arguments;
  }
  for (const char* input : {"x.double()", "x[0, 0]", "x.requires_grad_()"}) {
    EXPECT_THAT(errorOf(linear("w", input), x), HasSubstr("Linear not usable")) << input;
  }
  EXPECT_NE(errorOf(linear("w", "x[:, :2]"), x), "");

  const auto conv = [](const std::string& arguments) {
    return "    l = torch.ops.prepacked.conv2d_clamp_prepack(" + arguments +
           ")\n    return torch.ops.prepacked.conv2d_clamp_run(x, l)\n";
  };
  const Tensor image = Tensor::full({1, 2, 4, 4}, 1, DType::Float);
  EXPECT_EQ(errorOf(conv("k, None, [1], [0], [1], 1"), image), "");
  for (const char* arguments :
       {"k, None, [0, 1], [0, 0], [1, 1], 1", "k, None, [1, 1], [-1, 0], [1, 1], 1",
        "k, None, [1, 1], [0, 0], [0, 1], 1", "k, None, [1, 1], [0, 0], [1, 1], 3",
        "k, None, [1, 1], [0, 0], [1, 1], 0", "w, None, [1, 1], [0, 0], [1, 1], 1",
        "k, torch.ones(2), [1, 1], [0, 0], [1, 1], 1",
        "k, None, [4000000000, 1], [0, 0], [1, 1], 1"}) {
    EXPECT_THAT(errorOf(conv(arguments), image), HasSubstr("convolution not available"))
        << arguments;
  }
  EXPECT_THAT(errorOf(conv("k, None, [1, 1, 1], [0, 0], [1, 1], 1"), image), HasSubstr("stride"));
  EXPECT_NE(errorOf(conv("k, None, [1, 1], [0, 0], [1, 1], 1"),
                    Tensor::full({1, 2, 2, 2}, 1, DType::Float)),
            "");
  EXPECT_NE(errorOf(conv("k, None, [1, 1], [0, 0], [1, 1], 1"), x), "");
  // A layer of another kind.
  EXPECT_THAT(errorOf("    l = torch.ops.prepacked.linear_clamp_prepack(w)\n"
                      "    return torch.ops.prepacked.unpack_prepacked_sizes_conv2d(l)\n",
                      x),
              HasSubstr("expected a packed convolution"));
}

}  // namespace
}  // namespace wick::mobile_test
