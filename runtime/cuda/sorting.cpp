// Operators that order elements along a dimension, on CUDA devices.
#include <utility>

#include "core/device_backend.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/sort_series.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"

namespace wick::cuda {

namespace {

struct Pair {
  Tensor values, indices;
};

using Chosen = RowsInOrder::Chosen;
using Ties = RowsInOrder::Ties;

// Of the slices of a tensor along a dimension `kept` elements and their positions.
struct Choice {
  bool descending = false;
  Chosen chosen = Chosen::FromFirst;
  int64_t first = 0, kept = 1;
  bool reduced = false, keepdim = false;
  Ties ties = Ties::ByPosition;
};
Pair sorted(const char* op, const Tensor& self, int64_t dim, const Choice& choice) {
  WICK_CHECK(!isComplex(self.dtype()), "{}: no kernel for dtype {}", op, toString(self.dtype()));
  const Tensor t = self.dim() == 0 ? self.unsqueeze(0) : self;
  const Tensor moved = t.transpose(dim, t.dim() - 1).contiguous();
  DimVector sizes(moved.sizes());
  sizes.back() = choice.kept;
  const Tensor values = Tensor::empty(sizes, self.dtype(), self.device());
  const Tensor indices = Tensor::empty(sizes, DType::Long, self.device());
  if (moved.numel() > 0 && choice.kept > 0) {
    RowsInOrder rows;
    rows.type = self.dtype();
    rows.length = t.size(dim);
    rows.count = moved.numel() / rows.length;
    rows.descending = choice.descending;
    rows.chosen = choice.chosen;
    rows.first = choice.first;
    rows.kept = choice.kept;
    rows.ties = choice.ties;
    launchSeries(enter(self.device()), sortSeries(rows), {moved, values, indices});
  }
  const auto finish = [&](const Tensor& result) {
    Tensor back = result.transpose(dim, t.dim() - 1);
    if (self.dim() == 0 || (choice.reduced && !choice.keepdim)) back = back.select(dim, 0);
    return back.contiguous();
  };
  return {finish(values), finish(indices)};
}

using Results = std::tuple<Tensor, Tensor>;

Results sortStable(const Tensor& self, std::optional<bool>, int64_t dim, bool descending) {
  dim = wrapDim(dim, self.dim());
  Choice all;
  all.descending = descending;
  all.kept = self.dim() == 0 ? 1 : self.size(dim);
  Pair pair = sorted("sort", self, dim, all);
  return {std::move(pair.values), std::move(pair.indices)};
}
Results topk(const Tensor& self, int64_t k, int64_t dim, bool largest, bool) {
  dim = wrapDim(dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WICK_CHECK(k >= 0 && k <= length, "topk: selected index k out of range: {} of {}", k, length);
  WICK_CHECK(self.dtype() != DType::Bool, "topk: no kernel for dtype bool");
  Choice first;
  first.descending = largest;
  first.kept = k;
  first.ties = Ties::AsTop;
  Pair top = sorted("topk", self, dim, first);
  return {std::move(top.values), std::move(top.indices)};
}

// One element of each slice.
Results picked(const char* op, const Tensor& self, int64_t dim, bool keepdim, Choice choice) {
  WICK_CHECK(self.dim() == 0 || self.size(dim) > 0,
             "{}(): Expected reduction dim {} to have non-zero size.", op, dim);
  choice.reduced = true;
  choice.keepdim = keepdim;
  Pair one = sorted(op, self, dim, choice);
  return {std::move(one.values), std::move(one.indices)};
}

Results kthvalue(const Tensor& self, int64_t k, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  const int64_t length = self.dim() == 0 ? 1 : self.size(dim);
  WICK_CHECK(length == 0 || (k >= 1 && k <= length),
             "kthvalue(): selected number k out of range for dimension {}", dim);
  Choice one;
  one.first = k - 1;
  one.ties = Ties::AsOne;
  return picked("kthvalue", self, dim, keepdim, one);
}

template <bool kIgnoreNan>
Results medianDim(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  Choice middle;
  middle.chosen = kIgnoreNan ? Chosen::MedianOfNumbers : Chosen::Median;
  return picked("median", self, dim, keepdim, middle);
}
template <bool kIgnoreNan>
Tensor medianAll(const Tensor& self) {
  if (self.numel() == 0) throw NotOnDevice();
  return std::get<0>(medianDim<kIgnoreNan>(self.reshape(DimVector{-1}), 0, false));
}
Results mode(const Tensor& self, int64_t dim, bool keepdim) {
  dim = wrapDim(dim, self.dim());
  Choice longest;
  longest.chosen = Chosen::Mode;
  return picked("mode", self, dim, keepdim, longest);
}

const DeviceKernel kSortingKernels[] = {
    {"aten::sort.stable", WICK_KERNEL(sortStable)},
    {"aten::topk", WICK_KERNEL(topk)},
    {"aten::kthvalue", WICK_KERNEL(kthvalue)},
    {"aten::median.dim", WICK_KERNEL(medianDim<false>)},
    {"aten::nanmedian.dim", WICK_KERNEL(medianDim<true>)},
    {"aten::mode", WICK_KERNEL(mode)},
};
const DeviceKernel kSortingLast[] = {
    {"aten::median", WICK_KERNEL(medianAll<false>)},
    {"aten::nanmedian", WICK_KERNEL(medianAll<true>)},
};
const RegisterDeviceKernels kSortingRegistered(DeviceType::CUDA, kSortingKernels);
const RegisterDeviceKernels kSortingLastRegistered(DeviceType::CUDA, kSortingLast, TableRule::Last);

}  // namespace

}  // namespace wick::cuda
