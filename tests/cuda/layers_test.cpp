// Normalization, embeddings, random numbers and convolutions of integers on CUDA: their texts compile
// and their results have the right shapes. What they compute is compared on devices.
#include <gtest/gtest.h>

#include "autograd/tape.h"
#include "core/generator_state.h"
#include "core/scalar.h"
#include "runtime/cuda/compiler.h"
#include "runtime/kernels/lstm.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"

namespace wick::cuda::layers_test {
namespace {

using testing_errors::errorOf;

TEST(Layers, BatchNormalizationTrains) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kTrain{"aten::native_batch_norm", ""},
      kGradient{"wick::batch_norm_gradient", ""};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half}) {
    const Tensor x = zeros({2, 3, 4, 5}, type), w = zeros({3}), running = zeros({3});
    const auto all = kTrain.all(x, w, w, running, running.clone(), true, 0.1, 1e-5);
    EXPECT_EQ(sizesOf(all[0]), (DimVector{2, 3, 4, 5}));
    EXPECT_EQ(all[0].toTensor().dtype(), type);
    EXPECT_EQ(sizesOf(all[1]), (DimVector{3}));
    const auto gradients = kGradient.all(x, x, w, all[1], all[2], 1e-5);
    EXPECT_EQ(sizesOf(gradients[0]), (DimVector{2, 3, 4, 5}));
    EXPECT_EQ(sizesOf(gradients[1]), (DimVector{3}));
    const Tensor last = x.contiguous(MemoryFormat::ChannelsLast);
    const auto kept = kTrain.all(last, w, w, running, running.clone(), true, 0.1, 1e-5);
    EXPECT_EQ(kept[0].toTensor().suggestMemoryFormat(), MemoryFormat::ChannelsLast);
  }
  const Tensor wrong = zeros({4});
  EXPECT_NE(errorOf([&] {
              kTrain.all(zeros({2, 3}), wrong, IValue(), IValue(), IValue(), true, 0.1, 1e-5);
            }),
            "no error");
}

TEST(Layers, GroupsAndRowsAreNormalized) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kGroups{"aten::native_group_norm", ""},
      kRows{"aten::native_layer_norm", ""}, kGradient{"wick::group_norm_gradient", ""};
  FakeDriver driver;
  const Tensor x = zeros({2, 6, 4}), w = zeros({6});
  const auto groups = kGroups.all(x, w, w, int64_t{2}, int64_t{6}, int64_t{4}, int64_t{3}, 1e-5);
  EXPECT_EQ(sizesOf(groups[1]), (DimVector{2, 3}));
  EXPECT_EQ(sizesOf(kGradient.all(x, x, w, int64_t{3}, 1e-5)[0]), (DimVector{2, 6, 4}));
  const auto rows = kRows.all(x, DimVector{4}, IValue(), IValue(), 1e-5);
  EXPECT_EQ(sizesOf(rows[2]), (DimVector{2, 6, 1}));
  EXPECT_ERROR(kGradient.all(x, x, w, int64_t{4}, 1e-5), "to be divisible by num_groups");
}

TEST(Layers, EmbeddingsAreAddedUp) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kBag{"aten::embedding_bag", ""},
      kBackward{"aten::embedding_dense_backward", ""}, kPicked{"wick::nll_loss_gradient", ""};
  FakeDriver driver;
  const Tensor index = zeros({5}, DType::Long), offsets = zeros({2}, DType::Long);
  for (const DType type : {DType::Float, DType::Double, DType::BFloat16}) {
    for (int64_t mode = 0; mode < 3; ++mode) {
      const auto all = kBag.all(zeros({7, 4}, type), index, offsets, false, mode);
      EXPECT_EQ(sizesOf(all[0]), (DimVector{2, 4}));
    }
    EXPECT_EQ(
        DimVector(kBackward(zeros({5, 4}, type), index, int64_t{7}, int64_t{-1}, true).sizes()),
        (DimVector{7, 4}));
    EXPECT_EQ(DimVector(kPicked(zeros({}, type), DimVector{5, 3}, index, zeros({3}, type),
                                int64_t{1}, int64_t{-100})
                            .sizes()),
              (DimVector{5, 3}));
  }
  EXPECT_ERROR(kBag.all(zeros({7}), index, offsets), "expected a 2-D weight");
}

// A kernel for the whole loss would not be recorded.
TEST(Layers, LossesThatAreMadeOfOthersAreRecorded) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kKl{"aten::kl_div", ""},
      kCrossEntropy{"aten::cross_entropy_loss", ""}, kRequire{"aten::requires_grad_", ""};
  FakeDriver driver;
  const Tensor x = zeros({4, 5}), target = zeros({4, 5}), classes = zeros({4}, DType::Long);
  kRequire(x, true);
  const Tensor divergence = kKl(x, target, int64_t{1}, false);
  EXPECT_TRUE(autograd::requiresGradient(divergence));
  for (const Tensor& t : {target, classes}) {
    const Tensor loss = kCrossEntropy(x, t, IValue(), int64_t{1}, int64_t{-100}, 0.0);
    EXPECT_TRUE(autograd::requiresGradient(loss));
  }
}

TEST(Layers, PoolingAndItsGradient) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kMax{"aten::max_pool2d_with_indices", ""},
      kAverage{"aten::adaptive_avg_pool2d", ""}, kGradient{"wick::max_pool_gradient", ""};
  FakeDriver driver;
  const DimVector three{3, 3}, two{2, 2}, one{1, 1};
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      const Tensor x = zeros({2, 6, 9, 7}, type).contiguous(format);
      const auto all = kMax.all(x, three, two, one, one, false);
      EXPECT_EQ(sizesOf(all[0]), (DimVector{2, 6, 5, 4}));
      EXPECT_EQ(all[0].toTensor().suggestMemoryFormat(), format);
      const uint64_t before = driver.state().launches;
      const Tensor g =
          kGradient(all[0], all[1], DimVector(x.sizes()), int64_t{2}, three, two, one, one);
      EXPECT_EQ(driver.state().launches, before + 1);
      EXPECT_EQ(DimVector(g.sizes()), (DimVector{2, 6, 9, 7}));
      EXPECT_EQ(g.dtype(), type);
      EXPECT_EQ(g.suggestMemoryFormat(), format);
      EXPECT_EQ(DimVector(kAverage(x, one).sizes()), (DimVector{2, 6, 1, 1}));
    }
  }
  const Tensor index = zeros({2, 6, 5, 4}, DType::Long), values = zeros({2, 6, 5, 4});
  EXPECT_ERROR(kGradient(values, index, DimVector{2, 5, 9, 7}, int64_t{2}, three, two, one, one),
               "does not fit sizes [2, 5, 9, 7]");
  EXPECT_ERROR(
      kGradient(values, index, DimVector{2, 6, 9, 7}, int64_t{2}, DimVector{0, 3}, two, one, one),
      "out of range");
  EXPECT_ERROR(kGradient(values, values, DimVector{2, 6, 9, 7}, int64_t{2}, three, two, one, one),
               "an int64 index for each value");
}

TEST(Layers, StepsOfAnLstm) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    const Tensor gates = zeros({2, 12}, type), h = zeros({2, 3}, type);
    const uint64_t before = driver.state().launches;
    wick::lstmStep({gates, gates, h, gates.clone(), h.clone(), h.clone()});
    wick::lstmStepGradient({h, h, h, gates, h, h, gates.clone(), h.clone()});
    wick::lstmStepGradient({h, {}, h, gates, h, h, gates.clone(), h.clone()});
    EXPECT_EQ(driver.state().launches, before + 3);
  }
  static const OperatorHandle kLayer{"wick::lstm_layer", ""};
  EXPECT_ERROR(
      kLayer.all(zeros({5, 2, 11}), zeros({2, 3}), zeros({2, 3}), zeros({12, 3}), IValue(), false),
      "four gates");
}

// One launch and no copy, where nothing else lies in the memory that is written.
TEST(Layers, InPlaceFormsWriteWhereTheyAre) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kAdd{"aten::add_", "Tensor"}, kMul{"aten::mul_", "Scalar"},
      kRelu{"aten::relu_", ""};
  FakeDriver driver;
  const Tensor x = zeros({4, 5}), y = zeros({5}), whole = zeros({4, 5}, DType::Long);
  const auto launchesOf = [&](auto&& call) {
    const uint64_t before = driver.state().launches;
    call();
    return driver.state().launches - before;
  };
  EXPECT_EQ(launchesOf([&] { EXPECT_TRUE(kAdd(x, y, Scalar(int64_t{1})).isSame(x)); }), 1);
  EXPECT_EQ(launchesOf([&] { EXPECT_TRUE(kMul(x, Scalar(0.5)).isSame(x)); }), 1);
  EXPECT_EQ(launchesOf([&] { EXPECT_TRUE(kRelu(x).isSame(x)); }), 1);
  EXPECT_GE(launchesOf([&] { EXPECT_TRUE(kAdd(x, x, Scalar(int64_t{1})).isSame(x)); }), 1);
  EXPECT_ERROR(kAdd(y, x, Scalar(int64_t{1})), "shape");
  EXPECT_ERROR(kAdd(whole, x, Scalar(int64_t{1})), "can't be cast");
}

TEST(Layers, ConvolutionsOfChannelsByThemselves) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kConv{"aten::conv2d", ""};
  FakeDriver driver;
  const DimVector stride{2, 1}, padding{1, 2}, dilation{1, 1};
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    for (const MemoryFormat format : {MemoryFormat::Contiguous, MemoryFormat::ChannelsLast}) {
      const Tensor x = zeros({2, 6, 9, 7}, type).contiguous(format);
      const uint64_t before = driver.state().launches;
      const Tensor y = kConv(x, zeros({6, 1, 3, 5}, type), zeros({6}, type), stride, padding,
                             dilation, int64_t{6});
      EXPECT_EQ(driver.state().launches, before + 1);
      EXPECT_EQ(DimVector(y.sizes()), (DimVector{2, 6, 5, 7}));
      EXPECT_EQ(y.suggestMemoryFormat(), format);
    }
  }
}

TEST(Layers, ConvolutionsOfIntegers) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kConvolution{"aten::conv2d", ""},
      kTransposed{"aten::conv_transpose2d", "input"};
  FakeDriver driver;
  for (const DType type : {DType::Long, DType::Int, DType::Byte}) {
    const Tensor x = zeros({1, 2, 5, 6}, type);
    EXPECT_EQ(DimVector(kConvolution(x, zeros({4, 2, 3, 3}, type)).sizes()),
              (DimVector{1, 4, 3, 4}));
    EXPECT_EQ(DimVector(kTransposed(x, zeros({2, 3, 3, 3}, type)).sizes()),
              (DimVector{1, 3, 7, 8}));
  }
}

TEST(Random, EveryDistributionCompiles) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kUniform{"aten::uniform_", ""}, kNormal{"aten::normal_", ""},
      kBernoulli{"aten::bernoulli_", "float"}, kExponential{"aten::exponential_", ""},
      kCauchy{"aten::cauchy_", ""}, kGeometric{"aten::geometric_", ""},
      kLogNormal{"aten::log_normal_", ""}, kRandom{"aten::random_", ""}, kTo{"aten::random_", "to"},
      kDropout{"aten::native_dropout", ""}, kMultinomial{"aten::multinomial", ""},
      kChances{"aten::bernoulli", ""}, kLike{"aten::bernoulli", "p"};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    const Tensor t = zeros({1000}, type);
    kUniform(t, 0.0, 2.0);
    kNormal(t, 1.0, 2.0);
    kBernoulli(t, 0.25);
    EXPECT_EQ(kChances(t).dtype(), type);
    EXPECT_EQ(sizesOf(kLike(t, 0.25)), (DimVector{1000}));
    kExponential(t, 1.5);
    kCauchy(t);
    kGeometric(t, 0.5);
    kLogNormal(t);
    kRandom(t);
    EXPECT_EQ(sizesOf(kDropout.all(t, 0.5, true)[1]), (DimVector{1000}));
  }
  for (const DType type : {DType::Long, DType::Int, DType::Byte, DType::Bool}) {
    kRandom(zeros({10}, type));
    kTo(zeros({10}, type), int64_t{1});
  }
  kTo(zeros({10}, DType::Long), int64_t{1} << 40);
  EXPECT_EQ(DimVector(kMultinomial(zeros({3, 9}), int64_t{4}, true).sizes()), (DimVector{3, 4}));
  EXPECT_EQ(DimVector(kMultinomial(zeros({3, 9}), int64_t{4}, false).sizes()), (DimVector{3, 4}));
}

TEST(Random, PositionsOfDevicesGoOnUntilTheSeed) {
  GeneratorObject g(7);
  EXPECT_EQ(takePhilox(g, 0, 4).offset, 0);
  EXPECT_EQ(takePhilox(g, 0, 5).offset, 4);
  EXPECT_EQ(takePhilox(g, 0, 4).offset, 12);
  EXPECT_EQ(takePhilox(g, 1, 4).offset, 0);
  const GeneratorState state = GeneratorState::of(g);
  takePhilox(g, 1, 4);
  state.restore(g);
  EXPECT_EQ(takePhilox(g, 1, 4).offset, 4);
  g.seed(8);
  EXPECT_EQ(takePhilox(g, 0, 4).seed, 8);
  EXPECT_EQ(takePhilox(g, 0, 4).offset, 4);
}

}  // namespace
}  // namespace wick::cuda::layers_test
