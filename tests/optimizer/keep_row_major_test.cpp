// Programs that look at the strides of what prepared convolutions give.
#include "passes/keep_row_major.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <utility>
#include <vector>

#include "runtime/inference.h"
#include "runtime/module_builder.h"
#include "wick.h"

namespace wick::keep_row_major_test {
namespace {

Tensor waves(const DimVector& sizes) {
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i)
    t.data<float>()[i] = std::sin(static_cast<float>(i) * 0.7f);
  return t;
}

TEST(KeepRowMajor, PreparedModulesViewWhatConvolutionsGive) {
  for (const char* body : {
           "    return y.view(-1, 4 * 6 * 5)\n",
           "    y = y * 1.5\n    return y.view([2, -1]).sum(1)\n",
           "    return torch.max_pool2d(y, 2).view(2, -1)\n",
           "    return y.view_as(torch.zeros(2, 20, 6))\n",
           "    y.view([-1])[3:5].mul_(2.0)\n    return y + 0\n",
           "    y.flatten()[3:5].mul_(2.0)\n    return y + 0\n",
           "    y.flatten(-2).reshape([-1])[3:5].mul_(2.0)\n    return y + 0\n",
           "    return y.flatten(-2).view(-1)\n",
           "    return y.as_strided([3, 4], [5, 1], 2).clone()\n",
           "    return torch.tensor(y.stride()) + int(y.is_contiguous())\n",
           "    l = [y, y + 1]\n    for i in range(2):\n        l[i] = l[i].view(2, -1)\n    "
           "return l[0] + l[1]\n",
           "    if float(y.sum()) > -1000:\n        y = torch.tanh(y)\n    z = y.view(-1)\n    "
           "z.add_(1)\n    return y\n",
           "    for i in range(3):\n        y = torch.relu(y) * 2\n        y.view(-1)[0] = 1.0\n   "
           " return y\n",
           "    return self.helper(y)\n",
       }) {
    ModuleBuilder builder("Net");
    builder.registerParameter("w", waves({4, 3, 3, 3}));
    builder.define(fmt::format(
        "def helper(self, y):\n    return y.view(2, -1) * 3\n"
        "def forward(self, x):\n    y = torch.relu(torch.conv2d(x, self.w, None, 1, 1))\n{}",
        body));
    const Module module = builder.build().eval();
    const Tensor x = waves({2, 3, 6, 5});
    const Tensor want = module({x}).toTensor().detach();
    const PreparedMethod prepared = optimizeForInference(module);
    for (int run = 0; run < 4; ++run) {
      const Tensor got = prepared({x}).toTensor();
      ASSERT_EQ(got.describe(), want.describe()) << body;
      const Tensor a = got.to(DType::Double).contiguous(), b = want.to(DType::Double).contiguous();
      for (int64_t i = 0; i < a.numel(); ++i) {
        ASSERT_NEAR(a.data<double>()[i], b.data<double>()[i], 1e-4) << body << i;
      }
    }
  }
}

// A prepared module has no view either.
TEST(KeepRowMajor, PreparedModulesRaiseWhereThereIsNoView) {
  for (const auto& [body, raises] : std::vector<std::pair<const char*, bool>>{
           {"    return y.permute(0, 2, 3, 1).view(2, -1)\n", true},
           {"    return (y.transpose(1, 2) * 2).view([-1])\n", true},
           {"    return y[:, 1:3].view(-1)\n", true},
           {"    return y[0].view(-1)\n", false},
           {"    return y[1:2, 1:3].view(-1)\n", false},
           {"    return y.chunk(2, 1)[0].view(2, -1)\n", false},
           {"    return y.chunk(2, 1)[0].view(-1)\n", true},
           {"    return y.permute(0, 2, 3, 1).contiguous().view(-1)\n", false},
           {"    for i in range(2):\n        y = y.transpose(2, 3)\n    return y.view(-1)\n",
            false},
           {"    for i in range(3):\n        y = y.transpose(2, 3)\n    return y.view(-1)\n", true},
           {"    if y.size(0) == 2:\n        y = y.transpose(1, 3)\n    return y.view(2, -1)\n",
            true},
       }) {
    ModuleBuilder builder("Net");
    builder.registerParameter("w", waves({4, 3, 3, 3}));
    builder.define(fmt::format(
        "def forward(self, x):\n    y = torch.relu(torch.conv2d(x, self.w, None, 1, 1))\n{}",
        body));
    const Module module = builder.build().eval();
    const Tensor x = waves({2, 3, 6, 5});
    const PreparedMethod prepared = optimizeForInference(module);
    for (int run = 0; run < 3; ++run) {
      if (raises) {
        EXPECT_THROW(module({x}), RuntimeError) << body;
        EXPECT_THROW(prepared({x}), RuntimeError) << body;
        continue;
      }
      const Tensor want = module({x}).toTensor().detach();
      const Tensor got = prepared({x}).toTensor();
      ASSERT_EQ(got.describe(), want.describe()) << body;
      for (int64_t i = 0; i < got.numel(); ++i) {
        ASSERT_NEAR(got.data<float>()[i], want.data<float>()[i], 1e-4) << body << i;
      }
    }
  }
}

Tensor channelsLast(const Tensor& t) {
  return t.contiguous(MemoryFormat::ChannelsLast);
}

// Layers pass on the order of their inputs and weights.
TEST(KeepRowMajor, PreparedModulesKeepChannelsLastOrder) {
  for (const char* body : {
           "    return y.view(2, -1)\n",
           "    return y.permute(0, 2, 3, 1).view(2, -1)\n",
           "    return (y + 1).view_as(torch.zeros(2, 120))\n",
           "    return torch.tensor(y.stride()) + int(y.is_contiguous())\n",
           "    return y.as_strided([3, 4], [5, 1], 2).clone()\n",
           "    z = y.flatten()\n    z[3:5].mul_(2.0)\n    return y + z.view_as(y)\n",
           "    z = y.view(2, -1)\n    z.add_(1)\n    return y\n",
           "    return torch.max_pool2d(y, 2).view(-1)\n",
           "    if y.size(0) == 2:\n        y = y * 2\n    return y.view(-1)\n",
           "    for i in range(2):\n        y = torch.relu(y)\n        y.view(-1)\n    return y\n",
           "    return torch.conv2d(y, self.w[:, :1].repeat(1, 4, 1, 1)).view(-1)\n",
           "    return y.mean([2, 3], keepdim=True).view(2, 4)\n",
       }) {
    for (const bool weights : {false, true}) {
      for (const char* start : {"", "    x = x.contiguous(memory_format=torch.channels_last)\n",
                                "    x = x.contiguous()\n"}) {
        ModuleBuilder builder("Net");
        const Tensor weight = waves({4, 3, 3, 3});
        builder.registerParameter("w", weights ? channelsLast(weight) : weight);
        builder.define(
            fmt::format("def forward(self, x):\n{}"
                        "    y = torch.relu(torch.conv2d(x, self.w, None, 1, 1))\n{}",
                        start, body));
        const Module module = builder.build().eval();
        const PreparedMethod prepared = optimizeForInference(module);
        const Tensor rows = waves({2, 3, 6, 5});
        for (const Tensor& x : {rows, channelsLast(rows), rows}) {
          const auto outcome = [&](const auto& f) -> std::string {
            try {
              const Tensor t = f({IValue(x)}).toTensor();
              double sum = 0;
              const Tensor rows = t.to(DType::Double).contiguous();
              for (int64_t i = 0; i < rows.numel(); ++i) {
                sum += rows.data<double>()[i] * (1 + static_cast<double>(i % 7));
              }
              return fmt::format("{} {:.3f}", t.describe(), sum);
            } catch (const RuntimeError&) {
              return "an error";
            }
          };
          EXPECT_EQ(outcome(prepared), outcome(module)) << start << body << weights;
        }
      }
    }
  }
}

}  // namespace
}  // namespace wick::keep_row_major_test
