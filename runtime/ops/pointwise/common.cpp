#include "runtime/ops/pointwise/common.h"

namespace wick::ops {

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
