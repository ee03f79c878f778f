// Between rows of tensors and waves side by side.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/counted_vector.h"
#include "runtime/kernels/fft_lanes.h"

namespace wick::fft {

// Longer transforms would not stay in the cache side by side.
constexpr int64_t kLongestInLanes = 8192;

// Memory for one transform: data and work, each with room for real and imaginary parts.
template <class R>
class Workspace {
 public:
  explicit Workspace(int64_t numbers)
      : part_((numbers + 15) / 16 * 16), memory_(static_cast<size_t>(4 * part_ + 16)) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    begin_ = reinterpret_cast<R*>((at + 63) / 64 * 64);
  }
  Wave<R> data() const { return {begin_, begin_ + part_}; }
  Wave<R> work() const { return {begin_ + 2 * part_, begin_ + 3 * part_}; }

 private:
  // Not set to zero when it is made.
  struct Number {
    Number() {}
    R value;
  };
  int64_t part_;
  CountedVector<Number> memory_;
  R* begin_;
};

// Number k of row i becomes to[k * W + i].
template <class R>
void rowsToLanes(const R* const* rows, int64_t n, R* to) {
  constexpr int W = kLanes<R>;
  int64_t k = 0;
  for (; k + W <= n; k += W) {
    Lanes<R, W> block[W];
    for (int i = 0; i < W; ++i) block[i] = get<W>(rows[i] + k);
    transpose(block);
    for (int i = 0; i < W; ++i) put<W>(to + (k + i) * W, block[i]);
  }
  for (; k < n; ++k) {
    for (int i = 0; i < W; ++i) to[k * W + i] = rows[i][k];
  }
}

// The same for rows of n pairs of a real and an imaginary part.
template <class R>
void pairsToLanes(const R* const* rows, int64_t n, Wave<R> to) {
  constexpr int W = kLanes<R>;
  int64_t k = 0;
  for (; k + W / 2 <= n; k += W / 2) {
    Lanes<R, W> block[W];
    for (int i = 0; i < W; ++i) block[i] = get<W>(rows[i] + 2 * k);
    transpose(block);
    for (int i = 0; i < W / 2; ++i) put<W, R>(to, k + i, {block[2 * i], block[2 * i + 1]});
  }
  for (; k < n; ++k) {
    for (int i = 0; i < W; ++i) {
      to.re[k * W + i] = rows[i][2 * k];
      to.im[k * W + i] = rows[i][2 * k + 1];
    }
  }
}

// Back, into the first `count` rows, times `scale`.
template <class R>
void lanesToPairs(Wave<R> from, int64_t n, R* const* rows, int64_t count, R scale) {
  constexpr int W = kLanes<R>;
  const Lanes<R, W> factor = spread<W>(scale);
  int64_t k = 0;
  for (; k + W / 2 <= n; k += W / 2) {
    Lanes<R, W> block[W];
    for (int i = 0; i < W / 2; ++i) {
      const auto v = get<W>(from, k + i);
      block[2 * i] = v.re * factor;
      block[2 * i + 1] = v.im * factor;
    }
    transpose(block);
    for (int64_t i = 0; i < count; ++i) put<W>(rows[i] + 2 * k, block[i]);
  }
  for (; k < n; ++k) {
    for (int64_t i = 0; i < count; ++i) {
      rows[i][2 * k] = from.re[k * W + i] * scale;
      rows[i][2 * k + 1] = from.im[k * W + i] * scale;
    }
  }
}

}  // namespace wick::fft
