// x[…]: elements, slices, and indexing of tensors.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "frontend/magic_methods.h"

namespace wick {

Emitter::Index Emitter::emitIndex(const Expr& expr) {
  Index out;
  out.range = expr.range();
  if (expr.kind() == TK_DOTS ||
      (expr.kind() == TK_VAR && Var(expr.tree()).name().name() == "Ellipsis")) {
    out.is_ellipsis = true;
    return out;
  }
  if (expr.kind() == TK_SLICE_EXPR) {
    SliceExpr slice(expr.tree());
    auto bound = [&](const Maybe<Expr>& e) { return e ? emitExpr(e.get()) : nullptr; };
    Value* start = bound(slice.start());
    Value* stop = bound(slice.end());
    out.slice = std::make_shared<SliceValue>(start, stop, bound(slice.step()));
    return out;
  }
  SugaredValuePtr value = emitSugared(expr);
  out.slice = std::dynamic_pointer_cast<SliceValue>(value);
  if (!out.slice) out.value = value->asValue(expr.range(), fn_);
  return out;
}

std::vector<Emitter::Index> Emitter::emitIndices(const Subscript& expr) {
  std::vector<Index> out;
  for (const Expr& e : expr.subscripts()) out.push_back(emitIndex(e));
  return out;
}

SugaredValuePtr Emitter::emitSubscript(const Subscript& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  SugaredValuePtr object = emitSugared(expr.value());
  // Bounds and negative indices are a list's business; a range only counts.
  if (dynamic_cast<RangeValue*>(object.get())) object = simple(listOf(range, object));
  Value* value = asSimple(object);
  List<Expr> written = expr.subscripts();
  if (value && value->type()->kind() == TypeKind::Tensor) {
    std::vector<Index> indices;
    // x[(i, j)] is x[i, j].
    if (written.size() == 1 && written[0].kind() == TK_TUPLE_LITERAL) {
      for (const Expr& e : TupleLiteral(written[0].tree()).inputs()) {
        indices.push_back(emitIndex(e));
      }
    } else {
      indices = emitIndices(expr);
    }
    return simple(emitTensorSubscript(range, value, std::move(indices)));
  }
  if (written.size() != 1) {
    throwCompileError(range, "only tensors take several indices, found a {}", object->kind());
  }
  Index index = emitIndex(written[0]);
  if (index.is_ellipsis) {
    throwCompileError(range, "only tensors can be indexed with '...', found a {}", object->kind());
  }
  if (!index.slice) return object->getItem(range, fn_, index.value, type_hint);
  if (!value) return emitModuleSlice(range, object, *index.slice);
  if (value->type()->kind() == TypeKind::Tuple) {
    return simple(emitTupleSlice(range, value, *index.slice));
  }
  return simple(emitSlice(range, value, *index.slice, std::nullopt));
}

namespace {

// A bound of a slice that is resolved when compiling; nullopt where it is missing or None.
std::optional<int64_t> constantBound(const SourceRange& range, const Value* bound) {
  if (!bound || bound->type()->kind() == TypeKind::None) return std::nullopt;
  auto value = constantOf(bound);
  if (!value || !value->isInt()) {
    throwCompileError(range, "tuple slice indices must be integer constants");
  }
  return value->toInt();
}

// The positions that a slice of `size` elements chooses, by Python's rules.
std::vector<size_t> slicedPositions(const SourceRange& range, const SliceValue& slice,
                                    size_t count) {
  int64_t size = static_cast<int64_t>(count);
  int64_t step = constantBound(range, slice.step).value_or(1);
  if (step == 0) throwCompileError(range, "slice step cannot be zero");
  // A negative step walks from the end and may stop before the first element.
  auto place = [&](std::optional<int64_t> i, int64_t missing) {
    if (!i) return missing;
    int64_t at = *i < 0 ? *i + size : *i;
    return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
  };
  int64_t start = place(constantBound(range, slice.start), step > 0 ? 0 : size - 1);
  int64_t end = place(constantBound(range, slice.stop), step > 0 ? size : -1);
  // Once a step exceeds the tuple, one more step leaves it: no overflow for huge steps.
  step = std::clamp<int64_t>(step, -size - 1, size + 1);
  std::vector<size_t> out;
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
    out.push_back(static_cast<size_t>(i));
  }
  return out;
}

}  // namespace

SugaredValuePtr Emitter::emitModuleSlice(const SourceRange& range, const SugaredValuePtr& object,
                                         const SliceValue& slice) {
  std::vector<SugaredValuePtr> elements = object->asTuple(range, fn_);
  std::vector<SugaredValuePtr> chosen;
  for (size_t i : slicedPositions(range, slice, elements.size())) chosen.push_back(elements[i]);
  return std::make_shared<SugaredTuple>(std::move(chosen));
}

Value* Emitter::emitTupleSlice(const SourceRange& range, Value* tuple, const SliceValue& slice) {
  const std::vector<TypePtr>& held = tuple->type()->contained();
  const std::vector<size_t> positions = slicedPositions(range, slice, held.size());
  // A value for each element of a large tuple is made where most of them are wanted only.
  if (const std::optional<IValue> known = constantOf(tuple)) {
    std::vector<IValue> parts;
    std::vector<TypePtr> part_types;
    for (size_t i : positions) {
      parts.push_back(known->elements()[i]);
      part_types.push_back(held[i]);
    }
    return graph_.insertConstant(IValue(makeTuple(std::move(parts))),
                                 types::Tuple(std::move(part_types)));
  }
  std::vector<Value*> chosen;
  if (positions.size() < held.size() / 8) {
    for (size_t i : positions) {
      Value* index = constant(IValue(static_cast<int64_t>(i)));
      chosen.push_back(graph_.insertNode(graph_.createTupleIndex(tuple, index, held[i]))->output());
    }
  } else {
    Node* unpacked = graph_.insertNode(graph_.createTupleUnpack(tuple));
    for (size_t i : positions) chosen.push_back(unpacked->output(i));
  }
  return graph_.insertNode(graph_.createTuple(chosen))->output();
}

Value* Emitter::emitSlice(const SourceRange& range, Value* value, const SliceValue& slice,
                          std::optional<int64_t> dim) {
  std::vector<Value*> args{value};
  if (dim) args.push_back(constant(IValue(*dim)));
  auto bound = [&](Value* v) {
    args.push_back(v ? v : graph_.insertConstant(IValue(), types::None()));
  };
  bound(slice.start);
  bound(slice.stop);
  bool has_step = slice.step && slice.step->type()->kind() != TypeKind::None;
  args.push_back(has_step ? slice.step : constant(IValue(int64_t{1})));
  return builtin(range, aten::slice, args);
}

// Two passes over the subscripts, because an ellipsis leaves open which dimension the ones after it
// mean: those before it count dimensions from the front, those after it from the back. A slice and
// a tensor use one dimension each and keep it, an int removes one, None adds one.
Emitter::TensorIndexing Emitter::emitTensorIndexing(const SourceRange& range, Value* tensor,
                                                    std::vector<Index> subscripts) {
  size_t count = subscripts.size();
  std::vector<int64_t> dims(count, 0);
  bool after_ellipsis = false;
  auto place = [&](size_t i, int64_t dim, int64_t forward) {
    Index& index = subscripts[i];
    dims[i] = dim;
    if (index.slice) return dim + forward;
    if (index.value->type()->kind() == TypeKind::List) {
      index.value =
          emitBuiltinCall(range, graph_, Symbol::aten("tensor"), {NamedValue(range, index.value)});
    }
    const TypePtr& type = index.value->type();
    if (type->kind() == TypeKind::None) return forward > 0 ? dim + 1 : dim;
    if (type->kind() == TypeKind::Int) return forward > 0 ? dim : dim - 1;
    if (!type->isSubtypeOf(*types::Optional(types::Tensor()))) {
      throwCompileError(index.range,
                        "Unsupported operation: indexing tensor with unsupported index type '{}'. "
                        "Only ints, slices, lists and tensors are supported",
                        type->annotation());
    }
    if (after_ellipsis) {
      throwCompileError(range, "Ellipses followed by tensor indexing is currently not supported");
    }
    return dim + forward;
  };
  size_t ellipsis = 0;
  for (int64_t dim = 0; ellipsis < count && !subscripts[ellipsis].is_ellipsis; ++ellipsis) {
    dim = place(ellipsis, dim, 1);
  }
  after_ellipsis = true;
  int64_t dim = -1;
  for (size_t i = count; i > ellipsis + 1; --i) {
    if (subscripts[i - 1].is_ellipsis) {
      throwCompileError(subscripts[i - 1].range,
                        "An index can only have a single ellipsis ('...')");
    }
    dim = place(i - 1, dim, -1);
  }
  TensorIndexing out{tensor, {}};
  for (size_t i = 0; i < count; ++i) {
    if (i == ellipsis) continue;
    const Index& index = subscripts[i];
    if (index.slice) {
      out.sliced = emitSlice(range, out.sliced, *index.slice, dims[i]);
    } else if (index.value->type()->kind() == TypeKind::None) {
      out.sliced = builtin(range, aten::unsqueeze, {out.sliced, constant(IValue(dims[i]))});
    } else if (index.value->type()->kind() == TypeKind::Int) {
      out.sliced =
          builtin(range, aten::select, {out.sliced, constant(IValue(dims[i])), index.value});
    } else {
      size_t position = static_cast<size_t>(dims[i]);
      if (out.indices.size() <= position) out.indices.resize(position + 1, nullptr);
      out.indices[position] = index.value;
    }
  }
  for (Value*& index : out.indices) {
    if (!index) index = graph_.insertConstant(IValue(), types::None());
  }
  return out;
}

Value* Emitter::emitTensorSubscript(const SourceRange& range, Value* tensor,
                                    std::vector<Index> subscripts) {
  TensorIndexing at = emitTensorIndexing(range, tensor, std::move(subscripts));
  if (at.indices.empty()) return at.sliced;
  Value* indices =
      graph_.insertNode(graph_.createList(types::Optional(types::Tensor()), at.indices))->output();
  return builtin(range, aten::index, {at.sliced, indices});
}

}  // namespace wick
