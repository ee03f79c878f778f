// Compiled graphs, kept by their text.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/device_backend.h"
#include "core/thread_context.h"
#include "ir/function.h"
#include "lazy/graph.h"

namespace wick::lazy {

// What a part of a graph says, and what is handed over when it runs.
struct Description {
  std::string key;                // equal for equal computations
  std::vector<IValue> arguments;  // data and numbers, in the order of their first use
};

// Where an argument comes from: the graph's inputs, or the numbers of all of its records in order.
struct ArgumentSource {
  bool is_input;
  uint32_t index;
};

class Program {
 public:
  static Description describe(const Graph& graph, const Graph::Plan& plan);
  // Of the description's arguments, in their order.
  static std::vector<ArgumentSource> sources(const Graph& graph, const Graph::Plan& plan);
  // From the cache, or made. `compiled` says which.
  static std::shared_ptr<Program> find(const Graph& graph, const Graph::Plan& plan,
                                       const std::string& key, bool& compiled);
  // The values that the plan asks for.
  std::vector<IValue> run(std::vector<IValue> arguments);

 private:
  static std::shared_ptr<wick::Graph> build(const Graph& graph, const Graph::Plan& plan);
  std::unique_ptr<GraphFunction> function_;
  size_t outputs_ = 0;
};

void setProgramCacheSize(size_t programs);

// The calling thread computes for lazy tensors: nothing is recorded, gradients and layers are off.
class ComputeScope {
 public:
  ComputeScope();

 private:
  ThreadContextScope context_;
  OnCpuScope device_;
};

}  // namespace wick::lazy
