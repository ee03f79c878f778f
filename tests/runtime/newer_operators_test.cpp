// Operators, overloads and dtypes that came with PyTorch 2, with PyTorch 2.11's values.
#include <chrono>
#include <cmath>
#include <complex>
#include <limits>

#include "core/budget.h"
#include "tests/runtime/op_testing.h"

namespace wick::newer_operators_test {
namespace {

using namespace testing;
using Complex = std::complex<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();

void expectNear(const Tensor& t, std::initializer_list<double> expected, double tolerance) {
  const Values got = values(t);
  ASSERT_EQ(got.size(), expected.size());
  size_t i = 0;
  for (double e : expected) EXPECT_NEAR(got[i++], e, tolerance);
}

void expectComplex(const Tensor& t, std::initializer_list<Complex> expected) {
  const auto got = t.contiguous().span<Complex>();
  ASSERT_EQ(static_cast<size_t>(t.numel()), expected.size());
  size_t i = 0;
  for (Complex e : expected) {
    EXPECT_NEAR(got[i].real(), e.real(), 1e-12);
    EXPECT_NEAR(got[i++].imag(), e.imag(), 1e-12);
  }
}

TEST(NewerOperators, SqueezeTakesSeveralDimensions) {
  const Tensor x = iota(DimVector{1, 2, 1, 3, 1});
  EXPECT_EQ(shape(call("aten::squeeze", "dims", x, DimVector{0, -1})), (Shape{2, 1, 3}));
  EXPECT_EQ(shape(call("aten::squeeze", "dims", x, DimVector{1})), (Shape{1, 2, 1, 3, 1}));
  EXPECT_EQ(shape(call("aten::squeeze", "dims", x, DimVector{})), (Shape{1, 2, 1, 3, 1}));
  EXPECT_TRUE(call("aten::squeeze", "dims", x, DimVector{0, 2}).sharesStorage(x));
  EXPECT_FALSE(call("aten::squeeze_copy", "dims", x, DimVector{0, 2}).sharesStorage(x));
  EXPECT_EQ(shape(call("aten::squeeze", "dims", Tensor::scalar(1.f), DimVector{0})), Shape{});
  EXPECT_THROW(call("aten::squeeze", "dims", x, DimVector{0, -5}), RuntimeError);
  EXPECT_THROW(call("aten::squeeze", "dims", x, DimVector{5}), RuntimeError);
}

TEST(NewerOperators, IndicesMayHave32Bits) {
  const Tensor x = floats({1, 2, 3}), at = longs({2, 0}).to(DType::Int);
  EXPECT_EQ(values(call("aten::gather", "", x, 0, at)), (Values{3, 1}));
  EXPECT_EQ(values(call("aten::scatter", "src", x, 0, at, floats({8, 9}))), (Values{9, 2, 8}));
  EXPECT_EQ(values(call("aten::index", "Tensor", x, std::vector<Tensor>{at})), (Values{3, 1}));
  EXPECT_THROW(call("aten::gather", "", x, 0, at.to(DType::Short)), RuntimeError);
  // Only take_along_dim counts from the end.
  EXPECT_EQ(values(call("aten::take_along_dim", "", x, longs({-1}), 0)), Values{3});
  EXPECT_THROW(call("aten::take_along_dim", "", x, longs({-4}), 0), RuntimeError);
  EXPECT_THROW(call("aten::gather", "", x, 0, longs({-1})), RuntimeError);
}

TEST(NewerOperators, AnyAndAllOverSeveralDimensions) {
  const Tensor x = tensorOf<uint8_t>({0, 4, 3, 5}).view(DimVector{2, 2});
  EXPECT_EQ(values(call("aten::all", "dims", x, DimVector{0})), (Values{0, 1}));
  EXPECT_EQ(values(call("aten::any", "dims", x, DimVector{0, 1})), Values{1});
  // No dimension: each element stands for itself; None: all of them.
  EXPECT_EQ(values(call("aten::any", "dims", x, DimVector{})), (Values{0, 1, 1, 1}));
  EXPECT_EQ(call("aten::any", "dims", x, DimVector{}).dtype(), DType::Byte);
  EXPECT_EQ(shape(call("aten::all", "dims", x, IValue(), true)), (Shape{1, 1}));
}

TEST(NewerOperators, NonzeroOfAFixedSize) {
  const Tensor x = floats({0, 2, 0, 3});
  EXPECT_EQ(values(call("aten::nonzero_static", "", x, 3)), (Values{1, 3, -1}));
  EXPECT_EQ(values(call("aten::nonzero_static", "", x, 1, 7)), Values{1});
  EXPECT_EQ(shape(call("aten::nonzero_static", "", Tensor::scalar(1.f), 2)), (Shape{2, 0}));
  EXPECT_THROW(call("aten::nonzero_static", "", x, -1), RuntimeError);
  EXPECT_THROW(call("aten::nonzero_static", "", x, INT64_MAX), RuntimeError);
}

TEST(NewerOperators, MaskedIndexing) {
  const Tensor x = floats({1, 2, 3}), at = longs({5, 0, -9}), mask = bools({false, true, false});
  EXPECT_EQ(
      values(call("aten::_unsafe_masked_index", "", x, mask, std::vector<Tensor>{at}, Scalar(7))),
      (Values{7, 1, 7}));
  EXPECT_EQ(values(call("aten::_unsafe_masked_index_put_accumulate", "", x, mask,
                        std::vector<Tensor>{at}, floats({10, 20, 30}))),
            (Values{21, 2, 3}));
  const Tensor none = Tensor::empty(DimVector{0}, DType::Float);
  EXPECT_EQ(values(call("aten::_unsafe_masked_index", "", none, mask,
                        std::vector<Tensor>{longs({0, 0, 0})}, Scalar(7))),
            (Values{7, 7, 7}));
  EXPECT_THROW(
      call("aten::_unsafe_masked_index", "", x, mask, std::vector<Tensor>{mask}, Scalar(7)),
      RuntimeError);
}

TEST(NewerOperators, ChunksOfSeveralTensors) {
  const Tensor a = iota(DimVector{3}), b = iota(DimVector{4});
  const Tensor out = call("aten::_chunk_cat", "", std::vector<Tensor>{a, b}, 0, 2);
  EXPECT_EQ(shape(out), (Shape{2, 4}));
  EXPECT_EQ(values(out), (Values{0, 1, 0, 1, 2, 0, 2, 3}));
  EXPECT_THROW(call("aten::_chunk_cat", "", std::vector<Tensor>{a, b}, 0, 0), RuntimeError);
  EXPECT_THROW(call("aten::_chunk_cat", "", std::vector<Tensor>{}, 0, 2), RuntimeError);
  EXPECT_THROW(call("aten::_chunk_cat", "", std::vector<Tensor>{a, b}, 0, INT64_MAX), RuntimeError);
}

TEST(NewerOperators, RootMeanSquareNormalization) {
  const Tensor x = floats({3, 4});
  expectNear(call("aten::rms_norm", "", x, DimVector{2}), {0.848528, 1.131371}, 1e-6);
  expectNear(call("aten::rms_norm", "", x, DimVector{2}, floats({2, 1}), 12.5), {1.2, 0.8}, 1e-6);
  EXPECT_EQ(call("aten::rms_norm", "", x.to(DType::Half), DimVector{2}).dtype(), DType::Half);
  EXPECT_THROW(call("aten::rms_norm", "", x, DimVector{3}), RuntimeError);
  EXPECT_THROW(call("aten::rms_norm", "", x, DimVector{}), RuntimeError);
  EXPECT_THROW(call("aten::rms_norm", "", longs({1, 2}), DimVector{2}), RuntimeError);
}

TEST(NewerOperators, BatchNormalizationByItsNewerNames) {
  const Tensor x = iota(DimVector{4, 1}), none;
  const Tensor mean = floats({0}), variance = floats({1});
  const auto out =
      callAll("aten::_batch_norm_with_update", "", x, none, none, mean, variance, 0.5, 0.25);
  expectNear(out[0].toTensor(), {-1.224745, -0.408248, 0.408248, 1.224745}, 1e-6);
  expectNear(mean, {0.75}, 1e-6);
  expectNear(variance, {0.5 + 0.5 * 5 / 3}, 1e-6);
  const auto kept = callAll("aten::_native_batch_norm_legit_functional", "", x, none, none, mean,
                            variance, true, 0.5, 0.25);
  expectNear(mean, {0.75}, 1e-6);
  expectNear(kept[3].toTensor(), {1.125}, 1e-6);
  expectNear(callAll("aten::_native_batch_norm_legit_no_training", "", x, none, none, floats({1}),
                     floats({0.75}), 0.5, 0.25)[0]
                 .toTensor(),
             {-1, 0, 1, 2}, 1e-6);
  // What training keeps has the dtype of the parameters.
  const Tensor half = x.to(DType::Half);
  EXPECT_EQ(
      callAll("aten::_native_batch_norm_legit", "no_stats", half, none, none, true, 0.5, 0.25)[1]
          .toTensor()
          .dtype(),
      DType::Half);
  EXPECT_EQ(callAll("aten::_native_batch_norm_legit", "no_stats", half, floats({1}), none, true,
                    0.5, 0.25)[1]
                .toTensor()
                .dtype(),
            DType::Float);
}

TEST(NewerOperators, BatchNormalizationOfBFloat16RoundsItsSums) {
  const auto bf16 = [](std::initializer_list<float> v) { return floats(v).to(DType::BFloat16); };
  const Tensor x = bf16({5.34375f, -0.84375f, 1.6875f}).view(DimVector{3, 1});
  const auto out = callAll("aten::_batch_norm_with_update", "", x, bf16({-5.6875f}),
                           bf16({5.84375f}), bf16({1.3359375f}), bf16({1.859375f}), 0.0, 1e-5);
  // As PyTorch 2.11 gives them.
  EXPECT_EQ(values(out[0].toTensor()), (Values{-1.484375, 12.3125, 6.6875}));
  EXPECT_EQ(values(out[1].toTensor()), (Values{2.0625}));
  EXPECT_EQ(values(out[2].toTensor()), (Values{0.392578125}));
}

TEST(NewerOperators, SafeSoftmaxOfHiddenRows) {
  const Tensor x = tensorOf<double>({-kInf, -kInf, -kInf, 0}).view(DimVector{2, 2});
  EXPECT_EQ(values(call("aten::_safe_softmax", "", x, 1)), (Values{0, 0, 0, 1}));
}

TEST(NewerOperators, LogarithmsAndExponentialsOfComplexNumbers) {
  const auto one = [](Complex z) { return Tensor::scalar(z); };
  expectComplex(call("aten::expm1", "", one({0.3, 0.4})),
                {{0.24330229506950263, 0.5256597791969788}});
  expectComplex(call("aten::log1p", "", one({0.3, 0.4})),
                {{0.30759281954511686, 0.2984989315861793}});
  expectComplex(call("aten::exp2", "", one({0.5, 1})), {{1.087868087013909, 0.903627702793965}});
  const Complex sum(0.10499301432446861, 0.7889591478473275);
  expectComplex(call("aten::logaddexp", "", one({1, 1}), one({0.5, -2})), {sum});
  const Tensor x = tensorOf<Complex>({{1, 1}, {0.5, -2}, {0, 2}});
  const Tensor running = call("aten::logcumsumexp", "", x, 0);
  const Tensor last = call("aten::logsumexp", "", x, DimVector{0});
  expectComplex(running.narrow(0, 0, 2), {{1, 1}, sum});
  expectComplex(last, {running.span<Complex>()[2]});
  EXPECT_NEAR(last.item<Complex>().real(), 0.55191539, 1e-8);
  // Nothing added to nothing.
  EXPECT_EQ(call("aten::logaddexp", "", one({-kInf, 0}), one({-kInf, 0})).item<Complex>().real(),
            -kInf);
}

TEST(NewerOperators, SixteenBits) {
  const Tensor half = floats({1, -1, 0}).to(DType::Half), up = floats({2, 0, 1}).to(DType::Half);
  expectNear(call("aten::nextafter", "", half, up), {1.0009765625, -0.99951171875, 0x1p-24}, 0);
  EXPECT_EQ(call("aten::histc", "", half, 2).dtype(), DType::Half);
  EXPECT_EQ(values(call("aten::max_unpool2d", "", half.view(DimVector{1, 1, 3}),
                        longs({2, 0, 1}).view(DimVector{1, 1, 3}), DimVector{1, 3})),
            (Values{-1, 0, 1}));
}

// Each step is rounded to the dtype.
TEST(NewerOperators, SamplesOfSixteenBits) {
  const Tensor x = floats({-6, -4.625, -3.265625, -1.890625, -0.51953125, 0.8515625, 2.21875,
                           3.59375, 4.96875, 6.34375, 7.6875, 9.0625})
                       .view(DimVector{1, 1, 3, 4});
  const Tensor grid = floats({-0.828125, 0.41015625, 0.26953125, -1.296875, 0.66015625, 0.921875})
                          .view(DimVector{1, 1, 3, 2});
  const auto sampled = [&](DType dtype, int64_t interpolation, int64_t padding) {
    return values(call("aten::grid_sampler_2d", "", x.to(dtype), grid.to(dtype), interpolation,
                       padding, false));
  };
  EXPECT_EQ(sampled(DType::BFloat16, 0, 0), (Values{2.390625, -0.17578125, 5.5}));
  EXPECT_EQ(sampled(DType::BFloat16, 0, 2), (Values{2.828125, -3.21875, 8.8125}));
  EXPECT_EQ(sampled(DType::BFloat16, 1, 1), (Values{4.96875, -3.265625, 9.0625}));
  EXPECT_EQ(sampled(DType::BFloat16, 2, 0), (Values{3.09375, -0.228515625, 7}));
  EXPECT_EQ(sampled(DType::BFloat16, 2, 2), (Values{3.125, -3.53125, 10}));
  EXPECT_EQ(sampled(DType::Half, 0, 1), (Values{2.857421875, -3.212890625, 8.8125}));
  EXPECT_EQ(sampled(DType::Half, 2, 1), (Values{3.1796875, -3.1953125, 9.453125}));
  // Infinities and NaN lie outside, and what is no number is what they weigh.
  const Tensor far = floats({INFINITY, 0, NAN, 0}).view(DimVector{1, 1, 2, 2}).to(DType::Half);
  EXPECT_EQ(values(call("aten::grid_sampler_2d", "", x.to(DType::Half), far, 1, 0, false)),
            (Values{0, 0}));
  EXPECT_TRUE(std::isnan(
      values(call("aten::grid_sampler_2d", "", x.to(DType::Half), far, 0, 0, false))[0]));
}

// With an output padding beyond the stride each product and each sum is rounded.
TEST(NewerOperators, TransposedConvolutionsOfSixteenBits) {
  const Tensor x = floats({-4.81640625, 0.697265625, 6.71875, 2.541015625, 3.6015625, -1.205078125,
                           -4.27734375, 2.7109375, 2.56640625});
  const Tensor w = floats({2.06640625, 2.654296875, 5.3125, -0.2427978515625, 0.15380859375,
                           -2.60546875, -0.8271484375, -3.814453125, 2.64453125});
  const auto image = [](const Tensor& t) { return t.view(DimVector{1, 1, 3, 3}).to(DType::Half); };
  const Tensor out =
      call("aten::convolution", "", image(x), image(w), floats({0.7001953125}).to(DType::Half),
           DimVector{1, 1}, DimVector{0, 0}, DimVector{2, 2}, true, DimVector{1, 1}, 1);
  EXPECT_EQ(shape(out), (Shape{1, 1, 8, 8}));
  EXPECT_EQ(values(out.select(2, 2).select(0, 0)),
            (Values{-6.96875, 6.1328125, -7.72265625, 8, -1.6279296875, 13.28125, -3.16796875,
                    0.7001953125}));
}

// In sixteen bits the bins are found by a product and a quotient, each rounded.
TEST(NewerOperators, HistogramsOfSixteenBits) {
  const Tensor x = floats({-2.09375, -1.1875, -0.427734375, 4}).to(DType::BFloat16);
  Values expected(100, 0);
  for (const size_t bin : {12, 25, 36, 99}) expected[bin] = 1;
  EXPECT_EQ(values(call("aten::histc", "", x, 100, -3, 4)), expected);
}

// The mean is taken away before the row is scaled.
TEST(NewerOperators, RowsOfEqualElementsBecomeZero) {
  const Tensor x = floats({-4.322804451, -4.322804451});
  const Tensor out =
      call("aten::layer_norm", "", x, DimVector{2}, floats({3, 5}), floats({-1.75, 2}));
  EXPECT_EQ(values(out), (Values{-1.75, 2}));
}

TEST(NewerOperators, CorrectionNeedNotBeWhole) {
  const Tensor x = floats({1, 2, 3, 4});
  expectNear(call("aten::var", "correction", x, IValue(), Scalar(1.5)), {2}, 1e-6);
  expectNear(call("aten::var", "correction", x), {5.0 / 3}, 1e-6);
}

// Bytes are resampled with weights of sixteen bits: halves are rounded up in each dimension.
TEST(NewerOperators, ResampledBytes) {
  const Tensor x = tensorOf<uint8_t>({0, 255, 10, 21}).view(DimVector{1, 1, 2, 2});
  const Tensor out = call("aten::upsample_bilinear2d", "", x, DimVector{2, 3}, false);
  EXPECT_EQ(values(out), (Values{0, 128, 255, 10, 16, 21}));
  EXPECT_EQ(out.dtype(), DType::Byte);
  EXPECT_EQ(values(call("aten::_upsample_bilinear2d_aa", "", x, DimVector{1, 1}, false)),
            Values{72});
  // A scale whose quotient is infinite leads to the last element.
  EXPECT_EQ(values(call("aten::upsample_bicubic2d", "", x, DimVector{3, 3}, false, 1e-310, 1e-310)),
            Values(9, 21));
}

// Arguments that operators of 1.13 got later.
TEST(NewerOperators, SequencesArePaddedOnEitherSide) {
  const std::vector<Tensor> two = {floats({1, 2, 3}), floats({4})};
  EXPECT_EQ(values(call("aten::pad_sequence", "", two, true, 9.0, "left")),
            (Values{1, 2, 3, 9, 9, 4}));
  EXPECT_EQ(values(call("aten::pad_sequence", "", two, true, 9.0)), (Values{1, 2, 3, 4, 9, 9}));
  EXPECT_THROW(call("aten::pad_sequence", "", two, true, 9.0, "middle"), RuntimeError);
}

TEST(NewerOperators, FramesOfAShortTimeTransformMayBeginWithTheWindow) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}), window = floats({1, 2, 1, 3});
  const auto frames = [&](IValue align) {
    return call("aten::stft", "", x, 8, 2, 4, window, false, true, true, std::move(align));
  };
  EXPECT_EQ(shape(frames(IValue())), (Shape{5, 2}));
  // As many as windows of four fit.
  const Tensor aligned = frames(true);
  EXPECT_EQ(shape(aligned), (Shape{5, 4}));
  // The sum of the first frame: 1 + 4 + 3 + 12.
  EXPECT_EQ(call("aten::real", "", aligned).select(0, 0).select(0, 0).item<float>(), 20);
  EXPECT_THROW(
      call("aten::stft", "center", x, 8, 2, 4, window, true, "reflect", false, true, true, false),
      RuntimeError);
  EXPECT_EQ(shape(call("aten::stft", "center", x, 8, 2, 4, window, false, "reflect", false, true,
                       true, true)),
            (Shape{5, 4}));
}

TEST(NewerOperators, SparseTensorsMayBeSaidToBeCoalesced) {
  const auto made = [](const Tensor& at, IValue coalesced) {
    return call("aten::sparse_coo_tensor", "indices_size", at, floats({1, 2}), DimVector{4},
                IValue(), IValue(), IValue(), IValue(), std::move(coalesced));
  };
  const Tensor ascending = longs({0, 2}).view(DimVector{1, 2});
  const auto isCoalesced = [](const Tensor& t) {
    static const OperatorHandle kIsCoalesced("aten::is_coalesced", "");
    return kIsCoalesced.all(t)[0].toBool();
  };
  EXPECT_TRUE(isCoalesced(made(ascending, true)));
  EXPECT_FALSE(isCoalesced(made(ascending, IValue())));
  for (const Tensor& at : {longs({2, 0}), longs({2, 2})}) {
    EXPECT_THROW(made(at.view(DimVector{1, 2}), true), RuntimeError);
    made(at.view(DimVector{1, 2}), false);
  }
}

// Found by random calls under the sanitizers: sizes that overflow, and loops that end with the time.
TEST(NewerOperators, ExtremeSizesAreRefusedOrEmpty) {
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  static const OperatorHandle kCenter("aten::center", ""), kDiagonal("aten::fill_diagonal_", "");
  EXPECT_EQ(kCenter.all("word", kLeast, " ")[0].toString(), "word");
  // A tall matrix without columns has no diagonal.
  const Tensor tall = Tensor::empty({0}, DType::Float)
                          .asStrided(DimVector{int64_t{1} << 40, 0}, DimVector{0, 1}, 0);
  kDiagonal(tall, Scalar(1), true);
  // 256 elements of a window: a number that int8 lacks.
  const Tensor ones = Tensor::full(DimVector{1, 1, 16, 16}, 1, DType::Char);
  EXPECT_EQ(values(call("aten::avg_pool2d", "", ones, DimVector{16, 16}, DimVector{}, DimVector{0},
                        false, true, IValue())),
            Values{0});
  EXPECT_THROW(call("aten::conv2d", "", Tensor::zeros({1, 2, 4, 4}, DType::Float),
                    Tensor::zeros({1, 2, 1, 1}, DType::Float), IValue(), DimVector{1}, DimVector{0},
                    DimVector{1}, int64_t{1} << 62),
               RuntimeError);
  EXPECT_THROW(call("aten::pixel_shuffle", "",
                    Tensor::empty({0}, DType::Float)
                        .asStrided(DimVector{0, int64_t{1} << 40, 1}, DimVector{1, 1, 1}, 0),
                    int64_t{1} << 30),
               RuntimeError);
}

// Lists that share their parts: 2^40 elements of forty lists.
TEST(NewerOperators, SharedListsEndWithTheTime) {
  IValue list(makeList(types::Any(), {IValue(int64_t{1}), IValue(int64_t{2})}));
  for (int i = 0; i < 39; ++i) list = IValue(makeList(types::Any(), {list, list}));
  static const OperatorHandle kTensor("aten::as_tensor", "list");
  Budget::Bounds bounds;
  bounds.deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(50);
  Budget budget(std::move(bounds));
  BudgetScope scope(&budget);
  EXPECT_THROW(kTensor.all(list, IValue(), IValue()), Error);
}

}  // namespace
}  // namespace wick::newer_operators_test
