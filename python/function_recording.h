// Functions with derivatives of their own in a recording for wick.compile.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "core/tensor.h"
#include "tracing/tracer.h"

namespace wick::python {

// All parts of a call of such a function, as fakes.
struct FunctionParts {
  std::vector<Tensor> arguments;
  std::vector<Tensor> gradients;  // one for each argument, undefined where there is none
  std::vector<Tensor> results;
  std::vector<bool> differentiable;  // for each result
  std::vector<Tensor> saved;         // all that the derivative gets besides the gradients
};

// Puts a call of wick::custom_function into the graph that a tracer records on fakes. All functions throw
// capture::GraphBreak for what cannot be recorded.
class FunctionRecording {
 public:
  // Memory, and how often it was written to.
  using Writes = std::vector<std::pair<Ref<Storage>, uint32_t>>;

  // `inputs` are those of the graph, as they came.
  FunctionRecording(tracing::Tracer& tracer, const Writes& inputs)
      : tracer_(tracer), inputs_(inputs) {}

  // Begins the function, which runs without gradients.
  void begin();
  // Begins its derivative. Returns the fakes for the gradients of the results.
  std::vector<Tensor> beginDerivative(const std::vector<Tensor>& saved,
                                      const std::vector<Tensor>& results);
  // Returns the fakes of the results. `step` is of the root frame.
  std::vector<Tensor> end(const FunctionParts& parts, int64_t step);
  // Breaks the graph, at the call, for results on the memory of a tensor from outside if one of both is
  // written to; with `views` also for such results among the outputs.
  void check(const std::vector<Tensor>& inputs, const std::vector<Tensor>& outputs,
             bool views) const;
  // Remembers how often the tensors that are known have been written to.
  void watchKnown();
  // Breaks the graph if one of them was written to since, or an input that has come since.
  void checkWrites();

  bool isWithin() const { return holder_ != nullptr; }
  bool any() const { return !holders_.empty(); }
  // Gives up what the graph does not need, before it is finished.
  void finish();

 private:
  // A value outside of a block and the one that stands for it within.
  using Values = std::unordered_map<Value*, Value*>;
  std::shared_ptr<Graph> forwardGraph(const FunctionParts& parts, std::vector<Value*>& arguments);
  std::shared_ptr<Graph> backwardGraph(const FunctionParts& parts, const TypePtr& saved,
                                       size_t num_others);
  void endDerivative(const FunctionParts& parts);
  void watch(const Tensor& tensor);
  std::vector<Tensor> resultsOf(const FunctionParts& parts) const;

  void noteAliases(const FunctionParts& parts, const std::vector<Tensor>& results, int64_t step);

  // A result on the memory of a tensor from outside, by another fake.
  struct Alias {
    Tensor fake;
    Ref<Storage> memory;
    uint32_t version = 0;
    int64_t step = 0;
  };

  tracing::Tracer& tracer_;
  const Writes& inputs_;
  std::vector<Alias> aliases_;
  std::vector<Writes> watched_;  // for each part that must not write, outermost first
  Node* holder_ = nullptr;       // has the two blocks
  std::vector<Node*> holders_;
  tracing::Tracer::Scope outer_, forward_;
};

}  // namespace wick::python
