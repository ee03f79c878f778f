// Gradients for Python: walks, hooks and functions with derivatives of their own.
#pragma once

#include "python/object.h"

namespace wick::python {

void addAutograd(PyObject* module);
// torch.save's files, safetensors, .npy and .npz.
void addFiles(PyObject* module);

}  // namespace wick::python
