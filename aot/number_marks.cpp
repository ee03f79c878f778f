#include "aot/number_marks.h"

#include <algorithm>
#include <array>

#include "aot/number_functions.h"

namespace wick::aot {

namespace {

constexpr std::array<std::string_view, 8> kElements = {
    "aten::item", "aten::_local_scalar_dense", "aten::Int",           "aten::Float",
    "aten::Bool", "aten::IntImplicit",         "aten::FloatImplicit", "aten::ScalarImplicit"};
constexpr std::array<std::string_view, 3> kArithmetic = {"aten::add", "aten::sub", "aten::mul"};
// Operators of aot/kept_loops.h that give a value.
constexpr std::array<std::string_view, 4> kValues = {"wick::loop_index", "wick::loop_value",
                                                     "wick::loop_result", "wick::branch_result"};

// Of numbers alone, in a way that compiled models compute too.
bool computesNumber(const Node* node) {
  if (node->outputs().size() != 1 || !isNumber(node->output()) || node->inputs().empty() ||
      !std::ranges::all_of(node->inputs(), isNumber)) {
    return false;
  }
  const std::string_view name = nameOf(node);
  const size_t count = node->inputs().size();
  if (numberFunction(name, count, node->output()->type()->kind() == TypeKind::Int)) return true;
  if (count == 1) {
    return isAmong(name, kConversions) || name == "aten::neg" || name == "prim::abs" ||
           name == "aten::__not__";
  }
  return count == 2 &&
         (isAmong(name, kArithmetic) || isAmong(name, kComparisons) || isAmong(name, kBits) ||
          name == "aten::div" || name == "prim::min" || name == "prim::max");
}

}  // namespace

bool takesValue(const Node* node) {
  return std::ranges::find(kTakesValue, nameOf(node)) != std::end(kTakesValue);
}

bool isKeptValue(const Node* node) {
  return isAmong(nameOf(node), kValues);
}

bool isNumber(const Value* v) {
  switch (v->type()->kind()) {
    case TypeKind::Int:
    case TypeKind::Float:
    case TypeKind::Bool:
    case TypeKind::Number:
      return true;
    default:
      return false;
  }
}

Node* listOfExtremum(const Node* node) {
  const bool extremum = nameOf(node) == "prim::min" || nameOf(node) == "prim::max";
  if (!extremum || node->inputs().size() != 1 || !isNumber(node->output())) return nullptr;
  Node* const list = node->input(0)->node();
  const bool own = list->kind() == prim::ListConstruct && !list->inputs().empty() &&
                   list->output()->uses().size() == 1;
  return own ? list : nullptr;
}

NumberMarks::NumberMarks(const Graph& graph) {
  while (mark(graph.block())) {
  }
}

bool NumberMarks::areRead(const Node* node) const {
  return std::ranges::any_of(node->inputs(), [&](const Value* v) { return contains(v); });
}

bool NumberMarks::readsElement(const Node* node) const {
  return isAmong(nameOf(node), kElements) && node->inputs().size() == 1 &&
         node->input(0)->type()->kind() == TypeKind::Tensor && !contains(node->input(0)) &&
         isNumber(node->output());
}

// One round; whether it marked anything.
bool NumberMarks::mark(const Block* block) {
  bool changed = false;
  for (const Node* node : block->nodes()) {
    for (const Block* inner : node->blocks()) changed |= mark(inner);
    if (node->kind() == prim::If) {
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        const bool any = std::ranges::any_of(
            node->blocks(), [&](const Block* b) { return contains(b->outputs()[i]); });
        if (any) changed |= mark(node->output(i));
      }
    } else if (node->kind() == prim::Loop) {
      const Block* body = node->blocks()[0];
      for (size_t i = 0; i < node->outputs().size(); ++i) {
        if (!contains(node->input(i + 2)) && !contains(body->outputs()[i + 1])) continue;
        changed |= mark(body->inputs()[i + 1]);
        changed |= mark(node->output(i));
      }
    } else if (const Node* list = listOfExtremum(node)) {
      if (areRead(list)) changed |= mark(node->output());
    } else if (isKeptValue(node)) {
      changed |= mark(node->output());
    } else if (readsElement(node) || (computesNumber(node) && areRead(node))) {
      changed |= mark(node->output());
    }
  }
  return changed;
}

}  // namespace wick::aot
