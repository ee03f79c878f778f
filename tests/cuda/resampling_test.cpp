// Resampling on CUDA devices: the kernels' texts compile, and shapes are right.
#include <gtest/gtest.h>

#include "core/value_conversions.h"
#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"

namespace wick::cuda {
namespace {

constexpr Device kCuda{DeviceType::CUDA, -1};

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
}  // namespace wick::cuda
