// Pooling on CUDA devices.
#pragma once

#include "runtime/cuda/text_kernel.h"
#include "runtime/kernels/pooling.h"

namespace wick::cuda {

// maxPool() and averagePool() of runtime/kernels/pooling.h. One thread a window; averages of whole
// images are sums of rows.
pooling::MaxResult maxPool(const Tensor& x, const pooling::Axes& axes, bool want_indices);
Tensor averagePool(const Tensor& x, const pooling::Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor);

// Pooling of either kind into `values` and, when they are defined, `indices`; their layout is the one of x. `table` is
// poolingTable() on the device.
struct PoolingCall {
  bool largest = true;
  int64_t divisor = 0;  // of averages; 0: the elements of a window
  bool count_padding = false;
};
TextKernel poolingKernel(const Tensor& x, const Tensor& values, const Tensor& indices,
                         const Tensor& table, const pooling::Axes& axes, const PoolingCall& call);
Tensor poolingTable(const pooling::Axes& axes);
// Whether an average is one mean of each image.
bool averagesWhole(const Tensor& x, const pooling::Axes& axes, bool count_padding,
                   std::optional<int64_t> divisor);
// The sizes and the layout of what pooling gives.
Tensor emptyPooled(const Tensor& x, const pooling::Axes& axes, DType dtype);

}  // namespace wick::cuda
