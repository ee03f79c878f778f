// GraphFunction: a function whose body is a Graph, compiled on demand. CompilationUnit: the owner
// of functions and named types that refer to each other.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "core/function_schema.h"
#include "core/keyed_hash.h"
#include "ir/graph.h"

namespace wick {

// Any number of threads may ask for the schema, have the function defined and then read its graph.
// Definitions run one at a time in the whole process, for one pulls in others in any order.
class GraphFunction : public Function {
 public:
  // Builds the graph and sets the schema when the function is first needed.
  using Definer = std::function<void(GraphFunction&)>;

  // `graph` may be empty when `definer` fills it.
  GraphFunction(std::string qualified_name, std::shared_ptr<Graph> graph,
                Definer definer = nullptr);
  ~GraphFunction() override;

  const std::string& qualifiedName() const override { return name_; }
  const FunctionSchema& schema() override;
  // Runs the definer once. A function that needs itself while being defined is a CompileError
  // ("called recursively").
  void ensureDefined() override;
  bool isDefined() const { return state_.load(std::memory_order_acquire) == State::Defined; }
  bool isBeingDefined() const { return state_.load(std::memory_order_relaxed) == State::Defining; }
  // For definers, and before the function is shared.
  void setSchema(FunctionSchema schema) {
    settled_schema_.store(nullptr, std::memory_order_relaxed);
    schema_ = std::make_unique<FunctionSchema>(std::move(schema));
  }
  // The graph as the front end made it. Passes work on copies.
  const std::shared_ptr<Graph>& graph() const { return graph_; }
  void setGraph(std::shared_ptr<Graph> graph) { graph_ = std::move(graph); }

  // What the runtime attaches (its executor), made once by `make`. It lives as long as the
  // function. Thread-safe.
  void* attachment(const std::function<std::shared_ptr<void>()>& make);
  // What is attached already, or null. Thread-safe; takes no lock.
  void* attached() const { return attached_.load(std::memory_order_acquire); }
  // Later runs attach something new. Code of other functions may know the old one, which stays as long
  // as the function. Only while nobody runs it.
  void detach();

 private:
  enum class State { Undefined, Defining, Defined };
  std::string name_;
  std::shared_ptr<Graph> graph_;
  Definer definer_;
  std::atomic<State> state_;
  std::unique_ptr<FunctionSchema> schema_;
  // The schema once the function is defined and it cannot change any more.
  std::atomic<const FunctionSchema*> settled_schema_{nullptr};
  std::mutex mutex_;
  std::shared_ptr<void> attachment_;
  std::atomic<void*> attached_{nullptr};
};

// The schema that a graph's inputs and outputs imply, without defaults.
FunctionSchema defaultSchemaFor(const std::string& name, const Graph& graph);

// Not synchronized while it is being built; afterwards any number of threads may read it.
class CompilationUnit : public std::enable_shared_from_this<CompilationUnit> {
 public:
  CompilationUnit() = default;
  // Types that outlive it keep nothing but their names.
  ~CompilationUnit();
  CompilationUnit(const CompilationUnit&) = delete;
  CompilationUnit& operator=(const CompilationUnit&) = delete;

  // Names must be new: CompileError otherwise (see mangle).
  GraphFunction* createFunction(std::string qualified_name, std::shared_ptr<Graph> graph,
                                GraphFunction::Definer definer = nullptr);
  GraphFunction* findFunction(const std::string& qualified_name) const;
  // In order of creation.
  const std::vector<std::unique_ptr<GraphFunction>>& functions() const { return functions_; }

  // Classes, interfaces, enums and NamedTuples by qualified name.
  void registerType(const std::string& qualified_name, TypePtr type);
  TypePtr findType(const std::string& qualified_name) const;
  ClassTypePtr findClass(const std::string& qualified_name) const;
  const std::vector<std::pair<std::string, TypePtr>>& types() const { return types_; }

  // A qualified name not yet taken: "a.b" or "a.___torch_mangle_3.b".
  std::string mangle(const std::string& qualified_name) const;

 private:
  std::vector<std::unique_ptr<GraphFunction>> functions_;
  KeyedMap<std::string, GraphFunction*> function_index_;
  std::vector<std::pair<std::string, TypePtr>> types_;
  KeyedMap<std::string, TypePtr> type_index_;
  mutable size_t mangle_index_ = 0;
};

}  // namespace wick
