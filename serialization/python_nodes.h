// What the Python printer asks of nodes and values. Private to it.
#pragma once

#include <algorithm>

#include "ir/graph.h"

namespace wick {

inline bool hasUnionType(const Value* value) {
  const TypeKind kind = value->type()->kind();
  return kind == TypeKind::Union || kind == TypeKind::Optional;
}

// A condition that is a literal would choose its branch already when it is compiled.
inline bool isCondition(const Value* value) {
  return std::ranges::any_of(value->uses(),
                             [](const Use& use) { return use.user->kind() == prim::If; });
}

// The node whose results a block gives and which of its inputs and outputs do so, from where on.
inline const Node* receiverOf(const Block* block, size_t& first) {
  const Node* owner = block->owningNode();
  if (owner == nullptr || (owner->kind() != prim::If && owner->kind() != prim::Loop))
    return nullptr;
  first = owner->kind() == prim::Loop ? 1 : 0;  // the condition
  return owner;
}

// Nodes that are not statements: their text stands wherever their value is used. Of values that are
// never set, each compilation puts those of paths that do not end where it likes.
inline bool isFree(const Node* node) {
  return node->kind() == prim::Constant || node->kind() == prim::Uninitialized;
}

// A return stands for the expression that it returns.
inline const Node* originNode(const Node* node) {
  const bool returns = node->kind() == prim::Return && node->inputs().size() == 1;
  return returns ? node->input(0)->node() : node;
}

inline Node* previousStatement(Node* node) {
  do {
    node = node->prev();
  } while (isFree(node));
  return node;
}

}  // namespace wick
