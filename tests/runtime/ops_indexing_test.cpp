// Indexing, gathering and scattering against what PyTorch 1.13 gives.
#include <cmath>

#include "tests/runtime/op_testing.h"

namespace wick::ops_indexing_test {
namespace {

using namespace testing;
using Tensors = std::vector<Tensor>;

Tensor index(const Tensor& t, const Tensors& by) {
  ListRef list = makeList(types::Optional(types::Tensor()));
  for (const Tensor& i : by) list->elements.push_back(IValue(i));
  return call("aten::index", "Tensor", t, IValue(list));
}

TEST(Index, AdjacentIndicesStayInPlaceOthersComeFirst) {
  Tensor t = iota(DimVector{2, 3, 4, 5});
  Tensor two = longs({0, 1});
  EXPECT_EQ(shape(index(t, {Tensor(), two, two})), (Shape{2, 2, 5}));
  EXPECT_EQ(shape(index(t, {two, Tensor(), two})), (Shape{2, 3, 5}));
  EXPECT_EQ(shape(index(t, {Tensor(), two, Tensor(), two})), (Shape{2, 2, 4}));
  EXPECT_EQ(values(index(iota(DimVector{2, 3}), {longs({1, -2}), longs({2, 0})})), (Values{5, 0}));
}

TEST(Index, MasksOfSeveralDimensions) {
  Tensor t = iota(DimVector{2, 2, 2});
  Tensor mask = bools({true, false, false, true}).view(DimVector{2, 2});
  EXPECT_EQ(values(index(t, {mask})), (Values{0, 1, 6, 7}));
  EXPECT_EQ(values(index(t, {Tensor(), mask})), (Values{0, 3, 4, 7}));
  Tensor yes = Tensor::scalar(true);
  EXPECT_EQ(shape(index(t, {yes})), (Shape{1, 2, 2, 2}));
  EXPECT_EQ(shape(index(t, {Tensor::scalar(false)})), (Shape{0, 2, 2, 2}));
}

TEST(Index, BroadcastsAndTransposedSources) {
  Tensor t = iota(DimVector{3, 4}).transpose(0, 1);
  Tensor rows = longs({0, 3}).view(DimVector{2, 1});
  EXPECT_EQ(values(index(t, {rows, longs({0, 2})})), (Values{0, 8, 3, 11}));
  EXPECT_EQ(values(index(t, {longs({1})})), (Values{1, 5, 9}));
}

TEST(Index, RefusesWhatIsOutside) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_THROW(index(t, {longs({2})}), RuntimeError);
  EXPECT_THROW(index(t, {longs({-3})}), RuntimeError);
  EXPECT_THROW(index(t, {floats({0})}), RuntimeError);
  EXPECT_THROW(index(t, {bools({true})}), RuntimeError);
  EXPECT_THROW(index(t, {longs({0}), longs({0}), longs({0})}), RuntimeError);
  EXPECT_THROW(index(t, {longs({0, 1}), longs({0, 1, 2})}), RuntimeError);
  EXPECT_THROW(index(Tensor::scalar(1.f), {longs({0})}), RuntimeError);
}

TEST(IndexPut, WritesAndAccumulates) {
  Tensor t = iota(DimVector{2, 3});
  call("aten::index_put_", "", t, Tensors{longs({0, 0})}, floats({1, 1, 1}), true);
  EXPECT_EQ(values(t), (Values{2, 3, 4, 3, 4, 5}));
  call("aten::index_put_", "", t.transpose(0, 1), Tensors{longs({2})}, floats({7, 8}));
  EXPECT_EQ(values(t), (Values{2, 3, 7, 3, 4, 8}));
  EXPECT_THROW(call("aten::index_put_", "", t, Tensors{longs({0})}, floats({1, 1})), RuntimeError);
  EXPECT_THROW(call("aten::index_put_", "", t, Tensors{longs({0})}, longs({1})), RuntimeError);
}

TEST(IndexDim, SelectAddCopyFill) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_EQ(values(call("aten::index_select", "", t, 1, longs({2, 0}))), (Values{2, 0, 5, 3}));
  EXPECT_EQ(values(call("aten::index_add", "", t, 0, longs({0, 0}), t)),
            (Values{3, 6, 9, 3, 4, 5}));
  EXPECT_EQ(values(call("aten::index_copy", "", t, 0, longs({1}),
                        Tensor::zeros(DimVector{1, 3}, DType::Float))),
            (Values{0, 1, 2, 0, 0, 0}));
  EXPECT_EQ(values(call("aten::index_fill", "int_Scalar", t, 0, longs({-1}), Scalar(2))),
            (Values{0, 1, 2, 2, 2, 2}));
  EXPECT_THROW(call("aten::index_select", "", t, 0, longs({-1})), RuntimeError);
  EXPECT_THROW(call("aten::index_select", "", t, 0, longs({2})), RuntimeError);
  EXPECT_THROW(call("aten::index_add", "", t, 0, longs({0}), t), RuntimeError);
  EXPECT_THROW(call("aten::index_copy", "", t, 0, longs({3}), t.narrow(0, 0, 1)), RuntimeError);
  EXPECT_EQ(call("aten::index_select", "", Tensor::scalar(5.f), 0, longs({0})).item<float>(), 5);
}

TEST(IndexDim, NoAddOfATensorToItself) {
  Tensor t = iota(DimVector{3});
  EXPECT_THROW(call("aten::index_add_", "", t, 0, longs({1, 2, 0}), t), RuntimeError);
  EXPECT_EQ(values(t), (Values{0, 1, 2}));
}

TEST(IndexDim, Embedding) {
  Tensor weight = iota(DimVector{3, 2});
  Tensor t = call("aten::embedding", "", weight, longs({2, 0}).view(DimVector{1, 2}));
  EXPECT_EQ(shape(t), (Shape{1, 2, 2}));
  EXPECT_EQ(values(t), (Values{4, 5, 0, 1}));
  EXPECT_THROW(call("aten::embedding", "", weight, longs({3})), RuntimeError);
  EXPECT_THROW(call("aten::embedding", "", weight, longs({-1})), RuntimeError);
}

TEST(IndexDim, TakePutMask) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_EQ(values(call("aten::take", "", t, longs({0, -1}))), (Values{0, 5}));
  EXPECT_THROW(call("aten::take", "", t, longs({6})), RuntimeError);
  EXPECT_THROW(call("aten::take", "", floats({}), longs({0})), RuntimeError);
  EXPECT_EQ(values(call("aten::put", "", t, longs({0, 0}), floats({9, 8}), true))[0], 17);
  Tensor transposed = iota(DimVector{2, 2}).transpose(0, 1);
  call("aten::put_", "", transposed, longs({1}), floats({9}));
  EXPECT_EQ(values(transposed), (Values{0, 9, 1, 3}));
  Tensor mask = bools({true, false, true});
  EXPECT_EQ(values(call("aten::masked_select", "", t, mask)), (Values{0, 2, 3, 5}));
  EXPECT_EQ(values(call("aten::masked_scatter", "", t, mask, floats({9, 8, 7, 6}))),
            (Values{9, 1, 8, 7, 4, 6}));
  EXPECT_THROW(call("aten::masked_scatter", "", t, mask, floats({9})), RuntimeError);
}

TEST(Gather, PicksAlongADimension) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_EQ(values(call("aten::gather", "", t, 1, longs({2, 0, 0, 1}).view(DimVector{2, 2}))),
            (Values{2, 0, 3, 4}));
  EXPECT_EQ(values(call("aten::gather", "", Tensor::scalar(3.f), 0, longs({0, 0}))),
            (Values{3, 3}));
  EXPECT_THROW(call("aten::gather", "", t, 0, longs({2}).view(DimVector{1, 1})), RuntimeError);
  EXPECT_THROW(call("aten::gather", "", t, 0, longs({-1}).view(DimVector{1, 1})), RuntimeError);
  EXPECT_THROW(call("aten::gather", "", t, 0, longs({0})), RuntimeError);
  EXPECT_EQ(values(call("aten::take_along_dim", "", t, longs({0}).view(DimVector{1, 1}), 1)),
            (Values{0, 3}));
}

TEST(Scatter, WritesAndReduces) {
  Tensor t = iota(DimVector{2, 3});
  Tensor at = longs({0, 1, 1}).view(DimVector{1, 3});
  EXPECT_EQ(values(call("aten::scatter", "value", t, 0, at, Scalar(9))),
            (Values{9, 1, 2, 3, 9, 9}));
  EXPECT_EQ(values(call("aten::scatter", "value_reduce", t, 0, at, Scalar(2), "add")),
            (Values{2, 1, 2, 3, 6, 7}));
  EXPECT_EQ(values(call("aten::scatter_add", "", t, 0, at, t)), (Values{0, 1, 2, 3, 5, 7}));
  EXPECT_EQ(values(call("aten::scatter_reduce", "two", t, 0, at, t, "mean")),
            (Values{0, 1, 2, 3, 2.5, 3.5}));
  EXPECT_EQ(values(call("aten::scatter_reduce", "two", t, 0, at, t, "amax", false)),
            (Values{0, 1, 2, 3, 1, 2}));
  EXPECT_THROW(call("aten::scatter", "src", t, 0, at, t.to(DType::Long)), RuntimeError);
  EXPECT_THROW(
      call("aten::scatter", "value", t, 0, longs({2, 0, 0}).view(DimVector{1, 3}), Scalar(1)),
      RuntimeError);
  EXPECT_THROW(call("aten::scatter_reduce", "two", t, 0, at, t, "max"), RuntimeError);
}

TEST(Scatter, MeanOfIntegersRoundsDownAndMaximaKeepNan) {
  Tensor at = longs({0, 0});
  EXPECT_EQ(values(call("aten::scatter_reduce", "two", longs({0}), 0, at, longs({-1, -1}), "mean")),
            (Values{-1}));
  Tensor t = call("aten::scatter_reduce", "two", floats({1}), 0, at, floats({NAN, 2}), "amax");
  EXPECT_TRUE(std::isnan(t.item<float>()));
}

TEST(Positions, NonzeroDiagonalsAndScatters) {
  Tensor t = iota(DimVector{2, 2});
  EXPECT_EQ(values(call("aten::nonzero", "", t)), (Values{0, 1, 1, 0, 1, 1}));
  EXPECT_EQ(shape(call("aten::nonzero", "", Tensor::scalar(3.f))), (Shape{1, 0}));
  EXPECT_EQ(callAll("aten::nonzero_numpy", "", Tensor::scalar(3.f))[0].toTensors().size(), 1u);
  EXPECT_EQ(values(call("aten::count_nonzero", "dim_IntList", t, DimVector{0})), (Values{1, 2}));
  EXPECT_EQ(values(call("aten::diag", "", floats({1, 2}), 1)), (Values{0, 1, 0, 0, 0, 2, 0, 0, 0}));
  EXPECT_EQ(call("aten::trace", "", t.to(DType::Int)).dtype(), DType::Long);
  EXPECT_EQ(values(call("aten::select_scatter", "", t, floats({8, 9}), 1, 0)),
            (Values{8, 1, 9, 3}));
  EXPECT_THROW(call("aten::select_scatter", "", t, floats({8}), 1, 0), RuntimeError);
  EXPECT_EQ(values(call("aten::one_hot", "", longs({0, 2}))), (Values{1, 0, 0, 0, 0, 1}));
  EXPECT_THROW(call("aten::one_hot", "", longs({-1})), RuntimeError);
  EXPECT_THROW(call("aten::diag_embed", "", floats({1}), INT64_MIN), RuntimeError);
}

}  // namespace
}  // namespace wick::ops_indexing_test
