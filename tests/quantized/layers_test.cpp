// Packed weights: layers against PyTorch's values and against the dequantized computation, and what
// archives hold of them.
#include <cmath>
#include <random>

#include "tests/quantized/quantized_testing.h"

namespace wick::testing::layers_test {
namespace {

Tensor noise(IntSpan sizes, unsigned seed) {
  std::mt19937 random(seed);
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<float>()[i] = static_cast<float>(random() % 2001) / 1000.f - 1.f;
  }
  return t;
}

// Both texts on the same arguments agree to `steps` steps of the grid.
void agree(const std::string& quantized, const std::string& real, std::vector<IValue> arguments,
           float tolerance) {
  const std::vector<float> got = floats(run(quantized, arguments).toTensor());
  const std::vector<float> want = floats(run(real, arguments).toTensor());
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], want[i], tolerance) << i;
}

constexpr const char* kX = "x = torch.quantize_per_tensor(a, 0.01, 120, torch.quint8)\n    ";
constexpr const char* kW = "w = torch.quantize_per_tensor(b, 0.01, 0, torch.qint8)\n    ";

TEST(Linear, AsPyTorch) {
  const Tensor x = Tensor::from({1.f, 2.f, 3.f, -1.f, 0.5f, 0.f}, {2, 3});
  const Tensor w = Tensor::from({0.5f, -1.f, 2.f, 0.25f, 0.5f, -0.75f}, {2, 3});
  const Tensor bias = Tensor::from({0.5f, -0.5f});
  const std::string layer =
      "torch.ops.quantized.linear@(torch.quantize_per_tensor(a, 0.02, 128, torch.quint8), "
      "torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(b, 0.02, 0, torch.qint8), c), "
      "0.05, 100)";
  const auto with = [&](const char* suffix) {
    std::string text = layer;
    return text.replace(text.find('@'), 1, suffix);
  };
  EXPECT_EQ(intsOf(with(""), {x, w, bias}), (Integers{182, 76, 90, 90}));
  EXPECT_EQ(intsOf(with("_relu"), {x, w, bias}), (Integers{182, 100, 100, 100}));
}

TEST(Linear, AsTheDequantizedComputation) {
  for (const auto& [rows, in, out] : {std::tuple{1, 3, 5}, {7, 64, 33}, {100, 130, 300}}) {
    const Tensor x = noise({rows, in}, 1), w = noise({out, in}, 2), bias = noise({out}, 3);
    agree(std::string(kX) + kW +
              "return torch.ops.quantized.linear(x, torch.ops.quantized.linear_prepack(w, c), 0.2, "
              "130).dequantize()",
          std::string(kX) + kW +
              "return torch.nn.functional.linear(x.dequantize(), w.dequantize(), c)",
          {x, w, bias}, 0.101f);
    agree(
        "w = torch.quantize_per_channel(b, torch.full([b.size(0)], 0.01), "
        "torch.arange(b.size(0)) % 5, 0, torch.qint8)\n    return "
        "torch.ops.quantized.linear_dynamic(a, torch.ops.quantized.linear_prepack(w, c))",
        "w = torch.quantize_per_channel(b, torch.full([b.size(0)], 0.01), "
        "torch.arange(b.size(0)) % 5, 0, torch.qint8)\n    return torch.nn.functional.linear(a, "
        "w.dequantize(), c)",
        {x, w, bias}, 0.006f * std::sqrt(static_cast<float>(in)) + 1e-3f);
  }
}

TEST(Linear, WrongInputsAreErrors) {
  const Tensor x = noise({2, 3}, 1), w = noise({4, 3}, 2);
  const std::string layer =
      "torch.ops.quantized.linear_prepack(torch.quantize_per_tensor(b, 0.02, 0, torch.qint8), "
      "None)";
  EXPECT_ERROR("expected a quantized tensor",
               "torch.ops.quantized.linear(a, " + layer + ", 0.1, 0)", {x, w});
  EXPECT_ERROR("expected a quint8 input",
               "torch.ops.quantized.linear(torch.quantize_per_tensor(a, 0.1, 0, torch.qint8), " +
                   layer + ", 0.1, 0)",
               {x, w});
  EXPECT_ERROR("3 features", "torch.ops.quantized.linear_dynamic(a.t(), " + layer + ")", {x, w});
  EXPECT_ERROR("expected a weight of qint8",
               "torch.ops.quantized.linear_unpack(torch.ops.quantized.linear_prepack("
               "torch.quantize_per_tensor(b, 0.02, 0, torch.quint8), None))[0]",
               {x, w});
}

TEST(Convolution, AsTheDequantizedComputation) {
  struct Case {
    DimVector x, w;
    const char* numbers;  // stride, padding, dilation, groups
  };
  for (const Case& c : {Case{{2, 3, 9, 8}, {5, 3, 3, 3}, "[1, 1], [1, 1], [1, 1], 1"},
                        {{1, 16, 7, 7}, {20, 16, 1, 1}, "[1, 1], [0, 0], [1, 1], 1"},
                        {{2, 5, 17, 19}, {150, 5, 3, 3}, "[1, 1], [1, 1], [1, 1], 1"},
                        {{1, 8, 30, 20}, {70, 8, 1, 1}, "[2, 1], [0, 0], [1, 1], 1"},
                        {{1, 40, 12, 12}, {40, 1, 3, 3}, "[1, 1], [1, 1], [1, 1], 40"},
                        {{1, 20, 6, 6}, {80, 10, 2, 2}, "[1, 1], [0, 0], [1, 1], 2"},
                        {{1, 6, 11, 9}, {6, 1, 3, 3}, "[2, 1], [1, 1], [1, 1], 6"},
                        {{1, 6, 11, 9}, {4, 3, 3, 2}, "[1, 2], [2, 0], [2, 1], 2"}}) {
    const Tensor x = noise(c.x, 1), w = noise(c.w, 2), bias = noise({c.w[0]}, 3);
    const std::string rest = std::string(c.numbers) + ")";
    agree(std::string(kX) + kW +
              "return torch.ops.quantized.conv2d(x, torch.ops.quantized.conv2d_prepack(w, c, " +
              rest + ", 0.1, 130).dequantize()",
          std::string(kX) + kW + "return torch.conv2d(x.dequantize(), w.dequantize(), c, " + rest,
          {x, w, bias}, 0.051f);
  }
  const Tensor x = noise({2, 4, 9}, 1), w = noise({4, 3, 3}, 2), bias = noise({6}, 3);
  agree(std::string(kX) + kW +
            "return torch.ops.quantized.conv_transpose1d(x, "
            "torch.ops.quantized.conv_transpose1d_prepack(w, c, [2], [1], [1], [1], 2), 0.1, "
            "130).dequantize()",
        std::string(kX) + kW +
            "return torch.conv_transpose1d(x.dequantize(), w.dequantize(), c, [2], [1], [1], 2)",
        {x, w, bias}, 0.051f);
  // PyTorch's layers that pad by reflection give a padding of two numbers.
  agree(std::string(kX) + kW +
            "return torch.ops.quantized.conv1d(x, torch.ops.quantized.conv1d_prepack(w, c, [2], "
            "[0, 0], [1], 1), 0.1, 130).dequantize()",
        std::string(kX) + kW + "return torch.conv1d(x.dequantize(), w.dequantize(), c, [2])",
        {x, noise({6, 4, 3}, 2), bias}, 0.051f);
}

// Zero points of the channels other than 0, and relu at the zero point of the result.
TEST(Convolution, ReluAndZeroPointsOfTheWeight) {
  const Tensor x = noise({1, 13, 15, 15}, 1), w = noise({75, 13, 3, 3}, 2), bias = noise({75}, 3);
  const std::string grids = std::string(kX) +
                            "w = torch.quantize_per_channel(b, torch.full([b.size(0)], 0.01), "
                            "torch.arange(b.size(0)) % 5, 0, torch.qint8)\n    ";
  agree(grids +
            "return torch.ops.quantized.conv2d_relu(x, torch.ops.quantized.conv2d_prepack(w, c, "
            "[1, 1], [1, 1], [1, 1], 1), 0.1, 7).dequantize()",
        grids +
            "return torch.relu(torch.conv2d(x.dequantize(), w.dequantize(), c, [1, 1], [1, 1], "
            "[1, 1], 1))",
        {x, w, bias}, 0.051f);
}

TEST(Convolution, WrongNumbersAreErrors) {
  const Tensor x = noise({1, 3, 4, 4}, 1), w = noise({2, 3, 3, 3}, 2);
  const auto with = [](const char* numbers) {
    return "torch.ops.quantized.conv2d(torch.quantize_per_tensor(a, 0.1, 0, torch.quint8), "
           "torch.ops.quantized.conv2d_prepack(torch.quantize_per_tensor(b, 0.1, 0, torch.qint8), "
           "None, " +
           std::string(numbers) + "), 0.1, 0)";
  };
  EXPECT_ERROR("stride", with("[0, 1], [0, 0], [1, 1], 1"), {x, w});
  EXPECT_ERROR("padding", with("[1, 1], [0, -1], [1, 1], 1"), {x, w});
  EXPECT_ERROR("groups", with("[1, 1], [0, 0], [1, 1], 0"), {x, w});
  EXPECT_ERROR("divides", with("[1, 1], [0, 0], [1, 1], 3"), {x, w});
  EXPECT_ERROR("too small", with("[1, 1], [0, 0], [9, 1], 1"), {x, w});
  EXPECT_ERROR("2 numbers", with("[1], [0, 0], [1, 1], 1"), {x, w});
}

TEST(BatchNorm, AsTheDequantizedComputation) {
  for (const char* relu : {"", "_relu"}) {
    for (const DimVector& sizes : {DimVector{2, 3, 4, 5}, {1, 3, 2, 2, 3}, {4, 3, 7}}) {
      const std::string dims = sizes.size() == 4 ? "2d" : sizes.size() == 5 ? "3d" : "1d";
      const std::string grid = ", 1e-05, 0.05, 120)";
      const std::string call =
          "torch.ops.quantized.batch_norm" + (sizes.size() == 3 ? std::string() : dims) + relu;
      const std::string norm =
          "torch.nn.functional.batch_norm(x.dequantize(), c[0], c[1].abs() + 0.5, c[2], c[3])";
      agree(std::string(kX) + "return " + call + "(x, c[2], c[3], c[0], c[1].abs() + 0.5" + grid +
                ".dequantize()",
            std::string(kX) + "return " + (*relu ? "torch.relu(" + norm + ")" : norm),
            {noise(sizes, 1), noise({1}, 2), noise({4, 3}, 3)}, 0.0251f);
    }
  }
  const Tensor x = noise({2, 3}, 1), c = noise({3}, 2);
  const std::string q = "torch.quantize_per_tensor(a, 0.02, 128, torch.quint8)";
  EXPECT_ERROR("quantized::batch_norm zero_point 300 is above upper bound",
               "torch.ops.quantized.batch_norm(" + q + ", b, b, b, b.abs(), 1e-05, 0.02, 300)",
               {x, c});
}

TEST(Embedding, RowsAsPyTorchPacksThem) {
  Tensor e = Tensor::empty({2, 6}, DType::Float);
  for (int i = 0; i < 12; ++i) e.data<float>()[i] = static_cast<float>(i) / 8 - 1;
  EXPECT_EQ(intsOf("torch.ops.quantized.embedding_bag_byte_prepack(a)", {e}),
            (Integers{0, 51, 102, 153, 204, 255, 161, 160, 32, 59, 0, 0, 128, 191,
                      0, 51, 102, 153, 204, 255, 161, 160, 32, 59, 0, 0, 128, 190}));
  EXPECT_EQ(intsOf("torch.ops.quantized.embedding_bag_4bit_prepack(a)", {e}),
            (Integers{48, 150, 252, 85, 41, 0, 188, 48, 150, 252, 85, 41, 0, 180}));
  EXPECT_ERROR("out of range",
               "torch.ops.quantized.embedding_bag_byte_rowwise_offsets("
               "torch.ops.quantized.embedding_bag_byte_prepack(a), torch.tensor([0, 2]), "
               "torch.tensor([0]))",
               {e});
  EXPECT_ERROR("of 2 indices",
               "torch.ops.quantized.embedding_bag_byte_rowwise_offsets("
               "torch.ops.quantized.embedding_bag_byte_prepack(a), torch.tensor([0, 1]), "
               "torch.tensor([0, 3]))",
               {e});
}

// As PyTorch 1.13 packs them: an element without a level is 0.
TEST(Embedding, RowsOfNaNAndInfinity) {
  const auto rows = [](float first, float second, float third) {
    return Tensor::from({first, second, third, 3.0f}).view(DimVector{1, 4});
  };
  const auto bytes = [](const Tensor& e) {
    return intsOf("torch.ops.quantized.embedding_bag_byte_prepack(a)", {e});
  };
  const auto halves = [](const Tensor& e) {
    return intsOf("torch.ops.quantized.embedding_bag_4bit_prepack(a)", {e});
  };
  const auto quarters = [](const Tensor& e) {
    return intsOf("torch.ops.quantized.embedding_bag_2bit_prepack(a)", {e});
  };
  const Tensor begins = rows(NAN, 1, 2), holds = rows(0, 1, NAN);
  EXPECT_EQ(bytes(begins), (Integers{0, 0, 0, 0, 0, 0, 192, 127, 0, 0, 192, 127}));
  EXPECT_EQ(halves(begins), (Integers{0, 0, 0, 126, 0, 126}));
  EXPECT_EQ(quarters(begins), (Integers{0, 0, 126, 0, 126}));
  EXPECT_EQ(bytes(holds), (Integers{0, 85, 0, 255, 193, 192, 64, 60, 0, 0, 0, 0}));
  EXPECT_EQ(halves(holds), (Integers{80, 240, 102, 50, 0, 0}));
  EXPECT_EQ(quarters(holds), (Integers{196, 0, 60, 0, 0}));
  const Tensor most = rows(INFINITY, 1, 2), least = rows(0, 1, -INFINITY);
  EXPECT_EQ(bytes(most), (Integers{0, 0, 0, 0, 0, 0, 128, 127, 0, 0, 128, 63}));
  EXPECT_EQ(halves(most), (Integers{0, 0, 0, 124, 0, 60}));
  EXPECT_EQ(quarters(most), (Integers{0, 0, 124, 0, 60}));
  EXPECT_EQ(bytes(least), (Integers{0, 0, 0, 0, 0, 0, 128, 127, 0, 0, 128, 255}));
  EXPECT_EQ(halves(least), (Integers{0, 0, 0, 124, 0, 252}));
  const Tensor wide = rows(3e38f, -3e38f, 2);
  EXPECT_EQ(bytes(wide), (Integers{0, 0, 0, 0, 0, 0, 128, 127, 230, 177, 97, 255}));
  EXPECT_EQ(quarters(wide), (Integers{0, 0, 124, 0, 252}));
}

TEST(Embedding, RangesOfOddRatios) {
  const Tensor x = spread(0, 7, 8);
  for (const std::string ratio : {"float('nan')", "float('inf')", "-1e30", "1e30"}) {
    const Tensor high =
        tensor("torch.choose_qparams_optimized(a, 8, 200, " + ratio + ", 8)[0]", {x});
    EXPECT_GE(high.item<float>(), 0) << ratio;
    EXPECT_LE(high.item<float>(), 7) << ratio;
  }
}

}  // namespace
}  // namespace wick::testing::layers_test
