// A callee's body is inlined into a copy of itself first, so that a function which is called from
// many places is flattened once, not once a path.
//
//   %f : Function = prim::Constant[name="relu"]()
//   %y : Tensor = prim::CallFunction(%f, %x)      →     %y : Tensor = aten::relu(%x)
#include "passes/inline_calls.h"

#include <unordered_map>

#include "core/error.h"
#include "core/optimization_limit.h"
#include "ir/function.h"

namespace wick {

namespace {

// Recursion is refused when functions are compiled, so this depth means a graph that was built by
// hand.
constexpr int kMaxDepth = 500;
// Functions that call each other twice and more double in size a level; calls beyond this stay
// calls.
constexpr size_t kMaxNodes = 100000;

GraphFunction* calleeOf(const Node* node) {
  Function* callee = nullptr;
  if (node->kind() == prim::CallFunction) {
    if (const auto* type = node->input(0)->type()->as<FunctionType>()) callee = type->function();
  } else if (node->kind() == prim::CallMethod) {
    if (const auto* type = node->input(0)->type()->as<ClassType>()) {
      callee = type->findMethod(node->ivalue(attr::name).toString());
    }
  }
  return dynamic_cast<GraphFunction*>(callee);
}

class Inliner {
 public:
  void block(Block* b, int depth) {
    WICK_ASSERT(depth < kMaxDepth, "calls nest too deeply to inline");
    for (auto it = b->nodes().begin(), end = b->nodes().end(); it != end;) {
      Node* node = *it;
      ++it;
      for (Block* sub : node->blocks()) block(sub, depth);
      if (GraphFunction* callee = calleeOf(node)) replace(node, callee, depth);
    }
  }

 private:
  const Graph& flattened(GraphFunction* callee, int depth) {
    auto it = flattened_.find(callee);
    if (it != flattened_.end()) return *it->second;
    callee->ensureDefined();
    std::shared_ptr<Graph> body = callee->graph()->copy();
    block(body->block(), depth + 1);
    return *flattened_.emplace(callee, body).first->second;
  }

  void replace(Node* call, GraphFunction* callee, int depth) {
    const Graph& body = flattened(callee, depth);
    if (call->graph()->nodeCount() + body.nodeCount() > kMaxNodes) return;
    if (!WICK_MAY_OPTIMIZE("inlines {}", callee->qualifiedName())) return;
    auto from = std::make_shared<InlinedCall>();
    from->caller = call->inlinedFrom();
    from->function = callee->name();
    from->call_site = call->range();
    InsertPointGuard guard(call);
    Node* before = call->prev();
    std::span<Value* const> inputs(call->inputs());
    if (call->kind() == prim::CallFunction) inputs = inputs.subspan(1);
    std::vector<Value*> results = inlineGraph(*call->graph(), body, inputs);
    for (Node* n = before->next(); n != call; n = n->next()) mark(n, from);
    for (size_t i = 0; i < results.size(); ++i) {
      if (call->output(i)->hasDebugName() && !results[i]->hasDebugName()) {
        results[i]->setDebugName(call->output(i)->debugNameBase());
      }
      call->output(i)->replaceAllUsesWith(results[i]);
    }
    call->destroy();
  }

  // Puts `from` at the outer end of the node's chain of calls.
  void mark(Node* node, const std::shared_ptr<const InlinedCall>& from) {
    node->setInlinedFrom(extended(node->inlinedFrom(), from));
    for (Block* b : node->blocks()) {
      for (Node* inner : b->nodes()) mark(inner, from);
    }
  }

  std::shared_ptr<const InlinedCall> extended(const std::shared_ptr<const InlinedCall>& inner,
                                              const std::shared_ptr<const InlinedCall>& outer) {
    if (!inner) return outer;
    auto key = std::make_pair<const void*, const void*>(inner.get(), outer.get());
    if (auto it = extended_.find(key); it != extended_.end()) return it->second;
    auto copy = std::make_shared<InlinedCall>(*inner);
    copy->caller = extended(inner->caller, outer);
    extended_.emplace(key, copy);
    kept_.push_back(inner);  // its address is part of a key
    kept_.push_back(outer);
    return copy;
  }

  struct PairHash {
    size_t operator()(const std::pair<const void*, const void*>& p) const {
      return std::hash<const void*>()(p.first) * 31 + std::hash<const void*>()(p.second);
    }
  };
  std::unordered_map<GraphFunction*, std::shared_ptr<Graph>> flattened_;
  std::unordered_map<std::pair<const void*, const void*>, std::shared_ptr<const InlinedCall>,
                     PairHash>
      extended_;
  std::vector<std::shared_ptr<const InlinedCall>> kept_;
};

}  // namespace

void inlineCalls(Graph& graph) {
  Inliner().block(graph.block(), 0);
}

}  // namespace wick
