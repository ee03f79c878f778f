// Sums and products of elements as programs see them: integers wrap, which signed ones do not do by
// themselves.
#pragma once

#include <cstdint>
#include <type_traits>

namespace wick {

template <class T>
T wrappedSum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a + b);
  }
}

template <class T>
T wrappedProduct(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  } else {
    return static_cast<T>(a * b);
  }
}

}  // namespace wick
