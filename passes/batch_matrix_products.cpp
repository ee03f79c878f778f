//   %p : Tensor = aten::mm(%a, %b)            %l : Tensor[] = prim::ListConstruct(%a, %c, …)
//   %q : Tensor = aten::mm(%c, %d)       →    %r : Tensor[] = prim::ListConstruct(%b, %d, …)
//   %s : Tensor = aten::add(%p, %q, %one)     %s : Tensor = aten::mm(cat(%l, 1), cat(%r, 0))
//
//   %p : Tensor = aten::mm(%a, %b)            %all : Tensor = aten::mm(cat([%a, %c, …], 0), %b)
//   %q : Tensor = aten::mm(%c, %b)       →    %p, %q, … = split_with_sizes(%all, rows, 0)
#include "passes/batch_matrix_products.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "core/optimization_limit.h"
#include "ir/alias_db.h"
#include "ir/depth.h"
#include "ir/shape_facts.h"
#include "passes/node_traits.h"
#include "passes/propagate_types.h"

namespace wick {

namespace {

bool isMatrix(const Value* v) {
  const TensorFacts* facts = factsOf(v);
  return facts && facts->dtype && facts->sizes && facts->sizes->size() == 2 && (*facts->sizes)[0] &&
         (*facts->sizes)[1];
}

bool sameMatrices(const Value* a, const Value* b) {
  return factsOf(a)->dtype == factsOf(b)->dtype && factsOf(a)->sizes == factsOf(b)->sizes;
}

bool isProduct(const Node* n) {
  static const Symbol kMm = Symbol::aten("mm");
  return n->kind() == kMm && n->inputs().size() == 2 && isMatrix(n->input(0)) &&
         isMatrix(n->input(1)) && isMatrix(n->output());
}

bool isPlainSum(const Node* n) {
  return n->kind() == aten::add && n->inputs().size() == 3 && isMatrix(n->output()) &&
         isMatrix(n->input(0)) && isMatrix(n->input(1)) && intOf(n->input(2)) == 1;
}

class Batcher {
 public:
  explicit Batcher(Graph& graph) : graph_(graph), aliases_(graph) {}

  size_t sums(Block* b) {
    size_t replaced = 0;
    for (Node* n : b->nodes()) {
      for (Block* sub : n->blocks()) replaced += sums(sub);
    }
    // From the end, so that the root of a tree is met before its parts.
    for (auto it = b->reverseNodes().begin(), end = b->reverseNodes().end(); it != end;) {
      Node* n = *it;
      ++it;
      if (!isPlainSum(n) || part_.count(n)) continue;
      std::vector<Node*> products;
      std::vector<Node*> inner;
      if (!gather(n, n, products, inner) || products.size() < kMinBatchedProducts) continue;
      if (!WICK_MAY_OPTIMIZE("adds up in one product {}", n->str())) continue;
      replaceSum(n, products);
      replaced += products.size();
    }
    removeDead();
    return replaced;
  }

  size_t sharedSides(Block* b) {
    size_t replaced = 0;
    std::vector<const Value*> order;
    std::unordered_map<const Value*, std::vector<Node*>> by_right;
    for (Node* n : b->nodes()) {
      for (Block* sub : n->blocks()) replaced += sharedSides(sub);
      if (!isProduct(n)) continue;
      std::vector<Node*>& group = by_right[n->input(1)];
      if (group.empty()) order.push_back(n->input(1));
      group.push_back(n);
    }
    for (const Value* right : order) replaced += joinRows(b, by_right[right]);
    return replaced;
  }

 private:
  // The products below a sum whose parts only the sum reads; false when something else is there.
  bool gather(const Node* root, Node* sum, std::vector<Node*>& products,
              std::vector<Node*>& inner) {
    std::vector<Node*> open{sum};
    while (!open.empty()) {
      Node* n = open.back();
      open.pop_back();
      if (n != root) inner.push_back(n);
      for (size_t i : {1, 0}) {
        Node* in = n->input(i)->node();
        bool mine = in->block() == root->block() && in->kind() != prim::Param &&
                    n->input(i)->uses().size() == 1 && sameMatrices(n->input(i), root->output());
        if (!mine) return false;
        if (isProduct(in)) {
          if (aliases_.hasWriters(in)) return false;
          products.push_back(in);
        } else if (isPlainSum(in)) {
          if (aliases_.hasWriters(in)) return false;
          open.push_back(in);
        } else {
          return false;
        }
      }
    }
    part_.insert(inner.begin(), inner.end());
    return true;
  }

  Value* concatenation(const std::vector<Value*>& parts, int64_t dim) {
    Node* list = graph_.insertNode(graph_.createList(types::Tensor(), parts));
    Node* cat = graph_.insertNode(
        graph_.create(Symbol::aten("cat"), {list->output(), graph_.insertConstant(IValue(dim))}));
    return cat->output();
  }

  void replaceSum(Node* root, const std::vector<Node*>& products) {
    InsertPointGuard guard(root);
    RangeGuard range(&graph_, root->range());
    std::vector<Value*> left, right;
    for (Node* p : products) {
      left.push_back(p->input(0));
      right.push_back(p->input(1));
    }
    Value* rows = concatenation(left, 1);
    Value* columns = concatenation(right, 0);
    Node* product = graph_.insertNode(graph_.create(products[0]->kind(), {rows, columns}));
    product->output()->setType(root->output()->type());
    replaceValue(root->output(), product->output());
    dead_.push_back(root);
  }

  // Sums and products whose results nobody reads any more, users first.
  void removeDead() {
    while (!dead_.empty()) {
      Node* n = dead_.back();
      dead_.pop_back();
      std::vector<Value*> inputs = n->inputs();
      n->destroy();
      for (const Value* v : inputs) {
        Node* in = v->node();
        bool unused = !v->hasUses() && (isProduct(in) || part_.count(in) != 0);
        if (unused) dead_.push_back(in);
      }
    }
    part_.clear();
  }

  size_t joinRows(Block* b, std::vector<Node*>& group) {
    if (group.size() < kMinBatchedProducts) return 0;
    const Value* right = group[0]->input(1);
    // Left sides that come after the first product cannot join it.
    const Node* first = group[0];
    std::erase_if(group, [&](const Node* n) {
      const Node* left = n->input(0)->node();
      bool before = left->block() != b || left->kind() == prim::Param || left->isBefore(first);
      return !before || aliases_.hasWriters(n) ||
             factsOf(n->input(0))->dtype != factsOf(right)->dtype;
    });
    if (group.size() < kMinBatchedProducts || group[0] != first ||
        !WICK_MAY_OPTIMIZE("batches {}", first->str())) {
      return 0;
    }
    replaceShared(group);
    return group.size();
  }

  void replaceShared(const std::vector<Node*>& group) {
    Node* first = group[0];
    InsertPointGuard guard(first);
    RangeGuard range(&graph_, first->range());
    std::vector<Value*> left, rows;
    for (Node* n : group) left.push_back(n->input(0));
    Value* zero = graph_.insertConstant(IValue(int64_t{0}));
    for (Value* v : left) {
      Size known = (*factsOf(v)->sizes)[0];
      if (known && *known >= 0) {
        rows.push_back(graph_.insertConstant(IValue(*known)));
      } else {
        Node* size = graph_.insertNode(graph_.create(aten::size, {v, zero}));
        size->output()->setType(types::Int());
        rows.push_back(size->output());
      }
    }
    Node* product =
        graph_.insertNode(graph_.create(first->kind(), {concatenation(left, 0), first->input(1)}));
    Node* counts = graph_.insertNode(graph_.createList(types::Int(), rows));
    Node* parts = graph_.insertNode(graph_.create(Symbol::aten("split_with_sizes"),
                                                  {product->output(), counts->output(), zero}));
    parts->output()->setType(types::List(types::Tensor()));
    Node* unpack =
        graph_.insertNode(graph_.create(prim::ListUnpack, {parts->output()}, group.size()));
    for (size_t i = 0; i < group.size(); ++i) {
      unpack->output(i)->setType(group[i]->output()->type());
      replaceValue(group[i]->output(), unpack->output(i));
      group[i]->destroy();
    }
  }

  Graph& graph_;
  AliasDb aliases_;
  std::unordered_set<const Node*> part_;  // sums inside of a tree
  std::vector<Node*> dead_;
};

}  // namespace

size_t batchMatrixProducts(Graph& graph) {
  propagateTypes(graph);
  size_t replaced = 0;
  withStackFor(graph, [&] {
    replaced += Batcher(graph).sums(graph.block());
    replaced += Batcher(graph).sharedSides(graph.block());
  });
  return replaced;
}

}  // namespace wick
