// Calls of functions of the program on PyTorch's tensors, without a look at their code.
#pragma once

#include <vector>

#include "capture/world.h"
#include "python/torch_library.h"

namespace wick::python {

class FakeRecording;

// Calls the function with stand-ins for the fakes among its arguments: tensors of PyTorch's without
// memory, whose operators the recording gets. Returns its result with fakes. Throws GraphBreak.
capture::Object callTorchOpaque(FakeRecording& recording, const TorchLibrary& library,
                                PyObject* function, const std::vector<PyObject*>& arguments,
                                PyObject* names);

// Adds the class that python/wick/_torch_opaque.py uses.
void addTorchOpaque(PyObject* module);

}  // namespace wick::python
