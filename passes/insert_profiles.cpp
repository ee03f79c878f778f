// A walk in the order of the graph. A value that was profiled in an enclosing block need not be
// again; one profiled in another branch must.
//
//   %d : int = prim::dtype(%x)       →       = prim::profile[index=0](%x)
//   return (%d)                              %d : int = prim::dtype(%x)
//                                            = prim::profile()
//                                            return (%d)
#include "passes/insert_profiles.h"

#include <unordered_map>

#include "passes/guard_nodes.h"

namespace wick {

namespace {

// Whether the type leaves open what a profile could say.
bool saysTooLittle(const Value* v) {
  if (v->node()->kind() == prim::Constant) return false;
  if (const auto* tensor = v->type()->as<TensorType>()) {
    return !tensor->facts().dtype || !tensor->facts().dim;
  }
  const auto* optional = v->type()->as<OptionalType>();
  return optional && optional->element()->kind() == TypeKind::Tensor;
}

class Inserter {
 public:
  Inserter(Graph& graph, ProfileChoice choice) : graph_(graph), choice_(choice) {}

  size_t run() {
    block(graph_.block());
    if (count_ > 0) graph_.block()->appendNode(graph_.create(profileKind(), 0));
    return count_;
  }

 private:
  void block(Block* b) {
    for (Node* n : b->nodes()) {
      bool reads =
          choice_ == ProfileChoice::Everything ? n->kind() != profileKind() : asksForTypes(n);
      if (reads) {
        for (Value* v : n->inputs()) {
          if (saysTooLittle(v)) profile(v, n);
        }
      }
      for (Block* sub : n->blocks()) block(sub);
    }
  }

  void profile(Value* v, Node* before) {
    std::vector<Block*>& blocks = profiled_[v];
    for (Block* b : blocks) {
      if (before->isInside(b)) return;
    }
    if (count_ >= kMaxProfiledValues) return;
    blocks.push_back(before->block());
    Node* n = graph_.create(profileKind(), {v}, 0)->insertBefore(before);
    n->setAttribute(Symbol::attr("index"), IValue(static_cast<int64_t>(count_++)));
    n->setRange(before->range());
  }

  Graph& graph_;
  ProfileChoice choice_;
  std::unordered_map<const Value*, std::vector<Block*>> profiled_;
  size_t count_ = 0;
};

}  // namespace

size_t insertProfiles(Graph& graph, ProfileChoice choice) {
  return Inserter(graph, choice).run();
}

}  // namespace wick
