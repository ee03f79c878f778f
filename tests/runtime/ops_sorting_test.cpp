// Sorting, selecting, searching and sets against what PyTorch 1.13 gives.
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <unordered_set>

#include "tests/runtime/op_testing.h"

namespace wick::ops_sorting_test {
namespace {

using namespace testing;
constexpr float kInf = std::numeric_limits<float>::infinity();

Tensor withNan() {
  return floats({3, NAN, 1, 2, NAN, 1});
}
// Values and indices side by side; NaN is written as -99.
std::vector<double> both(const std::vector<IValue>& results) {
  std::vector<double> out = values(results[0].toTensor());
  for (double& v : out) v = std::isnan(v) ? -99 : v;
  for (double v : values(results[1].toTensor())) out.push_back(v);
  return out;
}

TEST(Sort, NanIsTheLargestAndEqualsKeepTheirOrder) {
  EXPECT_EQ(both(callAll("aten::sort", "", withNan())),
            (Values{1, 1, 2, 3, -99, -99, 2, 5, 3, 0, 1, 4}));
  EXPECT_EQ(both(callAll("aten::sort", "", withNan(), -1, true)),
            (Values{-99, -99, 3, 2, 1, 1, 1, 4, 0, 3, 2, 5}));
  EXPECT_EQ(values(call("aten::argsort", "", iota(DimVector{2, 2}), 0, true)),
            (Values{1, 1, 0, 0}));
  EXPECT_EQ(both(callAll("aten::sort", "", Tensor::scalar(3.f))), (Values{3, 0}));
  EXPECT_EQ(shape(call("aten::sort", "", Tensor::zeros(DimVector{0, 2}, DType::Float), 0)),
            (Shape{0, 2}));
  EXPECT_THROW(callAll("aten::sort", "", floats({1}), 1), RuntimeError);
}

TEST(Topk, ChoosesAmongEqualsAsPyTorch) {
  EXPECT_EQ(both(callAll("aten::topk", "", withNan(), 3, -1, false)), (Values{1, 1, 2, 5, 2, 3}));
  EXPECT_EQ(both(callAll("aten::topk", "", floats({1, 1, 2, 2, 3, 3}), 3)),
            (Values{3, 3, 2, 5, 4, 3}));
  Tensor t = iota(DimVector{20}, DType::Long);
  for (int64_t i = 0; i < 20; ++i) t.data<int64_t>()[i] %= 5;
  EXPECT_EQ(both(callAll("aten::topk", "", t, 6)), (Values{4, 4, 4, 4, 3, 3, 19, 4, 9, 14, 13, 8}));
  EXPECT_EQ(shape(call("aten::topk", "", t, 0)), (Shape{0}));
  EXPECT_THROW(callAll("aten::topk", "", t, 21), RuntimeError);
}

TEST(Select, KthMedianMode) {
  EXPECT_EQ(both(callAll("aten::kthvalue", "", withNan(), 2)), (Values{1, 5}));
  EXPECT_EQ(both(callAll("aten::kthvalue", "", floats({1, 2, 2, 2, 3}), 3)), (Values{2, 2}));
  EXPECT_THROW(callAll("aten::kthvalue", "", floats({1}), 2), RuntimeError);
  EXPECT_EQ(both(callAll("aten::median", "dim", withNan(), 0)), (Values{-99, 1}));
  EXPECT_EQ(both(callAll("aten::nanmedian", "dim", withNan(), 0)), (Values{1, 5}));
  EXPECT_EQ(both(callAll("aten::median", "dim", longs({1, 2, 2, 2, 3, 4}), 0)), (Values{2, 2}));
  EXPECT_EQ(call("aten::median", "", longs({})).item<int64_t>(), INT64_MIN);
  EXPECT_EQ(both(callAll("aten::mode", "", longs({3, 1, 3, 1, 1}))), (Values{1, 4}));
  EXPECT_EQ(both(callAll("aten::mode", "", longs({1, 2, 2, 3, 3}))), (Values{2, 2}));
  EXPECT_THROW(callAll("aten::mode", "", floats({})), RuntimeError);
}

TEST(Select, Quantiles) {
  auto quantile = [](const Tensor& t, double q, const char* how) {
    return call("aten::quantile", "scalar", t, q, IValue(), false, std::string(how)).item<float>();
  };
  Tensor four = floats({4, 1, 3, 2});
  EXPECT_EQ(quantile(four, 0.5, "linear"), 2.5f);
  EXPECT_EQ(quantile(floats({1, 2}), 0.3, "nearest"), 1.f);
  EXPECT_EQ(quantile(floats({1, 2, 3}), 0.3, "midpoint"), 1.5f);
  EXPECT_TRUE(std::isnan(quantile(withNan(), 0.5, "linear")));
  EXPECT_EQ(call("aten::nanquantile", "scalar", withNan(), 0.5).item<float>(), 1.5f);
  Tensor two = call("aten::quantile", "", four, floats({0.1f, 0.9f}));
  EXPECT_FLOAT_EQ(values(two)[0], 1.3f);
  EXPECT_EQ(shape(call("aten::quantile", "", iota(DimVector{2, 3}), floats({0.5f}), 0, true)),
            (Shape{1, 1, 3}));
  EXPECT_THROW(quantile(four, 1.5, "linear"), RuntimeError);
  EXPECT_THROW(quantile(four, 0.5, "cubic"), RuntimeError);
  EXPECT_THROW(quantile(floats({}), 0.5, "linear"), RuntimeError);
}

TEST(Search, BoundsAndSides) {
  EXPECT_EQ(values(call("aten::bucketize", "Tensor", floats({1, 3, NAN}), floats({1, 2, 3}))),
            (Values{0, 2, 3}));
  EXPECT_EQ(
      call("aten::bucketize", "Scalar", Scalar(2), floats({1, 2, 3}), false, true).item<int64_t>(),
      2);
  Tensor rows = longs({1, 3, 2, 4}).view(DimVector{2, 2});
  EXPECT_EQ(values(call("aten::searchsorted", "Tensor", rows, longs({2, 3}).view(DimVector{2, 1}))),
            (Values{1, 1}));
  EXPECT_EQ(values(call("aten::searchsorted", "Tensor", floats({3, 1}), floats({2}), false, false,
                        IValue(), longs({1, 0}))),
            (Values{1}));
  EXPECT_THROW(call("aten::searchsorted", "Tensor", rows, longs({2, 3})), RuntimeError);
  EXPECT_THROW(call("aten::searchsorted", "Tensor", floats({3, 1}), floats({2}), false, false,
                    IValue(), longs({1, 5})),
               RuntimeError);
}

// The numbers are PyTorch 1.13's, but for those of sixteen bits, which it does not take: the product with
// the number of parts, or the range itself, is more than the type holds.
TEST(Search, HistogramsOfWideRanges) {
  const Tensor x = floats({1e38f, -1e38f, 0, 3e38f, 9e37f, -5e37f});
  EXPECT_EQ(values(call("aten::histc", "", x, 4, Scalar(-1e38), Scalar(1e38))),
            (Values{1, 1, 1, 2}));
  EXPECT_EQ(values(call("aten::histc", "", x, 4, Scalar(-3e38), Scalar(3e38))),
            (Values{6, 0, 0, 0}));
  const double points[] = {1e308, -1e308, 0, 3e307};
  const Tensor wide = Tensor::fromData(points, DimVector{4});
  EXPECT_EQ(values(call("aten::histc", "", wide, 8, Scalar(-8e307), Scalar(8e307))),
            (Values{0, 0, 0, 0, 1, 1, 0, 0}));
  EXPECT_EQ(values(call("aten::histc", "", floats({0, 300, 500, 1000}).to(DType::Half), 100,
                        Scalar(0), Scalar(1000)))[50],
            1);
  // So many parts are infinite in sixteen bits.
  const std::vector<double> many = values(
      call("aten::histc", "", floats({0, 300}).to(DType::Half), 100'000, Scalar(0), Scalar(1000)));
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), 0.0), 2);
  EXPECT_EQ(many.back(), 1);
}

TEST(Search, HistogramsAndSets) {
  EXPECT_EQ(values(call("aten::histc", "", floats({1, 2, 1}), 4, Scalar(0), Scalar(3))),
            (Values{0, 2, 1, 0}));
  EXPECT_EQ(values(call("aten::histc", "", floats({1, 1}), 3)), (Values{0, 2, 0}));
  EXPECT_THROW(call("aten::histc", "", floats({kInf}), 3), RuntimeError);
  EXPECT_THROW(call("aten::histc", "", floats({1}), 0), RuntimeError);
  EXPECT_EQ(values(call("aten::bincount", "", longs({1, 3, 1}))), (Values{0, 2, 0, 1}));
  EXPECT_THROW(call("aten::bincount", "", longs({-1})), RuntimeError);
  EXPECT_THROW(call("aten::bincount", "", longs({INT64_MAX})), RuntimeError);
  EXPECT_THROW(call("aten::to_sparse", "sparse_dim", Tensor::zeros({}, DType::Float), int64_t{-1}),
               RuntimeError);
  EXPECT_THROW(call("aten::_convert_indices_from_coo_to_csr", "", longs({0}), INT64_MAX, false),
               RuntimeError);
  EXPECT_EQ(values(call("aten::isin", "Tensor_Tensor", floats({1, NAN}), floats({1, NAN}))),
            (Values{1, 0}));
  EXPECT_EQ(values(call("aten::isclose", "", floats({1, NAN, kInf}), floats({1, NAN, kInf}))),
            (Values{1, 0, 1}));
}

TEST(Search, HistogramsOfPoints) {
  Tensor x = floats({1, 2, 1, 4});
  std::vector<IValue> h = callAll("aten::histogram", "bin_ct", x, 3);
  EXPECT_EQ(values(h[0].toTensor()), (Values{2, 1, 1}));
  EXPECT_EQ(values(h[1].toTensor()), (Values{1, 2, 3, 4}));
  h = callAll("aten::histogram", "bins_tensor", x, floats({0, 1, 2, 4}), x, true);
  EXPECT_EQ(values(call("aten::histogram", "bin_ct", floats({1, 1}), 2)), (Values{0, 2}));
  EXPECT_THROW(callAll("aten::histogram", "bin_ct", floats({NAN, 1}), 2), RuntimeError);
  EXPECT_THROW(callAll("aten::histogram", "bins_tensor", x, floats({1})), RuntimeError);
  Tensor points = floats({0, 1, 1, 0, 2, 0, 2, 2}).view(DimVector{4, 2});
  EXPECT_EQ(values(call("aten::histogramdd", "", points, DimVector{3, 3})),
            (Values{0, 1, 0, 1, 0, 0, 1, 0, 1}));
  EXPECT_THROW(callAll("aten::histogramdd", "", points, DimVector{3}), RuntimeError);
}

TEST(Segments, ReduceRuns) {
  Tensor data = floats({1, 2, 3, 4, NAN, 6});
  auto reduce = [&](const char* how, const Tensor& lengths) {
    std::vector<double> v =
        values(call("aten::segment_reduce", "", data, std::string(how), lengths));
    for (double& x : v) x = std::isnan(x) ? -99 : x;
    return v;
  };
  EXPECT_EQ(reduce("sum", longs({2, 1, 3})), (Values{3, 3, -99}));
  EXPECT_EQ(reduce("max", longs({2, 1, 3})), (Values{2, 3, -99}));
  EXPECT_EQ(reduce("mean", longs({2, 0, 4})), (Values{1.5, -99, -99}));
  EXPECT_THROW(reduce("sum", longs({2, 1})), RuntimeError);
  EXPECT_THROW(reduce("sum", longs({7, -1})), RuntimeError);
  EXPECT_THROW(reduce("sum", longs({INT64_MAX})), RuntimeError);
  EXPECT_THROW(
      call("aten::segment_reduce", "", data, "sum", IValue(), IValue(), longs({0, 9}), 0, true),
      RuntimeError);
}

TEST(Segments, EmbeddingRowsAreScaledOnce) {
  Tensor weight = floats({3, 4, 1, 0}).view(DimVector{2, 2});
  call("aten::embedding_renorm_", "", weight, longs({0, 0, 1}), 1.0, 2.0);
  EXPECT_NEAR(values(weight)[0], 0.6, 1e-6);
  EXPECT_EQ(values(weight)[2], 1);
  EXPECT_THROW(call("aten::embedding_renorm_", "", weight, longs({2}), 1.0, 2.0), RuntimeError);
}

template <class T>
void expectOrderOfSet(const std::vector<T>& input, const Tensor& tensor) {
  std::unordered_set<T> set(input.begin(), input.end());
  std::vector<IValue> u = callAll("aten::_unique2", "", tensor, false, true, true);
  EXPECT_EQ(values(u[0].toTensor()), Values(set.begin(), set.end()));
  Values inverse = values(u[1].toTensor());
  Values found = values(u[0].toTensor());
  for (size_t i = 0; i < input.size(); ++i) {
    EXPECT_EQ(found[static_cast<size_t>(inverse[i])], static_cast<double>(input[i]));
  }
}

TEST(Unique, UnsortedValuesComeAsAHashSetHasThem) {
  std::mt19937 random(3);
  for (size_t n : {0, 1, 2, 3, 7, 50, 1000}) {
    std::vector<int64_t> integers(n);
    std::vector<float> numbers(n);
    for (size_t i = 0; i < n; ++i) {
      integers[i] = static_cast<int64_t>(random() % (n + 1)) * 13 - 40;
      numbers[i] = static_cast<float>(static_cast<int>(random() % (n + 1)) - 20) / 4;
    }
    const DimVector sizes{static_cast<int64_t>(n)};
    expectOrderOfSet(integers, Tensor::fromData(integers.data(), sizes));
    expectOrderOfSet(numbers, Tensor::fromData(numbers.data(), sizes));
  }
}

// Multiples of the number of buckets of such a set stand in one bucket.
TEST(Unique, ChosenValuesTakeNoLonger) {
  std::vector<int64_t> chosen(60000);
  const auto buckets = static_cast<int64_t>(std::unordered_set<int64_t>(60000).bucket_count());
  for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = static_cast<int64_t>(i) * buckets;
  Tensor t = Tensor::fromData(chosen.data(), DimVector{60000});
  EXPECT_EQ(callAll("aten::_unique2", "", t, true, true, true)[0].toTensor().numel(), 60000);
}

TEST(Unique, ValuesInversesCounts) {
  std::vector<IValue> u = callAll("aten::_unique2", "", longs({3, 1, 3}), true, true, true);
  EXPECT_EQ(values(u[0].toTensor()), (Values{1, 3}));
  EXPECT_EQ(values(u[1].toTensor()), (Values{1, 0, 1}));
  EXPECT_EQ(values(u[2].toTensor()), (Values{1, 2}));
  u = callAll("aten::_unique2", "", floats({3.5f, NAN, -1, 3.5f, 0}), false, true, true);
  EXPECT_EQ(values(u[1].toTensor()), (Values{3, 0, 1, 3, 0}));
  EXPECT_EQ(values(u[2].toTensor()), (Values{1, 1, 0, 2}));
  u = callAll("aten::_unique", "", bools({true, false, true}), false);
  EXPECT_EQ(values(u[0].toTensor()), (Values{0, 1}));
  u = callAll("aten::unique_consecutive", "", longs({1, 1, 2, 1}), true, true);
  EXPECT_EQ(values(u[0].toTensor()), (Values{1, 2, 1}));
  EXPECT_EQ(values(u[2].toTensor()), (Values{2, 1, 1}));
  u = callAll("aten::unique_dim", "", longs({3, 1, 1, 1, 3, 1}).view(DimVector{3, 2}), 0);
  EXPECT_EQ(values(u[0].toTensor()), (Values{1, 1, 3, 1}));
  EXPECT_EQ(values(u[1].toTensor()), (Values{1, 0, 1}));
}

}  // namespace
}  // namespace wick::ops_sorting_test
