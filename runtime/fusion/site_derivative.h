// The derivative of a prim::DifferentiableGraph or prim::JointGraph: what runs of it when one of its
// arguments requires a gradient. autograd/ makes them; without it there are no such graphs.
#pragma once

#include <functional>
#include <memory>

#include "core/ivalue.h"
#include "ir/graph.h"

namespace wick {

// Of one place in a program. Thread-safe.
class SiteDerivative {
 public:
  virtual ~SiteDerivative() = default;
  // Called while gradients are recorded, with arguments that may require gradients.
  // `forward` computes the results without recording, or gives false when it cannot. True when the
  // results stand in `results` and the tape knows where they come from; false when nothing
  // happened, and the caller runs the graph's nodes one by one, each recorded by itself.
  virtual bool run(const IValue* arguments, size_t num_arguments, IValue* results,
                   size_t num_results, const std::function<bool()>& forward) = 0;

  // Whether the graph is not for kernels as a whole: then run() does without `forward`, and
  // compute() gives the results where nothing is to be recorded.
  virtual bool computesAlone() const { return false; }
  virtual bool compute(const IValue* arguments, size_t num_arguments, IValue* results,
                       size_t num_results) {
    (void)arguments, (void)num_arguments, (void)results, (void)num_results;
    return false;
  }

  struct Factory {
    // Whether the derivative of a pointwise node is known and needs no more than its arguments,
    // its result and their sizes.
    bool (*differentiable)(const Node* node);
    // The same for reductions, products and views (autograd/region_plan.h).
    bool (*joins_regions)(const Node* node);
    // Of a prim::DifferentiableGraph or prim::JointGraph.
    std::unique_ptr<SiteDerivative> (*make)(const Node& graph);
    // Whether a tensor is where walks back end, and they call nobody there.
    bool (*ends_quietly)(const Tensor& t);
  };
  // Attributes of a prim::DifferentiableGraph, ints: bit i says that the program may write to what
  // input or output i is.
  static Symbol writtenInputs() { return Symbol::attr("written_inputs"); }
  static Symbol writtenOutputs() { return Symbol::attr("written_outputs"); }

  // Set once, before main(); null when there is none.
  static void setFactory(const Factory* factory);
  static const Factory* factory();
};

}  // namespace wick
