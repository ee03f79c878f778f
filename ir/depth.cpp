#include "ir/depth.h"

#include <algorithm>
#include <vector>

namespace wick {

size_t blockDepth(const Graph& graph) {
  struct Visit {
    const Block* block;
    size_t depth;
  };
  std::vector<Visit> open = {{graph.block(), 1}};
  size_t deepest = 0;
  while (!open.empty()) {
    auto [block, depth] = open.back();
    open.pop_back();
    deepest = std::max(deepest, depth);
    for (const Node* node : block->nodes()) {
      for (const Block* inner : node->blocks()) open.push_back({inner, depth + 1});
    }
  }
  return deepest;
}

}  // namespace wick
