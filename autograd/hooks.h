// Hooks: functions that see gradients on their way back, and may replace them.
//
//   auto handle = wick::autograd::registerHook(x, [](const Tensor& g) { return g.…; });
//   handle.remove();
//
// As in PyTorch 1.13: the hooks of a tensor are called when its gradient is complete, in the order
// in which they were registered, each with what the one before returned, and before retain_grad
// keeps the gradient or a leaf adds it. They belong to the value that the tensor has when they are
// registered: a later write to the tensor leaves them with the old value. Walks that only ask for
// the gradient of this very tensor (torch.autograd.grad) do not call them. While gradients of
// gradients are wanted what a hook does is recorded.
#pragma once

#include <functional>
#include <vector>

#include "core/ivalue.h"
#include "core/tensor.h"

#pragma GCC visibility push(default)

namespace wick {
class Module;
}

namespace wick::autograd {

// Removes what was registered; may be dropped without removing it. Thread-safe.
class HookHandle {
 public:
  HookHandle() = default;
  explicit HookHandle(std::function<void()> remove) : remove_(std::move(remove)) {}
  // The second time nothing happens.
  void remove();

 private:
  std::function<void()> remove_;
};

// `hook` returns the gradient to go on with, an undefined tensor for the same. RuntimeError when
// the tensor requires no gradient; a walk raises one when the hook changes size or dtype. The hook
// must not hold the tensor itself, or neither is ever freed.
HookHandle registerHook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook);

// Called each time a walk has added to the gradient of a leaf, with the whole gradient, which it
// may change, replace, or remove by making it undefined: what an optimizer step within the walk
// needs. RuntimeError when the tensor is no leaf that requires a gradient.
HookHandle registerPostAccumulateHook(const Tensor& leaf, std::function<void(Tensor&)> hook);

// Sees the gradients of a module's inputs and results, for tensors that are arguments or results by
// themselves or elements of a tuple or list; undefined ones for those without. What it returns
// replaces the gradients of the inputs; empty: they stay.
using ModuleBackwardHook = std::function<std::vector<Tensor>(
    const std::vector<Tensor>& grad_inputs, const std::vector<Tensor>& grad_outputs)>;

// Calls a module, Module::operator(), so that the hook is called when the walk back has passed it,
// as a full backward hook of PyTorch is.
IValue callWithBackwardHook(const Module& module, std::vector<IValue> arguments,
                            ModuleBackwardHook hook);

}  // namespace wick::autograd

#pragma GCC visibility pop
