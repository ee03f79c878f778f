// Orthogonal polynomials and polygamma at edge degrees and poles, against what PyTorch 1.13 gives.
#include <cmath>

#include "tests/runtime/op_testing.h"

namespace wick::special_polynomials_test {
namespace {

using namespace testing;

struct Case {
  const char* name;
  float degree;
  Values expected;
};

Tensor evaluate(const char* name, const Tensor& x, float degree) {
  return call(("aten::special_" + std::string(name)).c_str(), "", x, Tensor::scalar(degree));
}

TEST(Polynomials, RecurrenceAndTrigonometricForm) {
  const Tensor x = floats({0.3f, -0.3f, 1, -1, 0, 2.5f});
  const Case cases[] = {
      {"chebyshev_polynomial_t", 3.9f, {-0.7920001, 0.7920001, 1, -1, -0, 55}},
      {"chebyshev_polynomial_t", 9, {0.3888274, -0.3888282, 1, -1, -3.577464e-08, 665335}},
      {"chebyshev_polynomial_u", 3.9f, {-0.984, 0.984, 4, -4, -0, 115}},
      {"chebyshev_polynomial_u", 9, {0.09908865, -0.09908824, 10, -10, -6.755325e-07, 1391275}},
      {"chebyshev_polynomial_v", 3.9f, {-0.3440001, 1.624, 1, -7, 1, 91}},
      {"chebyshev_polynomial_v", 9, {1.064885, 0.8667083, 1, -19, -1, 1100899}},
      {"chebyshev_polynomial_w", 3.9f, {-1.624, 0.3440001, 7, -1, -1, 139}},
      {"chebyshev_polynomial_w", 9, {-0.8667073, -1.064884, 19, -1, 0.9999996, 1681651}},
      {"hermite_polynomial_h", 3.9f, {-3.384, 3.384, -4, 4, -0, 95}},
      {"hermite_polynomial_h", 9, {7010.288, -7010.288, -10720, 10720, 0, -131275}},
      {"hermite_polynomial_he", 3.9f, {-0.873, 0.873, -2, 2, -0, 8.125}},
      {"hermite_polynomial_he", 9, {250.3907, -250.3907, 28, -28, 0, 1431.104}},
      {"laguerre_polynomial_l", 3.9f, {0.2305, 2.0395, -0.6666667, 5.666667, 1, 0.2708333}},
      {"laguerre_polynomial_l", 9, {-0.4179431, 5.743166, 0.3097443, 48.42403, 1, -0.757433}},
      {"legendre_polynomial_p", 3.9f, {-0.3825, 0.3825, 1, -1, -0, 35.3125}},
      {"legendre_polynomial_p", 9, {0.06370033, -0.06370033, 1, -1, 0, 252698.2}},
  };
  for (const Case& c : cases) {
    const Values got = values(evaluate(c.name, x, c.degree));
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_NEAR(got[i], c.expected[i], 1e-3 + 1e-5 * std::fabs(c.expected[i]))
          << c.name << " " << c.degree << " at " << i;
    }
  }
}

TEST(Polynomials, DegreesThatAreNone) {
  const char* const names[] = {"chebyshev_polynomial_t", "chebyshev_polynomial_u",
                               "chebyshev_polynomial_v", "chebyshev_polynomial_w",
                               "hermite_polynomial_h",   "hermite_polynomial_he",
                               "laguerre_polynomial_l",  "legendre_polynomial_p"};
  const Tensor x = floats({0.3f, -1, 7});
  for (const char* name : names) {
    EXPECT_EQ(values(evaluate(name, x, -1)), (Values{0, 0, 0})) << name;
    EXPECT_EQ(values(evaluate(name, x, -0.5f)), (Values{1, 1, 1})) << name;
    EXPECT_EQ(values(evaluate(name, x, NAN)), (Values{0, 0, 0})) << name;
    EXPECT_EQ(values(evaluate(name, x, HUGE_VALF)), (Values{0, 0, 0})) << name;
  }
}

TEST(Polynomials, OverflowAsTheTypeDoes) {
  EXPECT_TRUE(std::isnan(values(evaluate("hermite_polynomial_h", floats({0.3f}), 300))[0]));
  EXPECT_TRUE(std::isinf(values(evaluate("chebyshev_polynomial_t", floats({HUGE_VALF}), 2))[0]));
}

TEST(Polygamma, TrigammaNearItsPoles) {
  const Values got = values(call("aten::polygamma", "", 1, floats({-4, -4.3f, 0.2f, 5})));
  EXPECT_NEAR(got[0] / 8.0710605e13, 1, 1e-4);
  EXPECT_NEAR(got[1], 14.8718, 1e-3);
  EXPECT_NEAR(got[2], 26.2674, 1e-3);
  EXPECT_NEAR(got[3], 0.221323, 1e-5);
}

}  // namespace
}  // namespace wick::special_polynomials_test
