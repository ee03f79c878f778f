// What each part adds to the extension module, in the order in which the module asks for it.
#pragma once

#include "python/object.h"

namespace wick::python {

void addErrorClasses(PyObject* module);
void addPlainTypes(PyObject* module);
void addEager(PyObject* module);
void addTensorType(PyObject* module);
void addConstructors(PyObject* module);
// numpy, DLPack and the buffer protocol.
void addExchange(PyObject* module);
// Gradients: walks, hooks and functions with derivatives of their own.
void addAutograd(PyObject* module);
// torch.save's files, safetensors, .npy and .npz.
void addFiles(PyObject* module);
// Functions and modules of Python that the front end compiles, and what is loaded.
void addScript(PyObject* module);
void addTracing(PyObject* module);
void addLazy(PyObject* module);
void addDistributed(PyObject* module);
// wick.compile.
void addCapture(PyObject* module);

}  // namespace wick::python
