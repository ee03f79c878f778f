// What is selected by elements of tensors on the device "ahead": how much that is becomes known when the compiled model
// runs, and what follows is recorded for each size (Recording::size).
#include "aot/selection.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"

namespace wick::aot {

namespace {

Tensor integers(int64_t count) {
  return Tensor::empty(DimVector{count}, DType::Long, Device{kAhead, -1});
}
// An int64 that a function writes.
Tensor number() {
  return Tensor::empty(DimVector{}, DType::Long, Device{kAhead, -1});
}
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
  static const OperatorHandle kSelect("aten::index_select", "");
  WICK_CHECK(mask.dtype() == DType::Bool || mask.dtype() == DType::Byte,
             "masked_select: expected BoolTensor or ByteTensor for mask");
  const DimVector shape = broadcastShapes(self.sizes(), mask.sizes());
  const Tensor at = flatPositions("masked_select", here(mask).expand(shape));
  return kSelect(here(self).expand(shape).reshape(DimVector{-1}), int64_t{0}, at);
}

// ---- distinct values ----

using Unique = std::tuple<Tensor, Tensor, Tensor>;

// Functions take no booleans.
Tensor asNumbers(const Tensor& t) {
  return (t.dtype() == DType::Bool ? here(t).to(DType::Byte) : here(t)).contiguous();
}

Unique distinct(const char* op, const char* function, const Tensor& self, bool inverse,
                bool counts) {
  const Tensor x = asNumbers(self);
  const int64_t count = x.numel();
  const Tensor values = Tensor::empty(DimVector{count}, x.dtype(), x.device());
  const Tensor places = integers(count), occurrences = integers(count), found = number();
  int64_t size = 0;
  if (count > 0) {
    addFunction(op, fmt::format("{}<{}>", function, elementType(op, x)),
                {reads(x), writes(values), writes(places), writes(occurrences),
                 writes(integers(2 * count)), writes(found)},
                {count});
    size = Recording::current().size(found, count, op);
  }
  return {first(values, size).to(self.dtype()), inverse ? places.view(self.sizes()) : integers(0),
          counts ? first(occurrences, size) : integers(0)};
}
Unique unique2(const Tensor& self, bool sorted, bool inverse, bool counts) {
  if (!sorted && self.dtype() != DType::Bool) {
    throw NotAhead("unique: values that are not sorted are not available ahead of time");
  }
  // The inverse is there when counts are asked for, too.
  return distinct("unique", "distinctValues", self, inverse || counts, counts);
}
std::tuple<Tensor, Tensor> unique1(const Tensor& self, bool sorted, bool inverse) {
  const Unique all = unique2(self, sorted, inverse, false);
  return {std::get<0>(all), std::get<1>(all)};
}
Unique uniqueConsecutive(const Tensor& self, bool inverse, bool counts,
                         std::optional<int64_t> dim) {
  if (dim && self.dim() > 0) {
    throw NotAhead("unique_consecutive: slices are not available ahead of time");
  }
  return distinct("unique_consecutive", "distinctNeighbours", self, inverse, counts);
}

// ---- boxes ----

Tensor nms(const Tensor& boxes, const Tensor& scores, double threshold) {
  static const OperatorHandle kSort{"aten::sort", "stable"};
  const char* op = "nms";
  WICK_CHECK(boxes.dim() == 2 && boxes.size(1) == 4 && scores.dim() == 1 &&
                 boxes.size(0) == scores.size(0) && boxes.dtype() == scores.dtype(),
             "nms: expected boxes [count, 4] and scores [count] of one dtype, got {} and {}",
             boxes.describe(), scores.describe());
  const int64_t count = boxes.size(0);
  if (count == 0) return integers(0);
  const Tensor rows = here(boxes).contiguous();
  const Tensor order = kSort.all(here(scores), true, int64_t{0}, true)[1].toTensor().contiguous();
  const Tensor kept = integers(count), found = number();
  const Tensor most = here(Tensor::scalar(threshold));
  const Tensor gone = Tensor::empty(DimVector{count}, DType::Byte, rows.device());
  addFunction(op, fmt::format("bestBoxes<{}>", elementType(op, rows)),
              {reads(rows), reads(order), reads(most), writes(gone), writes(kept), writes(found)},
              {count});
  return first(kept, Recording::current().size(found, count, op));
}

const DeviceKernel kKernels[] = {
    {"aten::nonzero", WICK_KERNEL(nonzero)},
    {"aten::argwhere", WICK_KERNEL(nonzero)},
    {"aten::nonzero_numpy", WICK_KERNEL(nonzeroEach)},
    {"aten::where", WICK_KERNEL(nonzeroEach)},
    {"aten::_unique", WICK_KERNEL(unique1)},
    {"aten::_unique2", WICK_KERNEL(unique2)},
    {"aten::unique_consecutive", WICK_KERNEL(uniqueConsecutive)},
    {"torchvision::nms", WICK_KERNEL(nms)},
};
// Masks may lie on the CPU.
const DeviceKernel kMixed[] = {
    {"aten::masked_select", WICK_KERNEL(maskedSelect)},
};
const RegisterDeviceKernels registered(kAhead, kKernels);
const RegisterDeviceKernels mixed(kAhead, kMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::aot
