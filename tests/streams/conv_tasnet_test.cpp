// Separating voices in sound that does not end: a causal Conv-TasNet (Luo and Mesgarani, 2019) with
// cumulative layer normalization, piece by piece.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "tests/error_text.h"
#include "tests/streams/pieces.h"

namespace wick::streams::conv_tasnet_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;
using testing_pieces::expectSame;
using testing_pieces::numbers;

// An encoder of overlapping frames; blocks of a convolution over channels, one over time that looks back
// ever further, and convolutions to a residual and to a skip connection; a mask for each voice; a decoder
// that adds up overlapping frames.
const char* const kModel = R"(
def cumulative_norm(x: Tensor, gain: Tensor, bias: Tensor) -> Tensor:
    channels = x.size(1)
    seen = torch.arange(channels, channels * (x.size(2) + 1), channels)
    mean = torch.cumsum(x.sum(1), 1) / seen
    variance = torch.cumsum(x.pow(2).sum(1), 1) / seen - mean * mean
    x = (x - mean.unsqueeze(1)) / torch.sqrt(variance.unsqueeze(1) + 1e-3)
    return x * gain + bias

def main(x: Tensor, w: List[Tensor], blocks: int, repeats: int, voices: int) -> Tensor:
    batch, _, length = x.shape
    stride = w[0].size(2) // 2
    frames = torch.relu(torch.conv1d(x, w[0], None, [stride]))
    features = frames.size(1)
    y = torch.conv1d(cumulative_norm(frames, w[1], w[2]), w[3], w[4])
    skips = torch.zeros_like(y)
    at = 5
    for repeat in range(repeats):
        for block in range(blocks):
            dilation = 2 ** block
            z = torch.prelu(torch.conv1d(y, w[at], w[at + 1]), w[at + 2])
            z = cumulative_norm(z, w[at + 3], w[at + 4])
            past = (w[at + 5].size(2) - 1) * int(dilation)
            z = torch.conv1d(z, w[at + 5], w[at + 6], [1], [past], [int(dilation)], z.size(1))
            z = torch.prelu(z[:, :, :frames.size(2)], w[at + 7])
            z = cumulative_norm(z, w[at + 8], w[at + 9])
            skips = skips + torch.conv1d(z, w[at + 12], w[at + 13])
            y = y + torch.conv1d(z, w[at + 10], w[at + 11])
            at += 14
    masks = torch.sigmoid(torch.conv1d(torch.prelu(skips, w[at]), w[at + 1], w[at + 2]))
    masks = masks.view(batch, voices, features, -1)
    parts = (masks * frames.unsqueeze(1)).view(batch * voices, features, frames.size(2))
    sound = torch.conv_transpose1d(parts, w[at + 3], None, [stride])
    return sound.view(batch, voices, -1)
)";

struct Sizes {
  int64_t features = 16;  // N of the paper
  int64_t kernel = 16;    // L
  int64_t narrow = 8;     // B and Sc
  int64_t wide = 16;      // H
  int64_t looks = 3;      // P
  int64_t blocks = 4;     // X
  int64_t repeats = 2;    // R
  int64_t voices = 2;     // C
};

std::vector<IValue> argumentsFor(const Tensor& sound, const Sizes& s) {
  std::vector<Tensor> w;
  const auto add = [&](IntSpan sizes, double size = 1, double offset = 0) {
    Tensor t = numbers(sizes, static_cast<int64_t>(w.size()) + 2);
    int64_t inputs = 1;
    for (size_t d = 1; d < sizes.size(); ++d) inputs *= sizes[d];
    for (int64_t i = 0; i < t.numel(); ++i) {
      float& value = t.data<float>()[i];
      value = static_cast<float>(value * size / std::sqrt(static_cast<double>(inputs)) + offset);
    }
    w.push_back(t);
  };
  add({s.features, 1, s.kernel}, 3);
  add({s.features, 1}, 0.2, 1);
  add({s.features, 1}, 0.1);
  add({s.narrow, s.features, 1}, 3);
  add({s.narrow});
  for (int64_t block = 0; block < s.blocks * s.repeats; ++block) {
    add({s.wide, s.narrow, 1}, 3);
    add({s.wide});
    add({1}, 0.1, 0.25);
    add({s.wide, 1}, 0.2, 1);
    add({s.wide, 1}, 0.1);
    add({s.wide, 1, s.looks}, 3);
    add({s.wide});
    add({1}, 0.1, 0.25);
    add({s.wide, 1}, 0.2, 1);
    add({s.wide, 1}, 0.1);
    add({s.narrow, s.wide, 1}, 3);
    add({s.narrow});
    add({s.narrow, s.wide, 1}, 3);
    add({s.narrow});
  }
  add({1}, 0.1, 0.25);
  add({s.voices * s.features, s.narrow, 1}, 3);
  add({s.voices * s.features});
  add({s.features, 1, s.kernel}, 3);
  return {IValue(sound), IValue(makeTensorList(w)), IValue(s.blocks), IValue(s.repeats),
          IValue(s.voices)};
}

TEST(ConvTasNetTest, PiecesOfAnyLengthAreOneCall) {
  for (const int64_t length : {400, 407, 393}) {
    const std::vector<IValue> arguments = argumentsFor(numbers({2, 1, length}, 1), {});
    for (const auto& lengths :
         std::vector<std::vector<int64_t>>{{1}, {8}, {13, 0, 3}, {64}, {100, 1}, {1000}}) {
      expectSame(kModel, arguments, 2, lengths);
    }
  }
  Sizes odd;
  odd.kernel = 10;
  odd.voices = 3;
  odd.looks = 2;
  expectSame(kModel, argumentsFor(numbers({1, 1, 301}, 1), odd), 2, {17});
}

TEST(ConvTasNetTest, GivesAStrideForAStride) {
  const Program program = compile(kModel);
  TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                    argumentsFor(numbers({1, 1, 400}, 1), {}), 2);
  const std::string text = printStream(stream.graph());
  EXPECT_THAT(text, HasSubstr("peek 16"));
  EXPECT_THAT(text, HasSubstr("push 8"));
  // Frames of 16 samples, each 8 after the one before.
  EXPECT_FALSE(stream.push(numbers({1, 1, 15}, 1)).has_value());
  EXPECT_EQ(stream.push(numbers({1, 1, 1}, 1))->size(2), 8);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(stream.push(numbers({1, 1, 8}, 1))->size(2), 8);
  EXPECT_EQ(stream.finish()->size(2), 8);
}

int64_t residentKilobytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * 4;
}

TEST(ConvTasNetTest, TenMinutesTakeTheMemoryOfOne) {
  constexpr int64_t kSecond = 8000;
  const Program program = compile(kModel);
  TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                    argumentsFor(numbers({1, 1, kSecond}, 1), {.blocks = 3, .repeats = 1}), 2);
  int64_t results = 0, held = 0, resident = 0;
  for (int second = 0; second < 600; ++second) {
    results += stream.push(numbers({1, 1, kSecond}, second))->size(2);
    if (second < 60) {
      held = std::max(held, stream.heldElements());
      resident = residentKilobytes();
    } else {
      ASSERT_LE(stream.heldElements(), held);
    }
  }
  EXPECT_EQ(results + stream.finish()->size(2), 600 * kSecond);
  // What comes in is 18,750 KB more after ten minutes, and each layer's numbers are many times that.
  EXPECT_LT(residentKilobytes() - resident, 4000) << resident << " KB after a minute";
}

TEST(ConvTasNetTest, ANormOverAllOfTheTimeNamesItselfAndItsPlace) {
  EXPECT_THAT(errorOf([&] {
                const Program program = compile(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    y = torch.conv1d(x, w, None, [8])
    y = torch.group_norm(y, 1)
    return torch.conv_transpose1d(y, w, None, [8])
)");
                TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                                  {numbers({1, 1, 400}, 1), numbers({4, 1, 16}, 2)}, 2);
              }),
              HasSubstr("aten::group_norm has no form that runs piece by piece (<string>:4"));
}

}  // namespace
}  // namespace wick::streams::conv_tasnet_test
