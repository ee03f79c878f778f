// Layers between a call of an operator and its kernel: observing, tracing, lazy evaluation. A layer
// is one function for all operators; no operator knows of any. Calls of scripts, of C++ and of
// kernels that call other operators all meet here; groups that a compiled kernel computes at once
// are one step of the interpreter and do not.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "core/thread_context.h"
#include "ir/operator.h"

namespace wick {

class GraphFunction;

// The arguments of Operator::call().
struct LayerCall {
  const Operator& op;
  IValue* args;
  size_t num_args;
  IValue* results;
  size_t num_results;
  uint64_t borrowed;
};

// A layer that several threads have active must synchronize itself.
class CallLayer {
 public:
  virtual ~CallLayer() = default;
  // Does the call, most often by callBelow(). May raise what the call raises.
  virtual void call(const LayerCall& call) = 0;
  // A call of a compiled function or method from outside of any, with all arguments, which `run`
  // does; `owner` keeps the function. Only the layer that traces is asked, which makes it one step.
  virtual IValue callFunction(GraphFunction& function, std::span<const IValue> arguments,
                              const std::shared_ptr<void>& owner,
                              const std::function<IValue()>& run);
};

// The layer of the calling thread that traces, or null.
inline CallLayer* tracingLayer() {
  return threadContext().active_layers == 0
             ? nullptr
             : threadContext().layers[static_cast<size_t>(CallLayerSlot::Trace)];
}

// Goes on with a call below the layer of `slot`: through the layers that come after it, the recorder
// of gradients, the kernel. Operators that the kernel calls begin at the first layer again; a layer
// that does not want to see them switches itself off meanwhile (CallLayerScope with null).
void callBelow(CallLayerSlot slot, const LayerCall& call);

// Puts a layer into its slot of the calling thread for a scope; null leaves the slot empty. The
// layer must live as long.
class CallLayerScope {
 public:
  CallLayerScope(CallLayerSlot slot, CallLayer* layer);
  ~CallLayerScope();
  CallLayerScope(const CallLayerScope&) = delete;
  CallLayerScope& operator=(const CallLayerScope&) = delete;

 private:
  const CallLayerSlot slot_;
  CallLayer* const before_;
};

}  // namespace wick
