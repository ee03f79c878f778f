// The walk from results back to what they were computed from.
#pragma once

#include <vector>

#include "autograd/tape.h"

namespace wick::autograd {

struct WalkOptions {
  // Keep what nodes saved, so that the tape can be walked again.
  bool retain_graph = false;
  // Record the walk, so that gradients can be differentiated in turn.
  bool create_graph = false;
};

// Adds to the gradients of all leaves that the outputs depend on. `gradients` are those of the
// outputs, undefined where 1 is meant (for outputs of one element). RuntimeError with PyTorch's
// messages: for an output that requires no gradient, one of several elements without a gradient, a
// gradient of another shape, a tape whose saved tensors are gone or were written to.
void backward(const std::vector<Tensor>& outputs, const std::vector<Tensor>& gradients,
              const WalkOptions& options);

// The gradients of the inputs, and nothing is added to any leaf. Those of inputs on which nothing
// depends are undefined, and an error unless `allow_unused`.
std::vector<Tensor> gradientsOf(const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& inputs,
                                const std::vector<Tensor>& gradients, const WalkOptions& options,
                                bool allow_unused);

// The gradients that arrive at some edges from outputs whose gradients are given (undefined ones
// for zeros); undefined where none does. What lies behind an edge is neither walked nor changed.
std::vector<Tensor> gradientsAt(const std::vector<Edge>& ends, const std::vector<Tensor>& outputs,
                                const std::vector<Tensor>& gradients, const WalkOptions& options);

// The edges at which what was recorded since a moment (Node::nextSequence() as it was then) leaves
// for what was there before, or for leaves; each once.
std::vector<Edge> edgesOutOf(const std::vector<Tensor>& outputs, uint64_t since);

}  // namespace wick::autograd
