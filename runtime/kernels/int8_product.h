// Products of unsigned by signed bytes, summed in int32 without loss: what quantized linear layers
// and convolutions are made of. The sums wrap where they leave int32, at more than 65,000 factors.
#pragma once

#include <cstdint>

#include "core/counted_vector.h"

namespace wick {

// A matrix of signed bytes [columns, depth] in the order in which products read it, for the
// processor that packed it. Immutable.
class PackedBytes {
 public:
  // Columns are computed in blocks of so many.
  static constexpr int64_t kBlock = 16;

  // `rows` [columns, depth] row-major.
  PackedBytes(const int8_t* rows, int64_t columns, int64_t depth);

  int64_t columns() const { return columns_; }
  int64_t depth() const { return depth_; }
  // Columns up to a multiple of kBlock.
  int64_t paddedColumns() const { return (columns_ + kBlock - 1) / kBlock * kBlock; }
  // The sum of each column's elements.
  const int32_t* sums() const { return sums_.data(); }

  // out[r, c - first] = sum over k of a[r, k] * (c, k) for r < rows and first <= c < last, both
  // multiples of kBlock at most paddedColumns(). Rows of `a` lie `lda` apart, those of `out` `ldo`.
  void multiply(const uint8_t* a, int64_t lda, int64_t rows, int64_t first, int64_t last,
                int32_t* out, int64_t ldo) const;

 private:
  int64_t columns_;
  int64_t depth_;
  bool vnni_;
  CountedVector<int8_t> bytes_;   // [block][depth / 4][kBlock][4], with VNNI
  CountedVector<int16_t> pairs_;  // [block][depth / 2][kBlock][2], without
  CountedVector<int32_t> sums_;
};

}  // namespace wick
