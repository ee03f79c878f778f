// Reads and writes by index tensors on the device "ahead".
//
// What is read is one kernel, which works out where each element lies. For what is written a kernel works the
// positions out, and a function (runtime/wick_aot_elements.h) goes through them in order, because they may repeat.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
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
#include "runtime/ops/indexing/device_indexing.h"

namespace wick::aot {

namespace {

using ops::IndexPart;
using ops::Reach;
using ops::Reduction;

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

void writeAt(const char* op, const Reach& reach, const Tensor& values) {
  const Tensor from = values.clone(MemoryFormat::Contiguous);
  addFunction(op, fmt::format("putAt<{}>", wordOf(reach.self.itemSize())),
              {asWords(changes(reach.self)), reads(positionsOf(op, reach)), asWords(reads(from))},
              {from.numel()});
}

void reduceAt(const char* op, const Reach& reach, const Tensor& values, Reduction how,
              bool include_self) {
  const Tensor from = values.clone(MemoryFormat::Contiguous);
  const int64_t count = from.numel();
  if (isReducedFloat(reach.self.dtype()) && how == Reduction::Sum && include_self) {
    addFunction(op, fmt::format("addReducedAt<{}>", reach.self.dtype() == DType::BFloat16),
                {asWords(changes(reach.self)), reads(positionsOf(op, reach)), asWords(reads(from))},
                {count});
    return;
  }
  const std::string type = elementType(op, reach.self);
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

std::vector<Tensor> positionsAlong(const char* op, const Tensor& mask, Device) {
  const Tensor known = mask.device().isCpu() ? mask : Recording::current().known(mask);
  const Tensor positions =
      known.defined() ? ops::nonzeroPositions(known) : positionsOfTrue(op, mask);
  std::vector<Tensor> along;
  for (int64_t d = 0; d < mask.dim(); ++d) {
    along.push_back(here(positions.select(1, d).contiguous()));
  }
  return along;
}

const ops::RegisterIndexDevice indexes({
    .type = kAhead,
    .takes_cpu = true,
    .here = [](const Tensor& t, Device) { return here(t); },
    .number = [](const Scalar& value, DType dtype,
                 Device) { return here(ops::numberTensor(value, dtype)); },
    .positionsOfTrue = positionsAlong,
    .read = readAt,
    .write = writeAt,
    .reduce = reduceAt,
});

// ---- by masks, and as masks ----

// Elements where the mask is true become the next ones of the source, in the order of memory when the destination
// is self.
Tensor maskedScatterInto(const Tensor& self, const Tensor& mask, const Tensor& source,
                         bool in_place) {
  WICK_CHECK(self.dtype() == source.dtype(),
             "masked_scatter: expected self and source to have same dtypes but got {} and {}",
             scalarTypeName(self.dtype()), scalarTypeName(source.dtype()));
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_scatter: expected BoolTensor or ByteTensor for mask");
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
    addFunction("masked_scatter", fmt::format("putWhere<{}>", wordOf(out.itemSize())),
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

const DeviceKernel kIndexingKernels[] = {
    {"aten::masked_scatter", WICK_KERNEL(maskedScatter)},
    {"aten::masked_scatter_", WICK_KERNEL(maskedScatterInPlace)},
    {"aten::one_hot", WICK_KERNEL(oneHot)},
};
const RegisterDeviceKernels kIndexingRegistered(kAhead, kIndexingKernels);

}  // namespace

}  // namespace wick::aot
