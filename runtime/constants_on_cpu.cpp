#include "runtime/constants_on_cpu.h"

#include <memory>

#include "core/tensor.h"
#include "runtime/fusion/group_backend.h"

namespace wick {

namespace {

template <class F>
void forEachTensor(Graph& graph, F&& f) {
  std::vector<Block*> blocks = {graph.block()};
  while (!blocks.empty()) {
    Block* block = blocks.back();
    blocks.pop_back();
    for (Node* node : block->nodes()) {
      blocks.insert(blocks.end(), node->blocks().begin(), node->blocks().end());
      if (node->kind() != prim::Constant) continue;
      const std::optional<IValue> value = constantOf(node->output());
      if (!value || !value->isTensor()) continue;
      const Tensor tensor = value->toTensor();
      if (tensor.defined() && tensor.kind() == TensorKind::Dense) f(node, tensor);
    }
  }
}

void replace(Node* constant, const Tensor& tensor) {
  constant->setAttribute(attr::value, IValue(tensor));
  constant->output()->setType(types::Tensor());  // without what was known of the other one
}

}  // namespace

ConstantsOnCpu::ConstantsOnCpu(Graph& graph) : graph_(graph) {
  forEachTensor(graph, [&](Node* node, const Tensor& tensor) {
    if (tensor.device().isCpu()) {
      left_.insert(tensor.impl());
      kept_.push_back(tensor);
      return;
    }
    if (!deviceBackend(tensor.device().type).holdsData()) return;
    device_ = tensor.device();
    const Tensor copy = moveTo(tensor, Device());
    fetched_.emplace(copy.impl(), tensor);
    kept_.push_back(copy);
    replace(node, copy);
  });
}

void ConstantsOnCpu::giveBack() {
  if (!device_) return;
  GroupBackend* const backend = groupBackend(device_->type);
  const std::shared_ptr<const void> outside = backend ? backend->outsideRepeats() : nullptr;
  std::unordered_map<const TensorImpl*, Tensor> moved = fetched_;
  forEachTensor(graph_, [&](Node* node, const Tensor& tensor) {
    if (!tensor.device().isCpu() || left_.count(tensor.impl()) != 0) return;
    // New ones without dimensions join tensors of any device.
    if (fetched_.count(tensor.impl()) == 0 && tensor.dim() == 0) return;
    Tensor& there = moved[tensor.impl()];
    if (!there.defined()) there = moveTo(tensor, *device_);
    kept_.push_back(tensor);
    replace(node, there);
  });
  deviceBackend(device_->type).synchronize(*device_);  // others may use them on other streams
}

}  // namespace wick
