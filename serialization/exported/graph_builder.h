// Builds the body of an exported graph: nodes of operators in place of targets.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/keyed_hash.h"
#include "ir/graph.h"
#include "serialization/device_map.h"
#include "serialization/exported/listing.h"
#include "serialization/exported/schema.h"

namespace wick::exported {

// Whether there is an operator or function for nodes with this target: "torch.ops.aten.add.Tensor", "_operator.mul".
bool isKnownTarget(const std::string& target);

// The name of the operator that a target "torch.ops.NAMESPACE.NAME.OVERLOAD" means; nullopt for other text.
struct OperatorName {
  Symbol symbol;
  std::string overload;
};
std::optional<OperatorName> operatorNamed(std::string_view target);
// Whether there is such a higher-order operator here ("cond").
bool isHigherOrderOperator(std::string_view name);

// Used by one thread. Mistakes of a graph are CompileErrors with the line of its listing: names that nothing defines,
// operators that are not known, arguments that do not fit.
class GraphBuilder {
 public:
  // All must outlive it.
  GraphBuilder(Graph& into, const Listing& listing, const DeviceMap& devices)
      : graph_(into), listing_(listing), devices_(devices) {}

  // Lets a name mean a value from now on.
  void bind(const std::string& name, Value* value) { values_[name] = value; }
  // Lets a name mean an object of a class, which nothing can use.
  void bindObject(const std::string& name) { objects_.insert(name); }
  // The value that a name means; CompileError when there is none.
  Value* valueNamed(const std::string& name) const;
  // A constant or a named value, fitted to the type where one is given: integers become floats, numbers of the schema those of
  // TorchScript. Values that do not fit stay as they are.
  Value* valueOf(const Operand& operand, const TypePtr& wanted = nullptr);
  // Inserts the nodes of a graph, whose inputs are bound.
  void emit(const GraphRecord& graph);
  // Inserts a write of the elements of `from` to `to`.
  void emitCopy(Value* to, Value* from);

 private:
  friend class HigherOrder;  // higher_order.cpp

  void emitNode(const NodeRecord& node);
  void emitOperator(const NodeRecord& node);
  Value* inRecordedOrder(const Operand& output, Value* result);
  void emitNumbers(const NodeRecord& node);
  void emitHigherOrder(const NodeRecord& node, std::string_view name);

  std::vector<Value*> call(const NodeRecord& node, Symbol name, std::string_view overload,
                           std::span<const NamedOperand> inputs);
  static std::optional<NamedOperand> impliedDType(const Operator* op,
                                                  std::span<const NamedOperand> inputs);
  bool fitSchema(const FunctionSchema& schema, std::span<const NamedOperand> inputs,
                 std::vector<Value*>& arguments);
  void bindOutputs(const NodeRecord& node, const std::vector<Value*>& results);
  void bindOutput(const Operand& output, Value* result);
  void bindElements(const Operand& output, Value* list);
  Value* asKind(OperandKind kind, Value* value);
  Value* listOf(const Operand& operand, const TypePtr& wanted);
  Value* constantOf(const Operand& operand, const TypePtr& wanted);
  [[noreturn]] void fail(const std::string& message) const;

  Graph& graph_;
  const Listing& listing_;
  const DeviceMap& devices_;
  KeyedMap<std::string, Value*> values_;
  KeyedSet<std::string> objects_;
  size_t emitted_ = 0;  // nodes of the file, as often as they were inserted
  // The tensors of the graph whose nodes are inserted.
  const KeyedMap<std::string, TensorMeta>* tensors_ = nullptr;
};

}  // namespace wick::exported
