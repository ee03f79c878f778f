#include "capture/bytecode/cached_call.h"

#include <cstddef>

namespace wick::capture {
namespace {

// The layouts of CPython 3.11.
struct KeptLink {
  PyObject_HEAD;
  KeptLink *previous, *next;
  Py_hash_t hash;
  PyObject *key, *result;
};

struct CachedLayout {
  KeptLink root;
  void* wrapper;
  int typed;
  PyObject* cache;  // a dict of links, or of results if all are kept
  Py_ssize_t hits;
  PyObject* function;
  Py_ssize_t most;
  Py_ssize_t misses;
  PyObject* mark;  // stands between arguments and keywords in keys
  PyTypeObject* link_type;
  PyObject* info_type;
  PyObject* attributes;
  PyObject* references;
};

CachedLayout* cachedLayout(PyObject* cached) {
  return reinterpret_cast<CachedLayout*>(cached);
}

// The function that gives the result, instead of the one that belongs there.
struct ReplacedFunction {
  CachedLayout* cached = nullptr;
  PyObject* function = nullptr;  // owned by the wrapper otherwise
  PyObject* result = nullptr;

  // Puts the function back. Objects that die in the call may call it.
  void end() {
    if (!function) return;
    cached->function = std::exchange(function, nullptr);
  }
};

PyObject* giveResult(PyObject* capsule, PyObject*, PyObject*) {
  auto* const replacement = static_cast<ReplacedFunction*>(PyCapsule_GetPointer(capsule, nullptr));
  if (!replacement) return nullptr;
  replacement->end();
  return Py_NewRef(replacement->result);
}

PyMethodDef kGiveResult = {"result",
                           reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(giveResult)),
                           METH_VARARGS | METH_KEYWORDS, nullptr};

// Whether functions with and without a limit are as the layouts say.
bool isKnownLayout(PyObject* make) {
  PyObject* const length = PyDict_GetItemString(PyEval_GetBuiltins(), "len");
  const Object text = Object::own(PyUnicode_FromString("text"));
  if (!length || !text) return false;
  const Object& key = text;
  const Object other = Object::own(PyTuple_Pack(1, text.get()));
  for (const Py_ssize_t most : {Py_ssize_t{-1}, Py_ssize_t{2}}) {
    const Object limit = most < 0 ? Object::share(Py_None) : Object::own(PyLong_FromSsize_t(most));
    const Object decorator = Object::own(PyObject_CallOneArg(make, limit.get()));
    const Object cached =
        decorator ? Object::own(PyObject_CallOneArg(decorator.get(), length)) : Object();
    if (!cached || Py_TYPE(cached.get())->tp_basicsize != sizeof(CachedLayout) ||
        Py_TYPE(cached.get())->tp_dictoffset != offsetof(CachedLayout, attributes) ||
        Py_TYPE(cached.get())->tp_weaklistoffset != offsetof(CachedLayout, references)) {
      return false;
    }
    const CachedLayout* const layout = cachedLayout(cached.get());
    const Object found = Object::own(PyObject_CallOneArg(cached.get(), text.get()));
    if (!found || layout->function != length || layout->most != most || layout->typed != 0 ||
        layout->misses != 1 || layout->hits != 0 || !PyDict_CheckExact(layout->cache) ||
        PyDict_GET_SIZE(layout->cache) != 1) {
      return false;
    }
    PyObject* const kept = PyDict_GetItemWithError(layout->cache, key.get());
    if (!kept || (most >= 0) != (Py_TYPE(kept) == layout->link_type)) return false;
    if (keptResult(cached.get(), key.get()) != found.get()) return false;
  }
  return true;
}

PyTypeObject* findCachedType() {
  const Object module = Object::own(PyImport_ImportModule("functools"));
  const Object type =
      module ? Object::own(PyObject_GetAttrString(module.get(), "_lru_cache_wrapper")) : Object();
  const Object make =
      module ? Object::own(PyObject_GetAttrString(module.get(), "lru_cache")) : Object();
  const bool known = type && make && PyType_Check(type.get()) && isKnownLayout(make.get());
  PyErr_Clear();
  // The module keeps it.
  return known ? reinterpret_cast<PyTypeObject*>(type.get()) : nullptr;
}

}  // namespace

PyTypeObject* cachedCallType() {
  static PyTypeObject* const found = findCachedType();
  return found;
}

CachedCall cachedCallOf(PyObject* cached) {
  const CachedLayout* const layout = cachedLayout(cached);
  return {layout->function, layout->typed != 0, layout->most};
}

Object keyOfCall(PyObject* cached, PyObject* arguments, PyObject* names, PyObject* types) {
  const CachedLayout* const layout = cachedLayout(cached);
  const Py_ssize_t count = PyTuple_GET_SIZE(arguments), named = names ? PyTuple_GET_SIZE(names) : 0;
  if (!layout->typed && named == 0) {
    PyObject* const first = count == 1 ? PyTuple_GET_ITEM(arguments, 0) : nullptr;
    const bool alone = first && (PyUnicode_CheckExact(first) || PyLong_CheckExact(first));
    return Object::share(alone ? first : arguments);
  }
  Object key = Object::checked(PyList_New(0));
  const auto add = [&](PyObject* part) {
    if (PyList_Append(key.get(), part) < 0) throw PythonError();
  };
  for (Py_ssize_t i = 0; i < count - named; ++i) add(PyTuple_GET_ITEM(arguments, i));
  if (named > 0) add(layout->mark);
  for (Py_ssize_t i = 0; i < named; ++i) {
    add(PyTuple_GET_ITEM(names, i));
    add(PyTuple_GET_ITEM(arguments, count - named + i));
  }
  for (Py_ssize_t i = 0; layout->typed && i < count; ++i) add(PyTuple_GET_ITEM(types, i));
  return Object::checked(PyList_AsTuple(key.get()));
}

PyObject* keptResult(PyObject* cached, PyObject* key) {
  const CachedLayout* const layout = cachedLayout(cached);
  PyObject* const found = PyDict_GetItemWithError(layout->cache, key);
  if (!found) PyErr_Clear();
  const bool linked = found && Py_TYPE(found) == layout->link_type && layout->most >= 0;
  return linked ? reinterpret_cast<KeptLink*>(found)->result : found;
}

void keepResult(PyObject* cached, PyObject* const* given, size_t num_positional, PyObject* names,
                PyObject* result) {
  ReplacedFunction replacement{cachedLayout(cached), nullptr, result};
  const Object capsule = Object::checked(PyCapsule_New(&replacement, nullptr, nullptr));
  const Object function = Object::checked(PyCFunction_New(&kGiveResult, capsule.get()));
  replacement.function = std::exchange(replacement.cached->function, function.get());
  const Object made = Object::own(PyObject_Vectorcall(cached, given, num_positional, names));
  replacement.end();
  if (!made) throw PythonError();
}

}  // namespace wick::capture
