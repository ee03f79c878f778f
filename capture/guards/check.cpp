#include "capture/guards/check.h"

#include <fmt/format.h>

#include <cstring>

#include "capture/bytecode/cached_call.h"
#include "capture/bytecode/instance.h"
#include "capture/guards/numpy.h"

namespace wick::capture {
namespace {

bool sameBits(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

bool sameTuple(PyObject* a, PyObject* b) {
  const Py_ssize_t count = PyTuple_GET_SIZE(a);
  if (count != PyTuple_GET_SIZE(b)) return false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    if (!sameConstant(PyTuple_GET_ITEM(a, i), PyTuple_GET_ITEM(b, i))) return false;
  }
  return true;
}

bool sameInt(PyObject* a, PyObject* b) {
  const Object equal = Object::own(PyLong_Type.tp_richcompare(a, b, Py_EQ));
  return equal.get() == Py_True;
}

int64_t lengthOf(PyObject* object) {
  if (PyList_Check(object)) return PyList_GET_SIZE(object);
  if (PyTuple_Check(object)) return PyTuple_GET_SIZE(object);
  if (PyDict_Check(object)) return PyDict_GET_SIZE(object);
  if (PyAnySet_Check(object)) return PySet_GET_SIZE(object);
  if (PyUnicode_Check(object)) return PyUnicode_GET_LENGTH(object);
  if (Py_TYPE(object)->tp_flags & Py_TPFLAGS_HEAPTYPE) return -1;
  const Py_ssize_t found = PyObject_Size(object);  // of a deque
  if (found < 0) PyErr_Clear();
  return found;
}

// Classes of C alone: the iteration runs no code of Python.
bool hasElements(PyObject* container, PyObject* elements) {
  const Object iterator = Object::own(PyObject_GetIter(container));
  if (!iterator) {
    PyErr_Clear();
    return false;
  }
  for (Py_ssize_t i = 0;; ++i) {
    const Object element = Object::own(PyIter_Next(iterator.get()));
    if (!element) {
      if (PyErr_Occurred()) PyErr_Clear();
      return i == PyTuple_GET_SIZE(elements);
    }
    if (i >= PyTuple_GET_SIZE(elements)) return false;
    if (!sameConstant(element.get(), PyTuple_GET_ITEM(elements, i))) return false;
  }
}

bool hasKeys(PyObject* dict, PyObject* keys) {
  if (PyAnySet_Check(dict)) {
    return PySet_GET_SIZE(dict) == PyTuple_GET_SIZE(keys) && hasElements(dict, keys);
  }
  if (PyDict_Check(dict) && !PyDict_CheckExact(dict)) return hasElements(dict, keys);
  if (!PyDict_Check(dict)) {
    // The attributes of an instance.
    const std::vector<PyObject*> names = instanceNames(dict);
    if (names.size() != static_cast<size_t>(PyTuple_GET_SIZE(keys))) return false;
    for (size_t i = 0; i < names.size(); ++i) {
      if (!sameConstant(names[i], PyTuple_GET_ITEM(keys, static_cast<Py_ssize_t>(i)))) return false;
    }
    return true;
  }
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(keys)) return false;
  Py_ssize_t at = 0, i = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict, &at, &key, &value)) {
    if (!sameConstant(key, PyTuple_GET_ITEM(keys, i))) return false;
    ++i;
  }
  return true;
}

bool lacks(PyObject* object, PyObject* key) {
  if (PyModule_Check(object)) object = PyModule_GetDict(object);
  if (!PyDict_Check(object)) return !findInstanceItem(object, key);
  PyObject* found = PyDict_GetItemWithError(object, key);
  if (!found && PyErr_Occurred()) {
    PyErr_Clear();
    return false;
  }
  return !found;
}

}  // namespace

std::string shown(PyObject* object) {
  const Object text = Object::own(PyObject_Repr(object));
  const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr;
  if (!utf8) {
    PyErr_Clear();
    return "?";
  }
  constexpr size_t kLongest = 200;
  const std::string all = utf8;
  return all.size() > kLongest ? all.substr(0, kLongest) + "..." : all;
}

bool sameConstant(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyLong_CheckExact(a)) return sameInt(a, b);
  if (PyFloat_CheckExact(a)) return sameBits(PyFloat_AS_DOUBLE(a), PyFloat_AS_DOUBLE(b));
  if (PyUnicode_CheckExact(a)) {
    return PyUnicode_GET_LENGTH(a) == PyUnicode_GET_LENGTH(b) && PyUnicode_Compare(a, b) == 0;
  }
  if (PyBytes_CheckExact(a)) {
    return PyBytes_GET_SIZE(a) == PyBytes_GET_SIZE(b) &&
           std::memcmp(PyBytes_AS_STRING(a), PyBytes_AS_STRING(b),
                       static_cast<size_t>(PyBytes_GET_SIZE(a))) == 0;
  }
  if (PyComplex_CheckExact(a)) {
    return sameBits(PyComplex_RealAsDouble(a), PyComplex_RealAsDouble(b)) &&
           sameBits(PyComplex_ImagAsDouble(a), PyComplex_ImagAsDouble(b));
  }
  if (PyTuple_CheckExact(a)) return sameTuple(a, b);
  if (PySlice_Check(a)) {
    const auto *left = reinterpret_cast<PySliceObject*>(a),
               *right = reinterpret_cast<PySliceObject*>(b);
    return sameConstant(left->start, right->start) && sameConstant(left->stop, right->stop) &&
           sameConstant(left->step, right->step);
  }
  if (PyRange_Check(a)) {
    const Object equal = Object::own(PyObject_RichCompare(a, b, Py_EQ));
    const Object left = Object::own(PyObject_Repr(a)), right = Object::own(PyObject_Repr(b));
    if (!equal || !left || !right) {
      PyErr_Clear();
      return false;
    }
    return equal.get() == Py_True && PyUnicode_Compare(left.get(), right.get()) == 0;
  }
  return isSameArrayNumber(a, b);
}

int64_t abstractToken() {
  static PyObject* const function = [] {
    const Object module = Object::own(PyImport_ImportModule("_abc"));
    return module ? PyObject_GetAttrString(module.get(), "get_cache_token") : nullptr;
  }();
  const Object token = function ? Object::own(PyObject_CallNoArgs(function)) : Object();
  const int64_t found = token ? PyLong_AsLongLong(token.get()) : -1;
  PyErr_Clear();
  return found;
}

bool sameKey(PyObject* a, PyObject* b) {
  if (!a || !b) return a == b;
  return sameConstant(a, b);
}

bool holds(const Check& check, PyObject* object) {
  switch (check.kind) {
    case Check::Kind::kType:
      return reinterpret_cast<PyObject*>(Py_TYPE(object)) == check.object.get() &&
             (check.number == 0 || Py_TYPE(object)->tp_version_tag == check.number);
    case Check::Kind::kIdentity:
      return object == check.object.get() &&
             (check.number == 0 ||
              reinterpret_cast<PyTypeObject*>(object)->tp_version_tag == check.number);
    case Check::Kind::kEqual:
      return sameConstant(object, check.object.get());
    case Check::Kind::kLength:
      return lengthOf(object) == check.number;
    case Check::Kind::kLacks:
      return lacks(object, check.object.get());
    case Check::Kind::kLacksOwn:
      return !findInstanceItem(object, check.object.get());
    case Check::Kind::kKeys:
      return hasKeys(object, check.object.get());
    case Check::Kind::kCode:
      return PyFunction_Check(object) && PyFunction_GET_CODE(object) == check.object.get();
    case Check::Kind::kNoDefaults:
      return PyFunction_Check(object) && !PyFunction_GET_DEFAULTS(object);
    case Check::Kind::kNumDefaults: {
      PyObject* const all = PyFunction_Check(object) ? PyFunction_GET_DEFAULTS(object) : nullptr;
      return all && PyTuple_Check(all) && PyTuple_GET_SIZE(all) == check.number;
    }
    case Check::Kind::kLacksDefault: {
      PyObject* const all = PyFunction_Check(object) ? PyFunction_GET_KW_DEFAULTS(object) : Py_None;
      return !all || (PyDict_Check(all) && lacks(all, check.object.get()));
    }
    case Check::Kind::kTensor:
      return check.tensor->matches(object);
    case Check::Kind::kPresent:
      return true;
    case Check::Kind::kSetTable: {
      const auto* const set = reinterpret_cast<PySetObject*>(object);
      return PyAnySet_Check(object) && set->mask == check.number && set->fill == set->used;
    }
    case Check::Kind::kHandlesNone:
      return !Object::own(PyErr_GetHandledException());
    case Check::Kind::kLacksKept:
      return Py_TYPE(object) == cachedCallType() && !keptResult(object, check.object.get());
    case Check::Kind::kAbstractToken:
      return abstractToken() == check.number;
  }
  return false;
}

std::string describeCheck(const Check& check, const std::string& subject) {
  switch (check.kind) {
    case Check::Kind::kType:
      return fmt::format("type({}) is {}", subject,
                         reinterpret_cast<PyTypeObject*>(check.object.get())->tp_name);
    case Check::Kind::kIdentity:
      return fmt::format("{} is {}", subject, shown(check.object.get()));
    case Check::Kind::kEqual:
      return fmt::format("{} == {}", subject, shown(check.object.get()));
    case Check::Kind::kLength:
      return fmt::format("len({}) == {}", subject, check.number);
    case Check::Kind::kLacks:
      return fmt::format("{} not in {}", shown(check.object.get()), subject);
    case Check::Kind::kLacksOwn:
      return fmt::format("{} not in vars({})", shown(check.object.get()), subject);
    case Check::Kind::kLacksDefault:
      return fmt::format("{} not in {}.__kwdefaults__", shown(check.object.get()), subject);
    case Check::Kind::kKeys:
      return fmt::format("tuple({}) == {}", subject, shown(check.object.get()));
    case Check::Kind::kCode:
      return fmt::format("{}.__code__ is {}", subject, shown(check.object.get()));
    case Check::Kind::kNoDefaults:
      return fmt::format("{}.__defaults__ is None", subject);
    case Check::Kind::kNumDefaults:
      return fmt::format("len({}.__defaults__) == {}", subject, check.number);
    case Check::Kind::kTensor:
      return fmt::format("{}: {}", subject, check.tensor->text());
    case Check::Kind::kPresent:
      return subject + " exists";
    case Check::Kind::kSetTable:
      return fmt::format("{} has room for {} elements", subject, check.number + 1);
    case Check::Kind::kHandlesNone:
      return "no exception is handled";
    case Check::Kind::kLacksKept:
      return fmt::format("{} not in {}.cache", shown(check.object.get()), subject);
    case Check::Kind::kAbstractToken:
      return fmt::format("abc.get_cache_token() == {}", check.number);
  }
  return subject;
}

}  // namespace wick::capture
