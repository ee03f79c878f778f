// Random numbers of models that were compiled ahead of time, in the order and with the arithmetic of PyTorch's CPU generator.
// C++17.
#ifndef WICK_AOT_RANDOM_H
#define WICK_AOT_RANDOM_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "engine_parts.h"
#include "wick_aot.h"

namespace wick_aot {
namespace random {

using Generator = wick_aot_generator;

// The next 624 numbers of the twister, which lie untempered in the state.
inline void twist(Generator& g) {
  constexpr int kSize = 624, kFar = 397;
  const auto mixed = [&](int i, int next, int far) {
    const uint32_t y = (g.words[i] & 0x80000000u) | (g.words[next] & 0x7fffffffu);
    g.words[i] = g.words[far] ^ (y >> 1) ^ ((g.words[next] & 1u) * 0x9908b0dfu);
  };
  for (int i = 0; i < kSize - kFar; ++i) mixed(i, i + 1, i + kFar);
  for (int i = kSize - kFar; i < kSize - 1; ++i) mixed(i, i + 1, i + kFar - kSize);
  mixed(kSize - 1, 0, kFar - 1);
  g.next = 0;
}
inline uint32_t next32(Generator& g) {
  if (g.next == 624) twist(g);
  uint32_t y = g.words[g.next++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9d2c5680u;
  y ^= (y << 15) & 0xefc60000u;
  return y ^ (y >> 18);
}
inline uint64_t next64(Generator& g) {
  const uint64_t high = next32(g);
  return high << 32 | next32(g);
}
// [0, 1), with 24 bits in float and 53 in double.
template <class T>
inline T fraction(Generator& g) {
  if constexpr (std::is_same<T, double>::value) {
    return static_cast<double>(next64(g) & ((uint64_t{1} << 53) - 1)) * 0x1p-53;
  } else {
    return static_cast<float>(next32(g) & 0xFFFFFFu) * 0x1p-24f;
  }
}
constexpr double kPi = 3.141592653589793;
inline double normal(Generator& g) {
  if (g.has_normal != 0) {
    g.has_normal = 0;
    return g.normal;
  }
  const double u1 = fraction<double>(g), u2 = fraction<double>(g);
  const double r = std::sqrt(-2.0 * std::log1p(-u2)), theta = 2.0 * kPi * u1;
  g.normal = r * std::sin(theta);
  g.has_normal = 1;
  return r * std::cos(theta);
}

inline void begin(Generator* g, int64_t seed) {
  wick_aot_seed_generator(g, static_cast<uint64_t>(seed));
}

// From numbers[0] up to numbers[1].
template <class T>
inline void uniformNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  const T low = static_cast<T>(numbers[0]), high = static_cast<T>(numbers[1]);
  for (int64_t i = 0; i < count; ++i) to[i] = fraction<T>(*g) * (high - low) + low;
}
// With the mean numbers[0] and the deviation numbers[1], one by one.
template <class T>
inline void normalNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(normal(*g) * numbers[1] + numbers[0]);
  }
}
// The same, sixteen at a time; a rest that fills no block draws the last sixteen again.
inline void normalBlocks(Generator* g, const double* numbers, double* to, int64_t count) {
  const double mean = numbers[0], deviation = numbers[1];
  const auto block = [&](double* p) {
    for (int j = 0; j < 8; ++j) {
      const double u1 = 1 - p[j], u2 = p[j + 8];
      const double radius = std::sqrt(-2.0 * std::log(u1)), theta = 2 * kPi * u2;
      p[j] = radius * std::cos(theta) * deviation + mean;
      p[j + 8] = radius * std::sin(theta) * deviation + mean;
    }
  };
  for (int64_t i = 0; i < count; ++i) to[i] = fraction<double>(*g);
  for (int64_t i = 0; i + 16 <= count; i += 16) block(to + i);
  if (count % 16 == 0) return;
  for (int64_t i = count - 16; i < count; ++i) to[i] = fraction<double>(*g);
  block(to + count - 16);
}
// `range` numbers from `low` on.
template <class T>
inline void integers(Generator* g, T* to, int64_t count, int64_t low, int64_t range) {
  const auto width = static_cast<uint64_t>(range);  // 0: all numbers of 64 bits
  const bool wide = width == 0 || width >= uint64_t{1} << 32;
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t bits = wide ? next64(*g) : next32(*g), part = width == 0 ? bits : bits % width;
    to[i] = static_cast<T>(static_cast<int64_t>(part + static_cast<uint64_t>(low)));
  }
}
// From zero to the largest number of the type up to which there are no gaps.
template <class T>
inline void wholeRange(Generator* g, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_same<T, int64_t>::value) {
      to[i] = static_cast<int64_t>(next64(*g) % (uint64_t{1} << 63));
    } else if constexpr (std::is_same<T, double>::value) {
      to[i] = static_cast<double>(next64(*g) % ((uint64_t{1} << 53) + 1));
    } else if constexpr (std::is_integral<T>::value) {
      to[i] =
          static_cast<T>(next32(*g) % (static_cast<uint64_t>(std::numeric_limits<T>::max()) + 1));
    } else {
      to[i] = static_cast<T>(next32(*g) % ((uint64_t{1} << 24) + 1));
    }
  }
}
// One where a number is below the chance *p, else zero.
template <class T>
inline void chances(Generator* g, const double* p, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(fraction<double>(*g) < *p ? 1 : 0);
}
// The same with a chance for each; false when one is not from 0 to 1.
template <class T, class P>
inline bool chancesOf(Generator* g, const P* of, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    if (!(of[i] >= 0 && of[i] <= 1)) return false;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = static_cast<T>(fraction<P>(*g) < of[i] ? 1 : 0);
  return true;
}
template <class T>
inline void exponentialNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(-1.0 / numbers[0] * std::log1p(-fraction<double>(*g)));
  }
}
template <class T>
inline void cauchyNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(numbers[0] + numbers[1] * std::tan(kPi * (fraction<double>(*g) - 0.5)));
  }
}
// A whole number as an element. One that does not fit becomes what the engine makes of it: the low bits of
// an integer of 32 or 64 bits, or of the least one.
template <class T>
inline T elementOf(double whole) {
  if constexpr (std::is_integral<T>::value) {
    constexpr bool kWide = sizeof(T) == 8 || std::is_same<T, uint8_t>::value;
    using Integer = std::conditional_t<kWide, int64_t, int32_t>;
    constexpr Integer kLeast = std::numeric_limits<Integer>::min();
    constexpr double kLow = static_cast<double>(kLeast);
    return static_cast<T>(whole >= kLow && whole < -kLow ? static_cast<Integer>(whole) : kLeast);
  } else {
    return static_cast<T>(whole);
  }
}
template <class T>
inline void geometricNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = elementOf<T>(std::ceil(std::log(fraction<double>(*g)) / std::log(1 - numbers[0])));
  }
}
template <class T>
inline void logNormalNumbers(Generator* g, const double* numbers, T* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    to[i] = static_cast<T>(std::exp(normal(*g) * numbers[1] + numbers[0]));
  }
}
inline void permutation(Generator* g, int64_t* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) to[i] = i;
  for (int64_t i = 0; i + 1 < count; ++i) {
    std::swap(to[i], to[i + static_cast<int64_t>(next32(*g) % static_cast<uint64_t>(count - i))]);
  }
}

// Positions in rows of weights, each as likely as its weight: with `again` any number of times, else each once. `keys` and
// `order` hold as many numbers as a row. False when there is nothing to draw by.
template <class T>
inline bool positionsByWeight(Generator* g, const T* weights, int64_t* to, T* keys, int64_t* order,
                              int64_t rows, int64_t n, int64_t samples, int64_t again) {
  for (int64_t r = 0; r < rows; ++r) {
    const T* const row = weights + r * n;
    int64_t* const drawn = to + r * samples;
    bool wrong = false, some = false;
    for (int64_t i = 0; i < n; ++i) {
      wrong = wrong || !(row[i] >= 0) || !(row[i] <= std::numeric_limits<T>::max());
      some = some || row[i] > 0;
    }
    if (wrong || !some) return false;
    if (again == 0) {
      for (int64_t i = 0; i < n; ++i) {
        keys[i] = row[i] / static_cast<T>(-std::log1p(-fraction<double>(*g)));
        order[i] = i;
      }
      std::sort(order, order + n, [keys](int64_t a, int64_t b) {
        return keys[a] > keys[b] || (keys[a] == keys[b] && a < b);
      });
      std::copy(order, order + samples, drawn);
      continue;
    }
    T total = 0;
    for (int64_t i = 0; i < n; ++i) keys[i] = total += row[i];
    if (samples > n / 16) {
      for (int64_t i = 0; i < n; ++i) keys[i] /= total;
      total = 1;
    }
    for (int64_t s = 0; s < samples; ++s) {
      drawn[s] = wick::order::placeOfShare(keys, n, total, fraction<double>(*g));
    }
  }
  return true;
}

}  // namespace random
}  // namespace wick_aot

#endif
