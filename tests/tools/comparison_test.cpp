#include "tools/comparison.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/tensor.h"

namespace wick::cli::comparison_test {
namespace {

using testing::ElementsAre;

bool agree(const IValue& a, const IValue& b, double relative) {
  return differences(a, b, {.relative = relative}, "").empty();
}

Tensor row(std::vector<double> values) {
  Tensor t = Tensor::zeros({static_cast<int64_t>(values.size())}, DType::Double);
  std::copy(values.begin(), values.end(), t.data<double>());
  return t;
}

TEST(ComparisonTest, NumbersAgreeWithinTheTolerance) {
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

TEST(ComparisonTest, ContainersAgreePartByPart) {
  const auto pair = [](double a, const char* b) {
    return makeTuple({IValue(a), IValue(std::string(b))});
  };
  EXPECT_TRUE(agree(pair(1, "x"), pair(1 + 1e-9, "x"), 1e-8));
  EXPECT_FALSE(agree(pair(1, "x"), pair(1, "y"), 1));
  EXPECT_FALSE(agree(pair(1, "x"), makeTuple({IValue(1.0)}), 1));
}

TEST(ComparisonTest, NamesPartsOfValues) {
  const auto dict = [](double a) {
    auto made = makeRef<DictObject>(types::String(), types::Any());
    made->set(IValue("out"), makeTuple({IValue(a), IValue("x")}));
    return IValue(std::move(made));
  };
  EXPECT_THAT(differences(dict(1), dict(2), {}, "result"),
              ElementsAre("result['out'][0]: 1 and 2, 1 apart, 0.5 of the larger"));
  IValue list = makeList(types::Any(), {});
  list.toList().elements.push_back(list);
  EXPECT_THROW(differences(list, list, {}, "result"), RuntimeError);
}

TEST(ComparisonTest, TellsWhereAndByHowMuch) {
  const auto lines = [](const IValue& a, const IValue& b, const Tolerance& tolerance = {}) {
    return differences(a, b, tolerance, "result");
  };
  const Tensor a = row({1, 2, 100, 4}).reshape({2, 2}), b = row({1, 2.5, 101, 4}).reshape({2, 2});
  EXPECT_THAT(lines(IValue(a), IValue(b)),
              ElementsAre("result: 2 of 4 numbers differ, by up to 1 at [1, 0] (100 and 101), "
                          "relatively by up to 0.2 at [0, 1] (2 and 2.5)"));
  // Tolerances: a part of the largest number, a part of each number, absolute.
  EXPECT_TRUE(lines(IValue(a), IValue(b), {.of_largest = 0.01}).empty());
  EXPECT_THAT(lines(IValue(a), IValue(b), {.relative = 0.01}),
              ElementsAre("result: 1 of 4 numbers differ, by up to 0.5 at [0, 1] (2 and 2.5), "
                          "relatively by up to 0.2 there"));
  EXPECT_TRUE(lines(IValue(a), IValue(b), {.absolute = 0.48, .relative = 0.01}).empty());
  EXPECT_THAT(lines(IValue(int64_t{3}), IValue(int64_t{4})),
              ElementsAre("result: 3 and 4, 1 apart, 0.25 of the larger"));
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(lines(IValue(inf), IValue(inf)).empty());
  EXPECT_FALSE(
      lines(IValue(inf), IValue(1.0), {.of_largest = 1, .absolute = 1, .relative = 1}).empty());
  // Double precision would not tell these apart.
  const int64_t large = int64_t{1} << 60;
  Tensor x = Tensor::full({2}, 1, DType::Long), y = Tensor::full({2}, 1, DType::Long);
  x.data<int64_t>()[1] = large;
  y.data<int64_t>()[1] = large + 1;
  EXPECT_THAT(lines(IValue(x), IValue(y)),
              ElementsAre(testing::StartsWith("result: 1 of 2 numbers differ, by up to 1 at [1]")));
  const Tensor nan = row({std::numeric_limits<double>::quiet_NaN(), 1}), one = row({1, 1});
  EXPECT_THAT(lines(IValue(nan), IValue(one), {.absolute = 1e9}),
              ElementsAre(testing::StartsWith(
                  "result: 1 of 2 numbers differ, by up to inf at [0] (nan and 1)")));
  EXPECT_THAT(lines(IValue(one), IValue(row({1}))),
              ElementsAre("result: float64[2] and float64[1]"));
}

}  // namespace
}  // namespace wick::cli::comparison_test
