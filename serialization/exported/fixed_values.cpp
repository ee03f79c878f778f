#include "serialization/exported/fixed_values.h"

#include <algorithm>
#include <unordered_set>

#include "ir/operator.h"

namespace wick::exported {
namespace {

// Operators that ask for sizes and the like, which elements do not matter to.
bool asksForSizes(Symbol kind) {
  static const std::unordered_set<Symbol> kinds = [] {
    std::unordered_set<Symbol> all;
    for (const char* name : {"__is__", "__isnot__", "__contains__", "size", "dim", "len", "numel",
                             "stride", "storage_offset", "is_floating_point", "is_complex",
                             "is_contiguous", "element_size", "ndimension"}) {
      all.insert(Symbol::aten(name));
    }
    for (const char* name : {"dtype", "device", "layout", "is_cuda", "shape", "is_sparse",
                             "is_quantized", "is_nested", "requires_grad"}) {
      all.insert(Symbol::prim(name));
    }
    return all;
  }();
  return kinds.contains(kind);
}

// Whether a value is None is the same in all calls.
bool ofIdentity(Symbol kind) {
  return kind == Symbol::aten("__is__") || kind == Symbol::aten("__isnot__");
}

// Whether a list changes after it was made.
bool isChanged(const Value* list) {
  return list->type()->kind() == TypeKind::List &&
         std::ranges::any_of(list->uses(), [](const Use& use) {
           const Operator* op = use.user->maybeOperator();
           return op && op->mayWrite(*use.user);
         });
}

}  // namespace

bool FixedValues::followsFromSizes(const Value* value) {
  const auto found = follows_.find(value);
  if (found != follows_.end()) return found->second;
  follows_[value] = false;  // of values that a loop carries
  const Node* node = value->node();
  bool follows = false;
  // Whether a list holds a number may depend on elements.
  const bool of_list = node->kind() == Symbol::aten("__contains__") &&
                       node->input(0)->type()->kind() != TypeKind::Dict;
  if (node->kind() == prim::Constant) {
    follows = true;
  } else if (node->kind() == prim::Param) {
    follows = node == graph_.paramNode() && value->type()->kind() != TypeKind::Tensor &&
              !value->type()->as<ListType>() && !value->type()->as<TupleType>() &&
              !value->type()->as<DictType>();
  } else if (asksForSizes(node->kind()) && !of_list) {
    follows = true;
    for (const Value* input : node->inputs()) {
      const TypeKind type = input->type()->kind();
      // Lists and dicts have the same length and keys in all calls.
      const bool is_given = type == TypeKind::Tensor || type == TypeKind::List ||
                            type == TypeKind::Dict || type == TypeKind::Tuple;
      follows = follows && (is_given || ofIdentity(node->kind()) || followsFromSizes(input));
    }
  } else if (node->kind() == prim::If) {
    // The same side in all runs, or both.
    const IValue* chosen = find(node->input(0));
    follows = chosen || followsFromSizes(node->input(0));
    for (size_t i = 0; i < 2 && follows; ++i) {
      if (chosen && (i == 0) != chosen->toBool()) continue;
      follows = followsFromSizes(node->blocks()[i]->outputs()[value->offset()]);
    }
  } else if (node->blocks().empty() && !node->hasSideEffects() && !node->isNondeterministic()) {
    const Operator* op = node->maybeOperator();
    follows =
        (!op || !op->mayWrite(*node)) &&
        std::ranges::all_of(node->inputs(), [&](const Value* v) { return followsFromSizes(v); });
  }
  follows_[value] = follows;
  return follows;
}

bool FixedValues::isEqualInRuns(const Value* value) const {
  const RecordedValue* first = runs_[0].find(value);
  return first && std::ranges::all_of(runs_, [&](const RecordedRun& run) {
           const RecordedValue* other = run.find(value);
           return other && *other == *first;
         });
}

// Whether a value that follows from sizes is computed from one that differs between runs.
bool FixedValues::hasOpenSize(const Value* value) {
  const auto found = open_.find(value);
  if (found != open_.end()) return found->second;
  const Node* node = value->node();
  bool open = false;
  if (asksForSizes(node->kind()) || node->kind() == prim::Param) {
    open = !isEqualInRuns(value);
  } else if (node->kind() == prim::If) {
    open = hasOpenSize(node->input(0));
    for (const Block* block : node->blocks()) {
      open = open || (runs_[0].find(block->outputs()[value->offset()]) &&
                      hasOpenSize(block->outputs()[value->offset()]));
    }
  }
  if (node->kind() != prim::Param && node->kind() != prim::If) {
    open = open || std::ranges::any_of(node->inputs(), [&](const Value* input) {
             // The sizes of these were compared.
             const TypeKind type = input->type()->kind();
             const bool is_given = type == TypeKind::Tensor || type == TypeKind::List ||
                                   type == TypeKind::Dict || type == TypeKind::Tuple;
             return !(asksForSizes(node->kind()) && is_given) && hasOpenSize(input);
           });
  }
  open_[value] = open;
  return open;
}

const IValue* FixedValues::find(const Value* value) {
  const RecordedValue* recorded = runs_[0].find(value);
  if (!recorded || !recorded->is_plain) return nullptr;
  const IValue* first = &recorded->plain;
  if (value->node()->kind() == prim::Constant) return first;
  const bool plain =
      first->isNumber() || first->isString() || first->isNone() || first->isDevice() ||
      (first->isList() && !first->elements().empty() &&
       std::ranges::all_of(first->elements(), [](const IValue& v) { return v.isNumber(); }));
  if (!plain || isChanged(value) || !followsFromSizes(value) || hasOpenSize(value)) return nullptr;
  return isEqualInRuns(value) ? first : nullptr;
}

}  // namespace wick::exported
