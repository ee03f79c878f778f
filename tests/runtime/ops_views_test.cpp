// Views, splits and copies: what they share, where they stop.
#include "tests/error_text.h"
#include "tests/runtime/op_testing.h"

namespace wick::ops_views_test {
namespace {

using namespace testing;
using testing_errors::errorOf;

TEST(Views, WritesThroughAViewAreSeen) {
  Tensor t = iota(DimVector{2, 3});
  call("aten::fill_", "Scalar", call("aten::select", "int", t, 1, -1), Scalar(9));
  EXPECT_EQ(values(t), (Values{0, 1, 9, 3, 4, 9}));
  uint32_t before = t.storage()->version();
  call("aten::zero_", "", call("aten::t", "", t));
  EXPECT_EQ(t.storage()->version(), before + 1);
}

// Otherwise each write to a list would look at all of its elements.
TEST(Views, WritesToAListAreNoneToItsTensors) {
  Tensor t = iota(DimVector{2});
  IValue list(makeTensorList({t}));
  uint32_t before = t.storage()->version();
  callAll("aten::append", "t", list, t);
  EXPECT_EQ(t.storage()->version(), before);
  callAll("aten::_foreach_zero_", "", list);
  EXPECT_GE(t.storage()->version(), before + 2);  // the list holds it twice
  EXPECT_EQ(values(t), (Values{0, 0}));
}

TEST(Views, OneElementForManyIsFilledOnce) {
  const Tensor one = Tensor::zeros({1}, DType::Float);
  call("aten::masked_fill_", "Scalar", one.expand(DimVector{int64_t{1} << 40}),
       Tensor::full({1}, 1, DType::Bool), Scalar(3));
  EXPECT_EQ(values(one), (Values{3}));
}

TEST(Views, ListsOfNormsTakeADType) {
  const IValue list(makeTensorList({Tensor::full({4}, 2, DType::Half), iota(DimVector{2})}));
  const auto norms = [&](const IValue& dtype) {
    return callAll("aten::_foreach_norm", "Scalar", list, Scalar(2), dtype)[0];
  };
  EXPECT_EQ(values(norms(IValue()).elements()[0].toTensor()), (Values{4}));
  EXPECT_EQ(norms(IValue()).elements()[0].toTensor().dtype(), DType::Half);
  const Tensor wide = norms(IValue(static_cast<int64_t>(DType::Float))).elements()[0].toTensor();
  EXPECT_EQ(wide.dtype(), DType::Float);
  EXPECT_EQ(values(wide), (Values{4}));
}

TEST(Views, AssertionsOnTensorsNameWhatDiffers) {
  const Tensor t = iota(DimVector{2, 3});
  const IValue none;
  const auto check = [&](const IValue& dtype, const IValue& device, const IValue& layout) {
    return errorOf([&] {
      callAll("aten::_assert_tensor_metadata", "", t, none, none, dtype, device, layout);
    });
  };
  EXPECT_EQ(check(none, IValue(Device()), IValue(int64_t{0})), "no error");
  EXPECT_NE(check(none, none, IValue(int64_t{1})).find("layout mismatch"), std::string::npos);
  EXPECT_NE(check(IValue(static_cast<int64_t>(DType::Long)), none, none).find("dtype mismatch"),
            std::string::npos);
}

// Bytes other than 0 and 1 are true, also for operators that count before they store.
TEST(Views, BytesViewedAsBools) {
  const std::vector<uint8_t> raw = {0, 1, 2, 255, 0, 128};
  Tensor bytes = Tensor::fromData(raw.data(), DimVector{6});
  Tensor bools = call("aten::view", "dtype", bytes, DType::Bool);
  EXPECT_EQ(values(bools), (Values{0, 1, 1, 1, 0, 1}));
  EXPECT_EQ(values(bytes), (Values{0, 1, 2, 255, 0, 128}));
  EXPECT_EQ(values(call("aten::nonzero", "", bools)), (Values{1, 2, 3, 5}));
  // Bytes that are bools are seen through the view, and what is written there may be none.
  Tensor clean = Tensor::zeros(DimVector{1000}, DType::Byte);
  Tensor seen = call("aten::view", "dtype", clean, DType::Bool);
  EXPECT_TRUE(seen.sharesStorage(clean));
  call("aten::fill_", "Scalar", clean, Scalar(7));
  EXPECT_EQ(call("aten::nonzero", "", seen).size(0), 1000);
  EXPECT_EQ(call("aten::masked_select", "", iota(DimVector{1000}), seen).numel(), 1000);
  EXPECT_EQ(call("aten::count_nonzero", "", seen, IValue()).item<int64_t>(), 1000);
}

TEST(Views, DTypeViewsChangeTheLastDimension) {
  Tensor t = Tensor::zeros(DimVector{2, 2}, DType::Float);
  Tensor bytes = call("aten::view", "dtype", t, DType::Byte);
  EXPECT_EQ(shape(bytes), (Shape{2, 8}));
  Tensor wide = call("aten::view", "dtype", t, DType::Double);
  EXPECT_EQ(shape(wide), (Shape{2, 1}));
  EXPECT_THROW(
      call("aten::view", "dtype", Tensor::zeros(DimVector{3}, DType::Float), DType::Double),
      RuntimeError);
}

TEST(Views, FlattenAndUnflatten) {
  Tensor t = iota(DimVector{2, 3, 4});
  EXPECT_EQ(shape(call("aten::flatten", "using_ints", t, 1, 2)), (Shape{2, 12}));
  EXPECT_EQ(shape(call("aten::flatten", "using_ints", Tensor::scalar(1.f), 0, -1)), (Shape{1}));
  EXPECT_EQ(shape(call("aten::unflatten", "int", t, -1, DimVector{2, -1})), (Shape{2, 3, 2, 2}));
  EXPECT_THROW(call("aten::unflatten", "int", t, 1, DimVector{2, 2}), RuntimeError);
  EXPECT_THROW(call("aten::flatten", "using_ints", t, 2, 1), RuntimeError);
}

TEST(Views, DiagonalsOutsideTheMatrixAreEmpty) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_EQ(values(call("aten::diagonal", "", t, 1)), (Values{1, 5}));
  EXPECT_EQ(values(call("aten::diagonal", "", t, -1)), (Values{3}));
  for (int64_t offset : {int64_t{3}, int64_t{-2}, INT64_MAX, INT64_MIN}) {
    EXPECT_EQ(shape(call("aten::diagonal", "", t, offset)), (Shape{0}));
  }
}

TEST(Views, MovedimKeepsTheOrderOfTheOthers) {
  Tensor t = iota(DimVector{2, 3, 4, 5});
  EXPECT_EQ(shape(call("aten::movedim", "int", t, 0, -1)), (Shape{3, 4, 5, 2}));
  EXPECT_EQ(shape(call("aten::moveaxis", "intlist", t, DimVector{3, 0}, DimVector{0, 1})),
            (Shape{5, 2, 3, 4}));
  EXPECT_THROW(call("aten::movedim", "intlist", t, DimVector{0, 0}, DimVector{0, 1}), RuntimeError);
}

TEST(Views, AsStridedStaysInsideTheStorage) {
  Tensor t = iota(DimVector{6});
  EXPECT_EQ(values(call("aten::as_strided", "", t, DimVector{2, 2}, DimVector{1, 2}, 1)),
            (Values{1, 3, 2, 4}));
  EXPECT_THROW(call("aten::as_strided", "", t, DimVector{7}, DimVector{1}), RuntimeError);
  EXPECT_THROW(call("aten::as_strided", "", t, DimVector{2}, DimVector{-1}, 3), RuntimeError);
  EXPECT_THROW(call("aten::as_strided", "", t, DimVector{INT64_MAX, 4}, DimVector{INT64_MAX, 4}),
               RuntimeError);
}

TEST(Views, UnfoldSlidesAWindow) {
  Tensor t = call("aten::unfold", "", iota(DimVector{5}), 0, 3, 2);
  EXPECT_EQ(shape(t), (Shape{2, 3}));
  EXPECT_EQ(values(t), (Values{0, 1, 2, 2, 3, 4}));
  EXPECT_THROW(call("aten::unfold", "", iota(DimVector{2}), 0, 3, 1), RuntimeError);
  EXPECT_THROW(call("aten::unfold", "", iota(DimVector{2}), 0, 1, 0), RuntimeError);
}

TEST(Views, ComplexAndRealShareMemory) {
  Tensor pairs = floats({1, 2, 3, 4}).view(DimVector{2, 2});
  Tensor c = call("aten::view_as_complex", "", pairs);
  EXPECT_EQ(c.data<std::complex<float>>()[1], (std::complex<float>(3, 4)));
  EXPECT_TRUE(call("aten::view_as_real", "", c).sharesStorage(pairs));
  EXPECT_THROW(call("aten::view_as_complex", "", floats({1, 2, 3})), RuntimeError);
}

TEST(Views, InPlaceFormsReshapeTheTensorItself) {
  Tensor t = iota(DimVector{2, 3});
  call("aten::t_", "", t);
  EXPECT_EQ(shape(t), (Shape{3, 2}));
  call("aten::unsqueeze_", "", t, 0);
  EXPECT_EQ(shape(t), (Shape{1, 3, 2}));
  call("aten::squeeze_", "", t);
  EXPECT_EQ(values(t), (Values{0, 3, 1, 4, 2, 5}));
}

std::vector<Shape> shapes(const std::vector<IValue>& results) {
  std::vector<Shape> out;
  for (const Tensor& t : results[0].toTensors()) out.push_back(shape(t));
  return out;
}

// Nobody has the memory for what is asked for, and nobody waits until that is noticed.
TEST(Splits, EndlessPieces) {
  const Tensor one = Tensor::zeros(DimVector{1}, DType::Float);
  const Tensor none = Tensor::zeros(DimVector{0, int64_t{1} << 40}, DType::Float);
  EXPECT_THROW(callAll("aten::tensor_split", "sections", one, INT64_MAX), RuntimeError);
  EXPECT_THROW(callAll("aten::tensor_split", "tensor_indices_or_sections", one,
                       Tensor::full({}, INT64_MAX, DType::Long)),
               RuntimeError);
  EXPECT_THROW(callAll("aten::hsplit", "int", one, INT64_MAX), RuntimeError);
  EXPECT_THROW(callAll("aten::unbind", "int", none, 1), RuntimeError);
  EXPECT_THROW(callAll("aten::split", "Tensor", none, 1, 1), RuntimeError);
  EXPECT_THROW(callAll("aten::chunk", "", none, int64_t{1} << 40, 1), RuntimeError);
}

TEST(Splits, SizesOfThePieces) {
  Tensor t = iota(DimVector{5});
  EXPECT_EQ(shapes(callAll("aten::split", "Tensor", t, 2)), (std::vector<Shape>{{2}, {2}, {1}}));
  EXPECT_EQ(shapes(callAll("aten::chunk", "", t, 4)), (std::vector<Shape>{{2}, {2}, {1}}));
  EXPECT_EQ(shapes(callAll("aten::tensor_split", "sections", t, 3)),
            (std::vector<Shape>{{2}, {2}, {1}}));
  EXPECT_EQ(shapes(callAll("aten::tensor_split", "indices", t, DimVector{1, 7})),
            (std::vector<Shape>{{1}, {4}, {0}}));
  EXPECT_EQ(shapes(callAll("aten::chunk", "", Tensor::zeros(DimVector{0}, DType::Float), 3)),
            (std::vector<Shape>{{0}, {0}, {0}}));
  EXPECT_EQ(shapes(callAll("aten::split", "Tensor", Tensor::zeros(DimVector{0}, DType::Float), 0)),
            (std::vector<Shape>{{0}}));
  EXPECT_THROW(callAll("aten::split", "Tensor", t, 0), RuntimeError);
  EXPECT_THROW(callAll("aten::split_with_sizes", "", t, DimVector{2, 2}), RuntimeError);
  EXPECT_THROW(callAll("aten::split_with_sizes", "", t, DimVector{INT64_MAX, INT64_MAX, 7}),
               RuntimeError);
  EXPECT_THROW(callAll("aten::vsplit", "int", t, 1), RuntimeError);
}

TEST(Copies, ToReturnsItselfWhenNothingChanges) {
  Tensor t = floats({1.5, -2.5});
  EXPECT_TRUE(call("aten::to", "dtype", t, DType::Float).isSame(t));
  EXPECT_FALSE(call("aten::to", "dtype", t, DType::Float, false, true).isSame(t));
  EXPECT_EQ(values(call("aten::to", "dtype", t, DType::Long)), (Values{1, -2}));
  EXPECT_THROW(call("aten::cuda", "", t), RuntimeError);
}

TEST(Copies, ResizeGrowsTheStorageAndKeepsTheContents) {
  Tensor t = longs({1, 2, 3});
  call("aten::resize_", "", t, DimVector{2, 4});
  EXPECT_EQ(shape(t), (Shape{2, 4}));
  EXPECT_EQ(t.data<int64_t>()[2], 3);
  EXPECT_THROW(call("aten::resize_", "", t, DimVector{INT64_MAX}), RuntimeError);
}

TEST(Copies, SetSharesTheSource) {
  Tensor t = floats({1});
  Tensor source = iota(DimVector{4});
  call("aten::set_", "source_Tensor", t, source);
  EXPECT_TRUE(t.sharesStorage(source));
  EXPECT_THROW(call("aten::set_", "source_Tensor", t, longs({1})), RuntimeError);
}

TEST(Info, ResultTypes) {
  auto type = [](const Tensor& a, Scalar b) {
    return callAll("aten::result_type", "Scalar", a, b)[0].toInt();
  };
  EXPECT_EQ(type(longs({1}), Scalar(1.5)), static_cast<int64_t>(DType::Float));
  EXPECT_EQ(type(floats({1}).to(DType::Half), Scalar(1.5)), static_cast<int64_t>(DType::Half));
  EXPECT_EQ(type(bools({true}), Scalar(1)), static_cast<int64_t>(DType::Long));
  EXPECT_THROW(callAll("aten::item", "", longs({1, 2})), RuntimeError);
  EXPECT_THROW(callAll("aten::is_nonzero", "", longs({})), RuntimeError);
}

}  // namespace
}  // namespace wick::ops_views_test
