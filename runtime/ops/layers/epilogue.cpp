#include "runtime/ops/layers/epilogue.h"

#include "runtime/ops/common_calls.h"

namespace wick::ops {

Tensor addAndActivate(const char* op, const Tensor& sum, const Tensor& residual,
                      Activation activation, bool in_place) {
  WICK_CHECK(activation == Activation::None || activation == Activation::Relu,
             "{}: only relu may follow a residual of shape {}", op, formatInts(residual.sizes()));
  Tensor out = in_place ? ops::addInto(sum, residual) : add(sum, residual);
  return activation == Activation::Relu ? relu(out) : out;
}

}  // namespace wick::ops
