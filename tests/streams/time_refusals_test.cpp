// What cannot run piece by piece, and what is said of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/error_text.h"
#include "tests/streams/pieces.h"

namespace wick::streams::time_refusals_test {
namespace {

using testing::HasSubstr;
using testing_errors::errorOf;
using testing_pieces::numbers;

struct Case {
  const char* body;
  const char* message;
};

// Of a program over the last dimension of x, [1, 2, 20]; w is [2, 2, 3], m is [2, 2].
std::string refusal(const std::string& body) {
  return errorOf([&] {
    const Program program =
        compile("def main(x: Tensor, w: Tensor, m: Tensor) -> Tensor:\n    " + body + "\n");
    TimeStream stream(inlinedFunction(program.function("main"), nullptr),
                      {numbers({1, 2, 20}, 1), numbers({2, 2, 3}, 2), numbers({2, 2}, 3)}, 2);
  });
}

void expectRefusals(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_THAT(refusal(c.body), HasSubstr(std::string(c.message) + " (<string>:")) << c.body;
  }
}

TEST(TimeRefusalsTest, OperatorsAcrossTime) {
  expectRefusals({
      {"return torch.batch_norm(x, None, None, None, None, True, 0.1, 1e-5, False)",
       "aten::batch_norm in training works over all of the time"},
      {"return m @ x @ torch.ones([20, 4])",
       "aten::matmul works over all of the time, so it cannot run piece by piece"},
      {"return torch.ones([4, 20]) @ x.transpose(1, 2)",
       "aten::matmul adds over time, or multiplies batches of matrices"},
      {"return w[:, :, :2] @ x", "aten::matmul adds over time, or multiplies batches of matrices"},
      {"return x.transpose(1, 2) @ w", "aten::matmul with batches of matrices may go across time"},
      {"return torch.embedding(x[0], torch.tensor([0, 1]))",
       "aten::embedding reads time elsewhere than in its indices"},
      {"return torch.cat([x, torch.ones([1, 2, 20])], 1)",
       "a list joins what has time in different places, or not at all"},
      {"return torch.cat([x, x.transpose(1, 2).reshape(1, 20, 2).transpose(0, 2)], 1)",
       "a list joins what has time in different places, or not at all"},
      {"return x.squeeze()", "aten::squeeze without a dimension may lose that of time"},
      {"return x.flatten(1, 2)", "aten::flatten joins time with other dimensions"},
  });
}

TEST(TimeRefusalsTest, Windows) {
  expectRefusals({
      {"return torch.conv1d(x, w, None, [1], [1073741824], [1073741824])",
       "aten::conv1d has too large a window"},
      {"return torch.conv1d(x, w, None, [1], \"same\")",
       "aten::conv1d names its padding by a word"},
      {"return torch.avg_pool1d(x, [2], [1], [1], False, False)",
       "aten::avg_pool1d does not count its padding, so its ends differ from its middle"},
      {"return torch.max_pool1d(x, [3], [2], [0], [1], True)",
       "aten::max_pool1d rounds up, which depends on the length"},
      {"return torch.constant_pad_nd(x, [-1, 0], 0.0)",
       "aten::constant_pad_nd pads time by a negative or a very large number"},
      {"return torch.pad(x, [1, 1], \"circular\")", "aten::pad pads with what is at the other end"},
      {"return torch.ops.aten.stft(x[0], 4, 2, 4, None, True, \"reflect\", False, True, False)",
       "aten::stft pads with what is inside; padded before and with center=False it runs piece by "
       "piece"},
  });
}

TEST(TimeRefusalsTest, LengthsAndLoops) {
  expectRefusals({
      {"return x.repeat(1, 1, x.size(2))",
       "aten::repeat needs the length of all of the time, so it cannot run piece by piece"},
      {"return x.repeat(1, 1, 2)",
       "aten::repeat works over all of the time, so it cannot run piece by piece"},
      {"return x * torch.zeros(x.size(2) * 9223372036854775807 * 2 + 2).sum()",
       "aten::mul computes with a length of time in too large numbers"},
      {"return x * torch.zeros(x.size(2) + 9223372036854775807 + 9223372036854775807).sum()",
       "aten::add computes with a length of time in too large numbers"},
      {"return x.view(dtype=torch.int32)",
       "aten::view has no argument 'size', so it is not known how it goes over time"},
      {"for i in range(x.size(2)):\n        x = x + i\n    return x",
       "the number of iterations of the loop is not known beforehand, so it cannot run piece by "
       "piece"},
      {"i = 0\n    while i < 3:\n        x = x + i\n        i += 1\n    return x",
       "the number of iterations of the loop is not known beforehand, so it cannot run piece by "
       "piece"},
  });
}

TEST(TimeRefusalsTest, DropoutBetweenRecurrentLayers) {
  // With random numbers a piece would not be what the whole is.
  EXPECT_THAT(
      errorOf([] {
        const Program program = compile(R"(
def main(x: Tensor, h: Tensor, w: List[Tensor]) -> Tensor:
    y, h1 = torch.gru(x, h, w, False, 2, 0.5, True, False, False)
    return y
)");
        std::vector<Tensor> weights(4, numbers({6, 2}, 2));
        TimeStream stream(
            inlinedFunction(program.function("main"), nullptr),
            {numbers({20, 1, 2}, 1), numbers({2, 1, 2}, 3), IValue(makeTensorList(weights))}, 0);
      }),
      HasSubstr("aten::gru draws random numbers in training (<string>:3"));
}

}  // namespace
}  // namespace wick::streams::time_refusals_test
