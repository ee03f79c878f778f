// LaneOps and LaneBuilder: the builders whose values are vectors of eight float32. The compiler
// vectorizes the loops around a PlainBuilder's arithmetic by itself, but makes a memory access per
// element of a lookup in a table, where a permutation of registers would do; the definitions that
// look up run on these instead. They compute the same bits.
#pragma once

#include "codegen/scalar/float_functions.h"
#include "codegen/scalar/float_trigonometry.h"
#include "codegen/scalar/functions.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <cstring>
#include <utility>

namespace wick {

namespace floats {

struct LaneOps {
  static constexpr int kLanes = 8;
  using V = float __attribute__((vector_size(32)));
  using I = int32_t __attribute__((vector_size(32)));
  using Mask = I;  // all bits of a lane or none
  static V constant(float v) { return v - V{}; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V neg(V a) { return -a; }
  static V fma(V a, V b, V c) { return _mm256_fmadd_ps(a, b, c); }
  static V scale(V a, V n) { return scaleInSteps(LaneOps(), a, n); }
  static V abs(V a) { return fromBits(toBits(a) & 0x7fffffff); }
  static V sqrt(V a) { return _mm256_sqrt_ps(a); }
  static V copysign(V a, V b) {
    return fromBits((toBits(a) & 0x7fffffff) | (toBits(b) & ~0x7fffffff));
  }
  static Mask eq(V a, V b) { return a == b; }
  static Mask lt(V a, V b) { return a < b; }
  static Mask le(V a, V b) { return a <= b; }
  static V select(Mask m, V a, V b) { return m ? a : b; }
  static I toBits(V a) { return reinterpret_cast<I>(a); }
  static V fromBits(I a) { return reinterpret_cast<V>(a); }
  static V toFloat(I a) { return _mm256_cvtepi32_ps(reinterpret_cast<__m256i>(a)); }
  static I intConstant(int32_t v) { return v - I{}; }
  // Wrapping.
  static I intAdd(I a, I b) { return reinterpret_cast<I>(unsignedLanes(a) + unsignedLanes(b)); }
  static I intSub(I a, I b) { return reinterpret_cast<I>(unsignedLanes(a) - unsignedLanes(b)); }
  static I intShiftLeft(I a, int n) { return reinterpret_cast<I>(unsignedLanes(a) << n); }
  static I intShiftRight(I a, int n) { return a >> n; }
  static V lookup(FloatTable t, I i) {
    const float* values = valuesOf(t).data();
    const __m256i lanes = reinterpret_cast<__m256i>(i);
    const V low = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values), lanes);
    const V high = _mm256_permutevar8x32_ps(_mm256_loadu_ps(values + kLanes), lanes);
    // The blend looks at the highest bit.
    return _mm256_blendv_ps(low, high, reinterpret_cast<V>(_mm256_slli_epi32(lanes, 28)));
  }

 private:
  using U = uint32_t __attribute__((vector_size(32)));
  static U unsignedLanes(I a) { return reinterpret_cast<U>(a); }
};

}  // namespace floats

// What definitions need of a builder for float32 (see plain_builder.h), as far as those do that ask
// for lanes.
struct LaneBuilder : floats::LaneOps {
  static constexpr bool isComplex() { return false; }
  static constexpr bool isInteger() { return false; }
  static constexpr bool isBool() { return false; }
  static V constant(double v) { return floats::LaneOps::constant(static_cast<float>(v)); }
  static Mask ne(V a, V b) { return a != b; }
  static Mask gt(V a, V b) { return a > b; }
  static Mask ge(V a, V b) { return a >= b; }
  static Mask isNan(V a) { return a != a; }
  static Mask both(Mask a, Mask b) { return a & b; }
  static Mask either(Mask a, Mask b) { return a | b; }
  static Mask differ(Mask a, Mask b) { return a ^ b; }
  static Mask negate(Mask a) { return ~a; }
  static V floor(V a) { return _mm256_floor_ps(a); }
  // Named in branches for integers.
  static V intDiv(V a, V) { return a; }
  static V intRem(V a, V) { return a; }
#define WICK_FUNCTION(name)                    \
  static V name(V a) {                         \
    return floats::name(floats::LaneOps(), a); \
  }
  WICK_FORALL_COMPOSED_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
  // Lanes out of the range of the arithmetic are computed one by one.
  static V sin(V a) {
    const V v = floats::sin(floats::LaneOps(), a);
    const Mask usual = floats::sinInRange(floats::LaneOps(), a);
    return all(usual) ? v : mended(usual, v, [&](int i) { return math::sin(a[i]); });
  }
  static V cos(V a) {
    const V v = floats::cos(floats::LaneOps(), a);
    const Mask usual = floats::sinInRange(floats::LaneOps(), a);
    return all(usual) ? v : mended(usual, v, [&](int i) { return math::cos(a[i]); });
  }
  static V atan2(V a, V b) {
    return floats::atan2(floats::LaneOps(), a, b);
  }
  static V fmod(V a, V b) {
    const V quotient = floats::quotientSize(floats::LaneOps(), a, b);
    const V v = floats::fmodOf(floats::LaneOps(), a, b, quotient);
    const Mask usual = floats::fmodInRange(floats::LaneOps(), b, quotient);
    return all(usual) ? v : mended(usual, v, [&](int i) { return math::fmod(a[i], b[i]); });
  }

 private:
  static bool all(Mask m) {
    return _mm256_movemask_ps(reinterpret_cast<__m256>(m)) == 0xff;
  }
  template <class F>
  __attribute__((noinline)) static V mended(Mask usual, V v, F&& one) {
    for (int i = 0; i < kLanes; ++i) {
      if (!usual[i]) v[i] = one(i);
    }
    return v;
  }
};

// The loop of a ScalarDefinition whose inputs are float32; out and inputs may be the same memory.
template <class Def, size_t... I>
void runLanes(float* out, const void* const* inputs, int64_t n, std::index_sequence<I...>) {
  constexpr int64_t kLanes = LaneBuilder::kLanes;
  const auto load = [&](size_t input, int64_t i) {
    LaneBuilder::V v;
    std::memcpy(&v, static_cast<const float*>(inputs[input]) + i, sizeof v);
    return v;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const LaneBuilder::V v = Def::apply(LaneBuilder(), load(I, i)...);
    std::memcpy(out + i, &v, sizeof v);
  }
  if (i == n) return;
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(float);
  const auto loadRest = [&](size_t input) {
    LaneBuilder::V v{};
    std::memcpy(&v, static_cast<const float*>(inputs[input]) + i, bytes);
    return v;
  };
  const LaneBuilder::V v = Def::apply(LaneBuilder(), loadRest(I)...);
  std::memcpy(out + i, &v, bytes);
}

}  // namespace wick
#endif
