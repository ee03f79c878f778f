// convert<To>(from): one element from one dtype's C++ type to another's, as PyTorch converts.
// Every input has a defined result: a float that no integer holds becomes the integer that x86's
// conversion instruction gives (the minimum of int32 for results of up to 32 bits, the minimum of
// int64 otherwise), NaN included; anything to bool is "not zero"; a complex number to a real one is
// its real part.
#pragma once

#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/half.h"

namespace wick {

template <class T>
inline constexpr bool kIsComplex = false;
template <class T>
inline constexpr bool kIsComplex<std::complex<T>> = true;
template <class T>
inline constexpr bool kIsReducedFloat = std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>;

// Truncation toward zero; values that do not fit (NaN among them) give the minimum of Int.
template <class Int, class Float>
inline Int truncateTo(Float v) {
  constexpr Float kLow = static_cast<Float>(std::numeric_limits<Int>::min());
  // -kLow is max + 1, which every Float represents exactly.
  return v >= kLow && v < -kLow ? static_cast<Int>(v) : std::numeric_limits<Int>::min();
}

template <class To, class From>
inline To convert(From v) {
  if constexpr (std::is_same_v<To, From>) {
    return v;
  } else if constexpr (kIsReducedFloat<From>) {
    return convert<To>(static_cast<float>(v));
  } else if constexpr (kIsComplex<From>) {
    if constexpr (kIsComplex<To>) {
      using R = typename To::value_type;
      return To(static_cast<R>(v.real()), static_cast<R>(v.imag()));
    } else if constexpr (std::is_same_v<To, bool>) {
      return v.real() != 0 || v.imag() != 0;
    } else {
      return convert<To>(v.real());
    }
  } else if constexpr (kIsComplex<To>) {
    return To(convert<typename To::value_type>(v), 0);
  } else if constexpr (std::is_same_v<To, bool>) {
    return v != From(0);
  } else if constexpr (kIsReducedFloat<To>) {
    return To(static_cast<float>(v));
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    if constexpr (sizeof(To) == 8 || std::is_same_v<To, uint8_t>) {
      return static_cast<To>(truncateTo<int64_t>(v));
    } else {
      return static_cast<To>(truncateTo<int32_t>(v));
    }
  } else {
    return static_cast<To>(v);
  }
}

}  // namespace wick
