// The groups of rules of the peephole pass (passes/peephole.h). Each looks at one node and either
// returns false and changes nothing, or replaces the node's outputs, for which it may insert nodes
// before it; the caller then destroys the node.
#pragma once

#include "ir/alias_db.h"
#include "ir/graph.h"

namespace wick {

class Peephole {
 public:
  explicit Peephole(Graph& graph) : graph_(graph), aliases_(graph) {}
  bool run();

 private:
  bool rewrite(Node* n);

  bool arithmetic(Node* n);  // passes/peephole.cpp
  bool logic(Node* n);
  bool choice(Node* n);
  bool optionals(Node* n);
  bool conversions(Node* n);

  bool lists(Node* n);  // passes/peephole_lists.cpp
  bool listLength(Node* n);
  bool listElement(Node* n);
  bool listUnpack(Node* n);
  bool listSlice(Node* n);
  bool listSum(Node* n);
  const Node* literalList(const Value* v) const;

  bool tensors(Node* n);  // passes/peephole_tensors.cpp
  bool facts(Node* n);
  bool sizes(Node* n);
  bool transposes(Node* n);
  bool tensorArithmetic(Node* n);

  bool mayRewrite(const Node* n) const;
  // These tell the alias database what becomes of the values.
  bool replaceWith(Node* n, Value* value);
  bool replaceWithConstant(Node* n, IValue value);
  bool replaceWithFresh(Node* n, Node* made);

  Graph& graph_;
  AliasDb aliases_;
};

}  // namespace wick
