#include "runtime/ops/pointwise_common.h"

namespace wick::ops {

void checkFits(const Scalar& number, DType dtype) {
  bool fits = true;
  if (number.isComplex()) {
    fits = isComplex(dtype) || number.to<std::complex<double>>().imag() == 0;
  }
  if (fits && isIntegral(dtype, false)) {
    dispatch<kIntegers>("checkFits", dtype, [&]<class T>() {
      constexpr double kMax = static_cast<double>(std::numeric_limits<T>::max());
      double low = std::is_signed_v<T> ? static_cast<double>(std::numeric_limits<T>::min()) : -kMax;
      double value = number.toDouble();
      // An int64 that rounds up to 2^63 as a double still fits.
      fits = (number.isInt() && sizeof(T) == 8) || (value >= low && value <= kMax);
    });
  }
  WICK_CHECK(fits, "value cannot be converted to type {} without overflow", toString(dtype));
}

void checkDivisor(const Operand& dividend, const Operand& divisor) {
  const Operand both[] = {dividend, divisor};
  DType common = resultType(both);
  if (!isIntegral(common, true)) return;
  if ((dividend.tensor && dividend.tensor->numel() == 0) ||
      (divisor.tensor && divisor.tensor->numel() == 0)) {
    return;
  }
  bool zero = false;
  if (divisor.tensor) {
    if (!divisor.tensor->device().isCpu()) return;
    Tensor t = divisor.tensor->to(common).contiguous();
    dispatchAll(common, [&]<class T>() {
      const T* values = t.data<T>();
      for (int64_t i = 0; i < t.numel(); ++i) zero |= values[i] == T(0);
    });
  } else {
    dispatchAll(common, [&]<class T>() { zero = divisor.number.to<T>() == T(0); });
  }
  WICK_CHECK(!zero, "ZeroDivisionError");
}

}  // namespace wick::ops
