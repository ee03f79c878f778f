// Advanced indexing: tensors that index several dimensions at once, as x[i, :, mask] does in
// Python.
//
// The index tensors are made into integers (a mask becomes the positions of its true elements) and
// broadcast against each other. When the indexed dimensions are neighbours, the broadcast
// dimensions stand in their place in the result; otherwise they come first. The source is then
// addressed by one table of offsets for each dimension left alone and a single table for all
// indexed ones, which is what the remap kernels take.
#include "core/convert.h"
#include "core/dtype_dispatch.h"
#include "core/wrapped.h"
#include "runtime/kernels/remap.h"
#include "runtime/ops/call.h"
#include "runtime/ops/common.h"
#include "runtime/ops/indexing/device_indexing.h"
#include "runtime/ops/indexing/index_errors.h"
#include "runtime/ops/shapes/shape_rules.h"

namespace wick::ops {

namespace {

struct IndexPlan {
  std::vector<OffsetTable> tables;
  DimVector result_sizes;
};

// One entry a dimension of `self`; undefined where the dimension is left alone.
std::vector<Tensor> expandMasks(const Tensor& self, const std::vector<Tensor>& indices) {
  std::vector<Tensor> out;
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor& index = indices[i];
    if (!index.defined()) {
      out.emplace_back();
      continue;
    }
    if (index.dtype() == DType::Long || index.dtype() == DType::Int) {
      out.push_back(index.to(DType::Long));
      continue;
    }
    WICK_CHECK(isMask(index), "tensors used as indices must be long, int, byte or bool tensors");
    for (int64_t d = 0; d < index.dim(); ++d) {
      int64_t at = static_cast<int64_t>(out.size()) + d;
      WICK_CHECK(at < self.dim(), "too many indices for tensor of dimension {}", self.dim());
      WICK_CHECK(index.sizes()[d] == self.sizes()[at],
                 "The shape of the mask {} at index {} does not match the shape of the indexed "
                 "tensor {} at index {}",
                 formatInts(index.sizes()), d, formatInts(self.sizes()), at);
    }
    Tensor positions = nonzeroPositions(index);
    for (int64_t d = 0; d < index.dim(); ++d) out.push_back(positions.select(1, d));
  }
  return out;
}

IndexPlan planIndex(const Tensor& source, const std::vector<Tensor>& given) {
  Tensor self = source;
  std::vector<Tensor> indices;
  // A zero-dim mask stands for a new dimension of size one, selected or not.
  for (const Tensor& index : given) {
    bool zero_dim_mask = index.defined() && index.dim() == 0 && isMask(index);
    if (!zero_dim_mask) {
      indices.push_back(index);
      continue;
    }
    size_t at = 0;
    for (const Tensor& earlier : indices) {
      bool mask = earlier.defined() && isMask(earlier);
      at += mask ? static_cast<size_t>(earlier.dim()) : 1;
    }
    WICK_CHECK(static_cast<int64_t>(at) <= self.dim(),
               "too many indices for tensor of dimension {}", source.dim());
    self = self.unsqueeze(static_cast<int64_t>(at));
    indices.push_back(index.reshape(DimVector{1}));
  }
  indices = expandMasks(self, indices);
  WICK_CHECK(static_cast<int64_t>(indices.size()) <= self.dim(),
             "too many indices for tensor of dimension {} (got {})", self.dim(), indices.size());
  indices.resize(static_cast<size_t>(self.dim()));

  DimVector shape;
  int64_t first = -1;
  int64_t last = -1;
  int64_t count = 0;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indices[d].defined()) continue;
    if (first < 0) first = d;
    last = d;
    ++count;
    bool fits = true;
    for (int64_t k = 1;
         k <= std::min<int64_t>(static_cast<int64_t>(shape.size()), indices[d].dim()); ++k) {
      int64_t a = shape[shape.size() - k];
      int64_t b = indices[d].sizes()[indices[d].dim() - k];
      fits &= a == b || a == 1 || b == 1;
    }
    if (!fits) {
      std::string shapes;
      for (const Tensor& t : indices) {
        if (t.defined()) shapes += (shapes.empty() ? "" : ", ") + formatInts(t.sizes());
      }
      throwRuntimeError(
          "shape mismatch: indexing tensors could not be broadcast together with shapes {}",
          shapes);
    }
    shape = broadcastShapes(shape, indices[d].sizes());
  }
  OffsetTable picked(static_cast<size_t>(checkedNumel(shape)), 0);
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (!indices[d].defined()) continue;
    Tensor index = indices[d].expand(shape).contiguous();
    const int64_t* data = index.data<int64_t>();
    int64_t n = self.sizes()[d];
    int64_t stride = self.strides()[d];
    for (size_t i = 0; i < picked.size(); ++i) {
      if (data[i] < -n || data[i] >= n) [[unlikely]] {
        throwIndexError("index {} is out of bounds for dimension {} with size {}", data[i], d, n);
      }
      picked[i] += (data[i] < 0 ? data[i] + n : data[i]) * stride;
    }
  }

  IndexPlan plan;
  bool adjacent = count > 0 && last - first + 1 == count;
  auto place = [&] {
    for (int64_t s : shape) plan.result_sizes.push_back(s);
    plan.tables.push_back(std::move(picked));
  };
  if (count > 0 && !adjacent) place();
  // Neighbouring dimensions that are one evenly strided run share a table.
  int64_t run_end = -1;
  for (int64_t d = 0; d < self.dim(); ++d) {
    if (indices[d].defined()) {
      if (adjacent && d == first) place();
      run_end = -1;
      continue;
    }
    plan.result_sizes.push_back(self.sizes()[d]);
    bool continues =
        run_end == d - 1 && d > 0 && self.strides()[d - 1] == self.sizes()[d] * self.strides()[d];
    if (continues && run_end >= 0) {
      OffsetTable& table = plan.tables.back();
      int64_t n = static_cast<int64_t>(table.size()) * self.sizes()[d];
      table.resize(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) table[i] = i * self.strides()[d];
    } else {
      plan.tables.push_back(offsetsAlong(self, d));
    }
    run_end = d;
  }
  return plan;
}

Tensor index(const Tensor& self, std::vector<Tensor> indices, Out out) {
  IndexPlan plan = planIndex(self, indices);
  Tensor result = resultTensor(out, plan.result_sizes, self.dtype(), {&self});
  remap(result.rawData(), self.rawData(), plan.tables, self.itemSize());
  return result;
}

}  // namespace

Tensor filledMask(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values) {
  if (values.numel() != 1) return {};
  Tensor mask;
  int64_t before = 0;
  for (const Tensor& index : indices) {
    if (!index.defined()) {
      before += mask.defined() ? 0 : 1;
    } else if (mask.defined() || !isMask(index)) {
      return {};
    } else {
      mask = index;
    }
  }
  if (!mask.defined()) return {};
  for (int64_t d = 0; d < mask.dim(); ++d) {
    const int64_t at = before + d;
    if (at >= self.dim() || self.size(at) != mask.size(d)) return {};
  }
  for (int64_t d = before + mask.dim(); d < self.dim(); ++d) mask = mask.unsqueeze(-1);
  return mask;
}

namespace {

void putInto(const Tensor& self, const std::vector<Tensor>& indices, const Tensor& values,
             bool accumulate) {
  if (!accumulate && self.dtype() != values.dtype()) {
    Tensor mask = filledMask(self, indices, values);
    if (mask.defined()) {
      static const OperatorHandle kMaskedFill("aten::masked_fill_", "Tensor");
      kMaskedFill(self, mask, numberTensor(Scalar::fromIValue(IValue(values)), self.dtype()));
      return;
    }
  }
  WICK_CHECK(self.dtype() == values.dtype(),
             "Index put requires the source and destination dtypes match, got {} for the "
             "destination and {} for the source.",
             scalarTypeName(self.dtype()), scalarTypeName(values.dtype()));
  IndexPlan plan = planIndex(self, indices);
  Tensor source = values;
  // Leading dimensions of size one are allowed.
  while (source.dim() > static_cast<int64_t>(plan.result_sizes.size()) && source.sizes()[0] == 1) {
    source = source.select(0, 0);
  }
  bool fits = source.dim() <= static_cast<int64_t>(plan.result_sizes.size());
  for (int64_t k = 1; fits && k <= source.dim(); ++k) {
    int64_t have = source.sizes()[source.dim() - k];
    fits = have == 1 || have == plan.result_sizes[plan.result_sizes.size() - k];
  }
  WICK_CHECK(fits,
             "shape mismatch: value tensor of shape {} cannot be broadcast to indexing result of "
             "shape {}",
             formatInts(values.sizes()), formatInts(plan.result_sizes));
  source = source.expand(plan.result_sizes).contiguous();
  if (source.sharesStorage(self)) source = source.clone(MemoryFormat::Contiguous);
  if (!accumulate) {
    remapInto(self.rawData(), source.rawData(), plan.tables, self.itemSize());
    return;
  }
  dispatchAll(self.dtype(), [&]<class T>() {
    T* to = self.data<T>();
    const T* from = source.data<T>();
    forEachMapped(plan.tables,
                  [&](int64_t at, int64_t i) { to[at] = wrappedSum(to[at], from[i]); });
  });
}

Tensor indexPut(const Tensor& self, std::vector<Tensor> indices, const Tensor& values,
                bool accumulate, Out out) {
  Tensor t = startFrom(self, out);
  putInto(t, indices, values, accumulate);
  return t;
}
Tensor indexPutImpl(const Tensor& self, std::vector<Tensor> indices, const Tensor& values,
                    bool accumulate, bool, Out out) {
  return indexPut(self, std::move(indices), values, accumulate, out);
}

const OperatorRecord kIndexingRecords[] = {
    {"aten::index.Tensor(Tensor self, Tensor?[] indices) -> Tensor", WICK_KERNEL(index),
     kOutForm | kRaisesByElements, shapes::indexed},
    {"aten::index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor", WICK_KERNEL(index),
     kRaisesByElements, shapes::indexed},
    {"aten::index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> "
     "Tensor",
     WICK_KERNEL(indexPut),
     kBothForms | kRefusesOverlap | kOutAny | kRaisesByElements | kCastWidest, shapes::likeFirst},
    {"aten::index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool "
     "accumulate=False) -> Tensor",
     WICK_KERNEL(indexPut), kInplaceForm | kRefusesOverlap | kRaisesByElements | kCastWidest,
     shapes::likeFirst},
    {"aten::_index_put_impl(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False, "
     "bool unsafe=False) -> Tensor",
     WICK_KERNEL(indexPutImpl), kBothForms | kRefusesOverlap, shapes::likeFirst},
    {"aten::_index_put_impl.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool "
     "accumulate=False, bool unsafe=False) -> Tensor",
     WICK_KERNEL(indexPutImpl), kInplaceForm | kRefusesOverlap, shapes::likeFirst},
};

const RegisterOperators kIndexingRegistered(kIndexingRecords);

}  // namespace

}  // namespace wick::ops
