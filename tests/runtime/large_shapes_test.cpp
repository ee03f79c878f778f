// Kernels that compute long rows, planes and tiles otherwise than small ones: each against its
// definition, at sizes that reach every way through them.
#include <algorithm>
#include <random>

#include "runtime/kernels/convolution.h"
#include "runtime/kernels/gemm.h"
#include "runtime/kernels/pooling.h"
#include "tests/runtime/op_testing.h"

namespace wick::testing::large_shapes_test {
namespace {

std::mt19937_64 rng(5);

// Small whole numbers: sums of them are exact in any order.
Tensor whole(const DimVector& sizes, DType dtype = DType::Float) {
  Tensor t = Tensor::empty(sizes, DType::Long);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<int64_t>()[i] = static_cast<int64_t>(rng() % 17) - 8;
  }
  return t.to(dtype);
}
Tensor below(const DimVector& sizes, int64_t n) {
  Tensor t = Tensor::empty(sizes, DType::Long);
  for (int64_t i = 0; i < t.numel(); ++i) {
    t.data<int64_t>()[i] = static_cast<int64_t>(rng() % static_cast<uint64_t>(n));
  }
  return t;
}

// Windows that move by one element, further ones, adaptive ones, wide ones and ones that lie apart;
// planes and channels side by side are computed in different ways.
TEST(LargeShapes, AveragesOfPlanesAreThoseOfPixels) {
  const auto sliding = [](int64_t kernel, int64_t stride, int64_t padding, bool ceil_mode) {
    return pooling::slidingAxis("test", 41, kernel, stride, padding, 1, ceil_mode);
  };
  const pooling::Axis axes[] = {sliding(3, 1, 1, false),     sliding(2, 2, 0, true),
                                sliding(3, 2, 1, true),      sliding(41, 1, 20, false),
                                sliding(1, 20, 0, true),     pooling::adaptiveAxis(41, 7),
                                pooling::adaptiveAxis(41, 1)};
  for (DType dtype : {DType::Float, DType::Double, DType::Int}) {
    const Tensor x = whole({2, 3, 41, 41}, dtype);
    const Tensor last = x.contiguous(MemoryFormat::ChannelsLast);
    for (const pooling::Axis& height : axes) {
      for (const pooling::Axis& width : axes) {
        const pooling::Axes all{pooling::unitAxis(), height, width};
        for (bool count_padding : {false, true}) {
          const Tensor a = pooling::averagePool("test", x, all, count_padding, std::nullopt);
          const Tensor b = pooling::averagePool("test", last, all, count_padding, std::nullopt);
          EXPECT_TRUE(a.isContiguous());
          EXPECT_EQ(values(a), values(b));
        }
      }
    }
  }
}

template <class T>
void expectProduct(DType dtype, int64_t m, int64_t k, int64_t n, bool turned) {
  const Tensor a = whole({2, m, k}, dtype);
  Tensor b = turned ? whole({1, n, k}, dtype).transpose(1, 2) : whole({1, k, n}, dtype);
  const Tensor product = batchedProduct("test", a, b);
  const Tensor rows = b.contiguous();
  for (int64_t i = 0; i < 2 * m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      uint64_t sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += static_cast<uint64_t>(a.data<T>()[i * k + p]) *
               static_cast<uint64_t>(rows.data<T>()[p * n + j]);
      }
      ASSERT_EQ(product.data<T>()[i * n + j], static_cast<T>(sum)) << i << " " << j;
    }
  }
}

TEST(LargeShapes, ProductsOfIntegers) {
  for (int64_t m : {1, 4, 7}) {
    for (int64_t n : {1, 8, 39, 70}) {
      for (bool turned : {false, true}) {
        expectProduct<int64_t>(DType::Long, m, 19, n, turned);
        expectProduct<int32_t>(DType::Int, m, 19, n, turned);
        expectProduct<int16_t>(DType::Short, m, 19, n, turned);
        expectProduct<int8_t>(DType::Char, m, 19, n, turned);
        expectProduct<uint8_t>(DType::Byte, m, 19, n, turned);
      }
    }
  }
}

TEST(LargeShapes, ProductsOfIntegersWrap) {
  Tensor a = Tensor::empty(DimVector{1, 5, 33}, DType::Long);
  Tensor b = Tensor::empty(DimVector{1, 33, 9}, DType::Long);
  for (int64_t& v : a.span<int64_t>()) v = static_cast<int64_t>(rng());
  for (int64_t& v : b.span<int64_t>()) v = static_cast<int64_t>(rng());
  const Tensor product = batchedProduct("test", a, b);
  for (int64_t i = 0; i < 5; ++i) {
    for (int64_t j = 0; j < 9; ++j) {
      uint64_t sum = 0;
      for (int64_t p = 0; p < 33; ++p) {
        sum += static_cast<uint64_t>(a.data<int64_t>()[i * 33 + p]) *
               static_cast<uint64_t>(b.data<int64_t>()[p * 9 + j]);
      }
      EXPECT_EQ(product.data<int64_t>()[i * 9 + j], static_cast<int64_t>(sum));
    }
  }
}

// The library knows no batches of stride 0.
TEST(LargeShapes, ProductsOfTwoExpandedBatches) {
  for (DType dtype : {DType::Float, DType::Double, DType::Long}) {
    const Tensor a = whole({1, 70, 50}, dtype), b = whole({1, 50, 60}, dtype);
    const Tensor one = batchedProduct("test", a, b);
    const Tensor all =
        batchedProduct("test", a.expand(DimVector{3, 70, 50}), b.expand(DimVector{3, 50, 60}));
    EXPECT_EQ(shape(all), (Shape{3, 70, 60}));
    EXPECT_EQ(values(all), values(one.expand(DimVector{3, 70, 60})));
  }
}

TEST(LargeShapes, AffineGridOfAnExpandedMatrix) {
  Tensor theta = Tensor::zeros(DimVector{1, 2, 3}, DType::Float);
  theta.data<float>()[0] = theta.data<float>()[4] = 1;
  const Tensor grid = call("aten::affine_grid_generator", "", theta.expand(DimVector{4, 2, 3}),
                           DimVector{4, 1, 64, 64}, false);
  EXPECT_EQ(shape(grid), (Shape{4, 64, 64, 2}));
  const Tensor flat = grid.contiguous();
  EXPECT_FLOAT_EQ(flat.data<float>()[0], -1 + 1.0f / 64);
  EXPECT_FLOAT_EQ(flat.data<float>()[flat.numel() - 1], 1 - 1.0f / 64);
}

TEST(LargeShapes, ConvolutionOfOnePointOverRowMajorImages) {
  ConvolutionParams params;
  params.stride = params.dilation = DimVector{1, 1};
  params.padding = params.padding_after = params.output_padding = DimVector{0, 0};
  const Tensor x = whole({2, 5, 64, 65}), weight = whole({6, 5, 1, 1}), bias = whole({6});
  const Tensor residual = whole({2, 6, 64, 65});
  const Tensor last = x.contiguous(MemoryFormat::ChannelsLast);
  for (const Tensor& b : {Tensor(), bias}) {
    for (const Tensor& r : {Tensor(), residual}) {
      const Tensor got = convolution("test", x, weight, b, params, r, Activation::Relu);
      EXPECT_TRUE(got.isContiguous());
      EXPECT_EQ(values(got),
                values(convolution("test", last, weight, b, params, r, Activation::Relu)));
    }
  }
}

// Filters that reach over both ends of their rows, with gaps, with steps down, of lengths with and
// without a loop of their own; channels side by side are the library's.
TEST(LargeShapes, DepthwiseConvolutionOverRowMajorImages) {
  for (int64_t taps : {1, 3, 4, 5, 7}) {
    for (int64_t dilation : {1, 2}) {
      for (int64_t padding : {0, 2, 9}) {
        ConvolutionParams params;
        params.stride = DimVector{2, 1};
        params.dilation = DimVector{1, dilation};
        params.padding = params.padding_after = DimVector{1, padding};
        params.output_padding = DimVector{0, 0};
        params.groups = 6;
        const Tensor x = whole({2, 6, 9, 120}), weight = whole({6, 1, 3, taps}), bias = whole({6});
        const Tensor got = convolution("test", x, weight, bias, params);
        EXPECT_TRUE(got.isContiguous());
        EXPECT_EQ(values(got), values(convolution("test", x.contiguous(MemoryFormat::ChannelsLast),
                                                  weight, bias, params)))
            << taps << " " << dilation << " " << padding;
      }
    }
  }
}

TEST(LargeShapes, DepthwiseConvolutionOverLines) {
  ConvolutionParams params;
  params.stride = params.dilation = DimVector{1};
  params.padding = DimVector{3};
  params.padding_after = DimVector{4};
  params.output_padding = DimVector{0};
  params.groups = 3;
  const Tensor x = whole({2, 3, 100}), weight = whole({3, 1, 8});
  const Tensor got = convolution("test", x, weight, Tensor(), params);
  ASSERT_EQ(shape(got), (Shape{2, 3, 100}));
  for (int64_t plane = 0; plane < 6; ++plane) {
    for (int64_t i = 0; i < 100; ++i) {
      float sum = 0;
      for (int64_t k = 0; k < 8; ++k) {
        const int64_t at = i - 3 + k;
        if (at < 0 || at >= 100) continue;
        sum += x.data<float>()[plane * 100 + at] * weight.data<float>()[plane % 3 * 8 + k];
      }
      EXPECT_EQ(got.data<float>()[plane * 100 + i], sum);
    }
  }
}

// Two to four sources side by side, and rows of so few elements that the other dimension is walked.
TEST(LargeShapes, CopiesOfShortRows) {
  for (DType dtype :
       {DType::Byte, DType::Short, DType::Float, DType::Double, DType::ComplexDouble}) {
    for (int64_t few : {2, 3, 4, 5}) {
      const Tensor source = whole({3, few, 37}, DType::Float).to(dtype);
      const Tensor turned = source.permute(DimVector{0, 2, 1});
      const Tensor copy = turned.contiguous();
      const Tensor as_float = turned.to(DType::Float);  // with a conversion
      const Tensor part = source.narrow(2, 1, few).contiguous();
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 37; ++j) {
          for (int64_t k = 0; k < few; ++k) {
            const auto at = [&](const Tensor& t, int64_t p, int64_t q) {
              return t.select(0, i).select(0, p).select(0, q).to(DType::Double).item<double>();
            };
            ASSERT_EQ(at(copy, j, k), at(source, k, j));
            ASSERT_EQ(at(as_float, j, k), at(source, k, j));
            if (j >= few) continue;
            ASSERT_EQ(at(part, k, j), at(source, k, j + 1));
          }
        }
      }
    }
  }
}

TEST(LargeShapes, RowsThatGoUpAndDown) {
  for (DType dtype : {DType::Byte, DType::Float, DType::Long}) {
    const Tensor x = iota({3, 50}, dtype);
    const std::vector<double> rolled =
        values(call("aten::roll", "", x, DimVector{3}, DimVector{1}));
    const std::vector<double> flipped = values(call("aten::flip", "", x, DimVector{1}));
    const std::vector<double> reflected =
        values(call("aten::reflection_pad1d", "", x, DimVector{20, 30}));
    const std::vector<double> from = values(x);
    for (int64_t r = 0; r < 3; ++r) {
      for (int64_t i = 0; i < 50; ++i) {
        EXPECT_EQ(rolled[r * 50 + (i + 3) % 50], from[r * 50 + i]);
        EXPECT_EQ(flipped[r * 50 + 49 - i], from[r * 50 + i]);
      }
      for (int64_t i = 0; i < 100; ++i) {
        const int64_t j = i - 20 < 0 ? 20 - i : i - 20 > 49 ? 98 - (i - 20) : i - 20;
        EXPECT_EQ(reflected[r * 100 + i], from[r * 50 + j]);
      }
    }
  }
}

// Along each dimension, of sources that are not row-major, into others.
TEST(LargeShapes, GatherAndScatterRowByRow) {
  const Tensor source = whole({6, 5, 40}).transpose(0, 1);  // [5, 6, 40]
  const Tensor rows = source.contiguous();
  for (int64_t dim = 0; dim < 3; ++dim) {
    const DimVector sizes{4, 5, 37};
    const Tensor index = below(sizes, source.size(dim));
    const Tensor gathered = call("aten::gather", "", source, dim, index, false);
    const Tensor values_in = whole(sizes);
    const Tensor zeros = Tensor::zeros(source.sizes(), DType::Float);
    const Tensor scattered = call("aten::scatter", "src", zeros, dim, index, values_in);
    const Tensor added = call("aten::scatter_add", "", rows, dim, index, values_in);
    Tensor want_scattered = zeros.clone(), want_added = rows.clone();
    int64_t i = 0;
    for (int64_t a = 0; a < 4; ++a) {
      for (int64_t b = 0; b < 5; ++b) {
        for (int64_t c = 0; c < 37; ++c, ++i) {
          int64_t at[] = {a, b, c};
          at[dim] = index.data<int64_t>()[i];
          const int64_t offset = (at[0] * 6 + at[1]) * 40 + at[2];
          ASSERT_EQ(gathered.data<float>()[i], rows.data<float>()[offset]);
          want_scattered.data<float>()[offset] = values_in.data<float>()[i];
          want_added.data<float>()[offset] += values_in.data<float>()[i];
        }
      }
    }
    EXPECT_EQ(values(scattered), values(want_scattered));
    EXPECT_EQ(values(added), values(want_added));
    Tensor outside = index.clone();
    outside.data<int64_t>()[outside.numel() / 2] = source.size(dim);
    EXPECT_THROW(call("aten::gather", "", source, dim, outside, false), RuntimeError);
    EXPECT_THROW(call("aten::scatter_add", "", rows, dim, outside, values_in), RuntimeError);
    outside.data<int64_t>()[outside.numel() / 2] = -1;
    EXPECT_THROW(call("aten::gather", "", source, dim, outside, false), RuntimeError);
  }
}

// A tensor scattered into itself is read before it is written.
// Rows of a broadcast product: operands that stay the same along a row, of another dtype as well.
TEST(LargeShapes, PointwiseOverShortRows) {
  const Tensor a = whole({7, 1, 5, 1}), b = whole({1, 3, 1, 4});
  for (DType dtype : {DType::Float, DType::Double, DType::Int}) {
    const std::vector<double> got = values(call("aten::mul", "Tensor", a.to(dtype), b));
    int64_t i = 0;
    for (int64_t p = 0; p < 7; ++p) {
      for (int64_t q = 0; q < 3; ++q) {
        for (int64_t r = 0; r < 5; ++r) {
          for (int64_t s = 0; s < 4; ++s, ++i) {
            EXPECT_EQ(got[i], a.data<float>()[p * 5 + r] * b.data<float>()[q * 4 + s]);
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace wick::testing::large_shapes_test
