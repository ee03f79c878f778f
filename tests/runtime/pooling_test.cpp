#include "runtime/kernels/pooling.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace wick::pooling_test {
namespace {

Tensor randomTensor(const DimVector& sizes) {
  std::mt19937 rng(3);
  std::normal_distribution<float> d;
  Tensor t = Tensor::empty(sizes, DType::Float);
  for (int64_t i = 0; i < t.numel(); ++i) t.data<float>()[i] = d(rng);
  return t;
}

pooling::Axes axes2d(int64_t h, int64_t w, bool ceil_mode) {
  return {pooling::unitAxis(), pooling::slidingAxis("test", h, 3, 2, 1, 1, ceil_mode),
          pooling::slidingAxis("test", w, 2, 2, 0, 2, ceil_mode)};
}

// Few and many channels, both layouts: the four ways in which the kernel runs.
TEST(Pooling, MaximaAndTheirPlacesInEveryLayout) {
  for (int64_t channels : {3, 17}) {
    Tensor x = randomTensor({2, channels, 9, 10});
    x.data<float>()[37] = NAN;
    for (bool last : {false, true}) {
      for (bool indices : {false, true}) {
        pooling::Axes axes = axes2d(9, 10, true);
        Tensor in = last ? x.contiguous(MemoryFormat::ChannelsLast) : x;
        pooling::MaxResult r = pooling::maxPool("test", in, axes, indices);
        EXPECT_EQ(r.values.isContiguous(), !last);
        Tensor values = r.values.contiguous();
        Tensor places = indices ? r.indices.contiguous() : Tensor();
        int64_t i = 0;
        for (int64_t plane = 0; plane < 2 * channels; ++plane) {
          for (int64_t oh = 0; oh < axes[1].size(); ++oh) {
            for (int64_t ow = 0; ow < axes[2].size(); ++ow, ++i) {
              float best = -INFINITY;
              int64_t at = -1;
              for (int64_t h = axes[1].begin[oh]; h < axes[1].end[oh]; h += axes[1].step) {
                for (int64_t w = axes[2].begin[ow]; w < axes[2].end[ow]; w += axes[2].step) {
                  float v = x.data<float>()[(plane * 9 + h) * 10 + w];
                  if (v > best || v != v) {
                    best = v;
                    at = h * 10 + w;
                  }
                }
              }
              float got = values.data<float>()[i];
              EXPECT_TRUE(got == best || (got != got && best != best));
              if (indices) {
                EXPECT_EQ(places.data<int64_t>()[i], at);
              }
            }
          }
        }
      }
    }
  }
}

TEST(Pooling, RefusesImpossibleWindows) {
  EXPECT_THROW(pooling::slidingAxis("test", 3, 5, 1, 0, 1, false), RuntimeError);
  EXPECT_THROW(pooling::slidingAxis("test", 3, 2, 0, 0, 1, false), RuntimeError);
  EXPECT_THROW(pooling::slidingAxis("test", 3, 2, 1, 2, 1, false), RuntimeError);
  EXPECT_THROW(pooling::slidingAxis("test", 3, INT64_MAX, 1, 0, INT64_MAX, false), RuntimeError);
}

TEST(Pooling, NegativeDivisorOfIntegers) {
  Tensor x = Tensor::full({1, 1, 1, 1}, 0, DType::Long);
  x.data<int64_t>()[0] = INT64_MIN;
  pooling::Axes axes{pooling::unitAxis(), pooling::unitAxis(), pooling::unitAxis()};
  Tensor out = pooling::averagePool("test", x, axes, true, -1);
  EXPECT_EQ(out.data<int64_t>()[0], INT64_MIN);
}

}  // namespace
}  // namespace wick::pooling_test
