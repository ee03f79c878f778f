#include "runtime/ops/indexing/device_indexing.h"

#include <algorithm>
#include <optional>
#include <string>

#include "core/error.h"
#include "ir/device_kernels.h"
#include "runtime/ops/boxing.h"
#include "runtime/ops/common.h"
#include "runtime/ops/common_calls.h"
#include "runtime/ops/layers/util.h"

namespace wick::ops {

namespace {

// Devices are added before main(), so the list is made on first use.
std::vector<IndexDevice>& devices() {
  static auto& all = *new std::vector<IndexDevice>;
  return all;
}

// The device of a call, which is that of the first of its tensors that is not on the CPU.
class On {
 public:
  template <class... Arguments>
  explicit On(const Arguments&... arguments) {
    (look(arguments), ...);
    const auto found =
        std::ranges::find(devices(), device_.type, [](const IndexDevice& d) { return d.type; });
    WICK_ASSERT(found != devices().end(), "no tensor is on a device with index operators");
    does_ = &*found;
  }

  Tensor here(const Tensor& t) const { return does_->here(t, device_); }
  Tensor empty(IntSpan sizes, DType dtype) const { return Tensor::empty(sizes, dtype, device_); }
  Tensor number(const Scalar& value, DType dtype) const {
    return does_->number(value, dtype, device_);
  }
  std::vector<Tensor> positionsOfTrue(const char* op, const Tensor& mask) const {
    return does_->positionsOfTrue(op, mask, device_);
  }
  void checkIndexed(const Tensor& self) const {
    WICK_CHECK(does_->takes_cpu || !self.device().isCpu(),
               "indices should be either on cpu or on the same device as the indexed tensor ({})",
               self.device().str());
  }

  void read(const char* op, const Reach& reach, const Tensor& out) const {
    if (out.numel() > 0) does_->read(op, reach, out);
  }
  void write(const char* op, const Reach& reach, const Tensor& values) const {
    if (checkedNumel(reach.sizes) > 0) does_->write(op, reach, here(values).expand(reach.sizes));
  }
  void reduce(const char* op, const Reach& reach, const Tensor& values, Reduction how,
              bool include_self = true) const {
    if (checkedNumel(reach.sizes) == 0) return;
    does_->reduce(op, reach, here(values).expand(reach.sizes), how, include_self);
  }

 private:
  void look(const Tensor& t) {
    if (device_.isCpu() && t.defined()) device_ = t.device();
  }
  void look(const std::vector<Tensor>& tensors) {
    for (const Tensor& t : tensors) look(t);
  }

  Device device_;
  const IndexDevice* does_ = nullptr;
};

// ---- index and index_put ----

// One entry for each dimension. Masks become the positions where they are true.
std::vector<Tensor> withoutMasks(const char* op, const On& on, Tensor& self,
                                 const std::vector<Tensor>& given) {
  std::vector<Tensor> indices;
  for (Tensor t : given) {
    if (!t.defined()) {
      indices.emplace_back();
      continue;
    }
    if (!isMask(t)) {
      WICK_CHECK(t.dtype() == DType::Long || t.dtype() == DType::Int,
                 "tensors used as indices must be long, int, byte or bool tensors");
      indices.push_back(on.here(t));
      continue;
    }
    const auto first = static_cast<int64_t>(indices.size());
    // One without dimensions stands for a new dimension of size one, selected or not.
    if (t.dim() == 0) {
      WICK_CHECK(first <= self.dim(), "too many indices for tensor of dimension {}", self.dim());
      self = self.unsqueeze(first);
      t = t.reshape(DimVector{1});
    }
    for (int64_t d = 0; d < t.dim(); ++d) {
      WICK_CHECK(first + d < self.dim(), "too many indices for tensor of dimension {}", self.dim());
      WICK_CHECK(t.size(d) == self.size(first + d),
                 "The shape of the mask {} at index {} does not match the shape of the indexed "
                 "tensor {} at index {}",
                 formatInts(t.sizes()), d, formatInts(self.sizes()), first + d);
    }
    for (const Tensor& positions : on.positionsOfTrue(op, t)) indices.push_back(positions);
  }
  WICK_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(),
             "too many indices for tensor of dimension {} (got {})", self.dim(), indices.size());
  indices.resize(static_cast<size_t>(self.dim()));
  return indices;
}

Reach reachOf(const char* op, const On& on, const Tensor& self, const std::vector<Tensor>& given) {
  Reach reach;
  reach.self = on.here(self);
  reach.from_end = true;
  const std::vector<Tensor> indices = withoutMasks(op, on, reach.self, given);
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
  const On on(self, indices);
  on.checkIndexed(self);
  const Reach reach = reachOf("index", on, self, indices);
  const Tensor out = on.empty(reach.sizes, self.dtype());
  on.read("index", reach, out);
  return out;
}

void putInto(const char* op, const On& on, const Tensor& self, const std::vector<Tensor>& indices,
             const Tensor& given, bool accumulate) {
  on.checkIndexed(self);
  Tensor values = on.here(given);
  const Tensor mask = accumulate ? Tensor() : filledMask(self, indices, values);
  if (mask.defined()) {
    const Tensor here = on.here(mask).to(DType::Bool);
    self.copyFrom(where(here, values.reshape(DimVector{}).to(self.dtype()), self));
    return;
  }
  WICK_CHECK(self.dtype() == values.dtype(),
             "Index put requires the source and destination dtypes match, got {} for the "
             "destination and {} for the source.",
             scalarTypeName(self.dtype()), scalarTypeName(values.dtype()));
  const Reach reach = reachOf(op, on, self, indices);
  while (values.dim() > static_cast<int64_t>(reach.sizes.size()) && values.sizes()[0] == 1) {
    values = values.select(0, 0);
  }
  if (accumulate) {
    on.reduce(op, reach, values, Reduction::Sum);
  } else {
    on.write(op, reach, values);
  }
}
Tensor indexPut(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                bool accumulate) {
  const On on(self, indices, values);
  const Tensor out = on.here(self).clone();
  putInto("index_put", on, out, indices, values, accumulate);
  return out;
}
Tensor indexPutInto(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate) {
  putInto("index_put_", On(self, indices, values), self, indices, values, accumulate);
  return self;
}
Tensor indexPutImpl(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
                    bool accumulate, bool) {
  return indexPut(self, indices, values, accumulate);
}

// ---- along one dimension ----

Reach along(const char* op, const On& on, const Tensor& self, int64_t dim, const Tensor& given,
            bool from_end = false) {
  const Tensor t = atLeast1d(on.here(self)), index = atLeast1d(on.here(given));
  dim = wrapDim(dim, t.dim());
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: Expected dtype int32/int64 for index", op);
  WICK_CHECK(index.dim() == t.dim(),
             "{}: Index tensor must have the same number of dimensions as self tensor", op);
  for (int64_t d = 0; d < t.dim(); ++d) {
    WICK_CHECK(d == dim || index.size(d) <= t.size(d),
               "{}: Expected index {} to be smaller than self {} apart from dimension {}", op,
               formatInts(index.sizes()), formatInts(t.sizes()), dim);
  }
  DimVector steps(t.strides());
  steps[static_cast<size_t>(dim)] = 0;
  return {t, DimVector(index.sizes()), steps, {{index, t.size(dim), t.stride(dim)}}, from_end};
}
// The part of a source that an index covers.
Tensor covered(const char* op, const Tensor& source, const Reach& reach) {
  Tensor from = atLeast1d(source);
  WICK_CHECK(from.dtype() == reach.self.dtype(), "{}: Expected self.dtype to be equal to src.dtype",
             op);
  WICK_CHECK(from.dim() == static_cast<int64_t>(reach.sizes.size()),
             "{}: Index tensor must have the same number of dimensions as src tensor", op);
  for (int64_t d = 0; d < from.dim(); ++d) {
    const int64_t size = reach.sizes[static_cast<size_t>(d)];
    WICK_CHECK(size <= from.size(d), "{}: Expected index {} to be smaller size than src {}", op,
               formatInts(reach.sizes), formatInts(source.sizes()));
    from = from.narrow(d, 0, size);
  }
  return from;
}

// What lies along `dim` where the index says, of its sizes.
Tensor readAlong(const char* op, const Tensor& self, int64_t dim, const Tensor& index,
                 bool from_end) {
  const On on(self, index);
  const Tensor out = on.empty(index.sizes(), self.dtype());
  if (out.numel() > 0) on.read(op, along(op, on, self, dim, index, from_end), atLeast1d(out));
  return out;
}
Tensor gather(const Tensor& self, int64_t dim, const Tensor& index, bool) {
  return readAlong("gather", self, dim, index, false);
}
Tensor scatterSource(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  if (index.numel() == 0) return out;
  const Reach reach = along("scatter", on, out, dim, index);
  on.write("scatter", reach, covered("scatter", on.here(source), reach));
  return out;
}
Tensor scatterValue(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  const On on(self, index);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous),
               number = on.number(value, self.dtype());
  if (index.numel() > 0) on.write("scatter", along("scatter", on, out, dim, index), number);
  return out;
}
Tensor scatterWith(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   Reduction how, bool include_self) {
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  if (index.numel() == 0) return out;
  const Reach reach = along("scatter", on, out, dim, index);
  on.reduce("scatter", reach, covered("scatter", on.here(source), reach), how, include_self);
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
  const Tensor number = On(self, index).number(value, self.dtype());
  return scatterMode(self, dim, index, number.expand(index.sizes()), reduce);
}

// ---- by a vector of indices, which counts for all elements of the other dimensions ----

Reach alongVector(const char* op, const On& on, const Tensor& self, int64_t dim,
                  const Tensor& index, bool from_end = false) {
  const Tensor t = atLeast1d(self);
  dim = wrapDim(dim, t.dim());
  WICK_CHECK(index.dim() <= 1, "{}: Index is supposed to be a vector, got {}", op,
             index.describe());
  DimVector sizes(t.sizes()), shape(static_cast<size_t>(t.dim()), 1);
  sizes[static_cast<size_t>(dim)] = shape[static_cast<size_t>(dim)] = index.numel();
  return along(op, on, t, dim, on.here(index).reshape(shape).expand(sizes), from_end);
}
Tensor sourceOf(const char* op, const On& on, const Tensor& source, const Reach& reach) {
  const Tensor from = atLeast1d(on.here(source));
  WICK_CHECK(
      std::ranges::equal(from.sizes(), IntSpan(reach.sizes)) && from.dtype() == reach.self.dtype(),
      "{}: the source {} does not fit the index, which wants {} of {}", op, source.describe(),
      formatInts(reach.sizes), toString(reach.self.dtype()));
  return from;
}

Tensor indexSelect(const Tensor& self, int64_t dim, const Tensor& index) {
  const On on(self, index);
  const Reach reach = alongVector("index_select", on, self, dim, index);
  const Tensor out = on.empty(reach.sizes, self.dtype());
  on.read("index_select", reach, out);
  return self.dim() == 0 ? out.reshape(DimVector{}) : out;
}
Tensor indexAdd(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                const Scalar& alpha) {
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  const Reach reach = alongVector("index_add", on, out, dim, index);
  const Tensor from = sourceOf("index_add", on, source, reach);
  const bool plain = !alpha.isComplex() && alpha.toDouble() == 1;
  // The factor is a number of the tensor's dtype: of integers its fraction is cut off.
  on.reduce("index_add", reach, plain ? from : ops::mul(from, on.number(alpha, from.dtype())),
            Reduction::Sum);
  return out;
}
Tensor indexCopy(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source) {
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  const Reach reach = alongVector("index_copy", on, out, dim, index);
  on.write("index_copy", reach, sourceOf("index_copy", on, source, reach));
  return out;
}
Tensor indexFillTensor(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& value) {
  WICK_CHECK(value.dim() == 0,
             "index_fill_ only supports a 0-dimensional value tensor, but got tensor with {} "
             "dimension(s).",
             value.dim());
  const On on(self, index, value);
  const Tensor out = on.here(self).clone();
  on.write("index_fill", alongVector("index_fill", on, out, dim, index, true),
           on.here(value).to(self.dtype()));
  return out;
}
Tensor indexFill(const Tensor& self, int64_t dim, const Tensor& index, const Scalar& value) {
  return indexFillTensor(self, dim, index, On(self, index).number(value, self.dtype()));
}
Tensor indexReduce(const Tensor& self, int64_t dim, const Tensor& index, const Tensor& source,
                   const std::string& reduce, bool include_self) {
  WICK_CHECK(reduce == "prod" || reduce == "mean" || reduce == "amax" || reduce == "amin",
             "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {}.",
             reduce);
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  const Reach reach = alongVector("index_reduce", on, out, dim, index);
  on.reduce("index_reduce", reach, sourceOf("index_reduce", on, source, reach),
            *reductionNamed(reduce), include_self);
  return out;
}

// ---- of a flat tensor ----

Tensor flat(const Tensor& t) {
  return t.contiguous().view(DimVector{-1});
}
Tensor take(const Tensor& self, const Tensor& index) {
  WICK_CHECK(index.dtype() == DType::Long, "take(): Expected a long tensor for index, but got {}",
             scalarTypeName(index.dtype()));
  WICK_CHECK(self.numel() > 0 || index.numel() == 0, "take(): tried to take from an empty tensor");
  const On on(self, index);
  return readAlong("take", flat(on.here(self)), 0, flat(on.here(index)), true).view(index.sizes());
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
  const On on(self, index, source);
  const Tensor out = on.here(self).clone(MemoryFormat::Contiguous);
  if (index.numel() == 0) return out;
  const Reach reach = along("put", on, out.view(DimVector{-1}), 0, flat(on.here(index)), true);
  const Tensor values = flat(on.here(source));
  if (accumulate) {
    on.reduce("put", reach, values, Reduction::Sum);
  } else {
    on.write("put", reach, values);
  }
  return out;
}
Tensor takeAlongDim(const Tensor& self, const Tensor& indices, std::optional<int64_t> dim) {
  const char* op = "take_along_dim";
  const On on(self, indices);
  if (!dim) return readAlong(op, flat(on.here(self)), 0, flat(on.here(indices)), true);
  const int64_t d = wrapDim(*dim, self.dim());
  WICK_CHECK(self.dim() == indices.dim(),
             "torch.take_along_dim(): input and indices should have the same number of dimensions, "
             "but got {} dimensions for input, and {} dimensions for indices",
             self.dim(), indices.dim());
  if (self.dim() == 0) return readAlong(op, self, d, indices, true);
  // All dimensions broadcast but the one that is indexed.
  DimVector a(self.sizes()), b(indices.sizes());
  const auto at = static_cast<size_t>(d);
  a[at] = b[at] = 1;
  DimVector from = broadcastShapes(a, b), to = from;
  from[at] = self.size(d);
  to[at] = indices.size(d);
  return readAlong(op, on.here(self).expand(from), d, on.here(indices).expand(to), true);
}

// ---- of planes, which the last `n` dimensions are ----

Tensor asRows(const Tensor& t, int64_t n) {
  int64_t pixels = 1;
  for (int64_t d = t.dim() - n; d < t.dim(); ++d) pixels *= t.size(d);
  return t.reshape(DimVector{t.numel() / std::max<int64_t>(1, pixels), pixels});
}
void checkPlanes(const char* op, const Tensor& t, int64_t n) {
  WICK_CHECK(n >= 0 && n <= t.dim(), "{}: expected {} or more dimensions, got {}", op, n,
             t.describe());
}
// As autograd/kernels_nn_pooling.cpp has them.
Tensor planeScatter(const Tensor& values, const Tensor& indices, const DimVector& sizes,
                    int64_t n) {
  const Tensor out = Tensor::zeros(sizes, values.dtype(), values.device());
  for (const Tensor* t : {&values, &indices, &out}) checkPlanes("plane_scatter", *t, n);
  if (values.numel() == 0 || out.numel() == 0) return out;
  const On on(values, indices);
  const Reach reach = along("plane_scatter", on, asRows(out, n), 1, asRows(indices, n));
  on.reduce("plane_scatter", reach, covered("plane_scatter", asRows(values, n), reach),
            Reduction::Sum);
  return out;
}
Tensor planeGather(const Tensor& self, const Tensor& indices, int64_t n) {
  for (const Tensor* t : {&self, &indices}) checkPlanes("plane_gather", *t, n);
  if (indices.numel() == 0) return Tensor::empty(indices.sizes(), self.dtype(), self.device());
  return readAlong("plane_gather", asRows(self, n), 1, asRows(indices, n), false)
      .view(indices.sizes());
}
// Indices say where in its plane each element goes.
Tensor unpooled(const char* op, const Tensor& self, const Tensor& indices, const DimVector& size,
                size_t n) {
  const DimVector sizes = unpooledSizes(op, self, indices, expandInts(op, "output_size", size, n));
  const Tensor out = Tensor::zeros(sizes, self.dtype(), self.device());
  if (self.numel() == 0) return out;
  const On on(self, indices);
  const auto planes = static_cast<int64_t>(n);
  on.write(op, along(op, on, asRows(out, planes), 1, asRows(on.here(indices), planes)),
           asRows(self, planes));
  return out;
}
Tensor maxUnpool2d(const Tensor& self, const Tensor& indices, const DimVector& size) {
  return unpooled("max_unpool2d", self, indices, size, 2);
}
Tensor maxUnpool3d(const Tensor& self, const Tensor& indices, const DimVector& size,
                   const DimVector& stride, const DimVector& padding) {
  checkUnpooledWindows(stride, padding);
  return unpooled("max_unpool3d", self, indices, size, 3);
}

constexpr DeviceKernel kDeviceIndexingKernels[] = {
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
    {"wick::plane_scatter", WICK_KERNEL(planeScatter)},
    {"wick::plane_gather", WICK_KERNEL(planeGather)},
    {"aten::max_unpool2d", WICK_KERNEL(maxUnpool2d)},
    {"aten::max_unpool3d", WICK_KERNEL(maxUnpool3d)},
};
// Indices may lie on the CPU, as may values of no dimensions.
constexpr DeviceKernel kDeviceIndexingMixed[] = {
    {"aten::index.Tensor", WICK_KERNEL(index)},
    {"aten::index_put", WICK_KERNEL(indexPut)},
    {"aten::index_put_", WICK_KERNEL(indexPutInto)},
    {"aten::index_fill.int_Tensor", WICK_KERNEL(indexFillTensor)},
};
// Where there is no loop form.
constexpr DeviceKernel kDeviceIndexingLast[] = {
    {"aten::gather", WICK_KERNEL(gather)},
    {"aten::index_select", WICK_KERNEL(indexSelect)},
};

}  // namespace

RegisterIndexDevice::RegisterIndexDevice(const IndexDevice& device) {
  devices().push_back(device);
  RegisterDeviceKernels(device.type, kDeviceIndexingKernels);
  RegisterDeviceKernels(device.type, kDeviceIndexingMixed, TableRule::Mixed);
  RegisterDeviceKernels(device.type, kDeviceIndexingLast, TableRule::Last);
}

Tensor elementsAt(const char* op, const Tensor& flat, const Tensor& positions) {
  return readAlong(op, flat, 0, positions, false);
}
void writeElementsAt(const char* op, const Tensor& flat, const Tensor& positions,
                     const Tensor& values) {
  const On on(flat);
  on.write(op, along(op, on, flat, 0, positions), values);
}

}  // namespace wick::ops
