#include "runtime/kernels/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "core/dtype_dispatch.h"
#include "tests/runtime/random_tensor.h"

namespace wick::convolution_test {
namespace {

std::mt19937 rng(7);

Tensor randomTensor(const DimVector& sizes, DType dtype) {
  return randomQuarters(sizes, dtype, rng);
}

// The definition, in double precision, for two spatial dimensions.
Tensor naive(const Tensor& x_in, const Tensor& w_in, const Tensor& b, const ConvolutionParams& p) {
  Tensor x = x_in.to(DType::Double).contiguous(), w = w_in.to(DType::Double).contiguous();
  DimVector size = convolutionOutputSize("naive", x, w, b, p);
  Tensor out = Tensor::zeros(size, DType::Double);
  auto at = [](const Tensor& t, int64_t i, int64_t j, int64_t k, int64_t l) -> double& {
    return t.data<double>()[((i * t.size(1) + j) * t.size(2) + k) * t.size(3) + l];
  };
  int64_t ic = x.size(1) / p.groups, oc = size[1] / p.groups;
  for (int64_t n = 0; n < x.size(0); ++n)
    for (int64_t g = 0; g < p.groups; ++g)
      for (int64_t i = 0; i < ic; ++i)
        for (int64_t o = 0; o < oc; ++o)
          for (int64_t kh = 0; kh < w.size(2); ++kh)
            for (int64_t kw = 0; kw < w.size(3); ++kw) {
              const Tensor& steps = p.transposed ? x : out;
              const Tensor& image = p.transposed ? out : x;
              for (int64_t sh = 0; sh < steps.size(2); ++sh)
                for (int64_t sw = 0; sw < steps.size(3); ++sw) {
                  int64_t h = sh * p.stride[0] - p.padding[0] + kh * p.dilation[0];
                  int64_t v = sw * p.stride[1] - p.padding[1] + kw * p.dilation[1];
                  if (h < 0 || v < 0 || h >= image.size(2) || v >= image.size(3)) continue;
                  if (p.transposed) {
                    at(out, n, g * oc + o, h, v) +=
                        at(x, n, g * ic + i, sh, sw) * at(w, g * ic + i, o, kh, kw);
                  } else {
                    at(out, n, g * oc + o, sh, sw) +=
                        at(x, n, g * ic + i, h, v) * at(w, g * oc + o, i, kh, kw);
                  }
                }
            }
  if (b.defined()) {
    Tensor bias = b.to(DType::Double);
    for (int64_t i = 0; i < out.numel(); ++i) {
      out.data<double>()[i] += bias.data<double>()[i / (size[2] * size[3]) % size[1]];
    }
  }
  return out;
}

double largestDifference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(formatInts(a.sizes()), formatInts(b.sizes()));
  Tensor x = a.to(DType::Double).contiguous(), y = b.to(DType::Double).contiguous();
  double worst = 0;
  for (int64_t i = 0; i < x.numel(); ++i) {
    worst = std::max(worst, std::abs(x.data<double>()[i] - y.data<double>()[i]));
  }
  return worst;
}

ConvolutionParams randomParams(int64_t groups, bool transposed) {
  auto pick = [](int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(rng); };
  ConvolutionParams p;
  for (int d = 0; d < 2; ++d) {
    p.stride.push_back(pick(1, 3));
    p.padding.push_back(pick(0, 2));
    p.padding_after.push_back(transposed ? p.padding.back() : p.padding.back() + pick(0, 1));
    p.dilation.push_back(pick(1, 2));
    p.output_padding.push_back(transposed && p.stride.back() > 1 ? pick(0, 1) : 0);
  }
  p.groups = groups;
  p.transposed = transposed;
  return p;
}

TEST(Convolution, AgreesWithTheDefinition) {
  for (int round = 0; round < 60; ++round) {
    bool transposed = round % 3 == 2;
    int64_t groups = round % 4 == 1 ? 2 : round % 4 == 3 ? 4 : 1;
    ConvolutionParams p = randomParams(groups, transposed);
    int64_t ic = groups * (1 + round % 3), oc = groups * (1 + round % 5);
    DType dtype = round % 5 == 4 ? DType::Double : round % 7 == 6 ? DType::Long : DType::Float;
    Tensor x = randomTensor({1 + round % 2, ic, 7 + round % 4, 9}, dtype);
    Tensor w = randomTensor(
        transposed ? DimVector{ic, oc / groups, 3, 2} : DimVector{oc, ic / groups, 3, 2}, dtype);
    Tensor b = round % 2 ? randomTensor({oc}, dtype) : Tensor();
    if (round % 6 == 5) x = x.contiguous(MemoryFormat::ChannelsLast);
    if (round % 8 == 7) w = w.contiguous(MemoryFormat::ChannelsLast);
    Tensor got = convolution("test", x, w, b, p);
    EXPECT_LT(largestDifference(got, naive(x, w, b, p)), 1e-4) << "round " << round;
    if (x.isContiguous() && w.isContiguous()) {
      EXPECT_TRUE(got.isContiguous()) << round;
    }
  }
}

ConvolutionParams plain(int64_t padding = 0) {
  return {{1, 1}, {padding, padding}, {padding, padding}, {1, 1}, {0, 0}, 1, false};
}

TEST(Convolution, FusesBiasResidualAndActivation) {
  for (DType dtype : {DType::Float, DType::Double}) {
    Tensor x = randomTensor({2, 16, 6, 6}, dtype).contiguous(MemoryFormat::ChannelsLast);
    Tensor w = randomTensor({32, 16, 3, 3}, dtype), b = randomTensor({32}, dtype);
    Tensor r = randomTensor({2, 32, 6, 6}, dtype);
    Tensor got = convolution("test", x, w, b, plain(1), r, Activation::Relu);
    EXPECT_TRUE(got.isContiguous(MemoryFormat::ChannelsLast));
    Tensor want = naive(x, w, b, plain(1));
    Tensor residual = r.to(DType::Double).contiguous();
    for (int64_t i = 0; i < want.numel(); ++i) {
      double& v = want.data<double>()[i];
      v = std::max(0.0, v + residual.data<double>()[i]);
    }
    EXPECT_LT(largestDifference(got, want), 1e-4);
  }
}

// The kernels add the residual before, after or among the products, so that the last bits of finite
// results depend on the shape. NaN and infinities get through, and the residual stays what it was.
TEST(Convolution, AddsResiduals) {
  std::normal_distribution<float> normal;
  auto draw = [&](const DimVector& sizes) {
    Tensor t = Tensor::empty(sizes, DType::Float);
    for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = normal(rng);
    return t;
  };
  for (int64_t extent : {1, 3}) {
    for (bool channels_last : {false, true}) {
      for (bool has_bias : {false, true}) {
        Tensor x = draw({2, 24, 9, 7}), w = draw({40, 24, extent, extent});
        Tensor b = has_bias ? draw({40}) : Tensor();
        Tensor r = draw({2, 40, 9, 7});
        r.data<float>()[5] = NAN;
        r.data<float>()[6] = -INFINITY;
        Tensor before = r.clone();
        if (channels_last) {
          x = x.contiguous(MemoryFormat::ChannelsLast);
          r = r.contiguous(MemoryFormat::ChannelsLast);
        }
        Tensor got = convolution("test", x, w, b, plain(extent / 2), r).contiguous();
        Tensor want = naive(x, w, b, plain(extent / 2));
        Tensor after = r.contiguous();
        EXPECT_EQ(std::memcmp(before.rawData(), after.rawData(),
                              static_cast<size_t>(before.numel()) * sizeof(float)),
                  0);
        EXPECT_TRUE(std::isnan(got.data<float>()[5]));
        EXPECT_EQ(got.data<float>()[6], -INFINITY);
        for (int64_t i = 7; i < want.numel(); ++i) {
          const double sum = want.data<double>()[i] + before.data<float>()[i];
          EXPECT_NEAR(got.data<float>()[i], sum, 5e-5) << extent << channels_last << has_bias;
        }
      }
    }
  }
}

// The operands are multiples of a quarter and the sums small, so float32 holds them exactly.
TEST(Convolution, RoundsBFloat16Once) {
  for (bool transposed : {false, true}) {
    for (int64_t groups : {1, 2, 8}) {
      for (int64_t extent : {1, 3}) {
        ConvolutionParams p = plain(extent / 2);
        p.groups = groups;
        p.transposed = transposed;
        const Tensor x = randomTensor({2, 16, 9, 7}, DType::BFloat16);
        const Tensor w = randomTensor({16, 16 / groups, extent, extent}, DType::BFloat16);
        const Tensor b = randomTensor({16}, DType::BFloat16);
        const Tensor got = convolution("test", x, w, b, p).contiguous();
        const Tensor want = naive(x, w, b, p).to(DType::Float).to(DType::BFloat16);
        ASSERT_EQ(got.dtype(), DType::BFloat16);
        EXPECT_EQ(std::memcmp(got.rawData(), want.rawData(), static_cast<size_t>(got.numel()) * 2),
                  0)
            << transposed << " " << groups << " " << extent;
      }
    }
  }
}

TEST(Convolution, SeesWritesToItsPackedWeight) {
  Tensor x = Tensor::full({1, 4, 3, 3}, 1, DType::Float);
  Tensor w = Tensor::full({4, 4, 1, 1}, 1, DType::Float);
  EXPECT_EQ(convolution("test", x, w, {}, plain()).data<float>()[0], 4.0f);
  w.fill(2);
  w.storage()->bumpVersion();
  EXPECT_EQ(convolution("test", x, w, {}, plain()).data<float>()[0], 8.0f);
}

TEST(Convolution, TakesEmptyBatchesAndRefusesWhatDoesNotFit) {
  Tensor w = Tensor::full({4, 3, 3, 3}, 1, DType::Float);
  Tensor none = convolution("test", Tensor::empty({0, 3, 5, 5}, DType::Float), w, {}, plain());
  EXPECT_EQ(formatInts(none.sizes()), "[0, 4, 3, 3]");
  auto run = [&](const DimVector& sizes, ConvolutionParams p) {
    convolution("test", Tensor::zeros(sizes, DType::Float), w, {}, p);
  };
  EXPECT_THROW(run({1, 4, 5, 5}, plain()), RuntimeError);
  EXPECT_THROW(run({1, 3, 2, 5}, plain()), RuntimeError);
  EXPECT_THROW(run({1, 3, 5, 5}, plain(-1)), RuntimeError);
  ConvolutionParams p = plain();
  p.stride[0] = 0;
  EXPECT_THROW(run({1, 3, 5, 5}, p), RuntimeError);
  p = plain();
  p.groups = 3;
  EXPECT_THROW(run({1, 9, 5, 5}, p), RuntimeError);
  p = plain();
  p.dilation[1] = INT64_MAX;
  EXPECT_THROW(run({1, 3, 5, 5}, p), RuntimeError);
}

}  // namespace
}  // namespace wick::convolution_test
