// Operators that lazy tensors take apart, because other operators say more to the compiler, or
// because they draw random numbers, which needs nothing but sizes.
#include "core/error.h"
#include "ir/device_kernels.h"
#include "lazy/device_below.h"
#include "lazy/program.h"
#include "lazy/recorder.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/random/checks.h"

namespace wick::lazy {

namespace {

// As the kernel of the CPU does it, so that sums are added in the same order.
void sumToSize(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  const DimVector size = frame.args[1].toDims();
  const int64_t extra = self.dim() - static_cast<int64_t>(size.size());
  bool fits = extra >= 0;
  DimVector dims;
  for (int64_t d = 0; fits && d < self.dim(); ++d) {
    const int64_t wanted = d < extra ? 1 : size[static_cast<size_t>(d - extra)];
    fits = d < extra || wanted == 1 || wanted == self.size(d);
    if (d < extra || (wanted == 1 && self.size(d) != 1)) dims.push_back(d);
  }
  WICK_CHECK(fits, "sum_to_size: size {} is not expandable to size {}.", formatInts(size),
             formatInts(self.sizes()));
  if (size.empty()) {
    frame.results[0] = IValue(ops::sum(self, IValue()));
  } else if (dims.empty()) {
    frame.results[0] = IValue(self);
  } else {
    frame.results[0] = IValue(ops::view(ops::sumDims(self, dims, true, IValue()), size));
  }
}

// The mask is drawn now, as the device below draws it, and is data; the product is recorded.
void dropout(CallFrame& frame) {
  const Tensor self = frame.args[0].toTensor();
  const double p = frame.args[1].numberToDouble();
  ops::checkDropout(p);
  if (p == 0 || !frame.args[2].toBool() || self.numel() == 0) {
    frame.results[0] = frame.args[0];
    return;
  }
  WICK_CHECK(isFloating(self.dtype()) || isComplex(self.dtype()),
             "dropout: expected a floating point tensor, got {}", toString(self.dtype()));
  if (p == 1) {
    frame.results[0] = IValue(ops::mulScalar(self, Scalar(0.0)));
    return;
  }
  const ComputeScope scope;
  const Tensor ones = Tensor::emptyLike(
      Tensor::emptyStrided(self.sizes(), self.strides(), self.dtype(), deviceBelow()),
      self.dtype());
  ones.fill(1);
  const Tensor noise = ops::dropout(ones, p, true);
  frame.results[0] = IValue(ops::mul(self, moveTo(noise, Device{kLazy, -1})));
}

constexpr DeviceKernel kCompositesKernels[] = {
    {"aten::sum_to_size", sumToSize},
    {"aten::dropout", dropout},
};
const RegisterDeviceKernels kCompositesRegistered(kLazy, kCompositesKernels);

}  // namespace

}  // namespace wick::lazy
