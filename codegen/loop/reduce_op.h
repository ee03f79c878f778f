// What a ReduceOp starts from, and what it makes of two numbers, in plain C++.
#pragma once

#include <limits>

#include "codegen/loop/kernel.h"
#include "codegen/scalar/plain_builder.h"

namespace wick::loop {

// T is what kernels reduce in: no complex number, and no float narrower than float32.
template <class T>
T identityOf(ReduceOp op) {
  using L = std::numeric_limits<T>;
  switch (op) {
    case ReduceOp::Prod:
    case ReduceOp::All:
      return T(1);
    case ReduceOp::Min:
      return L::has_infinity ? L::infinity() : L::max();
    case ReduceOp::Max:
      return L::has_infinity ? static_cast<T>(-L::infinity()) : L::lowest();
    default:
      return T(0);
  }
}

template <class T>
T combine(ReduceOp op, T a, T b) {
  using B = PlainBuilder<T>;
  switch (op) {
    case ReduceOp::Prod:
      return B::mul(a, b);
    case ReduceOp::Any:
      return T(a != T(0) || b != T(0));
    case ReduceOp::All:
      return T(a != T(0) && b != T(0));
    case ReduceOp::Min:
      return B::isNan(a) || a < b ? a : b;
    case ReduceOp::Max:
      return B::isNan(a) || b < a ? a : b;
    default:
      return B::add(a, b);
  }
}

}  // namespace wick::loop
