// Kernels of the loop IR that compute each element of a tensor from those at the same place in others.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/cuda/loop_kernel.h"

namespace wick::cuda {

// First load() and store(), then finish(), then run() by any thread.
class ElementwiseKernel {
 public:
  loop::Kernel kernel;

  // The next access, over all dimensions. The stored value is converted to the dtype.
  ScalarExpr load(DType dtype);
  void store(ScalarExpr value, DType dtype);
  void finish(const std::string& name);

  // Queues it for the elements of `out`, whose memory decides which dimension is innermost. Throws
  // loop::Unsupported.
  void run(const Tensor& out, std::span<const Touch> touches, std::span<const int64_t> numbers);

 private:
  void addAccess(uint32_t argument, DType dtype);
  std::unique_ptr<LoopKernel> code_;
};

// What an access touches of a tensor that is expanded to these sizes.
Touch touchOf(const Tensor& t, IntSpan sizes);

}  // namespace wick::cuda
