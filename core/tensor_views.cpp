// The views of Tensor: new sizes, strides and offset on the same storage. A size times a stride of
// a tensor never overflows (kMaxExtentBytes); what a program gives besides is checked here, and
// what comes of it by TensorImpl::place().
#include "core/error.h"
#include "core/tensor.h"

namespace wick {

namespace {

Tensor viewOf(const Tensor& t, DimVector sizes, DimVector strides, int64_t offset) {
  checkGrowth();
  if (!t.isStrided()) [[unlikely]]
    t.rawData();  // raises the error
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->place(t.storage(), t.dtype(), std::move(sizes), std::move(strides), offset);
  if (t.kind() != TensorKind::Dense) [[unlikely]]
    impl->become(t.kind(), t.form());
  return Tensor(std::move(impl));
}

}  // namespace

int64_t steppedStride(int64_t stride, int64_t step) {
  int64_t stepped = 0;
  const bool overflows = __builtin_mul_overflow(stride, step, &stepped);
  return overflows || stepped > kMaxElements ? stride : stepped;
}

Tensor Tensor::asStrided(IntSpan sizes, IntSpan strides, int64_t offset) const {
  return viewOf(*this, sizes, strides, offset);
}

Tensor Tensor::transpose(int64_t a, int64_t b) const {
  a = wrapDim(a, dim());
  b = wrapDim(b, dim());
  DimVector sizes = impl_->sizes;
  DimVector strides = impl_->strides;
  if (a != b) {
    std::swap(sizes[a], sizes[b]);
    std::swap(strides[a], strides[b]);
  }
  return viewOf(*this, std::move(sizes), std::move(strides), offset());
}

Tensor Tensor::permute(IntSpan order) const {
  int64_t n = dim();
  WICK_CHECK(static_cast<int64_t>(order.size()) == n,
             "permute: number of dimensions in the tensor input does not match the "
             "length of the desired ordering of dimensions i.e. input.dim() = {} is not equal to "
             "len(dims) = {}",
             n, order.size());
  DimVector sizes(n);
  DimVector strides(n);
  DimVector seen(n, 0);
  for (int64_t i = 0; i < n; ++i) {
    int64_t d = wrapDim(order[i], n);
    WICK_CHECK(!seen[d], "repeated dim in permute");
    seen[d] = 1;
    sizes[i] = impl_->sizes[d];
    strides[i] = impl_->strides[d];
  }
  return viewOf(*this, std::move(sizes), std::move(strides), offset());
}

Tensor Tensor::select(int64_t d, int64_t index) const {
  WICK_CHECK(dim() > 0, "select() cannot be applied to a 0-dim tensor.");
  d = wrapDim(d, dim());
  int64_t n = impl_->sizes[d];
  WICK_CHECK(index >= -n && index < n,
             "select(): index {} out of range for tensor of size {} at dimension {}", index,
             formatInts(sizes()), d);
  if (index < 0) index += n;
  DimVector sizes = impl_->sizes;
  DimVector strides = impl_->strides;
  int64_t start = offset() + index * strides[d];
  sizes.erase(d);
  strides.erase(d);
  return viewOf(*this, std::move(sizes), std::move(strides), start);
}

Tensor Tensor::slice(int64_t d, int64_t start, int64_t end, int64_t step) const {
  WICK_CHECK(dim() > 0, "slice() cannot be applied to a 0-dim tensor.");
  d = wrapDim(d, dim());
  WICK_CHECK(step > 0, "slice step must be positive");
  int64_t n = impl_->sizes[d];
  if (start < 0) start += n;
  if (end < 0) end += n;
  start = std::clamp<int64_t>(start, 0, n);
  end = std::clamp<int64_t>(end, start, n);
  DimVector sizes = impl_->sizes;
  DimVector strides = impl_->strides;
  int64_t from = offset() + start * strides[d];
  sizes[d] = (end - start) / step + ((end - start) % step != 0);
  strides[d] = steppedStride(strides[d], step);
  return viewOf(*this, std::move(sizes), std::move(strides), from);
}

Tensor Tensor::unsqueeze(int64_t d) const {
  d = wrapDim(d, dim() + 1);
  DimVector sizes = impl_->sizes;
  DimVector strides = impl_->strides;
  int64_t stride = d < dim() ? sizes[d] * strides[d] : 1;
  sizes.insert(d, 1);
  strides.insert(d, stride);
  return viewOf(*this, std::move(sizes), std::move(strides), offset());
}

Tensor Tensor::squeeze(int64_t d) const {
  d = wrapDim(d, dim());
  DimVector sizes = impl_->sizes;
  DimVector strides = impl_->strides;
  if (dim() > 0 && sizes[d] == 1) {
    sizes.erase(d);
    strides.erase(d);
  }
  return viewOf(*this, std::move(sizes), std::move(strides), offset());
}

Tensor Tensor::expand(IntSpan sizes) const {
  int64_t n = static_cast<int64_t>(sizes.size());
  WICK_CHECK(n >= dim(),
             "expand({}, size={}): the number of sizes provided ({}) must be greater or equal to "
             "the number of dimensions in the tensor ({})",
             describe(), formatInts(sizes), n, dim());
  DimVector out(n);
  DimVector strides(n);
  for (int64_t i = n - 1; i >= 0; --i) {
    int64_t own = i - (n - dim());
    int64_t wanted = sizes[i];
    if (own < 0) {
      WICK_CHECK(wanted != -1,
                 "The expanded size of the tensor ({}) isn't allowed in a leading, non-existing "
                 "dimension {}",
                 wanted, i);
      WICK_CHECK(wanted >= 0, "expand: negative size in {}", formatInts(sizes));
      out[i] = wanted;
      strides[i] = wanted == 1 && i + 1 < n ? out[i + 1] * strides[i + 1] : 0;
      continue;
    }
    int64_t have = impl_->sizes[own];
    if (wanted == -1) wanted = have;
    WICK_CHECK(wanted >= 0, "expand: negative size in {}", formatInts(sizes));
    WICK_CHECK(wanted == have || have == 1,
               "The expanded size of the tensor ({}) must match the existing size ({}) at "
               "non-singleton dimension {}.  Target sizes: {}.  Tensor sizes: {}",
               wanted, have, i, formatInts(sizes), formatInts(this->sizes()));
    out[i] = wanted;
    strides[i] = wanted == have ? impl_->strides[own] : 0;
  }
  checkedNumel(out);
  return viewOf(*this, std::move(out), std::move(strides), offset());
}

std::optional<Tensor> Tensor::tryView(IntSpan sizes) const {
  DimVector shape = inferSize(sizes, numel());
  if (isContiguous()) {
    checkedNumel(shape);
    // An empty tensor keeps unusual strides under its own shape, as in PyTorch.
    DimVector strides =
        numel() == 0 && shape == impl_->sizes ? impl_->strides : contiguousStrides(shape);
    return viewOf(*this, std::move(shape), std::move(strides), offset());
  }
  // The old dimensions fall into runs; each run is one evenly strided sequence; the new
  // dimensions must divide each run without straddling a boundary. Both are walked from the
  // innermost dimension.
  DimVector strides(shape.size(), 0);
  int64_t to = static_cast<int64_t>(shape.size()) - 1;
  for (int64_t from = dim() - 1; from >= 0;) {
    int64_t step = impl_->strides[from];
    int64_t run = impl_->sizes[from--];
    while (from >= 0 && (impl_->sizes[from] == 1 || impl_->strides[from] == run * step)) {
      run *= impl_->sizes[from--];
    }
    int64_t taken = 1;
    while (to >= 0 && (taken < run || shape[to] == 1)) {
      strides[to] = taken * step;
      taken *= shape[to--];
    }
    if (taken != run) return std::nullopt;
  }
  if (to >= 0) return std::nullopt;
  return viewOf(*this, std::move(shape), std::move(strides), offset());
}

Tensor Tensor::view(IntSpan sizes) const {
  if (std::optional<Tensor> t = tryView(sizes)) return *std::move(t);
  throwRuntimeError(
      "view size is not compatible with input tensor's size and stride (at least one dimension "
      "spans across two contiguous subspaces). Use .reshape(...) instead.");
}

Tensor Tensor::detach() const {
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->takeOver(known());
  return Tensor(std::move(impl));
}

}  // namespace wick
