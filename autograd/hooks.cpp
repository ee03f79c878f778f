#include "autograd/hooks.h"

#include <mutex>

#include "autograd/custom_function.h"
#include "autograd/tape.h"
#include "core/error.h"
#include "runtime/module.h"

namespace wick::autograd {

void HookHandle::remove() {
  if (remove_) std::exchange(remove_, nullptr)();
}

HookHandle registerHook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook) {
  WICK_CHECK(hook, "registerHook: there is no function");
  WICK_CHECK(requiresGradient(tensor),
             "cannot register a hook on a tensor that doesn't require gradient");
  const Edge edge = gradientEdge(tensor);
  const uint64_t id = edge.node->addHook(edge.index, std::move(hook));
  return HookHandle([node = edge.node, id] { node->removeHook(id); });
}

HookHandle registerPostAccumulateHook(const Tensor& leaf, std::function<void(Tensor&)> hook) {
  WICK_CHECK(hook, "registerPostAccumulateHook: there is no function");
  WICK_CHECK(requiresGradient(leaf),
             "cannot register a hook on a tensor that doesn't require gradient");
  WICK_CHECK(isLeaf(leaf), "post accumulate grad hooks cannot be registered on non-leaf tensors");
  const Ref<Leaf> end = leafFor(leaf);
  const uint64_t id = end->addAfterHook(std::move(hook));
  return HookHandle([end, id] { end->removeAfterHook(id); });
}

namespace {

// What the two ends of a module's call share.
struct ModuleCall {
  ModuleBackwardHook hook;
  std::mutex mutex;
  std::vector<Tensor> grad_outputs;
  bool has_inputs = false;  // with gradients
};

// Passes tensors on, and gradients through `back`.
class Passing : public CustomFunction {
 public:
  using Back = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;
  explicit Passing(Back back) : back_(std::move(back)) {}
  std::string name() const override { return "BackwardHookFunctionBackward"; }
  std::vector<Tensor> forward(FunctionContext& ctx, const std::vector<IValue>& inputs) override {
    ctx.setMaterializeGrads(false);
    std::vector<Tensor> out;
    for (const IValue& v : inputs) out.push_back(v.toTensor());
    return out;
  }
  std::vector<Tensor> backward(FunctionContext&, const std::vector<Tensor>& grads) override {
    return back_(grads);
  }

 private:
  const Back back_;
};

// The tensors that a value is or holds, one level deep, in order; `replace` puts others there.
void collect(const IValue& value, std::vector<IValue>& tensors) {
  if (value.isTensor()) {
    tensors.push_back(value);
  } else if (value.isTuple() || value.isList()) {
    for (const IValue& e : value.elements()) {
      if (e.isTensor()) tensors.push_back(e);
    }
  }
}

IValue replace(const IValue& value, const std::vector<Tensor>& tensors, size_t& next) {
  if (value.isTensor()) return IValue(tensors.at(next++));
  if (!value.isTuple() && !value.isList()) return value;
  std::vector<IValue> elements;
  bool any = false;
  for (const IValue& e : value.elements()) {
    any |= e.isTensor();
    elements.push_back(e.isTensor() ? IValue(tensors.at(next++)) : e);
  }
  if (!any) return value;
  if (value.isList()) {
    return IValue(makeList(value.toList().element_type, std::move(elements)));
  }
  return IValue(makeTuple(std::move(elements), value.toTuple().named));
}

}  // namespace

IValue callWithBackwardHook(const Module& module, std::vector<IValue> arguments,
                            ModuleBackwardHook hook) {
  WICK_CHECK(hook, "callWithBackwardHook: there is no function");
  const auto call = std::make_shared<ModuleCall>();
  call->hook = std::move(hook);
  std::vector<IValue> inputs;
  for (const IValue& v : arguments) collect(v, inputs);
  for (const IValue& v : inputs) call->has_inputs |= requiresGradient(v.toTensor());
  if (call->has_inputs) {
    const std::vector<Tensor> passed =
        applyCustom(std::make_shared<Passing>([call](const std::vector<Tensor>& grads) {
                      std::vector<Tensor> outputs;
                      {
                        std::lock_guard lock(call->mutex);
                        outputs = std::move(call->grad_outputs);
                        call->grad_outputs.clear();
                      }
                      std::vector<Tensor> replaced = call->hook(grads, outputs);
                      WICK_CHECK(replaced.empty() || replaced.size() == grads.size(),
                                 "a module's backward hook returned {} gradients, expected {}",
                                 replaced.size(), grads.size());
                      return replaced.empty() ? grads : replaced;
                    }),
                    inputs);
    size_t next = 0;
    for (IValue& v : arguments) v = replace(v, passed, next);
  }
  IValue result = module(std::move(arguments));
  std::vector<IValue> outputs;
  collect(result, outputs);
  const std::vector<Tensor> passed = applyCustom(
      std::make_shared<Passing>([call, count = inputs.size()](const std::vector<Tensor>& grads) {
        if (!call->has_inputs) {
          call->hook(std::vector<Tensor>(count), grads);
          return grads;
        }
        std::lock_guard lock(call->mutex);
        call->grad_outputs = grads;
        return grads;
      }),
      outputs);
  size_t next = 0;
  return replace(result, passed, next);
}

}  // namespace wick::autograd
