// Tensors and devices of capi/wick.h.
#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <span>

#include "capi/guard.h"
#include "core/dlpack.h"

using namespace wick;
using namespace wick::capi;

namespace {

// Names that stay as long as the process: there are few devices.
const char* nameOf(Device device) {
  static auto* const mutex = new std::mutex;
  static auto* const names = new std::map<std::string, std::string>;
  const std::string name = device.str();
  std::lock_guard lock(*mutex);
  return names->try_emplace(name, name).first->second.c_str();
}

Tensor tensorOf(const IValue& value, const char* function) {
  return asked(function, [&] { return value.tensor(); });
}

}  // namespace

namespace wick::capi {

Device deviceOf(const char* name, const char* function) {
  known(name, function, "device");
  return asked(function, [&] { return Device::parse(name); });
}

DType dtypeOf(wick_dtype number, const char* function) {
  if (auto dtype = dtypeFromNumber(number)) return *dtype;
  throwUsage("{}: there is no dtype {}", function, static_cast<int>(number));
}

}  // namespace wick::capi

extern "C" {

wick_status wick_value_from_data(wick_dtype dtype, const int64_t* sizes, size_t dims,
                                 const void* data, size_t bytes, wick_value** value) {
  constexpr const char* kName = "wick_value_from_data";
  return make(value, kName, [&] {
    if (dims > 0 && !sizes) throwUsage("{}: expected {} sizes, got NULL", kName, dims);
    if (dims > 64) throwUsage("{}: expected at most 64 dimensions, got {}", kName, dims);
    const DType type = dtypeOf(dtype, kName);
    const IntSpan shape(sizes, dims);
    const auto numel = static_cast<size_t>(asked(kName, [&] { return checkedNumel(shape); }));
    if (bytes != numel * itemSize(type)) {
      throwUsage("{}: {} elements of {} take {} bytes, got {}", kName, numel, toString(type),
                 numel * itemSize(type), bytes);
    }
    if (bytes > 0 && !data) throwUsage("{}: data must not be NULL", kName);
    Tensor tensor = Tensor::empty(shape, type);
    if (bytes > 0) std::memcpy(tensor.rawData(), data, bytes);
    if (type == DType::Bool) {
      // Kernels believe that a bool is 0 or 1.
      const std::span all(static_cast<uint8_t*>(tensor.rawData()), bytes);
      std::ranges::transform(all, all.begin(), [](uint8_t byte) { return byte != 0; });
    }
    return IValue(tensor);
  });
}

wick_status wick_value_to_tensor(const wick_value* value, wick_tensor* tensor) {
  constexpr const char* kName = "wick_value_to_tensor";
  return read(value, tensor, kName, [&](const IValue& v) {
    checkSize(tensor->struct_size, sizeof(wick_tensor), "wick_tensor", kName, "tensor");
    const Tensor t = v.tensor();
    if (t.kind() != TensorKind::Dense) {
      throwUsage("{}: expected a dense tensor, got a {} one", kName, toString(t.kind()));
    }
    if (!t.device().isCpu()) {
      throwUsage("{}: expected a tensor on the CPU, got one on {}; wick_tensor_to brings it there",
                 kName, t.device().str());
    }
    wick_tensor out;
    out.struct_size = tensor->struct_size;
    out.dtype = static_cast<wick_dtype>(t.dtype());
    out.dims = t.sizes().size();
    out.sizes = t.sizes().data();
    out.strides = t.strides().data();
    out.data = t.numel() > 0 ? t.rawData() : nullptr;
    out.contiguous = t.isContiguous() ? 1 : 0;
    return out;
  });
}

wick_status wick_value_contiguous(const wick_value* value, wick_value** result) {
  constexpr const char* kName = "wick_value_contiguous";
  return derive(value, result, kName, [&](const IValue& v) {
    return IValue(asked(kName, [&] { return v.tensor(); }).contiguous());
  });
}

wick_status wick_value_from_dlpack(struct DLManagedTensor* tensor, wick_value** value) {
  return make(value, "wick_value_from_dlpack", [&] { return IValue(fromDLPack(tensor)); });
}

wick_status wick_value_from_dlpack_versioned(struct DLManagedTensorVersioned* tensor,
                                             wick_value** value) {
  return make(value, "wick_value_from_dlpack_versioned",
              [&] { return IValue(fromDLPack(tensor)); });
}

wick_status wick_value_to_dlpack(const wick_value* value, struct DLManagedTensor** tensor) {
  constexpr const char* kName = "wick_value_to_dlpack";
  return read(value, tensor, kName, [](const IValue& v) { return toDLPack(v.tensor()); });
}

wick_status wick_value_to_dlpack_versioned(const wick_value* value,
                                           struct DLManagedTensorVersioned** tensor) {
  constexpr const char* kName = "wick_value_to_dlpack_versioned";
  return read(value, tensor, kName, [](const IValue& v) { return toVersionedDLPack(v.tensor()); });
}

wick_status wick_tensor_dtype(const wick_value* tensor, wick_dtype* dtype) {
  return read(tensor, dtype, "wick_tensor_dtype",
              [](const IValue& v) { return static_cast<wick_dtype>(v.tensor().dtype()); });
}

wick_status wick_tensor_sizes(const wick_value* tensor, const int64_t** sizes, size_t* dims) {
  constexpr const char* kName = "wick_tensor_sizes";
  return read(tensor, sizes, kName, [&](const IValue& v) {
    const IntSpan found = v.tensor().sizes();
    known(dims, kName, "dims") = found.size();
    return found.data();
  });
}

wick_status wick_tensor_device(const wick_value* tensor, const char** device) {
  return read(tensor, device, "wick_tensor_device",
              [](const IValue& v) { return nameOf(v.tensor().device()); });
}

wick_status wick_tensor_to(const wick_value* tensor, const char* device, wick_value** result) {
  constexpr const char* kName = "wick_tensor_to";
  return derive(tensor, result, kName, [&](const IValue& v) {
    return IValue(tensorOf(v, kName).to(deviceOf(device, kName)));
  });
}

wick_status wick_tensor_to_dtype(const wick_value* tensor, wick_dtype dtype, wick_value** result) {
  constexpr const char* kName = "wick_tensor_to_dtype";
  return derive(tensor, result, kName, [&](const IValue& v) {
    return IValue(tensorOf(v, kName).to(dtypeOf(dtype, kName)));
  });
}

wick_status wick_device_count(const char* type, int* count) {
  constexpr const char* kName = "wick_device_count";
  return guarded([&] { known(count, kName, "count") = Device::count(deviceOf(type, kName).type); });
}

}  // extern "C"
