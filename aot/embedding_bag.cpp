// Bags of embedding rows on the device "ahead".
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/util.h"

namespace wick::aot {

namespace {

using Four = std::tuple<Tensor, Tensor, Tensor, Tensor>;
enum Mode : int64_t { kSum = 0, kMean = 1, kMax = 2 };

Tensor zeros(IntSpan sizes) {
  return Tensor::zeros(sizes, DType::Long, Device{kAhead, -1});
}

// As the engine's kernel has results and checks (runtime/ops/layers/embedding_bag.cpp).
Four bagsOf(const Tensor& weight, const Tensor& given_indices, const Tensor& given_offsets,
            const Tensor& scales, int64_t mode, bool include_last, int64_t padding) {
  const char* op = "embedding_bag";
  WICK_CHECK(weight.dim() == 2, "{}: expected a 2-D weight, got {}", op, weight.describe());
  WICK_CHECK(mode >= 0 && mode <= 2, "{}: unknown mode {}", op, mode);
  WICK_CHECK(!scales.defined() || mode == kSum,
             "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
             "for mode='sum'");
  for (const Tensor* t : {&given_indices, &given_offsets}) {
    WICK_CHECK(t->dtype() == DType::Long || t->dtype() == DType::Int,
               "{}: expected indices of int32 or int64, got {}", op, t->describe());
  }
  const Tensor indices = here(given_indices).to(DType::Long).contiguous(),
               offsets = here(given_offsets).to(DType::Long).contiguous();
  WICK_CHECK(indices.dim() == 1 && offsets.dim() == 1,
             "{}: input and offsets have to be 1D Tensors, got {} and {}", op, indices.describe(),
             offsets.describe());
  WICK_CHECK(!scales.defined() || scales.numel() == indices.numel(),
             "{}: expected per_sample_weights for {} indices, got {}", op, indices.numel(),
             scales.defined() ? scales.describe() : "");
  const int64_t bags = offsets.numel() - (include_last ? 1 : 0);
  WICK_CHECK(bags >= 0, "{}: include_last_offset: number of offset should be at least 1", op);
  const bool reduced = isReducedFloat(weight.dtype());
  const Tensor w = here(weight).to(reduced ? DType::Float : weight.dtype()).contiguous();
  const Tensor out = Tensor::empty(DimVector{bags, w.size(1)}, w.dtype(), w.device());
  Tensor bag_of = zeros(indices.sizes()), bag_size = zeros(DimVector{bags});
  Tensor max_indices = mode == kMax ? zeros(out.sizes()) : Tensor();
  if (bags > 0) {
    const Tensor each = scales.defined() ? here(scales).to(w.dtype()).contiguous() : scales;
    addFunction(
        op, fmt::format("bagsOfRows<{}>", elementType(op, w)),
        {reads(w), reads(indices), reads(offsets), reads(each), writes(out),
         max_indices.defined() && max_indices.numel() > 0 ? changes(max_indices) : reads(Tensor()),
         changes(bag_of), changes(bag_size)},
        {w.size(0), w.size(1), indices.numel(), bags, include_last ? 1 : 0, mode, padding},
        fmt::format("{}: an index or an offset is out of range", op));
  }
  const bool narrow = given_indices.dtype() == DType::Int && given_offsets.dtype() == DType::Int;
  const DType index_type = narrow ? DType::Int : DType::Long;
  if (mode == kSum) {
    bag_size = zeros(offsets.sizes());
    const bool rows = (weight.dtype() == DType::Float || weight.dtype() == DType::Half) &&
                      weight.strides()[1] == 1 && padding < 0;
    if (rows) bag_of = zeros(DimVector{0});
  }
  if (mode != kMax) max_indices = bag_size.clone();
  return {out.to(weight.dtype()), bag_of.to(index_type), bag_size.to(index_type),
          max_indices.to(index_type)};
}

Four embeddingBagInternal(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                          int64_t mode, bool, const Tensor& scales, bool include_last,
                          int64_t padding) {
  return bagsOf(weight, indices, offsets, scales, mode, include_last, padding);
}
Four embeddingBag(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                  int64_t mode, bool, const Tensor& scales, bool include_last) {
  return bagsOf(weight, indices, offsets, scales, mode, include_last, -1);
}
Four embeddingBagPadding(const Tensor& weight, const Tensor& indices, const Tensor& offsets, bool,
                         int64_t mode, bool, const Tensor& scales, bool include_last,
                         std::optional<int64_t> padding) {
  return bagsOf(weight, indices, offsets, scales, mode, include_last,
                paddedRow("embedding_bag", weight, padding));
}

const DeviceKernel kKernels[] = {
    {"aten::embedding_bag", WICK_KERNEL(embeddingBag)},
    {"aten::embedding_bag.padding_idx", WICK_KERNEL(embeddingBagPadding)},
    {"aten::_embedding_bag", WICK_KERNEL(embeddingBagInternal)},
    {"aten::_embedding_bag_forward_only", WICK_KERNEL(embeddingBagInternal)},
};
const RegisterDeviceKernels registered(kAhead, kKernels);

}  // namespace

}  // namespace wick::aot
