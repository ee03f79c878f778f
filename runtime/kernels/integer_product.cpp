// Products of integers, which wrap.
//
// b is copied into panels of some columns that lie in vectors, row under row; the sums of some rows
// of a and one panel stay in registers. The processor multiplies no words of 64 bits in vectors, so
// that a product is made of three of 32 bits, whose upper parts are added up apart:
//
//   a * b = low(a) * low(b) + (low(a) * high(b) + high(a) * low(b)) << 32   (mod 2^64)
#include <immintrin.h>

#include <type_traits>

#include "core/counted_vector.h"
#include "core/dtype_dispatch.h"
#include "core/parallel.h"
#include "runtime/kernels/gemm.h"

namespace wick {

namespace {

constexpr int64_t kVectorBytes = 32;

// Sums of kRows rows of a and one panel, for element types that have vector products.
template <class U>
struct Tile {
  typedef U Vector __attribute__((vector_size(kVectorBytes)));
  static constexpr int64_t kRows = 4, kVectors = 2;
  static constexpr int64_t kColumns = kVectors * kVectorBytes / static_cast<int64_t>(sizeof(U));

  static void add(const U* a, int64_t row_step, int64_t step, const U* panel, int64_t k,
                  U (*sums)[kColumns]) {
    Vector sum[kRows][kVectors] = {};
    for (int64_t p = 0; p < k; ++p) {
      Vector b[kVectors];
      __builtin_memcpy(b, panel + p * kColumns, sizeof b);
      for (int64_t r = 0; r < kRows; ++r) {
        const U factor = a[r * row_step + p * step];
        for (int64_t v = 0; v < kVectors; ++v) sum[r][v] += b[v] * factor;
      }
    }
    __builtin_memcpy(sums, sum, sizeof sum);
  }
};

template <>
struct Tile<uint64_t> {
  static constexpr int64_t kRows = 3, kColumns = 8;

  static void add(const uint64_t* a, int64_t row_step, int64_t step, const uint64_t* panel,
                  int64_t k, uint64_t (*sums)[kColumns]) {
    constexpr int kVectors = 2;
    __m256i low[kRows][kVectors], high[kRows][kVectors];
    for (int64_t r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) low[r][v] = high[r][v] = _mm256_setzero_si256();
    }
    for (int64_t p = 0; p < k; ++p) {
      __m256i b[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        b[v] = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(panel + p * kColumns) + v);
      }
      for (int64_t r = 0; r < kRows; ++r) {
        const __m256i factor = _mm256_set1_epi64x(static_cast<int64_t>(a[r * row_step + p * step]));
        const __m256i upper = _mm256_srli_epi64(factor, 32);
        for (int v = 0; v < kVectors; ++v) {
          const __m256i b_upper = _mm256_srli_epi64(b[v], 32);
          low[r][v] = _mm256_add_epi64(low[r][v], _mm256_mul_epu32(factor, b[v]));
          high[r][v] = _mm256_add_epi64(high[r][v], _mm256_mul_epu32(factor, b_upper));
          high[r][v] = _mm256_add_epi64(high[r][v], _mm256_mul_epu32(upper, b[v]));
        }
      }
    }
    for (int64_t r = 0; r < kRows; ++r) {
      for (int v = 0; v < kVectors; ++v) {
        const __m256i sum = _mm256_add_epi64(low[r][v], _mm256_slli_epi64(high[r][v], 32));
        _mm256_storeu_si256(reinterpret_cast<__m256i*>(sums[r]) + v, sum);
      }
    }
  }
};

// One matrix of the batch in panels, filled up with zeros.
template <class U>
void packPanels(const U* b, int64_t down, int64_t across, int64_t k, int64_t n, U* panels) {
  constexpr int64_t kColumns = Tile<U>::kColumns;
  const int64_t count = (n + kColumns - 1) / kColumns;
  parallelFor(count, std::max<int64_t>(1, kGrainSize / (k * kColumns)),
              [&](int64_t begin, int64_t end) {
                for (int64_t panel = begin; panel < end; ++panel) {
                  const int64_t first = panel * kColumns, columns = std::min(kColumns, n - first);
                  U* to = panels + first * k;
                  for (int64_t p = 0; p < k; ++p, to += kColumns) {
                    const U* from = b + p * down + first * across;
                    std::fill(to + columns, to + kColumns, U(0));
                    for (int64_t j = 0; j < columns; ++j) to[j] = from[j * across];
                  }
                }
              });
}

template <class U>
void multiply(const Tensor& a, const Tensor& b, const Tensor& out) {
  using T = Tile<U>;
  constexpr int64_t kRows = T::kRows, kColumns = T::kColumns;
  const int64_t m = a.size(1), k = a.size(2), n = b.size(2);
  const int64_t bands = (m + kRows - 1) / kRows, panels = (n + kColumns - 1) / kColumns;
  CountedVector<U> packed(static_cast<size_t>(panels * kColumns * k));
  for (int64_t batch = 0; batch < out.size(0); ++batch) {
    const auto matrix = [&](const Tensor& t) {
      return static_cast<const U*>(t.rawData()) + (t.size(0) == 1 ? 0 : batch * t.stride(0));
    };
    const U* pa = matrix(a);
    if (batch == 0 || b.size(0) > 1) {
      packPanels(matrix(b), b.stride(1), b.stride(2), k, n, packed.data());
    }
    U* to = static_cast<U*>(out.rawData()) + batch * m * n;
    const int64_t work = std::max<int64_t>(1, kRows * k * n / 8);
    parallelFor(bands, std::max<int64_t>(1, kGrainSize / work), [&](int64_t begin, int64_t end) {
      U sums[kRows][kColumns];
      for (int64_t panel = 0; panel < panels; ++panel) {
        const int64_t column = panel * kColumns, columns = std::min(kColumns, n - column);
        for (int64_t band = begin; band < end; ++band) {
          const int64_t row = band * kRows, rows = std::min(kRows, m - row);
          const U* const panel_at = packed.data() + column * k;
          const bool whole = rows == kRows;
          if (whole) T::add(pa + row * a.stride(1), a.stride(1), a.stride(2), panel_at, k, sums);
          for (int64_t r = 0; r < rows; ++r) {
            // The last rows are multiplied one by one, each as all rows of a band.
            if (!whole) T::add(pa + (row + r) * a.stride(1), 0, a.stride(2), panel_at, k, sums);
            std::copy_n(sums[whole ? r : 0], columns, to + (row + r) * n + column);
          }
        }
      }
    });
  }
}

}  // namespace

void integerProduct(const char* op, const Tensor& a, const Tensor& b, const Tensor& out) {
  dispatch<kIntegers>(op, out.dtype(),
                      [&]<class T>() -> void { multiply<std::make_unsigned_t<T>>(a, b, out); });
}

}  // namespace wick
