// The recorder: runs operators whose tensors require gradients, and puts on the tape what they did.
#pragma once

#include <string>

#include "ir/operator.h"

namespace wick::autograd {

// What Operator::call() hands on to (ir/operator.h). Errors are those of the kernel, and those of
// writes that gradients forbid.
void record(const Operator& op, IValue* args, size_t num_args, IValue* results, size_t num_results,
            uint64_t borrowed);

// The name of the node that a call of an operator puts on the tape: "MulBackward0".
std::string tapeName(const Operator& op);

}  // namespace wick::autograd
