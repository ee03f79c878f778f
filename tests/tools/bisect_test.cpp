#include "tools/bisect.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensor.h"

namespace wick::cli {
namespace {

TEST(BisectTest, FindsTheFirstWrongNumberInFewTrials) {
  for (uint64_t last : {1u, 2u, 3u, 100u, 1000u}) {
    for (uint64_t wrong : {uint64_t{1}, (last + 1) / 2, last}) {
      int trials = 0;
      EXPECT_EQ(firstWrong(last,
                           [&](uint64_t n) {
                             ++trials;
                             return n < wrong;
                           }),
                wrong);
      EXPECT_LE(trials, 10);
    }
  }
}

Tensor row(std::vector<double> values) {
  Tensor t = Tensor::zeros({static_cast<int64_t>(values.size())}, DType::Double);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}

TEST(BisectTest, NumbersAgreeWithinTheTolerance) {
  EXPECT_TRUE(agree(IValue(1.0), IValue(1.0), 0));
  EXPECT_FALSE(agree(IValue(1.0), IValue(std::nextafter(1.0, 2.0)), 0));
  EXPECT_TRUE(agree(IValue(1.0), IValue(1.0 + 1e-9), 1e-8));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(agree(IValue(nan), IValue(nan), 0));
  EXPECT_FALSE(agree(IValue(nan), IValue(1.0), 1));
  EXPECT_FALSE(agree(IValue(int64_t{1}), IValue(1.0), 1));
  EXPECT_TRUE(agree(IValue(row({1, nan})), IValue(row({1, nan})), 0));
  EXPECT_FALSE(agree(IValue(row({1, 2})), IValue(row({1, 2.1})), 1e-3));
  EXPECT_FALSE(agree(IValue(row({1, 2})), IValue(row({1})), 1));
  EXPECT_FALSE(agree(IValue(row({1})), IValue(row({1}).to(DType::Float)), 1));
}

TEST(BisectTest, ContainersAgreePartByPart) {
  const auto pair = [](double a, const char* b) {
    return makeTuple({IValue(a), IValue(std::string(b))});
  };
  EXPECT_TRUE(agree(pair(1, "x"), pair(1 + 1e-9, "x"), 1e-8));
  EXPECT_FALSE(agree(pair(1, "x"), pair(1, "y"), 1));
  EXPECT_FALSE(agree(pair(1, "x"), makeTuple({IValue(1.0)}), 1));
}

}  // namespace
}  // namespace wick::cli
