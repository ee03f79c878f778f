// What the rules of optimizers do to elements, one loop a rule. The text is also that of kernels on
// devices (training/cuda/), so it uses little of the standard library; inside of this room only.
//
// Rounding is PyTorch's: each line below that ends in an assignment or a set() is one of its
// operators, which rounds its result to the dtype, and a product with a sum is fused where its
// kernels fuse them (add with alpha, addcmul). So float32 and float64 agree to the last bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/half.h"
#include "training/update_loops.h"

namespace wick::training {

// The type in which an element is computed.
template <class T>
using Wide = std::conditional_t<std::is_same_v<T, double>, double, float>;

// A result of an operator: rounded to T.
template <class T>
Wide<T> rounded(Wide<T> v) {
  if constexpr (std::is_same_v<T, Half> || std::is_same_v<T, BFloat16>) {
    return static_cast<float>(T(v));
  } else {
    return v;
  }
}

// a + b * factor, as torch.add(a, b, alpha=factor).
template <class T>
Wide<T> plus(Wide<T> a, Wide<T> b, Wide<T> factor) {
  return rounded<T>(std::fma(b, factor, a));
}

// a + factor * b * c, as torch.addcmul.
template <class T>
Wide<T> plusProduct(Wide<T> a, Wide<T> b, Wide<T> c, Wide<T> factor) {
  return rounded<T>(std::fma(factor * b, c, a));
}

// a + factor * b / c, as torch.addcdiv.
template <class T>
Wide<T> plusQuotient(Wide<T> a, Wide<T> b, Wide<T> c, Wide<T> factor) {
  return rounded<T>(a + factor * b / c);
}

template <class T>
struct Row {
  explicit Row(void* data) : at(static_cast<T*>(data)) {}
  T* at;
  Wide<T> get(int64_t i) const { return static_cast<Wide<T>>(at[i]); }
  void set(int64_t i, Wide<T> v) const { at[i] = static_cast<T>(v); }
};

template <class T>
struct GradientRow {
  explicit GradientRow(const Update& u)
      : at(static_cast<const T*>(u.gradient)),
        sign(static_cast<Wide<T>>(u.numbers.sign)),
        decay(static_cast<Wide<T>>(u.numbers.weight_decay)) {}
  const T* at;
  Wide<T> sign;
  Wide<T> decay;
  template <bool Decays>
  Wide<T> get(int64_t i, Wide<T> parameter) const {
    const Wide<T> g = sign * static_cast<Wide<T>>(at[i]);
    return Decays ? plus<T>(g, parameter, decay) : g;
  }
};

template <class T, bool Decays, Momentum Kind>
void sgdLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), buffer(u.buffers[0]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.numbers.rate);
  const auto momentum = static_cast<Wide<T>>(u.numbers.momentum);
  const auto fresh = static_cast<Wide<T>>(u.numbers.fresh);
  const auto first = static_cast<bool>(u.numbers.beta1);  // with Nesterov: the buffer is new
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    Wide<T> g = gradient.template get<Decays>(i, p);
    if constexpr (Kind == Momentum::First) {
      buffer.set(i, g);
    } else if constexpr (Kind != Momentum::None) {
      const Wide<T> old = rounded<T>(buffer.get(i) * momentum);
      const Wide<T> b = first ? g : plus<T>(old, g, fresh);
      buffer.set(i, b);
      g = Kind == Momentum::Nesterov ? plus<T>(g, b, momentum) : b;
    }
    parameter.set(i, plus<T>(p, g, rate));
  }
}

template <class T, bool Decays, bool Amsgrad>
void adamLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), average(u.buffers[0]), square(u.buffers[1]);
  const Row<T> largest(u.buffers[2]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.numbers.rate);
  const auto beta1 = static_cast<Wide<T>>(u.numbers.beta1),
             fresh = static_cast<Wide<T>>(u.numbers.fresh);
  const auto beta2 = static_cast<Wide<T>>(u.numbers.beta2),
             fresh2 = static_cast<Wide<T>>(u.numbers.fresh2);
  const auto correction = static_cast<Wide<T>>(u.numbers.correction),
             eps = static_cast<Wide<T>>(u.numbers.eps);
  const auto shrink = static_cast<Wide<T>>(u.numbers.shrink);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = rounded<T>(parameter.get(i) * shrink);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> m = plus<T>(rounded<T>(average.get(i) * beta1), g, fresh);
    const Wide<T> v = plusProduct<T>(rounded<T>(square.get(i) * beta2), g, g, fresh2);
    average.set(i, m);
    square.set(i, v);
    Wide<T> scale = v;
    if constexpr (Amsgrad) {
      const Wide<T> before = largest.get(i);
      // NaN of either stays, as in torch.maximum.
      scale = before > v || before != before ? before : v;
      largest.set(i, scale);
    }
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(scale)) / correction);
    parameter.set(i, plusQuotient<T>(p, m, rounded<T>(root + eps), rate));
  }
}

template <class T, bool Decays, bool Centered, bool Moves>
void rmsLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), square(u.buffers[0]), buffer(u.buffers[1]);
  const Row<T> average(u.buffers[2]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.numbers.rate);
  const auto momentum = static_cast<Wide<T>>(u.numbers.momentum);
  const auto alpha = static_cast<Wide<T>>(u.numbers.beta2),
             fresh = static_cast<Wide<T>>(u.numbers.fresh2);
  const auto eps = static_cast<Wide<T>>(u.numbers.eps);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> v = plusProduct<T>(rounded<T>(square.get(i) * alpha), g, g, fresh);
    square.set(i, v);
    Wide<T> spread = v;
    if constexpr (Centered) {
      const Wide<T> m = plus<T>(rounded<T>(average.get(i) * alpha), g, fresh);
      average.set(i, m);
      spread = plusProduct<T>(v, m, m, Wide<T>(-1));
    }
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(spread)) + eps);
    if constexpr (Moves) {
      const Wide<T> old = rounded<T>(buffer.get(i) * momentum);
      const Wide<T> b = plusQuotient<T>(old, g, root, Wide<T>(1));
      buffer.set(i, b);
      parameter.set(i, plus<T>(p, b, rate));
    } else {
      parameter.set(i, plusQuotient<T>(p, g, root, rate));
    }
  }
}

template <class T, bool Decays>
void adagradLoop(const Update& u, int64_t begin, int64_t end) {
  const Row<T> parameter(u.parameter), sum(u.buffers[0]);
  const GradientRow<T> gradient(u);
  const auto rate = static_cast<Wide<T>>(u.numbers.rate);
  const auto eps = static_cast<Wide<T>>(u.numbers.eps);
  for (int64_t i = begin; i < end; ++i) {
    const Wide<T> p = parameter.get(i);
    const Wide<T> g = gradient.template get<Decays>(i, p);
    const Wide<T> s = plusProduct<T>(sum.get(i), g, g, Wide<T>(1));
    sum.set(i, s);
    const Wide<T> root = rounded<T>(rounded<T>(std::sqrt(s)) + eps);
    parameter.set(i, plusQuotient<T>(p, g, root, rate));
  }
}

}  // namespace wick::training
