// Values of a graph in runs on examples.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/graph.h"

namespace wick::exported {

// Runs a graph node by node, without gradients, and keeps all values. Both sides of an If run, the other one as far as it
// can, and the body of a Loop at least once. Throws RuntimeError with the position of the node that fails.
class RecordedRun {
 public:
  RecordedRun(const Graph& graph, const std::vector<IValue>& arguments);

  // Null for values within blocks that could not run.
  const IValue* find(const Value* value) const;

 private:
  void runBlock(const Block& block);
  void runNode(const Node& node);
  void runControlFlow(const Node& node);
  std::vector<IValue> inputsOf(const Node& node) const;

  std::unordered_map<const Value*, IValue> values_;
};

}  // namespace wick::exported
