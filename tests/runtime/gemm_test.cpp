#include "runtime/kernels/gemm.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "tests/runtime/random_tensor.h"

namespace wick::gemm_test {
namespace {

std::mt19937 rng(11);

Tensor draw(const DimVector& sizes, DType dtype) {
  return randomQuarters(sizes, dtype, rng);
}

// The definition: a [B, M, K] times b [B, K, N], plus bias [N], in float32.
Tensor exact(const Tensor& a_in, const Tensor& b_in, const Tensor& bias) {
  const Tensor a = a_in.to(DType::Float).contiguous(), b = b_in.to(DType::Float).contiguous();
  const int64_t batches = std::max(a.size(0), b.size(0));
  const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  Tensor out = Tensor::zeros(DimVector{batches, m, n}, DType::Float);
  for (int64_t i = 0; i < batches; ++i) {
    const float* pa = a.data<float>() + (a.size(0) == 1 ? 0 : i * m * k);
    const float* pb = b.data<float>() + (b.size(0) == 1 ? 0 : i * k * n);
    float* pc = out.data<float>() + i * m * n;
    for (int64_t r = 0; r < m; ++r)
      for (int64_t q = 0; q < k; ++q)
        for (int64_t c = 0; c < n; ++c) pc[r * n + c] += pa[r * k + q] * pb[q * n + c];
  }
  if (bias.defined()) {
    const Tensor added = bias.to(DType::Float);
    for (int64_t i = 0; i < out.numel(); ++i) out.data<float>()[i] += added.data<float>()[i % n];
  }
  return out;
}

void expectSame(const Tensor& got_in, const Tensor& want_in) {
  const Tensor got = got_in.contiguous(), want = want_in.to(got.dtype()).contiguous();
  ASSERT_EQ(got.numel(), want.numel());
  EXPECT_EQ(
      std::memcmp(got.rawData(), want.rawData(), static_cast<size_t>(got.numel()) * got.itemSize()),
      0)
      << got.describe();
}

constexpr DType kTypes[] = {DType::Float, DType::BFloat16, DType::Half, DType::Double};
// Little work, few rows, and what a library gets.
constexpr int64_t kShapes[][3] = {{1, 7, 5},     {3, 64, 64},  {1, 300, 200}, {4, 129, 300},
                                  {5, 200, 100}, {33, 65, 70}, {64, 128, 96}, {17, 1, 4000}};

TEST(Gemm, LinearRoundsOnce) {
  for (DType dtype : kTypes) {
    for (const auto& [m, k, n] : kShapes) {
      const Tensor x = draw({m, k}, dtype), w = draw({n, k}, dtype), b = draw({n}, dtype);
      for (const Tensor& bias : {Tensor(), b}) {
        SCOPED_TRACE(x.describe() + w.describe());
        const Tensor want = exact(x.unsqueeze(0), w.transpose(0, 1).unsqueeze(0), bias);
        expectSame(linearProduct("test", x, w, bias), want);
        // Again, from the packed weight, and with the weight lying the other way.
        expectSame(linearProduct("test", x, w, bias), want);
        const Tensor turned = w.transpose(0, 1).contiguous().transpose(0, 1);
        expectSame(linearProduct("test", x, turned, bias), want);
      }
    }
  }
}

TEST(Gemm, BatchesOfEveryLayoutRoundOnce) {
  for (DType dtype : kTypes) {
    for (const auto& [m, k, n] : kShapes) {
      for (int64_t batches : {1, 3}) {
        const Tensor a = draw({batches, m, k}, dtype);
        const Tensor b = draw({batches, k, n}, dtype);
        SCOPED_TRACE(a.describe() + b.describe());
        expectSame(batchedProduct("test", a, b), exact(a, b, {}));
        const Tensor turned = draw({batches, n, k}, dtype).transpose(1, 2);
        expectSame(batchedProduct("test", a, turned), exact(a, turned, {}));
        const Tensor one = b.narrow(0, 0, 1);
        expectSame(batchedProduct("test", a, one), exact(a, one, {}));
      }
    }
  }
}

// Large ones are cut into parts of the longer side.
TEST(Gemm, DoublesOfEveryShapeAndLayout) {
  struct Shape {
    int64_t b, m, k, n;
  };
  for (const Shape s : {Shape{1, 300, 130, 140}, Shape{2, 60, 200, 530}, Shape{1, 129, 257, 64},
                        Shape{3, 1, 700, 3001}, Shape{1, 520, 90, 1}, Shape{2, 5, 0, 7}}) {
    for (const bool turn_a : {false, true}) {
      for (const bool turn_b : {false, true}) {
        const Tensor a = turn_a ? draw({s.b, s.k, s.m}, DType::Double).transpose(1, 2)
                                : draw({s.b, s.m, s.k}, DType::Double);
        const Tensor b = turn_b ? draw({s.b, s.n, s.k}, DType::Double).transpose(1, 2)
                                : draw({s.b, s.k, s.n}, DType::Double);
        const Tensor got = batchedProduct("bmm", a, b).to(DType::Float);
        expectSame(got, exact(a, b, Tensor()));
      }
    }
  }
}

TEST(Gemm, SeesWritesToAPackedWeight) {
  for (DType dtype : {DType::Float, DType::BFloat16}) {
    const Tensor x = draw({64, 128}, dtype);
    Tensor w = draw({96, 128}, dtype);
    linearProduct("test", x, w, {});
    w.fill(0.25);
    w.storage()->bumpVersion();
    expectSame(linearProduct("test", x, w, {}),
               exact(x.unsqueeze(0), w.transpose(0, 1).unsqueeze(0), {}));
  }
}

}  // namespace
}  // namespace wick::gemm_test
