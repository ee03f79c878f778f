// Attributes: how classes, descriptors and the dicts of instances make them.
#include <fmt/format.h>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/instance.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/builtin.h"
#include "capture/values/class.h"
#include "capture/values/constant.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"
#include "capture/values/function.h"
#include "capture/values/instance.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

Object name(const char* text) {
  return Object::checked(PyUnicode_InternFromString(text));
}

// The class functools.cached_property.
PyTypeObject* cachedProperty() {
  static PyObject* const found = libraryObject("functools", "cached_property");
  return reinterpret_cast<PyTypeObject*>(found);
}

// A part of a property, static method or class method, which are immutable.
Variable* part(Capture& capture, PyObject* descriptor, const char* text) {
  return capture.pinned(Object::checked(PyObject_GetAttrString(descriptor, text)).get());
}

// Whether the descriptor's __get__ is written in Python.
PyObject* specialOf(PyObject* descriptor, const char* text) {
  PyObject* const found = findTypeItem(Py_TYPE(descriptor), name(text).get());
  return found && PyFunction_Check(found) ? found : nullptr;
}

Variable* cachedValue(Capture& capture, PyObject* descriptor, InstanceVariable* instance) {
  const Object key = Object::checked(PyObject_GetAttrString(descriptor, "attrname"));
  if (!PyUnicode_Check(key.get())) breakGraph("a cached_property without a name");
  Variable* const made = callVariable(capture, part(capture, descriptor, "func"), {{instance}, {}});
  instance->attributes(capture)->set(capture, key.get(), nullptr, made);
  return made;
}

// A descriptor that C code made for a class: a slot, a member, a computed attribute.
Variable* readNative(Capture& capture, PyObject* descriptor, Variable* variable) {
  PyObject* const text = reinterpret_cast<PyDescrObject*>(descriptor)->d_name;
  if (is(text, "__class__")) return capture.pinned(reinterpret_cast<PyObject*>(variable->type()));
  auto* const instance = dynamic_cast<InstanceVariable*>(variable);
  if (instance && (PyObject_TypeCheck(descriptor, &PyMemberDescr_Type) || variable->object)) {
    return instance->member(capture, text);
  }
  breakGraph(fmt::format("'{}' of {}", PyUnicode_AsUTF8(text), describe(*variable)));
}

Variable* missing(Capture& capture, Variable* variable, PyObject* attribute) {
  try {
    capture.raise(PyExc_AttributeError,
                  fmt::format("'{}' object has no attribute '{}'", variable->type()->tp_name,
                              PyUnicode_AsUTF8(attribute)));
  } catch (const Raised& raised) {
    auto* const exception = dynamic_cast<ExceptionVariable*>(raised.exception);
    exception->setMember(name("name").get(), capture.constant(attribute));
    exception->setMember(name("obj").get(), variable);
    throw;
  }
}

bool isDataDescriptor(PyObject* found) {
  return Py_TYPE(found)->tp_descr_set != nullptr;
}

}  // namespace

Variable* bindAttribute(Capture& capture, PyObject* found, Variable* variable, PyTypeObject* type) {
  PyTypeObject* const kind = Py_TYPE(found);
  const auto of_class = [&] { return capture.pinned(reinterpret_cast<PyObject*>(type)); };
  if (PyFunction_Check(found)) {
    Variable* const function = capture.pinned(found);
    return variable ? capture.make<MethodVariable>(function, variable) : function;
  }
  if (kind == &PyStaticMethod_Type) return part(capture, found, "__func__");
  if (kind == &PyClassMethod_Type) {
    return capture.make<MethodVariable>(part(capture, found, "__func__"), of_class());
  }
  if (PyObject_TypeCheck(found, &PyClassMethodDescr_Type)) {
    return capture.make<BoundVariable>(
        of_class(), Object::share(reinterpret_cast<PyDescrObject*>(found)->d_name),
        Object::share(found));
  }
  if (!kind->tp_descr_get) return capture.pinned(found);
  if (!variable) {
    // Properties, slots and methods of C are themselves when the class is asked.
    if (kind == &PyProperty_Type || !specialOf(found, "__get__")) return capture.pinned(found);
  }
  if (kind == &PyProperty_Type ||
      (PyType_IsSubtype(kind, &PyProperty_Type) && !specialOf(found, "__get__"))) {
    const Object getter = Object::checked(PyObject_GetAttrString(found, "fget"));
    if (getter.get() == Py_None) {
      capture.raise(PyExc_AttributeError, "unreadable attribute");
    }
    return callVariable(capture, capture.pinned(getter.get()), {{variable}, {}});
  }
  if (PyObject_TypeCheck(found, &PyMethodDescr_Type) ||
      PyObject_TypeCheck(found, &PyWrapperDescr_Type)) {
    return capture.make<BoundVariable>(
        variable, Object::share(reinterpret_cast<PyDescrObject*>(found)->d_name),
        Object::share(found));
  }
  if (PyObject_TypeCheck(found, &PyMemberDescr_Type) ||
      PyObject_TypeCheck(found, &PyGetSetDescr_Type)) {
    return readNative(capture, found, variable);
  }
  if (kind == cachedProperty()) {
    if (auto* instance = dynamic_cast<InstanceVariable*>(variable)) {
      return cachedValue(capture, found, instance);
    }
  }
  if (kind == cachedCallType()) {
    return capture.make<MethodVariable>(capture.pinned(found), variable);
  }
  if (PyObject* getter = specialOf(found, "__get__")) {
    Variable* const none = capture.constant(Py_None);
    return callVariable(capture, capture.pinned(getter),
                        {{capture.pinned(found), variable ? variable : none, of_class()}, {}});
  }
  if (capture.world.calleeOf(found) != Callee::kUnknown) {
    Variable* const function = capture.pinned(found);
    return variable ? capture.make<MethodVariable>(function, variable) : function;
  }
  breakGraph(fmt::format("a descriptor of the class {}", kind->tp_name));
}

bool setByDescriptor(Capture& capture, PyObject* descriptor, Variable* variable, Variable* value) {
  if (PyType_IsSubtype(Py_TYPE(descriptor), &PyProperty_Type)) {
    const Object setter =
        Object::checked(PyObject_GetAttrString(descriptor, value ? "fset" : "fdel"));
    if (setter.get() == Py_None) {
      breakGraph("a property that cannot be set");
    }
    std::vector<Variable*> given{variable};
    if (value) given.push_back(value);
    callVariable(capture, capture.pinned(setter.get()), {std::move(given), {}});
    return true;
  }
  PyObject* const setter = specialOf(descriptor, value ? "__set__" : "__delete__");
  if (!setter) return false;
  std::vector<Variable*> given{capture.pinned(descriptor), variable};
  if (value) given.push_back(value);
  callVariable(capture, capture.pinned(setter), {std::move(given), {}});
  return true;
}

Variable* getPlainly(Capture& capture, Variable* variable, PyObject* attribute) {
  PyTypeObject* const type = variable->type();
  PyObject* const found = findTypeItem(type, attribute);
  auto* const instance = dynamic_cast<InstanceVariable*>(variable);
  if (found && isDataDescriptor(found) && !(instance && is(attribute, "__dict__"))) {
    return bindAttribute(capture, found, variable, type);
  }
  if (instance && is(attribute, "__dict__")) return instance->attributes(capture);
  if (instance && type->tp_dictoffset != 0) {
    if (Variable* own = instance->attributes(capture)->find(capture, attribute)) {
      return capture.checkLasting(*instance, *own), own;
    }
  }
  if (auto* derived = dynamic_cast<DerivedDictVariable*>(variable);
      derived && type->tp_dictoffset != 0) {
    if (Variable* own = derived->attributes(capture)->find(capture, attribute)) return own;
  } else if (!instance && type->tp_dictoffset != 0 && variable->object) {
    // Subclasses of dict and tuple may have attributes of their own.
    if (Variable* own = capture.attributesOf(variable)->find(capture, attribute)) return own;
  }
  if (found) return bindAttribute(capture, found, variable, type);
  return missing(capture, variable, attribute);
}

namespace {

bool isAttributeError(const Raised& raised) {
  return PyType_IsSubtype(raised.exception->type(),
                          reinterpret_cast<PyTypeObject*>(PyExc_AttributeError));
}

Variable* attributeOf(Capture& capture, Variable* variable, PyObject* attribute) {
  capture.use(variable);
  if (is(attribute, "__class__")) {
    return capture.pinned(reinterpret_cast<PyObject*>(variable->type()));
  }
  if (Variable* own = variable->ownAttribute(capture, attribute)) return own;
  PyTypeObject* const type = variable->type();
  static const Object &kGetAttribute = forever(name("__getattribute__")),
                      &kGetAttr = forever(name("__getattr__"));
  PyObject* const reader = findTypeItem(type, kGetAttribute.get());
  if (reader && PyFunction_Check(reader)) {
    return callVariable(capture, bindAttribute(capture, reader, variable, type),
                        {{capture.constant(attribute)}, {}});
  }
  PyObject* const fallback = findTypeItem(type, kGetAttr.get());
  if (!fallback) return getPlainly(capture, variable, attribute);
  try {
    return getPlainly(capture, variable, attribute);
  } catch (const Raised& raised) {
    if (!isAttributeError(raised)) throw;
  }
  return callVariable(capture, bindAttribute(capture, fallback, variable, type),
                      {{capture.constant(attribute)}, {}});
}

}  // namespace

Variable* getAttribute(Capture& capture, Variable* variable, PyObject* attribute) {
  return attributeOf(capture, variable, attribute);
}

Variable* findAttribute(Capture& capture, Variable* variable, PyObject* attribute) {
  try {
    return attributeOf(capture, variable, attribute);
  } catch (const Raised& raised) {
    if (!isAttributeError(raised)) throw;
    return nullptr;
  }
}

void setAttribute(Capture& capture, Variable* variable, PyObject* attribute, Variable* value) {
  capture.use(variable);
  const char* const method = value ? "__setattr__" : "__delattr__";
  PyObject* const own = specialMethod(*variable, method);
  if (!own || !PyFunction_Check(own)) return variable->setAttribute(capture, attribute, value);
  std::vector<Variable*> given{capture.constant(attribute)};
  if (value) given.push_back(value);
  callSpecial(capture, variable, method, std::move(given));
}

}  // namespace wick::capture
