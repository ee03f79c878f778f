// Runs one generic lambda for the C++ type that a dtype stands for:
//
//   dispatchAll(t.dtype(), [&]<class T>() { fill(t.data<T>()); });
//
// Each function accepts the category in its name and throws a RuntimeError that begins with `op`
// for any other dtype.
#pragma once

#include <utility>

#include "core/dtype.h"
#include "core/error.h"

namespace wick {

[[noreturn]] inline void throwUnsupportedDType(const char* op, DType t) {
  throwRuntimeError("{}: no kernel for dtype {}", op, toString(t));
}

enum DTypeCategory : unsigned {
  kIntegers = 1,
  kBool = 2,
  kFloats = 4,         // float32, float64
  kReducedFloats = 8,  // float16, bfloat16
  kComplexes = 16,
  kRealNumbers = kIntegers | kFloats | kReducedFloats,
  kAnyFloat = kFloats | kReducedFloats,
  kFloatOrComplex = kAnyFloat | kComplexes,
  kAnyDType = 31,
};

template <class T>
constexpr unsigned dtypeCategory() {
  constexpr DType t = kDTypeOf<T>;
  if (t == DType::Bool) return kBool;
  if (t == DType::Half || t == DType::BFloat16) return kReducedFloats;
  if (t == DType::Float || t == DType::Double) return kFloats;
  if (t == DType::ComplexFloat || t == DType::ComplexDouble) return kComplexes;
  return kIntegers;
}

// Calls f.operator()<T>() when T's category is in `Allowed`; otherwise T is never instantiated.
template <unsigned Allowed = kAnyDType, class F>
decltype(auto) dispatch(const char* op, DType dtype, F&& f) {
  using R = decltype(f.template operator()<float>());
  switch (dtype) {
#define WICK_DTYPE(type, name, text, number)                \
  case DType::name:                                         \
    if constexpr ((dtypeCategory<type>() & Allowed) != 0) { \
      return static_cast<R>(f.template operator()<type>()); \
    }                                                       \
    break;
    WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE
    default:
      break;
  }
  throwUnsupportedDType(op, dtype);
}

template <class F>
decltype(auto) dispatchAll(DType dtype, F&& f) {
  return dispatch<kAnyDType>("dispatch", dtype, std::forward<F>(f));
}

}  // namespace wick
