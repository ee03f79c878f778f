#include "capture/values/class.h"

#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/constant.h"
#include "capture/values/derived_dict.h"
#include "capture/values/instance.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"

namespace wick::capture {
namespace {

Object name(const char* text) {
  return Object::checked(PyUnicode_InternFromString(text));
}

PyTypeObject* enumMeta() {
  static PyObject* const found = libraryObject("enum", "EnumMeta");
  return reinterpret_cast<PyTypeObject*>(found);
}

}  // namespace

namespace {

// Whether the class is an exception that holds its arguments and attributes, and nothing else.
bool isPlainException(PyTypeObject* type) {
  auto* const base = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  if (!PyType_IsSubtype(type, base)) return false;
  PyTypeObject* native = type;
  while (native->tp_flags & Py_TPFLAGS_HEAPTYPE) native = native->tp_base;
  return native->tp_basicsize == base->tp_basicsize ||
         native == reinterpret_cast<PyTypeObject*>(PyExc_StopIteration) ||
         native == reinterpret_cast<PyTypeObject*>(PyExc_AttributeError) ||
         native == reinterpret_cast<PyTypeObject*>(PyExc_NameError) ||
         native == reinterpret_cast<PyTypeObject*>(PyExc_UnboundLocalError);
}

}  // namespace

bool isEnum(PyTypeObject* type) {
  return PyType_IsSubtype(Py_TYPE(type), enumMeta());
}

void ClassVariable::guard(Capture& capture) {
  const bool heap = (classObject()->tp_flags & Py_TPFLAGS_HEAPTYPE) != 0;
  const int64_t version = heap ? typeVersion(classObject()) : 0;
  if (heap && version == 0) breakGraph(fmt::format("{} was changed too often", describe(*this)));
  Source* const at = source ? source : capture.guards.root(Access::kPinned, 0, object.get());
  // The version belongs to the class itself.
  capture.guards.add(at, {Check::Kind::kIdentity, object, version, {}});
}

Variable* ClassVariable::ownAttribute(Capture& capture, PyObject* attribute) {
  PyTypeObject* const meta = type();
  if (PyUnicode_CompareWithASCIIString(attribute, "__dict__") == 0)
    breakGraph("the dict of a class");
  PyObject* const of_meta = findTypeItem(meta, attribute);
  if (of_meta && Py_TYPE(of_meta)->tp_descr_set) {
    // __name__, __module__, __mro__, __doc__ and their like.
    return capture.concretely([&] {
      return capture.pinned(Object::checked(PyObject_GetAttr(object.get(), attribute)).get());
    });
  }
  PyObject* const found = findTypeItem(classObject(), attribute);
  if (isEnum(classObject())) {
    return capture.concretely([&] {
      return capture.pinned(Object::checked(PyObject_GetAttr(object.get(), attribute)).get());
    });
  }
  if (found) return bindAttribute(capture, found, nullptr, classObject());
  if (of_meta) return bindAttribute(capture, of_meta, this, meta);
  if (capture.world.isTensorType(classObject())) {
    return capture.concretely([&] {
      return capture.pinned(Object::checked(PyObject_GetAttr(object.get(), attribute)).get());
    });
  }
  capture.raise(PyExc_AttributeError,
                fmt::format("type object '{}' has no attribute '{}'", classObject()->tp_name,
                            PyUnicode_AsUTF8(attribute)));
}

Variable* ClassVariable::makeInstance(Capture& capture, const Arguments& given) {
  PyTypeObject* const made_type = classObject();
  static const Object &kNew = forever(name("__new__")), &kInit = forever(name("__init__"));
  PyObject* const maker = findTypeItem(made_type, kNew.get());
  PyObject* const init = findTypeItem(made_type, kInit.get());
  auto* const base = reinterpret_cast<PyTypeObject*>(PyExc_BaseException);
  if (made_type->tp_finalize || made_type->tp_del) {
    breakGraph(fmt::format("an object of the class {} is made, which has a finalizer",
                           made_type->tp_name));
  }
  Variable* made = nullptr;
  if (maker == findTypeItem(&PyBaseObject_Type, kNew.get())) {
    if (made_type->tp_flags & Py_TPFLAGS_IS_ABSTRACT) breakGraph("an abstract class is called");
    if (!given.empty() && init == findTypeItem(&PyBaseObject_Type, kInit.get())) {
      capture.raise(PyExc_TypeError, fmt::format("{}() takes no arguments", made_type->tp_name));
    }
    made = capture.make<InstanceVariable>(made_type);
  } else if (isPlainException(made_type) && !PyFunction_Check(maker) &&
             Py_TYPE(maker) != &PyStaticMethod_Type) {
    if (!given.keywords.empty() && init == findTypeItem(base, kInit.get())) {
      breakGraph("an exception is made with keywords");
    }
    made = capture.make<ExceptionVariable>(made_type, given.positional);
  } else if (isDerivedDict(made_type) && maker == findTypeItem(&PyDict_Type, kNew.get())) {
    made = capture.make<DerivedDictVariable>(made_type);
  } else if (maker == findTypeItem(&PyProperty_Type, kNew.get()) && init &&
             PyFunction_Check(init)) {
    made = capture.make<PropertyVariable>(made_type);
  } else {
    Variable* const function = bindAttribute(capture, maker, nullptr, made_type);
    Arguments all{{this}, given.keywords};
    all.positional.insert(all.positional.end(), given.positional.begin(), given.positional.end());
    made = callVariable(capture, function, all);
  }
  if (!PyType_IsSubtype(made->type(), made_type)) return made;
  if (auto* dict = dynamic_cast<DerivedDictVariable*>(made);
      dict && init == findTypeItem(&PyDict_Type, kInit.get())) {
    if (given.positional.size() > 1) breakGraph("a dict is made of several objects");
    return dict->update(capture, given), dict;
  }
  if (!init || Py_TYPE(init) == &PyWrapperDescr_Type) {
    // An __init__ in C does nothing more than __new__ did, where the class is known.
    if (PyFunction_Check(maker) || dynamic_cast<InstanceVariable*>(made) ||
        dynamic_cast<TupleVariable*>(made)) {
      return made;
    }
    breakGraph(fmt::format("an object of the class {} is made", made_type->tp_name));
  }
  Variable* const result = callVariable(
      capture, bindAttribute(capture, findTypeItem(made->type(), kInit.get()), made, made->type()),
      given);
  if (capture.use(result)->constant() != Py_None) {
    capture.raise(PyExc_TypeError, "__init__() should return None");
  }
  return made;
}

Variable* ClassVariable::call(Capture& capture, const Arguments& given) {
  // A metaclass of the program could have a hash of its own.
  if (!(type()->tp_flags & Py_TPFLAGS_HEAPTYPE)) {
    if (Variable* found = callArrayFunction(capture, object.get(), given)) return found;
  }
  if (Variable* found = callBuiltin(capture, object.get(), given)) return found;
  if (capture.world.isSizeType(classObject()) && given.keywords.empty() &&
      given.positional.size() <= 1) {
    std::vector<Variable*> sizes;
    if (!given.empty()) sizes = elementsOf(capture, given.positional[0]);
    for (Variable* each : sizes) {
      if (capture.use(each)->type() != &PyLong_Type) breakGraph("a size that is no int");
    }
    return capture.make<TupleVariable>(std::move(sizes), classObject());
  }
  if (capture.world.isTensorType(classObject()) ||
      capture.world.calleeOf(object.get()) != Callee::kUnknown) {
    return callWorld(capture, object.get(), given);
  }
  if (isEnum(classObject())) {
    return capture.concretely([&] {
      std::vector<Object> kept;
      std::vector<PyObject*> arguments;
      for (Variable* each : given.positional) {
        kept.push_back(capture.objectFor(each));
        arguments.push_back(kept.back().get());
      }
      if (!given.keywords.empty()) breakGraph("an Enum is called with keywords");
      return capture.pinned(Object::checked(PyObject_Vectorcall(object.get(), arguments.data(),
                                                                arguments.size(), nullptr))
                                .get());
    });
  }
  static const Object& kCall = forever(name("__call__"));
  if (findTypeItem(type(), kCall.get()) != findTypeItem(&PyType_Type, kCall.get())) {
    return callVariable(
        capture, bindAttribute(capture, findTypeItem(type(), kCall.get()), this, type()), given);
  }
  if (!(classObject()->tp_flags & Py_TPFLAGS_HEAPTYPE) &&
      !PyType_IsSubtype(classObject(), reinterpret_cast<PyTypeObject*>(PyExc_BaseException)) &&
      classObject() != &PyBaseObject_Type) {
    breakGraph(fmt::format("an object of the class {} is made", classObject()->tp_name));
  }
  return makeInstance(capture, given);
}

Variable* ClassVariable::item(Capture& capture, Variable* key) {
  static const Object &kItem = forever(name("__getitem__")),
                      &kClassItem = forever(name("__class_getitem__"));
  if (!isEnum(classObject())) {
    PyObject* const of_meta = findTypeItem(type(), kItem.get());
    PyObject* const of_class = findTypeItem(classObject(), kClassItem.get());
    if (of_meta || (of_class && Py_TYPE(of_class) == &PyClassMethod_Type)) {
      Variable* const bound = of_meta ? bindAttribute(capture, of_meta, this, type())
                                      : bindAttribute(capture, of_class, nullptr, classObject());
      return callVariable(capture, bound, {{key}, {}});
    }
  }
  return capture.concretely([&] {
    const Object at = capture.objectFor(key);
    if (!isConstant(at.get()) && !PyType_Check(at.get())) breakGraph("a class with a subscript");
    return capture.pinned(Object::checked(PyObject_GetItem(object.get(), at.get())).get());
  });
}

int64_t ClassVariable::length(Capture& capture) {
  if (!isEnum(classObject())) return Variable::length(capture);
  return capture.concretely([&] {
    const Py_ssize_t found = PyObject_Size(object.get());
    if (found < 0) throw PythonError();
    return static_cast<int64_t>(found);
  });
}

Variable* ClassVariable::iterate(Capture& capture) {
  if (!isEnum(classObject())) {
    capture.raise(PyExc_TypeError, fmt::format("'{}' object is not iterable", type()->tp_name));
  }
  return capture.concretely([&] {
    const Object all = Object::checked(PySequence_List(object.get()));
    std::vector<Variable*> members;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(all.get()); ++i) {
      members.push_back(capture.pinned(PyList_GET_ITEM(all.get(), i)));
    }
    return capture.make<ListVariable>(std::move(members))->iterate(capture);
  });
}

int ClassVariable::build(Builder& builder) {
  return builder.constant(object.get());
}

}  // namespace wick::capture
