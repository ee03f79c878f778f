#include "ir/call_layer.h"

#include <bit>

namespace wick {

namespace {

void setLayer(CallLayerSlot slot, CallLayer* layer) {
  ThreadContext& context = threadContext();
  const auto i = static_cast<size_t>(slot);
  context.layers[i] = layer;
  const auto bit = static_cast<uint8_t>(1u << i);
  context.active_layers =
      static_cast<uint8_t>(layer ? context.active_layers | bit : context.active_layers & ~bit);
}

// Continues with the layers of `rest`, the first one first.
void callLayers(unsigned rest, const LayerCall& call) {
  if (rest == 0) {
    call.op.callBelowLayers(call.args, call.num_args, call.results, call.num_results,
                            call.borrowed);
    return;
  }
  threadContext().layers[static_cast<size_t>(std::countr_zero(rest))]->call(call);
}

}  // namespace

IValue CallLayer::callFunction(GraphFunction&, std::span<const IValue>,
                               const std::shared_ptr<void>&, const std::function<IValue()>& run) {
  return run();
}

void callBelow(CallLayerSlot slot, const LayerCall& call) {
  const unsigned through = (2u << static_cast<unsigned>(slot)) - 1;
  callLayers(threadContext().active_layers & ~through, call);
}

void Operator::callThroughLayers(IValue* args, size_t num_args, IValue* results, size_t num_results,
                                 uint64_t borrowed) const {
  callLayers(threadContext().active_layers,
             {*this, args, num_args, results, num_results, borrowed});
}

CallLayerScope::CallLayerScope(CallLayerSlot slot, CallLayer* layer)
    : slot_(slot), before_(threadContext().layers[static_cast<size_t>(slot)]) {
  setLayer(slot, layer);
}

CallLayerScope::~CallLayerScope() {
  setLayer(slot_, before_);
}

}  // namespace wick
