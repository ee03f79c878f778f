// Searches, unique slices, samples of grids, CTC, LDL factors, distances and pointwise operators
// without loop forms on CUDA devices: their texts compile and results have the right shapes. What
// they compute is compared on devices.
#include <gtest/gtest.h>

#include "core/scalar.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"

namespace wick::cuda::lookup_test {
namespace {

TEST(Lookup, SearchesCompileForAllRealNumbers) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kBucketize{"aten::bucketize", "Tensor"},
      kSearch{"aten::searchsorted", "Tensor"}, kNumber{"aten::searchsorted", "Scalar"};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Byte,
                           DType::Char, DType::Short, DType::Int, DType::Long}) {
    const Tensor found = kBucketize(zeros({3, 4}, type), zeros({5}, type), true);
    EXPECT_EQ(sizesOf(found), (DimVector{3, 4}));
    EXPECT_EQ(found.dtype(), DType::Int);
    EXPECT_EQ(sizesOf(kSearch(zeros({2, 5}, type), zeros({2, 7}, type), false, true)),
              (DimVector{2, 7}));
  }
  EXPECT_EQ(sizesOf(kNumber(zeros({5}), Scalar(1.5))), (DimVector{}));
  EXPECT_ERROR(kSearch(zeros({2, 5}), zeros({3, 7})), "first N-1 dimensions");
  EXPECT_ERROR(kSearch(zeros({5}), zeros({3}), false, true, std::string("left")), "opposites");
  EXPECT_ERROR(kSearch(zeros({5}), Tensor::zeros(DimVector{3}, DType::Float)), "same device");
}

TEST(Lookup, GridsAreSampledAndGiveGradients) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kSample{"aten::grid_sampler", ""},
      kInput{"wick::grid_sampler_input_gradient", ""},
      kGrid{"wick::grid_sampler_grid_gradient", ""};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half}) {
    for (int64_t mode = 0; mode < 3; ++mode) {
      // Each is a text of its own, and takes seconds to compile.
      if (type != DType::Float && mode != 2) continue;
      const Tensor x = zeros({2, 3, 5, 6}, type), grid = zeros({2, 4, 7, 2}, type);
      EXPECT_EQ(sizesOf(kSample(x, grid, mode, int64_t{2}, true)), (DimVector{2, 3, 4, 7}));
      const Tensor grad = zeros({2, 3, 4, 7}, type);
      EXPECT_EQ(sizesOf(kInput(grad, DimVector{2, 3, 5, 6}, grid, mode, int64_t{0}, false)),
                (DimVector{2, 3, 5, 6}));
      const Tensor slope = kGrid(grad, x, grid, mode, int64_t{1}, false);
      EXPECT_EQ(sizesOf(slope), (DimVector{2, 4, 7, 2}));
      EXPECT_EQ(slope.dtype(), type);
    }
  }
  const Tensor deep = zeros({1, 2, 3, 4, 5});
  EXPECT_EQ(sizesOf(kSample(deep, zeros({1, 2, 2, 2, 3}), int64_t{0}, int64_t{2}, false)),
            (DimVector{1, 2, 2, 2, 2}));
  EXPECT_ERROR(kSample(deep, zeros({1, 2, 2, 2, 3}), int64_t{2}, int64_t{0}, false),
               "unknown interpolation");
}

TEST(Lookup, TemporalClassificationCompiles) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kLoss{"aten::_ctc_loss", ""}, kGradient{"wick::ctc_gradient", ""},
      kReduced{"aten::ctc_loss", "IntList"};
  FakeDriver driver;
  const Tensor probs = zeros({6, 2, 4}), targets = zeros({2, 3}, DType::Long);
  const DimVector steps{6, 5}, labels{3, 1};
  const auto both = kLoss.all(probs, targets, steps, labels, int64_t{0}, true);
  EXPECT_EQ(sizesOf(both[0]), (DimVector{2}));
  EXPECT_EQ(sizesOf(both[1]), (DimVector{2, 6, 7}));
  EXPECT_EQ(sizesOf(kReduced(probs, targets, steps, labels)), (DimVector{}));
  EXPECT_EQ(sizesOf(kGradient(zeros({2}), probs, targets, steps, labels, int64_t{0}, false)),
            (DimVector{6, 2, 4}));
  EXPECT_ERROR(kLoss.all(probs, targets, DimVector{7, 5}, labels, int64_t{0}, false),
               "at most 6, but got value 7");
}

TEST(Lookup, SymmetricMatricesAreFactored) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kFactor{"aten::linalg_ldl_factor_ex", ""},
      kSolve{"aten::linalg_ldl_solve", ""};
  FakeDriver driver;
  for (const DType type :
       {DType::Float, DType::Double, DType::ComplexFloat, DType::ComplexDouble}) {
    for (const bool hermitian : {false, true}) {
      const auto all = kFactor.all(zeros({2, 3, 3}, type), hermitian);
      EXPECT_EQ(sizesOf(all[0]), (DimVector{2, 3, 3}));
      EXPECT_EQ(sizesOf(all[1]), (DimVector{2, 3}));
      EXPECT_EQ(sizesOf(all[2]), (DimVector{2}));
      const Tensor x =
          kSolve(zeros({3, 3}, type), zeros({3}, DType::Int), zeros({2, 3, 4}, type), hermitian);
      EXPECT_EQ(sizesOf(x), (DimVector{2, 3, 4}));
    }
  }
  EXPECT_ERROR(kFactor.all(zeros({2, 3}), false), "square");
}

TEST(Lookup, DistancesHaveGradients) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kCdist{"aten::_cdist_backward", ""},
      kPdist{"aten::_pdist_backward", ""};
  FakeDriver driver;
  for (const double p : {1.0, 2.0, 3.5, HUGE_VAL}) {
    const Tensor x = zeros({2, 4, 3}), y = zeros({2, 5, 3}), d = zeros({2, 4, 5});
    EXPECT_EQ(sizesOf(kCdist(d, x, y, p, d)), (DimVector{2, 4, 3}));
    const Tensor pairs = zeros({6}, DType::Double);
    EXPECT_EQ(sizesOf(kPdist(pairs, zeros({4, 3}, DType::Double), p, pairs)), (DimVector{4, 3}));
  }
}

TEST(Lookup, SegmentsAndSlicesCompile) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kSegments{"aten::segment_reduce", ""},
      kConsecutive{"aten::unique_dim_consecutive", ""};
  FakeDriver driver;
  const Tensor lengths = Tensor::zeros(DimVector{2}, DType::Long);
  lengths.data<int64_t>()[0] = 3;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    for (const char* how : {"sum", "mean", "prod", "max", "min"}) {
      const Tensor out = kSegments(zeros({3, 4}, type), std::string(how), zeros({2}, DType::Long),
                                   IValue(), IValue(), int64_t{0}, true);
      EXPECT_EQ(sizesOf(out), (DimVector{2, 4}));
    }
  }
  EXPECT_ERROR(kSegments(zeros({3}), std::string("median"), zeros({1}, DType::Long)),
               "unsupported reduction");
  EXPECT_ERROR(kConsecutive.all(zeros({}), int64_t{0}), "expected at least one dimension");
}

// Operators that have no loop form for these dtypes go through their definitions.
TEST(Lookup, DefinitionsStandInForLoopForms) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kDiv{"aten::div", "Tensor_mode"}, kLdexp{"aten::ldexp", "Tensor"},
      kFloatPower{"aten::float_power", "Tensor_Tensor"}, kNumbers{"aten::nan_to_num", ""},
      kPow{"aten::pow", "Scalar"}, kClamp{"aten::clamp", ""}, kDivInto{"aten::div_", "Tensor_mode"};
  FakeDriver driver;
  for (const DType type : {DType::Byte, DType::Short, DType::Int, DType::Long}) {
    const Tensor t = zeros({3, 4}, type);
    for (const char* how : {"floor", "trunc"}) {
      const uint64_t before = driver.state().launches;
      EXPECT_EQ(kDiv(t, t, std::string(how)).dtype(), type);
      EXPECT_GT(driver.state().launches, before);
      EXPECT_TRUE(kDivInto(t, t, std::string(how)).isSame(t));
    }
    EXPECT_EQ(kLdexp(t, t).dtype(), DType::Float);
    EXPECT_EQ(kFloatPower(t, t).dtype(), DType::Double);
    EXPECT_EQ(kPow(Scalar(2), t).dtype(), type);
    EXPECT_EQ(kClamp(t, Scalar(1), Scalar(2)).dtype(), type);
  }
  EXPECT_EQ(kNumbers(zeros({5}, DType::BFloat16)).dtype(), DType::BFloat16);
}

}  // namespace
}  // namespace wick::cuda::lookup_test
