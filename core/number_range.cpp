#include "core/number_range.h"

#include <cmath>
#include <complex>
#include <limits>
#include <string_view>

#include "core/error.h"

namespace wick {

namespace {

// The largest finite number of a floating dtype; of a complex one, of its parts.
double largest(DType dtype) {
  switch (dtype) {
    case DType::Half:
      return 65504.0;
    case DType::BFloat16:
      return 3.3895313892515355e+38;
    case DType::Float:
    case DType::ComplexFloat:
      return static_cast<double>(std::numeric_limits<float>::max());
    default:
      return std::numeric_limits<double>::max();
  }
}

bool holdsReal(double value, DType dtype) {
  return !std::isfinite(value) || std::abs(value) <= largest(dtype);
}

template <class T>
bool holdsInteger(const Scalar& number) {
  using Limits = std::numeric_limits<T>;
  if (number.isInt() || number.isBool()) {
    if constexpr (sizeof(T) == 8) return true;
    const int64_t i = number.toInt();
    const int64_t low = Limits::is_signed ? static_cast<int64_t>(Limits::min())
                                          : -static_cast<int64_t>(Limits::max());
    return i >= low && i <= static_cast<int64_t>(Limits::max());
  }
  // 2^63, as which the largest int64 is compared, passes.
  const double d = number.toDouble();
  return d >= static_cast<double>(Limits::min()) && d <= static_cast<double>(Limits::max());
}

// As C++ calls it in PyTorch's messages.
std::string_view elementName(DType dtype) {
  switch (dtype) {
    case DType::Byte:
      return "uint8_t";
    case DType::Char:
      return "int8_t";
    case DType::Short:
      return "int16_t";
    case DType::Int:
      return "int";
    case DType::Long:
      return "int64_t";
    case DType::Half:
      return "at::Half";
    case DType::BFloat16:
      return "at::BFloat16";
    case DType::Float:
      return "float";
    case DType::Double:
      return "double";
    case DType::ComplexFloat:
      return "c10::complex<float>";
    case DType::ComplexDouble:
      return "c10::complex<double>";
    default:
      return toString(dtype);
  }
}

}  // namespace

bool holdsNumber(DType dtype, const Scalar& number) {
  if (dtype == DType::Bool) return true;
  if (isComplex(dtype)) {
    const auto value = number.to<std::complex<double>>();
    return holdsReal(value.real(), dtype) && holdsReal(value.imag(), dtype);
  }
  if (number.isComplex()) {
    const auto value = number.to<std::complex<double>>();
    return value.imag() == 0 && holdsNumber(dtype, Scalar(value.real()));
  }
  switch (dtype) {
    case DType::Byte:
      return holdsInteger<uint8_t>(number);
    case DType::Char:
      return holdsInteger<int8_t>(number);
    case DType::Short:
      return holdsInteger<int16_t>(number);
    case DType::Int:
      return holdsInteger<int32_t>(number);
    case DType::Long:
      return holdsInteger<int64_t>(number);
    default:
      return holdsReal(number.toDouble(), dtype);
  }
}

void checkFits(const Scalar& number, DType dtype) {
  WICK_CHECK(holdsNumber(dtype, number), "value cannot be converted to type {} without overflow",
             elementName(dtype));
}

}  // namespace wick
