#include "passes/guard_nodes.h"

#include <algorithm>
#include <unordered_set>

#include "passes/node_traits.h"

namespace wick {

namespace {

bool isTensorOrNone(const Value* v) {
  TypeKind kind = v->type()->kind();
  if (kind == TypeKind::Tensor || kind == TypeKind::None) return true;
  const auto* optional = v->type()->as<OptionalType>();
  return optional && optional->element()->kind() == TypeKind::Tensor;
}

std::unordered_set<Symbol> symbolsOf(std::initializer_list<const char*> names) {
  std::unordered_set<Symbol> symbols;
  for (const char* name : names) symbols.insert(Symbol::fromQualString(name));
  return symbols;
}

bool changesTypes(const Node* n) {
  static const auto kKinds = symbolsOf(
      {"prim::CallFunction", "prim::CallMethod", "prim::fork", "aten::wait", "prim::Enter"});
  if (kKinds.count(n->kind()) != 0 || callsScript(n)) return true;
  const Operator* op = n->blocks().empty() ? n->maybeOperator() : nullptr;
  return op && (op->has(kChangesMetadata) || op->form() == Operator::Form::Out);
}

// Walks two graphs side by side; `of_` maps values of the second to those of the first.
class Comparison {
 public:
  bool graphs(const Graph& a, const Graph& b) { return blocks(a.block(), b.block()); }

 private:
  static bool isTransparent(const Node* n) {
    return n->kind() == profileKind() || n->kind() == guardKind() || n->kind() == bailOutKind();
  }

  // The next node that counts; what does not is passed through.
  const Node* skip(const Node* n) {
    for (; isTransparent(n); n = n->next()) {
      for (size_t i = 0; i < n->outputs().size(); ++i) same_[n->output(i)] = source(n->input(i));
    }
    return n;
  }

  const Value* source(const Value* v) const {
    auto it = same_.find(v);
    return it == same_.end() ? v : it->second;
  }

  bool values(const std::vector<Value*>& a, const std::vector<Value*>& b) const {
    return std::ranges::equal(a, b, [&](const Value* x, const Value* y) {
      auto it = of_.find(source(y));
      return it != of_.end() && it->second == source(x);
    });
  }

  bool define(const std::vector<Value*>& a, const std::vector<Value*>& b) {
    if (a.size() != b.size()) return false;
    for (size_t i = 0; i < a.size(); ++i) of_[b[i]] = a[i];
    return true;
  }

  static bool attributes(const Node* a, const Node* b) {
    const AttributeValue* sub_a = a->findAttribute(attr::Subgraph);
    const AttributeValue* sub_b = b->findAttribute(attr::Subgraph);
    if (!sub_a || !sub_b) return sameAttributes(a, b);
    return sameComputation(*a->subgraph(attr::Subgraph), *b->subgraph(attr::Subgraph));
  }

  bool blocks(const Block* a, const Block* b) {
    if (!define(a->inputs(), b->inputs())) return false;
    const Node* x = skip(a->returnNode()->next());
    const Node* y = skip(b->returnNode()->next());
    for (; x != a->returnNode() && y != b->returnNode(); x = skip(x->next()), y = skip(y->next())) {
      if (x->kind() != y->kind() || !values(x->inputs(), y->inputs()) || !attributes(x, y) ||
          x->blocks().size() != y->blocks().size()) {
        return false;
      }
      for (size_t i = 0; i < x->blocks().size(); ++i) {
        if (!blocks(x->blocks()[i], y->blocks()[i])) return false;
      }
      if (!define(x->outputs(), y->outputs())) return false;
    }
    return x == a->returnNode() && y == b->returnNode() && values(a->outputs(), b->outputs());
  }

  std::unordered_map<const Value*, const Value*> same_;  // output of a guard → what it is
  std::unordered_map<const Value*, const Value*> of_;
};

}  // namespace

Symbol profileKind() {
  static const Symbol kind = Symbol::prim("profile");
  return kind;
}
Symbol guardKind() {
  static const Symbol kind = Symbol::prim("Guard");
  return kind;
}
Symbol bailOutKind() {
  static const Symbol kind = Symbol::prim("BailOut");
  return kind;
}

bool asksForTypes(const Node* n) {
  static const auto kQueries =
      symbolsOf({"prim::dtype", "prim::device", "prim::is_cuda", "prim::requires_grad", "aten::dim",
                 "aten::is_floating_point", "aten::is_complex", "aten::to", "aten::type_as",
                 "aten::cpu", "aten::__is__", "aten::__isnot__"});
  return kQueries.count(n->kind()) != 0 && !n->inputs().empty() && isTensorOrNone(n->inputs()[0]) &&
         n->inputs()[0]->type()->kind() != TypeKind::None;
}

bool asksForTypes(const Graph& graph) {
  return anyNode(graph.block(), [](const Node* n) { return asksForTypes(n); });
}

bool mayChangeTypes(const Graph& graph) {
  return anyNode(graph.block(), changesTypes);
}

bool sameComputation(const Graph& a, const Graph& b) {
  return Comparison().graphs(a, b);
}

void removeGuard(Node* guard) {
  for (size_t i = 0; i < guard->outputs().size(); ++i) {
    guard->output(i)->replaceAllUsesWith(guard->input(i));
  }
  guard->destroy();
}

}  // namespace wick
