// Memory that is shared with other libraries by DLPack.
#pragma once

#include "core/tensor.h"
#include "python/object.h"

namespace wick::python {

// Returns a capsule for another library. BufferError for a tensor that requires a gradient.
PyObject* capsuleFor(const Tensor& tensor, bool versioned = false);
// Takes the memory in a capsule of another library's, which cannot be taken again.
Tensor tensorFromCapsule(PyObject* capsule);

}  // namespace wick::python
