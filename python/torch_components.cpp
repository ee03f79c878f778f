#include "python/torch_components.h"

#include <algorithm>
#include <unordered_map>

#include "autograd/tape.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

using autograd::Node;

// Walks the tapes of all outputs.
class Walker {
 public:
  explicit Walker(const TorchRecord& record) {
    for (size_t i = 0; i < record.inputs.size(); ++i) {
      if (!record.inputs[i].requires_grad) continue;
      const autograd::Edge edge = autograd::gradientEdge(tensorIn(record.input_fakes[i].get()));
      inputs_[edge.node.get()].push_back(i);
    }
  }

  void add(size_t output, const Tensor& fake) {
    const size_t id = parts_.size();
    parts_.push_back({{output}, {}});
    parent_.push_back(id);
    const autograd::Edge edge = autograd::gradientEdge(fake);
    std::vector<const Node*> open{edge.node.get()};
    while (!open.empty()) {
      const Node* const node = open.back();
      open.pop_back();
      if (!node) continue;
      if (const auto input = inputs_.find(node); input != inputs_.end()) {
        auto& leaves = parts_[id].leaves;
        leaves.insert(leaves.end(), input->second.begin(), input->second.end());
        continue;
      }
      const auto [seen, added] = owner_.emplace(node, id);
      if (!added) {
        parent_[rootOf(id)] = rootOf(seen->second);
        continue;
      }
      for (const autograd::Edge& next : node->next()) open.push_back(next.node.get());
    }
  }

  std::vector<TorchComponent> components() {
    std::vector<TorchComponent> all(parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i) {
      TorchComponent& into = all[rootOf(i)];
      into.outputs.insert(into.outputs.end(), parts_[i].outputs.begin(), parts_[i].outputs.end());
      into.leaves.insert(into.leaves.end(), parts_[i].leaves.begin(), parts_[i].leaves.end());
    }
    std::erase_if(all, [](const TorchComponent& each) { return each.outputs.empty(); });
    for (TorchComponent& each : all) {
      std::ranges::sort(each.leaves);
      const auto rest = std::ranges::unique(each.leaves);
      each.leaves.erase(rest.begin(), rest.end());
    }
    return all;
  }

 private:
  size_t rootOf(size_t id) {
    while (parent_[id] != id) id = parent_[id] = parent_[parent_[id]];
    return id;
  }

  std::unordered_map<const Node*, std::vector<size_t>> inputs_;
  std::unordered_map<const Node*, size_t> owner_;  // the part that came to a node first
  std::vector<TorchComponent> parts_;              // one an output
  std::vector<size_t> parent_;
};

}  // namespace

std::vector<TorchComponent> torchComponents(const TorchRecord& record) {
  Walker walker(record);
  for (size_t i = 0; i < record.output_fakes.size(); ++i) {
    const Tensor& fake = tensorIn(record.output_fakes[i].get());
    if (autograd::requiresGradient(fake) && !record.unrecorded[i]) walker.add(i, fake);
  }
  return walker.components();
}

}  // namespace wick::python
