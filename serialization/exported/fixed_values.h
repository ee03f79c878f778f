// Values of a graph that are the same in all calls, because they follow from sizes that do not change.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/graph.h"
#include "serialization/exported/recorded_values.h"

namespace wick::exported {

class FixedValues {
 public:
  // Both must outlive it; the runs are those of the graph, on examples of different sizes.
  FixedValues(const Graph& graph, const std::vector<RecordedRun>& runs)
      : graph_(graph), runs_(runs) {}

  // Whether elements of tensors do not matter to the value, only sizes and constants.
  bool followsFromSizes(const Value* value);
  // Returns the number, text, device, None, or list of numbers that the value is in all calls; null for others. Constants of the
  // graph are fixed, tensors are not. A number that is computed from an open size is not, even if all runs agree: other sizes may
  // give another one.
  const IValue* find(const Value* value);

 private:
  bool hasOpenSize(const Value* value);
  bool isEqualInRuns(const Value* value) const;

  const Graph& graph_;
  const std::vector<RecordedRun>& runs_;
  std::unordered_map<const Value*, bool> follows_;
  std::unordered_map<const Value*, bool> open_;
};

}  // namespace wick::exported
