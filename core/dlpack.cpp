#include "core/dlpack.h"

#include <algorithm>

#include "core/dlpack_structs.h"
#include "core/error.h"

namespace wick {
namespace {

constexpr int32_t kCpu = 1;
constexpr uint32_t kMajor = 1;
constexpr uint64_t kReadOnly = 1;
// More dimensions than any library makes; sizes of a tensor are read from the outside.
constexpr int32_t kMaxDims = 64;

enum Code : uint8_t { kInt = 0, kUint = 1, kFloat = 2, kBfloat = 4, kComplex = 5, kBool = 6 };

struct DTypeRow {
  DType dtype;
  uint8_t code;
  uint8_t bits;
};
constexpr DTypeRow kDTypes[] = {
    {DType::Byte, kUint, 8},
    {DType::Char, kInt, 8},
    {DType::Short, kInt, 16},
    {DType::Int, kInt, 32},
    {DType::Long, kInt, 64},
    {DType::Half, kFloat, 16},
    {DType::Float, kFloat, 32},
    {DType::Double, kFloat, 64},
    {DType::ComplexFloat, kComplex, 64},
    {DType::ComplexDouble, kComplex, 128},
    {DType::Bool, kBool, 8},
    {DType::BFloat16, kBfloat, 16},
};

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  throw UsageError("DLPack: " + fmt::format(format, std::forward<Args>(args)...));
}

DType dtypeOf(const DLDataType& type) {
  for (const DTypeRow& row : kDTypes) {
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  }
  refuse("there is no dtype for code {}, {} bits and {} lanes", type.code, type.bits, type.lanes);
}

// Bytes from the first element to behind the last.
size_t extentOf(IntSpan sizes, IntSpan strides, size_t item_size) {
  int64_t last = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) return 0;
  }
  for (size_t i = 0; i < sizes.size(); ++i) {
    int64_t reach;
    if (__builtin_mul_overflow(sizes[i] - 1, strides[i], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last >= kMaxElements) {
      refuse("a tensor of sizes {} and strides {} is too large", formatInts(sizes),
             formatInts(strides));
    }
  }
  return (static_cast<size_t>(last) + 1) * item_size;
}

// The tensor over the elements that the struct describes. `owner` keeps them.
Tensor viewOf(const DLTensor& tensor, std::shared_ptr<const void> owner, bool writable) {
  if (tensor.device.device_type != kCpu) {
    refuse("expected memory of the CPU (device type 1), got device type {}",
           tensor.device.device_type);
  }
  if (tensor.ndim < 0 || tensor.ndim > kMaxDims) {
    refuse("expected 0 to {} dimensions, got {}", kMaxDims, tensor.ndim);
  }
  const auto dims = static_cast<size_t>(tensor.ndim);
  if (dims > 0 && !tensor.shape) refuse("expected {} sizes, got null", dims);
  const DType dtype = dtypeOf(tensor.dtype);
  const IntSpan sizes(tensor.shape, dims);
  for (int64_t size : sizes) {
    if (size < 0) refuse("expected sizes from 0 on, got {}", formatInts(sizes));
  }
  checkedNumel(sizes);
  DimVector strides =
      tensor.strides ? DimVector(IntSpan(tensor.strides, dims)) : contiguousStrides(sizes);
  for (int64_t stride : strides) {
    if (stride < 0) refuse("expected strides from 0 on, got {}", formatInts(strides));
  }
  const size_t bytes = extentOf(sizes, strides, itemSize(dtype));
  const uintptr_t address = reinterpret_cast<uintptr_t>(tensor.data) + tensor.byte_offset;
  if (bytes > 0 && (!tensor.data || address < tensor.byte_offset)) {
    refuse("expected the address of {} bytes, got null", bytes);
  }
  // Complex numbers lie as their parts do.
  const size_t alignment = isComplex(dtype) ? itemSize(dtype) / 2 : itemSize(dtype);
  if (bytes > 0 && address % alignment != 0) {
    refuse("expected elements of {} at a multiple of {} bytes", toString(dtype), alignment);
  }
  if (bytes == 0) return Tensor::empty(sizes, dtype);
  const Tensor view = Tensor::fromStorage(Storage::borrow(reinterpret_cast<void*>(address), bytes,
                                                          std::move(owner), Device{}, writable),
                                          dtype, sizes, strides, 0);
  // Kernels believe that a bool is 0 or 1.
  const auto* const first = reinterpret_cast<const uint8_t*>(address);
  if (dtype == DType::Bool &&
      std::any_of(first, first + bytes, [](uint8_t byte) { return byte > 1; })) {
    refuse("expected booleans of 0 and 1");
  }
  return view;
}

// Until it is handed over the struct stays the caller's.
template <class Managed>
Tensor take(Managed* managed, const DLTensor& tensor, bool writable) {
  struct Owner {
    Managed* managed = nullptr;
    ~Owner() {
      if (managed && managed->deleter) managed->deleter(managed);
    }
  };
  auto owner = std::make_shared<Owner>();
  Tensor result = viewOf(tensor, owner, writable);
  owner->managed = managed;
  return result;
}

// What stands behind a struct that was given out.
template <class Managed>
struct Given {
  Managed managed{};
  Ref<Storage> lent;  // keeps the memory, and keeps it where it is
  DimVector sizes;
  DimVector strides;
};

DLDataType typeOf(DType dtype) {
  for (const DTypeRow& row : kDTypes) {
    if (row.dtype == dtype) return {row.code, row.bits, 1};
  }
  throw InternalError(__FILE__, __LINE__,
                      fmt::format("no type for elements of {}", toString(dtype)));
}

// UsageError unless the tensor is one of elements at strides.
void checkGivable(const Tensor& tensor) {
  if (!tensor.defined()) refuse("expected a tensor, got an undefined one");
  if (tensor.kind() != TensorKind::Dense) {
    refuse("expected a dense tensor, got a {} one", toString(tensor.kind()));
  }
}

// A loan of the tensor's memory: whatever becomes of the tensor, the memory stays.
Ref<Storage> lentStorage(const Tensor& tensor) {
  const Ref<Storage>& memory = tensor.storage();
  return Storage::borrow(memory->data(), memory->bytes(),
                         std::make_shared<const Ref<Storage>>(memory), {}, memory->writable());
}

template <class Managed>
Managed* give(const Tensor& tensor) {
  if (!tensor.device().isCpu()) {
    refuse("expected a tensor on the CPU, got one on {}", tensor.device().str());
  }
  auto given = std::make_unique<Given<Managed>>();
  given->lent = lentStorage(tensor);
  given->sizes = DimVector(tensor.sizes());
  given->strides = DimVector(tensor.strides());
  DLTensor& out = given->managed.dl_tensor;
  out.data = tensor.numel() > 0 ? tensor.rawData() : nullptr;
  out.device = {kCpu, 0};
  out.ndim = static_cast<int32_t>(tensor.dim());
  out.dtype = typeOf(tensor.dtype());
  out.shape = given->sizes.data();
  out.strides = given->strides.data();
  out.byte_offset = 0;
  given->managed.manager_ctx = given.get();
  given->managed.deleter = [](Managed* self) {
    delete static_cast<Given<Managed>*>(self->manager_ctx);
  };
  return &given.release()->managed;
}

}  // namespace

Tensor fromDLPack(DLManagedTensor* managed) {
  if (!managed) refuse("expected a tensor, got null");
  return take(managed, managed->dl_tensor, /*writable=*/true);
}

Tensor fromDLPack(DLManagedTensorVersioned* managed) {
  if (!managed) refuse("expected a tensor, got null");
  // In another major version only the deleter is known to be where it is here.
  if (managed->version.major != kMajor) {
    refuse("expected version {}, got {}.{}", kMajor, managed->version.major,
           managed->version.minor);
  }
  return take(managed, managed->dl_tensor, (managed->flags & kReadOnly) == 0);
}

DLManagedTensor* toDLPack(const Tensor& tensor) {
  checkGivable(tensor);
  if (!tensor.storage()->writable()) {
    refuse("the memory of the tensor must not be written, which only the versioned form can say");
  }
  return give<DLManagedTensor>(tensor);
}

DLManagedTensorVersioned* toVersionedDLPack(const Tensor& tensor) {
  checkGivable(tensor);
  DLManagedTensorVersioned* managed = give<DLManagedTensorVersioned>(tensor);
  managed->version = {kMajor, 0};
  managed->flags = tensor.storage()->writable() ? 0 : kReadOnly;
  return managed;
}

}  // namespace wick
