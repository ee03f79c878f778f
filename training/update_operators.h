// The rules of optimizers as calls of operators, for parameters whose memory the loops of
// update_loops.h do not reach; inside of this room only.
#pragma once

#include <array>

#include "core/tensor.h"
#include "training/update_loops.h"

namespace wick::training {

// Computes what the loop computes, but for the rounding: the loops fuse products with sums. `numbers`
// are those of prepareUpdate(). `buffers` are those that the rule uses. Gradients must not be recorded meanwhile.
void updateByOperators(const UpdateRule& rule, const UpdateNumbers& numbers,
                       const Tensor& parameter, const Tensor& gradient,
                       const std::array<Tensor, 3>& buffers);

// A new buffer of the rule with this number everywhere, laid out as the parameter and on its device.
// What is made so is data, not a call that a device could record: so a first step that makes buffers
// is the same computation as the later ones.
Tensor newBuffer(const Tensor& parameter, double value);

}  // namespace wick::training
