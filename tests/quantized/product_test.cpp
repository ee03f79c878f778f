// Products of bytes against plain loops, at the sizes where tiles end.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "runtime/kernels/int8_product.h"

namespace wick::product_test {
namespace {

void compare(int64_t rows, int64_t columns, int64_t depth) {
  std::mt19937 random(static_cast<unsigned>(rows * 1000 + columns * 10 + depth));
  std::vector<uint8_t> a(static_cast<size_t>(rows * depth));
  std::vector<int8_t> b(static_cast<size_t>(columns * depth));
  // Both ends often: sums that 16 bits do not hold.
  for (uint8_t& v : a) v = random() % 4 == 0 ? 255 : static_cast<uint8_t>(random());
  for (int8_t& v : b) v = random() % 4 == 0 ? -128 : static_cast<int8_t>(random());
  const PackedBytes packed(b.data(), columns, depth);
  const int64_t padded = packed.paddedColumns();
  std::vector<int32_t> out(static_cast<size_t>(rows * padded), -1);
  packed.multiply(a.data(), depth, rows, 0, padded, out.data(), padded);
  for (int64_t c = 0; c < columns; ++c) {
    int32_t column_sum = 0;
    for (int64_t k = 0; k < depth; ++k) column_sum += b[static_cast<size_t>(c * depth + k)];
    ASSERT_EQ(packed.sums()[c], column_sum);
    for (int64_t r = 0; r < rows; ++r) {
      int32_t sum = 0;
      for (int64_t k = 0; k < depth; ++k) {
        sum += a[static_cast<size_t>(r * depth + k)] * b[static_cast<size_t>(c * depth + k)];
      }
      ASSERT_EQ(out[static_cast<size_t>(r * padded + c)], sum)
          << rows << " " << columns << " " << depth << " at " << r << ", " << c;
    }
  }
}

TEST(Int8Product, EqualsPlainLoops) {
  for (int64_t rows : {1, 5, 6, 7, 13}) {
    for (int64_t columns : {1, 15, 16, 17, 33, 64, 81, 130}) {
      for (int64_t depth : {1, 2, 3, 4, 5, 31, 64, 147}) compare(rows, columns, depth);
    }
  }
}

TEST(Int8Product, Parts) {
  const std::vector<int8_t> b(64 * 8, 2);
  const std::vector<uint8_t> a(8, 3);
  const PackedBytes packed(b.data(), 64, 8);
  std::vector<int32_t> out(33, 7);
  packed.multiply(a.data(), 8, 1, 16, 48, out.data(), 32);
  for (int i = 0; i < 32; ++i) EXPECT_EQ(out[static_cast<size_t>(i)], 48);
  EXPECT_EQ(out[32], 7);
}

}  // namespace
}  // namespace wick::product_test
