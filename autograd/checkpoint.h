// Checkpoints: parts of a computation whose intermediate tensors are not kept for the walk back,
// but computed again when it comes to them. That saves memory for the price of running the part
// twice.
//
//   std::vector<Tensor> y = wick::autograd::checkpoint(
//       [&](const std::vector<Tensor>& in) { return std::vector{block(in[0])}; }, {x});
//
// Parameters that the part reads besides its inputs get their gradients too. What the part does
// besides computing (prints, running statistics) happens twice, as in PyTorch. Checkpoints nest.
// (The same for programs: torch.utils.checkpoint.checkpoint, docs/gradients.md.)
#pragma once

#include <functional>
#include <vector>

#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick::autograd {

struct CheckpointOptions {
  // Whether the second run draws the random numbers of the first from the default generator.
  bool preserve_random_state = true;
};

// The function's results, where gradients go back through a second run of it. It may be called from
// another thread, as long as the results have a history; what it refers to must live so long. A
// walk raises RuntimeError when an input was written to meanwhile, or the second run gives other
// results than the first.
std::vector<Tensor> checkpoint(
    std::function<std::vector<Tensor>(const std::vector<Tensor>&)> function,
    std::vector<Tensor> inputs, const CheckpointOptions& options = {});

// The same for values: gradients flow through tensors in the result's tuples, lists and dicts.
IValue checkpointValues(std::function<IValue(std::vector<IValue>)> function,
                        std::vector<IValue> inputs, const CheckpointOptions& options = {});

}  // namespace wick::autograd

#pragma GCC visibility pop
