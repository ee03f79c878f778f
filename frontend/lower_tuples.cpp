// One walk over the graph: an unpack is reached after the construct that it takes apart, so the
// construct's elements are final by then.
#include "frontend/lower_tuples.h"

namespace wick {
namespace {

void lowerIn(Block* block) {
  for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (Block* sub : node->blocks()) lowerIn(sub);
    if (node->kind() != prim::TupleUnpack) continue;
    Node* tuple = node->input(0)->node();
    if (tuple->kind() != prim::TupleConstruct) continue;
    // An output's type may be wider than its element's; readers rely on it.
    bool same = true;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      same &= sameType(node->output(i)->type(), tuple->input(i)->type());
    }
    if (!same) continue;
    for (size_t i = 0; i < node->outputs().size(); ++i) {
      node->output(i)->replaceAllUsesWith(tuple->input(i));
    }
    node->destroy();
    if (!tuple->output()->hasUses()) tuple->destroy();
  }
}

}  // namespace

void lowerSimpleTuples(Graph& graph) {
  lowerIn(graph.block());
}

}  // namespace wick
