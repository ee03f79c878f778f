#include "capture/bytecode/instance.h"

#define Py_BUILD_CORE
#include <internal/pycore_dict.h>
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

namespace wick::capture {
namespace {

// The attributes that stand in an array; null where there is a dict, or neither.
struct InlineValues {
  PyDictKeysObject* keys = nullptr;
  PyDictValues* values = nullptr;
};

InlineValues inlineValues(PyObject* instance) {
  PyTypeObject* type = Py_TYPE(instance);
  if (!(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return {};
  // The array stands four words before the object, the dict three words before it.
  PyDictValues* const values = reinterpret_cast<PyDictValues**>(instance)[-4];
  if (!values) return {};
  return {reinterpret_cast<PyHeapTypeObject*>(type)->ht_cached_keys, values};
}

PyObject* dictOf(PyObject* instance) {
  PyTypeObject* type = Py_TYPE(instance);
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return reinterpret_cast<PyObject**>(instance)[-3];
  PyObject** place = _PyObject_GetDictPtr(instance);
  return place ? *place : nullptr;
}

bool sameName(PyObject* a, PyObject* b) {
  if (a == b) return true;
  return !(PyUnicode_CHECK_INTERNED(a) && PyUnicode_CHECK_INTERNED(b)) &&
         PyUnicode_Compare(a, b) == 0;
}

}  // namespace

PyObject* findInstanceItem(PyObject* instance, PyObject* name) {
  if (const InlineValues at = inlineValues(instance); at.values) {
    const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(at.keys);
    for (Py_ssize_t i = 0; i < at.keys->dk_nentries; ++i) {
      if (at.values->values[i] && sameName(entries[i].me_key, name)) return at.values->values[i];
    }
    return nullptr;
  }
  PyObject* const dict = dictOf(instance);
  if (!dict) return nullptr;
  PyObject* found = PyDict_GetItemWithError(dict, name);
  if (!found) PyErr_Clear();
  return found;
}

std::vector<PyObject*> instanceNames(PyObject* instance) {
  std::vector<PyObject*> names;
  if (const InlineValues at = inlineValues(instance); at.values) {
    const PyDictUnicodeEntry* entries = DK_UNICODE_ENTRIES(at.keys);
    // The order in which they were set stands in bytes before the array.
    const auto* order = reinterpret_cast<const uint8_t*>(at.values);
    const int count = order[-2];
    for (int i = 0; i < count; ++i) names.push_back(entries[order[-3 - i]].me_key);
    return names;
  }
  PyObject* const dict = dictOf(instance);
  if (!dict) return names;
  Py_ssize_t at = 0;
  PyObject *key = nullptr, *value = nullptr;
  while (PyDict_Next(dict, &at, &key, &value)) names.push_back(key);
  return names;
}

PyObject* madeInstanceDict(PyObject* instance) {
  return inlineValues(instance).values ? nullptr : dictOf(instance);
}

PyObject* findTypeItem(PyTypeObject* type, PyObject* name) {
  return _PyType_Lookup(type, name);
}

int64_t typeVersion(PyTypeObject* type) {
  if (type->tp_version_tag == 0) {
    // A look-up gives the class a version.
    const Object name = Object::own(PyUnicode_InternFromString("__class__"));
    if (name) _PyType_Lookup(type, name.get());
    PyErr_Clear();
  }
  return type->tp_version_tag;
}

void setFrameLine(PyFrameObject* frame, int line) {
  frame->f_lineno = line;
}

}  // namespace wick::capture
