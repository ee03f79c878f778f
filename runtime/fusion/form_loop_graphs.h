// Loops that are differentiated as a whole.
#pragma once

#include <functional>

#include "ir/graph.h"
#include "passes/fusion_groups.h"

namespace wick {

// Puts each loop into a prim::DifferentiableGraph of its own that runs a known number of times,
// carries tensors alone and holds nothing but what `options` lets join, and calls of append on lists
// that it does not read. What it appends becomes a result, behind those of the loop:
//
//   %h = prim::Loop(%n, %true, %h0)        %h, %new = prim::DifferentiableGraph_0(%n, %h0, %w)
//     block0(%i, %p):                      aten::extend(%list, %new)
//       %q = aten::mm(%p, %w)           →    with prim::DifferentiableGraph_0:
//       aten::append(%list, %q)                %new = prim::ListConstruct()
//       -> (%true, %q)                         %h = prim::Loop(…)  # appends to %new
//
// An appended tensor that the loop reads itself must not be found by others that could ask for its
// gradient: then all readers of the list are such that options.exposes() allows.
void formLoopGraphs(Graph& graph, const FusionOptions& options);

// Whether a prim::DifferentiableGraph is one of these.
bool isLoopGraph(const Node* node);

// Calls `f` with the body of each of them.
void forEachLoopGraph(Block* block, const std::function<void(Node*)>& f);

}  // namespace wick
