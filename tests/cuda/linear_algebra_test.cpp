// Texts of linear algebra and of writes by index: they compile, and results have the right sizes and
// dtypes. What they compute, and what the libraries do, is compared on devices.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/value_conversions.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"

namespace wick::cuda::linear_algebra_test {
namespace {

TEST(LinearAlgebra, TextsCompile) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kTriangular{"aten::linalg_solve_triangular", ""},
      kSolve{"aten::linalg_lu_solve", ""}, kUnpack{"aten::lu_unpack", ""},
      kProduct{"aten::linalg_householder_product", ""}, kCholesky{"aten::cholesky_solve", ""},
      kOrmqr{"aten::ormqr", ""};
  FakeDriver driver;
  for (const DType type :
       {DType::Float, DType::Double, DType::ComplexFloat, DType::ComplexDouble}) {
    const Tensor a = zeros({2, 4, 4}, type), b = zeros({2, 4, 3}, type);
    const Tensor pivots = zeros({2, 4}, DType::Int), tau = zeros({2, 3}, type);
    for (const Tensor& x : {kTriangular(a, b, true), kTriangular(a, b, false), kSolve(a, pivots, b),
                            kCholesky(b, a, true)}) {
      EXPECT_EQ(DimVector(x.sizes()), (DimVector{2, 4, 3}));
      EXPECT_EQ(x.dtype(), type);
    }
    EXPECT_EQ(DimVector(kUnpack(a, pivots).sizes()), (DimVector{2, 4, 4}));
    EXPECT_EQ(DimVector(kProduct(b, tau).sizes()), (DimVector{2, 4, 3}));
    EXPECT_EQ(DimVector(kOrmqr(b, tau, b, true, true).sizes()), (DimVector{2, 4, 3}));
  }
  EXPECT_THROW(kTriangular(zeros({3, 4}, DType::Float), zeros({4, 2}, DType::Float), true),
               RuntimeError);
}

TEST(Indexing, WritesCompile) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kReduce{"aten::scatter_reduce", "two"}, kAdd{"aten::scatter_add", ""},
      kPut{"aten::put", ""}, kUnpool{"aten::max_unpool2d", ""}, kMasked{"aten::masked_scatter", ""};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Int,
                           DType::Long, DType::Byte}) {
    const Tensor t = zeros({3, 5}, type), index = zeros({2, 5}, DType::Long);
    for (const char* how : {"sum", "prod", "mean", "amax", "amin"}) {
      const Tensor r = kReduce(t, int64_t{0}, index, zeros({2, 5}, type), std::string(how), false);
      EXPECT_EQ(r.dtype(), type) << how;
      EXPECT_EQ(DimVector(r.sizes()), (DimVector{3, 5})) << how;
    }
    EXPECT_EQ(DimVector(kPut(t, zeros({4}, DType::Long), zeros({4}, type), true).sizes()),
              (DimVector{3, 5}));
  }
  const Tensor c = zeros({3, 5}, DType::ComplexFloat);
  EXPECT_EQ(kAdd(c, int64_t{0}, zeros({2, 5}, DType::Long), c).dtype(), DType::ComplexFloat);
  const Tensor f = zeros({1, 2, 3, 3}, DType::Float);
  EXPECT_EQ(DimVector(kUnpool(f, zeros({1, 2, 3, 3}, DType::Long), DimVector{6, 6}).sizes()),
            (DimVector{1, 2, 6, 6}));
}

TEST(Indexing, ArgumentsAreCheckedAndOfEitherWidth) {
  static const OperatorHandle kIndex{"aten::index", "Tensor"}, kPut{"aten::index_put", ""},
      kGather{"aten::gather", ""}, kScatter{"aten::scatter", "src"}, kAdd{"aten::index_add", ""},
      kAlong{"aten::take_along_dim", ""}, kTake{"aten::take", ""};
  FakeDriver driver;
  const Tensor t = zeros({3, 5}), whole = zeros({3, 5}, DType::Long);
  EXPECT_ERROR(kGather(zeros({3}), int64_t{0}, whole), "the same number of dimensions");
  EXPECT_ERROR(kScatter(t, int64_t{0}, whole, zeros({3, 4})), "smaller size than src");
  EXPECT_ERROR(kScatter(t, int64_t{0}, whole, zeros({3, 5}, DType::Double)), "src.dtype");
  EXPECT_ERROR(kAdd(t, int64_t{0}, zeros({2}, DType::Long), zeros({3, 5})), "does not fit");
  EXPECT_ERROR(kTake(t, zeros({2}, DType::Int)), "Expected a long tensor");
  EXPECT_ERROR(kIndex(Tensor::zeros(DimVector{3}, DType::Float),
                      std::vector<Tensor>{zeros({2}, DType::Long)}),
               "indices should be either on cpu");
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  for (const DType type : {DType::Long, DType::Int}) {
    const Tensor index = zeros({2}, type), rows = zeros({2, 5}, type);
    EXPECT_EQ(sizesOf(kIndex(t, std::vector<Tensor>{index, index})), (DimVector{2}));
    EXPECT_EQ(sizesOf(kIndex(t, std::vector<Tensor>{Tensor(), index})), (DimVector{3, 2}));
    EXPECT_EQ(sizesOf(kPut(t, std::vector<Tensor>{index}, zeros({5}), true)), (DimVector{3, 5}));
    EXPECT_EQ(sizesOf(kScatter(t, int64_t{0}, rows, zeros({3, 6}))), (DimVector{3, 5}));
    EXPECT_EQ(sizesOf(kAlong(t, zeros({3, 1}, type), int64_t{1})), (DimVector{3, 1}));
  }
  // Where masks alone are indices and one element is written, nobody asks how many are true.
  const uint64_t before = driver.state().synchronizations;
  kPut(t, std::vector<Tensor>{zeros({3}, DType::Bool)}, zeros({}));
  EXPECT_EQ(driver.state().synchronizations, before);
}

}  // namespace
}  // namespace wick::cuda::linear_algebra_test
