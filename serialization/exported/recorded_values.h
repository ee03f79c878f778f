// Values of a graph in runs on examples.
#pragma once

#include <map>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "ir/graph.h"

namespace wick::exported {

// Tensors with the layouts of others and without their elements: those of a device lie on one memory.
class LayoutTensors {
 public:
  // Returns the value with such tensors in place of those with more elements than numbers are taken from.
  IValue withoutElements(const IValue& value);

 private:
  Tensor withoutElements(const Tensor& tensor);

  std::map<std::pair<DeviceType, int>, Ref<Storage>> memory_;
};

// Runs a graph node by node, without gradients, and keeps all values, but of large tensors that no later node needs the layout
// alone. Both sides of an If run, the other one as far as it can, and the body of a Loop at least once. Throws RuntimeError
// with the position of the node that fails.
class RecordedRun {
 public:
  RecordedRun(const Graph& graph, const std::vector<IValue>& arguments, LayoutTensors& layouts);

  // Null for values within blocks that could not run.
  const IValue* find(const Value* value) const;

 private:
  void runGraph(const Graph& graph, LayoutTensors& layouts);
  void runBlock(const Block& block);
  void runAt(const Node& node);
  void runNode(const Node& node);
  void runControlFlow(const Node& node);
  std::vector<IValue> inputsOf(const Node& node) const;

  std::unordered_map<const Value*, IValue> values_;
};

}  // namespace wick::exported
