// One pass of a discrete Fourier transform in Stockham's order: s transforms of length L = p m that
// stand side by side become p times as many of length m.
//
//   y[s (p q + k) + r] = w_L^(q k) sum over j of x[s (q + m j) + r] w_p^(j k)
//
// with w_n = exp(-2 pi i / n), q < m, r < s, j and k < p. The result is in order when all passes
// are done. `twiddles` holds w_L^(q k) for k = 1 … p - 1, one q after the other.
#pragma once

#include "core/budget.h"
#include "runtime/kernels/fft_lanes.h"

namespace wick::fft {

constexpr int64_t kLargestFactor = 61;

// Small transforms, in place.
template <class V>
inline void small2(Pair<V>* x) {
  const Pair<V> a = x[0], b = x[1];
  x[0] = a + b;
  x[1] = a - b;
}
template <class V, class R>
inline void small3(Pair<V>* x, R) {
  const V half = R(-0.5) - V{}, sine = R(0.86602540378443864676) - V{};
  const Pair<V> sum = x[1] + x[2], less = x[1] - x[2], a = x[0];
  const Pair<V> middle = {fusedAdd(sum.re, half, a.re), fusedAdd(sum.im, half, a.im)};
  const Pair<V> side = turned(Pair<V>{less.re * sine, less.im * sine});
  x[0] = a + sum;
  x[1] = middle + side;
  x[2] = middle - side;
}
template <class V>
inline void small4(Pair<V>* x) {
  const Pair<V> a = x[0] + x[2], b = x[0] - x[2], c = x[1] + x[3], d = turned(x[1] - x[3]);
  x[0] = a + c;
  x[1] = b + d;
  x[2] = a - c;
  x[3] = b - d;
}
template <class V, class R>
inline void small5(Pair<V>* x, R) {
  const V c1 = R(0.30901699437494742410) - V{}, c2 = R(-0.80901699437494742410) - V{},
          s1 = R(0.95105651629515357212) - V{}, s2 = R(0.58778525229247312917) - V{};
  const Pair<V> a = x[0], p1 = x[1] + x[4], m1 = x[1] - x[4], p2 = x[2] + x[3], m2 = x[2] - x[3];
  const auto mix = [&](Pair<V> u, V cu, Pair<V> v, V cv) {
    return Pair<V>{fusedAdd(u.re, cu, fusedAdd(v.re, cv, a.re)),
                   fusedAdd(u.im, cu, fusedAdd(v.im, cv, a.im))};
  };
  const Pair<V> e1 = mix(p1, c1, p2, c2), e2 = mix(p1, c2, p2, c1);
  const Pair<V> f1 =
      turned(Pair<V>{fusedAdd(m1.re, s1, m2.re * s2), fusedAdd(m1.im, s1, m2.im * s2)});
  const Pair<V> f2 =
      turned(Pair<V>{fusedAdd(m1.re, s2, -(m2.re * s1)), fusedAdd(m1.im, s2, -(m2.im * s1))});
  x[0] = a + p1 + p2;
  x[1] = e1 + f1;
  x[4] = e1 - f1;
  x[2] = e2 + f2;
  x[3] = e2 - f2;
}
template <class V, class R>
inline void small8(Pair<V>* x, R) {
  const V root = R(0.70710678118654752440) - V{};
  Pair<V> even[4] = {x[0], x[2], x[4], x[6]}, odd[4] = {x[1], x[3], x[5], x[7]};
  small4(even);
  small4(odd);
  odd[1] = {(odd[1].re + odd[1].im) * root, (odd[1].im - odd[1].re) * root};
  odd[2] = turned(odd[2]);
  odd[3] = {(odd[3].im - odd[3].re) * root, -(odd[3].re + odd[3].im) * root};
  for (int k = 0; k < 4; ++k) {
    x[k] = even[k] + odd[k];
    x[k + 4] = even[k] - odd[k];
  }
}

template <int P, class V, class R>
inline void smallTransform(Pair<V>* x, R tag) {
  if constexpr (P == 2) small2(x);
  if constexpr (P == 3) small3(x, tag);
  if constexpr (P == 4) small4(x);
  if constexpr (P == 5) small5(x, tag);
  if constexpr (P == 8) small8(x, tag);
}

template <int P, int W, class R>
void pass(Wave<R> x, Wave<R> y, int64_t m, int64_t s, const R* twiddles) {
  using V = Lanes<R, W>;
  Pace pace;
  for (int64_t q = 0; q < m; ++q, twiddles += 2 * (P - 1)) {
    pace.step(P * s);
    V re[P], im[P];
    for (int k = 1; k < P; ++k) {
      re[k] = spread<W>(twiddles[2 * k - 2]);
      im[k] = spread<W>(twiddles[2 * k - 1]);
    }
    for (int64_t r = 0; r < s; ++r) {
      Pair<V> at[P];
      for (int j = 0; j < P; ++j) at[j] = get<W>(x, s * (q + m * j) + r);
      smallTransform<P>(at, R());
      // Behind the last pass nothing is left to turn.
      if (m > 1) {
        for (int k = 1; k < P; ++k) at[k] = product(at[k], re[k], im[k]);
      }
      for (int k = 0; k < P; ++k) put<W, R>(y, s * (P * q + k) + r, at[k]);
    }
  }
}

// For any odd p. `roots` holds w_p^k, k < p.
template <int W, class R>
void passOfAny(int64_t p, Wave<R> x, Wave<R> y, int64_t m, int64_t s, const R* twiddles,
               const R* roots) {
  using V = Lanes<R, W>;
  const int64_t half = (p - 1) / 2;
  Pair<V> sums[kLargestFactor / 2 + 1], lesses[kLargestFactor / 2 + 1];
  Pace pace;
  for (int64_t q = 0; q < m; ++q, twiddles += 2 * (p - 1)) {
    for (int64_t r = 0; r < s; ++r) {
      pace.step(p * half);
      const Pair<V> first = get<W>(x, s * q + r);
      Pair<V> total = first;
      for (int64_t j = 1; j <= half; ++j) {
        const Pair<V> a = get<W>(x, s * (q + m * j) + r), b = get<W>(x, s * (q + m * (p - j)) + r);
        sums[j] = a + b;
        lesses[j] = a - b;
        total = total + sums[j];
      }
      put<W, R>(y, s * p * q + r, total);
      for (int64_t k = 1; k <= half; ++k) {
        Pair<V> even = first, odd = {V{}, V{}};
        for (int64_t j = 1, i = k; j <= half; ++j, i = i + k < p ? i + k : i + k - p) {
          const V c = spread<W>(roots[2 * i]), d = spread<W>(-roots[2 * i + 1]);
          even = {fusedAdd(sums[j].re, c, even.re), fusedAdd(sums[j].im, c, even.im)};
          odd = {fusedAdd(lesses[j].re, d, odd.re), fusedAdd(lesses[j].im, d, odd.im)};
        }
        odd = turned(odd);
        const R *w = twiddles + 2 * (k - 1), *v = twiddles + 2 * (p - k - 1);
        put<W, R>(y, s * (p * q + k) + r, product(even + odd, spread<W>(w[0]), spread<W>(w[1])));
        put<W, R>(y, s * (p * q + p - k) + r,
                  product(even - odd, spread<W>(v[0]), spread<W>(v[1])));
      }
    }
  }
}

}  // namespace wick::fft
