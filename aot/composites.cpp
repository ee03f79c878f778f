// Operators on the device "ahead" that are made of others.
#include <algorithm>

#include "aot/device.h"
#include "aot/recording.h"
#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/device_composites.h"

namespace wick::aot {

namespace {

// ---- autocast: what a compiled model computes, it computes on the CPU ----

Tensor toFullPrecision(const Tensor& self, bool, bool cpu_enabled) {
  return cpu_enabled && isReducedFloat(self.dtype()) ? self.to(DType::Float) : self;
}
Tensor toReducedPrecision(const Tensor& self, bool, bool cpu_enabled, DType, DType cpu_dtype) {
  return cpu_enabled && self.dtype() == DType::Float ? self.to(cpu_dtype) : self;
}

bool equal(const Tensor& self, const Tensor& other) {
  WICK_CHECK(self.dtype() == other.dtype(), "Expected all tensors to have the dtype {}, got {}",
             toString(self.dtype()), toString(other.dtype()));
  if (!std::ranges::equal(self.sizes(), other.sizes())) return false;
  if (self.numel() == 0) return true;
  return Tensor(ops::all(ops::eq(here(self), here(other)))).item<bool>();
}

// ---- tensors put together ----

Tensor combinations(const Tensor& self, int64_t r, bool repeat) {
  WICK_CHECK(self.dim() == 1, "Expect a 1D vector, but got shape {}", formatInts(self.sizes()));
  // Which elements, by their numbers.
  Tensor numbers = Tensor::empty(self.sizes(), DType::Long);
  for (int64_t i = 0; i < self.numel(); ++i) numbers.data<int64_t>()[i] = i;
  const Tensor places = ops::combinations(numbers, r, repeat);
  if (places.numel() == 0) return Tensor::empty(places.sizes(), self.dtype(), self.device());
  const Tensor at = here(places.reshape(DimVector{-1}));
  return Tensor(ops::indexSelect(self, int64_t{0}, at)).reshape(places.sizes());
}
// Base coordinates, which are known, times matrices.
Tensor affineGrid(const Tensor& theta, const DimVector& size, bool align) {
  static const OperatorHandle kGrid{"aten::affine_grid_generator", ""};
  WICK_CHECK(size.size() == 4 || size.size() == 5,
             "AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
  const auto spatial = static_cast<int64_t>(size.size()) - 2;
  WICK_CHECK(theta.dim() == 3 && theta.size(0) == size[0] && theta.size(1) == spatial &&
                 theta.size(2) == spatial + 1,
             "affine_grid_generator: Expected a batch of {}x{} affine matrices of shape {}x{}x{}, "
             "but got {}",
             spatial, spatial + 1, size[0], spatial, spatial + 1, formatInts(theta.sizes()));
  // The engine's grid of the matrix that changes nothing.
  const Tensor identity = Tensor::zeros(DimVector{1, spatial, spatial + 1}, DType::Double);
  for (int64_t d = 0; d < spatial; ++d) identity.select(0, 0).select(0, d).select(0, d).fill(1);
  DimVector one = size;
  one[0] = 1;
  const Tensor grid = kGrid(identity, one, align);
  const int64_t points = grid.numel() / spatial;
  const Tensor base = Tensor::full(DimVector{1, points, spatial + 1}, 1, DType::Double);
  base.narrow(2, 0, spatial).copyFrom(grid.reshape(DimVector{1, points, spatial}));
  DimVector sizes{size[0]};
  for (int64_t d = 0; d < spatial; ++d) sizes.push_back(size[static_cast<size_t>(2 + d)]);
  sizes.push_back(spatial);
  return Tensor(ops::matmul(here(base.to(theta.dtype())), here(theta).transpose(1, 2))).view(sizes);
}

// Rows that indices name and that are longer than max_norm become that long.
Tensor embeddingRenorm(const Tensor& self, const Tensor& indices, double max_norm,
                       double norm_type) {
  static const OperatorHandle kFill{"aten::index_fill", "int_Scalar"};
  ops::checkRenorm(self, indices);
  if (indices.numel() == 0) return self.clone();
  const Tensor rows = here(self);
  const Tensor none = Tensor::zeros(DimVector{self.size(0)}, DType::Bool, Device{kAhead, -1});
  const Tensor named =
      kFill(none, int64_t{0}, here(indices).to(DType::Long).reshape(DimVector{-1}), Scalar(1));
  return ops::where(named.unsqueeze(1), ops::limitedRows(rows, max_norm, norm_type), rows);
}

const DeviceKernel kCompositesKernels[] = {
    {"aten::combinations", WICK_KERNEL(combinations)},
    {"aten::affine_grid_generator", WICK_KERNEL(affineGrid)},
    {"aten::embedding_renorm", WICK_KERNEL(embeddingRenorm)},
    {"aten::_autocast_to_full_precision", WICK_KERNEL(toFullPrecision)},
    {"aten::_autocast_to_reduced_precision", WICK_KERNEL(toReducedPrecision)},
};
const RegisterDeviceKernels kCompositesRegistered(kAhead, kCompositesKernels);
const ops::RegisterComposites composites(kAhead);

const DeviceKernel kCompositesMixed[] = {
    {"aten::equal", WICK_KERNEL(equal)},
};
const RegisterDeviceKernels kCompositesMixedRegistered(kAhead, kCompositesMixed, TableRule::Mixed);

}  // namespace

}  // namespace wick::aot
