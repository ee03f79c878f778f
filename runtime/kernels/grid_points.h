// Where the samples of a grid lie, and how they change with it, point by point. The text is also that of
// kernels on devices (runtime/cuda/grid_sampler.cpp), so it uses little of the standard library.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace wick::grid {

enum Interpolation : int64_t { kBilinear = 0, kNearest = 1, kBicubic = 2 };
enum Padding : int64_t { kZeros = 0, kBorder = 1, kReflection = 2 };

// The roundings and what becomes of NaN and infinities are PyTorch's, which computes in two
// dimensions otherwise than in three.
template <class T>
T unnormalize(T at, int64_t size, int64_t spatial, bool align_corners) {
  const T n = static_cast<T>(size), last = static_cast<T>(size - 1), one = T(1), two = T(2);
  if (spatial == 2) {
    return align_corners ? (at + one) * (last / two) : (at + one) * (n / two) - T(0.5);
  }
  return align_corners ? (at + one) / two * last : ((at + one) * n - one) / two;
}

template <class T>
T reflect2d(T at, int64_t size, bool align_corners) {
  const int64_t twice_span = align_corners ? 2 * (size - 1) : 2 * size;
  if (twice_span == 0) return T(0);
  const T low = align_corners ? T(0) : T(-0.5), period = static_cast<T>(twice_span);
  using std::abs, std::trunc;
  const T distance = abs(at - low);
  const T extra = distance - trunc(distance / period) * period;
  return std::min(extra, period - extra) + low;
}

// Mirrored at the ends until it lies between low / 2 and high / 2.
template <class T>
T reflect(T at, int64_t twice_low, int64_t twice_high) {
  if (twice_low == twice_high) return T(0);
  T low = static_cast<T>(twice_low) / 2, span = static_cast<T>(twice_high - twice_low) / 2;
  at = std::abs(at - low);
  T extra = std::fmod(at, span);
  return std::fmod(std::floor(at / span), T(2)) == 0 ? extra + low : span - extra + low;
}

// NaN becomes 0.
template <class T>
T clip(T at, int64_t size) {
  return std::min(static_cast<T>(size - 1), std::max(T(0), at));
}
// Infinite and NaN places become finite ones that are outside.
template <class T>
T finite(T at) {
  return at > T(INT32_MAX - 1) || at < T(INT32_MIN) || at != at ? T(-100) : at;
}

template <class T>
T place(T at, int64_t size, int64_t spatial, int64_t padding, bool align_corners) {
  if (padding == kReflection && spatial == 2) at = reflect2d(at, size, align_corners);
  if constexpr (std::is_arithmetic_v<T>) {  // what rounds each step has two dimensions
    if (padding == kReflection && spatial == 3) {
      at = align_corners ? reflect(at, 0, 2 * (size - 1)) : reflect(at, -1, 2 * size - 1);
    }
    if (spatial == 3) return finite(padding == kZeros ? at : clip(at, size));
  }
  return padding == kZeros ? at : clip(at, size);
}

template <class T>
T sourceIndex(T at, int64_t size, int64_t spatial, int64_t padding, bool align_corners) {
  return place(unnormalize(at, size, spatial, align_corners), size, spatial, padding,
               align_corners);
}

// Of two that are as near, the even one, and in three dimensions the one farther from zero.
template <class T>
T nearestPlace(T at, int64_t spatial) {
  if constexpr (std::is_arithmetic_v<T>) {
    if (spatial == 3) return std::round(at);
  }
  using std::nearbyint;
  return nearbyint(at);
}

template <class T>
int64_t toIndex(T whole) {
  if constexpr (std::is_arithmetic_v<T>) {
    return static_cast<int64_t>(finite(whole));
  } else {
    return toIndex(static_cast<float>(whole));
  }
}

// The weights of four neighbours around a place that lies t behind the second one.
template <class T>
void cubicWeights(T t, T (&to)[4]) {
  const T a = T(-0.75), one = T(1), two = T(2);
  const auto near = [&](T x) { return ((a + two) * x - (a + T(3))) * x * x + one; };
  const auto far = [&](T x) {
    return ((a * x - T(5) * a) * x + T(8) * a) * x - T(4) * a;  // NaN of NaN
  };
  to[0] = far(t + one);
  to[1] = near(t);
  to[2] = near(one - t);
  to[3] = far(two - t);
}

// Source elements and weights that make one sample: up to 8 of them, or four rows of four, whose
// sums have weights of their own.
template <class T>
struct Sample {
  int64_t count = 0;
  int64_t index[16];  // in rows, -1 is an element outside, which is zero
  T weight[16];
  T down[4];  // of the rows
  void add(int64_t i, T w) {
    index[count] = i;
    weight[count++] = w;
  }
  // An element outside is zero, and may be multiplied by what is no number.
  void addOutside(T w) {
    using std::isfinite;
    if (!isfinite(w)) add(0, T(std::numeric_limits<float>::quiet_NaN()));
  }
  template <class E>
  T valueOf(const E* plane) const {
    T sum = T(0);
    if (count == 4) {
      for (int64_t k = 0; k < 4; ++k) sum += T(plane[index[k]]) * weight[k];
    } else if (count < 16) {
      for (int64_t k = 0; k < count; ++k) sum += T(plane[index[k]]) * weight[k];
    } else {
      for (int64_t j = 0; j < 4; ++j) {
        T row = T(0);
        for (int64_t k = 4 * j; k < 4 * j + 4; ++k) {
          row += (index[k] < 0 ? T(0) : T(plane[index[k]])) * weight[k];
        }
        sum += row * down[j];
      }
    }
    return sum;
  }
};

struct Extent {
  int64_t d, h, w;
};

bool isInside(int64_t i, int64_t n) {
  return i >= 0 && i < n;
}

template <class T>
Sample<T> cubicSampleAt(T grid_x, T grid_y, const Extent& e, int64_t padding, bool align) {
  using std::floor;
  Sample<T> s;
  const T x = unnormalize(grid_x, e.w, 2, align), y = unnormalize(grid_y, e.h, 2, align);
  const T fx = floor(x), fy = floor(y);
  T across[4];
  cubicWeights(x - fx, across);
  cubicWeights(y - fy, s.down);
  int64_t columns[4];
  for (int64_t i = 0; i < 4; ++i) {
    columns[i] = toIndex(place(fx + T(i - 1), e.w, 2, padding, align));
  }
  for (int64_t j = 0; j < 4; ++j) {
    const int64_t iy = toIndex(place(fy + T(j - 1), e.h, 2, padding, align));
    for (int64_t i = 0; i < 4; ++i) {
      const bool inside = isInside(columns[i], e.w) && isInside(iy, e.h);
      s.add(inside ? iy * e.w + columns[i] : -1, across[i]);
    }
  }
  return s;
}

template <class T, class E>
Sample<T> sampleAt(const E* grid, int64_t spatial, const Extent& e, int64_t interpolation,
                   int64_t padding, bool align) {
  using std::floor;
  if (interpolation == kBicubic) return cubicSampleAt(T(grid[0]), T(grid[1]), e, padding, align);
  Sample<T> s;
  const T x = sourceIndex(T(grid[0]), e.w, spatial, padding, align);
  const T y = sourceIndex(T(grid[1]), e.h, spatial, padding, align);
  const T z = spatial == 3 ? sourceIndex(T(grid[2]), e.d, spatial, padding, align) : T(0);
  if (interpolation == kNearest) {
    const int64_t ix = toIndex(nearestPlace(x, spatial));
    const int64_t iy = toIndex(nearestPlace(y, spatial));
    const int64_t iz = toIndex(nearestPlace(z, spatial));
    if (isInside(ix, e.w) && isInside(iy, e.h) && isInside(iz, e.d)) {
      s.add((iz * e.h + iy) * e.w + ix, T(1));
    }
    return s;
  }
  const T fx = floor(x), fy = floor(y), fz = floor(z), one = T(1);
  for (int64_t corner = 0; corner < (spatial == 3 ? 8 : 4); ++corner) {
    const int64_t cx = corner & 1, cy = corner >> 1 & 1, cz = corner >> 2;
    const int64_t ix = toIndex(fx) + cx, iy = toIndex(fy) + cy, iz = toIndex(fz) + cz;
    const T wx = cx ? x - fx : one - (x - fx), wy = cy ? y - fy : one - (y - fy);
    const T wz = spatial == 2 ? one : cz ? z - fz : one - (z - fz);
    const T w = wx * wy * wz;
    if (isInside(ix, e.w) && isInside(iy, e.h) && isInside(iz, e.d)) {
      s.add((iz * e.h + iy) * e.w + ix, w);
    } else if (spatial == 2) {
      s.addOutside(w);
    }
  }
  return s;
}

template <class T>
T cubicSlope(T x) {
  const T a = T(-0.75), size = std::abs(x);
  const T slope = size <= 1  ? (3 * (a + 2) * size - 2 * (a + 3)) * size
                  : size < 2 ? (3 * a * size - 10 * a) * size + 8 * a
                             : T(0);
  return x < 0 ? -slope : slope;
}

// How fast sourceIndex() changes with the grid; at the ends of what is clipped not at all.
template <class T>
T sourceSlope(T at, int64_t size, int64_t spatial, int64_t padding, bool align) {
  T slope = static_cast<T>(align ? size - 1 : size) / 2;
  if (padding == kZeros) return slope;
  T place = unnormalize(at, size, spatial, align);
  if (padding == kReflection) {
    const int64_t twice_span = align ? 2 * (size - 1) : 2 * size;
    if (twice_span == 0) return T(0);
    const T low = align ? T(0) : T(-0.5), span = static_cast<T>(twice_span) / 2;
    const bool back = std::fmod(std::floor(std::abs(place - low) / span), T(2)) != 0;
    if ((place < low) != back) slope = -slope;
    place = spatial == 2 ? reflect2d(place, size, align)
            : align      ? reflect(place, 0, 2 * (size - 1))
                         : reflect(place, -1, 2 * size - 1);
  }
  return place <= 0 || place >= static_cast<T>(size - 1) ? T(0) : slope;
}

// The source elements of one sample that are inside, and how their weights change along x, y, z.
template <class T>
struct Slopes {
  int64_t count = 0;
  int64_t index[16];
  T slope[16][3];
  void add(int64_t i, T x, T y, T z) {
    index[count] = i;
    slope[count][0] = x;
    slope[count][1] = y;
    slope[count++][2] = z;
  }
};

template <class T>
Slopes<T> slopesAt(const T* grid, int64_t spatial, const Extent& e, int64_t interpolation,
                   int64_t padding, bool align) {
  Slopes<T> s;
  if (interpolation == kNearest) return s;
  if (interpolation == kBicubic) {
    const T x = unnormalize(grid[0], e.w, 2, align), y = unnormalize(grid[1], e.h, 2, align);
    const T fx = std::floor(x), fy = std::floor(y);
    const T sx = static_cast<T>(align ? e.w - 1 : e.w) / 2;
    const T sy = static_cast<T>(align ? e.h - 1 : e.h) / 2;
    T across[4], down[4];
    cubicWeights(x - fx, across);
    cubicWeights(y - fy, down);
    for (int64_t j = -1; j <= 2; ++j) {
      for (int64_t i = -1; i <= 2; ++i) {
        const T tx = x - fx - static_cast<T>(i), ty = y - fy - static_cast<T>(j);
        const T wx = across[i + 1], wy = down[j + 1];
        const int64_t ix = toIndex(place(fx + static_cast<T>(i), e.w, 2, padding, align));
        const int64_t iy = toIndex(place(fy + static_cast<T>(j), e.h, 2, padding, align));
        if (!isInside(ix, e.w) || !isInside(iy, e.h)) continue;
        s.add(iy * e.w + ix, cubicSlope(tx) * wy * sx, wx * cubicSlope(ty) * sy, T(0));
      }
    }
    return s;
  }
  const T x = sourceIndex(grid[0], e.w, spatial, padding, align);
  const T y = sourceIndex(grid[1], e.h, spatial, padding, align);
  const T z = spatial == 3 ? sourceIndex(grid[2], e.d, spatial, padding, align) : T(0);
  const T sx = sourceSlope(grid[0], e.w, spatial, padding, align);
  const T sy = sourceSlope(grid[1], e.h, spatial, padding, align);
  const T sz = spatial == 3 ? sourceSlope(grid[2], e.d, spatial, padding, align) : T(0);
  const T fx = std::floor(x), fy = std::floor(y), fz = std::floor(z);
  for (int64_t corner = 0; corner < (spatial == 3 ? 8 : 4); ++corner) {
    const int64_t cx = corner & 1, cy = corner >> 1 & 1, cz = corner >> 2;
    const int64_t ix = toIndex(fx) + cx, iy = toIndex(fy) + cy, iz = toIndex(fz) + cz;
    if (!isInside(ix, e.w) || !isInside(iy, e.h) || !isInside(iz, e.d)) continue;
    const T wx = cx ? x - fx : 1 - (x - fx), wy = cy ? y - fy : 1 - (y - fy);
    const T wz = spatial == 2 ? T(1) : cz ? z - fz : 1 - (z - fz);
    s.add((iz * e.h + iy) * e.w + ix, (cx ? sx : -sx) * wy * wz, (cy ? sy : -sy) * wx * wz,
          (cz ? sz : -sz) * wx * wy);
  }
  return s;
}

}  // namespace wick::grid
