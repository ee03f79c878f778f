#include "runtime/kernels/int8_product.h"

#include <immintrin.h>

#include <algorithm>
#include <cstring>

namespace wick {

namespace {

constexpr int64_t kBlock = PackedBytes::kBlock;
constexpr int kMaxRows = 6;

bool hasVnni() {
  static const bool has = __builtin_cpu_supports("avx512vnni") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  return has;
}

// ---- with AVX-512 VNNI: four products a lane and instruction ----

// `kRows` rows by `kBlocks` blocks of columns. Blocks lie `block_stride` bytes apart.
template <int kRows, int kBlocks>
__attribute__((target("avx512f,avx512bw,avx512vl,avx512vnni"))) void tileVnni(
    const uint8_t* a, int64_t lda, const int8_t* b, int64_t block_stride, int64_t depth,
    int32_t* out, int64_t ldo) {
  __m512i sums[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kBlocks; ++j) sums[r][j] = _mm512_setzero_si512();
  }
  const int64_t groups = depth / 4, rest = depth % 4;
  // The last factors of rows whose length is no multiple of four, filled up with zeros.
  int32_t last[kRows] = {};
  if (rest != 0) {
    for (int r = 0; r < kRows; ++r) {
      std::memcpy(&last[r], a + r * lda + groups * 4, static_cast<size_t>(rest));
    }
  }
  const auto* from = reinterpret_cast<const char*>(a);
  int64_t step = lda;
  for (int64_t left = groups + (rest != 0); left > 0; --left) {
    if (left == 1 && rest != 0) {
      from = reinterpret_cast<const char*>(last);
      step = sizeof(int32_t);
    }
    __m512i factors[kBlocks];
#pragma GCC unroll 4
    for (int j = 0; j < kBlocks; ++j) factors[j] = _mm512_loadu_si512(b + j * block_stride);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, from + r * step, sizeof(four));
      const __m512i row = _mm512_set1_epi32(four);
#pragma GCC unroll 4
      for (int j = 0; j < kBlocks; ++j) {
        sums[r][j] = _mm512_dpbusd_epi32(sums[r][j], row, factors[j]);
      }
    }
    from += 4;
    b += 4 * kBlock;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int j = 0; j < kBlocks; ++j) {
      _mm512_storeu_si512(out + r * ldo + j * kBlock, sums[r][j]);
    }
  }
}

template <int kRows>
void rowsVnni(const uint8_t* a, int64_t lda, const int8_t* b, int64_t block_stride, int64_t depth,
              int64_t blocks, int32_t* out, int64_t ldo) {
  for (; blocks >= 4; blocks -= 4, b += 4 * block_stride, out += 4 * kBlock) {
    tileVnni<kRows, 4>(a, lda, b, block_stride, depth, out, ldo);
  }
  if (blocks >= 2) {
    tileVnni<kRows, 2>(a, lda, b, block_stride, depth, out, ldo);
    blocks -= 2, b += 2 * block_stride, out += 2 * kBlock;
  }
  if (blocks == 1) tileVnni<kRows, 1>(a, lda, b, block_stride, depth, out, ldo);
}

// ---- with AVX2: bytes widened to 16 bits, two products a lane and instruction ----

template <int kRows>
void tilePairs(const int16_t* a, int64_t lda, const int16_t* b, int64_t groups, int32_t* out,
               int64_t ldo) {
  __m256i sums[kRows][2];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm256_setzero_si256();
  for (int64_t g = 0; g < groups; ++g) {
    const auto* factors = reinterpret_cast<const __m256i*>(b + g * 2 * kBlock);
    const __m256i low = _mm256_loadu_si256(factors), high = _mm256_loadu_si256(factors + 1);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t two;
      std::memcpy(&two, a + r * lda + g * 2, sizeof(two));
      const __m256i row = _mm256_set1_epi32(two);
      sums[r][0] = _mm256_add_epi32(sums[r][0], _mm256_madd_epi16(row, low));
      sums[r][1] = _mm256_add_epi32(sums[r][1], _mm256_madd_epi16(row, high));
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    auto* to = reinterpret_cast<__m256i*>(out + r * ldo);
    _mm256_storeu_si256(to, sums[r][0]);
    _mm256_storeu_si256(to + 1, sums[r][1]);
  }
}

template <int kRows>
void rowsPairs(const uint8_t* a, int64_t lda, const int16_t* b, int64_t block_stride, int64_t depth,
               int64_t blocks, int32_t* out, int64_t ldo) {
  const int64_t groups = (depth + 1) / 2;
  CountedVector<int16_t> wide(static_cast<size_t>(kRows * groups * 2));
  for (int r = 0; r < kRows; ++r) {
    int16_t* to = wide.data() + r * groups * 2;
    for (int64_t k = 0; k < depth; ++k) to[k] = a[r * lda + k];
  }
  for (int64_t j = 0; j < blocks; ++j) {
    tilePairs<kRows>(wide.data(), groups * 2, b + j * block_stride, groups, out + j * kBlock, ldo);
  }
}

// Calls f<n>() for n rows, up to kMaxRows.
template <int kRows = kMaxRows, class F>
void dispatchRows(int64_t rows, F&& f) {
  if (rows >= kRows) {
    f.template operator()<kRows>();
  } else if constexpr (kRows > 1) {
    dispatchRows<kRows - 1>(rows, f);
  }
}

}  // namespace

PackedBytes::PackedBytes(const int8_t* rows, int64_t columns, int64_t depth)
    : columns_(columns), depth_(depth), vnni_(hasVnni()), sums_(static_cast<size_t>(columns)) {
  const int64_t padded = paddedColumns();
  const int64_t width = vnni_ ? 4 : 2;
  const int64_t groups = (depth + width - 1) / width;
  const auto size = static_cast<size_t>(padded * groups * width);
  if (vnni_) {
    bytes_.assign(size, 0);
  } else {
    pairs_.assign(size, 0);
  }
  for (int64_t c = 0; c < columns; ++c) {
    uint32_t sum = 0;  // wraps, as products do
    for (int64_t k = 0; k < depth; ++k) {
      const int8_t v = rows[c * depth + k];
      sum += static_cast<uint32_t>(v);
      const auto at = static_cast<size_t>(
          ((c / kBlock * groups + k / width) * kBlock + c % kBlock) * width + k % width);
      if (vnni_) {
        bytes_[at] = v;
      } else {
        pairs_[at] = v;
      }
    }
    sums_[static_cast<size_t>(c)] = static_cast<int32_t>(sum);
  }
}

void PackedBytes::multiply(const uint8_t* a, int64_t lda, int64_t rows, int64_t first, int64_t last,
                           int32_t* out, int64_t ldo) const {
  const int64_t width = vnni_ ? 4 : 2;
  const int64_t block_stride = (depth_ + width - 1) / width * width * kBlock;
  // All rows pass over some columns before others are read: these are what a cache keeps.
  constexpr int64_t kBlocksAtOnce = 4;
  for (int64_t column = first; column < last; column += kBlocksAtOnce * kBlock) {
    const int64_t blocks = std::min(kBlocksAtOnce, (last - column) / kBlock);
    const int64_t skipped = column / kBlock * block_stride;
    for (int64_t row = 0; row < rows; row += kMaxRows) {
      const uint8_t* from = a + row * lda;
      int32_t* to = out + row * ldo + (column - first);
      dispatchRows(std::min<int64_t>(rows - row, kMaxRows), [&]<int kRows>() {
        if (vnni_) {
          rowsVnni<kRows>(from, lda, bytes_.data() + skipped, block_stride, depth_, blocks, to,
                          ldo);
        } else {
          rowsPairs<kRows>(from, lda, pairs_.data() + skipped, block_stride, depth_, blocks, to,
                           ldo);
        }
      });
    }
  }
}

}  // namespace wick
