// Numbers of a reduced float whose every operation rounds: what PyTorch's kernels compute that are
// instantiated with such an element type, where others compute in float32 and round the result.
#pragma once

#include <cmath>
#include <concepts>
#include <type_traits>

#include "core/half.h"

namespace wick {

template <class Stored>
class Rounded {
 public:
  Rounded() = default;
  template <class N>
  requires std::is_arithmetic_v<N> Rounded(N v) : value_(Stored(static_cast<float>(v))) {}
  Rounded(Stored v) : value_(v) {}
  explicit operator Stored() const { return Stored(value_); }
  explicit operator float() const { return value_; }
  explicit operator double() const { return value_; }
  explicit operator int64_t() const { return static_cast<int64_t>(value_); }

  friend Rounded operator+(Rounded a, Rounded b) { return a.value_ + b.value_; }
  friend Rounded operator-(Rounded a, Rounded b) { return a.value_ - b.value_; }
  friend Rounded operator*(Rounded a, Rounded b) { return a.value_ * b.value_; }
  friend Rounded operator/(Rounded a, Rounded b) { return a.value_ / b.value_; }
  Rounded& operator+=(Rounded b) { return *this = *this + b; }
  Rounded& operator/=(Rounded b) { return *this = *this / b; }
  friend bool operator==(Rounded a, Rounded b) { return a.value_ == b.value_; }
  friend bool operator<(Rounded a, Rounded b) { return a.value_ < b.value_; }
  friend bool operator>(Rounded a, Rounded b) { return a.value_ > b.value_; }
  friend bool operator<=(Rounded a, Rounded b) { return a.value_ <= b.value_; }
  friend bool operator>=(Rounded a, Rounded b) { return a.value_ >= b.value_; }

  friend Rounded abs(Rounded a) { return std::fabs(a.value_); }
  friend Rounded ceil(Rounded a) { return std::ceil(a.value_); }
  friend Rounded floor(Rounded a) { return std::floor(a.value_); }
  friend Rounded round(Rounded a) { return std::round(a.value_); }
  friend Rounded trunc(Rounded a) { return std::trunc(a.value_); }
  friend Rounded nearbyint(Rounded a) { return std::nearbyint(a.value_); }
  friend bool isfinite(Rounded a) { return std::isfinite(a.value_); }

 private:
  float value_ = 0;  // a number that Stored holds
};

}  // namespace wick
