// Programs over time, piece by piece, against one call.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_text.h"
#include "tests/streams/pieces.h"

namespace wick::streams::time_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;
using testing_pieces::expectSame;
using testing_pieces::numbers;

const char* const kNet = R"(
def main(x: Tensor, a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    y = torch.relu(torch.conv1d(x, a, None, [2], [5]))
    z = torch.conv1d(y, b, None, [1], [2], [2])
    y = torch.max_pool1d(z + y * 0.5, [3], [2], [1])
    y = torch.avg_pool1d(y, [2], [1], [1])
    y = torch.log_softmax(torch.conv1d(y, c, None), 1)
    return y.transpose(1, 2)
)";

std::vector<IValue> netArguments(int64_t length) {
  return {numbers({2, 3, length}, 1), numbers({4, 3, 11}, 2), numbers({4, 4, 3}, 3),
          numbers({5, 4, 2}, 4)};
}

TEST(TimeStreamTest, PiecesGiveTheNumbersOfTheWhole) {
  for (const int64_t length : {101, 64, 57}) {
    for (const auto& lengths : std::vector<std::vector<int64_t>>{{1}, {7}, {16, 0, 3}, {1000}}) {
      expectSame(kNet, netArguments(length), 2, lengths);
    }
  }
  expectSame(kNet, netArguments(80), -1, {13});
}

TEST(TimeStreamTest, CausalConvolutionsOfBothForms) {
  const std::vector<IValue> arguments = {numbers({1, 2, 50}, 1), numbers({2, 2, 4}, 2)};
  expectSame(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    y = torch.relu(torch.conv1d(torch.constant_pad_nd(x, [6, 0], 0.0), w, None, [1], [0], [2]))
    return y + x
)",
             arguments, 2, {5, 1});
  // Padded on both sides, and what looks ahead cut off.
  expectSame(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    y = torch.conv1d(x, w, None, [1], [3])[:, :, :-3]
    return torch.sigmoid(y) * x
)",
             arguments, 2, {4});
}

TEST(TimeStreamTest, WindowsFurtherApartThanTheyAreLong) {
  expectSame(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    return torch.conv1d(x, w, None, [5])
)",
             {numbers({1, 1, 63}, 1), numbers({2, 1, 2}, 2)}, 2, {1, 3, 8});
}

TEST(TimeStreamTest, ChannelsMayBeTakenApartAndJoined) {
  expectSame(R"(
def main(x: Tensor, w: Tensor) -> Tensor:
    a, b = torch.chunk(torch.conv1d(x, w, None, [1], [1]), 2, 1)
    y = torch.cat([torch.tanh(a) * torch.sigmoid(b), x], 1)
    return torch.layer_norm(y.transpose(1, 2), [3]).mean(2)
)",
             {numbers({2, 2, 40}, 1), numbers({2, 2, 3}, 2)}, 2, {9});
}

TEST(TimeStreamTest, MemoryIsThatOfTheWindows) {
  const Program program = compile(kNet);
  TimeStream stream(inlinedFunction(program.function("main"), nullptr), netArguments(64), 2);
  const Tensor piece = numbers({2, 3, 50}, 5);
  for (int i = 0; i < 10; ++i) stream.push(piece);
  int64_t most = 0;
  for (int i = 0; i < 40; ++i) {
    stream.push(piece);
    most = std::max(most, stream.heldElements());
  }
  for (int i = 0; i < 200; ++i) {
    stream.push(piece);
    EXPECT_LE(stream.heldElements(), most);
  }
}

std::string refusal(const std::string& body, int64_t axis = 2) {
  return errorOf([&] {
    const Program program = compile("def main(x: Tensor, w: Tensor) -> Tensor:\n" + body);
    TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                      {numbers({1, 2, 20}, 1), numbers({2, 2, 3}, 2)}, axis);
  });
}

TEST(TimeStreamTest, WhatLooksAtAllOfTimeIsRefused) {
  EXPECT_THAT(refusal("    return torch.group_norm(x, 1)\n"),
              HasSubstr("aten::group_norm has no form that runs piece by piece (<string>:2"));
  EXPECT_THAT(refusal("    return torch.softmax(x, 2)\n"), HasSubstr("works over all of the time"));
  EXPECT_THAT(refusal("    return x.mean([1, 2])\n"), HasSubstr("works over all of the time"));
  EXPECT_THAT(refusal("    return x / x.size(2)\n"),
              HasSubstr("aten::div needs the length of all of the time"));
  EXPECT_THAT(refusal("    return x[:, :, :0]\n"), HasSubstr("cuts time elsewhere"));
  EXPECT_THAT(refusal("    return x + torch.ones([20])\n"), HasSubstr("a fixed length"));
  EXPECT_THAT(refusal("    return x + x.transpose(1, 2).sum()\n"),
              HasSubstr("over all of the time"));
  EXPECT_THAT(refusal("    return torch.conv1d(x, w, None)\n", 1), HasSubstr("its channels"));
  EXPECT_THAT(refusal("    return x\n", 3), HasSubstr("expected a dimension of"));
  EXPECT_THAT(refusal("    return w\n"), HasSubstr("no tensor that depends on time"));
  EXPECT_THAT(refusal("    return torch.conv1d(x, w, None, [2], [1]) + x[:, :, :-10]\n"),
              HasSubstr("the stream is unbalanced"));
}

TEST(TimeStreamTest, WrongPiecesAreErrors) {
  const Program program = compile(kNet);
  TimeStream stream(inlinedFunction(program.function("main"), nullptr), netArguments(64), 2);
  EXPECT_THAT(errorOf([&] {
                stream.push(numbers({2, 4, 10}, 1));
              }),
              HasSubstr("expected a piece like"));
  // Nothing was lost.
  EXPECT_TRUE(stream.push(numbers({2, 3, 60}, 1)).has_value());
  stream.finish();
  EXPECT_THAT(errorOf([&] { stream.finish(); }), HasSubstr("the stream has ended"));
}

}  // namespace
}  // namespace wick::streams::time_test
