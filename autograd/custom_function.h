// Functions with derivatives of their own, in C++.
//
//   struct Clipped : wick::autograd::Function<Clipped> {
//     static std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs);
//     static std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads);
//   };
//   Tensor y = Clipped::apply({x, 0.5})[0];
//
// forward() runs without recording. backward() gets the gradient of each result and returns one for
// each input, undefined where there is none; when gradients of gradients are wanted it is recorded,
// so that what it computes from saved tensors has derivatives in turn. (The same for programs:
// torch.ops.wick.custom_function, docs/gradients.md.)
#pragma once

#include <map>
#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "core/ivalue.h"

#pragma GCC visibility push(default)

namespace wick::autograd {

// What forward and backward of one call share. Lives as long as the results' history.
class FunctionContext {
 public:
  FunctionContext();
  ~FunctionContext();
  FunctionContext(const FunctionContext&) = delete;
  FunctionContext& operator=(const FunctionContext&) = delete;

  // ---- for forward ----
  // Inputs, results or others. Kept until a walk has used them, and looked at: a walk raises when
  // one was written to meanwhile.
  void saveForBackward(std::vector<Tensor> tensors);
  // Inputs that forward wrote to; each must be among the results.
  void markDirty(std::vector<Tensor> tensors);
  // Results without gradients. Those of integers and booleans have none anyhow.
  void markNonDifferentiable(std::vector<Tensor> tensors);
  // Whether backward sees zeros instead of undefined tensors for results on which nothing
  // depended; on at first.
  void setMaterializeGrads(bool on);

  // ---- for backward ----
  // As saved, with their history. RuntimeError when they are gone or were written to.
  std::vector<Tensor> savedTensors() const;
  // Whether the gradient of an input is of any use. Known in forward too.
  bool needsInputGrad(size_t input) const;

  // Anything else. Results of the call must not be kept here: neither would ever be freed.
  std::map<std::string, IValue> values;

  struct State;
  State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// What Function<F> is made of, for functions that are objects. Called from any thread.
class CustomFunction {
 public:
  virtual ~CustomFunction() = default;
  // For messages: "ClippedBackward".
  virtual std::string name() const = 0;
  virtual std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) = 0;
  virtual std::vector<Tensor> backward(FunctionContext& ctx, const std::vector<Tensor>& grads) = 0;
};

// The results. RuntimeError when gradients are wanted of tensors within a list, tuple or dict:
// these would be lost.
std::vector<Tensor> applyCustom(std::shared_ptr<CustomFunction> function,
                                std::vector<IValue> inputs);

// "wick::Clipped" as it is written.
std::string nameOfType(const std::type_info& type);

template <class F>
struct Function {
  static std::vector<Tensor> apply(std::vector<IValue> inputs) {
    struct Held : CustomFunction {
      std::string name() const override { return nameOfType(typeid(F)) + "Backward"; }
      std::vector<Tensor> forward(FunctionContext& ctx,
                                  const std::vector<IValue>& arguments) override {
        return F::forward(ctx, arguments);
      }
      std::vector<Tensor> backward(FunctionContext& ctx,
                                   const std::vector<Tensor>& grads) override {
        return F::backward(ctx, grads);
      }
    };
    return applyCustom(std::make_shared<Held>(), std::move(inputs));
  }
};

}  // namespace wick::autograd

#pragma GCC visibility pop
