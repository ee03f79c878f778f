// x[…]: elements, slices, and indexing of tensors.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "frontend/ir_emitter.h"
#include "frontend/magic_methods.h"

namespace wick {

std::vector<Expr> Emitter::indexExprs(const Subscript& expr) {
  std::vector<Expr> out;
  for (const Expr& e : expr.subscripts()) out.push_back(e);
  return out;
}

SugaredValuePtr Emitter::emitSubscript(const Subscript& expr, const TypePtr& type_hint) {
  const SourceRange& range = expr.range();
  SugaredValuePtr object = emitSugared(expr.value());
  std::vector<Expr> subscripts = indexExprs(expr);
  if (!asSimple(object)) {
    if (subscripts.size() != 1) {
      throwCompileError(range, "a {} takes one index, found {}", object->kind(), subscripts.size());
    }
    if (subscripts[0].kind() != TK_SLICE_EXPR) {
      return object->getItem(range, fn_, emitExpr(subscripts[0]), type_hint);
    }
    // A slice of modules.
    std::vector<SugaredValuePtr> elements = object->asTuple(range, fn_);
    SliceExpr slice(subscripts[0].tree());
    auto at = [&](const Maybe<Expr>& bound, int64_t missing) {
      if (!bound) return missing;
      auto v = constantOf(emitExpr(bound.get()));
      if (!v || !v->isInt()) {
        throwCompileError(range, "the bounds of a slice of a {} must be constants", object->kind());
      }
      return v->toInt();
    };
    int64_t size = static_cast<int64_t>(elements.size());
    if (at(slice.step(), 1) != 1) {
      throwCompileError(range, "a slice of a {} must have the step 1", object->kind());
    }
    auto clamp = [&](int64_t i) { return std::clamp<int64_t>(i < 0 ? i + size : i, 0, size); };
    int64_t start = clamp(at(slice.start(), 0));
    int64_t end = std::max(start, clamp(at(slice.end(), size)));
    return std::make_shared<SugaredTuple>(
        std::vector<SugaredValuePtr>(elements.begin() + start, elements.begin() + end));
  }
  Value* value = asSimple(object);
  if (value->type()->kind() == TypeKind::Tensor) {
    return simple(emitTensorSubscript(range, value, subscripts));
  }
  if (subscripts.size() != 1) {
    throwCompileError(range, "only tensors take several indices, found a value of type {}",
                      value->type()->str());
  }
  if (subscripts[0].kind() == TK_SLICE_EXPR) {
    SliceExpr slice(subscripts[0].tree());
    if (value->type()->kind() == TypeKind::Tuple) {
      return simple(emitTupleSlice(range, value, slice));
    }
    return simple(emitSlice(range, value, slice, std::nullopt));
  }
  Value* index = emitExpr(subscripts[0]);
  if (value->type()->kind() == TypeKind::Tuple) {
    return simple(emitTupleIndex(range, value, index));
  }
  return object->getItem(range, fn_, index, type_hint);
}

Value* Emitter::emitSlice(const SourceRange& range, Value* value, const SliceExpr& slice,
                          std::optional<int64_t> dim) {
  std::vector<Value*> args{value};
  if (dim) args.push_back(constant(IValue(*dim)));
  auto bound = [&](const Maybe<Expr>& expr) {
    args.push_back(expr ? emitExpr(expr.get()) : graph_.insertConstant(IValue(), types::None()));
  };
  bound(slice.start());
  bound(slice.end());
  if (slice.step()) {
    args.push_back(emitExpr(slice.step().get()));
  } else {
    args.push_back(constant(IValue(int64_t{1})));
  }
  return builtin(range, aten::slice, args);
}

Value* Emitter::emitTupleSlice(const SourceRange& range, Value* tuple, const SliceExpr& slice) {
  int64_t size = static_cast<int64_t>(tuple->type()->contained().size());
  auto bound = [&](const Maybe<Expr>& expr) -> std::optional<int64_t> {
    if (!expr) return std::nullopt;
    Value* v = emitExpr(expr.get());
    if (v->type()->kind() == TypeKind::None) return std::nullopt;
    auto c = constantOf(v);
    if (!c || !c->isInt()) {
      throwCompileError(expr.get().range(), "tuple slice indices must be integer constants");
    }
    return c->toInt();
  };
  int64_t step = bound(slice.step()).value_or(1);
  if (step == 0) throwCompileError(range, "slice step cannot be zero");
  // Python's bounds: a negative step walks from the end and may stop before the first element.
  auto place = [&](std::optional<int64_t> i, int64_t missing) {
    if (!i) return missing;
    int64_t at = *i < 0 ? *i + size : *i;
    return step > 0 ? std::clamp<int64_t>(at, 0, size) : std::clamp<int64_t>(at, -1, size - 1);
  };
  int64_t start = place(bound(slice.start()), step > 0 ? 0 : size - 1);
  int64_t end = place(bound(slice.end()), step > 0 ? size : -1);
  const std::vector<Value*>& elements =
      graph_.insertNode(graph_.createTupleUnpack(tuple))->outputs();
  std::vector<Value*> chosen;
  // Once a step exceeds the tuple, one more step leaves it: no overflow for huge steps.
  step = std::clamp<int64_t>(step, -size - 1, size + 1);
  for (int64_t i = start; step > 0 ? i < end : i > end; i += step) {
    chosen.push_back(elements[static_cast<size_t>(i)]);
  }
  return graph_.insertNode(graph_.createTuple(chosen))->output();
}

Value* Emitter::emitTupleIndex(const SourceRange& range, Value* tuple, Value* index) {
  return simple(tuple)->getItem(range, fn_, index)->asValue(range, fn_);
}

// Two passes over the subscripts, because an ellipsis leaves open which dimension the ones after it
// mean: those before it count dimensions from the front, those after it from the back. A slice and
// a tensor use one dimension each and keep it, an int removes one, None adds one.
Emitter::TensorIndexing Emitter::emitTensorIndexing(const SourceRange& range, Value* tensor,
                                                    const std::vector<Expr>& subscripts) {
  size_t count = subscripts.size();
  std::vector<int64_t> dims(count, 0);
  std::vector<Value*> values(count, nullptr);
  bool after_ellipsis = false;
  auto place = [&](size_t i, int64_t dim, int64_t forward) {
    const Expr& expr = subscripts[i];
    dims[i] = dim;
    if (expr.kind() == TK_SLICE_EXPR) return dim + forward;
    Value* index = emitExpr(expr);
    if (index->type()->kind() == TypeKind::List) {
      index = emitBuiltinCall(range, graph_, Symbol::aten("tensor"), {NamedValue(range, index)});
    }
    values[i] = index;
    switch (index->type()->kind()) {
      case TypeKind::None:
        return forward > 0 ? dim + 1 : dim;
      case TypeKind::Int:
        return forward > 0 ? dim : dim - 1;
      case TypeKind::Tensor:
      case TypeKind::Optional:
        if (index->type()->isSubtypeOf(*types::Optional(types::Tensor()))) {
          if (after_ellipsis) {
            throwCompileError(range,
                              "Ellipses followed by tensor indexing is currently not supported");
          }
          return dim + forward;
        }
        break;
      default:
        break;
    }
    throwCompileError(expr.range(),
                      "Unsupported operation: indexing tensor with unsupported index type '{}'. "
                      "Only ints, slices, lists and tensors are supported",
                      index->type()->str());
  };
  size_t ellipsis = 0;
  for (int64_t dim = 0; ellipsis < count && subscripts[ellipsis].kind() != TK_DOTS; ++ellipsis) {
    dim = place(ellipsis, dim, 1);
  }
  after_ellipsis = true;
  int64_t dim = -1;
  for (size_t i = count; i > ellipsis + 1; --i) {
    if (subscripts[i - 1].kind() == TK_DOTS) {
      throwCompileError(subscripts[i - 1].range(),
                        "An index can only have a single ellipsis ('...')");
    }
    dim = place(i - 1, dim, -1);
  }
  TensorIndexing out{tensor, {}};
  for (size_t i = 0; i < count; ++i) {
    if (i == ellipsis) continue;
    if (!values[i]) {
      out.sliced = emitSlice(range, out.sliced, SliceExpr(subscripts[i].tree()), dims[i]);
      continue;
    }
    switch (values[i]->type()->kind()) {
      case TypeKind::None:
        out.sliced = builtin(range, aten::unsqueeze, {out.sliced, constant(IValue(dims[i]))});
        break;
      case TypeKind::Int:
        out.sliced =
            builtin(range, aten::select, {out.sliced, constant(IValue(dims[i])), values[i]});
        break;
      default: {
        size_t position = static_cast<size_t>(dims[i]);
        if (out.indices.size() <= position) out.indices.resize(position + 1, nullptr);
        out.indices[position] = values[i];
        break;
      }
    }
  }
  for (Value*& index : out.indices) {
    if (!index) index = graph_.insertConstant(IValue(), types::None());
  }
  return out;
}

Value* Emitter::emitTensorSubscript(const SourceRange& range, Value* tensor,
                                    const std::vector<Expr>& written) {
  std::vector<Expr> subscripts = written;
  // x[(i, j)] is x[i, j].
  if (subscripts.size() == 1 && subscripts[0].kind() == TK_TUPLE_LITERAL) {
    List<Expr> inner = TupleLiteral(subscripts[0].tree()).inputs();
    subscripts.clear();
    for (const Expr& e : inner) subscripts.push_back(e);
  }
  TensorIndexing at = emitTensorIndexing(range, tensor, subscripts);
  if (at.indices.empty()) return at.sliced;
  Value* indices =
      graph_.insertNode(graph_.createList(types::Optional(types::Tensor()), at.indices))->output();
  return builtin(range, aten::index, {at.sliced, indices});
}

}  // namespace wick
