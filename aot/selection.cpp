// What is selected by elements of tensors on the device "ahead": how much that is becomes known when the compiled model
// runs, and what follows is recorded for each size (Recording::size).
#include "aot/selection.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_set>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::aot {

namespace {

// The first elements of memory that was made for the largest size.
Tensor first(const Tensor& t, int64_t count) {
  return t.narrow(0, 0, count);
}

// ---- where elements are not zero ----

// Their positions, in the order of rows.
Tensor flatPositions(const char* op, const Tensor& self) {
  const Tensor flags = here(self).to(DType::Bool).contiguous();
  const int64_t count = flags.numel();
  if (count == 0) return integers(0);
  Recording& recording = Recording::current();
  // Often several tensors are indexed by one mask.
  if (const Tensor before = recording.findComputed("nonzero", flags); before.defined()) {
    return before;
  }
  const Tensor positions = integers(count), found = number();
  addFunction(op, "positionsWhere", {reads(flags), writes(positions), writes(found)}, {count});
  const Tensor selected = first(positions, recording.size(found, count, op));
  recording.noteComputed("nonzero", flags, selected);
  return selected;
}

}  // namespace

Tensor positionsOfTrue(const char* op, const Tensor& self) {
  const Tensor flat = flatPositions(op, self);
  const int64_t count = flat.numel(), dims = self.dim();
  if (dims == 1) return flat.unsqueeze(1);
  const Tensor out = Tensor::empty(DimVector{count, dims}, DType::Long, Device{kAhead, -1});
  if (out.numel() == 0) return out;
  std::vector<int64_t> numbers{count};
  numbers.insert(numbers.end(), self.sizes().begin(), self.sizes().end());
  addFunction(op, "coordinatesOf", {reads(flat), writes(out)}, std::move(numbers));
  return out;
}

namespace {

Tensor nonzero(const Tensor& self) {
  return positionsOfTrue("nonzero", self);
}
std::vector<Tensor> nonzeroEach(const Tensor& self) {
  const Tensor positions = positionsOfTrue("nonzero", self.dim() == 0 ? self.unsqueeze(0) : self);
  std::vector<Tensor> out;
  for (int64_t d = 0; d < positions.size(1); ++d) out.push_back(positions.select(1, d));
  return out;
}

Tensor maskedSelect(const Tensor& self, const Tensor& mask) {
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_select: expected BoolTensor or ByteTensor for mask");
  const DimVector shape = broadcastShapes(self.sizes(), mask.sizes());
  const Tensor at = flatPositions("masked_select", here(mask).expand(shape));
  return ops::indexSelect(here(self).expand(shape).reshape(DimVector{-1}), int64_t{0}, at);
}

// ---- distinct values ----

using Unique = std::tuple<Tensor, Tensor, Tensor>;

// Functions take no booleans and no reduced floats.
Tensor asNumbers(const Tensor& t) {
  const DType type = t.dtype() == DType::Bool    ? DType::Byte
                     : isReducedFloat(t.dtype()) ? DType::Float
                                                 : t.dtype();
  return here(t).to(type).contiguous();
}

// When a std::unordered_set of so many values takes more buckets: pairs of a number of values and one of buckets.
std::vector<int64_t> growthOfSet(int64_t values) {
  std::unordered_set<int64_t> growing;
  std::vector<int64_t> growth;
  for (int64_t i = 0; i < values; ++i) {
    growing.insert(i);
    const auto buckets = static_cast<int64_t>(growing.bucket_count());
    if (!growth.empty() && growth.back() == buckets) continue;
    growth.push_back(i + 1);
    growth.push_back(buckets);
  }
  return growth;
}

enum class Order { Sorted, AsSet, Neighbours };

Unique distinct(const char* op, Order order, const Tensor& self, bool inverse, bool counts) {
  const Tensor x = asNumbers(self);
  const int64_t count = x.numel();
  const Tensor values = Tensor::empty(DimVector{count}, x.dtype(), x.device());
  const Tensor places = integers(count), occurrences = integers(count), found = number();
  int64_t size = 0;
  if (count > 0) {
    const std::string type = elementType(op, x);
    if (order == Order::AsSet) {
      std::vector<int64_t> growth = growthOfSet(count);
      const int64_t buckets = growth.back();
      growth.push_back(0);  // never as many
      addFunction(op, fmt::format("distinctAsSet<{}>", type),
                  {reads(x), reads(here(Tensor::from(growth))), writes(values), writes(places),
                   writes(occurrences), writes(integers(6 * count + buckets)), writes(found)},
                  {count});
    } else {
      const char* const function = order == Order::Sorted ? "distinctValues" : "distinctNeighbours";
      addFunction(op, fmt::format("{}<{}>", function, type),
                  {reads(x), writes(values), writes(places), writes(occurrences),
                   writes(integers(2 * count)), writes(found)},
                  {count});
    }
    size = Recording::current().size(found, count, op);
  }
  return {first(values, size).to(self.dtype()), inverse ? places.view(self.sizes()) : integers(0),
          counts ? first(occurrences, size) : integers(0)};
}
Unique unique2(const Tensor& self, bool sorted, bool inverse, bool counts) {
  // Booleans are counted rather than hashed. The inverse is there when counts are asked for, too.
  const bool in_order = sorted || self.dtype() == DType::Bool;
  return distinct("unique", in_order ? Order::Sorted : Order::AsSet, self, inverse || counts,
                  counts);
}
std::tuple<Tensor, Tensor> unique1(const Tensor& self, bool sorted, bool inverse) {
  const Unique all = unique2(self, sorted, inverse, false);
  return {std::get<0>(all), std::get<1>(all)};
}

// Slices along a dimension, which are rows here.
Unique distinctSlices(const char* op, const Tensor& self, int64_t dim, bool neighbours) {
  WICK_CHECK(self.dim() > 0, "unique_dim: expected at least one dimension");
  const int64_t d = wrapDim(dim, self.dim()), count = self.size(d);
  const auto zeros = std::ranges::count(self.sizes(), int64_t{0});
  if (count == 0) {
    WICK_CHECK(zeros == 1,
               "Number of zero sized dimensions is more than one, so unique cannot be applied");
    return {here(self).clone(), integers(0), integers(0)};
  }
  WICK_CHECK(zeros == 0,
             "There are 0 sized dimensions, and they aren't selected, so unique cannot be applied");
  const Tensor rows = asNumbers(here(self).transpose(0, d));
  const Tensor firsts = integers(count), places = integers(count), occurrences = integers(count);
  const Tensor found = number();
  addFunction(op, fmt::format("distinctRows<{}, {}>", elementType(op, rows), neighbours),
              {reads(rows), writes(firsts), writes(places), writes(occurrences),
               writes(integers(count)), writes(found)},
              {count, rows.numel() / count});
  const int64_t size = Recording::current().size(found, count, op);
  const Tensor picked = ops::indexSelect(rows, int64_t{0}, first(firsts, size));
  return {picked.transpose(0, d).contiguous().to(self.dtype()), places, first(occurrences, size)};
}
Unique uniqueDim(const Tensor& self, int64_t dim, bool, bool, bool) {
  return distinctSlices("unique_dim", self, dim, false);
}
Unique uniqueDimConsecutive(const Tensor& self, int64_t dim, bool, bool) {
  return distinctSlices("unique_dim_consecutive", self, dim, true);
}
Unique uniqueConsecutive(const Tensor& self, bool inverse, bool counts,
                         std::optional<int64_t> dim) {
  const char* op = "unique_consecutive";
  if (dim && self.dim() > 0) return distinctSlices(op, self, *dim, true);
  return distinct(op, Order::Neighbours, self, inverse, counts);
}

// ---- boxes ----

Tensor nms(const Tensor& boxes, const Tensor& scores, double threshold) {
  const char* op = "nms";
  WICK_CHECK(boxes.dim() == 2 && boxes.size(1) == 4 && scores.dim() == 1 &&
                 boxes.size(0) == scores.size(0) && boxes.dtype() == scores.dtype(),
             "nms: expected boxes [count, 4] and scores [count] of one dtype, got {} and {}",
             boxes.describe(), scores.describe());
  const int64_t count = boxes.size(0);
  if (count == 0) return integers(0);
  const Tensor rows = here(boxes).contiguous();
  const Tensor order =
      ops::sortStable.all(here(scores), true, int64_t{0}, true)[1].toTensor().contiguous();
  const Tensor kept = integers(count), found = number();
  const Tensor most = here(Tensor::scalar(threshold));
  const Tensor gone = Tensor::empty(DimVector{count}, DType::Byte, rows.device());
  addFunction(op, fmt::format("bestBoxes<{}>", elementType(op, rows)),
              {reads(rows), reads(order), reads(most), writes(gone), writes(kept), writes(found)},
              {count});
  return first(kept, Recording::current().size(found, count, op));
}

const DeviceKernel kSelectionKernels[] = {
    {"aten::nonzero", WICK_KERNEL(nonzero)},
    {"aten::argwhere", WICK_KERNEL(nonzero)},
    {"aten::nonzero_numpy", WICK_KERNEL(nonzeroEach)},
    {"aten::where", WICK_KERNEL(nonzeroEach)},
    {"aten::_unique", WICK_KERNEL(unique1)},
    {"aten::_unique2", WICK_KERNEL(unique2)},
    {"aten::unique_dim", WICK_KERNEL(uniqueDim)},
    {"aten::unique_dim_consecutive", WICK_KERNEL(uniqueDimConsecutive)},
    {"aten::unique_consecutive", WICK_KERNEL(uniqueConsecutive)},
    {"torchvision::nms", WICK_KERNEL(nms)},
};
// Masks may lie on the CPU.
const DeviceKernel kSelectionMixed[] = {
    {"aten::masked_select", WICK_KERNEL(maskedSelect)},
};
const RegisterDeviceKernels kSelectionRegistered(kAhead, kSelectionKernels);
const RegisterDeviceKernels kSelectionMixedRegistered(kAhead, kSelectionMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::aot
