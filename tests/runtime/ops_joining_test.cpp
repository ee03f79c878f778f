// Joining, rearranging and padding against what PyTorch 1.13 gives.
#include "tests/runtime/op_testing.h"

namespace wick::ops_joining_test {
namespace {

using namespace testing;
using Tensors = std::vector<Tensor>;

TEST(Cat, PromotesAndSkipsTheEmpty) {
  EXPECT_EQ(call("aten::cat", "", Tensors{longs({1}), floats({2.5})}).dtype(), DType::Float);
  Tensor matrix = iota(DimVector{2, 3});
  EXPECT_EQ(shape(call("aten::cat", "", Tensors{matrix, floats({})})), (Shape{2, 3}));
  EXPECT_EQ(values(call("aten::cat", "", Tensors{matrix, matrix}, -1)),
            (Values{0, 1, 2, 0, 1, 2, 3, 4, 5, 3, 4, 5}));
  EXPECT_EQ(values(call("aten::cat", "", Tensors{matrix.transpose(0, 1), iota(DimVector{1, 2})})),
            (Values{0, 3, 1, 4, 2, 5, 0, 1}));
  EXPECT_THROW(call("aten::cat", "", Tensors{}), RuntimeError);
  EXPECT_THROW(call("aten::cat", "", Tensors{Tensor::scalar(1.f)}), RuntimeError);
  EXPECT_THROW(call("aten::cat", "", Tensors{matrix, iota(DimVector{2, 4})}), RuntimeError);
  EXPECT_THROW(call("aten::cat", "", Tensors{matrix, matrix}, 2), RuntimeError);
}

TEST(Cat, KeepsChannelsLast) {
  Tensor t = iota(DimVector{1, 2, 3, 3}).contiguous(MemoryFormat::ChannelsLast);
  Tensor joined = call("aten::cat", "", Tensors{t, t});
  EXPECT_TRUE(joined.isContiguous(MemoryFormat::ChannelsLast));
  EXPECT_EQ(values(joined)[18], 0);
}

TEST(Cat, NotIntoItsOwnInput) {
  Tensor t = floats({1, 2});
  EXPECT_THROW(call("aten::cat", "out", Tensors{t, t}, 0, t), RuntimeError);
  EXPECT_EQ(values(t), (Values{1, 2}));
}

TEST(Stack, Shapes) {
  EXPECT_EQ(shape(call("aten::stack", "", Tensors{floats({1, 2}), floats({3, 4})}, -1)),
            (Shape{2, 2}));
  EXPECT_EQ(shape(call("aten::dstack", "", Tensors{floats({1, 2}), floats({3, 4})})),
            (Shape{1, 2, 2}));
  EXPECT_EQ(shape(call("aten::row_stack", "", Tensors{floats({1, 2}), floats({3, 4})})),
            (Shape{2, 2}));
  EXPECT_EQ(shape(call("aten::column_stack", "", Tensors{floats({1, 2}), iota(DimVector{2, 3})})),
            (Shape{2, 4}));
  EXPECT_THROW(call("aten::stack", "", Tensors{floats({1}), floats({1, 2})}), RuntimeError);
}

TEST(Repeat, CountsAndLimits) {
  EXPECT_EQ(values(call("aten::repeat", "", longs({1, 2}), DimVector{2, 2})),
            (Values{1, 2, 1, 2, 1, 2, 1, 2}));
  EXPECT_EQ(shape(call("aten::tile", "", iota(DimVector{2, 3}), DimVector{2})), (Shape{2, 6}));
  EXPECT_THROW(call("aten::repeat", "", iota(DimVector{2, 2}), DimVector{2}), RuntimeError);
  EXPECT_THROW(call("aten::repeat", "", longs({1}), DimVector{-1}), RuntimeError);
  EXPECT_THROW(call("aten::repeat", "", longs({1, 2}), DimVector{INT64_MAX, INT64_MAX}),
               RuntimeError);
  EXPECT_EQ(values(call("aten::repeat_interleave", "Tensor", longs({0, 2, 1}))), (Values{1, 1, 2}));
  EXPECT_EQ(values(call("aten::repeat_interleave", "self_Tensor", longs({5, 6}), longs({1, 2}), 0)),
            (Values{5, 6, 6}));
  EXPECT_THROW(call("aten::repeat_interleave", "Tensor", longs({1, -2})), RuntimeError);
}

TEST(Rearrange, RollFlipRotate) {
  Tensor square = iota(DimVector{2, 2});
  EXPECT_EQ(values(call("aten::roll", "", square, DimVector{1})), (Values{3, 0, 1, 2}));
  EXPECT_EQ(values(call("aten::roll", "", square, DimVector{1, 2}, DimVector{0, 1})),
            (Values{2, 3, 0, 1}));
  EXPECT_EQ(values(call("aten::roll", "", square, DimVector{-5})), (Values{1, 2, 3, 0}));
  EXPECT_EQ(values(call("aten::flip", "", square, DimVector{0, -1})), (Values{3, 2, 1, 0}));
  EXPECT_EQ(values(call("aten::rot90", "", iota(DimVector{2, 3}), -1)), (Values{3, 0, 4, 1, 5, 2}));
  EXPECT_THROW(call("aten::flip", "", square, DimVector{0, 0}), RuntimeError);
  EXPECT_THROW(call("aten::roll", "", square, DimVector{1, 1}, DimVector{0}), RuntimeError);
}

TEST(Rearrange, Shuffles) {
  Tensor t = iota(DimVector{1, 8, 1, 1});
  Tensor up = call("aten::pixel_shuffle", "", t, 2);
  EXPECT_EQ(shape(up), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(values(call("aten::pixel_unshuffle", "", up, 2)), values(t));
  EXPECT_EQ(values(call("aten::channel_shuffle", "", iota(DimVector{1, 6, 1, 1}), 3)),
            (Values{0, 2, 4, 1, 3, 5}));
  EXPECT_THROW(call("aten::pixel_shuffle", "", t, 3), RuntimeError);
  EXPECT_THROW(call("aten::pixel_shuffle", "", t, INT64_MAX), RuntimeError);
}

Tensor pad(const Tensor& t, DimVector by, const char* mode) {
  return call("aten::pad", "", t, by, std::string(mode));
}

TEST(Pad, EveryModeAndNegativeAmounts) {
  Tensor row = iota(DimVector{1, 3});
  EXPECT_EQ(values(pad(row, DimVector{2, 1}, "reflect")), (Values{2, 1, 0, 1, 2, 1}));
  EXPECT_EQ(values(pad(row, DimVector{2, -1}, "reflect")), (Values{2, 1, 0, 1}));
  EXPECT_EQ(values(pad(row, DimVector{2, -1}, "replicate")), (Values{0, 0, 0, 1}));
  EXPECT_EQ(values(pad(iota(DimVector{1, 1, 3}), DimVector{2, 1}, "circular")),
            (Values{1, 2, 0, 1, 2, 0}));
  EXPECT_EQ(values(call("aten::constant_pad_nd", "", iota(DimVector{2, 2}), DimVector{-1, 1, 1, 0},
                        Scalar(9))),
            (Values{9, 9, 1, 9, 3, 9}));
  EXPECT_THROW(pad(row, DimVector{3, 0}, "reflect"), RuntimeError);
  EXPECT_THROW(pad(row, DimVector{1}, "constant"), RuntimeError);
  EXPECT_THROW(pad(row, DimVector{1, 1}, "mirror"), RuntimeError);
  EXPECT_THROW(pad(row, DimVector{-2, -2}, "constant"), RuntimeError);
  EXPECT_THROW(pad(row, DimVector{INT64_MAX, INT64_MAX}, "replicate"), RuntimeError);
}

}  // namespace
}  // namespace wick::ops_joining_test
