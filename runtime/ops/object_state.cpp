#include "runtime/ops/object_state.h"

#include "core/error.h"

namespace wick::ops::state {

const std::vector<IValue>& elementsOf(const char* what, const IValue& v) {
  WICK_CHECK(v.isTuple() || v.isList(), "{}: expected a tuple or a list, got {}", what,
             v.tagName());
  return v.elements();
}

const IValue& at(const char* what, const std::vector<IValue>& elements, size_t i) {
  WICK_CHECK(i < elements.size(), "{}: expected more than {} elements, got {}", what, i,
             elements.size());
  return elements[i];
}

Tensor tensorOf(const char* what, const IValue& v) {
  WICK_CHECK(v.isTensor(), "{}: expected a tensor, got {}", what, v.tagName());
  return v.toTensor();
}

Tensor optionalTensorOf(const char* what, const IValue& v) {
  return v.isNone() ? Tensor() : tensorOf(what, v);
}

int64_t intOf(const char* what, const IValue& v) {
  if (v.isTensor()) {
    const Tensor t = v.toTensor();
    WICK_CHECK(t.numel() == 1 && t.kind() == TensorKind::Dense, "{}: expected a number, got {}",
               what, t.describe());
    return t.to(DType::Long).item<int64_t>();
  }
  WICK_CHECK(v.isInt(), "{}: expected an int, got {}", what, v.tagName());
  return v.toInt();
}

DimVector intsOf(const char* what, const IValue& v) {
  DimVector result;
  if (v.isTensor()) {
    const Tensor t = v.toTensor();
    WICK_CHECK(t.kind() == TensorKind::Dense && t.dim() == 1 && isIntegral(t.dtype(), false) &&
                   t.numel() < 64,
               "{}: expected a few ints, got {}", what, t.describe());
    const Tensor all = t.to(DType::Long).contiguous();
    for (int64_t i = 0; i < all.numel(); ++i) result.push_back(all.data<int64_t>()[i]);
    return result;
  }
  for (const IValue& e : elementsOf(what, v)) result.push_back(intOf(what, e));
  return result;
}

std::optional<Scalar> optionalNumberOf(const char* what, const IValue& v) {
  if (v.isNone()) return std::nullopt;
  WICK_CHECK(v.isInt() || v.isDouble() || v.isBool(), "{}: expected a number or None, got {}", what,
             v.tagName());
  return Scalar::fromIValue(v);
}

}  // namespace wick::ops::state
