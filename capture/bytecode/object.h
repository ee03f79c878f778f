// Owning pointers to Python objects, and the errors of this room.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <exception>
#include <utility>

#include "core/error_types.h"

static_assert(PY_VERSION_HEX >> 16 == 0x030B, "capture/bytecode/ is written for CPython 3.11");

namespace wick::capture {

// A code object that says something impossible, or code that cannot be written as one. The message
// names the instruction or the entry.
class BytecodeError : public Error {
 public:
  using Error::Error;
};

// Thrown where a Python exception is set already.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python exception"; }
};

// An owned reference, or null. The caller holds the GIL.
class Object {
 public:
  Object() = default;
  Object(const Object& other) : object_(other.object_) { Py_XINCREF(object_); }
  Object(Object&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Object& operator=(Object other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Object() { Py_XDECREF(object_); }
  // Takes over a reference.
  static Object own(PyObject* object) {
    Object result;
    result.object_ = object;
    return result;
  }
  // Adds a reference.
  static Object share(PyObject* object) {
    Py_XINCREF(object);
    return own(object);
  }
  // Takes over a new reference that the API of Python returned; throws PythonError when it is null.
  static Object checked(PyObject* object) {
    if (!object) throw PythonError();
    return own(object);
  }
  PyObject* get() const { return object_; }
  PyObject* leak() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Keeps an object until the process ends, for static variables: Python is gone before they are.
inline const Object& forever(Object object) {
  return *new Object(std::move(object));
}

}  // namespace wick::capture
