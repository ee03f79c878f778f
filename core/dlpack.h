// Tensors from other libraries and for them, without copies, by the structs of DLPack.
//
// A struct that is given out holds the tensor until whoever took it calls its deleter. One that is
// taken in is ours once the function returns: its deleter is called when the last tensor on it is
// gone; when the function throws it stays the caller's. Only memory of the CPU passes.
#pragma once

#include "core/tensor.h"

// As dlpack/dlpack.h declares them; an application that looks into them includes that.
struct DLManagedTensor;
struct DLManagedTensorVersioned;

#pragma GCC visibility push(default)

namespace wick {

// UsageError for null, and for a device, dtype or layout that the engine does not have.
Tensor fromDLPack(DLManagedTensor* managed);
Tensor fromDLPack(DLManagedTensorVersioned* managed);
// UsageError for an undefined tensor, and for memory that must not be written, which only the
// versioned form tells.
DLManagedTensor* toDLPack(const Tensor& tensor);
DLManagedTensorVersioned* toVersionedDLPack(const Tensor& tensor);

}  // namespace wick

#pragma GCC visibility pop
