#include "capture/values/constant.h"

#include <fmt/format.h>

#include <algorithm>

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/class.h"
#include "capture/values/dict.h"
#include "capture/values/iterators.h"
#include "capture/values/sequence.h"
#include "capture/values/set.h"

namespace wick::capture {
namespace {

constexpr int kMaxNesting = 50;

bool isConstantWithin(PyObject* object, int depth) {
  if (object == Py_None || object == Py_Ellipsis || object == Py_NotImplemented) return true;
  if (isConstantType(Py_TYPE(object))) return true;
  if (depth > kMaxNesting) return false;
  if (PyTuple_CheckExact(object)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      if (!isConstantWithin(PyTuple_GET_ITEM(object, i), depth + 1)) return false;
    }
    return true;
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    return isConstantWithin(slice->start, depth + 1) && isConstantWithin(slice->stop, depth + 1) &&
           isConstantWithin(slice->step, depth + 1);
  }
  return false;
}

Variable* wrapWithin(Capture& capture, PyObject* object, int depth) {
  if (depth > kMaxNesting) breakGraph("values are nested too deeply");
  if (isConstant(object)) {
    return capture.make<ConstantVariable>(Object::share(object), false, true);
  }
  if (PyTuple_Check(object) || PyList_CheckExact(object)) {
    std::vector<Variable*> elements;
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(object);
    for (Py_ssize_t i = 0; i < count; ++i) {
      elements.push_back(wrapWithin(capture, PySequence_Fast_GET_ITEM(object, i), depth + 1));
    }
    if (PyList_CheckExact(object)) return capture.make<ListVariable>(std::move(elements));
    return capture.make<TupleVariable>(std::move(elements), Py_TYPE(object));
  }
  if (PyDict_CheckExact(object)) {
    auto* made = capture.make<DictVariable>(&PyDict_Type);
    Py_ssize_t at = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(object, &at, &key, &value)) {
      made->setItem(capture, wrapWithin(capture, key, depth + 1),
                    wrapWithin(capture, value, depth + 1));
    }
    return made;
  }
  if (PyAnySet_CheckExact(object)) return capture.make<SetVariable>(Object::share(object));
  return capture.result(Object::share(object));
}

// The arguments as objects, if all are constants.
bool constantsOf(const Arguments& given, std::vector<PyObject*>& objects, Object& names) {
  for (Variable* each : given.positional) {
    if (!each->constant()) return false;
    objects.push_back(each->constant());
  }
  if (given.keywords.empty()) return true;
  names = Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given.keywords.size())));
  for (size_t i = 0; i < given.keywords.size(); ++i) {
    const auto& [name, value] = given.keywords[i];
    if (!value->constant()) return false;
    objects.push_back(value->constant());
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), Py_NewRef(name.get()));
  }
  return true;
}

}  // namespace

bool isConstantType(PyTypeObject* type) {
  return type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type ||
         type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyComplex_Type ||
         type == &PyRange_Type;
}

bool isConstant(PyObject* object) {
  return isConstantWithin(object, 0);
}

namespace {

// Returns whether a text of such a tuple is made without code of the program: its class is from C or
// from collections.namedtuple.
bool hasPlainText(PyTypeObject* type) {
  // All classes that namedtuple() makes share the code of __repr__.
  static PyObject* const kNamed = [] {
    PyObject* const make = libraryObject("collections", "namedtuple");
    return Object::checked(PyObject_CallFunction(make, "ss", "Named", "field")).leak();
  }();
  for (const char* name : {"__repr__", "__str__", "__format__"}) {
    const Object text = Object::checked(PyUnicode_InternFromString(name));
    PyObject* const found = findTypeItem(type, text.get());
    if (!found || !PyFunction_Check(found)) continue;
    PyObject* const of_named = findTypeItem(reinterpret_cast<PyTypeObject*>(kNamed), text.get());
    if (!of_named || !PyFunction_Check(of_named) ||
        PyFunction_GET_CODE(found) != PyFunction_GET_CODE(of_named)) {
      return false;
    }
  }
  return true;
}

bool holdsWithin(PyObject* object, int depth) {
  if (isConstant(object)) return true;
  if (depth > kMaxNesting) return false;
  const bool tuple =
      PyTuple_CheckExact(object) || (PyTuple_Check(object) && hasPlainText(Py_TYPE(object)));
  if (PyList_CheckExact(object) || tuple) {
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
      if (!holdsWithin(PySequence_Fast_GET_ITEM(object, i), depth + 1)) return false;
    }
    return true;
  }
  if (!PyDict_CheckExact(object) && !PyODict_CheckExact(object) &&
      Py_TYPE(object) != DictVariable::defaultDictType()) {
    return false;
  }
  Py_ssize_t at = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(object, &at, &key, &value)) {
    if (!holdsWithin(key, depth + 1) || !holdsWithin(value, depth + 1)) return false;
  }
  return true;
}
}  // namespace

bool holdsConstantsOnly(PyObject* container) {
  return holdsWithin(container, 0);
}

Variable* wrapComputed(Capture& capture, const Object& object) {
  return wrapWithin(capture, object.get(), 0);
}

void ConstantVariable::guard(Capture& capture) {
  if (!source) return;
  PyObject* const object = constant_.get();
  if (source->access == Access::kSlot && PyLong_CheckExact(object)) {
    capture.noteInteger(source, object);
  }
  const bool identical = by_identity_ || object == Py_None || PyBool_Check(object);
  capture.guards.add(
      source, {identical ? Check::Kind::kIdentity : Check::Kind::kEqual, constant_, 0, nullptr});
}

Variable* ConstantVariable::ownAttribute(Capture& capture, PyObject* name) {
  PyObject* const found = findTypeItem(type(), name);
  // Members of enums keep their values in attributes of their own, and never change.
  const bool evaluated =
      found && (PyFunction_Check(found) || Py_TYPE(found) == &PyProperty_Type ||
                Py_TYPE(found) == &PyClassMethod_Type || Py_TYPE(found) == &PyStaticMethod_Type);
  if (by_identity_ && isEnum(type()) && !evaluated) {
    return capture.concretely([&] {
      return capture.pinned(Object::checked(PyObject_GetAttr(constant_.get(), name)).get());
    });
  }
  if (!found || PyObject_TypeCheck(found, &PyMethodDescr_Type)) return nullptr;
  if (!PyObject_TypeCheck(found, &PyGetSetDescr_Type) &&
      !PyObject_TypeCheck(found, &PyMemberDescr_Type)) {
    return nullptr;
  }
  return capture.concretely([&] {
    return wrapComputed(capture, Object::checked(PyObject_GetAttr(constant_.get(), name)));
  });
}

Variable* ConstantVariable::callMethod(Capture& capture, const std::string& name,
                                       const Arguments& given) {
  if (PyUnicode_Check(constant_.get()) && name == "join" && given.positional.size() == 1) {
    Variable* const elements =
        capture.make<TupleVariable>(elementsOf(capture, given.positional[0]), &PyTuple_Type);
    const Object parts = capture.objectFor(elements);
    return capture.concretely([&] {
      return capture.constant(Object::checked(PyUnicode_Join(constant_.get(), parts.get())).get());
    });
  }
  if (PyUnicode_Check(constant_.get()) && name == "format") {
    const auto isPlain = [](Variable* each) { return each->constant() != nullptr; };
    if (!std::ranges::all_of(given.positional, isPlain) ||
        !std::ranges::all_of(given.keywords, [&](const auto& e) { return isPlain(e.second); })) {
      return formattedBy(capture, constant_.get(), given);
    }
  }
  return capture.concretely([&]() -> Variable* {
    std::vector<PyObject*> objects{constant_.get()};
    Object names;
    if (!constantsOf(given, objects, names)) {
      breakGraph(fmt::format("{}.{}() with values that are not constants", type()->tp_name, name));
    }
    const Object text = Object::checked(PyUnicode_FromString(name.c_str()));
    const size_t named = names ? static_cast<size_t>(PyTuple_GET_SIZE(names.get())) : 0;
    return wrapComputed(
        capture, Object::checked(PyObject_VectorcallMethod(text.get(), objects.data(),
                                                           objects.size() - named, names.get())));
  });
}

Variable* ConstantVariable::item(Capture& capture, Variable* key) {
  if (!key->constant()) return Variable::item(capture, key);
  return capture.concretely([&] {
    return wrapComputed(capture,
                        Object::checked(PyObject_GetItem(constant_.get(), key->constant())));
  });
}

int64_t ConstantVariable::length(Capture& capture) {
  return capture.concretely([&] {
    const Py_ssize_t found = PyObject_Size(constant_.get());
    if (found < 0) throw PythonError();
    return static_cast<int64_t>(found);
  });
}

bool ConstantVariable::truth(Capture& capture) {
  return capture.concretely([&] {
    const int found = PyObject_IsTrue(constant_.get());
    if (found < 0) throw PythonError();
    return found != 0;
  });
}

Variable* ConstantVariable::iterate(Capture& capture) {
  PyObject* const object = constant_.get();
  if (!PyUnicode_Check(object) && !PyBytes_Check(object) && !PyTuple_Check(object) &&
      !PyRange_Check(object)) {
    capture.raise(PyExc_TypeError, fmt::format("'{}' object is not iterable", type()->tp_name));
  }
  return capture.make<ConstantIterator>(
      capture.concretely([&] { return Object::checked(PyObject_GetIter(object)); }));
}

bool ConstantVariable::contains(Capture& capture, Variable* element) {
  if (!element->constant()) return Variable::contains(capture, element);
  if (holdsNan(element->constant()) && holdsNan(constant_.get())) {
    breakGraph("the identity of two NaN");
  }
  return capture.concretely([&] {
    const int found = PySequence_Contains(constant_.get(), element->constant());
    if (found < 0) throw PythonError();
    return found != 0;
  });
}

namespace {

// Makes an object like this one, if two of them can be told apart.
int buildComputed(Builder& builder, PyObject* object) {
  if (PyTuple_CheckExact(object) && PyTuple_GET_SIZE(object) > 0) {
    std::vector<int> parts;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(object); ++i) {
      parts.push_back(buildComputed(builder, PyTuple_GET_ITEM(object, i)));
    }
    return builder.make(StepKind::kTuple, std::move(parts));
  }
  if (PySlice_Check(object)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(object);
    return builder.make(StepKind::kSlice,
                        {buildComputed(builder, slice->start), buildComputed(builder, slice->stop),
                         buildComputed(builder, slice->step)});
  }
  if (PyRange_Check(object)) {
    std::vector<int> parts{builder.constant(reinterpret_cast<PyObject*>(&PyRange_Type))};
    for (const char* name : {"start", "stop", "step"}) {
      parts.push_back(
          builder.constant(Object::checked(PyObject_GetAttrString(object, name)).get()));
    }
    return builder.make(StepKind::kCall, std::move(parts));
  }
  return builder.constant(object);
}

}  // namespace

int ConstantVariable::build(Builder& builder) {
  return computed_ ? buildComputed(builder, constant_.get()) : builder.constant(constant_.get());
}

}  // namespace wick::capture
