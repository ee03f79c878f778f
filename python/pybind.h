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

// Objects of the class come of functions alone. One that Python made by `__new__` would hold nothing, and
// pybind11 would use it.
inline void forbidNew(const py::handle& type) {
  auto* const object = reinterpret_cast<PyTypeObject*>(type.ptr());
  object->tp_new = [](PyTypeObject* of, PyObject*, PyObject*) -> PyObject* {
    PyErr_Format(PyExc_TypeError, "cannot create '%s' instances", of->tp_name);
    return nullptr;
  };
  PyType_Modified(object);
}

// The text of a name. TypeError for anything else, UnicodeEncodeError for what is no text.
inline std::string textIn(const py::handle& name) {
  if (!PyUnicode_Check(name.ptr())) {
    PyErr_Format(PyExc_TypeError, "expected a str as a name, got %s", Py_TYPE(name.ptr())->tp_name);
    throw PythonError();
  }
  Py_ssize_t length = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name.ptr(), &length);
  if (!text) throw PythonError();
  return std::string(text, static_cast<size_t>(length));
}

}  // namespace wick::python
