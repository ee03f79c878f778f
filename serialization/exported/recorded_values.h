// Values of a graph in runs on examples.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/device.h"
#include "core/tensor.h"
#include "ir/graph.h"

namespace wick::exported {

// The parts of a tensor that programs speak of, which are all but its elements.
struct RecordedTensor {
  std::vector<int64_t> sizes;
  std::vector<int64_t> strides;
  DType dtype = DType::Float;
  Device device;
  bool requires_grad = false;
  bool is_strided = true;
  Tensor number;  // a copy of a tensor without dimensions; undefined for others

  explicit RecordedTensor(const Tensor& tensor);
};

// A value as it was when the program made it.
struct RecordedValue {
  enum class Kind : uint8_t { Plain, Tensor, List, Tuple, Dict };
  Kind kind = Kind::Plain;
  // Numbers, texts, None and the like, and lists of nothing but these; None for others.
  IValue plain;
  bool is_plain = true;
  std::shared_ptr<const RecordedTensor> tensor;
  std::vector<RecordedValue> elements;  // of a list or tuple, and the values of a dict
  std::vector<IValue> keys;             // of a dict

  static RecordedValue of(const IValue& value);
  bool isTensor() const { return kind == Kind::Tensor; }
  bool isContainer() const { return kind >= Kind::List; }
  // Null for a key that the dict does not have.
  const RecordedValue* at(const IValue& key) const;
  // Elements of tensors are not compared.
  friend bool operator==(const RecordedValue& a, const RecordedValue& b);
};

// Runs a graph node by node, without gradients, and keeps such records of all values. Tensors live as long as the rest of
// the run needs them. Both sides of an If run, the other one as far as it can, and the body of a Loop at least once. Throws
// RuntimeError with the position of the node that fails.
class RecordedRun {
 public:
  RecordedRun(const Graph& graph, std::vector<IValue> arguments);

  // Null for values within blocks that could not run.
  const RecordedValue* find(const Value* value) const;
  // The graph's result as it was at the end, with all changes of its lists.
  const RecordedValue& result() const { return result_; }

 private:
  std::unordered_map<const Value*, RecordedValue> values_;
  RecordedValue result_;
};

}  // namespace wick::exported
