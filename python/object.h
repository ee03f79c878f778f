// Owning pointers to Python objects, and the way of errors between C++ and Python.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <exception>
#include <string>
#include <utility>

#include "python/fork_gate.h"

namespace wick::python {

// Thrown where a Python exception is set already.
struct PythonError : std::exception {
  const char* what() const noexcept override { return "a Python exception"; }
};

// An owned reference, or null.
class Owned {
 public:
  Owned() = default;
  explicit Owned(PyObject* object) : object_(object) {}
  Owned(Owned&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(Owned&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Owned() { Py_XDECREF(object_); }
  static Owned share(PyObject* object) {
    Py_XINCREF(object);
    return Owned(object);
  }
  PyObject* get() const { return object_; }
  PyObject* leak() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// A new reference from the API of Python; throws when it is null.
inline Owned checked(PyObject* object) {
  if (!object) throw PythonError();
  return Owned(object);
}
inline void check(int status) {
  if (status < 0) throw PythonError();
}
// Sets a Python exception and throws.
[[noreturn]] void raise(PyObject* type, const std::string& message);

// Makes a Python exception of the one that is being handled, by its class. Only within `catch`.
void setPythonError() noexcept;
// The other way: a RuntimeError of Wick's that has the class and text of the Python exception that
// is set, which is cleared. For Python code that Wick calls; setPythonError() raises the exception
// itself again.
[[noreturn]] void throwFromPython();

// Runs C++ for Python: exceptions become Python's, the result is null then.
template <class F>
PyObject* guarded(F&& f) noexcept {
  try {
    return f();
  } catch (...) {
    setPythonError();
    return nullptr;
  }
}
template <class F>
int guardedStatus(F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (...) {
    setPythonError();
    return -1;
  }
}

// A function with keywords as tables of methods take it.
template <class F>
PyCFunction methodOf(F* function) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

// Lets other threads of Python run while C++ computes.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) { enterEngine(); }
  ~WithoutGil() {
    leaveEngine();
    PyEval_RestoreThread(state_);
  }
  WithoutGil(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// What `f` gives, computed so.
template <class F>
auto withoutGil(F&& f) {
  const WithoutGil others;
  return f();
}

// For C++ that may run on any thread, or after the interpreter's end.
class WithGil {
 public:
  WithGil();
  ~WithGil();
  WithGil(const WithGil&) = delete;
  // Whether Python may be used at all: not while or after the interpreter ends.
  bool usable() const { return usable_; }

 private:
  bool usable_;
  PyGILState_STATE state_{};
};

// A reference that may be given up on any thread, at any time: after the interpreter's end the
// object is left alone.
class SharedObject {
 public:
  explicit SharedObject(Owned object) : object_(object.leak()) {}
  ~SharedObject();
  SharedObject(const SharedObject&) = delete;
  PyObject* get() const { return object_; }

 private:
  PyObject* object_;
};

}  // namespace wick::python
