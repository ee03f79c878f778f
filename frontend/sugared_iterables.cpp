// range, zip, enumerate and tuples of sugared values.
#include <fmt/format.h>

#include <limits>

#include "core/error.h"
#include "frontend/schema_matching.h"
#include "frontend/sugared_value.h"

namespace wick {

Value* SugaredTuple::asValue(const SourceRange& range, GraphFunction& fn) {
  std::vector<Value*> values;
  for (const SugaredValuePtr& e : elements_) values.push_back(e->asValue(range, fn));
  Graph& graph = *fn.graph();
  return graph.insertNode(graph.createTuple(values))->output();
}

SugaredValuePtr SugaredTuple::getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                                      TypePtr) {
  auto constant = constantOf(index);
  if (!constant || !constant->isInt()) {
    // Values of one type may be chosen while running.
    return SimpleValue(asValue(range, fn)).getItem(range, fn, index, nullptr);
  }
  int64_t size = static_cast<int64_t>(elements_.size());
  int64_t i = constant->toInt();
  if (i < 0) i += size;
  if (i < 0 || i >= size) {
    throwCompileError(range, "Tuple index out of range. Tuple is length {} and index is {}", size,
                      constant->toInt());
  }
  return elements_[static_cast<size_t>(i)];
}

Value* SugaredTuple::length(const SourceRange&, GraphFunction& fn) {
  return fn.graph()->insertConstant(IValue(static_cast<int64_t>(elements_.size())));
}

RangeValue::RangeValue(const SourceRange&, GraphFunction& fn, std::vector<Value*> arguments,
                       std::optional<size_t> static_length)
    : static_length_(static_length) {
  Graph& graph = *fn.graph();
  if (arguments.size() <= 1) {
    // Without bounds, as in enumerate: as long as what it is walked with.
    end_ = arguments.empty() ? graph.insertConstant(IValue(std::numeric_limits<int64_t>::max()))
                             : arguments[0];
    has_only_end_ = true;
    return;
  }
  start_ = arguments[0];
  end_ = arguments[1];
  step_ = arguments.size() == 3 ? arguments[2] : graph.insertConstant(IValue(int64_t{1}));
}

Value* RangeValue::contains(const SourceRange& range, GraphFunction& fn, Value* value) {
  Graph& graph = *fn.graph();
  auto number = [&](int64_t n) { return graph.insertConstant(IValue(n)); };
  return emitBuiltin(range, *fn.graph(), Symbol::prim("rangeContains"),
                     {value, start_ ? start_ : number(0), end_, step_ ? step_ : number(1)});
}

SugaredValuePtr RangeValue::getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                                    TypePtr) {
  if (has_only_end_) return std::make_shared<SimpleValue>(index);
  return std::make_shared<SimpleValue>(
      emitBuiltin(range, *fn.graph(), aten::__derive_index, {index, start_, step_}));
}

Value* RangeValue::length(const SourceRange& range, GraphFunction& fn) {
  if (has_only_end_) return end_;
  return emitBuiltin(range, *fn.graph(), aten::__range_length, {start_, end_, step_});
}

bool IterableTree::shouldUnroll() const {
  for (const SugaredValuePtr& child : children_) {
    if (child->shouldUnroll()) return true;
  }
  return false;
}

std::optional<size_t> IterableTree::staticLength() const {
  std::optional<size_t> shortest;
  for (const SugaredValuePtr& child : children_) {
    std::optional<size_t> n = child->staticLength();
    if (n && (!shortest || *n < *shortest)) shortest = n;
  }
  return shortest;
}

SugaredValuePtr IterableTree::getItem(const SourceRange& range, GraphFunction& fn, Value* index,
                                      TypePtr type_hint) {
  std::vector<SugaredValuePtr> elements;
  for (const SugaredValuePtr& child : children_) {
    elements.push_back(child->getItem(range, fn, index, type_hint));
  }
  return std::make_shared<SugaredTuple>(std::move(elements));
}

Value* IterableTree::length(const SourceRange& range, GraphFunction& fn) {
  Graph& graph = *fn.graph();
  std::vector<Value*> lengths;
  for (const SugaredValuePtr& child : children_) {
    lengths.push_back(child->length(range, fn));
  }
  if (lengths.size() == 1) return lengths[0];
  Value* list = graph.insertNode(graph.createList(types::Int(), lengths))->output();
  return emitBuiltin(range, *fn.graph(), Symbol::prim("min"), {list});
}

std::vector<SugaredValuePtr> IterableTree::asTuple(const SourceRange& range, GraphFunction& fn,
                                                   std::optional<size_t>) {
  std::optional<size_t> size = staticLength();
  if (!size) {
    throwCompileError(range, "an iterable of unknown length cannot be used as a tuple");
  }
  std::vector<SugaredValuePtr> out;
  for (size_t i = 0; i < *size; ++i) {
    Value* index = fn.graph()->insertConstant(IValue(static_cast<int64_t>(i)));
    out.push_back(getItem(range, fn, index, nullptr));
  }
  return out;
}

}  // namespace wick
