// Mark and sweep with a list of work: each value, node and memory location is marked once. The
// roots are the graph's outputs and the nodes that stay in any case. Marking a value marks its
// definition and the nodes that may write its memory; marking a node marks what it reads and the
// nodes around it. Only those outputs of an If and only those values carried by a Loop are followed
// that somebody reads.
#include "ir/dead_code.h"

#include <unordered_set>

namespace wick {

namespace {

class DeadCode {
 public:
  DeadCode(Graph& graph, const DeadCodeRules& rules) : graph_(graph), rules_(rules) {
    if (rules.aliases) written_seen_.resize(rules.aliases->numLocations());
  }

  void run() {
    for (Value* v : graph_.outputs()) mark(v);
    roots(graph_.block());
    while (!values_left_.empty() || !nodes_left_.empty()) {
      if (!nodes_left_.empty()) {
        Node* n = nodes_left_.back();
        nodes_left_.pop_back();
        follow(n);
      } else {
        Value* v = values_left_.back();
        values_left_.pop_back();
        follow(v);
      }
    }
    sweep(graph_.block());
  }

 private:
  bool isLive(const Value* v) const { return values_.count(v) != 0; }
  void mark(Value* v) {
    if (values_.insert(v).second) values_left_.push_back(v);
  }
  void mark(Node* n) {
    if (nodes_.insert(n).second) nodes_left_.push_back(n);
  }

  void roots(Block* b) {
    for (Node* n : b->nodes()) {
      bool control = n->kind() == prim::If || n->kind() == prim::Loop;
      if (control ? rules_.keeps_control_flow : rules_.keeps(n)) mark(n);
      for (Block* sub : n->blocks()) roots(sub);
    }
  }

  void follow(Node* n) {
    if (Node* owner = n->block()->owningNode()) mark(owner);
    if (n->kind() == prim::If) {
      mark(n->input(0));
    } else if (n->kind() == prim::Loop) {
      mark(n->input(0));
      mark(n->input(1));
      mark(n->blocks()[0]->outputs()[0]);
    } else {
      for (Value* v : n->inputs()) mark(v);
      for (Block* b : n->blocks()) {
        for (Value* v : b->outputs()) mark(v);
      }
    }
  }

  void follow(Value* v) {
    Node* n = v->node();
    if (n->kind() == prim::Param) {
      Node* owner = n->block()->owningNode();
      if (owner && owner->kind() == prim::Loop && v->offset() > 0) carried(owner, v->offset() - 1);
    } else {
      mark(n);
      if (n->kind() == prim::If) {
        for (Block* b : n->blocks()) mark(b->outputs()[v->offset()]);
      } else if (n->kind() == prim::Loop) {
        carried(n, v->offset());
      }
    }
    if (rules_.aliases) writers(v);
  }

  void carried(Node* loop, size_t i) {
    mark(loop->input(i + 2));
    mark(loop->blocks()[0]->inputs()[i + 1]);
    mark(loop->blocks()[0]->outputs()[i + 1]);
  }

  void writers(const Value* v) {
    MemoryDag::Locations reachable = rules_.aliases->reachable(v);
    // Values that are the same memory share one set.
    if (reachable.empty() || !sets_seen_.insert(reachable.data()).second) return;
    for (MemoryDag::Location l : reachable) {
      if (written_seen_[l]) continue;
      written_seen_[l] = true;
      for (Node* n : rules_.aliases->writersOf(l)) mark(n);
    }
  }

  void sweep(Block* b) {
    NodeRange nodes = b->reverseNodes();
    for (auto it = nodes.begin(), end = nodes.end(); it != end;) {
      Node* n = *it;
      ++it;
      if (nodes_.count(n) == 0) {
        for (Block* sub : n->blocks()) sub->clear();
        n->destroy();
      } else if (n->kind() == prim::Loop) {
        sweepLoop(n);
      } else {
        if (n->kind() == prim::If) sweepIf(n);
        for (Block* sub : n->blocks()) sweep(sub);
      }
    }
  }

  void sweepIf(Node* n) {
    for (size_t i = n->outputs().size(); i-- > 0;) {
      if (isLive(n->output(i))) continue;
      for (Block* b : n->blocks()) b->eraseOutput(i);
      n->eraseOutput(i);
    }
  }

  void sweepLoop(Node* n) {
    Block* body = n->blocks()[0];
    std::vector<size_t> dead;
    for (size_t i = n->outputs().size(); i-- > 0;) {
      if (!isLive(n->output(i)) && !isLive(body->inputs()[i + 1])) dead.push_back(i);
    }
    for (size_t i : dead) body->eraseOutput(i + 1);
    // Only dead nodes of the body read the dead inputs; they go first.
    sweep(body);
    for (size_t i : dead) {
      body->eraseInput(i + 1);
      n->removeInput(i + 2);
      n->eraseOutput(i);
    }
  }

  Graph& graph_;
  const DeadCodeRules& rules_;
  std::unordered_set<const Value*> values_;
  std::unordered_set<const Node*> nodes_;
  std::vector<Value*> values_left_;
  std::vector<Node*> nodes_left_;
  std::unordered_set<const void*> sets_seen_;
  std::vector<bool> written_seen_;
};

}  // namespace

void removeDeadCode(Graph& graph, const DeadCodeRules& rules) {
  DeadCode(graph, rules).run();
}

void removeDeadValues(Graph& graph) {
  DeadCodeRules rules;
  rules.keeps_control_flow = true;
  rules.keeps = [](const Node* n) {
    Symbol kind = n->kind();
    return kind != prim::Constant && kind != prim::Uninitialized && kind != prim::TupleConstruct &&
           kind != prim::unchecked_cast;
  };
  removeDeadCode(graph, rules);
}

}  // namespace wick
