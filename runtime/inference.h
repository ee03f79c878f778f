// Preparing a module's method for inference, as torch.jit.freeze and optimize_for_inference do.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/ivalue.h"
#include "runtime/module.h"

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
//
// Batch normalization is folded where the ranks of tensors are proven. With `for_any_rank` the graph
// gets a second version, with weights of its own, when that would need to know the rank of an input
// (passes/rank_versions.h); a call takes one of the two.
std::shared_ptr<GraphFunction> optimizeForInference(const ObjectRef& self, GraphFunction& method,
                                                    bool for_any_rank = true);

// Such a function as a handle, which is called as a module is. Copies share it. May be called from any
// number of threads at a time.
class PreparedMethod {
 public:
  // No function, as after a move: all but valid() and function() throw UsageError.
  PreparedMethod() = default;
  explicit PreparedMethod(std::shared_ptr<GraphFunction> function)
      : function_(std::move(function)) {}

  bool valid() const { return static_cast<bool>(function_); }
  const std::shared_ptr<GraphFunction>& function() const { return function_; }
  // See callFunction in runtime/call.h.
  IValue operator()(std::vector<IValue> arguments, Kwargs kwargs = {},
                    const RunOptions& options = {}) const;
  IValue operator()(NamedArguments named, const RunOptions& options = {}) const {
    return (*this)(std::vector<IValue>(), toKwargs(named), options);
  }

 private:
  std::shared_ptr<GraphFunction> function_;
};

//   auto fast = wick::optimizeForInference(model.eval());
//   wick::IValue y = fast({x});
// "forward" of a module with hooks does what these do, too. UsageError also for a module in training
// mode, when there is no such method, and for hooks that cannot be part of it (runtime/hooked_call.h).
PreparedMethod optimizeForInference(const Module& module, const std::string& method = "forward");

// The part of it that leaves PyTorch's operators alone in the graph: `graph` is a copy of a
// method's and loses its input `self`, which attributes that somebody writes are still read from,
// as a constant.
void simplifyForInference(Graph& graph, const ObjectRef& self, bool for_any_rank = false);

}  // namespace wick

#pragma GCC visibility pop
