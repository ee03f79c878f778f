// ScalarDefinition: what one element of a pointwise operator's result is, in a form that every
// engine can use.
//
// The arithmetic is written once, as a static template over a builder:
//
//   struct Silu : FloatScalar {
//     static constexpr const char* kName = "silu";
//     WICK_APPLY1(x) { return b.div(x, b.add(b.constant(1), b.exp(b.neg(x)))); }
//   };
//
// kScalar<Silu> is the runtime record: row loops for each dtype (the eager kernel), the recorder
// of the arithmetic (for compiled kernels), and the dtype rules that both share.
#pragma once

#include <array>
#include <tuple>
#include <utility>

#include "codegen/scalar/expression.h"
#include "codegen/scalar/lanes.h"
#include "codegen/scalar/plain_builder.h"
#include "core/dtype_dispatch.h"

namespace wick {

// How the dtype in which an operator computes follows from its operands.
enum class Promotion : uint8_t {
  Common,  // the operands' common dtype
  Float,   // the same, but integers and bool become the default float dtype
};

// Computes n contiguous elements. inputs[i] points at elements of the compute dtype (bool for mask
// inputs); out and an input may be the same memory.
using ScalarLoop = void (*)(void* out, const void* const* inputs, int64_t n);

// Records the definition's arithmetic with the builder's compute dtype on inputs of that dtype
// (mask inputs: Bool). Invalid when the result is no Expression.
using ScalarRecorder = ScalarExpr (*)(const ExprBuilder& builder, const ScalarExpr* inputs);

constexpr size_t kMaxScalarInputs = 5;
constexpr size_t kDTypeSlots = 16;

struct ScalarDefinition {
  const char* name;  // begins the operator's error messages
  uint8_t num_inputs;
  // Bit i: input i is a boolean.
  uint8_t mask_inputs;
  // Bit i: input i is a number that takes no part in type promotion and keeps full precision.
  uint8_t param_inputs;
  // Bit i: input i says nothing of the result's layout when it is a number, as params; other numbers count as tensors without
  // dimensions.
  uint8_t bare_inputs;
  Promotion promotion;
  struct Entry {
    ScalarLoop loop = nullptr;    // null: the operator does not accept this dtype
    DType result = DType::Float;  // dtype of what the loop writes
  };
  // By the number of the compute dtype. Reduced floats have none: they compute in float32.
  std::array<Entry, kDTypeSlots> entries;
  // Whether the operator takes the reduced floats.
  bool reduced_floats;
  ScalarRecorder record;  // null: complex numbers only

  const Entry& entry(DType compute) const { return entries[static_cast<size_t>(compute)]; }
};

// Bases that state the dtypes, from the widest to the narrowest need.
struct AnyScalar {
  static constexpr unsigned kDTypes = kAnyDType;
  static constexpr Promotion kPromotion = Promotion::Common;
  static constexpr uint8_t kMasks = 0;
  static constexpr uint8_t kParams = 0;
  static constexpr uint8_t kBare = 0;  // besides params
  // Whether float32 runs on LaneBuilder, and float64 on DoubleLaneBuilder.
  static constexpr bool kOnLanes = false;
};
struct NumberScalar : AnyScalar {
  static constexpr unsigned kDTypes = kRealNumbers | kComplexes;
};
struct OrderedScalar : AnyScalar {
  static constexpr unsigned kDTypes = kRealNumbers | kBool;
};
struct RealScalar : AnyScalar {
  static constexpr unsigned kDTypes = kRealNumbers;
};
struct IntegerScalar : AnyScalar {
  static constexpr unsigned kDTypes = kIntegers;
};
struct BitScalar : AnyScalar {
  static constexpr unsigned kDTypes = kIntegers | kBool;
};
struct StrictFloatScalar : AnyScalar {
  static constexpr unsigned kDTypes = kAnyFloat;
};
struct StrictFloatOrComplexScalar : AnyScalar {
  static constexpr unsigned kDTypes = kFloatOrComplex;
};
struct FloatScalar : AnyScalar {
  static constexpr unsigned kDTypes = kAnyFloat;
  static constexpr Promotion kPromotion = Promotion::Float;
};
struct FloatOrComplexScalar : FloatScalar {
  static constexpr unsigned kDTypes = kFloatOrComplex;
};

#define WICK_APPLY1(x)                     \
  static constexpr uint8_t kNumInputs = 1; \
  template <class B>                       \
  static auto apply([[maybe_unused]] B b, typename B::V x)
#define WICK_APPLY2(x, y)                  \
  static constexpr uint8_t kNumInputs = 2; \
  template <class B>                       \
  static auto apply([[maybe_unused]] B b, typename B::V x, typename B::V y)
#define WICK_APPLY3(x, y, z)               \
  static constexpr uint8_t kNumInputs = 3; \
  template <class B>                       \
  static auto apply([[maybe_unused]] B b, typename B::V x, typename B::V y, typename B::V z)
#define WICK_APPLY4(x, y, z, w)                                                              \
  static constexpr uint8_t kNumInputs = 4;                                                   \
  template <class B>                                                                         \
  static auto apply([[maybe_unused]] B b, typename B::V x, typename B::V y, typename B::V z, \
                    typename B::V w)

namespace detail {

// Whether the compiler may make vectors of loops that hold comparisons. Of equal loops in several
// files the linker keeps any one, so all of these files need the same options (.bazelrc has them).
#if defined(__OPTIMIZE__) && !defined(__NO_TRAPPING_MATH__) && !defined(__clang__)
constexpr bool kVectorLoops = false;
#else
constexpr bool kVectorLoops = true;
#endif

template <class Def, class T, size_t I>
using ScalarInput = std::conditional_t<(Def::kMasks >> I & 1) != 0, bool, T>;

template <class Def, class T, size_t... I>
constexpr ScalarDefinition::Entry makeEntry(std::index_sequence<I...>) {
  static_assert(sizeof(Def) == 0 || kVectorLoops,
                "compile this file with -O3 -fno-trapping-math, as .bazelrc says of others");
  using R = decltype(Def::apply(PlainBuilder<T>(), std::declval<ScalarInput<Def, T, I>>()...));
  ScalarLoop loop = [](void* out, const void* const* inputs, int64_t n) {
    R* to = static_cast<R*>(out);
#ifdef __AVX2__
    if constexpr (Def::kOnLanes && (std::is_same_v<T, float> || std::is_same_v<T, double>)) {
      static_assert(Def::kMasks == 0);
      using Builder = std::conditional_t<std::is_same_v<T, float>, LaneBuilder, DoubleLaneBuilder>;
      return runLanes<Def, Builder>(to, inputs, n, std::index_sequence<I...>());
    }
#endif
    auto from = std::make_tuple(static_cast<const ScalarInput<Def, T, I>*>(inputs[I])...);
    // Memory that is both read and written is the same element of both, so no iteration depends on
    // another.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) to[i] = Def::apply(PlainBuilder<T>(), std::get<I>(from)[i]...);
  };
  return {loop, kDTypeOf<R>};
}

template <class Def>
constexpr ScalarRecorder makeRecorder() {
  if constexpr ((Def::kDTypes & ~unsigned{kComplexes}) == 0) {
    return nullptr;
  } else {
    return [](const ExprBuilder& builder, const ScalarExpr* inputs) {
      return [&]<size_t... I>(std::index_sequence<I...>) {
        return Def::apply(builder, inputs[I]...);
      }
      (std::make_index_sequence<Def::kNumInputs>());
    };
  }
}

}  // namespace detail

template <class Def>
constexpr ScalarDefinition makeScalarDefinition() {
  static_assert(Def::kNumInputs <= kMaxScalarInputs);
  ScalarDefinition d{Def::kName,
                     Def::kNumInputs,
                     Def::kMasks,
                     Def::kParams,
                     Def::kParams | Def::kBare,
                     Def::kPromotion,
                     {},
                     (Def::kDTypes & kReducedFloats) != 0,
                     detail::makeRecorder<Def>()};
#define WICK_DTYPE(type, name, text, number)                                                       \
  if constexpr ((dtypeCategory<type>() & Def::kDTypes & ~unsigned{kReducedFloats}) != 0) {         \
    d.entries[number] = detail::makeEntry<Def, type>(std::make_index_sequence<Def::kNumInputs>()); \
  }
  WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
  return d;
}

template <class Def>
inline constexpr ScalarDefinition kScalar = makeScalarDefinition<Def>();

}  // namespace wick
