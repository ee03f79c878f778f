// A node that takes the place of others, and the graph that it holds.
#pragma once

#include <memory>
#include <unordered_map>

#include "ir/graph.h"
#include "passes/node_traits.h"

namespace wick {

class Outline {
 public:
  // The node comes from where `origin` does. It stands nowhere yet and has no Subgraph.
  Outline(Graph& graph, Symbol kind, const Node* origin)
      : node(graph.create(kind, 0)), body(std::make_shared<Graph>()) {
    node->setRange(origin->range());
    node->setInlinedFrom(origin->inlinedFrom());
  }

  // What is read inside becomes an input, a constant is copied. Nothing when it is known already.
  void read(Value* v) {
    Value*& inner = inside[v];
    if (inner) return;
    if (v->node()->kind() == prim::Constant) {
      inner = body->block()->prependNode(body->createClone(v->node(), {}))->output();
      return;
    }
    inner = body->block()->addInput(v->type());
    node->addInput(v);
  }
  // A copy whose operands are known; its results are known then.
  void copy(const Node* n) {
    Node* made = body->block()->appendNode(body->createClone(n, inside));
    for (size_t i = 0; i < n->outputs().size(); ++i) inside[n->output(i)] = made->output(i);
  }
  // All users of the value outside read the node's result instead.
  void handOut(Value* v) {
    body->registerOutput(inside.at(v));
    replaceValue(v, node->addOutput(v->type()));
  }

  Node* const node;
  const std::shared_ptr<Graph> body;
  std::unordered_map<Value*, Value*> inside;
};

}  // namespace wick
