// What is handed on from piece to piece: windows of transposed convolutions, running sums, states of
// recurrent layers, counts of steps; and programs that ask for sizes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/error_text.h"
#include "tests/streams/pieces.h"

namespace wick::streams::time_state_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;
using testing_pieces::expectSame;
using testing_pieces::numbers;

const std::vector<std::vector<int64_t>> kLengths = {{1}, {7}, {5, 0, 1, 2}, {1000}};

std::string main1(const std::string& body, const std::string& more = "") {
  return "def main(x: Tensor" + more + ") -> Tensor:\n" + body;
}

TEST(TimeStateTest, TransposedConvolutions) {
  // Stride, padding, output padding, groups, dilation, kernel: windows that overlap, that meet, that leave
  // gaps, and padding that cuts off more than the last step adds.
  struct Case {
    int64_t stride, padding, added, dilation, kernel;
  };
  for (const Case c :
       {Case{2, 0, 0, 1, 4}, Case{2, 1, 1, 1, 3}, Case{8, 8, 0, 1, 16}, Case{4, 0, 0, 1, 4},
        Case{5, 0, 0, 1, 2}, Case{5, 1, 3, 1, 2}, Case{1, 3, 0, 2, 5}, Case{3, 4, 2, 2, 3},
        Case{1, 0, 0, 1, 1}, Case{6, 2, 0, 1, 3}, Case{3, 7, 0, 3, 4}, Case{2, 0, 2, 3, 1}}) {
    SCOPED_TRACE(testing::Message()
                 << "stride " << c.stride << " padding " << c.padding << " added " << c.added
                 << " dilation " << c.dilation << " kernel " << c.kernel);
    const auto text = [](int64_t n) { return "[" + std::to_string(n) + "]"; };
    const std::string call = "    return torch.conv_transpose1d(x, w, b, " + text(c.stride) + ", " +
                             text(c.padding) + ", " + text(c.added) + ", 2, " + text(c.dilation) +
                             ")\n";
    const std::string flags = "    return torch._convolution(x, w, b, " + text(c.stride) + ", " +
                              text(c.padding) + ", " + text(c.dilation) + ", True, " +
                              text(c.added) + ", 2, False, False, False, False)\n";
    for (const std::string& body : {call, flags}) {
      for (const auto& lengths : kLengths) {
        expectSame(main1(body, ", w: Tensor, b: Tensor"),
                   {numbers({2, 4, 23}, 1), numbers({4, 3, c.kernel}, 2), numbers({6}, 3)}, 2,
                   lengths);
      }
    }
  }
}

TEST(TimeStateTest, TransposedConvolutionsOfPlanes) {
  const std::string body =
      "    return torch.conv_transpose2d(x, w, None, [2, 3], [1, 2], [1, 0], 1, [1, 2])\n";
  const std::vector<IValue> arguments = {numbers({1, 2, 11, 9}, 1), numbers({2, 3, 3, 4}, 2)};
  for (const int64_t axis : {2, 3}) {
    expectSame(main1(body, ", w: Tensor"), arguments, axis, {1});
    expectSame(main1(body, ", w: Tensor"), arguments, axis, {4});
  }
}

TEST(TimeStateTest, RatesOfTransposedConvolutions) {
  const Program program = compile(
      main1("    return torch.conv_transpose1d(torch.conv1d(x, w, None, [3]), v, None, [3])\n",
            ", w: Tensor, v: Tensor"));
  TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                    {numbers({1, 2, 40}, 1), numbers({4, 2, 6}, 2), numbers({4, 2, 6}, 3)}, 2);
  EXPECT_THAT(printStream(stream.graph()), HasSubstr("push 3"));
  EXPECT_EQ(stream.push(numbers({1, 2, 6}, 1))->size(2), 3);
  EXPECT_EQ(stream.push(numbers({1, 2, 3}, 1))->size(2), 3);
  EXPECT_EQ(stream.finish()->size(2), 3);
}

TEST(TimeStateTest, RunningSumsAreThoseOfTheWhole) {
  // Bit for bit: what is carried was not rounded.
  for (const char* body :
       {"    return torch.cumsum(x, 1)\n", "    return torch.cumprod(x * 1.9, 1)\n",
        "    return torch.logcumsumexp(x * 30, -1)\n",
        "    return torch.cumsum(x * 100, 1).double()\n",
        "    return torch.cumsum(torch.round(x * 1e9).to(torch.int64), 1, dtype=torch.int32)\n",
        "    return torch.cumsum(x > 0, 1)\n", "    return torch.cumsum(x.half(), 1)\n",
        "    return torch.view_as_real(torch.cumsum(torch.complex(x, x * x), 1))[:, :, 1]\n",
        "    return torch.cumsum(x, 0)\n"}) {
    SCOPED_TRACE(body);
    for (const auto& lengths : kLengths) {
      expectSame(main1(body), {numbers({3, 61}, 1)}, 1, lengths, 0);
    }
  }
}

TEST(TimeStateTest, RunningExtremaKnowTheirPlaces) {
  Tensor x = numbers({2, 40}, 1);
  x.data<float>()[25] = x.data<float>()[60] = std::numeric_limits<float>::quiet_NaN();
  x.data<float>()[5] = x.data<float>()[17] = 3;  // the later one counts
  for (const char* name : {"cummax", "cummin"}) {
    for (const int which : {0, 1}) {
      const std::string body = std::string("    r = torch.") + name + "(x, 1)\n    return r[" +
                               std::to_string(which) + "]\n";
      for (const auto& lengths : kLengths) expectSame(main1(body), {x}, 1, lengths, 0);
    }
  }
}

std::vector<IValue> recurrentWeights(int64_t gates, int64_t layers, int64_t in, int64_t hidden) {
  std::vector<Tensor> weights;
  for (int64_t layer = 0; layer < layers; ++layer) {
    weights.push_back(numbers({gates * hidden, layer == 0 ? in : hidden}, 10 + layer));
    weights.push_back(numbers({gates * hidden, hidden}, 20 + layer));
    weights.push_back(numbers({gates * hidden}, 30 + layer));
    weights.push_back(numbers({gates * hidden}, 40 + layer));
  }
  return {IValue(makeTensorList(weights))};
}

TEST(TimeStateTest, RecurrentLayersGoOnWhereTheyWere) {
  constexpr int64_t kIn = 3, kHidden = 5, kLayers = 2, kBatch = 2, kSteps = 19;
  for (const bool batch_first : {false, true}) {
    const Tensor x =
        batch_first ? numbers({kBatch, kSteps, kIn}, 1) : numbers({kSteps, kBatch, kIn}, 1);
    const std::string rest =
        std::string("True, 2, 0.0, False, False, ") + (batch_first ? "True)\n" : "False)\n");
    const Tensor h = numbers({kLayers, kBatch, kHidden}, 3),
                 c = numbers({kLayers, kBatch, kHidden}, 4);
    for (const auto& lengths : kLengths) {
      expectSame(
          "def main(x: Tensor, h: Tensor, c: Tensor, w: List[Tensor]) -> Tensor:\n"
          "    y, h1, c1 = torch.lstm(x, [h, c], w, " +
              rest + "    return torch.relu(y)\n",
          {x, h, c, recurrentWeights(4, kLayers, kIn, kHidden)[0]}, batch_first ? 1 : 0, lengths);
      for (const auto& [name, gates] : {std::pair("gru", 3), {"rnn_tanh", 1}, {"rnn_relu", 1}}) {
        expectSame(
            "def main(x: Tensor, h: Tensor, w: List[Tensor]) -> Tensor:\n    y, h1 = torch." +
                std::string(name) + "(x, h, w, " + rest + "    return y\n",
            {x, h, recurrentWeights(gates, kLayers, kIn, kHidden)[0]}, batch_first ? 1 : 0,
            lengths);
      }
    }
  }
}

TEST(TimeStateTest, SizesThatDoNotGoAlongTime) {
  const std::vector<IValue> arguments = {numbers({2, 6, 30}, 1)};
  for (const char* body :
       {// Views that keep time, told by a size, by -1, and in another place.
        "    b, c, t = x.shape\n    return torch.relu(x.view(b, 2, c // 2, t).mean(1))\n",
        "    return x.view(x.size(0), 2, 3, -1).sum(2)\n",
        "    return x.view(-1, 3, x.size(2)) * 2\n",
        "    return x.transpose(1, 2).reshape(x.size(0), x.size(2), 2, 3).transpose(2, 3)\n",
        "    return x.view(x.size()[:1] + [2, 3] + x.size()[2:])\n",
        "    return x.flatten(0, 1) + x.unsqueeze(0).expand(4, -1, -1, x.size(2)).sum(0).view(12, "
        "-1)\n",
        // Branches and loops over what is known.
        "    if x.dim() == 3 and x.size(1) == 6:\n        y = x * 2\n    else:\n        y = "
        "x.mean(2)\n"
        "    return y\n",
        "    y = x\n    for i in range(x.size(1) // 2):\n        if i == 1:\n"
        "            y = torch.constant_pad_nd(y, [i, 0], 0.0)[:, :, :-2] + x[:, :, 1:]\n"
        "        else:\n            y = y * i + 1\n    return y\n",
        // Made for each step.
        "    seen = torch.arange(1, x.size(2) + 1)\n    return torch.cumsum(x, 2) / seen\n",
        "    c = x.size(1)\n    seen = torch.arange(c, c * (x.size(2) + 1), c)\n"
        "    return torch.cumsum(x, 2) / seen.view(1, -1).expand(6, x.size(2))\n",
        "    ones = torch.ones(x.size(0), 1, x.size(2))\n    return x / torch.cumsum(ones, 2)\n",
        "    y = x.new_zeros([2, 1, x.size(2)]) + torch.full([1, x.size(1), x.size(2)], 0.5)\n"
        "    return x + y * x.new_ones([1, 1, 1]).type_as(x)\n",
        "    return x + torch.ones(1, 6, 1).type_as(x).expand(2, 6, x.size(2)) +"
        " torch.ones(6, 1).repeat(2, 1, x.size(2))\n",
        // As many steps as something else has.
        "    y = torch.constant_pad_nd(x, [2, 3], 1.0)\n    return y[:, :, :x.size(2)] * x\n",
        "    y = x[:, :, 4:]\n    return x[:, :, :y.size(2)] - y\n",
        // Written in place.
        "    y = x * 2\n    y += x\n    y.relu_()\n    return y\n",
        // Several results.
        "    a, b = torch.max(x, 1)\n    return a + b\n",
        "    return torch.stack(torch.unbind(x, 1), 2).transpose(1, 2)\n",
        "    return torch.prelu(x, torch.ones(6)) + torch.prelu(x, torch.ones(1))\n",
        "    return torch.matmul(torch.ones(4, 6), x)\n",
        // Frames, and steps given several times.
        "    return x.unfold(2, 5, 2).mean(3)\n",
        "    return torch.upsample_nearest1d(x, None, [3.0])\n"}) {
    SCOPED_TRACE(body);
    for (const auto& lengths : kLengths) expectSame(main1(body), arguments, 2, lengths);
  }
}

TEST(TimeStateTest, PaddingWithWhatIsInside) {
  for (const char* body :
       {"    return torch.reflection_pad1d(x, [4, 3])\n",
        "    return torch.reflection_pad1d(x, [0, 2])\n",
        "    return torch.replication_pad1d(x, [3, 0])\n",
        "    return torch.replication_pad1d(x, [2, 9])\n",
        "    return torch.pad(x, [5, 1], \"reflect\") + torch.pad(x, [5, 1], \"replicate\")\n"}) {
    SCOPED_TRACE(body);
    for (const auto& lengths : kLengths)
      expectSame(main1(body), {numbers({2, 3, 17}, 1)}, 2, lengths, 0);
  }
  for (const char* body : {"    return torch.reflection_pad2d(x, [1, 2, 3, 1])\n",
                           "    return torch.replication_pad2d(x, [1, 2, 3, 1])\n"}) {
    for (const int64_t axis : {2, 3})
      expectSame(main1(body), {numbers({1, 2, 9, 8}, 1)}, axis, {2}, 0);
  }
}

TEST(TimeStateTest, FrequenciesOfFrames) {
  for (const char* arguments : {"x, 16, 5, 12, w, center=False, return_complex=False",
                                "x, 16, 5, 12, w, return_complex=False",
                                "x, 16, None, None, None, onesided=False, return_complex=False"}) {
    SCOPED_TRACE(arguments);
    const std::string body = std::string("    y = torch.stft(") + arguments +
                             ")\n    return (y.pow(2).sum(-1) + 1e-3).sqrt()\n";
    for (const auto& lengths : kLengths) {
      expectSame(main1(body, ", w: Tensor"), {numbers({2, 83}, 1), numbers({12}, 2)}, 1, lengths);
    }
  }
}

TEST(TimeStateTest, OptionalArgumentsDecideBranches) {
  const std::string source =
      "def main(x: Tensor, scale: Optional[Tensor], twice: bool) -> Tensor:\n"
      "    if scale is not None:\n        x = x * scale\n"
      "    if twice:\n        x = x + x\n    return x\n";
  expectSame(source, {numbers({2, 10}, 1), IValue(), IValue(true)}, 1, {3});
  expectSame(source, {numbers({2, 10}, 1), IValue(numbers({2, 1}, 2)), IValue(false)}, 1, {3});
}

TEST(TimeStateTest, BranchesBehindRecurrentLayers) {
  // Nothing is known of what these give before they ran.
  for (const auto& lengths : kLengths) {
    expectSame(
        "def main(x: Tensor, h: Tensor, w: List[Tensor]) -> Tensor:\n"
        "    y, h1 = torch.gru(x, h, w, True, 2, 0.0, False, False, False)\n"
        "    if y.dim() != 3 or y.shape[2] != 5:\n        y = y.mean(0)\n"
        "    for i in range(len(y.shape)):\n        y = y * 2 + i\n"
        "    factors = [2.0 for _ in range(y.dim() - 2)]\n"
        "    y = torch.upsample_nearest1d(y.permute(1, 2, 0), None, factors)\n"
        "    return y\n",
        {numbers({19, 2, 3}, 1), numbers({2, 2, 5}, 3), recurrentWeights(3, 2, 3, 5)[0]}, 0,
        lengths, 1e-4);
  }
}

TEST(TimeStateTest, WhatIsLeftOutAtTheEndIsNotWaitedFor) {
  const Program program = compile(main1(
      "    y = torch.relu(torch.conv1d(x, w, None, [1], [6], [3]))\n    return y[:, :, :-6] + x\n",
      ", w: Tensor"));
  TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                    {numbers({1, 2, 40}, 1), numbers({2, 2, 3}, 2)}, 2);
  EXPECT_EQ(stream.push(numbers({1, 2, 1}, 1))->size(2), 1);
  EXPECT_EQ(stream.push(numbers({1, 2, 9}, 1))->size(2), 9);
  EXPECT_FALSE(stream.finish().has_value());
}

std::string refusal(const std::string& body) {
  return errorOf([&] {
    const Program program = compile(main1(body));
    TimeStream stream(inlinedFunction(program.function("main"), nullptr), {numbers({2, 6, 20}, 1)},
                      2);
  });
}

TEST(TimeStateTest, WhatNeedsTheWholeLengthIsRefused) {
  const char* const kLength =
      "needs the length of all of the time, so it cannot run piece by piece "
      "(<string>:2";
  EXPECT_THAT(refusal("    return x * x.size(2)\n"), HasSubstr(kLength));
  EXPECT_THAT(refusal("    return x / float(x.size(2))\n"), HasSubstr(kLength));
  EXPECT_THAT(refusal("    return x.view(2, 6, x.size(2) // 2, 2)\n"), HasSubstr(kLength));
  EXPECT_THAT(refusal("    return x + torch.zeros(x.size(2), x.size(2))[0]\n"), HasSubstr(kLength));
  EXPECT_THAT(refusal("    return x.view(2, 3, 40)\n"),
              HasSubstr("joins time with other dimensions"));
  EXPECT_THAT(refusal("    return x + torch.arange(0, 2 * x.size(2), 1)[1:21]\n"),
              HasSubstr("counts more or fewer numbers than there are steps"));
  EXPECT_THAT(refusal("    return x + torch.arange(1, x.size(2))[0]\n"),
              HasSubstr("counts more or fewer numbers"));
  EXPECT_THAT(refusal("    return x[:, :, :x.size(2) - 2]\n"),
              HasSubstr("aten::slice needs the length"));
  EXPECT_THAT(refusal("    if x.size(2) > 3:\n        x = x * 2\n    return x\n"),
              HasSubstr("aten::gt needs the length"));
  EXPECT_THAT(refusal("    return x + torch.ones(6, 20).expand(2, 6, x.size(2))\n"),
              HasSubstr("aten::expand meets time with a tensor of a fixed length"));
  EXPECT_THAT(refusal("    x += 1\n    return x\n"), HasSubstr("aten::add_ has no form"));
  EXPECT_THAT(refusal("    return torch.upsample_nearest1d(x, [40], None)\n"),
              HasSubstr("is told a length, not a factor"));
  EXPECT_THAT(refusal("    return torch.upsample_nearest1d(x, None, [1.5])\n"),
              HasSubstr("stretches time by 1.5"));
}

TEST(TimeStateTest, WhatGoesBackwardsIsRefused) {
  const auto text = [](const std::string& rest, const std::string& behind) {
    return errorOf([&] {
      const Program program = compile(
          "def main(x: Tensor, h: Tensor, w: List[Tensor]) -> Tensor:\n"
          "    y, h1 = torch.gru(x, h, w, True, " +
          rest + ")\n    return " + behind + "\n");
      std::vector<IValue> weights = recurrentWeights(3, 1, 3, 5);
      Tensor h = numbers({1, 2, 5}, 2);
      if (rest.find("True, False") != std::string::npos) {
        std::vector<Tensor> both = weights[0].toTensors();
        const std::vector<Tensor> one = both;
        both.insert(both.end(), one.begin(), one.end());
        weights[0] = IValue(makeTensorList(both));
        h = numbers({2, 2, 5}, 2);
      }
      if (rest.ends_with("True")) h = numbers({1, 9, 5}, 2);
      TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                        {numbers({9, 2, 3}, 1), h, weights[0]}, 0);
    });
  };
  EXPECT_THAT(
      text("1, 0.0, False, True, False", "y"),
      HasSubstr("aten::gru goes through time backwards, too, so it cannot run piece by piece "
                "(<string>:2"));
  EXPECT_THAT(text("1, 0.0, False, False, False", "y + h1"),
              HasSubstr("the last state of aten::gru is known at the end alone"));
  EXPECT_THAT(text("1, 0.0, False, False, False", "h1"), HasSubstr("known at the end alone"));
  EXPECT_THAT(text("1, 0.0, False, False, True", "y"), HasSubstr("time in another dimension"));
}

TEST(TimeStateTest, KeptMemoryDoesNotGrow) {
  const Program program =
      compile(main1("    seen = torch.arange(1, x.size(2) + 1)\n"
                    "    y = torch.cumsum(x, 2) / seen + torch.cummax(x, 2)[0]\n"
                    "    y = torch.conv_transpose1d(torch.conv1d(y, w, None, [4]), v, None, [4])\n"
                    "    return y[:, :, :x.size(2)]\n",
                    ", w: Tensor, v: Tensor"));
  TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                    {numbers({1, 2, 64}, 1), numbers({3, 2, 8}, 2), numbers({3, 2, 8}, 3)}, 2);
  int64_t most = 0;
  for (int i = 0; i < 400; ++i) {
    stream.push(numbers({1, 2, 50}, i));
    if (i < 40) {
      most = std::max(most, stream.heldElements());
    } else {
      EXPECT_LE(stream.heldElements(), most);
    }
  }
}

}  // namespace
}  // namespace wick::streams::time_state_test
