// How a region of a program - operators without control flow whose formulas are known, among them
// reductions, normalization and products - runs and is differentiated for arguments of given sizes.
//
//   region(x, w):  h = linear(x, w)      forward(x, w):     (layer_norm(gelu(h)), h)
//                  t = gelu(h)           backward(x, w, h, g):
//                  y = layer_norm(t)        t = gelu(h); gt = …; gh = …
//                                           return (gh @ w, gh.t() @ x)
//
// What backward reads of the forward values is computed again from what is saved, as far as that is
// pointwise or a view; results of products and reductions are saved. Which values are saved is a
// minimum cut, by their numbers of elements, between what must be saved and what formulas read.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/ivalue.h"
#include "core/tensor.h"
#include "ir/function.h"
#include "ir/graph.h"

namespace wick::autograd {

// Whether a node that is not pointwise may stand in a region: its formula is known and reads no
// more than its arguments, its result and their sizes, and its result is a new tensor or a view.
bool joinsRegions(const wick::Node* node);

// Thread-safe.
class RegionPlan {
 public:
  // What is known of an argument: of a tensor the dtype and sizes, of a number perhaps its value.
  struct Input {
    std::optional<DType> dtype;
    DimVector sizes;
    std::optional<IValue> constant;
  };
  // Bit i of `mask`: argument i needs a gradient; of `leaves`: it is a leaf, which is in memory
  // anyway. Null when the sizes of some value are not known or a formula does not fit.
  static std::shared_ptr<const RegionPlan> make(const Graph& body, const std::vector<Input>& inputs,
                                                uint64_t mask, uint64_t leaves);

  // A value that a call saves.
  struct Saved {
    enum class Kind { Argument, Result } kind;
    size_t index;  // of a Result: in what forward() returns
  };
  const std::vector<Saved>& saved() const { return saved_; }
  // Returns the body's results, and behind them what else is saved, as a tuple.
  GraphFunction& forward() const { return *forward_; }
  // How many results of forward() are the body's.
  size_t numResults() const { return body_->outputs().size(); }
  // Whether a result of forward() comes from arguments that need gradients.
  bool needsGradient(size_t result) const { return results_need_it_[result]; }
  size_t numForwardResults() const { return results_need_it_.size(); }
  // The arguments that need gradients.
  const std::vector<size_t>& arguments() const { return arguments_; }

  struct Backward {
    std::shared_ptr<CompilationUnit> unit;
    GraphFunction* function = nullptr;  // null when no argument has a gradient
    struct Parameter {
      enum class Kind { Saved, Gradient } kind;
      size_t index;  // in saved(), or of the result of forward()
    };
    std::vector<Parameter> parameters;
    std::vector<size_t> found;  // in arguments(): whose gradients it returns, as a tuple
  };
  // Bit i of `defined`: there is a gradient of result i of forward(). Made when first asked for.
  const Backward& backward(uint64_t defined) const;

 private:
  RegionPlan() = default;
  bool findNeeds(uint64_t mask);
  bool findSaved(uint64_t leaves);
  void buildForward();
  std::unique_ptr<Backward> build(uint64_t defined) const;
  friend class RegionBackward;

  std::shared_ptr<Graph> body_;  // with the types of all values
  std::unordered_map<const Value*, bool> needed_;
  std::vector<Saved> saved_;
  std::vector<const Value*> saved_values_;     // in the body
  std::vector<const Value*> forward_results_;  // in the body
  std::vector<bool> results_need_it_;
  std::vector<size_t> arguments_;
  std::shared_ptr<CompilationUnit> unit_;
  GraphFunction* forward_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::unordered_map<uint64_t, std::unique_ptr<Backward>> backward_;
};

}  // namespace wick::autograd
