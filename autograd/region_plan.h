// How a region of a program - operators whose formulas are known, among them reductions,
// normalization and products, with branches between them - runs and is differentiated for arguments
// of given dtypes and ranks. The sizes may differ from call to call, as far as the plan's pattern
// says (autograd/size_pattern.h); those that formulas ask for are found when a call is made. The
// conditions of branches are arguments too, so a plan knows which branch runs.
//
//   region(x, w):  h = linear(x, w)      forward(x, w):     (layer_norm(gelu(h)), h)
//                  t = gelu(h)           backward(x, w, h, g):
//                  y = layer_norm(t)        t = gelu(h); gt = …; gh = …
//                                           return (gh @ w, gh.t() @ x)
//
// What backward reads of the forward values is computed again from what is saved, as far as that is
// pointwise or a view; results of products and reductions are saved. Which values are saved is a
// minimum cut, by their numbers of elements in the first call, between what must be saved and what
// formulas read.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "autograd/graph_operators.h"
#include "autograd/saved_uses.h"
#include "autograd/size_pattern.h"
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
  // What is known of an argument in the first call: of a tensor the dtype and sizes, of an int or a
  // bool its value.
  struct Input {
    std::optional<DType> dtype;
    DimVector sizes;
    std::optional<IValue> value;
  };
  // Who may write to arguments and results before a walk: bit i says that somebody may to number i.
  struct Writes {
    uint64_t arguments = 0, results = 0;
  };
  // The numbers that a pattern is about, in the order of the arguments.
  static std::vector<int64_t> numbersOf(const std::vector<Input>& inputs);
  // `sizes`: of these numbers. Bit i of `mask`: argument i needs a gradient; of `leaves`: it is a
  // leaf, which is in memory anyway. Null when the rank of some value is not known or a formula
  // does not fit.
  // `carried`: the body is that of a loop (autograd/loop_region.h) that carries this many values. It
  // gets the number of the iteration, these, and what comes from outside; its first results are what
  // the next iteration gets. The plan serves all iterations. Null where what is carried changes its
  // dtype or sizes, or which results need gradients changes from iteration to iteration.
  static std::shared_ptr<const RegionPlan> make(const Graph& body, const std::vector<Input>& inputs,
                                                const SizePattern& sizes, uint64_t mask,
                                                uint64_t leaves, const Writes& writes,
                                                std::optional<size_t> carried = std::nullopt);

  // How many there have been in the process.
  static uint64_t numMade();

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
  // Of a result of the body whether it is a tensor without dimensions.
  bool isScalar(size_t result) const;
  // What a result of forward() is that is no tensor of its own: an argument as it came, or an
  // earlier result.
  struct Same {
    bool argument;
    size_t index;
  };
  const std::optional<Same>& sameAs(size_t result) const { return same_[result]; }
  // A size that formulas ask for: of a dimension of an argument, or a result of forward().
  struct Number {
    bool argument;
    size_t index, dim;
  };
  const std::vector<Number>& numbers() const { return numbers_; }
  // Whether a result of forward() comes from arguments that need gradients.
  bool needsGradient(size_t result) const { return results_need_it_[result]; }
  size_t numForwardResults() const { return results_need_it_.size(); }
  // The operators of the body; its results are those of forward().
  const GraphOperators& operators() const { return *operators_; }
  // The same for the first iteration of a loop, where fewer arguments may need gradients.
  const GraphOperators& operatorsAtFirst() const { return at_first_ ? *at_first_ : *operators_; }
  const SavedUses& uses() const { return *uses_; }
  // The arguments that need gradients.
  const std::vector<size_t>& arguments() const { return arguments_; }

  struct Backward {
    std::shared_ptr<CompilationUnit> unit;
    GraphFunction* function = nullptr;  // null when no argument has a gradient
    struct Parameter {
      enum class Kind { Saved, Gradient, Number } kind;
      size_t index;  // in saved(), of the result of forward(), in numbers()
    };
    std::vector<Parameter> parameters;
    std::vector<size_t> found;  // in arguments(): whose gradients it returns, as a tuple
    SavedOfGraph::Passage passage;
  };
  // For a walk that brings gradients of results of forward() and wants those of arguments of the
  // body. Made when first asked for, and kept for some walks; a program decides how many it asks for.
  std::shared_ptr<const Backward> backward(Ends walk) const;
  // The arguments that need gradients, as bits.
  uint64_t argumentBits() const;

 private:
  RegionPlan() = default;
  bool findTypes(const Graph& body, const std::vector<Input>& inputs, const SizePattern& sizes);
  void nameSizes(const std::vector<Input>& inputs, const SizePattern& sizes);
  bool expandComposites();
  bool findNeeds(uint64_t mask);
  bool keepsTypes(size_t carried) const;
  bool findNeedsOfLoop(uint64_t mask, size_t carried);
  void findResults();
  // autograd/region_saved.cpp:
  bool findSaved(uint64_t leaves);
  bool findCut(uint64_t leaves, const std::unordered_set<const Value*>& stays,
               std::vector<const Value*>& saved) const;
  void addUncut(const GraphOperators& operators, std::vector<const Value*>& saved) const;
  std::vector<const Value*> readWrongly(const GraphOperators& operators,
                                        const std::vector<const Value*>& saved) const;
  bool mayBeWritten(const Value* v) const;
  bool isFree(const Value* v) const;
  std::vector<const Value*> computedFrom(const Value* v) const;
  std::function<bool(const Value*)> needs() const;
  void findUses();
  void findNumbers();
  void addNumbers(const Value* sizes_of);
  // The symbol of an int that is a size.
  std::optional<int64_t> symbolOf(const Value* v) const;
  int64_t elementsOf(const Value* v) const;
  void buildForward();
  std::shared_ptr<const Backward> build(Ends walk) const;
  friend class RegionBackward;

  std::shared_ptr<Graph> body_;  // with the types of all values; sizes that differ are symbols
  std::unordered_map<const Value*, int64_t> elements_;     // in the first call
  std::unordered_map<const Value*, int64_t> int_symbols_;  // of ints that are sizes
  std::unordered_map<const Value*, bool> needed_;
  std::optional<std::unordered_map<const Value*, bool>> needed_at_first_;  // of a loop
  std::vector<Saved> saved_;
  std::vector<const Value*> saved_values_;     // in the body
  std::vector<const Value*> forward_results_;  // in the body
  std::vector<bool> results_need_it_;
  std::vector<std::optional<Same>> same_;
  std::unique_ptr<const GraphOperators> operators_, at_first_;
  std::unique_ptr<const SavedUses> uses_;
  Writes writes_;
  std::vector<size_t> arguments_;
  std::vector<Number> numbers_;
  std::vector<int64_t> symbols_;                               // of each of numbers_
  std::vector<std::pair<const Value*, size_t>> result_sizes_;  // dimensions of values in the body
  std::shared_ptr<CompilationUnit> unit_;
  GraphFunction* forward_ = nullptr;
  mutable std::mutex mutex_;
  mutable std::unordered_map<Ends, std::shared_ptr<const Backward>, HashOfEnds> backward_;
};

}  // namespace wick::autograd
