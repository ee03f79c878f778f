// Tracing: recording what runs as a graph. A Tracer is a layer of Operator::call(): while it is
// active on a thread, each operator that the thread calls becomes a Node of an ordinary Graph, and
// what a compiled function does becomes one call of it.
//
// Tensors are known by identity: results of recorded operators, inputs, and attributes of the
// traced module stand for themselves, all other tensors become constants. Numbers have no identity.
// Those that a caller wants to follow (sizes, and what is computed of them) are Values in its
// hands, which it stashes before the call that reads them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/tensor.h"
#include "ir/call_layer.h"
#include "ir/graph.h"
#include "tracing/module_calls.h"

namespace wick::tracing {

// For one thread and one recording.
class Tracer : public CallLayer {
 public:
  Tracer();

  // The tracer that records the calling thread's calls now, or null.
  static Tracer* active() { return threadContext().active_layers == 0 ? nullptr : findActive(); }

  // ---- before ----

  // The first input: a module, whose tensors and modules are attributes from now on.
  void addModule(const ObjectRef& module);
  // One more input. The function must be given the result: the value, but for tensors that the
  // tracer knew already, which are other views of the same. RuntimeError for what holds anything
  // but tensors.
  IValue addInput(const std::string& name, const IValue& value);

  // ---- meanwhile ----

  void call(const LayerCall& call) override;
  IValue callFunction(GraphFunction& function, std::span<const IValue> arguments,
                      const std::shared_ptr<void>& owner,
                      const std::function<IValue()>& run) override;
  // As callFunction, but the body stands in the graph instead of a call.
  IValue callInlined(const Graph& body, std::span<const IValue> arguments,
                     const std::function<IValue()>& run);

  // A submodule of the traced module is called; what is recorded until leaveModule() is its own.
  // Arguments that hold anything but tensors are constants of the call.
  void enterModule(const ObjectRef& module, std::vector<std::pair<std::string, IValue>> arguments);
  // Null where the call raised.
  void leaveModule(const IValue* result);

  // The next call's argument is this Value; null values say nothing.
  void stash(std::vector<Value*> arguments) { stash_ = std::move(arguments); }
  // What the last call's result is in the graph, when it is a number or a list of numbers that
  // depends on the inputs; else null.
  Value* result(size_t i) const { return i < results_.size() ? results_[i] : nullptr; }
  // The Value for something: a constant, a tensor, a container of such. `type` as declared.
  Value* valueFor(const IValue& value, const TypePtr& type);
  // A container of Values, typed as the value is.
  Value* containerFor(const IValue& value, std::span<Value* const> elements);
  // The parts of a list or tuple.
  std::vector<Value*> partsOf(Value* container, size_t count);
  // `int(t)` of a tensor, as a Value. Null for a tensor that is a constant.
  Value* intOf(const Tensor& tensor);
  // The Value that the tensor is known by, or null.
  Value* find(const Tensor& tensor);

  // Returns the tensor that is known by the Value. None if no tensor is.
  std::optional<Tensor> tensorOf(const Value* value) const;

  // Returns the tensor on the memory that was known first, which the others are views of. None if no
  // tensor is.
  std::optional<Tensor> firstOn(const Storage* memory) const;

  // The tensor is known by this Value from now on, which the caller put into the graph.
  void bindResult(Value* value, const Tensor& tensor) { bindTensor(value, tensor); }

  // The values that are known in a block, and the place for its nodes.
  class Scope {
   public:
    // Returns the Value that the tensor is known by, or null.
    Value* find(const Tensor& tensor) const;

   private:
    friend class Tracer;
    Node* insert_before = nullptr;
    std::unordered_map<const TensorImpl*, Value*> tensors;
    std::unordered_map<uint64_t, Value*> numbers[4];
    std::unordered_map<const Object*, Value*> objects;
  };
  // Puts the nodes that follow into the block. Returns the scope outside of it.
  Scope enter(Block* block);
  // Ends that; only inputs of the graph stay known. Returns the scope of the block.
  Scope leave(Scope outer);

  // Where the nodes that follow come from.
  void setPlace(SourceRange place) { graph_->setCurrentRange(std::move(place)); }
  // Where callers put nodes of their own.
  Graph& graph() { return *graph_; }

  // ---- after ----

  // The graph with this result. RuntimeError when it is or holds anything but tensors, or a tensor
  // that depends on nothing that was recorded.
  std::shared_ptr<Graph> finish(const IValue& result);
  // After finish(): what each call of a submodule did, as a method of it, in the order of the calls'
  // ends. Without those that gave anything but tensors.
  const std::vector<ModuleMethod>& moduleMethods() const { return module_methods_; }
  // What must live as long as the graph: owners of functions that it calls.
  const std::vector<std::shared_ptr<void>>& owners() const { return owners_; }

 protected:
  // Runs what a recorded call does, with no layer that traces. For those who record calls that are
  // to run in another way.
  virtual void around(const std::function<void()>& run) { run(); }

 private:
  static Tracer* findActive();
  Value* constantFor(const IValue& value);
  Value* tensorValue(const Tensor& tensor);
  Value* objectValue(const Object* object);
  Value* listFor(const IValue& value, const TypePtr& type);
  Value* dictFor(const IValue& value);
  // `typeOf(i)` is what argument i is declared as, or null.
  template <class TypeOf>
  std::vector<Value*> argumentValues(std::span<const IValue> arguments, const TypeOf& typeOf);
  bool isRecorded(const Operator& op) const;
  void bind(Value* value, const IValue& is);
  void bindTensor(Value* value, const Tensor& tensor);
  void noteAttributes(const Object& object);
  Value* outputFor(const IValue& value, size_t number);
  IValue fresh(const IValue& value, size_t depth);

  std::shared_ptr<Graph> graph_;
  std::unordered_map<const TensorImpl*, Value*> tensors_;
  std::vector<Tensor> kept_;  // so that another tensor never has the identity of one of them
  std::unordered_map<const TensorImpl*, size_t> index_of_kept_;  // in kept_
  // Tensors in kept_ that were bound to a value once.
  std::unordered_map<const Value*, std::vector<size_t>> kept_of_;
  std::unordered_map<uint64_t, Value*> numbers_[4];  // constants: none, int, float, bool
  struct Place {
    const Object* owner;
    std::string name;
  };
  std::unordered_map<const TensorImpl*, Place> attributes_;
  std::unordered_map<const Object*, Place> objects_;
  std::unordered_map<const Object*, Value*> object_values_;
  std::vector<ObjectRef> modules_;
  std::vector<Value*> stash_;
  std::vector<Value*> results_;
  std::vector<std::shared_ptr<void>> owners_;
  std::vector<ModuleCall> open_calls_, module_calls_;
  std::vector<ModuleMethod> module_methods_;
};

// Activates a tracer on the calling thread. RuntimeError within another trace.
class TraceScope {
 public:
  explicit TraceScope(Tracer& tracer);

 private:
  CallLayerScope scope_;
};

// Nothing is recorded.
class PauseTrace {
 public:
  PauseTrace() : scope_(CallLayerSlot::Trace, nullptr) {}

 private:
  CallLayerScope scope_;
};

}  // namespace wick::tracing
