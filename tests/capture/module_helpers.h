// Helpers for modules in C++ that tests in Python are written against.
#pragma once

#include <utility>

#include "capture/bytecode/decode.h"

namespace wick::capture {

// The module's exception class for BytecodeError: its init function sets it.
inline PyObject* bytecode_error = nullptr;

// Runs C++ for Python.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f().leak();
  } catch (const PythonError&) {
  } catch (const BytecodeError& error) {
    PyErr_SetString(bytecode_error, error.what());
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
  return nullptr;
}

template <class... Args>
Object built(const char* format, Args... args) {
  return Object::checked(Py_BuildValue(format, args...));
}

template <class... Args>
void parse(PyObject* args, const char* format, Args... targets) {
  if (!PyArg_ParseTuple(args, format, targets...)) throw PythonError();
}

inline void append(const Object& list, const Object& element) {
  if (PyList_Append(list.get(), element.get()) < 0) throw PythonError();
}

inline DecodedCode decoded(PyObject* code) {
  return decode(reinterpret_cast<PyCodeObject*>(code));
}

// Makes the module with its class BytecodeError, whose full name is given.
inline PyObject* makeModule(PyModuleDef& definition, const char* error_name) {
  PyObject* module = PyModule_Create(&definition);
  if (!module) return nullptr;
  bytecode_error = PyErr_NewException(error_name, PyExc_ValueError, nullptr);
  if (!bytecode_error || PyModule_AddObjectRef(module, "BytecodeError", bytecode_error) < 0) {
    Py_DECREF(module);
    return nullptr;
  }
  return module;
}

}  // namespace wick::capture
