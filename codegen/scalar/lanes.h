// LaneOps and LaneBuilder: the builders whose values are vectors of eight float32. The compiler
// vectorizes the loops around a PlainBuilder's arithmetic by itself, but makes a memory access per
// element of a lookup in a table, where a permutation of registers would do; the definitions that
// look up run on these instead. They compute the same bits.
#pragma once

#include "codegen/scalar/float_functions.h"
#include "codegen/scalar/functions.h"

#ifdef __AVX2__
#include <immintrin.h>

#include <cstring>

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
  static V constant(double v) { return floats::LaneOps::constant(static_cast<float>(v)); }
  static Mask gt(V a, V b) { return a > b; }
  static Mask isNan(V a) { return a != a; }
  static Mask either(Mask a, Mask b) { return a | b; }
#define WICK_FUNCTION(name)                    \
  static V name(V a) {                         \
    return floats::name(floats::LaneOps(), a); \
  }
  WICK_FORALL_COMPOSED_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
};

// The loop of a ScalarDefinition with one input of float32; out and in may be the same memory.
template <class Def>
void runLanes(float* out, const float* in, int64_t n) {
  constexpr int64_t kLanes = LaneBuilder::kLanes;
  const auto some = [](float* to, const float* from, size_t bytes) {
    LaneBuilder::V v{};
    std::memcpy(&v, from, bytes);
    v = Def::apply(LaneBuilder(), v);
    std::memcpy(to, &v, bytes);
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) some(out + i, in + i, sizeof(LaneBuilder::V));
  if (i < n) some(out + i, in + i, static_cast<size_t>(n - i) * sizeof(float));
}

}  // namespace wick
#endif
