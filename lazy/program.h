// Compiled graphs, kept by their text.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/device_backend.h"
#include "core/thread_context.h"
#include "ir/function.h"
#include "lazy/graph.h"

namespace wick {
class Code;
}

namespace wick::lazy {

struct Split;

// What a part of a graph says, and what is handed over when it runs.
struct Description {
  std::string key;                // equal for equal computations
  std::vector<IValue> arguments;  // data and numbers, in the order of their first use
  bool donates = false;           // the key says so too
};

// Where an argument comes from.
struct ArgumentSource {
  enum class Kind : uint8_t {
    Input,   // of the graph
    Number,  // handed over; counted over all of the graph's records
    Value,   // that another part of the graph computes
  };
  Kind kind;
  uint32_t index;
  bool operator==(const ArgumentSource&) const = default;
};

class Program {
 public:
  // `spare`: of each input, whether its memory may become a result's; empty: of no input.
  static Description describe(const Graph& graph, const Graph::Plan& plan,
                              const std::vector<bool>& spare);
  // Of the description's arguments, in their order.
  static std::vector<ArgumentSource> sources(const Graph& graph, const Graph::Plan& plan);
  // From the cache, or made. `compiled` says which.
  static std::shared_ptr<Program> find(const Graph& graph, const Graph::Plan& plan,
                                       const std::vector<bool>& spare, const Targets& targets,
                                       const std::string& key, bool& compiled);
  // The plan as an ordinary graph.
  static std::shared_ptr<wick::Graph> build(const Graph& graph, const Graph::Plan& plan);
  // The values that the plan asks for. A program that donates calls `let_go` when all that may fail
  // is done: nobody but it should hold the arguments then.
  std::vector<IValue> run(std::vector<IValue> arguments, const std::function<void()>& let_go);

 private:
  // A part of the graph as a function, and where its arguments and results are.
  struct Part {
    std::unique_ptr<GraphFunction> function;  // null: nothing to compute
    size_t outputs = 0;
    struct From {
      bool of_first;  // a result of the first part, else an argument of the program
      size_t index;
    };
    std::vector<From> arguments;
  };
  static Split split(const Graph& graph, const Graph::Plan& plan, const std::vector<bool>& spare,
                     const Targets& targets);
  static Part makePart(const Graph& graph, const Graph::Plan& plan,
                       const std::vector<ArgumentSource>& given,
                       const std::vector<ValueId>& computed);
  static std::vector<IValue> runPart(const Part& part, const Code* code,
                                     std::vector<IValue> arguments);
  Part first_, last_;
  // Of each output: whether the last part gives it, and which of its results it is.
  std::vector<std::pair<bool, size_t>> outputs_;
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
