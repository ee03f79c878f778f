// Sums along a dimension, sorting, searching and resampling on the device "ahead".
#include "aot/elements.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>

#include "aot/complex.h"
#include "aot/device.h"
#include "aot/recording.h"
#include "codegen/cpp/scalar_text.h"
#include "core/dtype_dispatch.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/indexing/searched.h"
#include "runtime/ops/layers/grid.h"

namespace wick::aot {

namespace {

FunctionStep::Operand operandOf(const Tensor& t, FunctionStep::How how) {
  FunctionStep::Operand operand;
  operand.how = how;
  if (!t.defined()) return operand;
  operand.dtype = t.dtype();
  operand.place = Recording::current().placeOf(t);
  return operand;
}

}  // namespace

FunctionStep::Operand reads(const Tensor& t) {
  return operandOf(t, FunctionStep::How::Reads);
}
FunctionStep::Operand writes(const Tensor& t) {
  return operandOf(t, FunctionStep::How::Writes);
}
FunctionStep::Operand changes(const Tensor& t) {
  return operandOf(t, FunctionStep::How::Changes);
}
FunctionStep::Operand asWords(FunctionStep::Operand operand) {
  operand.bytes = itemSize(operand.dtype);
  return operand;
}
Tensor integers(int64_t count) {
  return Tensor::empty(DimVector{count}, DType::Long, Device{kAhead, -1});
}
Tensor number() {
  return Tensor::empty(DimVector{}, DType::Long, Device{kAhead, -1});
}
Tensor numbersOf(double first, double second) {
  const double both[] = {first, second};
  return here(Tensor::fromData(both, DimVector{2}));
}

std::string shown(const Tensor& t) {
  if (!t.defined()) return t.describe();
  const std::string text = fmt::format("{}{}", toString(t.dtype()), formatInts(t.sizes()));
  return t.kind() == TensorKind::Dense ? text : fmt::format("{} {}", toString(t.kind()), text);
}
std::string wordOf(size_t bytes) {
  return bytes > sizeof(uint64_t) ? "wick_aot::TwoWords" : fmt::format("uint{}_t", 8 * bytes);
}
std::string elementType(const char* op, const Tensor& t) {
  if (t.kind() != TensorKind::Dense || t.dtype() == DType::Bool || isReducedFloat(t.dtype()) ||
      (!isFloating(t.dtype()) && !isIntegral(t.dtype(), false))) {
    throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, toString(t.dtype())));
  }
  return codegen::cppType(t.dtype());
}

void addFunction(const char* op, std::string function, std::vector<FunctionStep::Operand> operands,
                 std::vector<int64_t> numbers, std::string complaint) {
  Recording::current().add(op, FunctionStep{std::move(function), std::move(operands),
                                            std::move(numbers), std::move(complaint)});
}

void addWeightedRows(const char* op, const Tensor& x, const Tensor& out, int64_t source_rows,
                     int64_t inner, const WeightedRows& rows) {
  const auto count = static_cast<int64_t>(rows.start.size()) - 1;
  if (out.numel() == 0 || count == 0) return;
  const std::string type = elementType(op, x);
  Recording& recording = Recording::current();
  const auto table = [&](const CountedVector<int64_t>& values) {
    // Of a table without entries nothing is read.
    const DimVector sizes{std::max<int64_t>(1, static_cast<int64_t>(values.size()))};
    const Tensor t = Tensor::zeros(sizes, DType::Long);
    std::ranges::copy(values, t.data<int64_t>());
    return recording.constant(t);
  };
  Tensor weights;
  if (!rows.weight.empty()) {
    weights = Tensor::empty(DimVector{static_cast<int64_t>(rows.weight.size())}, DType::Double);
    std::ranges::copy(rows.weight, weights.data<double>());
    weights = recording.constant(weights.to(x.dtype()));
  } else {
    WICK_ASSERT(rows.place.empty() || rows.place.size() == static_cast<size_t>(count),
                "{}: rows are copies of one each", op);
  }
  // The engine adds the elements of columns to zeros.
  const bool empty = std::string_view(op) == "col2im";
  addFunction(
      op, fmt::format("weightedRows<{}>", type),
      {reads(x), reads(table(rows.start)), reads(table(rows.place)), reads(weights), writes(out)},
      {out.numel() / (count * inner), source_rows, count, inner, empty ? 1 : 0});
}

namespace {

// ---- along a dimension ----

Tensor scanned(const char* op, const Tensor& self, int64_t dim, std::optional<DType> dtype,
               const char* function) {
  const DType type = dtype.value_or(isIntegral(self.dtype(), true) ? DType::Long : self.dtype());
  const int64_t d = wrapDim(dim, self.dim());
  const Tensor x = here(self).to(type).contiguous();
  // They are added up in float64, rounded to float32, and then to themselves.
  if (isReducedFloat(type)) {
    return scanned(op, x.to(DType::Float), d, std::nullopt, function).to(type);
  }
  const Tensor out = Tensor::empty(x.sizes(), type, x.device());
  if (x.numel() == 0) return out;
  const ops::DimSplit split = ops::splitAt(x.sizes(), d);
  addFunction(op, fmt::format(fmt::runtime(function), elementType(op, x)), {reads(x), writes(out)},
              {split.outer, split.size, split.inner});
  return out;
}
Tensor cumsum(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  if (isComplex(dtype.value_or(self.dtype())) && self.dim() > 0) {
    const Tensor x = (dtype ? here(self).to(*dtype) : here(self)).contiguous();
    return ops::viewAsComplex(cumsum(asPairs(x), wrapDim(dim, self.dim()), std::nullopt));
  }
  return scanned("cumsum", self, dim, dtype, "cumulative<{}, false>");
}
Tensor cumprod(const Tensor& self, int64_t dim, std::optional<DType> dtype) {
  return scanned("cumprod", self, dim, dtype, "cumulative<{}, true>");
}
Tensor logcumsumexp(const Tensor& self, int64_t dim) {
  WICK_CHECK(isFloating(self.dtype()), "\"logcumsumexp\" not implemented for '{}'",
             scalarTypeName(self.dtype()));
  return scanned("logcumsumexp", self, dim, self.dtype(), "cumulativeLogSum<{}>");
}

template <bool kMax>
Pair running(const Tensor& self, int64_t dim) {
  const char* op = kMax ? "cummax" : "cummin";
  const int64_t d = wrapDim(dim, self.dim());
  const Tensor x = here(self).contiguous();
  const Tensor values = Tensor::empty(x.sizes(), x.dtype(), x.device());
  const Tensor indices = Tensor::empty(x.sizes(), DType::Long, x.device());
  if (x.numel() == 0) return {values, indices};
  const ops::DimSplit split = ops::splitAt(x.sizes(), d);
  addFunction(op, fmt::format("cumulativeExtremes<{}, {}>", elementType(op, x), kMax),
              {reads(x), writes(values), writes(indices)}, {split.outer, split.size, split.inner});
  return {values, indices};
}

// ---- order ----

// The slices of a tensor along a dimension as rows, and results of so many elements for each.
class Slices {
 public:
  Slices(const char* op, const Tensor& self, int64_t dim) : op_(op), self_(here(self)) {
    dim_ = wrapDim(dim, self_.dim());
    Tensor t = self_.dim() == 0 ? self_.unsqueeze(0) : self_;
    length_ = t.size(dim_);
    // Functions count the elements of a row by words of as many bits as the elements have, 32 at least.
    if (length_ > std::numeric_limits<uint32_t>::max() && t.itemSize() <= sizeof(uint32_t)) {
      throw NotAhead(
          fmt::format("{} of rows of {} elements is not available ahead of time", op, length_));
    }
    // What else has an order has that of other elements.
    if (t.dtype() == DType::Bool) t = t.to(DType::Byte);
    if (isReducedFloat(t.dtype())) t = t.to(DType::Float);
    moved_ = t.transpose(dim_, t.dim() - 1).contiguous();
  }
  int64_t length() const { return length_; }
  void checkNotEmpty() const {
    WICK_CHECK(self_.dim() == 0 || length_ > 0,
               "{}(): Expected reduction dim {} to have non-zero size.", op_, dim_);
  }
  Pair run(const char* function, int64_t kept, std::vector<int64_t> numbers, bool reduces,
           bool keepdim) const {
    DimVector sizes(moved_.sizes());
    sizes.back() = kept;
    const Tensor values = Tensor::empty(sizes, moved_.dtype(), moved_.device());
    const Tensor indices = Tensor::empty(sizes, DType::Long, moved_.device());
    if (values.numel() > 0) {
      // A pair of numbers for each element of a row.
      std::vector<int64_t> all = {moved_.numel() / length_, length_};
      all.insert(all.end(), numbers.begin(), numbers.end());
      addFunction(
          op_, fmt::format("{}<{}>", function, elementType(op_, moved_)),
          {reads(moved_), writes(values), writes(indices), asWords(writes(integers(2 * length_)))},
          std::move(all));
    }
    return {finish(values.to(self_.dtype()), reduces, keepdim), finish(indices, reduces, keepdim)};
  }

 private:
  Tensor finish(const Tensor& t, bool reduces, bool keepdim) const {
    Tensor back = t.transpose(dim_, t.dim() - 1);
    if (self_.dim() == 0) {
      back = back.select(0, 0);
    } else if (reduces && !keepdim) {
      back = back.select(dim_, 0);
    }
    return back.contiguous();
  }

  const char* op_;
  Tensor self_, moved_;
  int64_t dim_, length_;
};

Pair sortStable(const Tensor& self, std::optional<bool> stable, int64_t dim, bool descending) {
  const Slices slices("sort", self, dim);
  return slices.run("sortRows", slices.length(),
                    {descending ? 1 : 0, stable.value_or(false) ? 1 : 0}, false, true);
}
void refuseBool(const char* op, const Tensor& t) {
  WICK_CHECK(t.dtype() != DType::Bool, "\"{}\" not implemented for 'Bool'", op);
}
Pair topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool sorted) {
  refuseBool("topk", self);
  const Slices slices("topk", self, dim);
  WICK_CHECK(k >= 0 && k <= slices.length(), "topk: selected index k out of range: {} of {}", k,
             slices.length());
  return slices.run("topOfRows", k, {k, largest ? 1 : 0, sorted ? 1 : 0}, false, true);
}
Pair kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  refuseBool("kthvalue", self);
  const Slices slices("kthvalue", self, dim);
  slices.checkNotEmpty();
  WICK_CHECK(k >= 1 && k <= slices.length(),
             "kthvalue(): selected number k out of range for dimension {}", dim);
  return slices.run("kthOfRows", 1, {k}, true, keepdim);
}
template <bool kIgnoreNan>
Pair medianDim(const Tensor& self, int64_t dim, bool keepdim) {
  refuseBool("median", self);
  const Slices slices("median", self, dim);
  slices.checkNotEmpty();
  return slices.run("medianOfRows", 1, {kIgnoreNan ? 1 : 0}, true, keepdim);
}
template <bool kIgnoreNan>
Tensor medianAll(const Tensor& self) {
  if (self.numel() == 0) throw NotAhead("median of no elements is not available ahead of time");
  return std::get<0>(medianDim<kIgnoreNan>(self.reshape(DimVector{-1}), 0, false));
}
Pair mode(const Tensor& self, int64_t dim, bool keepdim) {
  const Slices slices("mode", self, dim);
  slices.checkNotEmpty();
  return slices.run("modeOfRows", 1, {}, true, keepdim);
}

// ---- searching ----

Tensor sortedPositions(const Tensor& sequence_in, const Tensor& values_in, const Tensor& order_in,
                       bool right) {
  const char* op = "torch.searchsorted()";
  const Tensor sequence = here(sequence_in).contiguous(), values = here(values_in).contiguous();
  Tensor order = here(order_in);
  if (order.defined()) order = order.contiguous();
  const int64_t size = ops::checkSearched(op, sequence, values, order);
  Tensor out = Tensor::empty(values.sizes(), DType::Long, values.device());
  if (out.numel() == 0) return out;
  if (sequence.numel() == 0) return out.fill(0);
  const int64_t width = sequence.dim() == 1 ? 0 : std::max<int64_t>(1, values.sizes().back());
  addFunction(op, fmt::format("sortedPositions<{}>", elementType(op, sequence)),
              {reads(sequence), reads(values), reads(order), writes(out)},
              {values.numel(), size, width, order.defined() ? order.numel() : 0, right ? 1 : 0},
              order.defined() ? fmt::format("{}: sorter index out of range", op) : "");
  return out;
}

Tensor histc(const Tensor& self, int64_t bins, const Scalar& min, const Scalar& max) {
  const char* op = "histc";
  WICK_CHECK(!min.isComplex() && !max.isComplex(),
             "torch.histc: expected real bounds, got complex ones");
  WICK_CHECK(bins > 0, "torch.histogram(): bins must be > 0, but got {} for dimension 0", bins);
  WICK_CHECK(min.toDouble() <= max.toDouble(), "torch.histc: max must be larger than min");
  const Tensor x = here(self).contiguous();
  const std::string type = elementType(op, x);
  WICK_CHECK(isFloating(x.dtype()), "\"histc\" not implemented for '{}'",
             scalarTypeName(x.dtype()));
  const double ends[] = {min.toDouble(), max.toDouble()};
  const Tensor range = here(Tensor::fromData(ends, DimVector{2}).to(x.dtype()));
  Tensor out = Tensor::empty(DimVector{bins}, x.dtype(), x.device());
  if (x.numel() == 0) return out.fill(0);
  addFunction(op, fmt::format("binCounts<{}>", type),
              {reads(x), reads(range), writes(out), writes(integers(bins))}, {x.numel(), bins},
              "torch.histc: the range is not finite");
  return out;
}

// ---- samples of grids ----

Tensor gridSample(const char* op, const Tensor& input, const Tensor& grid, int64_t interpolation,
                  int64_t padding, bool align, int64_t spatial) {
  ops::checkGrid(op, input, grid, interpolation, padding, spatial);
  const Tensor x = here(input).contiguous(), at = here(grid).contiguous();
  const Tensor out = Tensor::empty(ops::sizesOfSamples(x.sizes(), at), x.dtype(), x.device());
  if (out.numel() == 0) return out;
  if (!isFloating(x.dtype())) {
    throw NotAhead(fmt::format("{} of {} is not available ahead of time", op, shown(x)));
  }
  addFunction(
      op, fmt::format("sampleGrid<{}>", elementType(op, x)), {reads(x), reads(at), writes(out)},
      {x.size(0), x.size(1), out.numel() / (x.size(0) * x.size(1)), spatial == 3 ? x.size(2) : 1,
       x.size(-2), x.size(-1), spatial, interpolation, padding, align ? 1 : 0});
  return out;
}

const DeviceKernel kElementsKernels[] = {
    {"aten::histc", WICK_KERNEL(histc)},
    {"aten::grid_sampler", WICK_KERNEL(ops::GridSamplers<gridSample>::either)},
    {"aten::grid_sampler_2d", WICK_KERNEL(ops::GridSamplers<gridSample>::planes)},
    {"aten::grid_sampler_3d", WICK_KERNEL(ops::GridSamplers<gridSample>::volumes)},
    {"aten::cumsum", WICK_KERNEL(cumsum)},
    {"aten::cumprod", WICK_KERNEL(cumprod)},
    {"aten::logcumsumexp", WICK_KERNEL(logcumsumexp)},
    {"aten::cummax", WICK_KERNEL(running<true>)},
    {"aten::cummin", WICK_KERNEL(running<false>)},
    {"aten::sort.stable", WICK_KERNEL(sortStable)},
    {"aten::topk", WICK_KERNEL(topk)},
    {"aten::kthvalue", WICK_KERNEL(kthvalue)},
    {"aten::median", WICK_KERNEL(medianAll<false>)},
    {"aten::nanmedian", WICK_KERNEL(medianAll<true>)},
    {"aten::median.dim", WICK_KERNEL(medianDim<false>)},
    {"aten::nanmedian.dim", WICK_KERNEL(medianDim<true>)},
    {"aten::mode", WICK_KERNEL(mode)},
    {"wick::sorted_positions", WICK_KERNEL(sortedPositions)},
};
const RegisterDeviceKernels kElementsRegistered(kAhead, kElementsKernels);

}  // namespace

}  // namespace wick::aot
