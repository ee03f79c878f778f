#include "core/strided_layout.h"

#include <gtest/gtest.h>

namespace wick {
namespace {

using Dims = std::vector<int64_t>;

Dims of(const Dims& sizes, const Dims& strides, bool has_number) {
  const StridedShape operand{IntSpan(sizes), IntSpan(strides)};
  const DimVector out = resultStrides(sizes, std::span(&operand, 1), has_number);
  return {out.begin(), out.end()};
}

// The strides of -x and x * 1 in PyTorch 1.13.
TEST(ResultStrides, AreThoseOfPyTorch) {
  struct Case {
    Dims sizes, strides, alone, with_number;
  };
  const Case cases[] = {
      {{4, 1}, {1, 4}, {1, 1}, {1, 4}},
      {{1, 4}, {1, 1}, {4, 1}, {1, 1}},
      {{2, 0, 3}, {1, 2, 2}, {3, 3, 1}, {1, 2, 0}},
      {{2, 1, 3}, {3, 6, 1}, {3, 3, 1}, {3, 6, 1}},
      {{2, 1, 3}, {1, 77, 2}, {1, 77, 2}, {1, 6, 2}},
      {{3, 1, 1}, {1, 9, 3}, {1, 1, 1}, {1, 3, 3}},
      {{1, 2, 3, 1}, {1, 3, 1, 100}, {6, 3, 1, 1}, {1, 3, 1, 6}},
      {{2, 1, 4, 4}, {16, 1, 4, 1}, {16, 16, 4, 1}, {16, 1, 4, 1}},
      {{2, 3}, {1, 2}, {1, 2}, {1, 2}},
      {{2, 3}, {0, 1}, {3, 1}, {3, 1}},
      {{1, 3, 2, 2}, {100, 1, 6, 3}, {12, 1, 6, 3}, {12, 1, 6, 3}},
      {{0}, {3}, {1}, {1}},
      {{}, {}, {}, {}},
  };
  for (const Case& each : cases) {
    EXPECT_EQ(of(each.sizes, each.strides, false), each.alone) << formatInts(each.sizes);
    EXPECT_EQ(of(each.sizes, each.strides, true), each.with_number) << formatInts(each.sizes);
  }
}

TEST(ResultStrides, FollowTheFirstOperandThatTellsDimensionsApart) {
  const Dims shape{2, 3}, wide{0, 1}, turned{1, 2}, one{3}, one_stride{1};
  const StridedShape operands[] = {{IntSpan(one), IntSpan(one_stride)},
                                   {IntSpan(shape), IntSpan(wide)},
                                   {IntSpan(shape), IntSpan(turned)}};
  EXPECT_EQ(resultStrides(shape, operands, false), DimVector({1, 2}));
}

}  // namespace
}  // namespace wick
