// Bounds of two numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "tests/runtime/op_testing.h"

namespace wick::clamp_test {
namespace {

using namespace testing;

// Between two numbers row-major elements take a way of their own.
TEST(Clamp, RowsAndViewsAlike) {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  Tensor x = Tensor::empty({64, 64}, DType::Double);
  double* const first = x.data<double>();
  std::mt19937 random(5);
  std::uniform_int_distribution<int> value(-9, 9);
  for (int64_t i = 0; i < x.numel(); ++i) first[i] = value(random);
  first[0] = inf, first[1] = -inf, first[2] = nan, first[3] = -0.0, first[4] = 0.5;
  for (const DType dtype : {DType::Float, DType::Double, DType::Half, DType::Long}) {
    if (dtype == DType::Long) std::fill(first, first + 5, 100);
    const Tensor rows = x.to(dtype), columns = rows.transpose(0, 1).contiguous().transpose(0, 1);
    for (const auto& [low, high] : {std::pair{-3.0, 4.0}, {4.0, -3.0}, {-inf, 2.0}, {0.0, inf}}) {
      if (dtype == DType::Long && (std::isinf(low) || std::isinf(high))) continue;
      const Scalar least = dtype == DType::Long ? Scalar(static_cast<int64_t>(low)) : Scalar(low);
      const Scalar most = dtype == DType::Long ? Scalar(static_cast<int64_t>(high)) : Scalar(high);
      const Values a = values(call("aten::clamp", "", rows, least, most));
      const Values b = values(call("aten::clamp", "", columns, least, most));
      const Values from = values(rows);
      for (size_t i = 0; i < a.size(); ++i) {
        const double want = std::isnan(from[i]) ? nan : std::min(std::max(from[i], low), high);
        EXPECT_TRUE(a[i] == want || (std::isnan(a[i]) && std::isnan(want))) << from[i];
        EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << from[i];
      }
    }
  }
}

}  // namespace
}  // namespace wick::clamp_test
