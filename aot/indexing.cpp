// Reads and writes by index tensors on the device "ahead".
//
// What is read is one kernel, which works out where each element lies. For what is written a kernel works the
// positions out, and a function (runtime/wick_aot_elements.h) goes through them in order, because they may repeat.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "aot/complex.h"
#include "aot/counting.h"
#include "aot/device.h"
#include "aot/elements.h"
#include "aot/kernel_maker.h"
#include "aot/recording.h"
#include "aot/selection.h"
#include "aot/target.h"
#include "core/error.h"
#include "core/scalar.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/reduce/into.h"

namespace wick::aot {

namespace {

using ops::Reduction;
using ops::reductionNamed;

// An index that is added to a point's coordinates.
struct IndexPart {
  Tensor index;      // of the shape's sizes (expanded), int64 or int32
  int64_t size = 0;  // what it may address
  int64_t step = 0;  // in elements of the indexed tensor
};
// The elements of a tensor that the points of a shape belong to: at the sum of the coordinates times steps and the
// indices.
struct Reach {
  Tensor self;
  DimVector sizes, steps;
  std::vector<IndexPart> parts;
  bool from_end = false;  // whether negative indices count from the end
};

// The indices of a point, times their steps; and whether all are within their bounds.
struct Displacement {
  ScalarExpr elements, inside;
};
Displacement indexed(KernelMaker& maker, const Reach& reach) {
  Expression& e = maker.expression();
  const ExprBuilder b(e, DType::Long);
  const ScalarExpr zero = e.integer(0, DType::Long);
  // The text of a device's kernel serves all sizes.
  const auto number = [&](int64_t n) {
    return recordedTarget() ? maker.number(static_cast<uint64_t>(n), DType::Long)
                            : e.integer(n, DType::Long);
  };
  Displacement place{zero, e.integer(1, DType::Bool)};
  for (const IndexPart& part : reach.parts) {
    ScalarExpr i = e.convert(maker.load(part.index), DType::Long);
    const ScalarExpr size = number(part.size);
    if (reach.from_end) i = b.select(b.lt(i, zero), b.add(i, size), i);
    place.inside = b.both(place.inside, b.both(b.ge(i, zero), b.lt(i, size)));
    place.elements = b.add(place.elements, b.mul(i, number(part.step)));
  }
  return place;
}

std::string complaintOf(const char* op) {
  return fmt::format("{}: index out of range", op);
}

void readAt(const char* op, const Reach& reach, const Tensor& out) {
  if (out.numel() == 0) return;
  if (isComplex(out.dtype())) {
    for (const int64_t part : {0, 1}) {
      Reach of_part = reach;
      of_part.self = partOf(reach.self, part);
      for (int64_t& step : of_part.steps) step *= 2;
      for (IndexPart& p : of_part.parts) p.step *= 2;
      readAt(op, of_part, partOf(out, part));
    }
    return;
  }
  KernelMaker maker(reach.sizes);
  const Displacement place = indexed(maker, reach);
  const ExprBuilder b(maker.expression(), DType::Long);
  const auto item = static_cast<int64_t>(reach.self.itemSize());
  const ScalarExpr bytes = b.mul(place.elements, maker.expression().integer(item, DType::Long));
  const ScalarExpr value = maker.loadBehind(reach.self, reach.steps, bytes, place.inside);
  maker.check(place.inside);
  maker.store(value, out);
  maker.finish(op, complaintOf(op));
}

// The positions of all points in the tensor, in elements behind its first, row by row. -1 where an index is out of bounds:
// devices go on until they are asked.
Tensor positionsOf(const char* op, const Reach& reach) {
  const Tensor out = Tensor::empty(reach.sizes, DType::Long, Device{kAhead, -1});
  KernelMaker maker(reach.sizes);
  const Displacement place = indexed(maker, reach);
  const ExprBuilder b(maker.expression(), DType::Long);
  maker.check(place.inside);
  const ScalarExpr at = b.add(maker.position(reach.steps), place.elements);
  maker.store(b.select(place.inside, at, maker.expression().integer(-1, DType::Long)), out);
  maker.finish(op, complaintOf(op));
  return out;
}

// Writes values, of the points' sizes, to element after element.
void writeAt(const char* op, const Reach& reach, const Tensor& values) {
  if (checkedNumel(reach.sizes) == 0) return;
  const Tensor from = here(values).expand(reach.sizes).clone(MemoryFormat::Contiguous);
  addFunction(op, fmt::format("putAt<{}>", wordOf(reach.self)),
              {asWords(changes(reach.self)), reads(positionsOf(op, reach)), asWords(reads(from))},
              {from.numel()});
}

void reduceAt(const char* op, const Reach& reach, const Tensor& values, Reduction how,
              bool include_self) {
  const int64_t count = checkedNumel(reach.sizes);
  if (count == 0) return;
  if (isReducedFloat(reach.self.dtype()) && how == Reduction::Sum && include_self) {
    const Tensor from = here(values).expand(reach.sizes).clone(MemoryFormat::Contiguous);
    addFunction(op, fmt::format("addReducedAt<{}>", reach.self.dtype() == DType::BFloat16),
                {asWords(changes(reach.self)), reads(positionsOf(op, reach)), asWords(reads(from))},
                {count});
    return;
  }
  const std::string type = elementType(op, reach.self);
  const Tensor from = here(values).expand(reach.sizes).clone(MemoryFormat::Contiguous);
  const Tensor at = positionsOf(op, reach);
  if (how == Reduction::Sum && include_self) {
    addFunction(op, fmt::format("addAt<{}>", type), {changes(reach.self), reads(at), reads(from)},
                {count});
    return;
  }
  const char* const name = how == Reduction::Sum    ? "Sum"
                           : how == Reduction::Prod ? "Prod"
                           : how == Reduction::Mean ? "Mean"
                           : how == Reduction::Amax ? "Max"
                                                    : "Min";
  const Tensor places = how == Reduction::Mean
                            ? Tensor::empty(DimVector{count}, DType::Long, Device{kAhead, -1})
                            : Tensor();
  addFunction(op, fmt::format("reduceAt<{}, wick_aot::Reduction::{}>", type, name),
              {changes(reach.self), reads(at), reads(from), writes(places)},
              {count, include_self ? 1 : 0});
}

// ---- index and index_put ----

bool isMask(const Tensor& t) {
  return t.dtype() == DType::Bool || t.dtype() == DType::Byte;
}

// One entry for each indexed dimension. Masks become the positions where they are true.
std::vector<Tensor> withoutMasks(const char* op, Tensor& self, const std::vector<Tensor>& given) {
  std::vector<Tensor> indices;
  for (const Tensor& t : given) {
    if (!t.defined()) {
      indices.emplace_back();
      continue;
    }
    if (!isMask(t)) {
      WICK_CHECK(t.dtype() == DType::Long || t.dtype() == DType::Int,
                 "tensors used as indices must be long, int, byte or bool tensors");
      indices.push_back(here(t));
      continue;
    }
    Tensor known = t.device().isCpu() ? t : Recording::current().known(t);
    const bool decided = !known.defined();
    if (decided) known = here(t);
    const auto first = static_cast<int64_t>(indices.size());
    // One without dimensions stands for a new dimension of size one, selected or not.
    if (known.dim() == 0) {
      WICK_CHECK(first <= self.dim(), "too many indices for tensor of dimension {}", self.dim());
      self = self.unsqueeze(first);
      known = known.reshape(DimVector{1});
    }
    for (int64_t d = 0; d < known.dim(); ++d) {
      WICK_CHECK(first + d < self.dim(), "too many indices for tensor of dimension {}", self.dim());
      WICK_CHECK(known.size(d) == self.size(first + d),
                 "The shape of the mask {} at index {} does not match the shape of the indexed "
                 "tensor {} at index {}",
                 formatInts(known.sizes()), d, formatInts(self.sizes()), first + d);
    }
    const Tensor positions = decided ? positionsOfTrue(op, known) : ops::nonzeroPositions(known);
    for (int64_t d = 0; d < known.dim(); ++d) {
      indices.push_back(here(positions.select(1, d).contiguous()));
    }
  }
  WICK_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(),
             "too many indices for tensor of dimension {} (got {})", self.dim(), indices.size());
  indices.resize(static_cast<size_t>(self.dim()));
  return indices;
}

Reach reachOf(const char* op, const Tensor& given_self, const std::vector<Tensor>& given) {
  Reach reach;
  reach.self = here(given_self);
  reach.from_end = true;
  const std::vector<Tensor> indices = withoutMasks(op, reach.self, given);
  DimVector shape;
  size_t first = indices.size(), last = 0, count = 0;
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    first = std::min(first, d);
    last = d;
    ++count;
    shape = broadcastShapes(shape, indices[d].sizes());
  }
  // Indexed dimensions that are neighbours are replaced where they stand, others come first.
  const bool neighbours = count > 0 && last - first + 1 == count;
  size_t begin = 0;
  const auto placeIndexed = [&] {
    begin = reach.sizes.size();
    for (const int64_t s : shape) {
      reach.sizes.push_back(s);
      reach.steps.push_back(0);
    }
  };
  if (count > 0 && !neighbours) placeIndexed();
  for (size_t d = 0; d < indices.size(); ++d) {
    if (indices[d].defined()) {
      if (neighbours && d == first) placeIndexed();
      continue;
    }
    reach.sizes.push_back(reach.self.sizes()[d]);
    reach.steps.push_back(reach.self.strides()[d]);
  }
  for (size_t d = 0; d < indices.size(); ++d) {
    if (!indices[d].defined()) continue;
    const Tensor index = indices[d].expand(shape);
    DimVector strides(reach.sizes.size(), 0);
    for (size_t i = 0; i < shape.size(); ++i) strides[begin + i] = index.strides()[i];
    reach.parts.push_back({index.asStrided(reach.sizes, strides, index.offset()),
                           reach.self.sizes()[d], reach.self.strides()[d]});
  }
  return reach;
}

Tensor index(const Tensor& self, const std::vector<Tensor>& indices) {
  const Reach reach = reachOf("index", self, indices);
  const Tensor out = Tensor::empty(reach.sizes, self.dtype(), Device{kAhead, -1});
  readAt("index", reach, out);
  return out;
}

// The mask, of as many dimensions as the tensor, where masks alone are indices and the value is one element;
// undefined for others.
Tensor filledMask(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values) {
  if (values.numel() != 1) return {};
  Tensor mask;
  int64_t before = 0;
  for (const Tensor& t : indices) {
    if (!t.defined()) {
      before += mask.defined() ? 0 : 1;
    } else if (mask.defined() || !isMask(t) || t.dim() == 0) {
      return {};
    } else {
      mask = t;
    }
  }
  if (!mask.defined()) return {};
  for (int64_t d = 0; d < mask.dim(); ++d) {
    if (before + d >= self.dim() || self.size(before + d) != mask.size(d)) return {};
  }
  mask = here(mask).to(DType::Bool);
  while (mask.dim() < self.dim() - before) mask = mask.unsqueeze(-1);
  return mask;
}

void putInto(const char* op, const Tensor& self, const std::vector<Tensor>& indices,
             const Tensor& given_values, bool accumulate) {
  Tensor values = here(given_values);
  const Tensor mask = accumulate ? Tensor() : filledMask(self, indices, values);
  if (mask.defined()) {
    static const OperatorHandle kWhere("aten::where", "self");
    const Tensor one = values.reshape(DimVector{}).to(self.dtype());
    self.copyFrom(kWhere(mask, one, self));
    return;
  }
  WICK_CHECK(self.dtype() == values.dtype(),
             "Index put requires the source and destination dtypes match, got {} for the "
             "destination and {} for the source.",
             scalarTypeName(self.dtype()), scalarTypeName(values.dtype()));
  const Reach reach = reachOf(op, self, indices);
  while (values.dim() > static_cast<int64_t>(reach.sizes.size()) && values.sizes()[0] == 1) {
    values = values.select(0, 0);
  }
  if (accumulate) {
    reduceAt(op, reach, values, Reduction::Sum, true);
  } else {
    writeAt(op, reach, values);
  }
}
Tensor indexPut(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                bool accumulate) {
  const Tensor out = here(self).clone();
  putInto("index_put", out, indices, values, accumulate);
  return out;
}
Tensor indexPutInto(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate) {
  putInto("index_put_", self, indices, values, accumulate);
  return self;
}
Tensor indexPutImpl(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate, bool) {
  return indexPut(self, indices, values, accumulate);
}

// ---- along one dimension ----

Reach along(const char* op, const Tensor& self, int64_t dim, const Tensor& given_index,
            bool from_end = false) {
  Tensor t = here(self), index = here(given_index);
  if (t.dim() == 0) t = t.unsqueeze(0);
  if (index.dim() == 0) index = index.unsqueeze(0);
  dim = wrapDim(dim, t.dim());
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: Expected dtype int32/int64 for index", op);
  WICK_CHECK(index.dim() == t.dim(),
             "Index tensor must have the same number of dimensions as self tensor");
  for (int64_t d = 0; d < t.dim(); ++d) {
    WICK_CHECK(d == dim || index.size(d) <= t.size(d),
               "Expected index {} to be smaller than self {} apart from dimension {}",
               formatInts(index.sizes()), formatInts(t.sizes()), dim);
  }
  DimVector steps(t.strides());
  steps[static_cast<size_t>(dim)] = 0;
  return {t, DimVector(index.sizes()), steps, {{index, t.size(dim), t.stride(dim)}}, from_end};
}
// The part of a source that an index covers.
Tensor covered(const Tensor& source, const Reach& reach) {
  Tensor from = here(source);
  if (from.dim() == 0) from = from.unsqueeze(0);
  WICK_CHECK(from.dtype() == reach.self.dtype(),
             "scatter(): Expected self.dtype to be equal to src.dtype");
  WICK_CHECK(from.dim() == static_cast<int64_t>(reach.sizes.size()),
             "Index tensor must have the same number of dimensions as src tensor");
  for (int64_t d = 0; d < from.dim(); ++d) {
    const int64_t size = reach.sizes[static_cast<size_t>(d)];
    WICK_CHECK(size <= from.size(d), "Expected index {} to be smaller size than src {}",
               formatInts(reach.sizes), formatInts(source.sizes()));
    from = from.narrow(d, 0, size);
  }
  return from;
}
Tensor numberOf(const Scalar& value, DType dtype) {
  return here(ops::numberTensor(value, dtype));
}

Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  const Tensor out = Tensor::empty(index.sizes(), self.dtype(), Device{kAhead, -1});
  if (out.numel() == 0) return out;
  readAt("gather", along("gather()", self, dim, index), out.dim() == 0 ? out.unsqueeze(0) : out);
  return out;
}
Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const Tensor out = here(self).clone();
  if (index.numel() == 0) return out;
  const Reach reach = along("scatter()", out, dim, index);
  writeAt("scatter", reach, covered(source, reach));
  return out;
}
Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const Tensor out = here(self).clone(), number = numberOf(value, self.dtype());
  if (index.numel() == 0) return out;
  writeAt("scatter", along("scatter()", out, dim, index), number);
  return out;
}
Tensor scatterWith(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   Reduction how, bool include_self) {
  const Tensor out = here(self).clone();
  if (index.numel() == 0) return out;
  const Reach reach = along("scatter()", out, dim, index);
  reduceAt("scatter", reach, covered(source, reach), how, include_self);
  return out;
}
Tensor scatterAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  return scatterWith(self, dim, index, source, Reduction::Sum, true);
}
Tensor scatterReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                     const std::string& reduce, bool include_self) {
  const std::optional<Reduction> how = reductionNamed(reduce);
  WICK_CHECK(how.has_value(), "reduce argument must be either sum, prod, mean, amax or amin.");
  return scatterWith(self, dim, index, source, *how, include_self);
}
Tensor scatterMode(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const std::string& reduce) {
  WICK_CHECK(reduce == "add" || reduce == "multiply",
             "reduce argument must be either add or multiply.");
  return scatterWith(self, dim, index, source, reduce == "add" ? Reduction::Sum : Reduction::Prod,
                     true);
}
Tensor scatterValueMode(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value,
                        const std::string& reduce) {
  return scatterMode(self, dim, index, numberOf(value, self.dtype()).expand(index.sizes()), reduce);
}

// ---- by a vector of indices, which counts for all elements of the other dimensions ----

Reach alongVector(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                  bool from_end = false) {
  const Tensor t = self.dim() == 0 ? self.unsqueeze(0) : self;
  dim = wrapDim(dim, t.dim());
  WICK_CHECK(index.dim() <= 1, "{}: Index is supposed to be a vector, got {}", op,
             index.describe());
  DimVector sizes(t.sizes()), shape(static_cast<size_t>(t.dim()), 1);
  sizes[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)] = index.numel();
  return along(op, t, dim, here(index).reshape(shape).expand(sizes), from_end);
}
Tensor sourceOf(const char* op, const Tensor& source, const Reach& reach) {
  const Tensor from = source.dim() == 0 ? here(source).unsqueeze(0) : here(source);
  WICK_CHECK(
      std::ranges::equal(from.sizes(), IntSpan(reach.sizes)) && from.dtype() == reach.self.dtype(),
      "{}: the source {} does not fit the index, which wants {} of {}", op, source.describe(),
      formatInts(reach.sizes), toString(reach.self.dtype()));
  return from;
}

Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  const Reach reach = alongVector("index_select()", self, dim, index);
  const Tensor out = Tensor::empty(reach.sizes, self.dtype(), Device{kAhead, -1});
  readAt("index_select", reach, out);
  return self.dim() == 0 ? out.reshape(DimVector{}) : out;
}
Tensor indexAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  const Tensor out = here(self).clone();
  const Reach reach = alongVector("index_add_()", out, dim, index);
  const Tensor from = sourceOf("index_add_()", source, reach);
  const bool plain = !alpha.isComplex() && alpha.toDouble() == 1;
  reduceAt("index_add", reach, plain ? from : ops::mulScalar(from, alpha).to(from.dtype()),
           Reduction::Sum, true);
  return out;
}
Tensor indexCopy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const Tensor out = here(self).clone();
  const Reach reach = alongVector("index_copy_()", out, dim, index);
  writeAt("index_copy", reach, sourceOf("index_copy_()", source, reach));
  return out;
}
Tensor indexFillTensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  WICK_CHECK(value.dim() == 0,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  const Tensor out = here(self).clone();
  writeAt("index_fill", alongVector("index_fill_()", out, dim, index, true),
          here(value).to(self.dtype()));
  return out;
}
Tensor indexFill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return indexFillTensor(self, dim, index, numberOf(value, self.dtype()));
}
Tensor indexReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const std::string& reduce, bool include_self) {
  WICK_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
             reduce);
  const Tensor out = here(self).clone();
  const Reach reach = alongVector("index_reduce()", out, dim, index);
  reduceAt("index_reduce", reach, sourceOf("index_reduce()", source, reach),
           *reductionNamed(reduce), include_self);
  return out;
}

// ---- of a flat tensor ----

Tensor flat(const Tensor& t) {
  return here(t).contiguous().view(DimVector{-1});
}
Tensor take(const Tensor& self, const Tensor& index) {
  WICK_CHECK(index.dtype() == DType::Long, "take(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  const Tensor out = Tensor::empty(index.sizes(), self.dtype(), Device{kAhead, -1});
  if (out.numel() > 0) {
    readAt("take", along("take()", flat(self), 0, flat(index), true), out.view(DimVector{-1}));
  }
  return out;
}
Tensor put(const Tensor& self, const Tensor& index, const Tensor& source, bool accumulate) {
  WICK_CHECK(index.dtype() == DType::Long, "put_(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.dtype() == source.dtype() && index.numel() == source.numel(),
             "put_(): Expected source and index to have the same number of elements and one dtype, "
             "got {}, {} and {}",
             self.describe(), index.describe(), source.describe());
  WICK_CHECK(self.numel() > 0 || index.numel() == 0,
             "put_(): tried to put elements into an empty tensor");
  const Tensor out = here(self).clone(MemoryFormat::Contiguous);
  if (index.numel() == 0) return out;
  const Reach reach = along("put_()", out.view(DimVector{-1}), 0, flat(index), true);
  if (accumulate) {
    reduceAt("put", reach, flat(source), Reduction::Sum, true);
  } else {
    writeAt("put", reach, flat(source));
  }
  return out;
}
Tensor takeAlongDim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "torch.take_along_dim()";
  const auto read = [&](const Tensor& from, int64_t d, const Tensor& index) {
    const Tensor out = Tensor::empty(index.sizes(), self.dtype(), Device{kAhead, -1});
    if (out.numel() == 0) return out;
    readAt("take_along_dim", along(op, from, d, index, true),
           out.dim() == 0 ? out.unsqueeze(0) : out);
    return out;
  };
  if (!dim) return read(flat(self), 0, flat(indices));
  const int64_t d = wrapDim(*dim, self.dim());
  WICK_CHECK(self.dim() == indices.dim(),
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for indices",
             self.dim(), indices.dim());
  if (self.dim() == 0) return read(self, d, indices);
  // All dimensions broadcast but the one that is indexed.
  DimVector a(self.sizes()), b(indices.sizes());
  const auto at = static_cast<size_t>(d);
  a[at] = b[at] = 1;
  DimVector from = broadcastShapes(a, b), to = from;
  from[at] = self.size(d);
  to[at] = indices.size(d);
  return read(here(self).expand(from), d, here(indices).expand(to));
}

// Elements where the mask is true become the next ones of the source, in the order of memory when the destination
// is self.
Tensor maskedScatterInto(const Tensor& self, const Tensor& mask, const Tensor& source,
                         bool in_place) {
  WICK_CHECK(self.dtype() == source.dtype(),
             "masked_scatter: expected self and source to have same dtypes but got {} and {}",
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  WICK_CHECK(isMask(mask), "masked_scatter: expected BoolTensor or ByteTensor for mask");
  const DimVector sizes =
      in_place ? DimVector(self.sizes()) : broadcastShapes(self.sizes(), mask.sizes());
  DimVector order(sizes.size()), back(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (in_place) {
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t a, int64_t b) { return self.stride(a) > self.stride(b); });
  }
  for (size_t d = 0; d < order.size(); ++d) {
    back[static_cast<size_t>(order[d])] = static_cast<int64_t>(d);
  }
  const Tensor keep = here(mask).to(DType::Bool).expand(sizes).permute(order).contiguous();
  const Tensor from = here(source).contiguous();
  const Tensor out = here(self).expand(sizes).permute(order).clone(MemoryFormat::Contiguous);
  if (out.numel() > 0) {
    addFunction("masked_scatter", fmt::format("putWhere<{}>", wordOf(out)),
                {asWords(changes(out)), reads(keep), asWords(reads(from))},
                {out.numel(), from.numel()},
                "Number of elements of source < number of ones in mask");
  }
  return out.permute(back);
}
Tensor maskedScatter(const Tensor& self, const Tensor& mask, const Tensor& source) {
  return maskedScatterInto(self, mask, source, false);
}
Tensor maskedScatterInPlace(const Tensor& self, const Tensor& mask, const Tensor& source) {
  self.copyFrom(maskedScatterInto(self, mask, source, true));
  return self;
}

Tensor oneHot(const Tensor& self, int64_t classes) {
  WICK_CHECK(self.dtype() == DType::Long, "one_hot is only applicable to index tensor.");
  // The same text for all numbers of classes that elements decide.
  std::string complaint = fmt::format("one_hot: Class values must be from 0 to {}", classes - 1);
  if (classes == -1) {
    WICK_CHECK(self.numel() > 0, "Can not infer total number of classes from empty tensor.");
    complaint = "Class values must be non-negative.";
    classes = placesFor("one_hot", here(self).contiguous(), 1, complaint);
  }
  WICK_CHECK(classes > 0, "num_classes should be positive");
  DimVector sizes(self.sizes());
  sizes.push_back(classes);
  const Tensor out = Tensor::empty(sizes, DType::Long, Device{kAhead, -1});
  if (out.numel() == 0) return out;
  KernelMaker maker(sizes);
  Expression& e = maker.expression();
  const ExprBuilder b(e, DType::Long);
  const ScalarExpr at = maker.load(here(self).unsqueeze(-1));
  DimVector steps(sizes.size(), 0);
  steps.back() = 1;
  maker.check(
      b.both(b.ge(at, e.integer(0, DType::Long)), b.lt(at, e.integer(classes, DType::Long))));
  maker.store(e.convert(b.eq(at, maker.position(steps)), DType::Long), out);
  maker.finish("one_hot", complaint);
  return out;
}

const DeviceKernel kKernels[] = {
    {"aten::index.Tensor_hacked_twin", WICK_KERNEL(index)},
    {"aten::_unsafe_index.Tensor", WICK_KERNEL(index)},
    {"aten::index_put.hacked_twin", WICK_KERNEL(indexPut)},
    {"aten::_unsafe_index_put", WICK_KERNEL(indexPut)},
    {"aten::_index_put_impl", WICK_KERNEL(indexPutImpl)},
    {"aten::scatter.src", WICK_KERNEL(scatterSource)},
    {"aten::scatter.value", WICK_KERNEL(scatterValue)},
    {"aten::scatter.reduce", WICK_KERNEL(scatterMode)},
    {"aten::scatter.value_reduce", WICK_KERNEL(scatterValueMode)},
    {"aten::scatter_add", WICK_KERNEL(scatterAdd)},
    {"aten::scatter_reduce.two", WICK_KERNEL(scatterReduce)},
    {"aten::index_add", WICK_KERNEL(indexAdd)},
    {"aten::index_copy", WICK_KERNEL(indexCopy)},
    {"aten::index_fill.int_Scalar", WICK_KERNEL(indexFill)},
    {"aten::index_reduce", WICK_KERNEL(indexReduce)},
    {"aten::take", WICK_KERNEL(take)},
    {"aten::put", WICK_KERNEL(put)},
    {"aten::take_along_dim", WICK_KERNEL(takeAlongDim)},
    {"aten::masked_scatter", WICK_KERNEL(maskedScatter)},
    {"aten::masked_scatter_", WICK_KERNEL(maskedScatterInPlace)},
    {"aten::one_hot", WICK_KERNEL(oneHot)},
};
// Indices may lie on the CPU, as may values of no dimensions.
const DeviceKernel kMixed[] = {
    {"aten::index.Tensor", WICK_KERNEL(index)},
    {"aten::index_put", WICK_KERNEL(indexPut)},
    {"aten::index_put_", WICK_KERNEL(indexPutInto)},
    {"aten::index_fill.int_Tensor", WICK_KERNEL(indexFillTensor)},
};
// Where there is no loop form.
const DeviceKernel kLast[] = {
    {"aten::gather", WICK_KERNEL(gather)},
    {"aten::index_select", WICK_KERNEL(indexSelect)},
};
const RegisterDeviceKernels last(kAhead, kLast, TableRule::Last);
const RegisterDeviceKernels registered(kAhead, kKernels);
const RegisterDeviceKernels mixed(kAhead, kMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::aot
