// Special methods of classes, and objects of the standard library.
#include <fmt/format.h>

#include <cmath>

#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/size.h"

namespace wick::capture {
namespace {

bool isNan(PyObject* object) {
  return PyFloat_CheckExact(object) && std::isnan(PyFloat_AS_DOUBLE(object));
}

}  // namespace

bool holdsNan(PyObject* constant) {
  if (!PyTuple_CheckExact(constant)) return isNan(constant);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(constant); ++i) {
    if (holdsNan(PyTuple_GET_ITEM(constant, i))) return true;
  }
  return false;
}

PyObject* libraryObject(const char* module, const char* name) {
  const Object from = Object::checked(PyImport_ImportModule(module));
  // The module keeps it.
  return Object::checked(PyObject_GetAttrString(from.get(), name)).get();
}

PyObject* specialMethod(const Variable& variable, const char* name) {
  const Object text = Object::checked(PyUnicode_InternFromString(name));
  return findTypeItem(variable.type(), text.get());
}

Variable* callSpecial(Capture& capture, Variable* variable, const char* name,
                      std::vector<Variable*> given) {
  PyObject* const found = specialMethod(*variable, name);
  if (!found || found == Py_None) return nullptr;
  return callVariable(capture, bindAttribute(capture, found, variable, variable->type()),
                      {std::move(given), {}});
}

int64_t integerOf(Capture& capture, Variable* number) {
  PyObject* const object = capture.use(number)->constant();
  if (!object) breakGraph(fmt::format("{} is a number for a container", describe(*number)));
  return capture.concretely([&] {
    const Py_ssize_t found = PyNumber_AsSsize_t(object, PyExc_OverflowError);
    if (found == -1 && PyErr_Occurred()) throw PythonError();
    return static_cast<int64_t>(found);
  });
}

bool isEqual(Capture& capture, Variable* left, Variable* right) {
  if (capture.use(left) == capture.use(right)) return true;
  if (holdsSizes(left) || holdsSizes(right)) {
    return truthOf(capture, compare(capture, Py_EQ, left, right));
  }
  PyObject *const a = left->constant(), *const b = right->constant();
  if (a && b) {
    if (holdsNan(a) && holdsNan(b)) breakGraph("the identity of two NaN");
    return capture.concretely([&] {
      const int equal = PyObject_RichCompareBool(a, b, Py_EQ);
      if (equal < 0) throw PythonError();
      return equal != 0;
    });
  }
  return isSame(capture, left, right) || truthOf(capture, compare(capture, Py_EQ, left, right));
}

}  // namespace wick::capture
