// Kernels written in place: a function object applied to typed arguments, or a lambda.
//
//   {"aten::add.int(int a, int b) -> int", kApply<Add, int64_t, int64_t>}
//   {"aten::hex(int i) -> str", WICK_LAMBDA([](int64_t i) { return inBase(i, 16); })}
#pragma once

#include "runtime/ops/boxing.h"

namespace wick::ops {

template <class F, class... Args>
auto applyTyped(Args... args) {
  return F()(args...);
}

template <class F, class... Args>
inline constexpr Kernel kApply =
    &boxing::Boxed<&applyTyped<F, Args...>, decltype(&applyTyped<F, Args...>)>::call;

template <auto F>
inline constexpr Kernel kLambda = &boxing::Boxed<F, decltype(F)>::call;

}  // namespace wick::ops

#define WICK_LAMBDA(...) (::wick::ops::kLambda<+__VA_ARGS__>)
