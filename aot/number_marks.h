// Which numbers of a graph elements of tensors decide.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <unordered_set>

#include "ir/graph.h"

namespace wick::aot {

template <size_t N>
bool isAmong(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}
inline std::string_view nameOf(const Node* node) {
  return node->kind().qualString();
}

// Operators on numbers.
inline constexpr std::array<std::string_view, 6> kComparisons = {
    "aten::lt", "aten::le", "aten::gt", "aten::ge", "aten::eq", "aten::ne"};
inline constexpr std::array<std::string_view, 3> kBits = {"aten::__and__", "aten::__or__",
                                                          "aten::__xor__"};
inline constexpr std::array<std::string_view, 3> kConversions = {"aten::Int", "aten::Float",
                                                                 "aten::Bool"};
// Operators of aot/kept_loops.h whose first input is a tensor, or the number that becomes one.
inline constexpr std::string_view kTakesValue[] = {"wick::loop_carry", "wick::loop_begin",
                                                   "wick::loop_next", "wick::branch_begin",
                                                   "wick::branch_keep"};
bool takesValue(const Node* node);
// Those that give a number of the compiled model, or a tensor.
bool isKeptValue(const Node* node);

bool isNumber(const Value* v);

// max([a, b]), as max(a, b) of two ints is written: the list, which nothing else reads; null for other nodes.
Node* listOfExtremum(const Node* node);

// The numbers that depend on elements, through blocks too.
class NumberMarks {
 public:
  explicit NumberMarks(const Graph& graph);

  bool contains(const Value* v) const { return marked_.contains(v); }
  bool areRead(const Node* node) const;
  // x.item() and the like.
  bool readsElement(const Node* node) const;
  void add(const Value* v) { marked_.insert(v); }
  void remove(const Value* v) { marked_.erase(v); }

 private:
  bool mark(const Value* v) { return isNumber(v) && marked_.insert(v).second; }
  bool mark(const Block* block);

  std::unordered_set<const Value*> marked_;
};

}  // namespace wick::aot
