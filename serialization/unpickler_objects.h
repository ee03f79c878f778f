// Operands of a pickle program that are not values: callables, storages and arrays of NumPy. Private to the
// unpickler.
#pragma once

#include <optional>
#include <string>

#include "serialization/unpickler.h"

namespace wick {

// Bytes that the budget loses for a tensor and its handle.
inline constexpr uint64_t kTensorMemory = 512;

class Unpickler::GlobalObject : public RefCounted {
 public:
  enum class Kind {
    RebuildTensor,
    RebuildTensorWithDType,
    RebuildSparse,
    RebuildParameter,
    RebuildQuantized,
    RebuildFromType,
    RebuildMeta,
    RebuildFromCpu,
    RebuildFromArray,
    NewArray,
    ArrayClass,
    ArrayDType,
    EncodeText,
    NoBytes,
    Device,
    Size,
    Layout,
    OrderedDict,
    Complex,
    IntList,
    DoubleList,
    BoolList,
    TensorList,
    RestoreTypeTag,
    StorageClass,
    TensorClass,
    Type,
  };
  GlobalObject(Kind kind, std::string name) : kind(kind), name(std::move(name)) {}
  const Kind kind;
  const std::string name;
  std::optional<DType> dtype;  // of a storage class; absent for untyped ones
  TypePtr type;                // of script classes and enums
};

class Unpickler::StorageObject : public RefCounted {
 public:
  StorageObject(Ref<Storage> storage, std::optional<DType> dtype, Device device, bool from_cpu)
      : storage(std::move(storage)), dtype(dtype), device(device), from_cpu(from_cpu) {}
  const Ref<Storage> storage;
  const std::optional<DType> dtype;
  const Device device;  // where its tensors go
  const bool from_cpu;  // it was saved there
};

class Unpickler::ArrayDTypeObject : public RefCounted {
 public:
  explicit ArrayDTypeObject(DType dtype) : dtype(dtype) {}
  const DType dtype;
};

class Unpickler::ArrayObject : public RefCounted {
 public:
  Tensor tensor;  // undefined before the array has its elements
};

}  // namespace wick
