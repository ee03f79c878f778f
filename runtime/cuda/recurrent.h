// Recurrent networks on CUDA devices.
#pragma once

#include "runtime/kernels/lstm.h"

namespace wick::cuda {

// Those of runtime/kernels/lstm.h, one thread a cell; any floats, reduced ones computed in float32.
void lstmStep(const LstmStep& step);
void lstmStepGradient(const LstmStepGradient& step);

}  // namespace wick::cuda
