// The classes of `collections` that are written in C.
#include <algorithm>

#include "capture/evaluate/capture.h"
#include "capture/evaluate/handlers.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/deque.h"
#include "capture/values/derived_dict.h"
#include "capture/values/dict.h"

namespace wick::capture {
namespace {

Variable* makeDeque(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2 || !onlyKeywords(given, {"iterable", "maxlen"})) return nullptr;
  Variable* const iterable = argument(given, 0, "iterable");
  Variable* const limit = argument(given, 1, "maxlen");
  int64_t most = -1;
  if (limit && capture.use(limit)->constant() != Py_None) {
    PyObject* const number = limit->constant();
    if (!number || !PyLong_Check(number)) return nullptr;
    most = integerOf(capture, limit);
    if (most < 0) capture.raise(PyExc_ValueError, "maxlen must be non-negative");
  }
  return capture.make<DequeVariable>(
      iterable ? elementsOf(capture, iterable) : std::vector<Variable*>{}, most);
}

Variable* makeDefaultDict(Capture& capture, const Arguments& given) {
  if (given.positional.size() > 2) return nullptr;
  auto* const made = capture.make<DictVariable>(DictVariable::defaultDictType());
  Arguments rest{{}, given.keywords};
  if (!given.positional.empty()) {
    Variable* const factory = capture.use(given.positional[0]);
    if (factory->constant() != Py_None) {
      if (!factory->type()->tp_call) {
        capture.raise(PyExc_TypeError, "first argument must be callable or None");
      }
      made->default_factory = factory;
    }
    rest.positional.assign(given.positional.begin() + 1, given.positional.end());
  }
  made->update(capture, rest);
  return made;
}

// Counts the elements of an iterable, for Counter.
Variable* countElements(Capture& capture, const Arguments& given) {
  if (argumentCount(given) != 2) return nullptr;
  Variable* const counts = capture.use(given.positional[0]);
  auto* const dict = dynamic_cast<DictVariable*>(counts);
  if (!dict) return nullptr;
  auto* const derived = dynamic_cast<DerivedDictVariable*>(dict);
  const bool plainly =
      !derived || (!derived->overrides("get") && !derived->overrides("__setitem__"));
  constexpr int kAdd = 0;  // of BINARY_OP
  Variable *const zero = capture.constantLong(0), *const one = capture.constantLong(1);
  Variable* const iterator = iterate_(capture, given.positional[1]);
  while (Variable* each = nextOf(capture, iterator)) {
    if (!plainly) {
      Variable* const before = callMethod(capture, counts, "get", {each, zero});
      setItem(capture, counts, each, binary(capture, kAdd, before, one));
      continue;
    }
    const Object at = dict->keyOf(capture, each);
    Variable* const before = dict->find(capture, at.get());
    dict->set(capture, at.get(), each, before ? binary(capture, kAdd, before, one) : one);
  }
  return capture.constant(Py_None);
}

}  // namespace

void addCollections(Handlers& handlers) {
  addFrom(handlers, "collections", "deque", makeDeque);
  addFrom(handlers, "collections", "defaultdict", makeDefaultDict);
  addFrom(handlers, "_collections", "_count_elements", countElements);
}

}  // namespace wick::capture
