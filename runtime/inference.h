// Preparing a module's method for inference, as torch.jit.freeze and optimize_for_inference do.
#pragma once

#include <memory>

#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick {

class Graph;
class GraphFunction;

// A function of the method's arguments without `self`: calls inlined, attributes of `self` made
// constants (passes/freeze.h), dropout removed, products with constants made linear layers, batch
// normalization and constant factors folded into convolutions and linear layers, linear layers that
// share an input joined, additions and activations joined to both. Meant for modules in evaluation
// mode; later changes of the module are not seen. Results differ from the method's by rounding, and
// relu behind a layer takes NaN for zero, as after PyTorch's optimize_for_inference. What can be
// prepared without arguments is done: weights of linear layers are packed for products of many
// rows, and the libraries and threads of the calling thread's operators are started. The function
// keeps the module, and so its code, alive. Throws CompileError when a callee does not compile,
// UsageError when the method is not one of `self`.
std::shared_ptr<GraphFunction> optimizeForInference(const ObjectRef& self, GraphFunction& method);

// The part of it that leaves PyTorch's operators alone in the graph: `graph` is a copy of a
// method's and loses its input `self`, which attributes that somebody writes are still read from,
// as a constant.
void simplifyForInference(Graph& graph, const ObjectRef& self);

}  // namespace wick

#pragma GCC visibility pop
