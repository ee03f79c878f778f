#include "capture/evaluate/opaque.h"

#include <fmt/format.h>

#include <unordered_map>

#include "capture/evaluate/capture.h"
#include "capture/values/constant.h"

namespace wick::capture {
namespace {

constexpr int kMaxResultDepth = 20;

// Functions by their addresses, with weak references to them.
std::unordered_map<PyObject*, Object>& allowed() {
  static auto& all = *new std::unordered_map<PyObject*, Object>();
  return all;
}

// Returns whether two objects are containers of the same objects.
bool holdsTheSame(PyObject* a, PyObject* b) {
  if (a == b) return true;
  if (Py_TYPE(a) != Py_TYPE(b)) return false;
  if (PyTuple_CheckExact(a) || PyList_CheckExact(a)) {
    const Py_ssize_t count = PySequence_Fast_GET_SIZE(a);
    if (PySequence_Fast_GET_SIZE(b) != count) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
      if (!holdsTheSame(PySequence_Fast_GET_ITEM(a, i), PySequence_Fast_GET_ITEM(b, i))) {
        return false;
      }
    }
    return true;
  }
  if (PyDict_CheckExact(a)) {
    if (PyDict_GET_SIZE(a) != PyDict_GET_SIZE(b)) return false;
    PyObject *key = nullptr, *value = nullptr;
    for (Py_ssize_t at = 0; PyDict_Next(a, &at, &key, &value);) {
      PyObject* const other = PyDict_GetItemWithError(b, key);
      if (!other || !holdsTheSame(value, other)) return false;
    }
    return true;
  }
  if (!PyAnySet_Check(a)) return false;
  const int same = PyObject_RichCompareBool(a, b, Py_EQ);
  if (same < 0) throw PythonError();
  return same != 0;
}

void checkResult(Capture& capture, PyObject* result, int depth) {
  if (depth > kMaxResultDepth) breakGraph("results are nested too deeply");
  if (capture.recording->isFake(result) || isConstant(result) || capture.world.isConstant(result)) {
    return;
  }
  if (!PyTuple_Check(result) && !PyList_CheckExact(result)) {
    breakGraph(fmt::format("a function that is allowed in graphs gives an object of the class {}",
                           Py_TYPE(result)->tp_name));
  }
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(result); ++i) {
    checkResult(capture, PySequence_Fast_GET_ITEM(result, i), depth + 1);
  }
}

}  // namespace

void allowInGraph(PyObject* function) {
  auto& all = allowed();
  std::erase_if(
      all, [](const auto& each) { return PyWeakref_GET_OBJECT(each.second.get()) != each.first; });
  all[function] = Object::checked(PyWeakref_NewRef(function, nullptr));
}

bool isAllowedInGraph(PyObject* function) {
  const auto& all = allowed();
  if (all.empty() || !function) return false;
  const auto found = all.find(function);
  return found != all.end() && PyWeakref_GET_OBJECT(found->second.get()) == function;
}

Variable* callOpaque(Capture& capture, PyObject* function, const Arguments& given) {
  std::vector<Object> kept;
  std::vector<PyObject*> arguments, copies;
  const auto add = [&](Variable* each) {
    for (std::vector<PyObject*>* all : {&arguments, &copies}) {
      kept.push_back(capture.objectFor(each));
      all->push_back(kept.back().get());
    }
  };
  for (Variable* each : given.positional) add(each);
  const Object names =
      given.keywords.empty()
          ? Object()
          : Object::checked(PyTuple_New(static_cast<Py_ssize_t>(given.keywords.size())));
  for (size_t i = 0; i < given.keywords.size(); ++i) {
    const auto& [name, value] = given.keywords[i];
    PyTuple_SET_ITEM(names.get(), static_cast<Py_ssize_t>(i), Py_NewRef(name.get()));
    add(value);
  }
  const Object result = capture.recording->callOpaque(function, arguments, names.get());
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!holdsTheSame(arguments[i], copies[i])) {
      breakGraph("a function that is allowed in graphs changes an argument");
    }
  }
  checkResult(capture, result.get(), 0);
  return capture.result(result);
}

}  // namespace wick::capture
