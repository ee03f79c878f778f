#include "python/torch_components.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "autograd/tape.h"
#include "ir/operator.h"
#include "python/dead_operators.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace {

using TapeNode = autograd::Node;

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
    std::vector<const TapeNode*> open{edge.node.get()};
    while (!open.empty()) {
      const TapeNode* const node = open.back();
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

  std::unordered_map<const TapeNode*, std::vector<size_t>> inputs_;
  std::unordered_map<const TapeNode*, size_t> owner_;  // the part that came to a node first
  std::vector<TorchComponent> parts_;                  // one an output
  std::vector<size_t> parent_;
};

// Returns whether PyTorch 1.13 is known to save no tensor for the backward pass of the operator.
bool savesNothing(const Node& node) {
  static const std::unordered_set<Symbol> kKinds{prim::Constant, prim::ListConstruct,
                                                 prim::ListUnpack, prim::TupleConstruct,
                                                 prim::TupleUnpack};
  const Operator* const op = node.maybeOperator();
  const bool gives_numbers =
      !node.outputs().empty() && std::ranges::all_of(node.outputs(), [](const Value* each) {
        const TypeKind kind = each->type()->kind();
        return kind == TypeKind::Int || kind == TypeKind::Float || kind == TypeKind::Bool;
      });
  return node.blocks().empty() && (gives_numbers || kKinds.contains(node.kind()) ||
                                   (op && (op->has(kSavesNothing) || op->has(kNotDifferentiable))));
}

// Returns whether an operator writes to a view. PyTorch walks such a write only once.
bool writesToView(const Node& node) {
  const FunctionSchema* const schema = node.maybeSchema();
  if (!schema || !schema->isMutable()) return false;
  const FunctionSchema* const from = node.input(0)->node()->maybeSchema();
  return from && !from->isMutable() &&
         std::ranges::any_of(from->returns(),
                             [](const Argument& each) { return each.alias != nullptr; });
}

}  // namespace

std::vector<TorchComponent> torchComponents(const TorchRecord& record) {
  Walker walker(record);
  for (size_t i = 0; i < record.output_fakes.size(); ++i) {
    const Tensor& fake = tensorIn(record.output_fakes[i].get());
    if (autograd::requiresGradient(fake) && !record.unrecorded[i]) walker.add(i, fake);
  }
  return walker.components();
}

bool savesTensors(const TorchRecord& record, const TorchComponent& component) {
  const Graph& graph = *record.script.function->graph();
  const std::vector<TorchInput>& inputs = record.inputs;
  const auto results = graph.outputs()[0]->node()->inputs();
  std::vector<Value*> shown;
  for (const size_t i : component.outputs) shown.push_back(results[i]);
  const std::vector<const Node*> dead = deadOperators(graph, shown);
  const std::unordered_set<const Node*> unused(dead.begin(), dead.end());
  std::unordered_set<const Value*> differentiated;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].requires_grad) differentiated.insert(graph.block()->inputs()[i]);
  }
  bool written = false;  // then any value may be a view of that memory
  for (const Node* node : graph.block()->nodes()) {
    if (unused.contains(node)) continue;
    const bool has_gradient = written || !node->blocks().empty() ||
                              std::ranges::any_of(node->inputs(), [&](const Value* each) {
                                return differentiated.contains(each);
                              });
    if (!has_gradient) continue;
    if (!savesNothing(*node) || writesToView(*node)) return true;
    const FunctionSchema* const schema = node->maybeSchema();
    written = written || (schema && schema->isMutable());
    for (const Value* each : node->outputs()) differentiated.insert(each);
  }
  return false;
}

}  // namespace wick::python
