// Calls that PyTorch refuses and that could be computed by mistake.
#include <limits>

#include "tests/runtime/op_testing.h"

namespace wick {
namespace {

using namespace testing;

Tensor expandedOnes() {
  return iota(DimVector{1}).expand(DimVector{3});
}

TEST(Refusals, WritesToElementsThatShareMemory) {
  const Tensor x = expandedOnes();
  const Tensor at = longs({0}), one = floats({1});
  EXPECT_THROW(call("aten::copy_", "", x, floats({1, 2, 3})), RuntimeError);
  EXPECT_THROW(call("aten::add_", "Tensor", x, one), RuntimeError);
  EXPECT_THROW(call("aten::index_add_", "", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::index_copy_", "", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::index_reduce_", "", x, 0, at, one, std::string("prod")), RuntimeError);
  EXPECT_THROW(call("aten::put_", "", x, at, one), RuntimeError);
  EXPECT_THROW(call("aten::scatter_", "src", x, 0, at, one), RuntimeError);
  EXPECT_THROW(call("aten::scatter_", "value", x, 0, at, Scalar(2.0)), RuntimeError);
  EXPECT_THROW(call("aten::scatter_add_", "", x, 0, at, one), RuntimeError);
}

TEST(Refusals, NumbersThatTheDTypeCannotHold) {
  const Tensor shorts = iota(DimVector{2}, DType::Short);
  const Tensor huge = Tensor::scalar<int64_t>(int64_t{1} << 40);
  EXPECT_THROW(call("aten::fill_", "Tensor", shorts, huge), RuntimeError);
  EXPECT_THROW(call("aten::where", "ScalarOther", bools({true, false}), shorts,
                    Scalar(int64_t{1} << 40)),
               RuntimeError);
  EXPECT_THROW(call("aten::index_fill_", "int_Scalar", shorts, 0, longs({0}),
                    Scalar(std::complex<double>(0, 1))),
               RuntimeError);
  const Tensor square = iota(DimVector{2, 2});
  const Scalar i(std::complex<double>(0, 1));
  EXPECT_THROW(call("aten::addmm", "", square, square, square, Scalar(1), i), RuntimeError);
  EXPECT_THROW(call("aten::renorm", "", square, Scalar(2), 0, i), RuntimeError);
  EXPECT_THROW(call("aten::histc", "", square, 4, Scalar(0), i), RuntimeError);
}

TEST(Refusals, DTypesThatHaveNoMeaning) {
  const Tensor truths = bools({true, false});
  EXPECT_THROW(call("aten::trapezoid", "dx", truths), RuntimeError);
  EXPECT_THROW(call("aten::trapezoid", "x", floats({1, 2}), truths), RuntimeError);
  EXPECT_THROW(call("aten::hardtanh", "", iota(DimVector{2}, DType::Byte), Scalar(-1), Scalar(1)),
               RuntimeError);
  EXPECT_THROW(call("aten::argmax", "", truths, 0), RuntimeError);
  EXPECT_THROW(call("aten::index_copy_", "", floats({1, 2}), 0, iota(DimVector{1}, DType::Int),
                    floats({1})),
               RuntimeError);
  EXPECT_THROW(call("aten::cumsum_", "", floats({1, 2}), 0, DType::Double), RuntimeError);
  EXPECT_THROW(call("aten::nextafter", "", iota(DimVector{1}, DType::Half),
                    iota(DimVector{1}, DType::Half)),
               RuntimeError);
}

}  // namespace
}  // namespace wick
