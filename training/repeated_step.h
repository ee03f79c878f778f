// Steps of a training that a device repeats as one piece of work.
//
// From a batch to the gradients of all parameters a step queues the same work each time, where batches
// have the same sizes. After a few steps the device notes that work (GroupBackend::repeat, on CUDA a
// graph: runtime/cuda/call_graphs.h), and later steps launch it as a whole. Updates stay apart: their
// numbers change with each step, and a loss that is not finite must be seen before them.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/module.h"
#include "training/data_set.h"

namespace wick::training {

// Used by one thread at a time.
class RepeatedStep {
 public:
  // `method`: of the module, what each step calls. `parameters` get the gradients. Where `refusal` is
  // not empty, or the method does more than compute (it prints, it sets attributes, it draws random
  // numbers), nothing is ever repeated. Numbers and booleans among the module's attributes may change
  // between steps; after other attributes have changed, forget() is to be called.
  RepeatedStep(const Module& module, GraphFunction& method, std::vector<Tensor> parameters,
               Device device, std::string refusal);

  struct Result {
    Tensor loss, right;  // `right` may be undefined
  };
  // Computes the result for a batch and leaves gradients at the parameters, which had none.
  using Run = std::function<Result(const DataSet& batch)>;
  // What `run` would give and do, or nothing where the caller is to run it. Then parameters have no
  // gradients. The result and the gradients are the device's, until the next call.
  std::optional<Result> repeat(const DataSet& batch, const Run& run);
  // The module's tensors may be others now.
  void forget();

  int64_t repeated() const { return repeated_; }  // steps
  // Why the last one was not, or why none ever is; empty where it was.
  const std::string& refusal() const { return refusal_.empty() ? last_refusal_ : refusal_; }

 private:
  IValue runOnce(const DataSet& batch, const Run& run, std::vector<IValue> arguments);
  void clearGradients() const;

  Module module_;
  std::vector<Tensor> parameters_;
  Device device_;
  std::string refusal_;  // of all steps
  std::string last_refusal_;
  std::shared_ptr<const void> token_;  // what the device knows these steps by
  int64_t steps_ = 0;
  std::vector<std::pair<ObjectRef, size_t>> numbers_;  // slots of the module and of those in it
  int64_t repeated_ = 0;
};

}  // namespace wick::training
