// Bags of embedding rows on the device "ahead".
#include <fmt/format.h>

#include "aot/device.h"
#include "aot/elements.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/layers/util.h"

namespace wick::aot {

namespace {

using namespace bags;

Tensor zeros(IntSpan sizes) {
  return Tensor::zeros(sizes, DType::Long, Device{kAhead, -1});
}

Four bagsOf(const Tensor& weight, const Tensor& given_indices, const Tensor& given_offsets,
            const Tensor& scales, Bags b) {
  const char* op = "embedding_bag";
  const int64_t bags = checkBags(op, weight, given_indices, given_offsets, scales, b);
  const Tensor indices = here(given_indices).to(DType::Long).contiguous(),
               offsets = here(given_offsets).to(DType::Long).contiguous();
  const bool reduced = isReducedFloat(weight.dtype());
  const Tensor w = here(weight).to(reduced ? DType::Float : weight.dtype()).contiguous();
  const Tensor out = Tensor::empty(DimVector{bags, w.size(1)}, w.dtype(), w.device());
  const Tensor bag_of = zeros(indices.sizes()), bag_size = zeros(DimVector{bags});
  const Tensor max_indices = b.mode == kMax ? zeros(out.sizes()) : Tensor();
  if (bags > 0) {
    const Tensor each = scales.defined() ? here(scales).to(w.dtype()).contiguous() : scales;
    addFunction(
        op, fmt::format("bagsOfRows<{}>", elementType(op, w)),
        {reads(w), reads(indices), reads(offsets), reads(each), writes(out),
         max_indices.defined() && max_indices.numel() > 0 ? changes(max_indices) : reads(Tensor()),
         changes(bag_of), changes(bag_size)},
        {w.size(0), w.size(1), indices.numel(), bags, b.include_last ? 1 : 0, b.mode, b.padding},
        fmt::format("{}: an index or an offset is out of range", op));
  }
  return resultsOf(weight, given_indices, given_offsets, b, out, bag_of, bag_size, max_indices);
}

const DeviceKernel kEmbeddingBagKernels[] = {
    {"aten::embedding_bag", WICK_KERNEL(Operators<bagsOf>::plain)},
    {"aten::embedding_bag.padding_idx", WICK_KERNEL(Operators<bagsOf>::padded)},
    {"aten::_embedding_bag", WICK_KERNEL(Operators<bagsOf>::internal)},
    {"aten::_embedding_bag_forward_only", WICK_KERNEL(Operators<bagsOf>::internal)},
};
const RegisterDeviceKernels kEmbeddingBagRegistered(kAhead, kEmbeddingBagKernels);

}  // namespace

}  // namespace wick::aot
