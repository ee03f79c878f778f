// A view is known by where its elements lie. Where that is a slice, a selected row, a broadcast or
// another shape of the whole, the record says so, because kernels are made of these; other views are
// as_strided, which counts from the beginning of the value and not of its memory.
#include "lazy/view_records.h"

#include <algorithm>
#include <optional>

#include "lazy/device_below.h"

namespace wick::lazy {

namespace {

// A range of one dimension, or with `selected` one place of it, which is no dimension of the view.
struct Range {
  size_t dim = 0;
  int64_t start = 0, length = 1;
  bool selected = false;
};

bool sameWithout(const Geometry& layout, const Geometry& view, size_t dim, bool dropped) {
  for (size_t d = 0, v = 0; d < layout.sizes.size(); ++d) {
    if (d == dim && dropped) continue;
    const bool fits = d == dim || (layout.sizes[d] == view.sizes[v] &&
                                   (layout.sizes[d] <= 1 || layout.strides[d] == view.strides[v]));
    const bool stride_fits = d != dim || view.sizes[v] <= 1 || layout.strides[d] == view.strides[v];
    if (!fits || !stride_fits) return false;
    ++v;
  }
  return true;
}

std::optional<Range> asRange(const Geometry& layout, const Geometry& view) {
  const size_t rank = layout.sizes.size();
  const bool dropped = view.sizes.size() + 1 == rank;
  if (!dropped && view.sizes.size() != rank) return std::nullopt;
  for (size_t d = 0; d < rank; ++d) {
    const int64_t stride = layout.strides[d];
    const int64_t length = dropped ? 1 : view.sizes[d];
    if (!sameWithout(layout, view, d, dropped) || stride <= 0 || view.offset % stride != 0) {
      continue;
    }
    const int64_t start = view.offset / stride;
    if (start + length <= layout.sizes[d]) return Range{d, start, length, dropped};
  }
  return std::nullopt;
}

bool isBroadcast(const Geometry& layout, const Geometry& view) {
  if (view.offset != 0 || view.sizes.size() < layout.sizes.size()) return false;
  const size_t added = view.sizes.size() - layout.sizes.size();
  for (size_t v = 0; v < view.sizes.size(); ++v) {
    const bool fresh = v < added || (layout.sizes[v - added] == 1 && view.sizes[v] != 1);
    if (fresh ? view.strides[v] != 0 && view.sizes[v] != 1
              : view.sizes[v] != layout.sizes[v - added] ||
                    (view.sizes[v] > 1 && view.strides[v] != layout.strides[v - added])) {
      return false;
    }
  }
  return true;
}

// The order of the layout's dimensions in the view, when it only has another one.
std::optional<DimVector> asPermutation(const Geometry& layout, const Geometry& view) {
  if (view.offset != 0 || view.sizes.size() != layout.sizes.size()) return std::nullopt;
  DimVector order;
  for (size_t v = 0; v < view.sizes.size(); ++v) {
    for (size_t d = 0; d < layout.sizes.size(); ++d) {
      if (std::ranges::find(order, static_cast<int64_t>(d)) != order.end()) continue;
      if (layout.sizes[d] == view.sizes[v] && layout.strides[d] == view.strides[v]) {
        order.push_back(static_cast<int64_t>(d));
        break;
      }
    }
  }
  if (order.size() != view.sizes.size()) return std::nullopt;
  return order;
}

Operand intOperand(int64_t number) {
  return {
      isParameter(number) ? Operand::Kind::Number : Operand::Kind::Constant, IValue(number), {}};
}

}  // namespace

ValueId recordView(Graph& graph, ValueId value, const Geometry& layout, const Geometry& view) {
  static const Operator &kView = operatorNamed("aten::view", ""),
                        &kSelect = operatorNamed("aten::select", "int"),
                        &kSlice = operatorNamed("aten::slice", "Tensor"),
                        &kExpand = operatorNamed("aten::expand", ""),
                        &kPermute = operatorNamed("aten::permute", ""),
                        &kStrided = operatorNamed("aten::as_strided", "");
  if (view == layout) return value;
  if (view.offset == 0 && view.numel() == layout.numel() && view.isContiguous()) {
    return graph.emit(kView, {valueOperand(value), intsOperand(view.sizes)});
  }
  if (const auto range = asRange(layout, view)) {
    const auto dim = constantOperand(IValue(static_cast<int64_t>(range->dim)));
    if (range->selected) {
      return graph.emit(kSelect, {valueOperand(value), dim, intOperand(range->start)});
    }
    return graph.emit(
        kSlice, {valueOperand(value), dim, intOperand(range->start),
                 intOperand(range->start + range->length), constantOperand(IValue(int64_t{1}))});
  }
  if (isBroadcast(layout, view)) {
    return graph.emit(
        kExpand, {valueOperand(value), intsOperand(view.sizes), constantOperand(IValue(false))});
  }
  if (const auto order = asPermutation(layout, view)) {
    return graph.emit(kPermute,
                      {valueOperand(value), constantOperand(IValue(makeIntList(*order)))});
  }
  if (view.offset > 0) {
    value = graph.emit(kView, {valueOperand(value), intsOperand({-1})});
    value = graph.emit(
        kSlice, {valueOperand(value), constantOperand(IValue(int64_t{0})), intOperand(view.offset),
                 intOperand(layout.numel()), constantOperand(IValue(int64_t{1}))});
  }
  return graph.emit(kStrided, {valueOperand(value), intsOperand(view.sizes),
                               intsOperand(view.strides), constantOperand(IValue())});
}

ValueId recordWrite(Graph& graph, ValueId value, const Geometry& layout, const Geometry& view,
                    ValueId part) {
  static const Operator &kSelect = operatorNamed("aten::select_scatter", ""),
                        &kSlice = operatorNamed("aten::slice_scatter", ""),
                        &kStrided = operatorNamed("aten::as_strided_scatter", ""),
                        &kClone = operatorNamed("aten::clone", "");
  if (const auto range = asRange(layout, view)) {
    const auto dim = constantOperand(IValue(static_cast<int64_t>(range->dim)));
    if (range->selected) {
      return graph.emit(kSelect,
                        {valueOperand(value), valueOperand(part), dim, intOperand(range->start)});
    }
    return graph.emit(
        kSlice, {valueOperand(value), valueOperand(part), dim, intOperand(range->start),
                 intOperand(range->start + range->length), constantOperand(IValue(int64_t{1}))});
  }
  // The offset is one in memory: that of a copy begins with the value.
  value = graph.emit(kClone, {valueOperand(value), constantOperand(IValue(int64_t{0}))});
  return graph.emit(kStrided, {valueOperand(value), valueOperand(part), intsOperand(view.sizes),
                               intsOperand(view.strides), intOperand(view.offset)});
}

ValueId recordStrides(Graph& graph, ValueId value, const Geometry& is, IntSpan strides) {
  static const Operator &kContiguous = operatorNamed("aten::contiguous", ""),
                        &kEmpty = operatorNamed("aten::empty_strided", ""),
                        &kCopy = operatorNamed("aten::copy_", "");
  if (std::ranges::equal(is.strides, strides)) return value;
  Geometry wanted = is;
  wanted.offset = 0;
  wanted.strides = DimVector(strides);
  Geometry found = is;
  found.offset = 0;
  if (wanted == found) return value;
  if (wanted.isContiguous()) {
    return graph.emit(kContiguous, {valueOperand(value), constantOperand(IValue(int64_t{0}))});
  }
  const auto none = constantOperand(IValue());
  const ValueId memory =
      graph.emit(kEmpty, {intsOperand(wanted.sizes), intsOperand(wanted.strides),
                          constantOperand(IValue(static_cast<int64_t>(is.dtype))), none,
                          deviceOperand(), none});
  Record copy;
  copy.op = &kCopy;
  copy.operands = {valueOperand(memory), valueOperand(value), constantOperand(IValue(false))};
  copy.results = {Record::kOne};
  copy.cloned = 1;
  return graph.append(std::move(copy), 2) + 1;
}

}  // namespace wick::lazy
