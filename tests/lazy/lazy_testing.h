// What tests of lazy tensors share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>

#include "core/device_backend.h"
#include "core/error.h"
#include "lazy/lazy.h"
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
  const Tensor a = moveTo(got, Device()).contiguous(), b = want.contiguous();
  EXPECT_EQ(std::memcmp(a.rawData(), b.rawData(), static_cast<size_t>(a.numel()) * a.itemSize()), 0)
      << what;
}

template <class F>
std::string messageOf(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

class Lazy : public testing::Test {
 protected:
  void SetUp() override {
    lazy::markStep();
    lazy::resetCounters();
  }
};

}  // namespace wick
