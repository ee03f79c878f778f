// The two 16-bit floating-point element types. Arithmetic happens in float: a Half or BFloat16
// converts to float exactly, and a float rounds to nearest even on the way back.
#pragma once

#ifdef __F16C__
#include <immintrin.h>
#endif

#include <bit>
#include <cstdint>

namespace wick {

namespace detail {
// For programs that are compiled for processors without an instruction for it.
__attribute__((visibility("default"))) uint16_t halfFromFloat(float f);
__attribute__((visibility("default"))) float floatFromHalf(uint16_t bits);
}  // namespace detail

struct Half {
  uint16_t bits = 0;
  Half() = default;
#ifdef __F16C__
  Half(float f) : bits(_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT)) {}
  operator float() const {
    return _cvtsh_ss(bits);
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
