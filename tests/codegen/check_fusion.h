// Runs random groups of operators as kernels and operator by operator, and compares.
#pragma once

#include <cstdint>
#include <string>

#include "core/tensor.h"

namespace wick {

// "" or how the tensors differ; NaN equals NaN, whatever its payload. `strides`: they count too.
std::string differenceOf(const Tensor& got, const Tensor& expected, double tolerance, bool strides);

struct FusionCheck {
  std::string failure;  // "" or what differs, with the graph
  bool fused =
      false;  // whether kernels ran; otherwise the operators raised or no kernel takes them
};

// Pointwise operators on tensors of random dtypes, shapes and strides must give the same bits,
// dtype and strides. NaN equals NaN, whatever its payload.
FusionCheck checkPointwise(uint64_t seed);

// The same with reductions, softmax and layer norm among them: results must be close.
FusionCheck checkReductions(uint64_t seed);

// The same with views, joins and elements by index: results must be close, strides the same.
FusionCheck checkStructures(uint64_t seed);

// Pointwise operators that write to an argument, among others: the same bits, errors and arguments
// afterwards.
FusionCheck checkWrites(uint64_t seed);

}  // namespace wick
