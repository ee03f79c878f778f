// Logarithms of sums of complex numbers, with the care that small and infinite terms need.
#pragma once

#include <cmath>
#include <limits>

namespace wick::ops {

// log(1 + z).
struct ComplexLog1p {
  template <class C>
  C operator()(C z) const {
    using T = typename C::value_type;
    const T x = z.real(), y = z.imag();
    const T angle = std::atan2(y, x + 1);
    if (!(std::abs(z) < T(0.5))) return {std::log(std::hypot(x + 1, y)), angle};
    const T r = x * (2 + x) + y * y;
    return {r == 0 ? x : std::log1p(r) / 2, angle};
  }
};

// log(exp(a) + exp(b)); the number of the larger real part is taken out of the sum.
struct ComplexLogAddExp {
  template <class C>
  C operator()(C a, C b) const {
    using T = typename C::value_type;
    const auto isNan = [](C z) { return std::isnan(z.real()) || std::isnan(z.imag()); };
    if (isNan(a) || isNan(b)) {
      return {std::numeric_limits<T>::quiet_NaN(), std::numeric_limits<T>::quiet_NaN()};
    }
    const C low = a.real() < b.real() ? a : b, high = a.real() < b.real() ? b : a;
    if (!std::isfinite(low.real()) && low.real() == high.real()) {
      // The angle of what is nothing means nothing.
      if (low.real() < 0) return low;
      return std::log(std::exp(low) + std::exp(high));
    }
    return ComplexLog1p()(std::exp(low - high)) + high;
  }
};

}  // namespace wick::ops
