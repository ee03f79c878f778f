#include "capture/values/module.h"

#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/dict.h"

namespace wick::capture {

void ModuleVariable::guard(Capture& capture) {
  if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
}

// The dict of a module is also the globals of its functions: one variable for both.
DictVariable* ModuleVariable::names(Capture& capture) {
  if (!names_) {
    names_ = capture.as<DictVariable>(capture.pinned(PyModule_GetDict(object.get())));
    if (!names_) throw InternalError(__FILE__, __LINE__, "a module without a dict");
  }
  return names_;
}

Variable* ModuleVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__dict__") == 0) return names(capture);
  PyObject* const dict = PyModule_GetDict(object.get());
  if (!PyDict_GetItemWithError(dict, name)) {
    if (capture.world.isLibrary(object.get())) {
      // A library's module makes names when they are first asked for, and keeps them.
      const Object found = Object::own(PyObject_GetAttr(object.get(), name));
      if (!found) capture.raiseCurrent();
      if (!PyDict_GetItemWithError(dict, name)) return capture.pinned(found.get());
    } else {
      static const Object& kGetAttr =
          forever(Object::checked(PyUnicode_InternFromString("__getattr__")));
      if (PyDict_GetItemWithError(dict, kGetAttr.get()) || type() != &PyModule_Type) {
        breakGraph(fmt::format("'{}' of a module that makes its names", PyUnicode_AsUTF8(name)));
      }
    }
  }
  if (Variable* found = names(capture)->find(capture, name)) {
    // Modules of C and of the library keep their constants.
    if (!PyModule_GetDef(object.get()) && !capture.world.isLibrary(object.get())) {
      capture.checkLasting(*this, *found);
    }
    return found;
  }
  const char* const own = PyModule_GetName(object.get());
  capture.raise(PyExc_AttributeError, fmt::format("module '{}' has no attribute '{}'",
                                                  own ? own : "?", PyUnicode_AsUTF8(name)));
}

void ModuleVariable::setAttribute(Capture& capture, PyObject* name, Variable* value) {
  if (value) return names(capture)->set(capture, name, nullptr, value);
  if (!names(capture)->erase(capture, name))
    capture.raise(PyExc_AttributeError, PyUnicode_AsUTF8(name));
}

int ModuleVariable::build(Builder& builder) {
  return builder.constant(object.get());
}

}  // namespace wick::capture
