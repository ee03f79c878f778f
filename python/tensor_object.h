// wick.Tensor: the Python object around a Tensor.
#pragma once

#include <optional>

#include "core/ivalue.h"
#include "python/object.h"

namespace wick::python {

struct TensorObject {
  PyObject_HEAD Tensor tensor;
  PyObject* weak_references;
};

// The class; Python may derive others from it (nn.Parameter).
extern PyTypeObject* tensor_type;

inline bool isTensor(PyObject* object) {
  return Py_TYPE(object) == tensor_type || PyType_IsSubtype(Py_TYPE(object), tensor_type);
}
// Unchecked.
inline const Tensor& tensorIn(PyObject* object) {
  return reinterpret_cast<TensorObject*>(object)->tensor;
}
// TypeError that begins with `what` unless it is a tensor.
const Tensor& tensorOf(PyObject* object, const char* what);
// Of a leaf; RuntimeError for one of integers.
void markRequiresGrad(const Tensor& tensor);
// A new object; None for an undefined tensor.
PyObject* tensorObject(Tensor tensor);

// x[index] and x[index] = value (indexing.cpp).
PyObject* getItem(PyObject* self, PyObject* index);
int setItem(PyObject* self, PyObject* index, PyObject* value);

// What torch.tensor makes of numbers, sequences, arrays and tensors (construct.cpp): a copy.
// Nullopt: the dtype follows from the data.
Tensor tensorFromData(PyObject* data, std::optional<DType> dtype, const char* what);

// A tensor on the memory of an object with the buffer protocol or an array (exchange.cpp).
Tensor tensorFromArray(PyObject* array);
// Whether it is a numpy.ndarray or a numpy scalar; false while numpy is not imported.
bool isArray(PyObject* object);
PyObject* toNumpy(const Tensor& tensor);

// A number as Python has it.
PyObject* itemOf(const Tensor& tensor);

}  // namespace wick::python
