#include "runtime/ops/common.h"

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/number_range.h"
#include "runtime/kernels/pointwise.h"

namespace wick::ops {

void resizeTo(const Tensor& t, IntSpan sizes) {
  if (!std::ranges::equal(t.sizes(), sizes)) t.resize(sizes);
}

Tensor cleared(Tensor tensor) {
  const Storage& memory = *tensor.storage();
  if (memory.bytes() != 0 && memory.data()) {
    deviceBackend(memory.device().type).clear(memory.device(), memory.data(), memory.bytes());
  }
  return tensor;
}

Tensor startFrom(const Tensor& self, Out out) {
  if (!out) return self.clone();
  if (out.tensor->isSame(self)) return self;
  if (out.tensor->dtype() != self.dtype()) return self.clone();
  resizeTo(*out.tensor, self.sizes());
  out.tensor->copyFrom(self);
  return *out.tensor;
}

Tensor writeOut(const char* op, const Tensor& out, const Tensor& result) {
  markWritten(op, out);
  WICK_CHECK(canCast(result.dtype(), out.dtype()),
             "{}: result type {} can't be cast to the desired output type {}", op,
             toString(result.dtype()), toString(out.dtype()));
  resizeTo(out, result.sizes());
  out.copyFrom(result);
  return out;
}

Tensor resultTensor(Out out, IntSpan sizes, DType dtype,
                    std::initializer_list<const Tensor*> inputs) {
  if (out && out.tensor->dtype() == dtype) {
    bool shared = false;
    for (const Tensor* t : inputs) shared |= t->defined() && t->sharesStorage(*out.tensor);
    bool fits = std::ranges::equal(out.tensor->sizes(), sizes);
    if (!shared && (!fits || out.tensor->isContiguous())) {
      resizeTo(*out.tensor, sizes);
      return *out.tensor;
    }
  }
  Device device;
  for (const Tensor* t : inputs) {
    if (t->defined()) device = t->device();
  }
  return Tensor::empty(sizes, dtype, device);
}

Tensor numberTensor(const Scalar& value, DType dtype) {
  Tensor t = Tensor::empty({}, dtype);
  checkFits(value, dtype);
  dispatchAll(dtype, [&]<class T>() { *t.data<T>() = value.to<T>(); });
  return t;
}

const Tensor& fillWith(const Tensor& t, const Scalar& value) {
  distinctElements(t).copyFrom(numberTensor(value, t.dtype()));
  return t;
}

void markWritten(const char* op, const Tensor& t) {
  WICK_CHECK(t.storage()->writable(), "{}: the destination's memory is read-only", op);
  t.storage()->bumpVersion();
}

Tensor indexInt64(const char* op, const Tensor& index) {
  WICK_CHECK(index.dtype() == DType::Long || index.dtype() == DType::Int,
             "{}: Expected dtype int32/int64 for index, got {}", op, toString(index.dtype()));
  return index.to(DType::Long).contiguous();
}

OffsetTable offsetsAlong(const Tensor& t, int64_t d) {
  OffsetTable table(static_cast<size_t>(t.sizes()[d]));
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<int64_t>(i) * t.strides()[d];
  return table;
}

std::vector<OffsetTable> offsetTables(const Tensor& t) {
  std::vector<OffsetTable> tables;
  for (int64_t d = 0; d < t.dim(); ++d) tables.push_back(offsetsAlong(t, d));
  return tables;
}

DimVector without(IntSpan values, int64_t d) {
  DimVector out(values);
  out.erase(static_cast<size_t>(d));
  return out;
}

int64_t product(IntSpan sizes, size_t first, size_t last) {
  int64_t n = 1;
  for (size_t i = first; i < last; ++i) n *= sizes[i];
  return n;
}

DimSplit splitAt(IntSpan sizes, int64_t d) {
  if (sizes.empty()) return {1, 1, 1};
  size_t at = static_cast<size_t>(d);
  return {product(sizes, 0, at), sizes[at], product(sizes, at + 1, sizes.size())};
}

}  // namespace wick::ops
