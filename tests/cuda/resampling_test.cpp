// Resampling on CUDA devices: the kernels' texts compile, and shapes are right.
#include <gtest/gtest.h>

#include <limits>

#include "core/error.h"
#include "core/value_conversions.h"
#include "runtime/cuda/compiler.h"
#include "runtime/kernels/device_layers.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"
#include "tests/cuda/fake_tensors.h"

namespace wick::cuda::resampling_test {
namespace {

TEST(Resampling, TablesAreTransposed) {
  // Two results of three sources: 1 a + 2 b, and 3 b.
  WeightedRows rows;
  rows.start = {0, 2, 3};
  rows.place = {0, 1, 1};
  rows.weight = {1, 2, 3};
  const WeightedRows back = rows.transposed(3);
  EXPECT_EQ(back.start, (CountedVector<int64_t>{0, 1, 3, 3}));
  EXPECT_EQ(back.place, (CountedVector<int64_t>{0, 0, 1}));
  EXPECT_EQ(back.weight, (CountedVector<double>{1, 2, 3}));
}

TEST(Resampling, PaddingIsCheckedOnDevices) {
  static const OperatorHandle kPad{"aten::constant_pad_nd", ""};
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  FakeDriver driver;
  const Tensor t = Tensor::zeros(DimVector{4}, DType::Float, kCuda);
  for (const DimVector& pad : {DimVector{kMost, kMost}, DimVector{-kMost - 1, kMost},
                               DimVector{-5, 0}, DimVector{kMost, 0}}) {
    EXPECT_THROW(kPad(t, pad, Scalar(0)), RuntimeError);
  }
}

TEST(Resampling, PaddingTakesTheCpusModes) {
  static const OperatorHandle kPad{"aten::pad", ""}, kReflect{"aten::reflection_pad1d", ""};
  FakeDriver driver;
  const Tensor t = zeros({2, 3, 4});
  EXPECT_ERROR(kPad(t, DimVector{1}, std::string("reflect")), "divisible by 2");
  EXPECT_ERROR(kPad(t, DimVector{1, 1}, std::string("mirror")), "Unrecognised padding mode");
  EXPECT_ERROR(kReflect(t, DimVector{4, 0}), "should be less than");
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  for (const char* mode : {"constant", "reflect", "replicate", "circular"}) {
    EXPECT_EQ(sizesOf(kPad(t, DimVector{2, 3}, std::string(mode))), (DimVector{2, 3, 9})) << mode;
    EXPECT_EQ(sizesOf(kPad(t, DimVector{-1, 2}, std::string(mode))), (DimVector{2, 3, 5})) << mode;
  }
}

TEST(Resampling, TextsCompile) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kLinear{"aten::upsample_bilinear2d", ""},
      kNearest{"aten::upsample_nearest2d", ""}, kGradient{"wick::upsample_gradient", ""};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16}) {
    const Tensor t = Tensor::zeros(DimVector{2, 3, 4, 5}, type, kCuda);
    for (const Tensor& r : {kLinear(t, DimVector{8, 3}, false), kNearest(t, DimVector{8, 3})}) {
      EXPECT_EQ(DimVector(r.sizes()), (DimVector{2, 3, 8, 3}));
      EXPECT_EQ(r.dtype(), type);
      EXPECT_TRUE(r.device().isCuda());
    }
    const Tensor back = kGradient(t, DimVector{2, 3, 8, 3}, std::string("linear"), true,
                                  std::vector<double>{0.0, 0.0});
    EXPECT_EQ(DimVector(back.sizes()), (DimVector{2, 3, 8, 3}));
  }
  const Tensor bytes = Tensor::zeros(DimVector{1, 3, 4, 5}, DType::Byte, kCuda);
  EXPECT_EQ(kNearest(bytes, DimVector{8, 3}).dtype(), DType::Byte);
}

}  // namespace
}  // namespace wick::cuda::resampling_test
