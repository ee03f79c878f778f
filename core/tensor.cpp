#include "core/tensor.h"

#include <bit>
#include <complex>
#include <cstring>
#include <limits>

#include "core/convert.h"
#include "core/device_backend.h"
#include "core/dtype_dispatch.h"
#include "core/grad_mode.h"
#include "core/paced.h"
#include "core/stride_order.h"
#include "core/strided_layout.h"

namespace wick {

namespace {

// wrapDim for the inner loops of everything: kernels ask for sizes a dozen times a call.
inline int64_t wrapped(int64_t d, int64_t n) {
  return static_cast<uint64_t>(d) < static_cast<uint64_t>(n) ? d : wrapDim(d, n);
}

// Whether strides ascend in the order of the layout. When the sizes leave the layout open (one
// channel, no spatial extent) the answer is no, so that such tensors count as row-major.
template <size_t N>
bool ascendsInOrder(IntSpan sizes, IntSpan strides, const std::array<int, N>& order) {
  if (sizes.size() != N || strides[1] == 0) return false;
  int64_t least = 0;
  for (int d : order) {
    if (sizes[d] == 0 || strides[d] < least) return false;
    if (d == 0 && least == strides[1]) return false;
    least = strides[d] * std::max<int64_t>(sizes[d], 1);
  }
  return true;
}

// The extent of a tensor: where its last element ends, counted in elements from the beginning of
// the storage, and what else is learned on the way.
struct Extent {
  int64_t end = 0;  // of the elements that there are; 0 when there are none
  int64_t numel = 0;
  bool row_major = true;  // without gaps; also when there are no elements
  bool fits = true;       // all numbers are right and small enough
};

// Every view that a program makes comes by here. A number that is out of range does not end the
// loop but leaves a mark: the numbers of real tensors are all in range.
Extent extentOf(IntSpan sizes, IntSpan strides, int64_t offset, size_t item_size) {
  const uint64_t limit = static_cast<uint64_t>(kMaxExtentBytes) >> std::countr_zero(item_size);
  Extent e;
  uint64_t elements = 1;  // of the dimensions that have any
  auto last = static_cast<uint64_t>(offset);
  bool any = true;
  bool wrong = sizes.size() != strides.size() || sizes.size() > kMaxDims || last >= limit;
  for (size_t d = sizes.size(); d-- > 0 && !wrong;) {
    const auto size = static_cast<uint64_t>(sizes[d]), stride = static_cast<uint64_t>(strides[d]);
    // Row-major strides are those elements that lie further inside.
    e.row_major &= size == 1 || stride == elements;
    uint64_t span = 0;
    const uint64_t steps = size == 0 ? 0 : size - 1;
    // Negative numbers are the largest ones here. `last` stays far below 2^64.
    wrong = static_cast<int64_t>(size) < 0 || stride > limit ||
            __builtin_mul_overflow(elements, steps + 1, &elements) ||
            elements > static_cast<uint64_t>(kMaxElements) ||
            __builtin_mul_overflow(steps, stride, &span) || span >= limit ||
            (last += span) >= limit;
    any &= size != 0;
  }
  e.fits = !wrong;
  if (wrong) return e;
  e.numel = any ? static_cast<int64_t>(elements) : 0;
  if (!any) {
    e.row_major = true;
  } else {
    e.end = static_cast<int64_t>(last) + 1;
  }
  return e;
}

[[noreturn]] void throwWrongExtent(IntSpan sizes, IntSpan strides, int64_t offset) {
  WICK_CHECK(sizes.size() == strides.size(), "mismatch in length of strides and shape: {} and {}",
             formatInts(strides), formatInts(sizes));
  checkedNumel(sizes);
  for (int64_t s : strides) {
    WICK_CHECK(s >= 0, "negative strides are not supported, got {}", formatInts(strides));
  }
  WICK_CHECK(offset >= 0, "Tensor: invalid storage offset {}", offset);
  throwRuntimeError("the extent of sizes {} with strides {} and offset {} overflows",
                    formatInts(sizes), formatInts(strides), offset);
}

// Bytes of storage that a tensor needs.
size_t extentBytes(IntSpan sizes, IntSpan strides, int64_t offset, DType dtype) {
  const size_t item_size = itemSize(dtype);
  const Extent extent = extentOf(sizes, strides, offset, item_size);
  if (!extent.fits) throwWrongExtent(sizes, strides, offset);
  return static_cast<size_t>(extent.end) * item_size;
}

// Writes zeros from byte `begin` on.
void clearStorage(Storage& storage, size_t begin) {
  if (storage.bytes() == begin || !storage.data()) return;
  char* const first = static_cast<char*>(storage.data()) + begin;
  if (storage.device().isCpu()) {
    clearBytes(first, storage.bytes() - begin);
  } else {
    deviceBackend(storage.device().type).clear(storage.device(), first, storage.bytes() - begin);
  }
}

Tensor makeTensor(Ref<Storage> storage, DType dtype, DimVector sizes, DimVector strides,
                  int64_t offset) {
  Ref<TensorImpl> impl = makeRef<TensorImpl>();
  impl->place(std::move(storage), dtype, std::move(sizes), std::move(strides), offset);
  return Tensor(std::move(impl));
}

}  // namespace

void TensorImpl::place(Ref<Storage> memory, DType type, DimVector new_sizes, DimVector new_strides,
                       int64_t new_offset) {
  const size_t item_size = itemSize(type);
  const Extent extent = extentOf(new_sizes, new_strides, new_offset, item_size);
  if (!extent.fits) throwWrongExtent(new_sizes, new_strides, new_offset);
  const size_t bytes = static_cast<size_t>(extent.end) * item_size;
  WICK_CHECK(bytes <= memory->bytes(),
             "setStorage: sizes {}, strides {}, storage offset {}, and itemsize {} requiring a "
             "storage size of {} are out of bounds for storage of size {}",
             formatInts(new_sizes), formatInts(new_strides), new_offset, item_size, bytes,
             memory->bytes());
  if (isPinned()) [[unlikely]] {
    memory->pin();
    storage->unpin();
  }
  storage = std::move(memory);
  sizes = std::move(new_sizes);
  strides = std::move(new_strides);
  offset = new_offset;
  dtype = type;
  numel = extent.numel;
  contiguous = extent.row_major;
}

void TensorImpl::become(TensorKind other, Ref<RefCounted> made_of) {
  if (other != TensorKind::Dense) detail::kinds_in_use.store(true, std::memory_order_relaxed);
  kind = other;
  form = std::move(made_of);
}

void TensorImpl::takeOver(const TensorImpl& other) {
  place(other.storage, other.dtype, other.sizes, other.strides, other.offset);
  numel = other.numel;
  contiguous = other.contiguous;
  become(other.kind, other.form);
}

void TensorImpl::becomeFormless(TensorKind other, Ref<RefCounted> made_of, DType type,
                                DimVector new_sizes) {
  const int64_t elements = checkedNumel(new_sizes);
  Ref<Storage> zero = Storage::allocate(sizeof(std::complex<double>));
  std::memset(zero->data(), 0, zero->bytes());
  const size_t dims = new_sizes.size();
  become(TensorKind::Dense, {});
  place(std::move(zero), type, std::move(new_sizes), DimVector(dims, 0), 0);
  numel = elements;
  contiguous = false;
  become(other, std::move(made_of));
}

Tensor Tensor::empty(IntSpan sizes, DType dtype, Device device, MemoryFormat format) {
  int64_t numel = checkedNumel(sizes);
  int64_t bytes = 0;
  WICK_CHECK(!__builtin_mul_overflow(numel, static_cast<int64_t>(wick::itemSize(dtype)), &bytes),
             "a tensor of sizes {} is too large", formatInts(sizes));
  if (format == MemoryFormat::Contiguous) {
    Ref<TensorImpl> impl = makeRef<TensorImpl>();
    impl->storage = Storage::allocate(static_cast<size_t>(bytes), device);
    impl->sizes.assign(sizes.begin(), sizes.end());
    impl->strides.resize(sizes.size());
    int64_t next = 1;
    for (size_t d = sizes.size(); d-- > 0;) {
      impl->strides[d] = next;
      next *= std::max<int64_t>(sizes[d], 1);
    }
    impl->numel = numel;
    impl->dtype = dtype;
    return Tensor(std::move(impl));
  }
  DimVector strides = formatStrides(sizes, format);
  return makeTensor(Storage::allocate(static_cast<size_t>(bytes), device), dtype, DimVector(sizes),
                    std::move(strides), 0);
}

Tensor Tensor::emptyStrided(IntSpan sizes, IntSpan strides, DType dtype, Device device) {
  const size_t bytes = extentBytes(sizes, strides, 0, dtype);
  return makeTensor(Storage::allocate(bytes, device), dtype, DimVector(sizes), DimVector(strides),
                    0);
}

Tensor Tensor::emptyLike(const Tensor& like, DType dtype, MemoryFormat format) {
  if (format != MemoryFormat::Preserve) return empty(like.sizes(), dtype, like.device(), format);
  // Strides of dimensions of one element are kept, too.
  DimVector strides = like.isNonOverlappingAndDense() ? DimVector(like.strides())
                                                      : denseStrides(like.sizes(), like.strides());
  return emptyStrided(like.sizes(), strides, dtype, like.device());
}

Tensor Tensor::fromStorage(Ref<Storage> storage, DType dtype, IntSpan sizes, IntSpan strides,
                           int64_t offset) {
  if (!storage) throw UsageError("Tensor::fromStorage: expected a storage, got null");
  return makeTensor(std::move(storage), dtype, DimVector(sizes), DimVector(strides), offset);
}

Tensor Tensor::zeros(IntSpan sizes, DType dtype, Device device) {
  Tensor t = empty(sizes, dtype, device);
  clearStorage(*t.storage(), 0);
  return t;
}

Tensor Tensor::full(IntSpan sizes, double value, DType dtype, Device device) {
  Tensor t = empty(sizes, dtype, device);
  t.fill(value);
  return t;
}

int64_t Tensor::size(int64_t d) const {
  return known().sizes[wrapped(d, dim())];
}

int64_t Tensor::stride(int64_t d) const {
  return known().strides[wrapped(d, dim())];
}

void Tensor::setRequiresGrad(bool on) const {
  known().requires_grad = on;
  if (on) detail::gradients_in_use.store(true, std::memory_order_relaxed);
}

bool Tensor::isContiguous(MemoryFormat format) const {
  const bool is_plain = format == MemoryFormat::Contiguous || format == MemoryFormat::Preserve;
  return is_plain ? isContiguous() : wick::isContiguous(sizes(), strides(), format);
}

bool Tensor::isNonOverlappingAndDense() const {
  return isContiguous() || isDense(sizes(), strides());
}

MemoryFormat Tensor::suggestMemoryFormat() const {
  if (ascendsInOrder(sizes(), strides(), kChannelsLast)) return MemoryFormat::ChannelsLast;
  if (ascendsInOrder(sizes(), strides(), kChannelsLast3d)) return MemoryFormat::ChannelsLast3d;
  return MemoryFormat::Contiguous;
}

template <class T>
T Tensor::item() const {
  WICK_CHECK(numel() == 1, "a Tensor with {} elements cannot be converted to Scalar", numel());
  if (!device().isCpu()) return moveTo(*this, Device()).item<T>();
  return dispatchAll(dtype(),
                     [&]<class From>() { return convert<T>(*static_cast<From*>(rawData())); });
}
#define WICK_DTYPE(type, name, text, number) template type Tensor::item<type>() const;
WICK_FORALL_DTYPES(WICK_DTYPE)
#undef WICK_DTYPE

void Tensor::throwUndefined() {
  throw UsageError("the tensor is undefined: it has no elements, sizes, dtype or device");
}

void Tensor::throwNoData() {
  throw UsageError("Tensor::fromData: expected values, got null");
}

void Tensor::throwNotStrided() const {
  throwRuntimeError("expected a tensor whose elements lie in memory at strides, got a {} one",
                    toString(kind()));
}

void Tensor::throwNotContiguous() const {
  throw UsageError(fmt::format(
      "span: expected a contiguous tensor, got {} with strides {}; call contiguous() first",
      describe(), formatInts(strides())));
}

Tensor Tensor::emptyFor(size_t values, IntSpan sizes, DType dtype) {
  const int64_t expected = checkedNumel(sizes);
  if (values != static_cast<size_t>(expected)) {
    throw UsageError(fmt::format("Tensor::from: expected {} values for the sizes {}, got {}",
                                 expected, formatInts(sizes), values));
  }
  return empty(sizes, dtype);
}

void Tensor::throwOtherType(DType asked) const {
  throw UsageError(fmt::format(
      "Tensor::data: the elements of a tensor of dtype {} were asked for as {}; ask for "
      "the dtype that it has, or convert it with to()",
      toString(dtype()), toString(asked)));
}

Tensor Tensor::reshape(IntSpan sizes) const {
  DimVector shape = inferSize(sizes, numel());
  if (std::optional<Tensor> t = tryView(shape)) return *std::move(t);
  return clone(MemoryFormat::Contiguous).view(shape);
}

Tensor Tensor::contiguous(MemoryFormat format) const {
  if (isContiguous(format == MemoryFormat::Preserve ? MemoryFormat::Contiguous : format)) {
    return *this;
  }
  WICK_CHECK(format != MemoryFormat::Preserve,
             "preserve memory format is unsupported by the contiguous operator");
  return clone(format);
}

Tensor Tensor::clone(MemoryFormat format) const {
  Tensor t = emptyLike(*this, dtype(), format);
  t.copyFrom(*this);
  return t;
}

Tensor Tensor::to(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  Tensor t = emptyLike(*this, dtype);
  t.copyFrom(*this);
  return t;
}

Tensor Tensor::to(Device device) const {
  if (kind() == TensorKind::Dense) return moveTo(*this, device);
  const Device place = placeOf(device);
  if (place == this->device()) return *this;
  throwRuntimeError("Tensor::to: a {} tensor cannot be moved from {} to {}", toString(kind()),
                    this->device().str(), place.str());
}

const Tensor& Tensor::resize(IntSpan sizes) const {
  checkedNumel(sizes);
  DimVector strides = contiguousStrides(sizes);
  const size_t before = storage()->bytes();
  storage()->resize(extentBytes(sizes, strides, offset(), dtype()));
  // The new memory may hold values of another program, and bytes that are no booleans.
  clearStorage(*storage(), std::min(before, storage()->bytes()));
  impl_->place(storage(), dtype(), DimVector(sizes), std::move(strides), offset());
  return *this;
}

std::string Tensor::describe() const {
  if (!defined()) return "undefined tensor";
  std::string s = fmt::format("{}{}", toString(dtype()), formatInts(sizes()));
  if (!device().isCpu()) s += " on " + device().str();
  return s;
}

int64_t wrapDim(int64_t d, int64_t n) {
  int64_t range = std::max<int64_t>(n, 1);
  WICK_CHECK(d >= -range && d < range,
             "Dimension out of range (expected to be in range of [{}, {}], but got {})", -range,
             range - 1, d);
  return d < 0 ? d + range : d;
}

DimVector broadcastShapes(IntSpan a, IntSpan b) {
  size_t n = std::max(a.size(), b.size());
  DimVector out(n, 1);
  for (size_t i = 0; i < n; ++i) {
    // Aligned at the last dimension.
    int64_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    int64_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    WICK_CHECK(x == y || x == 1 || y == 1,
               "The size of tensor a ({}) must match the size of tensor b ({}) at non-singleton "
               "dimension {}",
               x, y, n - 1 - i);
    out[n - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

DimVector contiguousStrides(IntSpan sizes) {
  DimVector strides(sizes.size(), 1);
  int64_t next = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    strides[d] = next;
    // Beyond what a tensor may have, which whoever places one refuses.
    if (__builtin_mul_overflow(next, std::max<int64_t>(sizes[d], 1), &next)) {
      next = std::numeric_limits<int64_t>::max();
    }
  }
  return strides;
}

DimVector formatStrides(IntSpan sizes, MemoryFormat format) {
  auto ordered = [&](const auto& order, const char* name) {
    WICK_CHECK(sizes.size() == order.size(), "required rank {} tensor to use {} format",
               order.size(), name);
    DimVector strides(sizes.size(), 1);
    int64_t next = 1;
    for (int d : order) {
      strides[d] = next;
      next *= std::max<int64_t>(sizes[d], 1);
    }
    return strides;
  };
  switch (format) {
    case MemoryFormat::Contiguous:
      return contiguousStrides(sizes);
    case MemoryFormat::ChannelsLast:
      return ordered(kChannelsLast, "channels_last");
    case MemoryFormat::ChannelsLast3d:
      return ordered(kChannelsLast3d, "channels_last_3d");
    case MemoryFormat::Preserve:
      break;
  }
  throwRuntimeError("unsupported memory format option Preserve");
}

DimVector denseStrides(IntSpan sizes, IntSpan strides) {
  const size_t n = sizes.size();
  DimVector order(n);
  orderDimensions(std::span<int64_t>(order.data(), n), [&](int64_t a, int64_t b) {
    if (strides[a] == 0 || strides[b] == 0) return 0;
    if (strides[a] != strides[b]) return strides[a] < strides[b] ? -1 : 1;
    return sizes[a] > sizes[b] ? 1 : 0;
  });
  DimVector out(n, 1);
  int64_t next = 1;
  for (int64_t d : order) {
    out[d] = next;
    next *= std::max<int64_t>(sizes[d], 1);
  }
  return out;
}

int64_t checkedNumel(IntSpan sizes) {
  WICK_CHECK(sizes.size() <= kMaxDims, "a tensor of {} dimensions: at most {} are supported",
             sizes.size(), kMaxDims);
  // The product of the non-zero sizes is bounded too, so that strides never overflow.
  int64_t numel = 1;
  int64_t bound = 1;
  for (int64_t s : sizes) {
    WICK_CHECK(s >= 0, "Trying to create tensor with negative dimension {}: {}", s,
               formatInts(sizes));
    WICK_CHECK(
        !__builtin_mul_overflow(bound, std::max<int64_t>(s, 1), &bound) && bound <= kMaxElements,
        "the number of elements of sizes {} overflows", formatInts(sizes));
    numel *= s;
  }
  return numel;
}

DimVector inferSize(IntSpan sizes, int64_t numel) {
  DimVector out(sizes);
  int64_t known = 1;
  int64_t unknown = -1;
  bool overflow = false;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == -1) {
      WICK_CHECK(unknown < 0, "only one dimension can be inferred");
      unknown = static_cast<int64_t>(d);
    } else {
      WICK_CHECK(sizes[d] >= 0, "invalid shape dimension {}", sizes[d]);
      overflow |= __builtin_mul_overflow(known, sizes[d], &known);
    }
  }
  if (!overflow && unknown >= 0 && known > 0 && numel % known == 0) {
    out[unknown] = numel / known;
    return out;
  }
  if (!overflow && numel == known) {
    WICK_CHECK(unknown < 0,
               "cannot reshape tensor of 0 elements into shape {} because the unspecified "
               "dimension size -1 can be any value and is ambiguous",
               formatInts(sizes));
    return out;
  }
  throwRuntimeError("shape '{}' is invalid for input of size {}", formatInts(sizes), numel);
}

std::string formatInts(IntSpan values) {
  std::string s = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) s += ", ";
    s += std::to_string(values[i]);
  }
  return s + "]";
}

}  // namespace wick
