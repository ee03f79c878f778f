// Gathers nodes that one kernel can compute into prim::FusionGroup nodes.
#pragma once

#include <cstddef>
#include <functional>

#include "ir/graph.h"

namespace wick {

enum class FusionKind {
  None,
  Pointwise,  // every element from the elements at the same position
  Reduction,  // sums, extrema and what is made of them (softmax, layer norm)
  Indexed,    // elements by their indices
  Join,       // cat and stack, with the list they read
  View,       // another way to index: reads no number
  Composite,  // computes as several operators do: worth a kernel by itself
};

struct FusionOptions {
  // Of the nodes that hold the groups: prim::FusionGroup or prim::DifferentiableGraph.
  Symbol group_kind = prim::FusionGroup;
  // What a node is to a kernel, whatever its inputs' types; something only for operators that write
  // nothing, draw nothing and raise for wrong shapes or indices alone.
  std::function<FusionKind(const Node*)> kind_of;
  // Groups that compute less than this are dissolved. Views and lists do not count, composites
  // count as two.
  size_t min_computing_nodes = 2;
  // Pointwise nodes that are enough for a group; none when it is empty.
  std::function<bool(const Node*)> suffices = nullptr;
  // Whether a result that the group reads itself must not also be read by this other node; never
  // when it is empty.
  std::function<bool(const Node* reader)> exposes = nullptr;
  // Whether nodes that draw random numbers may join, where kind_of() lets them: a group keeps the
  // order of all that draws.
  bool may_draw = false;
  // How many prim::Ifs a group may hold, each with those in its blocks: such whose blocks hold
  // nothing that could not join, and whose results the blocks compute or get from outside.
  size_t max_branches = 0;
  // What a kernel can take in.
  size_t max_nodes = 500;
  size_t max_values = 120;  // inputs and outputs together
};

// Moves nodes into group nodes, whose attribute Subgraph holds a graph without loops; constants are
// copied in. A group is found from its last node backwards: a producer joins
// when it can be moved in front of the group (AliasDb), also if others use its results; so does a
// node that reads a tensor which the group reads. Views and
// joins enter only with a node that computes from them; of lists that others read too a copy
// enters. No order of writes and reads changes; errors for wrong shapes may come earlier or later.
void formFusionGroups(Graph& graph, const FusionOptions& options);

// Puts the nodes of all groups back into the graph; what is computed does not change.
void dissolveFusionGroups(Graph& graph);

}  // namespace wick
