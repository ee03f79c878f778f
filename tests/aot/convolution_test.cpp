// The convolutions of compiled models give the bits of oneDNN's kernels for AVX2, which the engine calls.
#include "aot/convolution.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "aot/runtime/wick_aot_convolution.h"
#include "aot/runtime/wick_aot_winograd.h"
#include "runtime/kernels/convolution.h"
#include "runtime/kernels/onednn.h"

namespace wick::convolution_test {
namespace {

struct Case {
  DimVector input, weight;  // as PyTorch has them
  int64_t stride = 1, padding = 0, dilation = 1, groups = 1;
  bool bias = true, residual = false;
  Activation activation = Activation::None;
};

Tensor randomTensor(const DimVector& sizes, MemoryFormat format, uint64_t seed) {
  const Tensor t = Tensor::empty(sizes, DType::Float, Device(), format);
  uint64_t state = seed * 7919 + 12345;
  for (int64_t i = 0; i < t.numel(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    t.data<float>()[i] = static_cast<float>(static_cast<double>(state >> 40) / (1 << 24) - 0.5);
  }
  return t;
}

ConvolutionParams paramsOf(const Case& c) {
  ConvolutionParams p;
  p.stride = {c.stride, c.stride};
  p.padding = p.padding_after = {c.padding, c.padding};
  p.dilation = {c.dilation, c.dilation};
  p.output_padding = {0, 0};
  p.groups = c.groups;
  return p;
}
wick_aot::Convolution callOf(const Case& c, const Tensor& weight, IntSpan size) {
  return {c.input[0],
          c.groups,
          c.input[2],
          c.input[3],
          c.input[1],
          size[2],
          size[3],
          size[1],
          c.weight[2],
          c.weight[3],
          c.stride,
          c.stride,
          c.dilation,
          c.dilation,
          c.padding,
          c.padding,
          c.residual && onednn::addsInResult(weight),
          c.activation == Activation::Relu       ? wick_aot::Finish::Relu
          : c.activation == Activation::HardTanh ? wick_aot::Finish::Relu6
                                                 : wick_aot::Finish::Nothing};
}
float* data(const Tensor& t) {
  return t.defined() ? t.data<float>() : nullptr;
}

// What the engine computes of a case, and where a result is to be computed.
struct Example {
  Example(const Case& c, const Tensor& weight)
      : params(paramsOf(c)),
        x(randomTensor(c.input, MemoryFormat::ChannelsLast, 1)),
        bias(c.bias ? randomTensor({c.weight[0]}, MemoryFormat::Contiguous, 3) : Tensor()),
        size(convolutionOutputSize("conv2d", x, weight, bias, params)),
        residual(c.residual ? randomTensor(size, MemoryFormat::ChannelsLast, 4) : Tensor()),
        expected(onednn::convolution("conv2d", x, weight, bias, params, residual, c.activation,
                                     size, true)),
        call(callOf(c, weight, size)) {}
  Tensor empty() const {
    return Tensor::full(size, 77, DType::Float).contiguous(MemoryFormat::ChannelsLast);
  }

  const ConvolutionParams params;
  const Tensor x, bias;
  const DimVector size;
  const Tensor residual, expected;
  const wick_aot::Convolution call;
};

// How many elements differ in bits, and the largest difference.
struct Difference {
  int64_t count = 0;
  double largest = 0;
};
Difference compare(const Case& c, const Tensor& weight) {
  const Example e(c, weight);
  const Tensor found = e.empty();
  const Tensor packed = aot::packConvolution(weight, c.groups);
  wick_aot::convolve(e.call, data(e.x), data(packed), data(e.bias), data(e.residual), data(found));
  Difference difference;
  for (int64_t i = 0; i < found.numel(); ++i) {
    const float a = data(e.expected)[i], b = data(found)[i];
    if (std::memcmp(&a, &b, sizeof a) == 0) continue;
    ++difference.count;
    difference.largest = std::max(difference.largest, std::abs(static_cast<double>(a) - b));
  }
  // oneDNN has other orders for other processors, and for few channels.
  const std::string kernel = onednn::kernelOfConvolution(weight, c.bias, e.params, c.residual,
                                                         c.activation, c.input, e.size);
  if (kernel != "jit:avx2" && kernel != "jit_1x1:avx2") {
    EXPECT_LT(difference.largest, 1e-4) << kernel;
    difference.count = 0;
  }
  return difference;
}

class ConvolutionTest : public testing::TestWithParam<Case> {};
TEST_P(ConvolutionTest, GivesTheBitsOfOneDNN) {
  const Difference d =
      compare(GetParam(), randomTensor(GetParam().weight, MemoryFormat::Contiguous, 2));
  EXPECT_EQ(d.count, 0) << "by up to " << d.largest;
}

constexpr Activation kRelu = Activation::Relu, kRelu6 = Activation::HardTanh;
INSTANTIATE_TEST_SUITE_P(
    Aot, ConvolutionTest,
    testing::Values(Case{{1, 1, 28, 28}, {8, 1, 3, 3}, 1, 0, 1, 1, true, false, kRelu},
                    Case{{1, 3, 40, 37}, {64, 3, 7, 7}, 2, 3, 1, 1, true, false, kRelu},
                    Case{{2, 8, 13, 26}, {16, 8, 3, 3}, 2, 1},
                    Case{{1, 64, 14, 14}, {64, 64, 3, 3}, 1, 1, 1, 1, true, true, kRelu},
                    Case{{1, 64, 7, 7}, {128, 64, 3, 3}, 2, 1, 1, 1, false, true},
                    Case{{1, 160, 7, 7}, {96, 160, 1, 1}, 1, 0, 1, 1, true, true, kRelu},
                    Case{{1, 256, 9, 5}, {40, 256, 1, 1}, 2, 0, 1, 1, true, false, kRelu6},
                    Case{{2, 24, 15, 13}, {40, 24, 3, 3}, 1, 2, 2, 1, true, false, kRelu6},
                    Case{{1, 16, 9, 9}, {24, 16, 5, 3}, 1, 2, 1, 1, false},
                    Case{{1, 64, 12, 12}, {64, 16, 3, 3}, 1, 1, 1, 4, true, false, kRelu},
                    // Vectors that are not full, and more padding than image.
                    Case{{2, 12, 9, 9}, {20, 12, 3, 3}, 1, 1, 1, 1, true, true, kRelu},
                    Case{{1, 20, 9, 9}, {12, 20, 1, 1}}, Case{{1, 5, 4, 3}, {7, 5, 1, 3}, 1, 1},
                    Case{{1, 4, 1, 60}, {9, 4, 1, 5}, 1, 2},
                    Case{{1, 8, 1, 1}, {8, 8, 5, 5}, 1, 4, 1, 1, true, false, kRelu}));

// What relu makes of NaN is what oneDNN makes of it.
TEST(ConvolutionTest, NaNsAreTreatedAlike) {
  const Tensor weight = randomTensor({8, 8, 3, 3}, MemoryFormat::Contiguous, 2);
  weight.data<float>()[5] = std::nanf("");
  const Case c{{1, 8, 6, 6}, {8, 8, 3, 3}, 1, 0, 1, 1, true, false, kRelu};
  EXPECT_EQ(compare(c, weight).count, 0);
}

// Winograd's method differs from the definition in the last bits, and with AVX-512 not at all from itself.
class WinogradTest : public testing::TestWithParam<Case> {};
TEST_P(WinogradTest, IsNearTheDefinition) {
  const Case& c = GetParam();
  const Tensor weight = randomTensor(c.weight, MemoryFormat::Contiguous, 2);
  const Example e(c, weight);
  const wick_aot::Convolution& call = e.call;
  double largest = 0;
  for (int64_t i = 0; i < e.expected.numel(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(data(e.expected)[i])));
  }
  const Tensor packed = aot::packWinograd(weight);
  const int64_t tiles = wick_aot::winograd::tilesOf(call);
  // As many as are computed at once, and seven, so that the last part has fewer.
  for (const int64_t at_once : {aot::winogradTiles(tiles, call.in_channels, call.out_channels),
                                std::min(tiles, int64_t{7})}) {
    Tensor before;
    for (const bool wide : {false, true}) {
      if (wide && !__builtin_cpu_supports("avx512f")) continue;
      const Tensor found = e.empty();
      const int64_t kept = aot::winogradScratch(at_once, call.in_channels, call.out_channels);
      // One more element, which stays as it is.
      const Tensor scratch = Tensor::full(DimVector{kept + 1}, 55, DType::Float);
      wick_aot::convolveByWinograd(call, at_once, data(e.x), data(packed), data(e.bias),
                                   data(e.residual), data(found), data(scratch), wide);
      EXPECT_EQ(data(scratch)[kept], 55);
      for (int64_t i = 0; i < found.numel(); ++i) {
        ASSERT_NEAR(data(found)[i], data(e.expected)[i], 2e-6 * std::max(largest, 1.0)) << i;
      }
      if (before.defined()) {
        EXPECT_EQ(std::memcmp(data(before), data(found),
                              static_cast<size_t>(found.numel()) * sizeof(float)),
                  0);
      }
      before = found;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(
    Aot, WinogradTest,
    testing::Values(Case{{1, 16, 12, 12}, {16, 16, 3, 3}, 1, 1, 1, 1, true, false, kRelu},
                    // Odd sizes, no padding and much, several samples, blocks that are not full.
                    Case{{2, 32, 13, 9}, {80, 32, 3, 3}, 1, 0, 1, 1, false, true},
                    Case{{3, 48, 5, 17}, {48, 48, 3, 3}, 1, 2, 1, 1, true, true, kRelu6},
                    Case{{1, 64, 28, 28}, {144, 64, 3, 3}, 1, 1, 1, 1, true, true, kRelu},
                    Case{{1, 16, 1, 1}, {16, 16, 3, 3}, 1, 1}));

}  // namespace
}  // namespace wick::convolution_test
