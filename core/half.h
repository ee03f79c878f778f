// The two 16-bit floating-point element types. Arithmetic happens in float: a Half or BFloat16
// converts to float exactly, and a float rounds to nearest even on the way back.
#pragma once

#include <immintrin.h>

#include <bit>
#include <cstdint>

namespace wick {

struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float f) : bits(_cvtss_sh(f, _MM_FROUND_TO_NEAREST_INT)) {}
  operator float() const { return _cvtsh_ss(bits); }
};

struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float f) {
    uint32_t u = std::bit_cast<uint32_t>(f);
    if (f != f) {
      bits = 0x7fc0;  // the quiet NaN, whatever the payload was
    } else {
      bits = static_cast<uint16_t>((u + 0x7fff + ((u >> 16) & 1)) >> 16);
    }
  }
  operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

}  // namespace wick
