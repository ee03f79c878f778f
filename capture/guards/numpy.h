// Objects of numpy, which may be missing: nothing of it is linked, and nothing imports it.
#pragma once

#include <memory>
#include <string_view>

#include "capture/guards/source.h"

namespace wick::capture {

// Returns the class numpy.ndarray (borrowed, for good); null while numpy is not imported.
PyTypeObject* arrayClass();
// Returns whether the object is an array of exactly that class.
bool isArray(PyObject* object);
// Returns whether the object is a number of numpy's own classes, such as np.float32(3).
bool isArrayNumber(PyObject* object);
// Returns whether functions of the file belong to numpy.
bool isFileOfNumpy(std::string_view file);
// Returns the function that numpy's functions call with what they are implemented by; null while there is none.
PyObject* arrayDispatcher();
// Returns whether two numbers of numpy are of one class, and equal bit for bit.
bool isSameArrayNumber(PyObject* a, PyObject* b);
// Returns whether the object is a function of the class numpy.ufunc.
bool isUniversalFunction(PyObject* object);
// Returns whether the object is a dtype of numpy, one of those that exist once.
bool isArrayDType(PyObject* object);
// Returns the guard for an array that a graph reads: class, dtype, sizes, strides, and whether it may be written to. Throws
// GraphBreak for arrays that graphs do not take.
std::shared_ptr<const TensorGuard> arrayGuard(PyObject* array);

}  // namespace wick::capture
