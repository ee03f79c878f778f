#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/ops/call.h"

namespace wick::reduce_test {
namespace {

const OperatorHandle kSum{"aten::sum", "dim_IntList"};
const OperatorHandle kMax{"aten::max", "dim"};
const OperatorHandle kAmax{"aten::amax", ""};
const OperatorHandle kArgmax{"aten::argmax", ""};
const OperatorHandle kVar{"aten::var", "correction"};
const OperatorHandle kMean{"aten::mean", "dim"};
const OperatorHandle kSoftmax{"aten::softmax", "int"};
const OperatorHandle kLogSumExp{"aten::logsumexp", ""};
const OperatorHandle kCumsum{"aten::cumsum", ""};
const OperatorHandle kAll{"aten::all", ""};

Tensor randomTensor(const DimVector& sizes, unsigned seed = 1) {
  std::mt19937 rng(seed);
  std::normal_distribution<float> d;
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = d(rng);
  return t;
}

double at(const Tensor& t, IntSpan index) {
  Tensor e = t;
  for (int64_t i : index) e = e.select(0, i);
  return e.item<double>();
}

// Sums over the dimensions of `mask` by the definition, in double precision.
void checkSum(const Tensor& t, const DimVector& dims) {
  Tensor got = kSum(t, dims, true);
  DimVector index(static_cast<size_t>(t.dim()), 0);
  std::vector<double> want(static_cast<size_t>(got.numel()), 0);
  for (int64_t i = 0; i < t.numel(); ++i) {
    int64_t o = 0;
    for (int64_t d = 0; d < t.dim(); ++d) o = o * got.size(d) + (got.size(d) == 1 ? 0 : index[d]);
    want[o] += at(t, index);
    for (int64_t d = t.dim(); d-- > 0;) {
      if (++index[d] < t.size(d)) break;
      index[d] = 0;
    }
  }
  for (int64_t i = 0; i < got.numel(); ++i) {
    EXPECT_NEAR(got.data<float>()[i], want[i], 1e-5) << formatInts(dims) << " of " << t.describe();
  }
}

TEST(Reduce, SumsAnyDimensionsOfAnyLayout) {
  Tensor t = randomTensor({3, 4, 5, 6});
  std::vector<Tensor> layouts = {t, t.transpose(0, 3), t.permute(DimVector{2, 0, 3, 1}),
                                 t.slice(2, 0, 5, 2),
                                 t.select(1, 0).unsqueeze(1).expand(DimVector{3, 7, 5, 6})};
  for (const Tensor& x : layouts) {
    for (const DimVector& dims : {DimVector{0}, DimVector{3}, DimVector{1, 2}, DimVector{0, 3},
                                  DimVector{-1, 0, 1}, DimVector{0, 1, 2, 3}}) {
      checkSum(x, dims);
    }
  }
}

TEST(Reduce, LongFloatSumsStayExact) {
  // 10 million times 0.1f in float32 would drift by percents.
  Tensor t = Tensor::full({10000000}, 0.1, DType::Float);
  double want = 1e7 * static_cast<double>(0.1f);
  EXPECT_NEAR(kSum(t, DimVector{}).item<double>(), want, want * 1e-6);
}

TEST(Reduce, DtypesFollowPyTorch) {
  Tensor bytes = Tensor::full({300}, 1, DType::Byte);
  Tensor sum = kSum(bytes, DimVector{0});
  EXPECT_EQ(sum.dtype(), DType::Long);
  EXPECT_EQ(sum.item<int64_t>(), 300);
  EXPECT_EQ(kSum(bytes, DimVector{0}, false, DType::Byte).item<int64_t>(), 44);
  EXPECT_EQ(kAll(bytes).dtype(), DType::Byte);
  EXPECT_EQ(kAll(bytes.to(DType::Float)).dtype(), DType::Bool);
  EXPECT_THROW(kMean(bytes, DimVector{0}), RuntimeError);
  EXPECT_EQ(kMean(bytes, DimVector{0}, false, DType::Double).item<double>(), 1.0);
}

// A destination says in which dtype a sum is computed, unless the call does.
TEST(Reduce, DestinationsDecideDtypes) {
  static const OperatorHandle kSumOut{"aten::sum", "dim_IntList_out"},
      kProdOut{"aten::prod", "dim_int_out"}, kMeanOut{"aten::mean", "dim_out"};
  const Tensor bytes = Tensor::full({300}, 1, DType::Byte);
  const Tensor byte = Tensor::zeros({}, DType::Byte), boolean = Tensor::zeros({}, DType::Bool);
  kSumOut(bytes, DimVector{0}, false, IValue(), byte);
  EXPECT_EQ(byte.item<uint8_t>(), 44);
  kSumOut(bytes, DimVector{0}, false, IValue(), boolean);
  EXPECT_TRUE(boolean.item<bool>());
  const Tensor halves = Tensor::full({3}, 2.5, DType::Float);
  const Tensor whole = Tensor::zeros({}, DType::Long);
  kProdOut(halves, 0, false, IValue(), whole);
  EXPECT_EQ(whole.item<int64_t>(), 8);
  const Tensor exact = Tensor::zeros({}, DType::Double);
  kMeanOut(Tensor::full({3}, 0.1, DType::Float), DimVector{0}, false, IValue(), exact);
  EXPECT_NEAR(exact.item<double>(), static_cast<double>(0.1f), 1e-15);
  EXPECT_THROW(kSumOut(bytes, DimVector{0}, false, DType::Long, byte), RuntimeError);
  EXPECT_THROW(kMeanOut(bytes, DimVector{0}, false, IValue(), exact), RuntimeError);
}

TEST(Reduce, EmptyTensors) {
  Tensor none = Tensor::empty({0, 3}, DType::Float);
  EXPECT_EQ(at(kSum(none, DimVector{0}), DimVector{2}), 0.0);
  EXPECT_TRUE(std::isnan(at(kMean(none, DimVector{0}), DimVector{1})));
  EXPECT_EQ(kSum(none, DimVector{1}).numel(), 0);
  EXPECT_THROW(kAmax(none, DimVector{0}), RuntimeError);
  EXPECT_EQ(kAmax(none, DimVector{1}).numel(), 0);
  EXPECT_THROW(kArgmax(none), RuntimeError);
}

TEST(Reduce, NanWinsAndTheFirstOfEqualsCounts) {
  for (int64_t n : {3, 100}) {
    Tensor t = Tensor::full({n}, 1, DType::Float);
    EXPECT_EQ(kArgmax(t).item<int64_t>(), 0);
    t.data<float>()[2] = NAN;
    t.data<float>()[1] = INFINITY;
    EXPECT_TRUE(std::isnan(kAmax(t, DimVector{}).item<double>()));
    auto both = kMax.all(t, int64_t{0});
    EXPECT_TRUE(std::isnan(both[0].toTensor().item<double>()));
    EXPECT_EQ(both[1].toTensor().item<int64_t>(), 2);
  }
}

TEST(Reduce, VarianceOfLargeMeans) {
  Tensor t = randomTensor({1000}).to(DType::Double);
  double mean = 0, squares = 0;
  for (int64_t i = 0; i < 1000; ++i) mean += t.data<double>()[i] / 1000;
  for (int64_t i = 0; i < 1000; ++i) squares += std::pow(t.data<double>()[i] - mean, 2);
  for (int64_t i = 0; i < 1000; ++i) t.data<double>()[i] += 1e8;
  EXPECT_NEAR(kVar(t, DimVector{0}, int64_t{1}).item<double>(), squares / 999, 1e-6);
  EXPECT_TRUE(std::isnan(kVar(t.slice(0, 0, 1), DimVector{0}, int64_t{1}).item<double>()));
}

TEST(Reduce, RejectsRepeatedAndFarDimensions) {
  Tensor t = Tensor::zeros({2, 2}, DType::Float);
  EXPECT_THROW(kSum(t, DimVector{0, -2}), RuntimeError);
  EXPECT_THROW(kSum(t, DimVector{2}), RuntimeError);
  EXPECT_EQ(kSum(Tensor::zeros({}, DType::Float), DimVector{0}).dim(), 0);
}

TEST(Softmax, AgreesWithDoublePrecision) {
  for (int64_t n : {1, 7, 8, 9, 131}) {
    Tensor x = randomTensor({5, n, 3});
    for (int64_t dim : {0, 1, 2}) {
      Tensor got = kSoftmax(x, dim), want = kSoftmax(x.to(DType::Double), dim);
      for (int64_t i = 0; i < x.numel(); ++i) {
        EXPECT_NEAR(got.data<float>()[i], want.data<double>()[i], 2e-7);
      }
    }
  }
  Tensor row = Tensor::zeros({9}, DType::Float);
  row.data<float>()[0] = -INFINITY;
  row.data<float>()[1] = -200;
  Tensor p = kSoftmax(row, int64_t{0});
  EXPECT_EQ(p.data<float>()[0], 0.0f);
  EXPECT_NEAR(p.data<float>()[8], 1.0 / 7, 1e-7);
  row.data<float>()[3] = NAN;
  EXPECT_TRUE(std::isnan(kSoftmax(row, int64_t{0}).data<float>()[8]));
  EXPECT_TRUE(std::isnan(
      kSoftmax(Tensor::full({9}, -INFINITY, DType::Float), int64_t{0}).data<float>()[0]));
}

TEST(Softmax, LogSumExpOfInfinities) {
  Tensor t = Tensor::full({4}, -INFINITY, DType::Float);
  EXPECT_EQ(kLogSumExp(t, DimVector{0}).item<double>(), -INFINITY);
  t.data<float>()[1] = INFINITY;
  EXPECT_EQ(kLogSumExp(t, DimVector{0}).item<double>(), INFINITY);
}

TEST(Scan, SumsWithDtypeRules) {
  Tensor t = Tensor::full({2, 3}, 1, DType::Bool);
  Tensor s = kCumsum(t, int64_t{1});
  EXPECT_EQ(s.dtype(), DType::Long);
  EXPECT_EQ(at(s, DimVector{1, 2}), 3.0);
  EXPECT_EQ(at(kCumsum(t.to(DType::Float), int64_t{0}), DimVector{1, 0}), 2.0);
}

// As PyTorch 1.13, whose vectors decide.
TEST(Extremes, ChooseAmongZerosOfBothSigns) {
  const OperatorHandle max{"aten::max", ""}, min{"aten::min", ""};
  const auto sign_of_max = [&](const std::vector<float>& values) {
    return std::signbit(
        max(Tensor::from(values, {static_cast<int64_t>(values.size())})).item<float>());
  };
  EXPECT_TRUE(sign_of_max({0.0F, -0.0F}));
  EXPECT_FALSE(sign_of_max({-0.0F, 0.0F}));
  EXPECT_FALSE(sign_of_max({-0.0F, 0.0F, -1.0F}));
  std::vector<float> values(17, -1.0F);
  values[1] = -0.0F;
  values[4] = 0.0F;
  EXPECT_TRUE(sign_of_max(values));  // the second element of a vector comes before the fifth
  values[9] = 0.0F;
  EXPECT_FALSE(sign_of_max(values));
  values[15] = -0.0F;
  EXPECT_TRUE(sign_of_max(values));
  values[16] = 0.0F;
  EXPECT_TRUE(sign_of_max(values));
  const Tensor doubles = Tensor::from(std::vector<double>{0.0, 1.0, -0.0, 1.0, 0.0}, {5});
  EXPECT_TRUE(std::signbit(min(doubles).item<double>()));
}

}  // namespace
}  // namespace wick::reduce_test
