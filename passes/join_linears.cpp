// Layers are gathered by their input in the order of a block; a group becomes one layer in the
// place of its first.
//
//   %q : Tensor = aten::linear(%x, %wq, %bq)      %all : Tensor = aten::linear(%x, %w, %b)
//   %k : Tensor = aten::linear(%x, %wk, %bk)  →   %l : Tensor[] = aten::split_with_sizes(%all, %n,
//                                                 %last)
//                                                 %q : Tensor, %k : Tensor = prim::ListUnpack(%l)
#include "passes/join_linears.h"

#include <unordered_map>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/depth.h"
#include "passes/layer_nodes.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"
#include "passes/stride_uses.h"

namespace wick {

namespace {

bool fitTogether(const LinearNode& a, const LinearNode& b) {
  return a.weight.dtype() == b.weight.dtype() && a.weight.size(1) == b.weight.size(1) &&
         a.bias.has_value() == b.bias.has_value();
}

// Rows of all, one below the other.
Tensor stackRows(const std::vector<Tensor>& parts) {
  int64_t rows = 0;
  for (const Tensor& t : parts) rows += t.size(0);
  DimVector sizes(parts[0].sizes());
  sizes[0] = rows;
  Tensor all = Tensor::empty(sizes, parts[0].dtype());
  int64_t at = 0;
  for (const Tensor& t : parts) {
    all.narrow(0, at, t.size(0)).copyFrom(t);
    at += t.size(0);
  }
  return all;
}

class Joiner {
 public:
  explicit Joiner(Graph& graph) : graph_(graph), aliases_(graph) {}

  size_t block(Block* b) {
    size_t joined = 0;
    std::vector<const Value*> order;
    std::unordered_map<const Value*, std::vector<LinearNode>> by_input;
    for (Node* n : b->nodes()) {
      for (Block* sub : n->blocks()) joined += block(sub);
      std::optional<LinearNode> layer = LinearNode::match(n);
      if (!layer || !layer->weight.device().isCpu()) continue;
      std::vector<LinearNode>& group = by_input[n->input(0)];
      if (group.empty()) order.push_back(n->input(0));
      if (group.empty() || fitTogether(group.front(), *layer)) group.push_back(*layer);
    }
    for (const Value* input : order) joined += join(by_input[input]);
    return joined;
  }

 private:
  size_t join(std::vector<LinearNode>& group) {
    if (group.size() < 2 || aliases_.hasWriters(group[0].node->input(0))) return 0;
    std::erase_if(group, [&](const LinearNode& layer) {
      const Value* out = layer.node->output();
      return aliases_.hasWriters(out) || !toleratesLongerRows(out);
    });
    if (group.size() < 2 || !WICK_MAY_OPTIMIZE("joins {}", group[0].node->str())) return 0;
    replace(group);
    return group.size();
  }

  void replace(const std::vector<LinearNode>& group) {
    Node* first = group[0].node;
    InsertPointGuard guard(first);
    RangeGuard range(&graph_, first->range());
    std::vector<Tensor> weights, biases;
    DimVector rows;
    for (const LinearNode& layer : group) {
      weights.push_back(layer.weight);
      if (layer.bias) biases.push_back(*layer.bias);
      rows.push_back(layer.weight.size(0));
    }
    Value* weight = graph_.insertConstant(IValue(stackRows(weights)));
    Value* bias = biases.empty() ? graph_.insertNode(graph_.createNone())->output()
                                 : graph_.insertConstant(IValue(stackRows(biases)));
    Node* all = graph_.insertNode(graph_.create(first->kind(), {first->input(0), weight, bias}));
    Node* parts = graph_.insertNode(
        graph_.create(Symbol::aten("split_with_sizes"),
                      {all->output(), graph_.insertConstant(IValue(makeIntList(rows))),
                       graph_.insertConstant(IValue(int64_t{-1}))}));
    parts->output()->setType(types::List(types::Tensor()));
    Node* unpack =
        graph_.insertNode(graph_.create(prim::ListUnpack, {parts->output()}, group.size()));
    for (size_t i = 0; i < group.size(); ++i) {
      unpack->output(i)->setType(group[i].node->output()->type());
      replaceValue(group[i].node->output(), unpack->output(i));
      group[i].node->destroy();
    }
  }

  Graph& graph_;
  AliasDb aliases_;
};

}  // namespace

size_t joinLinears(Graph& graph) {
  SymbolicSizes sizes(lowestSymbol(graph));
  propagateTypes(graph, sizes);
  SymbolicSizes::Scope scope(sizes);
  size_t joined = 0;
  withStackFor(graph, [&] { joined = Joiner(graph).block(graph.block()); });
  return joined;
}

}  // namespace wick
