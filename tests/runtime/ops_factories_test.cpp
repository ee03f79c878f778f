// Factories, ranges, windows and random numbers against what PyTorch 1.13 gives.
#include <cmath>

#include "tests/runtime/op_testing.h"

namespace wick::ops_factories_test {
namespace {

using namespace testing;

TEST(Factories, DTypesFollowTheNumbers) {
  EXPECT_EQ(call("aten::full", "", DimVector{2}, Scalar(1)).dtype(), DType::Long);
  EXPECT_EQ(call("aten::full", "", DimVector{2}, Scalar(true)).dtype(), DType::Bool);
  EXPECT_EQ(call("aten::scalar_tensor", "", Scalar(true)).dtype(), DType::Float);
  EXPECT_EQ(call("aten::arange", "", Scalar(3)).dtype(), DType::Long);
  EXPECT_EQ(call("aten::arange", "", Scalar(3.0)).dtype(), DType::Float);
  EXPECT_THROW(call("aten::full", "", DimVector{2}, Scalar(300), DType::Byte), RuntimeError);
  EXPECT_EQ(values(call("aten::full", "", DimVector{1}, Scalar(-1), DType::Byte)), (Values{255}));
  EXPECT_THROW(call("aten::zeros", "", DimVector{-1}), RuntimeError);
  EXPECT_THROW(call("aten::fill_", "Scalar", longs({1}), Scalar(std::complex<double>(0, 1))),
               RuntimeError);
}

TEST(Factories, LongIntegersKeepTheirDigits) {
  Tensor t = call("aten::full", "", DimVector{1}, Scalar(int64_t{9007199254740993}));
  EXPECT_EQ(t.data<int64_t>()[0], 9007199254740993);
}

TEST(Ranges, ArangeCounts) {
  EXPECT_EQ(values(call("aten::arange", "start_step", Scalar(0), Scalar(1), Scalar(0.3))).size(),
            4u);
  EXPECT_EQ(values(call("aten::arange", "start_step", Scalar(5), Scalar(0), Scalar(-2))),
            (Values{5, 3, 1}));
  EXPECT_EQ(shape(call("aten::arange", "start_step", Scalar(0), Scalar(0), Scalar(1))), (Shape{0}));
  EXPECT_THROW(call("aten::arange", "start_step", Scalar(5), Scalar(1), Scalar(1)), RuntimeError);
  EXPECT_THROW(call("aten::arange", "start_step", Scalar(0), Scalar(1), Scalar(0)), RuntimeError);
  EXPECT_THROW(call("aten::arange", "", Scalar(NAN)), RuntimeError);
  EXPECT_THROW(call("aten::arange", "start", Scalar(INT64_MIN), Scalar(INT64_MAX)), RuntimeError);
}

TEST(Ranges, LinspaceReachesBothEnds) {
  EXPECT_EQ(values(call("aten::linspace", "", Scalar(0), Scalar(10), 5, DType::Int)),
            (Values{0, 2, 5, 7, 10}));
  EXPECT_EQ(values(call("aten::linspace", "", Scalar(3), Scalar(9), 1)), (Values{3}));
  EXPECT_EQ(values(call("aten::logspace", "", Scalar(0), Scalar(2), 3, 10.0, DType::Long)),
            (Values{1, 10, 100}));
  // The exponents of integers are doubles.
  EXPECT_EQ(values(call("aten::logspace", "", Scalar(3), Scalar(10), 100, 10.0, DType::Long))[37],
            413201);
  EXPECT_THROW(call("aten::linspace", "", Scalar(0), Scalar(1), -1), RuntimeError);
}

TEST(Ranges, TrianglesKeepOneSide) {
  Tensor t = iota(DimVector{2, 3});
  EXPECT_EQ(values(call("aten::tril", "", t)), (Values{0, 0, 0, 3, 4, 0}));
  EXPECT_EQ(values(call("aten::triu", "", t, 1)), (Values{0, 1, 2, 0, 0, 5}));
  EXPECT_EQ(values(call("aten::triu", "", t, INT64_MAX)), (Values{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(values(call("aten::tril_indices", "", 3, 4, -1)), (Values{1, 2, 2, 0, 0, 1}));
}

TEST(Ranges, Windows) {
  Tensor hann = call("aten::hann_window", "", 5);
  EXPECT_NEAR(values(hann)[1], 0.3455, 1e-4);
  EXPECT_NEAR(values(call("aten::kaiser_window", "", 5))[1], 1.0172e-01, 1e-5);
  EXPECT_NEAR(values(call("aten::bartlett_window", "", 6))[1], 1.0 / 3, 1e-6);
  EXPECT_EQ(values(call("aten::hamming_window", "", 1)), (Values{1}));
  EXPECT_EQ(shape(call("aten::blackman_window", "", 0)), (Shape{0}));
  EXPECT_THROW(call("aten::hann_window", "", -1), RuntimeError);
}

TEST(Ranges, Combinations) {
  EXPECT_EQ(values(call("aten::combinations", "", longs({7, 8, 9}), 2)),
            (Values{7, 8, 7, 9, 8, 9}));
  EXPECT_EQ(shape(call("aten::combinations", "", longs({7, 8}), 2, true)), (Shape{3, 2}));
  EXPECT_EQ(shape(call("aten::combinations", "", longs({7, 8}), 3)), (Shape{0, 3}));
  EXPECT_THROW(call("aten::combinations", "", Tensor::zeros(DimVector{500}, DType::Byte), 60),
               RuntimeError);
}

class Random : public ::testing::Test {
 protected:
  void SetUp() override { defaultGenerator().seed(0); }
};

TEST_F(Random, UniformNumbers) {
  Tensor t = call("aten::rand", "", DimVector{3});
  EXPECT_FLOAT_EQ(t.data<float>()[0], 0.49625658988952637f);
  EXPECT_FLOAT_EQ(t.data<float>()[2], 0.08847743272781372f);
  defaultGenerator().seed(0);
  EXPECT_DOUBLE_EQ(call("aten::rand", "", DimVector{1}, DType::Double).item<double>(),
                   0.9700530018065531);
  defaultGenerator().seed(0);
  EXPECT_EQ(call("aten::rand", "", DimVector{1}, DType::Half).item<double>(), 0.333984375);
}

TEST_F(Random, NormalNumbers) {
  std::vector<double> few = values(call("aten::randn", "", DimVector{4}));
  EXPECT_FLOAT_EQ(few[0], 1.5409960746765137f);
  EXPECT_FLOAT_EQ(few[3], 0.5684312582015991f);
  defaultGenerator().seed(0);
  EXPECT_NEAR(values(call("aten::randn", "", DimVector{16}))[0], -1.1258398294448853, 1e-6);
  defaultGenerator().seed(0);
  // Drawn in the order of memory.
  Tensor t = Tensor::empty(DimVector{4, 8}, DType::Float).transpose(0, 1);
  call("aten::normal_", "", t);
  EXPECT_NEAR(values(t)[1], -0.7193, 1e-4);
}

TEST_F(Random, IntegersAndPermutations) {
  EXPECT_EQ(values(call("aten::randperm", "", 8)), (Values{4, 0, 7, 3, 2, 5, 1, 6}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::randint", "", int64_t{1} << 40, DimVector{2})),
            (Values{741280623151, 506137267392}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::random_", "", Tensor::empty(DimVector{3}, DType::Byte))),
            (Values{172, 47, 117}));
  EXPECT_THROW(call("aten::randint", "", 0, DimVector{2}), RuntimeError);
}

TEST_F(Random, Distributions) {
  EXPECT_EQ(
      values(call("aten::bernoulli_", "float", Tensor::empty(DimVector{10}, DType::Float), 0.5)),
      (Values{0, 0, 1, 0, 0, 0, 1, 1, 0, 1}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::bernoulli", "", Tensor::full(DimVector{10}, 0.5, DType::Float))),
            (Values{1, 0, 1, 1, 1, 0, 1, 0, 1, 0}));
  defaultGenerator().seed(0);
  EXPECT_FLOAT_EQ(
      call("aten::exponential_", "", Tensor::empty(DimVector{1}, DType::Float)).item<double>(),
      3.508326292037964f);
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::multinomial", "", floats({1, 2, 3, 4}), 8, true)),
            (Values{3, 3, 2, 3, 3, 3, 1, 2}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::multinomial", "", floats({1, 2, 3, 4}), 4)), (Values{2, 1, 3, 0}));
  // With replacement PyTorch 1.13 draws one position as it draws several; later versions do not.
  defaultGenerator().seed(7);
  const Tensor weights = floats({1, 2, 3, 4, 4, 3, 2, 1}).view(DimVector{2, 4});
  EXPECT_EQ(values(call("aten::multinomial", "", weights, 1, true)), (Values{1, 0}));
  EXPECT_EQ(values(call("aten::multinomial", "", floats({1, 2, 3, 4}), 1, true)), (Values{3}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::poisson", "", floats({1, 5, 20}))), (Values{2, 6, 19}));
  defaultGenerator().seed(0);
  EXPECT_EQ(values(call("aten::geometric_", "", Tensor::empty(DimVector{6}, DType::Float), 0.3)),
            (Values{1, 1, 3, 1, 2, 1}));
}

}  // namespace
}  // namespace wick::ops_factories_test
