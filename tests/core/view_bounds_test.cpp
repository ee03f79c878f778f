// Whatever numbers a view is asked for: it lies within its storage, or there is none.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "tests/error_text.h"

namespace wick::view_bounds_test {
namespace {

using testing_errors::errorOf;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();

// Every element that the tensor has can be read, and the numbers leave room for arithmetic.
void expectSound(const Tensor& t) {
  const auto bytes = static_cast<int64_t>(t.storage()->bytes());
  int64_t last = t.offset();
  for (int64_t d = 0; d < t.dim(); ++d) {
    int64_t product = 0;
    EXPECT_FALSE(__builtin_mul_overflow(t.size(d), t.stride(d), &product) ||
                 __builtin_mul_overflow(product, int64_t(t.itemSize()), &product));
    if (t.size(d) > 0) last += (t.size(d) - 1) * t.stride(d);
  }
  EXPECT_GE(t.offset(), 0);
  if (t.numel() > 0) {
    EXPECT_LE((last + 1) * int64_t(t.itemSize()), bytes);
  }
}

TEST(ViewBounds, AnExtentWithoutElementsIsCheckedToo) {
  const Tensor empty = Tensor::empty({0}, DType::Float);
  for (int64_t stride : {kMost, kMost - 63, kMaxExtentBytes, kMaxExtentBytes / 4}) {
    EXPECT_NE(errorOf([&] {
                empty.asStrided({0, 5}, {1, stride}, 0);
              }).find("overflows"),
              std::string::npos)
        << stride;
  }
  EXPECT_NE(errorOf([&] { empty.asStrided({0}, {1}, kMost); }).find("overflows"),
            std::string::npos);
  EXPECT_NE(errorOf([&] { empty.asStrided({0}, {1}, -1); }).find("offset"), std::string::npos);
  EXPECT_NE(errorOf([&] { empty.asStrided({0}, {-1}, 0); }).find("negative strides"),
            std::string::npos);
  // What reaches far, but not too far, stays sound whatever becomes of it.
  Tensor far = empty.asStrided({0, 5}, {1, int64_t{1} << 50}, 0);
  far = far.select(1, 4);
  expectSound(far);
  EXPECT_NE(errorOf([&] { far.resize({140}); }).find("memory"), std::string::npos);
  expectSound(far);
}

TEST(ViewBounds, StepsBeyondTheExtent) {
  const Tensor t = Tensor::zeros({3, 4}, DType::Double);
  for (int64_t step : {int64_t{3}, int64_t{1} << 40, kMost / 4, kMost / 4 + 1, kMost}) {
    const Tensor s = t.slice(0, 1, 3, step);
    EXPECT_EQ(s.size(0), 1);
    expectSound(s);
    expectSound(s.unsqueeze(0));
    expectSound(s.transpose(0, 1).slice(0, 2, 4, step));
  }
  EXPECT_EQ(t.slice(0, 0, 3, 2).stride(0), 8);
}

TEST(ViewBounds, SizesThatMultiplyBeyondMeasure) {
  const Tensor t = Tensor::zeros({1, 1}, DType::Byte);
  EXPECT_NE(errorOf([&] { t.expand({kMost, kMost}); }).find("overflows"), std::string::npos);
  EXPECT_NE(errorOf([&] {
              t.expand({int64_t{1} << 40, int64_t{1} << 40});
            }).find("overflows"),
            std::string::npos);
  expectSound(t.expand({int64_t{1} << 20, int64_t{1} << 30}));
  EXPECT_NE(errorOf([&] {
              Tensor::empty({0, kMost}, DType::Byte);
            }).find("overflows"),
            std::string::npos);
}

// What walks over dimensions may do so recursively.
TEST(ViewBounds, DimensionsWithoutEnd) {
  EXPECT_NE(errorOf([] { Tensor::zeros(DimVector(100'000, 1), DType::Float); }).find("dimensions"),
            std::string::npos);
  Tensor t = Tensor::zeros(DimVector(kMaxDims, 1), DType::Float);
  EXPECT_NE(errorOf([&] { t.unsqueeze(0); }).find("dimensions"), std::string::npos);
  EXPECT_FALSE(formatTensor(t).empty());
}

// A refused shape leaves the tensor as it was.
TEST(ViewBounds, PlaceChangesNothingWhenItThrows) {
  const Tensor t = Tensor::zeros({2, 3}, DType::Float);
  const Ref<Storage> small = Storage::allocate(8);
  EXPECT_THROW(t.impl()->place(small, DType::Double, {2, 3}, {3, 1}, 0), RuntimeError);
  EXPECT_THROW(t.impl()->place(t.storage(), DType::Float, {2, 4}, {3, 1}, 0), RuntimeError);
  EXPECT_THROW(t.impl()->place(t.storage(), DType::Float, {2, 3}, {3}, 0), RuntimeError);
  EXPECT_EQ(t.describe(), "float32[2, 3]");
  EXPECT_TRUE(t.isContiguous());
  expectSound(t);
}

}  // namespace
}  // namespace wick::view_bounds_test
