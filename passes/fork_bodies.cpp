//   %f : Future[int] = prim::fork[Subgraph=fork_0](%x)      the body of fork_0 computes 1 + 1
// →
//   %f : Future[int] = prim::fork[Subgraph=fork_0](%x)      the body of fork_0 is a copy with 2
#include "passes/fork_bodies.h"

#include "core/optimization_limit.h"
#include "ir/depth.h"

namespace wick {

namespace {

void optimizeIn(Block* b, const std::function<void(Graph& body)>& optimize) {
  for (Node* n : b->nodes()) {
    for (Block* sub : n->blocks()) optimizeIn(sub, optimize);
    if (n->kind() != prim::fork || !n->hasAttribute(attr::Subgraph)) continue;
    if (!WICK_MAY_OPTIMIZE("enters {}", n->outputs().empty() ? "" : n->output(0)->debugName())) {
      continue;
    }
    std::shared_ptr<Graph> body = n->subgraph(attr::Subgraph)->copy();
    optimize(*body);
    n->setAttribute(attr::Subgraph, std::move(body));
  }
}

}  // namespace

void optimizeForkBodies(Graph& graph, const std::function<void(Graph& body)>& optimize) {
  withStackFor(graph, [&] { optimizeIn(graph.block(), optimize); });
}

}  // namespace wick
