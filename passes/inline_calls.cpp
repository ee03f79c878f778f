// Calls are replaced from the outside inwards: what an inlined body calls is looked at when the
// walk gets there, so that the work is proportional to the result.
//
//   %f : Function = prim::Constant[name="relu"]()
//   %y : Tensor = prim::CallFunction(%f, %x)      →     %y : Tensor = aten::relu(%x)
#include "passes/inline_calls.h"

#include <algorithm>
#include <unordered_map>

#include "core/optimization_limit.h"
#include "ir/depth.h"
#include "ir/function.h"

namespace wick {

namespace {

// Functions that call each other twice and more double in size a level; calls beyond this stay
// calls.
constexpr size_t kMaxNodes = 100000;
// Calls within calls beyond this stay calls: each inlined node knows the chain of them.
constexpr size_t kMaxCallDepth = 1000;

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
  void run(Graph& graph) {
    for (Node* node = firstOf(graph.block()); node != nullptr;) {
      GraphFunction* callee = calleeOf(node);
      node = callee ? replace(node, callee) : following(node);
    }
  }

 private:
  // The first node of the block, or else what follows the block; null at the end of the graph.
  static Node* firstOf(Block* b) { return b->empty() ? behind(b) : b->returnNode()->next(); }
  static Node* following(Node* node) {
    return node->blocks().empty() ? nextOf(node) : firstOf(node->blocks()[0]);
  }
  static Node* nextOf(Node* node) {
    return node->next() == node->block()->returnNode() ? behind(node->block()) : node->next();
  }
  static Node* behind(Block* b) {
    while (Node* owner = b->owningNode()) {
      const auto& blocks = owner->blocks();
      auto sibling = std::find(blocks.begin(), blocks.end(), b) + 1;
      while (sibling != blocks.end() && (*sibling)->empty()) ++sibling;
      if (sibling != blocks.end()) return (*sibling)->returnNode()->next();
      if (owner->next() != owner->block()->returnNode()) return owner->next();
      b = owner->block();
    }
    return nullptr;
  }

  // Returns where the walk goes on: the first node of what was inserted, or the one after the call.
  Node* replace(Node* call, GraphFunction* callee) {
    callee->ensureDefined();
    const Graph& body = *callee->graph();
    const size_t call_depth = depthOf(call->inlinedFrom()) + 1;
    if (call_depth > kMaxCallDepth || blockLevel(call) + blockDepthOf(callee) > kMaxBlockDepth ||
        call->graph()->nodeCount() + body.nodeCount() > kMaxNodes) {
      return nextOf(call);
    }
    if (!WICK_MAY_OPTIMIZE("inlines {}", callee->qualifiedName())) return nextOf(call);
    auto from = std::make_shared<InlinedCall>();
    from->caller = call->inlinedFrom();
    from->function = callee->name();
    from->call_site = call->range();
    call_depths_.emplace(from.get(), call_depth);
    kept_.push_back(from);
    InsertPointGuard guard(call);
    Node* before = call->prev();
    std::span<Value* const> inputs(call->inputs());
    if (call->kind() == prim::CallFunction) inputs = inputs.subspan(1);
    std::vector<Value*> results;
    withStackFor(body, [&] {
      results = inlineGraph(*call->graph(), body, inputs);
      for (Node* n = before->next(); n != call; n = n->next()) mark(n, from);
    });
    for (size_t i = 0; i < results.size(); ++i) {
      if (call->output(i)->hasDebugName() && !results[i]->hasDebugName()) {
        results[i]->setDebugName(call->output(i)->debugNameBase());
      }
      call->output(i)->replaceAllUsesWith(results[i]);
    }
    Node* after = nextOf(call);
    const bool inserted = before->next() != call;
    call->destroy();
    return inserted ? before->next() : after;
  }

  size_t depthOf(const std::shared_ptr<const InlinedCall>& from) const {
    auto it = call_depths_.find(from.get());
    return it == call_depths_.end() ? 0 : it->second;
  }
  size_t blockDepthOf(GraphFunction* callee) {
    auto [it, is_new] = block_depths_.try_emplace(callee, 0);
    if (is_new) it->second = blockDepth(*callee->graph());
    return it->second;
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
  std::unordered_map<const InlinedCall*, size_t> call_depths_;
  std::unordered_map<GraphFunction*, size_t> block_depths_;
  std::unordered_map<std::pair<const void*, const void*>, std::shared_ptr<const InlinedCall>,
                     PairHash>
      extended_;
  std::vector<std::shared_ptr<const InlinedCall>> kept_;
};

}  // namespace

size_t blockLevel(const Node* node) {
  size_t level = 0;
  for (const Block* b = node->block(); b != nullptr; b = b->owningBlock()) ++level;
  return level;
}

void inlineCalls(Graph& graph) {
  Inliner().run(graph);
}

}  // namespace wick
