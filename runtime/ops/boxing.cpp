#include "runtime/ops/boxing.h"

namespace wick::boxing {

DType toDType(const IValue& v) {
  std::optional<DType> dtype = dtypeFromNumber(v.toInt());
  WICK_CHECK(dtype.has_value(), "expected a dtype, got the number {}", v.toInt());
  return *dtype;
}

}  // namespace wick::boxing
