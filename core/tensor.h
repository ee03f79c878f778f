// Tensor: a strided, typed view of a reference-counted Storage.
//
// A Tensor is a handle; copying it shares the TensorImpl, as assignment does in PyTorch. Views are
// other TensorImpls on the same Storage and see each other's writes. An undefined Tensor (null
// handle) stands for an absent optional tensor; asking one for anything but defined(), isSame(),
// impl() and describe() throws UsageError. Handles may be used from any thread; concurrent
// writes to one Storage are the caller's to order.
#pragma once

#include <atomic>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <string>

#include "core/device.h"
#include "core/dim_vector.h"
#include "core/dtype.h"
#include "core/error_types.h"
#include "core/ref.h"
#include "core/tensor_kind.h"

#pragma GCC visibility push(default)

namespace wick {

// The numbers are PyTorch's.
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

// A block of memory of a device (core/device_backend.h). CPU blocks are aligned to 64 bytes; those of
// other devices are not to be read through data().
class Storage : public RefCounted {
 public:
  // Allocates `bytes` uninitialized bytes; throws RuntimeError when memory or the limit is
  // exhausted, and when there is no such device.
  static Ref<Storage> allocate(size_t bytes, Device device = {});
  // Borrows memory that `owner` keeps alive (a mapped file, a user's buffer). Writing to a block
  // that is not writable is refused by copyFrom and by in-place operators. UsageError for null,
  // unless there are no bytes, RuntimeError when there is no such device.
  static Ref<Storage> borrow(void* data, size_t bytes, std::shared_ptr<const void> owner,
                             Device device = {}, bool writable = true);
  ~Storage() override;

  void* data() const { return data_; }
  size_t bytes() const { return bytes_; }
  Device device() const { return device_; }
  bool writable() const { return writable_; }
  // Whether the block is this storage's alone: allocated, not borrowed.
  bool ownsMemory() const { return !owner_; }
  // Counts in-place writes, over all views.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bumpVersion() { version_.fetch_add(1, std::memory_order_relaxed); }
  // Grows to at least `bytes`, keeping the contents; for resize_ and out= forms.
  void resize(size_t bytes);

  // Something computed from the contents that lives and dies with them (prepacked weights), or
  // null. Whoever attaches it synchronizes access within and compares version(), for the contents
  // may have changed since. Thread-safe.
  RefCounted* derived() const { return derived_.get(); }
  // Attaches `object` unless something is attached already; returns what is attached now.
  RefCounted* attachDerived(Ref<RefCounted> object) { return derived_.attach(std::move(object)); }

 private:
  void* data_ = nullptr;
  size_t bytes_ = 0;
  Device device_;
  bool writable_ = true;
  AttachedRef<RefCounted> derived_;
  std::shared_ptr<const void> owner_;  // null when the block is ours to free
  std::atomic<uint32_t> version_{0};
};

// Bytes of CPU storage that are allocated now, and the most there ever were. Thread-safe.
size_t allocatedBytes();
size_t peakAllocatedBytes();
// These bytes, and what values, objects and programs take besides (core/memory_limit.h), up to some
// 64 KB a thread. Thread-safe.
size_t countedBytes();
// Allocations that would raise countedBytes() above `bytes` throw; 0 (the initial value) is no
// limit.
void setAllocationLimit(size_t bytes);

// What sizes, strides and offset of a tensor reach at most. Every product of a size, a stride and
// the size of an element fits into an int64_t for that reason, without elements too.
inline constexpr int64_t kMaxExtentBytes = int64_t{1} << 61;
inline constexpr int64_t kMaxElements = kMaxExtentBytes / 16;
// Dimensions that a tensor has at most: whatever walks over them may do so recursively.
inline constexpr size_t kMaxDims = 1024;

// Read the members, change them with place().
class TensorImpl : public RefCounted {
 public:
  Ref<Storage> storage;
  DimVector sizes;
  DimVector strides;   // in elements
  int64_t offset = 0;  // in elements
  int64_t numel = 0;   // product of sizes, kept in step by Tensor's functions
  DType dtype = DType::Float;
  // A gradient is wanted: the tensor was marked so, or comes of one that was while that was
  // recorded. A view whose base became so later may not know it yet (autograd/tape.h).
  bool requires_grad = false;
  bool contiguous = true;  // row-major without gaps, kept in step with sizes and strides
  TensorKind kind = TensorKind::Dense;
  bool is_conj = false;  // reserved for lazily conjugated views; every tensor is materialized today

  // What the tape knows of the tensor (autograd/tape.h): where it comes from, what it is a view of,
  // its gradient. Null for most. Attached by whoever records first, also while other threads read.
  AttachedRef<RefCounted> history;
  // What a tensor of another kind than Dense consists of (core/tensor_kind.h); null for dense ones.
  // Shared by views.
  Ref<RefCounted> form;

  // Makes the tensor one of another kind.
  void become(TensorKind other, Ref<RefCounted> made_of);
  // The same for kinds without memory at strides: the sizes are what programs see. Their strides
  // are 0 and their storage holds a single zero, so whoever forgets to ask for the kind reads
  // nothing else.
  void becomeFormless(TensorKind other, Ref<RefCounted> made_of, DType type, DimVector new_sizes);
  // Takes over what the other one consists of; gradients stay its own.
  void takeOver(const TensorImpl& other);
  // Where the elements lie from now on: the one door for whatever gives a tensor a shape. Throws
  // RuntimeError, and changes nothing, when a number is negative, when the extent lies outside of
  // `memory`, when it exceeds kMaxExtentBytes or when there are more than kMaxDims dimensions. The
  // memory is pinned as long as the tensor is (core/ref.h).
  void place(Ref<Storage> memory, DType type, DimVector new_sizes, DimVector new_strides,
             int64_t new_offset);
};

template <class T>
class HeldSpan;

namespace detail {
// The element type that stands for a C++ type: the two 64-bit integers of C++ are one dtype.
template <class T>
using ElementOf = std::conditional_t<std::is_same_v<T, long long>, int64_t, T>;
template <class T>
concept Element = requires {
  DTypeOf<ElementOf<T>>::value;
};
// A vector, array, span or the like of what tensors can hold.
template <class R>
concept Elements = std::ranges::sized_range<const R> && std::ranges::forward_range<const R> &&
    Element<std::ranges::range_value_t<const R>>;
}  // namespace detail

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(Ref<TensorImpl> impl) : impl_(std::move(impl)) {}

  // Uninitialized, row-major unless a channels-last format is asked for.
  static Tensor empty(IntSpan sizes, DType dtype, Device device = {},
                      MemoryFormat format = MemoryFormat::Contiguous);
  static Tensor emptyStrided(IntSpan sizes, IntSpan strides, DType dtype, Device device = {});
  // A view of existing storage. The extent must lie inside the storage (checked: RuntimeError);
  // UsageError without a storage.
  static Tensor fromStorage(Ref<Storage> storage, DType dtype, IntSpan sizes, IntSpan strides,
                            int64_t offset);
  // Uninitialized, with the shape and device of `like`. Preserve keeps the order of its dimensions
  // in memory (without gaps), as PyTorch's empty_like does.
  static Tensor emptyLike(const Tensor& like, DType dtype,
                          MemoryFormat format = MemoryFormat::Preserve);
  static Tensor zeros(IntSpan sizes, DType dtype, Device device = {});
  static Tensor full(IntSpan sizes, double value, DType dtype, Device device = {});
  // Zero-dim tensor of one number of the matching dtype.
  template <class T>
  static Tensor scalar(T value) {
    Tensor t = empty({}, kDTypeOf<T>);
    *t.data<T>() = value;
    return t;
  }
  // A copy of as many values as the sizes ask for; UsageError for null, unless there are no values.
  template <class T>
  static Tensor fromData(const T* values, IntSpan sizes) {
    Tensor t = empty(sizes, kDTypeOf<T>);
    if (!values && t.numel() > 0) throwNoData();
    std::copy(values, values + t.numel(), t.data<T>());
    return t;
  }

  // The same of a vector, span, array or braced list, with its length looked at: UsageError unless
  // it holds as many values as the sizes ask for. Without sizes the tensor has one dimension.
  //   Tensor::from(pixels, {1, 3, 64, 96})
  //   Tensor::from({1.f, 2.f})
  template <detail::Elements Values>
  static Tensor from(const Values& values, IntSpan sizes) {
    using Element = detail::ElementOf<std::ranges::range_value_t<const Values>>;
    Tensor t = emptyFor(std::ranges::size(values), sizes, kDTypeOf<Element>);
    std::ranges::copy(values, t.data<Element>());
    return t;
  }
  template <detail::Elements Values>
  static Tensor from(const Values& values) {
    return from(values, IntSpan({static_cast<int64_t>(std::ranges::size(values))}));
  }
  template <detail::Element T>
  static Tensor from(std::initializer_list<T> values, IntSpan sizes) {
    return from(std::span<const T>(values.begin(), values.size()), sizes);
  }
  template <detail::Element T>
  static Tensor from(std::initializer_list<T> values) {
    return from(std::span<const T>(values.begin(), values.size()));
  }

  bool defined() const { return static_cast<bool>(impl_); }
  TensorImpl* impl() const { return impl_.get(); }
  const Ref<TensorImpl>& ref() const { return impl_; }
  Ref<TensorImpl> takeRef() && { return std::move(impl_); }
  bool isSame(const Tensor& o) const { return impl_ == o.impl_; }
  bool sharesStorage(const Tensor& o) const { return known().storage == o.known().storage; }

  int64_t dim() const { return static_cast<int64_t>(known().sizes.size()); }
  IntSpan sizes() const { return spanOf(known().sizes); }
  IntSpan strides() const { return spanOf(known().strides); }
  // `d` may be negative; throws RuntimeError ("Dimension out of range") otherwise.
  int64_t size(int64_t d) const;
  int64_t stride(int64_t d) const;
  int64_t numel() const { return known().numel; }
  int64_t offset() const { return known().offset; }
  DType dtype() const { return known().dtype; }
  size_t itemSize() const { return wick::itemSize(known().dtype); }
  Device device() const { return known().storage->device(); }
  const Ref<Storage>& storage() const { return known().storage; }
  bool requiresGrad() const { return known().requires_grad; }
  // Marks a tensor that comes of no other.
  void setRequiresGrad(bool on) const;
  TensorKind kind() const { return known().kind; }
  // What a tensor of another kind consists of. Null for dense ones.
  const Ref<RefCounted>& form() const { return known().form; }
  // Whether the elements lie at strides of the storage.
  bool isStrided() const { return known().kind <= TensorKind::Quantized; }
  bool isContiguous() const { return known().contiguous; }
  bool isContiguous(MemoryFormat format) const;
  // Whether the elements fill their extent without gaps or overlap, in any order of dimensions.
  bool isNonOverlappingAndDense() const;
  // The memory format that PyTorch's suggest_memory_format gives: channels-last when the strides
  // say so.
  MemoryFormat suggestMemoryFormat() const;

  // First element. T must match dtype (checked in the typed form: UsageError). RuntimeError for
  // tensors of kinds that have no memory at strides.
  void* rawData() const {
    if (!isStrided()) [[unlikely]]
      throwNotStrided();
    // By number: without elements there may be an offset, but no memory to point into.
    return reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(known().storage->data()) +
                                   static_cast<uintptr_t>(known().offset) * itemSize());
  }
  template <class T>
  T* data() const {
    if (kDTypeOf<T> != dtype()) [[unlikely]]
      throwOtherType(kDTypeOf<T>);
    return static_cast<T*>(rawData());
  }
  // All elements, in order. UsageError when T does not match dtype, and unless the tensor is
  // contiguous. Of a temporary tensor the span keeps the elements alive.
  template <class T>
  std::span<T> span() const& {
    return std::span<T>(contiguousData<std::remove_const_t<T>>(), static_cast<size_t>(numel()));
  }
  template <class T>
  HeldSpan<T> span() &&;
  // The only element, converted. Throws RuntimeError unless numel() == 1.
  template <class T>
  T item() const;

  // Views: no data moves.
  Tensor asStrided(IntSpan sizes, IntSpan strides, int64_t offset) const;
  Tensor transpose(int64_t a, int64_t b) const;
  Tensor permute(IntSpan order) const;
  Tensor select(int64_t d, int64_t index) const;
  // Elements start, start+step, … below end; the bounds are clamped as Python does. step > 0.
  Tensor slice(int64_t d, int64_t start, int64_t end, int64_t step = 1) const;
  Tensor narrow(int64_t d, int64_t start, int64_t length) const {
    return slice(d, start, start + length);
  }
  Tensor unsqueeze(int64_t d) const;
  Tensor squeeze(int64_t d) const;
  // Broadcasts to `sizes` (-1 keeps a dimension). Throws RuntimeError when it does not fit.
  Tensor expand(IntSpan sizes) const;
  // A view of the new shape (one -1 allowed), or nullopt when the strides do not permit one.
  std::optional<Tensor> tryView(IntSpan sizes) const;
  // tryView or RuntimeError.
  Tensor view(IntSpan sizes) const;
  // A new handle on the same data, without gradient.
  Tensor detach() const;

  // May copy.
  Tensor reshape(IntSpan sizes) const;
  Tensor flatten() const { return reshape({-1}); }
  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const;
  Tensor clone(MemoryFormat format = MemoryFormat::Preserve) const;
  // This tensor itself when it is so already, otherwise a copy. Not recorded for gradients, as all
  // functions of this class are not; wick::ops::to is (wick_ops.h). RuntimeError when there is no
  // such device or its memory is exhausted, and for tensors of other kinds that cannot be moved.
  Tensor to(DType dtype) const;
  Tensor to(Device device) const;
  Tensor to(Device device, DType dtype) const { return to(device).to(dtype); }
  // Writes `source`, broadcast and converted (core/convert.h), into this tensor. Overlap of the two
  // is handled; a destination that overlaps itself (an expanded one) is refused. Does not count as
  // a write in version(): the operators count theirs.
  const Tensor& copyFrom(const Tensor& source) const;
  const Tensor& fill(double value) const;
  // Gives this handle's tensor new sizes, row-major, growing its storage when it must: what resize_
  // and out= forms do. The elements keep their positions in memory; memory that is added is zero.
  const Tensor& resize(IntSpan sizes) const;

  // "float32[2, 3]".
  std::string describe() const;
  // The elements as Python shows them, "tensor([1., 2.])"; of a tensor on another device they are
  // fetched. "undefined tensor" for an empty handle.
  std::string repr() const;
  friend std::ostream& operator<<(std::ostream& out, const Tensor& tensor);  // repr()

 private:
  TensorImpl& known() const {
    if (!impl_) [[unlikely]]
      throwUndefined();
    return *impl_;
  }
  static IntSpan spanOf(const DimVector& v) { return IntSpan(v.data(), v.size()); }
  [[noreturn]] static void throwUndefined();
  [[noreturn]] static void throwNoData();
  [[noreturn]] void throwOtherType(DType asked) const;
  [[noreturn]] void throwNotContiguous() const;
  [[noreturn]] void throwNotStrided() const;
  // empty(), after a look at the number of values.
  static Tensor emptyFor(size_t values, IntSpan sizes, DType dtype);
  template <class T>
  T* contiguousData() const {
    T* elements = data<T>();
    if (!isContiguous()) throwNotContiguous();
    return elements;
  }
  Ref<TensorImpl> impl_;
};

// A span of a tensor's elements that holds the tensor, so that a loop may run over the elements of
// a result that nobody else keeps.
template <class T>
class HeldSpan : public std::span<T> {
 public:
  HeldSpan(std::span<T> elements, Tensor tensor)
      : std::span<T>(elements), tensor_(std::move(tensor)) {}
  const Tensor& tensor() const { return tensor_; }

 private:
  Tensor tensor_;
};

template <class T>
HeldSpan<T> Tensor::span() && {
  const Tensor& self = *this;
  return HeldSpan<T>(self.span<T>(), self);
}

// `d` counted from the end when negative; throws RuntimeError when outside [-max(n,1), max(n,1)).
int64_t wrapDim(int64_t d, int64_t n);
// The shape that both broadcast to; throws RuntimeError when they do not.
DimVector broadcastShapes(IntSpan a, IntSpan b);
// The stride from every `step`-th element to the next. A step so large that it leaves one element
// at most keeps the old stride, for any will do.
int64_t steppedStride(int64_t stride, int64_t step);
// Row-major strides of `sizes`.
DimVector contiguousStrides(IntSpan sizes);
// Throws RuntimeError when the format does not suit the number of dimensions, or is Preserve.
DimVector formatStrides(IntSpan sizes, MemoryFormat format);
// Strides without gaps for `sizes`, the dimensions ordered in memory as `strides` orders them.
DimVector denseStrides(IntSpan sizes, IntSpan strides);
// Product of the sizes; throws RuntimeError for a negative size or beyond kMaxElements or kMaxDims.
int64_t checkedNumel(IntSpan sizes);
// Replaces one -1 in `sizes` by what `numel` leaves; throws RuntimeError when impossible.
DimVector inferSize(IntSpan sizes, int64_t numel);
// "[2, 3]".
std::string formatInts(IntSpan values);

}  // namespace wick

#pragma GCC visibility pop
