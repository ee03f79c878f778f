// Scalar: a number that is not a tensor (PyTorch's Scalar, TorchScript's "number").
#pragma once

#include <complex>
#include <cstdint>

#include "core/dtype.h"
#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class Scalar {
 public:
  enum class Kind : uint8_t { Int, Double, Bool, Complex };
  Scalar() = default;
  Scalar(int64_t v) : kind_(Kind::Int), int_(v) {}
  Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(double v) : kind_(Kind::Double), re_(v) {}
  Scalar(bool v) : kind_(Kind::Bool), int_(v) {}
  Scalar(std::complex<double> v) : kind_(Kind::Complex), re_(v.real()), im_(v.imag()) {}
  // From a number value, or a tensor of one element (as PyTorch's implicit conversion does).
  static Scalar fromIValue(const IValue& v);

  Kind kind() const { return kind_; }
  bool isInt() const { return kind_ == Kind::Int; }
  bool isDouble() const { return kind_ == Kind::Double; }
  bool isBool() const { return kind_ == Kind::Bool; }
  bool isComplex() const { return kind_ == Kind::Complex; }
  // The dtype that a number of this kind has in type promotion: int64, the default float dtype,
  // bool, or its complex counterpart.
  DType dtype() const;

  // Converted as PyTorch converts: to integers by truncation, complex to its real part.
  template <class T>
  T to() const {
    if constexpr (kDTypeOf<T> == DType::ComplexFloat || kDTypeOf<T> == DType::ComplexDouble) {
      using R = typename T::value_type;
      if (isComplex()) return T(static_cast<R>(re_), static_cast<R>(im_));
      return T(static_cast<R>(isDouble() ? re_ : static_cast<double>(int_)), R(0));
    } else if constexpr (std::is_same_v<T, bool>) {
      return isDouble() ? re_ != 0 : isComplex() ? (re_ != 0 || im_ != 0) : int_ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return static_cast<T>(isDouble() || isComplex() ? truncated(re_) : int_);
    } else {
      return static_cast<T>(isDouble() || isComplex() ? re_ : static_cast<double>(int_));
    }
  }
  double toDouble() const { return to<double>(); }
  int64_t toInt() const { return to<int64_t>(); }
  bool toBool() const { return to<bool>(); }
  IValue toIValue() const;
  // A zero-dim tensor of dtype().
  Tensor toTensor() const;

 private:
  // Double to int64 without undefined behaviour: NaN and out-of-range values give INT64_MIN, as the
  // processor's own conversion does.
  static int64_t truncated(double v) {
    return v >= -9223372036854775808.0 && v < 9223372036854775808.0 ? static_cast<int64_t>(v)
                                                                    : INT64_MIN;
  }
  Kind kind_ = Kind::Int;
  int64_t int_ = 0;
  double re_ = 0;
  double im_ = 0;
};

}  // namespace wick

#pragma GCC visibility pop
