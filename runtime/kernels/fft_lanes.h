// Vectors for Fourier transforms, and complex numbers kept as two arrays.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace wick::fft {

// Numbers of a 32-byte vector.
template <class R>
constexpr int kLanes = static_cast<int>(32 / sizeof(R));

template <class R, int W>
struct LanesOf {
  typedef R V __attribute__((vector_size(W * sizeof(R))));
};
template <class R>
struct LanesOf<R, 1> {
  using V = R;
};
template <class R, int W>
using Lanes = typename LanesOf<R, W>::V;

template <int W, class R>
inline Lanes<R, W> get(const R* from) {
  Lanes<R, W> v;
  std::memcpy(&v, from, sizeof v);
  return v;
}
template <int W, class R>
inline void put(R* to, Lanes<R, W> v) {
  std::memcpy(to, &v, sizeof v);
}
template <int W, class R>
inline Lanes<R, W> spread(R value) {
  return value - Lanes<R, W>{};
}

// a b + c, rounded once.
inline float fusedAdd(float a, float b, float c) {
  return __builtin_fmaf(a, b, c);
}
inline double fusedAdd(double a, double b, double c) {
  return __builtin_fma(a, b, c);
}
inline Lanes<float, 8> fusedAdd(Lanes<float, 8> a, Lanes<float, 8> b, Lanes<float, 8> c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Lanes<double, 4> fusedAdd(Lanes<double, 4> a, Lanes<double, 4> b, Lanes<double, 4> c) {
  return _mm256_fmadd_pd(a, b, c);
}

// Where complex numbers lie: W transforms side by side, so that number k of them are the W numbers
// from `re + k * W` and from `im + k * W`.
template <class R>
struct Wave {
  R* re;
  R* im;
  Wave from(int64_t numbers) const { return {re + numbers, im + numbers}; }
  // The inverse transform is the transform of real and imaginary parts exchanged.
  Wave exchanged() const { return {im, re}; }
};

template <class V>
struct Pair {
  V re, im;
};
template <class V>
inline Pair<V> operator+(Pair<V> a, Pair<V> b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
inline Pair<V> operator-(Pair<V> a, Pair<V> b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
inline Pair<V> product(Pair<V> a, V re, V im) {
  return {fusedAdd(a.re, re, -(a.im * im)), fusedAdd(a.re, im, a.im * re)};
}
// a times -i.
template <class V>
inline Pair<V> turned(Pair<V> a) {
  return {a.im, -a.re};
}

template <int W, class R>
inline Pair<Lanes<R, W>> get(Wave<R> x, int64_t k) {
  return {get<W>(x.re + k * W), get<W>(x.im + k * W)};
}
template <int W, class R>
inline void put(Wave<R> x, int64_t k, Pair<Lanes<R, W>> v) {
  put<W>(x.re + k * W, v.re);
  put<W>(x.im + k * W, v.im);
}

// Rows become columns: row[i][j] and row[j][i] change places.
inline void transpose(Lanes<float, 8> (&r)[8]) {
  Lanes<float, 8> a[8], b[8];
  for (int i = 0; i < 8; i += 2) {
    a[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    a[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    b[i] = _mm256_shuffle_ps(a[i], a[i + 2], 0x44);
    b[i + 1] = _mm256_shuffle_ps(a[i], a[i + 2], 0xee);
    b[i + 2] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0x44);
    b[i + 3] = _mm256_shuffle_ps(a[i + 1], a[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    r[i] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x20);
    r[i + 4] = _mm256_permute2f128_ps(b[i], b[i + 4], 0x31);
  }
}
inline void transpose(Lanes<double, 4> (&r)[4]) {
  const Lanes<double, 4> a = _mm256_unpacklo_pd(r[0], r[1]), b = _mm256_unpackhi_pd(r[0], r[1]),
                         c = _mm256_unpacklo_pd(r[2], r[3]), d = _mm256_unpackhi_pd(r[2], r[3]);
  r[0] = _mm256_permute2f128_pd(a, c, 0x20);
  r[1] = _mm256_permute2f128_pd(b, d, 0x20);
  r[2] = _mm256_permute2f128_pd(a, c, 0x31);
  r[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

// Of two vectors re, im, re, im, …: the real parts and the imaginary ones; and back.
inline Pair<Lanes<float, 8>> parted(Lanes<float, 8> low, Lanes<float, 8> high) {
  return {__builtin_shufflevector(low, high, 0, 2, 4, 6, 8, 10, 12, 14),
          __builtin_shufflevector(low, high, 1, 3, 5, 7, 9, 11, 13, 15)};
}
inline Pair<Lanes<double, 4>> parted(Lanes<double, 4> low, Lanes<double, 4> high) {
  return {__builtin_shufflevector(low, high, 0, 2, 4, 6),
          __builtin_shufflevector(low, high, 1, 3, 5, 7)};
}
inline Pair<Lanes<float, 8>> joined(Lanes<float, 8> re, Lanes<float, 8> im) {
  return {__builtin_shufflevector(re, im, 0, 8, 1, 9, 2, 10, 3, 11),
          __builtin_shufflevector(re, im, 4, 12, 5, 13, 6, 14, 7, 15)};
}
inline Pair<Lanes<double, 4>> joined(Lanes<double, 4> re, Lanes<double, 4> im) {
  return {__builtin_shufflevector(re, im, 0, 4, 1, 5), __builtin_shufflevector(re, im, 2, 6, 3, 7)};
}

}  // namespace wick::fft
