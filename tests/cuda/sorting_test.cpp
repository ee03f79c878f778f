// Kernels that order elements: their texts compile for every dtype. What they compute is compared on
// devices.
#include <gtest/gtest.h>

#include "runtime/cuda/compiler.h"
#include "runtime/ops/call.h"
#include "tests/cuda/fake_driver.h"

namespace wick::cuda::sorting_test {
namespace {

constexpr Device kCuda{DeviceType::CUDA, -1};

TEST(Sorting, TextsCompileForAllRealNumbers) {
  if (!hasCompiler()) GTEST_SKIP() << "there is no NVRTC here";
  static const OperatorHandle kSort{"aten::sort", ""}, kMedian{"aten::median", "dim"},
      kNanMedian{"aten::nanmedian", "dim"}, kMode{"aten::mode", ""}, kTopk{"aten::topk", ""};
  FakeDriver driver;
  for (const DType type : {DType::Float, DType::Double, DType::Half, DType::BFloat16, DType::Byte,
                           DType::Char, DType::Short, DType::Int, DType::Long}) {
    const Tensor t = Tensor::zeros(DimVector{3, 3000}, type, kCuda);
    const uint64_t before = driver.state().launches;
    const std::vector<IValue> sorted = kSort.all(t, int64_t{-1}, true);
    EXPECT_EQ(DimVector(sorted[0].toTensor().sizes()), (DimVector{3, 3000}));
    EXPECT_EQ(sorted[1].toTensor().dtype(), DType::Long);
    // Loads, chunks of 1024, two stages beyond them with one and two wide steps, results.
    EXPECT_EQ(driver.state().launches - before, 1 + 1 + 2 + 3 + 1);
    EXPECT_EQ(DimVector(kTopk(t, int64_t{7}).sizes()), (DimVector{3, 7}));
    EXPECT_EQ(DimVector(kMedian(t, int64_t{0}).sizes()), (DimVector{3000}));
    EXPECT_EQ(DimVector(kNanMedian(t, int64_t{1}, true).sizes()), (DimVector{3, 1}));
    EXPECT_EQ(DimVector(kMode(t).sizes()), (DimVector{3}));
  }
}

}  // namespace
}  // namespace wick::cuda::sorting_test
