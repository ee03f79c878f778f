// The two 16-bit floating-point element types. Arithmetic happens in float: a Half or BFloat16
// converts to float exactly, and a float rounds to nearest even on the way back.
#pragma once

#include <bit>
#include <cstdint>

namespace wick {

namespace detail {
// For programs that are compiled for processors without an instruction for it.
__attribute__((visibility("default"))) uint16_t halfFromFloat(float f);
__attribute__((visibility("default"))) float floatFromHalf(uint16_t bits);
#ifdef __F16C__
// The instructions by the compilers' own names: <immintrin.h> would make each file that includes a tensor
// read 40,000 lines.
using FourFloats [[gnu::vector_size(16)]] = float;
using EightShorts [[gnu::vector_size(16)]] = short;
inline uint16_t roundToHalf(float f) {
  constexpr int kToNearestEven = 0;
  return static_cast<uint16_t>(__builtin_ia32_vcvtps2ph(FourFloats{f, 0, 0, 0}, kToNearestEven)[0]);
}
inline float widenHalf(uint16_t bits) {
  return __builtin_ia32_vcvtph2ps(EightShorts{static_cast<short>(bits), 0, 0, 0, 0, 0, 0, 0})[0];
}
#endif
}  // namespace detail

struct Half {
  uint16_t bits = 0;
  Half() = default;
#ifdef __F16C__
  Half(float f) : bits(detail::roundToHalf(f)) {}
  operator float() const {
    return detail::widenHalf(bits);
  }
#else
  Half(float f) : bits(detail::halfFromFloat(f)) {}
  operator float() const {
    return detail::floatFromHalf(bits);
  }
#endif
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float f) {
    // Of integers alone, so that loops over it become vectors.
    const uint32_t u = std::bit_cast<uint32_t>(f);
    const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
    const bool is_nan = (u & 0x7fffffff) > 0x7f800000;
    bits = static_cast<uint16_t>(is_nan ? 0x7fc0 : rounded);  // the quiet NaN, whatever it was
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace wick
