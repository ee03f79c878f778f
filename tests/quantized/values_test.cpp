// Rounding to grids and back, and operators on quantized values, against PyTorch 1.13's integers.
#include <cmath>
#include <limits>

#include "serialization/torch_save.h"
#include "tests/quantized/quantized_testing.h"

namespace wick::testing::values_test {
namespace {

constexpr const char* kA = "torch.quantize_per_tensor(a, 0.05, 60, torch.quint8)";
constexpr const char* kB = "torch.quantize_per_tensor(b, 0.03, 200, torch.quint8)";

std::string on(const std::string& text) {
  std::string result = text;
  for (const auto& [mark, value] : {std::pair{"@a", kA}, {"@b", kB}}) {
    for (size_t at; (at = result.find(mark)) != std::string::npos;) result.replace(at, 2, value);
  }
  return result;
}
std::vector<IValue> two() {
  return {spread(-2, 2, 9), spread(1, -3, 9)};
}
std::vector<IValue> one() {
  return {spread(-2, 2, 9)};
}

TEST(Quantize, RoundsHalfToEvenAndCutsOff) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const Tensor x =
      Tensor::from({0.25f, 0.75f, -0.25f, -0.75f, 1.25f, 100.f, -100.f, nan, inf, -inf, 3e38f});
  const auto as = [&](const char* dtype) {
    return intsOf(
        "torch.quantize_per_tensor(a, 0.5, 10, torch." + std::string(dtype) + ").int_repr()", {x});
  };
  EXPECT_EQ(as("quint8"), (Integers{10, 12, 10, 8, 12, 210, 0, 0, 0, 0, 0}));
  EXPECT_EQ(as("qint8"), (Integers{10, 12, 10, 8, 12, 127, -128, -128, -128, -128, -128}));
  const int64_t least = INT32_MIN;
  EXPECT_EQ(as("qint32"), (Integers{10, 12, 10, 8, 12, 210, -190, least, least, least, least}));
}

TEST(Quantize, ManyValuesAsOneByOne) {
  // Long enough for vectors, and an odd rest.
  const Tensor x = spread(-40, 40, 1003);
  const Integers all = intsOf("torch.quantize_per_tensor(a, 0.25, 100, torch.quint8)", {x});
  for (size_t i = 0; i < all.size(); ++i) {
    const double want = std::clamp(std::nearbyint(x.data<float>()[i] * 4.0) + 100, 0.0, 255.0);
    ASSERT_EQ(all[i], static_cast<int64_t>(want)) << i;
  }
}

// In vectors too: what is no number, too large or in the middle of two integers.
TEST(Quantize, EdgesAmongManyValues) {
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  const float edges[] = {0.25f, 0.75f, -0.25f, 100.f, -100.f, nan, inf, -inf, 3e38f, 5e18f, -5e18f};
  Tensor x = Tensor::empty({77}, DType::Float);
  for (int64_t i = 0; i < 77; ++i) x.data<float>()[i] = edges[i % 11];
  for (const char* dtype : {"quint8", "qint8"}) {
    const std::string text =
        "torch.quantize_per_tensor(a, 0.5, 10, torch." + std::string(dtype) + ").int_repr()";
    const Integers all = intsOf(text, {x});
    const Integers few = intsOf(text, {x.narrow(0, 0, 11)});
    for (size_t i = 0; i < 77; ++i) EXPECT_EQ(all[i], few[i % 11]) << i;
  }
}

TEST(Quantize, PerChannel) {
  const Tensor w = Tensor::from({0.5f, -1.f, 2.f, 0.25f, 0.5f, -0.75f}, {2, 3});
  const std::string per_channel = "torch.quantize_per_channel(a, torch.tensor([%]), 0, torch.";
  const auto with = [&](std::string parameters, const std::string& dtype) {
    std::string text = per_channel;
    text.replace(text.find('%'), 1, parameters);
    return text + dtype + ")";
  };
  EXPECT_EQ(intsOf(with("0.1, 0.01]), torch.tensor([3, -5", "qint8"), {w}),
            (Integers{8, -7, 23, 20, 45, -80}));
  EXPECT_EQ(intsOf(with("0.1, 0.05]), torch.tensor([3.5, 4.25", "quint8"), {w}),
            (Integers{8, 0, 24, 9, 14, 0}));
  const std::string nibbles = with("0.3, 0.1]), torch.tensor([5., 7.", "quint4x2");
  EXPECT_EQ(intsOf(nibbles + ".int_repr()", {w}), (Integers{39, 172, 12}));
  const std::vector<float> want{0.6f, -0.9f, 2.1f, 0.3f, 0.5f, -0.7f};
  const std::vector<float> got = floats(tensor(nibbles + ".dequantize()", {w}));
  for (size_t i = 0; i < want.size(); ++i) EXPECT_FLOAT_EQ(got[i], want[i]);
  const IValue asked = run("q = " + with("0.1, 0.01]), torch.tensor([3, -5", "qint8") +
                               "\n    return q.q_per_channel_axis(), q.qscheme(), q.is_quantized",
                           {w}, "Tuple[int, int, bool]");
  EXPECT_EQ(asked[0].toInt(), 0);
  EXPECT_EQ(asked[1].toInt(), 1);
  EXPECT_TRUE(asked[2].toBool());
}

TEST(Quantize, Dynamically) {
  const IValue grid = run("return torch._choose_qparams_per_tensor(a, False)", {spread(-1, 3, 7)},
                          "Tuple[float, int]");
  EXPECT_DOUBLE_EQ(grid[0].toDouble(), 0.01568627450980392);
  EXPECT_EQ(grid[1].toInt(), 64);
  EXPECT_EQ(intsOf("torch.quantize_per_tensor_dynamic(a, torch.qint8, False)", {spread(-1, 3, 7)}),
            (Integers{-128, -85, -43, 0, 42, 85, 127}));
}

TEST(Quantize, EmptyTensors) {
  const Tensor none = Tensor::empty({0, 3}, DType::Float);
  EXPECT_EQ(intsOf("torch.relu(torch.quantize_per_tensor(a, 0.5, 1, torch.quint8))", {none}),
            Integers{});
  EXPECT_EQ(
      tensor("torch.quantize_per_tensor(a, 0.5, 1, torch.quint8).dequantize()", {none}).numel(), 0);
}

TEST(Quantize, WrongArgumentsAreErrors) {
  const Tensor x = spread(0, 1, 4);
  EXPECT_ERROR("above upper bound", "torch.quantize_per_tensor(a, 0.1, 300, torch.quint8)", {x});
  EXPECT_ERROR("below lower bound", "torch.quantize_per_tensor(a, 0.1, -1, torch.quint8)", {x});
  EXPECT_ERROR("quantized dtype", "torch.quantize_per_tensor(a, 0.1, 0, torch.int8)", {x});
  EXPECT_ERROR("Float Tensor", "torch.quantize_per_tensor(a.double(), 0.1, 0, torch.quint8)", {x});
  EXPECT_ERROR("expected a quantized tensor", "a.int_repr()", {x});
  EXPECT_ERROR(
      "expected a scale for each",
      "torch.quantize_per_channel(a, torch.ones(3), torch.zeros(3).long(), 0, torch.qint8)", {x});
  EXPECT_ERROR(
      "as many zero points",
      "torch.quantize_per_channel(a, torch.ones(4), torch.zeros(3).long(), 0, torch.qint8)", {x});
  EXPECT_ERROR("one scale for all",
               "torch.sigmoid(torch.quantize_per_channel(a, torch.ones(4), torch.zeros(4).long(), "
               "0, torch.qint8))",
               {x});
  EXPECT_ERROR("not available for quantized tensors",
               "torch.cos(torch.quantize_per_tensor(a, 0.1, 0, torch.quint8))", {x});
  EXPECT_ERROR("expected a quantized tensor", "torch.ops.quantized.add(a, a, 0.1, 0)", {x});
  EXPECT_ERROR("same data type",
               "torch.ops.quantized.add(torch.quantize_per_tensor(a, 0.1, 0, torch.quint8), "
               "torch.quantize_per_tensor(a, 0.1, 0, torch.qint8), 0.1, 0)",
               {x});
}

TEST(Arithmetic, OfTwoTensors) {
  EXPECT_EQ(intsOf(on("torch.ops.quantized.add(@a, @b, 0.1, 30)"), two()),
            (Integers{20, 20, 20, 20, 20, 20, 20, 20, 20}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.add_relu(@a, @b, 0.1, 30)"), two()),
            (Integers{30, 30, 30, 30, 30, 30, 30, 30, 30}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.mul(@a, @b, 0.1, 30)"), two()),
            (Integers{10, 22, 30, 33, 30, 22, 10, 0, 0}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.cat([@a, @b], 0, 0.1, 30)"), two()),
            (Integers{10, 15, 20, 25, 30, 35, 40, 45, 50, 40, 35, 30, 25, 20, 15, 10, 5, 0}));
  EXPECT_EQ(intsOf(on("torch.cat([@a, @b])"), two()),
            (Integers{20, 30, 40, 50, 60, 70, 80, 90, 100, 80, 70, 60, 50, 40, 30, 20, 10, 0}));
}

TEST(Arithmetic, OfATensorAndANumber) {
  const auto look = [&](const std::string& text, double scale, int64_t zero, const Integers& want) {
    const Tensor r = tensor(on("torch.ops.quantized." + text), one());
    EXPECT_DOUBLE_EQ(quantizerOf("", r).scale(), scale) << text;
    EXPECT_EQ(quantizerOf("", r).zeroPoint(), zero) << text;
    EXPECT_EQ(ints(r), want) << text;
  };
  const Integers same{20, 30, 40, 50, 60, 70, 80, 90, 100};
  look("add_scalar(@a, 0.5)", 0.05, 50, same);
  look("add_scalar(@a, -4.0)", 0.05, 140, same);
  look("add_scalar(@a, 10.0)", 0.07745098039215687, 0,
       {103, 110, 116, 123, 129, 136, 142, 148, 155});
  look("add_scalar_relu(@a, -4.0)", 0.05, 140, Integers(9, 140));
  look("mul_scalar(@a, 0.5)", 0.025, 60, same);
  look("mul_scalar(@a, -4.0)", 0.2, 195, {235, 225, 215, 205, 195, 185, 175, 165, 155});
  look("mul_scalar(@a, 0.0)", 1, 0, Integers(9, 0));
  look("mul_scalar_relu(@a, -4.0)", 0.2, 195, {235, 225, 215, 205, 195, 195, 195, 195, 195});
}

TEST(Activations, OnOwnAndGivenGrids) {
  EXPECT_EQ(intsOf(on("torch.sigmoid(@a)"), one()),
            (Integers{31, 47, 69, 97, 128, 159, 187, 209, 225}));
  EXPECT_EQ(intsOf(on("torch.tanh(@a)"), one()),
            (Integers{5, 12, 31, 69, 128, 187, 225, 244, 251}));
  EXPECT_EQ(intsOf(on("torch.hardsigmoid(@a)"), one()),
            (Integers{43, 64, 85, 107, 128, 149, 171, 192, 213}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.hardswish(@a, 0.02, 20)"), one()),
            (Integers{3, 1, 3, 10, 20, 35, 53, 76, 103}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.elu(@a, 0.02, 50, 1.5)"), one()),
            (Integers{0, 0, 3, 20, 50, 75, 100, 125, 150}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.celu(@a, 0.02, 50, 1.5)"), one()),
            (Integers{0, 3, 14, 29, 50, 75, 100, 125, 150}));
  EXPECT_EQ(intsOf(on("torch.ops.quantized.leaky_relu(@a, 0.1, False, 0.02, 50)"), one()),
            (Integers{40, 42, 45, 48, 50, 75, 100, 125, 150}));
  EXPECT_EQ(intsOf(on("torch.relu(@a)"), one()), (Integers{60, 60, 60, 60, 60, 70, 80, 90, 100}));
}

TEST(Elements, AverageAndInterpolateInSteps) {
  Tensor x = Tensor::empty({1, 1, 4, 4}, DType::Float);
  for (int i = 0; i < 16; ++i) x.data<float>()[i] = static_cast<float>(i);
  const std::string q = "torch.quantize_per_tensor(a, 1.0, 0, torch.quint8)";
  // Halves round to even.
  EXPECT_EQ(intsOf("torch.nn.functional.avg_pool2d(" + q + ", 2)", {x}), (Integers{2, 4, 10, 12}));
  EXPECT_EQ(intsOf("torch.adaptive_avg_pool2d(" + q + ", [3, 3])", {x}),
            (Integers{2, 4, 4, 6, 8, 8, 10, 12, 12}));
  EXPECT_EQ(intsOf("torch.nn.functional.max_pool2d(" + q + ", 2)", {x}), (Integers{5, 7, 13, 15}));
  EXPECT_EQ(intsOf("torch.mean(" + q + ", [2, 3])", {x}), Integers{8});
}

// PyTorch rounds before or after the zero point is added, which shows where that is odd.
TEST(Elements, AveragesOnOddZeroPoints) {
  Tensor x = Tensor::empty({1, 2, 4, 4}, DType::Float);
  for (int i = 0; i < 32; ++i) x.data<float>()[i] = static_cast<float>(i % 16 + i / 16);
  const std::string q = "torch.quantize_per_tensor(a, 1.0, 3, torch.qint8)";
  const std::string last = q + ".contiguous(memory_format=torch.channels_last)";
  const std::string pool = "torch.nn.functional.avg_pool2d(",
                    adaptive = "torch.adaptive_avg_pool2d(";
  EXPECT_EQ(intsOf(pool + q + ", 2)", {x}), (Integers{6, 8, 14, 16, 6, 8, 14, 16}));
  EXPECT_EQ(intsOf(pool + last + ", 2)", {x}), (Integers{5, 7, 13, 15, 7, 9, 15, 17}));
  EXPECT_EQ(intsOf(adaptive + q + "[:, :1], [3, 3])", {x}),
            (Integers{5, 7, 7, 9, 11, 11, 13, 15, 15}));
  EXPECT_EQ(intsOf(adaptive + q + ", [3, 3])[0, 0]", {x}),
            (Integers{6, 6, 8, 10, 10, 12, 14, 14, 16}));
  EXPECT_EQ(intsOf("torch.mean(" + q + ", [2, 3])", {x}), (Integers{10, 12}));
  EXPECT_EQ(intsOf("torch.mean(" + q + ", [0, 2])", {x}),
            (Integers{9, 10, 11, 12, 10, 11, 12, 13}));
  EXPECT_EQ(intsOf("torch.mean(" + q + ")", {x}), (Integers{11}));
  const std::string resized = "torch.nn.functional.interpolate(" + q + ", ";
  EXPECT_EQ(intsOf(resized + "size=[3, 2], mode='bilinear', align_corners=False)", {x}),
            (Integers{4, 6, 9, 11, 15, 17, 5, 7, 11, 13, 16, 18}));
  EXPECT_EQ(
      intsOf(resized + "scale_factor=1.5, mode='bilinear', align_corners=True)[0, 0, 0]", {x}),
      (Integers{3, 4, 4, 5, 5, 6}));
  // Positions that no integer holds are those of the last elements.
  EXPECT_EQ(
      intsOf("torch._C._nn.upsample_bilinear2d(" + q + ", [3, 2], False, 1e-300, 1e-300)", {x})
          .size(),
      12u);
}

TEST(Elements, ViewsShareMemoryAndWritesRound) {
  EXPECT_EQ(
      intsOf("b", {spread(0, 1, 2), run("q = torch.quantize_per_tensor(a, 0.5, 1, torch.quint8)"
                                        "\n    q[0].copy_(torch.full([3], 7.3))"
                                        "\n    q[1:, 1:].fill_(-9.)"
                                        "\n    return q",
                                        {Tensor::zeros({2, 3}, DType::Float)})}),
      (Integers{16, 16, 16, 1, 0, 0}));
  EXPECT_EQ(intsOf(on("torch.sort(@a.flip(0).reshape([3, 3]).t())[0]"), one()),
            (Integers{40, 70, 100, 30, 60, 90, 20, 50, 80}));
  EXPECT_ERROR("Copying from quantized Tensor", on("@a.to(torch.float)"), one());
  EXPECT_ERROR("one scale for all",
               "torch.quantize_per_channel(a, torch.ones(9), torch.zeros(9).long(), 0, "
               "torch.qint8).expand([2, 9])",
               one());
}

// A part has the parameters of its channels, and one channel is quantized as a whole.
TEST(Elements, PartsOfChannels) {
  const Tensor x = Tensor::empty({2, 3, 4}, DType::Float);
  for (int64_t i = 0; i < 24; ++i) x.data<float>()[i] = static_cast<float>(i) * 0.7f - 8;
  struct Case {
    const char* cut;
    int64_t axis, kept;  // of the part: where the channels lie, and how many there are
  };
  const Case kCases[] = {
      {"@[:, 1:]", 1, 2},
      {"@[:, 1:2]", 1, 1},
      {"@[:, ::2]", 1, 2},
      {"@[1:]", 1, 3},
      {"@[0]", 0, 3},
      {"@[:, 2]", 0, 1},
      {"@[:, :, 3]", 1, 3},
      {"@.narrow(1, 0, 2)", 1, 2},
      {"@.select(-2, 1)", 0, 1},
      {"@.unbind(0)[1]", 0, 3},
      {"@.unbind(1)[2]", 0, 1},
      {"@.split(2, 1)[0]", 1, 2},
      {"@.split(2, 1)[1]", 1, 1},
      {"@.split([1, 2], 1)[1]", 1, 2},
      {"@.chunk(2, 2)[1]", 1, 3},
      {"@.tensor_split(2, 1)[0]", 1, 2},
      {"@.hsplit([2])[0]", 1, 2},
      {"@.vsplit(2)[0]", 1, 3},
      {"@.dsplit(2)[1]", 1, 3},
      {"@[1:].squeeze(0)", 0, 3},
      {"@[:, :, 1:2].squeeze()", 1, 3},
      {"@.reshape([2, 3, 2, 2]).flatten(2)", 1, 3},
  };
  const std::string quantized =
      "torch.quantize_per_channel(a, torch.tensor([0.1, 0.2, 0.3]), torch.tensor([3, -5, 7]), 1, "
      "torch.qint8)";
  const auto with = [](std::string text, const std::string& value) {
    return text.replace(text.find('@'), 1, value);
  };
  for (const Case& c : kCases) {
    const Tensor part = tensor(with(c.cut, quantized), {x});
    const Tensor whole = tensor(with(c.cut, quantized + ".dequantize()"), {x});
    EXPECT_EQ(floats(tensor("a.dequantize()", {part})), floats(whole)) << c.cut;
    const Quantizer& q = quantizerOf("", part);
    EXPECT_EQ(q.isPerTensor(), c.kept == 1) << c.cut;
    if (c.kept == 1) continue;
    EXPECT_EQ(q.axis(), c.axis) << c.cut;
    EXPECT_EQ(q.scales().numel(), c.kept) << c.cut;
  }
  EXPECT_ERROR("only possible on non-axis",
               "torch.quantize_per_channel(a[:, :1], torch.ones(1), torch.zeros(1).long(), 1, "
               "torch.qint8).squeeze()",
               {x});
  // What is written is rounded to the channel's own grid, also through a part.
  const std::string write =
      "q = " + quantized + "\n    q.copy_(b)\n    q[0].copy_(c)\n    return q";
  const Tensor written = run(write, {x, Tensor::full({2, 3, 4}, 1, DType::Float),
                                     Tensor::full({3, 4}, 2, DType::Float)})
                             .toTensor();
  const Integers found = ints(written);
  const std::vector<int64_t> first{23, 5, 14}, second{13, 0, 10};
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i], (i < 12 ? first : second)[i % 12 / 4]) << i;
  }
}

TEST(Quantize, FilesHoldTheQuantizer) {
  const std::string path = ::testing::TempDir() + "/quantized.pt";
  const Tensor w = Tensor::from({0.5f, -1.f, 2.f, 0.25f, 0.5f, -0.75f}, {2, 3});
  for (const char* text :
       {"torch.quantize_per_tensor(a, 0.1, 3, torch.qint8)[:, 1:]",
        "torch.quantize_per_channel(a, torch.tensor([0.1, 0.01]), torch.tensor([3, -5]), 0, "
        "torch.qint8)",
        "torch.quantize_per_channel(a, torch.tensor([0.3, 0.1]), torch.tensor([5., 7.]), 0, "
        "torch.quint4x2)"}) {
    const Tensor q = tensor(text, {w});
    saveValue(q, path);
    const Tensor read = loadValue(path).toTensor();
    EXPECT_TRUE(quantizerOf("", q).equals(quantizerOf("", read))) << text;
    EXPECT_EQ(floats(tensor("a.dequantize()", {q})), floats(tensor("a.dequantize()", {read})));
  }
}

TEST(Quantize, ZeroPointsThatNoDTypeHoldsAreRefused) {
  const Tensor none = Tensor::empty({1}, DType::Float);
  for (const char* zero : {"9223372036854775807", "-9223372036854775807", "256"}) {
    const std::string q =
        "torch._empty_affine_quantized([2], scale=1., zero_point=" + std::string(zero) +
        ", dtype=torch.quint8)";
    EXPECT_ERROR("zero point", "torch.ops.quantized.mul_scalar(" + q + ", -2.0)", {none});
    EXPECT_ERROR("zero point", "torch.ops.quantized.add(" + q + ", " + q + ", 0.1, 0)", {none});
  }
}

TEST(Elements, StayOnTheCpu) {
  const Tensor x = Tensor::from({0.f, 1.f, 2.f});
  const std::string q = "torch.quantize_per_tensor(a, 0.5, 3, torch.quint8)";
  EXPECT_EQ(intsOf(q + ".to(torch.device(\"cpu\"))", {x}), (Integers{3, 5, 7}));
  EXPECT_EQ(intsOf(q + ".to(dtype=torch.quint8, layout=torch.strided)", {x}), (Integers{3, 5, 7}));
  EXPECT_EQ(intsOf("torch.full_like(" + q + ", 1.5)", {x}), (Integers{6, 6, 6}));
  EXPECT_ERROR("to: quantized tensors are on the CPU only, got cuda", q + ".to(\"cuda\")", {x});
  EXPECT_ERROR("to: quantized tensors are on the CPU only, got cuda",
               q + ".to(dtype=torch.quint8, device=\"cuda\", layout=torch.strided)", {x});
  EXPECT_ERROR("full_like: quantized tensors are on the CPU only, got cuda",
               "torch.full_like(" + q + ", 2.0, device=\"cuda\")", {x});
}

// Kernels read the CPU's memory, and tensors of other devices have none of it.
TEST(Elements, TensorsOfOtherDevicesAreRefused) {
  const Tensor x = Tensor::from({0.f, 1.f, 2.f, 3.f, 4.f, 5.f}, {2, 3});
  const std::string z = "a.to(torch.device(\"meta\"))", bag = "torch.ops.quantized.embedding_bag_";
  const std::string packed = bag + "byte_prepack(a)";
  const std::string weight = "torch.quantize_per_tensor(a, 0.5, 0, torch.qint8)";
  const std::string q = "torch.quantize_per_tensor(a, 0.5, 0, torch.quint8)";
  for (const std::string& body :
       {bag + "byte_prepack(" + z + ")", bag + "4bit_prepack(" + z + ")",
        bag + "4bit_unpack(" + z + ".to(torch.uint8))",
        bag + "byte_rowwise_offsets(" + packed + ", " + z + ".long(), None)",
        bag + "byte_rowwise_offsets(" + packed + ", torch.tensor([0]), " + z + "[0].long())",
        "torch.quantize_per_channel(a, " + z + "[:, 0], " + z + "[:, 0].long(), 0, torch.qint8)",
        "torch.quantize_per_channel(" + z +
            ", torch.ones([2]), torch.zeros([2]).long(), 0, torch.qint8)",
        "torch._make_per_tensor_quantized_tensor(" + z + ".to(torch.int8), 0.1, 0)"}) {
    EXPECT_ERROR("expected tensors on the CPU, got one on meta", body, {x});
  }
  EXPECT_ERROR(
      "quantized::linear_prepack: quantized tensors exist on the CPU only, and so must all "
      "others of the call, but one is on meta",
      "torch.ops.quantized.linear(" + q + ", torch.ops.quantized.linear_prepack(" + weight + ", " +
          z + "[:, 0]), 0.1, 0)",
      {x});
  EXPECT_ERROR("aten::copy_: quantized tensors exist on the CPU only", q + ".copy_(" + z + ")",
               {x});
}

// Networks keep their layers of dropout when they are quantized.
TEST(Elements, DropoutInEvaluationChangesNothing) {
  const Tensor x = Tensor::from({0.f, 1.f, 2.f});
  const std::string q = "torch.quantize_per_tensor(a, 0.5, 3, torch.quint8)";
  for (const char* name :
       {"torch.dropout", "torch.dropout_", "torch.feature_dropout", "torch.alpha_dropout_",
        "torch.feature_alpha_dropout", "torch.nn.functional.dropout"}) {
    EXPECT_EQ(intsOf(name + ("(" + q + ", 0.5, False)"), {x}), (Integers{3, 5, 7})) << name;
  }
  EXPECT_EQ(intsOf("torch.dropout(" + q + ", 0.0, True)", {x}), (Integers{3, 5, 7}));
  EXPECT_ERROR("dropout: not available for quantized tensors in training",
               "torch.dropout(" + q + ", 0.5, True)", {x});
}

TEST(Elements, MovedAndOrdered) {
  const Tensor x = Tensor::from({2.f, 0.f, 1.f, 3.f}, {2, 2});
  const std::string q = "torch.quantize_per_tensor(a, 0.5, 3, torch.quint8)";
  EXPECT_EQ(intsOf("torch.rot90(" + q + ")", {x}), (Integers{3, 9, 7, 5}));
  EXPECT_EQ(intsOf("torch.msort(" + q + ")", {x}), (Integers{5, 3, 7, 9}));
  EXPECT_EQ(intsOf("torch.argsort(" + q + ")", {x}), (Integers{1, 0, 0, 1}));
  EXPECT_EQ(intsOf(q + ".repeat_interleave(2, 1)", {x}), (Integers{7, 7, 3, 3, 5, 5, 9, 9}));
  EXPECT_EQ(intsOf("torch.nn.functional.embedding(torch.tensor([1]), " + q + ")", {x}),
            (Integers{5, 9}));
}

// A view keeps the parameters of channels that it no longer has; whoever needs them says so.
TEST(Elements, ViewsWithoutTheirChannels) {
  const Tensor x = Tensor::full({2, 3}, 1.0, DType::Float);
  const std::string q =
      "torch.quantize_per_channel(a, torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, "
      "torch.quint8)";
  for (const char* view : {".view([6])", ".view([1, 6])", ".view([3, 2])", ".flatten()"}) {
    EXPECT_EQ(tensor(q + view, {x}).numel(), 6);
    for (const char* use : {".split(1)[0]", ".unbind()[0]", ".chunk(6)[0]", ".select(0, 0)"}) {
      EXPECT_ERROR("length of scales must equal to channel", q + view + use, {x});
    }
    EXPECT_ERROR("expected a scale for each", q + view + ".dequantize()", {x});
    const Tensor made = tensor(q + view, {x});
    EXPECT_THROW(formatTensor(made), RuntimeError);
  }
}

TEST(Elements, DenseTensorsAreNotJoinedWithQuantizedOnes) {
  const Tensor x = Tensor::zeros({2, 2}, DType::Float), bytes = Tensor::zeros({2, 2}, DType::Byte);
  const std::string q = "torch.quantize_per_tensor(a, 0.5, 3, torch.quint8)";
  for (const char* name : {"hstack", "dstack", "vstack", "column_stack", "cat", "stack"}) {
    const std::string call = "torch." + std::string(name) + "([" + q + ", b])";
    EXPECT_ERROR("expected a quantized tensor", call, {x, x});
    EXPECT_ERROR("expected a quantized tensor", call, {x, bytes});
  }
}

// The kernel is the one for quantized tensors, because one is written to.
TEST(Elements, OnlyTheDestinationIsQuantized) {
  const Tensor x = Tensor::zeros({1, 2, 2}, DType::Float);
  const std::string out = "out=torch.quantize_per_tensor(a, 0.5, 3, torch.quint8)";
  EXPECT_ERROR("reflection_pad1d: out= is quantized, but no argument is",
               "torch.ops.aten.reflection_pad1d(a, [1, 1], " + out + ")", {x});
  EXPECT_ERROR("index: out= is quantized, but no argument is",
               "torch.ops.aten.index(a, [None, torch.tensor([0])], " + out + ")", {x});
}

TEST(Elements, Text) {
  const Tensor x = Tensor::from({0.5781f, -1.0508f, -0.1328f});
  EXPECT_EQ(formatTensor(tensor("torch.quantize_per_tensor(a, 0.1, 10, torch.qint32)", {x})),
            " 0.6000\n-1.1000\n-0.1000\n[ QuantizedCPUQInt32Type{3}, qscheme: per_tensor_affine, "
            "scale: 0.1000, zero_point: 10 ]");
}

}  // namespace
}  // namespace wick::testing::values_test
