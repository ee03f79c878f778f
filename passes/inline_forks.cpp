// Bodies that fork themselves are inlined as well, from the outside inwards.
#include "passes/inline_forks.h"

#include <algorithm>

#include "passes/inline_calls.h"

namespace wick {

namespace {

// Programs are bounded in what they become, as by inlineCalls().
constexpr size_t kMaxNodes = 100000;

void collectForks(Block* block, std::vector<Node*>& forks) {
  for (Node* node : block->nodes()) {
    if (node->kind() == prim::fork) forks.push_back(node);
    for (Block* inner : node->blocks()) collectForks(inner, forks);
  }
}

bool isOnlyAwaited(const Node* fork) {
  return std::ranges::all_of(fork->output()->uses(),
                             [](const Use& use) { return use.user->kind() == aten::wait; });
}

}  // namespace

std::vector<InlinedFork> inlineForks(Graph& graph) {
  std::vector<InlinedFork> inlined;
  std::vector<Node*> forks;
  collectForks(graph.block(), forks);
  const size_t own = forks.size();
  // Those of bodies are appended.
  for (size_t i = 0; i < forks.size(); ++i) {
    Node* fork = forks[i];
    const std::shared_ptr<Graph> body = fork->subgraph(attr::Subgraph)->copy();
    inlineCalls(*body);
    if (!isOnlyAwaited(fork) || body->outputs().size() != 1 ||
        graph.nodeCount() + body->nodeCount() > kMaxNodes) {
      continue;
    }
    if (i < own) inlined.push_back({i, fork->inputs()});
    Node* const before = fork->prev();
    const InsertPointGuard guard(fork);
    Value* const result = inlineGraph(graph, *body, fork->inputs()).front();
    for (Node* n = before->next(); n != fork; n = n->next()) {
      if (n->kind() == prim::fork) forks.push_back(n);
      for (Block* inner : n->blocks()) collectForks(inner, forks);
    }
    while (!fork->output()->uses().empty()) {
      Node* wait = fork->output()->uses().front().user;
      wait->output()->replaceAllUsesWith(result);
      wait->destroy();
    }
    fork->destroy();
  }
  return inlined;
}

}  // namespace wick
