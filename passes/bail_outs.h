// Leaving an optimized graph when a guard fails.
#pragma once

#include <memory>
#include <vector>

#include "ir/graph.h"

namespace wick {

// A graph as it was before it was optimized any further, with its guards: where bail-outs resume.
struct BailOutPoints {
  struct Point {
    Node* guard;                    // in `graph`
    std::vector<Value*> live;       // what the rest of the graph reads, in `graph`
    std::vector<Value*> constants;  // and those of them that are constant
  };
  std::shared_ptr<Graph> graph;
  std::vector<Point> points;
};

// Replaces each prim::Guard by a prim::BailOut, whose attribute `index` is its number among the
// points that are returned; behind the guarded values it reads all others that the rest of the
// graph needs. Later passes may change the graph as they like as long as these nodes keep their
// order with everything that others could notice (Node::hasSideEffects, AliasDb). Keeps
// kMaxBailOuts guards, so that the work is linear. When it drops others it also forgets what is
// known of all tensors, inputs included, except behind the guards that stay.
std::shared_ptr<const BailOutPoints> insertBailOuts(Graph& graph);
inline constexpr size_t kMaxBailOuts = 32;

// What is left to do at a point: a graph that takes the live values and gives the outputs of the
// whole. In a loop that is the rest of the iteration and the iterations that remain; behind an If
// or a Loop goes on what followed it. Supposes nothing of the guarded values. Linear.
std::shared_ptr<Graph> continuationAt(const BailOutPoints& points, size_t index);

}  // namespace wick
