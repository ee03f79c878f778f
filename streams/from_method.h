// The stream graph of a method or function: its layers and operators as filters.
#pragma once

#include <memory>

#include "ir/function.h"
#include "runtime/module.h"
#include "streams/overrides.h"
#include "streams/stream_graph.h"

namespace wick::streams {

// `program` is what runs: the method prepared for inference (runtime/inference.h), for one rank
// of its inputs (not `for_any_rank`, which makes one filter of two versions), or a function.
// Its calls should be inlined; one that is not is a filter of its own. `method` is what it was made
// from, for the paths of modules, and `module` its module; both null for a function.
//
// A filter is one module of torch.nn without submodules, or one operator outside of such; rules of
// `overrides` change that. What one kernel computes together stays in one filter, so that a filter
// by itself gives the bits that it gives within the program. Views, questions for sizes and the like
// belong to the filter behind them. Branches and loops are one filter. All that writes what outlives
// a call, draws random numbers or prints is one stateful filter with what stands between, so that
// calls under way at the same time give the results of calls one after the other.
//
// Constants are part of the filters that read them. UsageError for a rule that no layer fits, or
// whose srcs or dests are others. The graph keeps `program` alive.
StreamGraph fromMethod(const std::shared_ptr<GraphFunction>& program, GraphFunction* method,
                       const Module* module, const Overrides& overrides = {});

// The function as fromMethod() wants it: a copy with its calls inlined, that keeps `owner`.
std::shared_ptr<GraphFunction> inlinedFunction(GraphFunction& function,
                                               std::shared_ptr<void> owner);

}  // namespace wick::streams
