// The builders whose values are vectors of 32 bytes: LaneBuilder of float32, DoubleLaneBuilder of
// float64. The compiler vectorizes the loops around a PlainBuilder's arithmetic by itself, but makes
// a memory access per element of a lookup in a table, where a permutation of registers would do, and
// no vectors at all where some elements take another path. The definitions that do so run on these
// instead. They compute the same bits.
#pragma once

#include "codegen/scalar/double_functions.h"
#include "codegen/scalar/float_functions.h"
#include "codegen/scalar/float_power.h"
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
  using Element = float;
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
  static V floor(V a) { return _mm256_floor_ps(a); }
  static bool all(Mask m) { return _mm256_movemask_ps(reinterpret_cast<__m256>(m)) == 0xff; }
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

namespace doubles {

struct LaneOps {
  static constexpr int kLanes = 4;
  using Element = double;
  using V = double __attribute__((vector_size(32)));
  using I = int64_t __attribute__((vector_size(32)));
  using Mask = I;  // all bits of a lane or none
  static V constant(double v) { return v - V{}; }
  static V add(V a, V b) { return a + b; }
  static V sub(V a, V b) { return a - b; }
  static V mul(V a, V b) { return a * b; }
  static V div(V a, V b) { return a / b; }
  static V neg(V a) { return -a; }
  static V fma(V a, V b, V c) { return _mm256_fmadd_pd(a, b, c); }
  static V scale(V a, V n) { return scaleInSteps(LaneOps(), a, n); }
  static V abs(V a) { return fromBits(toBits(a) & kRest); }
  static V sqrt(V a) { return _mm256_sqrt_pd(a); }
  static V floor(V a) { return _mm256_floor_pd(a); }
  static bool all(Mask m) { return _mm256_movemask_pd(reinterpret_cast<__m256d>(m)) == 0xf; }
  static V copysign(V a, V b) { return fromBits((toBits(a) & kRest) | (toBits(b) & ~kRest)); }
  static Mask eq(V a, V b) { return a == b; }
  static Mask lt(V a, V b) { return a < b; }
  static Mask le(V a, V b) { return a <= b; }
  static V select(Mask m, V a, V b) { return m ? a : b; }
  static I toBits(V a) { return reinterpret_cast<I>(a); }
  static V fromBits(I a) { return reinterpret_cast<V>(a); }
  static I intConstant(int64_t v) { return v - I{}; }
  // Wrapping.
  static I intAdd(I a, I b) { return reinterpret_cast<I>(unsignedLanes(a) + unsignedLanes(b)); }
  static I intSub(I a, I b) { return reinterpret_cast<I>(unsignedLanes(a) - unsignedLanes(b)); }
  static I intShiftLeft(I a, int n) { return reinterpret_cast<I>(unsignedLanes(a) << n); }
  // Of what is not negative.
  static I intShiftRight(I a, int n) { return reinterpret_cast<I>(unsignedLanes(a) >> n); }

 private:
  static constexpr int64_t kRest = std::numeric_limits<int64_t>::max();
  using U = uint64_t __attribute__((vector_size(32)));
  static U unsignedLanes(I a) { return reinterpret_cast<U>(a); }
};

// What has no arithmetic goes one by one.
inline LaneOps::V erf(LaneOps, LaneOps::V a) {
  for (int i = 0; i < LaneOps::kLanes; ++i) a[i] = std::erf(a[i]);
  return a;
}
inline LaneOps::V atan2(LaneOps, LaneOps::V a, LaneOps::V b) {
  for (int i = 0; i < LaneOps::kLanes; ++i) a[i] = std::atan2(a[i], b[i]);
  return a;
}
// None is in range: the C library computes them all.
inline LaneOps::Mask powInRange(LaneOps, LaneOps::V, LaneOps::V) {
  return LaneOps::intConstant(0);
}
inline LaneOps::V powOf(LaneOps, LaneOps::V a, LaneOps::V) {
  return a;
}

}  // namespace doubles

namespace detail {
// By the namespace of the operations; within Lanes its own functions would hide these.
#define WICK_FUNCTION(name)                            \
  template <class Ops>                                 \
  inline typename Ops::V name##Of(typename Ops::V a) { \
    return name(Ops(), a);                             \
  }
WICK_FORALL_COMPOSED_FUNCTIONS(WICK_FUNCTION)
WICK_FUNCTION(sin)
WICK_FUNCTION(cos)
#undef WICK_FUNCTION
template <class Ops>
inline typename Ops::V atan2Of(typename Ops::V a, typename Ops::V b) {
  return atan2(Ops(), a, b);
}
}  // namespace detail

// What definitions need of a builder (see plain_builder.h), as far as those do that ask for lanes.
template <class Ops>
struct Lanes : Ops {
  using typename Ops::Element;
  using typename Ops::Mask;
  using typename Ops::V;
  static constexpr bool isComplex() { return false; }
  static constexpr bool isInteger() { return false; }
  static constexpr bool isBool() { return false; }
  static V constant(double v) { return Ops::constant(static_cast<Element>(v)); }
  static Mask ne(V a, V b) { return a != b; }
  static Mask gt(V a, V b) { return a > b; }
  static Mask ge(V a, V b) { return a >= b; }
  static Mask isNan(V a) { return a != a; }
  static Mask both(Mask a, Mask b) { return a & b; }
  static Mask either(Mask a, Mask b) { return a | b; }
  static Mask differ(Mask a, Mask b) { return a ^ b; }
  static Mask negate(Mask a) { return ~a; }
  // Named in branches for integers.
  static V intDiv(V a, V) { return a; }
  static V intRem(V a, V) { return a; }
  static V intPow(V a, V) { return a; }
#define WICK_FUNCTION(name)          \
  static V name(V a) {               \
    return detail::name##Of<Ops>(a); \
  }
  WICK_FORALL_COMPOSED_FUNCTIONS(WICK_FUNCTION)
#undef WICK_FUNCTION
  // Lanes out of the range of the arithmetic are computed one by one.
  static V sin(V a) {
    const V v = detail::sinOf<Ops>(a);
    const Mask usual = sinInRange(Ops(), a);
    return Ops::all(usual) ? v : mended(usual, v, [&](int i) { return math::sin(a[i]); });
  }
  static V cos(V a) {
    const V v = detail::cosOf<Ops>(a);
    const Mask usual = sinInRange(Ops(), a);
    return Ops::all(usual) ? v : mended(usual, v, [&](int i) { return math::cos(a[i]); });
  }
  static V atan2(V a, V b) {
    return detail::atan2Of<Ops>(a, b);
  }
  static V pow(V a, V b) {
    const V v = powOf(Ops(), a, b);
    const Mask usual = powInRange(Ops(), a, b);
    return Ops::all(usual) ? v : mended(usual, v, [&](int i) { return math::pow(a[i], b[i]); });
  }
  static V fmod(V a, V b) {
    const V quotient = quotientSize(Ops(), a, b);
    const V v = fmodOf(Ops(), a, b, quotient);
    const Mask usual = fmodInRange(Ops(), b, quotient);
    return Ops::all(usual) ? v : mended(usual, v, [&](int i) { return math::fmod(a[i], b[i]); });
  }

 private:
  template <class F>
  __attribute__((noinline)) static V mended(Mask usual, V v, F&& one) {
    for (int i = 0; i < Ops::kLanes; ++i) {
      if (!usual[i]) v[i] = one(i);
    }
    return v;
  }
};
using LaneBuilder = Lanes<floats::LaneOps>;
using DoubleLaneBuilder = Lanes<doubles::LaneOps>;

// The loop of a ScalarDefinition whose inputs are Builder's elements; out and inputs may be the same memory.
template <class Def, class Builder, size_t... I>
void runLanes(typename Builder::Element* out, const void* const* inputs, int64_t n,
              std::index_sequence<I...>) {
  using Element = typename Builder::Element;
  constexpr int64_t kLanes = Builder::kLanes;
  const auto load = [&](size_t input, int64_t i) {
    typename Builder::V v;
    std::memcpy(&v, static_cast<const Element*>(inputs[input]) + i, sizeof v);
    return v;
  };
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    const typename Builder::V v = Def::apply(Builder(), load(I, i)...);
    std::memcpy(out + i, &v, sizeof v);
  }
  if (i == n) return;
  const size_t bytes = static_cast<size_t>(n - i) * sizeof(Element);
  const auto loadRest = [&](size_t input) {
    typename Builder::V v{};
    std::memcpy(&v, static_cast<const Element*>(inputs[input]) + i, bytes);
    return v;
  };
  const typename Builder::V v = Def::apply(Builder(), loadRest(I)...);
  std::memcpy(out + i, &v, bytes);
}

}  // namespace wick
#endif
