// Bodies that fork themselves are inlined as well, from the outside inwards.
#include "passes/inline_forks.h"

#include <algorithm>

#include "ir/depth.h"
#include "passes/inline_calls.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

// Programs are bounded in what they become, as by inlineCalls(). A function may fork itself.
constexpr size_t kInlineForksMaxNodes = 100000;
constexpr size_t kMaxForks = 1000;

void collectForks(const Block* block, std::vector<Node*>& forks) {
  forEachNode(block, [&](Node* node) {
    if (node->kind() == prim::fork) forks.push_back(node);
  });
}

bool isOnlyAwaited(const Node* fork) {
  return std::ranges::all_of(fork->output()->uses(),
                             [](const Use& use) { return use.user->kind() == aten::wait; });
}

// Adds the forks of the body.
void replace(Graph& graph, Node* fork, const Graph& body, std::vector<Node*>& forks) {
  Node* const before = fork->prev();
  const InsertPointGuard guard(fork);
  withStackFor(body, [&] {
    Value* const result = inlineGraph(graph, body, fork->inputs()).front();
    for (Node* n = before->next(); n != fork; n = n->next()) {
      if (n->kind() == prim::fork) forks.push_back(n);
      for (Block* inner : n->blocks()) collectForks(inner, forks);
    }
    while (!fork->output()->uses().empty()) {
      Node* wait = fork->output()->uses().front().user;
      wait->output()->replaceAllUsesWith(result);
      wait->destroy();
    }
  });
  fork->destroy();
}

}  // namespace

std::vector<InlinedFork> inlineForks(Graph& graph, const std::function<bool(const Node*)>& wanted) {
  std::vector<InlinedFork> inlined;
  std::vector<Node*> forks;
  withStackFor(graph, [&] { collectForks(graph.block(), forks); });
  const size_t own = forks.size();
  // Those of bodies are appended.
  for (size_t i = 0; i < std::min(forks.size(), kMaxForks); ++i) {
    Node* const fork = forks[i];
    if (wanted && !wanted(fork)) continue;
    const Graph& forked = *fork->subgraph(attr::Subgraph);
    if (!isOnlyAwaited(fork) || forked.outputs().size() != 1) continue;
    if (graph.nodeCount() + forked.nodeCount() > kInlineForksMaxNodes) break;
    const std::shared_ptr<Graph> body = forked.copy();
    inlineCalls(*body);
    if (graph.nodeCount() + body->nodeCount() > kInlineForksMaxNodes ||
        blockLevel(fork) + blockDepth(*body) > kMaxBlockDepth) {
      break;
    }
    if (i < own) inlined.push_back({i, fork->inputs()});
    replace(graph, fork, *body, forks);
  }
  return inlined;
}

}  // namespace wick
