// Augmenting paths of fewest edges (Edmonds and Karp).
#include "autograd/vertex_cut.h"

#include <algorithm>
#include <deque>

namespace wick::autograd {

bool VertexCut::find(std::vector<size_t>& saved) {
  int64_t total = 0;
  while (const int64_t more = augment()) {
    total += more;
    if (total >= kNever) return false;
  }
  const std::vector<Step> reached = search();
  for (size_t v = 0; v < values_; ++v) {
    if (reached[2 * v].seen && !reached[2 * v + 1].seen) saved.push_back(v);
  }
  return true;
}

void VertexCut::connect(size_t from, size_t to, int64_t capacity) {
  edges_[from].push_back({to, capacity, edges_[to].size()});
  edges_[to].push_back({from, 0, edges_[from].size() - 1});
}

std::vector<VertexCut::Step> VertexCut::search() const {
  std::vector<Step> steps(edges_.size());
  std::deque<size_t> pending{source()};
  steps[source()].seen = true;
  while (!pending.empty()) {
    const size_t at = pending.front();
    pending.pop_front();
    for (size_t e = 0; e < edges_[at].size(); ++e) {
      const Edge& edge = edges_[at][e];
      if (edge.capacity <= 0 || steps[edge.to].seen) continue;
      steps[edge.to] = {true, at, e};
      pending.push_back(edge.to);
    }
  }
  return steps;
}

int64_t VertexCut::augment() {
  const std::vector<Step> steps = search();
  if (!steps[sink()].seen) return 0;
  int64_t least = kNever;
  for (size_t at = sink(); at != source(); at = steps[at].from) {
    least = std::min(least, edges_[steps[at].from][steps[at].edge].capacity);
  }
  for (size_t at = sink(); at != source(); at = steps[at].from) {
    Edge& edge = edges_[steps[at].from][steps[at].edge];
    edge.capacity -= least;
    edges_[edge.to][edge.reverse].capacity += least;
  }
  return least;
}

}  // namespace wick::autograd
