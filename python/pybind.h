// For parts of the module that are written with pybind11: values as arguments and results.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/convert.h"
#include "python/object.h"
#include "python/tensor_object.h"

namespace wick::python {
namespace py = pybind11;

inline py::object given(PyObject* reference) {
  if (!reference) throw PythonError();
  return py::reinterpret_steal<py::object>(reference);
}
inline py::object pythonOf(const IValue& value) {
  return given(toPython(value));
}
inline IValue valueOf(const py::handle& object) {
  return toValue(object.ptr());
}
inline std::vector<IValue> valuesOf(const py::args& args) {
  std::vector<IValue> out;
  for (const py::handle& arg : args) out.push_back(valueOf(arg));
  return out;
}
inline Tensor givenTensor(const py::handle& object, const char* what) {
  return object.is_none() ? Tensor() : tensorOf(object.ptr(), what);
}

}  // namespace wick::python
