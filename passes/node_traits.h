// Facts about single nodes and values that several passes ask for.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <type_traits>
#include <unordered_map>
#include <unordered_set>

#include "ir/alias_db.h"
#include "ir/graph.h"

namespace wick {

// Calls `f` with each node of the block, with those of its inner blocks before the node itself, and
// adds up what it returns. `f` may destroy the node, and insert and move others.
template <class F>
size_t forEachNode(const Block* block, F&& f) {
  size_t sum = 0;
  for (auto it = block->nodes().begin(), end = block->nodes().end(); it != end;) {
    Node* node = *it;
    ++it;
    for (const Block* inner : node->blocks()) sum += forEachNode(inner, f);
    if constexpr (std::is_void_v<std::invoke_result_t<F&, Node*>>) {
      f(node);
    } else {
      sum += f(node);
    }
  }
  return sum;
}
// Whether `f` says so of a node of the block, or of blocks within.
template <class F>
bool anyNode(const Block* block, const F& f) {
  return std::ranges::any_of(block->nodes(), [&](const Node* node) {
    return f(node) || std::ranges::any_of(node->blocks(),
                                          [&](const Block* inner) { return anyNode(inner, f); });
  });
}

// Returns whether the node is an operator whose record says so.
bool has(const Node* node, OperatorFlags flag);

// The operators of these names without their namespace: aten::relu of "relu".
std::unordered_set<Symbol> atenSymbols(std::initializer_list<const char*> names);

// Whether running the node can raise no error, whatever its inputs are. True only for nodes that
// are known for it: arithmetic on numbers, comparisons, tuples, and questions to values.
bool neverRaises(const Node* node);

// Whether the block always raises.
bool alwaysRaises(const Block* b);

// Whether all users of the value are operators that read it and neither keep it nor return it or a
// part of it.
bool isOnlyRead(const Value* v);

// Whether some user asks for the value's identity (`is`, id()), so that an equal object is not as
// good.
bool identityIsObserved(const Value* v);

// Whether two attributes, or two constants, are the same to a program: equal bits for numbers,
// equal text, the same object for what has an identity. Lists and tuples are compared by element.
bool sameConstant(const IValue& a, const IValue& b);
bool sameAttributes(const Node* a, const Node* b);
// Hashes of lists and tuples among the constants of a graph, which may share their parts and be
// named by many nodes. Valid while these constants live.
using ConstantHashes = std::unordered_map<const RefCounted*, size_t>;
// Equal for nodes whose attributes are the same. Without `known` each call hashes everything.
size_t hashAttributes(const Node* node, ConstantHashes* known = nullptr);

// boolOf() and intOf() of ir/shape_facts.h under the names that rooms above ask for.
std::optional<bool> constantBool(const Value* v);
std::optional<int64_t> constantInt(const Value* v);

// Whether the node may make a tensor require a gradient although no input does: its argument `requires_grad` is not a
// constant False.
bool makesLeaf(const Node* node);

// What the static type of a tensor says to a node that asks for its dtype, device, rank and the
// like; nullopt for other nodes.
std::optional<IValue> answerFromType(const Node* node);

// Replaces `node` by a constant of the type of its only output, and destroys it.
Value* replaceByConstant(Node* node, IValue value);
// Lets users of `from` read `to`, which takes over the name when it has none.
void replaceValue(Value* from, Value* to);

// Whether recording for gradients may be switched on or off within the block: then equal nodes may
// differ in whether their results require gradients.
bool mayChangeGradMode(const Block* block);
// The same for one node: nothing that makes tensors may be moved past it.
bool mayChangeGradMode(const Node* node);

}  // namespace wick
