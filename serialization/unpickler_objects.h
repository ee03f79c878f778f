// Operands of a pickle program that are not values: callables and storages. Private to the
// unpickler.
#pragma once

#include <optional>
#include <string>

#include "serialization/unpickler.h"

namespace wick {

class Unpickler::GlobalObject : public RefCounted {
 public:
  enum class Kind {
    RebuildTensor,
    RebuildTensorWithDType,
    RebuildSparse,
    RebuildParameter,
    RebuildQuantized,
    RebuildFromType,
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
  StorageObject(Ref<Storage> storage, std::optional<DType> dtype)
      : storage(std::move(storage)), dtype(dtype) {}
  const Ref<Storage> storage;
  const std::optional<DType> dtype;
};

}  // namespace wick
