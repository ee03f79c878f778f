//   %f : Future[int] = prim::fork[Subgraph=fork_0](%x)      the body of fork_0 computes 1 + 1
// →
//   %f : Future[int] = prim::fork[Subgraph=fork_0](%x)      the body of fork_0 is a copy with 2
#include "passes/fork_bodies.h"

#include "core/optimization_limit.h"
#include "ir/depth.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

void optimizeFork(Node* n, const std::function<void(Graph& body)>& optimize) {
  if (n->kind() != prim::fork || !n->hasAttribute(attr::Subgraph)) return;
  if (!WICK_MAY_OPTIMIZE("enters {}", n->outputs().empty() ? "" : n->output(0)->debugName())) {
    return;
  }
  std::shared_ptr<Graph> body = n->subgraph(attr::Subgraph)->copy();
  optimize(*body);
  n->setAttribute(attr::Subgraph, std::move(body));
}

}  // namespace

void optimizeForkBodies(Graph& graph, const std::function<void(Graph& body)>& optimize) {
  withStackFor(graph,
               [&] { forEachNode(graph.block(), [&](Node* n) { optimizeFork(n, optimize); }); });
}

}  // namespace wick
