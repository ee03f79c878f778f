// %a = aten::add_(%x, %1, %1)
// %b = aten::relu_(%a)           →   prim::FusionGroup_0(%x)
// return (%b)                        return (%x)
//                                    with prim::FusionGroup_0 = graph(%x): add_, relu_
#include "passes/write_groups.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "core/optimization_limit.h"
#include "passes/node_traits.h"

namespace wick {

namespace {

class WriteGrouper {
 public:
  explicit WriteGrouper(const WriteGroupOptions& options) : options_(options) {}

  void block(Block* b) {
    for (Node* node = b->returnNode()->next(); node != b->returnNode();) {
      for (Block* sub : node->blocks()) block(sub);
      std::vector<Node*> run = runFrom(node, b->returnNode());
      Node* const next = run.empty() ? node->next() : run.back()->next();
      const bool pays = run.size() > 1 || (run.size() == 1 && updates(run[0]));
      if (pays && WICK_MAY_OPTIMIZE("groups writes from {}", run[0]->str())) group(run);
      node = next;
    }
  }

 private:
  static constexpr size_t kMostNodes = 32;

  bool updates(const Node* n) const { return options_.updates && options_.updates(n); }

  // Ends with a write, or what is computed behind an update. Constants may stand between the nodes.
  std::vector<Node*> runFrom(Node* first, const Node* end) const {
    std::vector<Node*> run;
    std::unordered_map<const Value*, const Value*> written;  // results of writes: the tensor
    const Value* target = nullptr;
    size_t length = 0;
    for (Node* n = first; n != end && run.size() < kMostNodes; n = n->next()) {
      if (n->kind() == prim::Constant && !run.empty()) continue;
      if (options_.writes(n)) {
        const Value* to = n->input(0);
        if (auto it = written.find(to); it != written.end()) to = it->second;
        if (target && to != target) break;
        // A tensor that the run itself makes cannot be an argument of the group.
        if (holds(run, to->node())) break;
        if (to->node()->kind() == prim::Constant) break;
        target = to;
        written.emplace(n->output(), target);
        run.push_back(n);
        length = run.size();
      } else if (updates(n)) {
        run.push_back(n);
        length = run.size();
      } else if (options_.computes(n)) {
        run.push_back(n);
        const bool follows = length + 1 == run.size() && length > 0 && !target;
        const bool reads = std::any_of(n->inputs().begin(), n->inputs().end(),
                                       [&](const Value* v) { return holds(run, v->node()); });
        if (follows && reads) length = run.size();
      } else {
        break;
      }
    }
    run.resize(length);
    // What nobody here reads need not be here.
    const auto isRead = [&](const Node* n) {
      return std::any_of(n->output()->uses().begin(), n->output()->uses().end(),
                         [&](const Use& use) { return holds(run, use.user); });
    };
    while (!run.empty() && options_.computes(run[0]) && !isRead(run[0])) run.erase(run.begin());
    return run;
  }
  static bool holds(const std::vector<Node*>& run, const Node* n) {
    return std::find(run.begin(), run.end(), n) != run.end();
  }

  void group(const std::vector<Node*>& run) const {
    Graph& graph = *run[0]->graph();
    auto body = std::make_shared<Graph>();
    Node* group = graph.create(prim::FusionGroup, 0);
    group->setRange(run[0]->range());
    group->setInlinedFrom(run[0]->inlinedFrom());
    group->setAttribute(attr::Subgraph, body);
    group->insertAfter(run.back());
    std::unordered_map<Value*, Value*> inside;
    for (Node* n : run) {
      for (Value* v : n->inputs()) {
        if (inside.count(v) != 0) continue;
        if (v->node()->kind() == prim::Constant) {
          Node* copy = body->createClone(v->node(), {});
          inside[v] = body->block()->appendNode(copy)->output();
        } else {
          inside[v] = body->block()->addInput(v->type());
          group->addInput(v);
        }
      }
      Node* copy = body->block()->appendNode(body->createClone(n, inside));
      inside[n->output()] = copy->output();
    }
    std::vector<Value*> results;
    for (Node* n : run) {
      if (options_.writes(n)) {
        n->output()->replaceAllUsesWith(n->input(0));
        continue;
      }
      const bool leaves = std::any_of(n->output()->uses().begin(), n->output()->uses().end(),
                                      [&](const Use& use) { return !holds(run, use.user); });
      if (!leaves) continue;
      body->registerOutput(inside[n->output()]);
      results.push_back(n->output());
    }
    for (Value* v : results) replaceValue(v, group->addOutput(v->type()));
    for (size_t i = run.size(); i-- > 0;) run[i]->destroy();
  }

  const WriteGroupOptions& options_;
};

}  // namespace

void formWriteGroups(Graph& graph, const WriteGroupOptions& options) {
  WriteGrouper(options).block(graph.block());
}

}  // namespace wick
