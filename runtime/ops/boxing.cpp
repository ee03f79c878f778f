#include "runtime/ops/boxing.h"

namespace wick::boxing {

DType toDType(const IValue& v) {
  std::optional<DType> dtype = dtypeFromNumber(v.toInt());
  WICK_CHECK(dtype.has_value(), "expected a dtype, got the number {}", v.toInt());
  return *dtype;
}

TensorOptions toOptions(IValue* args) {
  TensorOptions options;
  options.dtype = Unbox<std::optional<DType>>::get(args[0]);
  WICK_CHECK(args[1].isNone() || args[1].toInt() == 0, "only the strided layout exists, got {}",
             args[1].repr());
  options.device = Unbox<std::optional<Device>>::get(args[2]);
  return options;
}

}  // namespace wick::boxing
