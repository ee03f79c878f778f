// What tests of lazy tensors share.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "core/device_backend.h"
#include "lazy/lazy.h"
#include "tests/error_text.h"
#include "tests/same_bits.h"
#include "wick.h"

namespace wick {

inline const Device kOnLazy{kLazy, -1};

inline Tensor lazyOf(const Tensor& t) {
  return moveTo(t, kOnLazy);
}

inline Tensor numbers(IntSpan sizes, int seed = 1) {
  std::mt19937 draw(static_cast<unsigned>(seed));
  std::normal_distribution<float> normal;
  const Tensor t = Tensor::empty(sizes, DType::Float);
  for (float& v : t.span<float>()) v = normal(draw);
  return t;
}

inline void expectSame(const Tensor& got, const Tensor& want, const std::string& what = "") {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_TRUE(std::ranges::equal(got.sizes(), want.sizes()))
      << what << ": " << got.describe() << " for " << want.describe();
  EXPECT_TRUE(testing_tensors::sameBits(moveTo(got, Device()), want)) << what;
}

// Numbers that are equal but for the rounding of some operations.
inline void expectNear(const Tensor& got, const Tensor& want, const std::string& what = "") {
  ASSERT_EQ(got.dtype(), want.dtype()) << what;
  ASSERT_TRUE(std::ranges::equal(got.sizes(), want.sizes())) << what;
  const bool wide = want.dtype() == DType::Double || want.dtype() == DType::ComplexDouble;
  const DType dtype = isComplex(want.dtype()) ? DType::ComplexDouble : DType::Double;
  const Tensor a = moveTo(got, Device()).to(dtype).contiguous(), b = want.to(dtype).contiguous();
  const int64_t count = isComplex(dtype) ? 2 * b.numel() : b.numel();
  for (int64_t i = 0; i < count; ++i) {
    const double x = static_cast<const double*>(a.rawData())[i];
    const double y = static_cast<const double*>(b.rawData())[i];
    ASSERT_NEAR(x, y, (wide ? 1e-13 : 2e-6) * (1 + std::abs(y))) << what << ", element " << i;
  }
}

using testing_errors::errorOf;

class Lazy : public testing::Test {
 protected:
  void SetUp() override {
    lazy::markStep();
    lazy::resetCounters();
  }
};

}  // namespace wick
