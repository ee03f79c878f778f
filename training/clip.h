// Keeping gradients within bounds, as torch.nn.utils does.
#pragma once

#include <vector>

#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick {

// The norm of all gradients of the parameters, as if they were one vector, and when it is above
// `max_norm` they are multiplied, in place, so that it is that. `norm_type` may be infinite. The
// result is the norm before, 0 without gradients; it does not depend on the number of threads.
// RuntimeError for a norm that is not finite when that is asked for, and for sparse gradients.
double clipGradNorm(const std::vector<Tensor>& parameters, double max_norm, double norm_type = 2,
                    bool error_if_nonfinite = false);

// The same for gradients that all lie on one device beside the CPU: all of it is computed there, and
// nobody waits. The result is a tensor there, of one number; undefined without gradients. RuntimeError
// for gradients elsewhere.
Tensor clipGradNormThere(const std::vector<Tensor>& parameters, double max_norm,
                         double norm_type = 2);

// Limits every element to [-limit, limit], in place.
void clipGradValue(const std::vector<Tensor>& parameters, double limit);

}  // namespace wick

#pragma GCC visibility pop
