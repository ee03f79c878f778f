#include "core/scalar.h"

#include "core/error.h"

namespace wick {

Scalar Scalar::fromIValue(const IValue& v) {
  switch (v.tag()) {
    case IValue::Tag::Int:
      return Scalar(v.rawInt());
    case IValue::Tag::Double:
      return Scalar(v.rawDouble());
    case IValue::Tag::Bool:
      return Scalar(v.rawBool());
    case IValue::Tag::Complex:
      return Scalar(v.toComplex());
    case IValue::Tag::Tensor: {
      Tensor t = v.toTensor();
      if (wick::isComplex(t.dtype())) return Scalar(t.item<std::complex<double>>());
      if (isFloating(t.dtype())) return Scalar(t.item<double>());
      if (t.dtype() == DType::Bool) return Scalar(t.item<bool>());
      return Scalar(t.item<int64_t>());
    }
    default:
      throwRuntimeError("expected a number, got {}", v.tagName());
  }
}

DType Scalar::dtype() const {
  switch (kind_) {
    case Kind::Int:
      return DType::Long;
    case Kind::Bool:
      return DType::Bool;
    case Kind::Double:
      return defaultDType();
    case Kind::Complex:
      return toComplexType(defaultDType());
  }
  return DType::Long;
}

IValue Scalar::toIValue() const {
  switch (kind_) {
    case Kind::Int:
      return IValue(int_);
    case Kind::Bool:
      return IValue(int_ != 0);
    case Kind::Double:
      return IValue(re_);
    case Kind::Complex:
      return IValue(std::complex<double>(re_, im_));
  }
  return IValue();
}

Tensor Scalar::toTensor() const {
  switch (kind_) {
    case Kind::Int:
      return Tensor::scalar<int64_t>(int_);
    case Kind::Bool:
      return Tensor::scalar<bool>(int_ != 0);
    case Kind::Double:
      return Tensor::scalar<double>(re_).to(dtype());
    case Kind::Complex:
      return Tensor::scalar<std::complex<double>>({re_, im_}).to(dtype());
  }
  return Tensor();
}

}  // namespace wick
