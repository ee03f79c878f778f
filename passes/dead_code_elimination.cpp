// Mark and sweep. The roots are the graph's outputs and the nodes with effects; marking a node
// marks what it reads and the nodes around it. A loop-carried value is live when the loop's output,
// or the block input that it becomes, is; since liveness inside a body can make earlier values
// live, a body is marked until nothing changes.
//
//   %a = aten::relu(%x)        →   (gone)
//   %b = aten::neg(%x)             %b = aten::neg(%x)
//   return (%b)                    return (%b)
#include "passes/dead_code_elimination.h"

#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"

namespace wick {

namespace {

class Liveness {
 public:
  explicit Liveness(Graph& graph) : graph_(graph) {}

  void run() {
    for (Value* v : graph_.outputs()) live(v);
    block(graph_.block());
    if (WICK_MAY_OPTIMIZE("sweeps dead code")) sweep(graph_.block());
  }

 private:
  bool isLive(const Value* v) const { return values_.count(v) != 0; }
  void live(const Value* v) {
    if (values_.insert(v).second) changed_ = true;
  }
  bool anyOutputLive(const Node* node) const {
    for (const Value* v : node->outputs()) {
      if (isLive(v)) return true;
    }
    return false;
  }
  bool hasEffects(const Node* node) {
    auto it = effects_.find(node);
    if (it == effects_.end()) it = effects_.emplace(node, node->hasSideEffects()).first;
    return it->second;
  }

  void block(Block* b) {
    for (Node* node : b->reverseNodes()) {
      if (!anyOutputLive(node) && !hasEffects(node)) continue;
      nodes_.insert(node);
      if (node->kind() == prim::If) {
        branch(node);
      } else if (node->kind() == prim::Loop) {
        loop(node);
      } else {
        for (Value* v : node->inputs()) live(v);
        for (Block* sub : node->blocks()) {
          for (Value* v : sub->outputs()) live(v);
          block(sub);
        }
      }
    }
  }

  void branch(Node* node) {
    live(node->input(0));
    for (Block* sub : node->blocks()) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        if (isLive(node->output(i))) live(sub->outputs()[i]);
      }
      block(sub);
    }
  }

  void loop(Node* node) {
    live(node->input(0));
    live(node->input(1));
    Block* body = node->blocks()[0];
    live(body->outputs()[0]);
    bool outer_changed = changed_;
    do {
      changed_ = false;
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        if (isLive(node->output(i)) || isLive(body->inputs()[i + 1])) {
          live(node->input(i + 2));
          live(body->inputs()[i + 1]);
          live(body->outputs()[i + 1]);
        }
      }
      block(body);
      outer_changed |= changed_;
    } while (changed_);
    changed_ = outer_changed;
  }

  void sweep(Block* b) {
    NodeRange nodes = b->reverseNodes();
    for (auto it = nodes.begin(), end = nodes.end(); it != end;) {
      Node* node = *it;
      ++it;
      if (nodes_.count(node) == 0) {
        for (Block* sub : node->blocks()) sub->clear();
        node->destroy();
        continue;
      }
      if (node->kind() == prim::If) sweepIf(node);
      if (node->kind() == prim::Loop) {
        sweepLoop(node);
      } else {
        for (Block* sub : node->blocks()) sweep(sub);
      }
    }
  }

  void sweepIf(Node* node) {
    for (size_t i = node->outputs().size(); i-- > 0;) {
      if (isLive(node->output(i))) continue;
      for (Block* sub : node->blocks()) sub->eraseOutput(i);
      node->eraseOutput(i);
    }
  }

  void sweepLoop(Node* node) {
    Block* body = node->blocks()[0];
    std::vector<size_t> dead;
    for (size_t i = node->outputs().size(); i-- > 0;) {
      if (!isLive(node->output(i)) && !isLive(body->inputs()[i + 1])) dead.push_back(i);
    }
    for (size_t i : dead) body->eraseOutput(i + 1);
    // Only dead nodes of the body read the dead inputs; they go first.
    sweep(body);
    for (size_t i : dead) {
      body->eraseInput(i + 1);
      node->removeInput(i + 2);
      node->eraseOutput(i);
    }
  }

  Graph& graph_;
  std::unordered_set<const Value*> values_;
  std::unordered_set<const Node*> nodes_;
  std::unordered_map<const Node*, bool> effects_;
  bool changed_ = false;
};

}  // namespace

void eliminateDeadCode(Graph& graph) {
  Liveness(graph).run();
}

}  // namespace wick
