// prim::DifferentiableGraphs that hold more than pointwise operators (autograd/region_plan.h), and
// prim::JointGraphs, which hold one of these and the call that differentiates its result.
#pragma once

#include <optional>

#include "autograd/region_plan.h"
#include "ir/function.h"
#include "runtime/fusion/site_derivative.h"

namespace wick::autograd {

// The derivative of either.
std::unique_ptr<SiteDerivative> makeRegionDerivative(const wick::Node& graph);

// The known writes to arguments and results of a prim::DifferentiableGraph.
RegionPlan::Writes writesTo(const wick::Node& graph);

// A graph as a function, whose results come as a tuple: for calls that need no gradients.
class PlainFunction {
 public:
  explicit PlainFunction(std::shared_ptr<Graph> graph);
  // As SiteDerivative::compute.
  bool compute(const IValue* arguments, size_t num_arguments, IValue* results,
               size_t num_results) const;

 private:
  CompilationUnit unit_;
  GraphFunction* function_;
};

// What a call looks like to a graph's derivative: bit i of the result says that argument i requires
// a gradient. Nullopt for calls that graphs do not differentiate: floating tensors of several
// dtypes, complex numbers and reduced precision, tensors that are not dense.
std::optional<uint64_t> argumentsWithGradients(const IValue* arguments, size_t num_arguments);

}  // namespace wick::autograd
