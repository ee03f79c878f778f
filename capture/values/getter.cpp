#include "capture/values/getter.h"

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/sequence.h"

namespace wick::capture {

namespace {

// The name of an attribute, interned and kept until the attempt ends.
PyObject* internedName(Capture& capture, PyObject* text) {
  PyObject* name = Py_NewRef(text);
  PyUnicode_InternInPlace(&name);
  const Object owned = Object::own(name);
  return capture.constant(owned.get())->constant();
}

}  // namespace

PyTypeObject* GetterVariable::typeOf(Kind kind) {
  static PyObject* const types[] = {libraryObject("operator", "itemgetter"),
                                    libraryObject("operator", "attrgetter"),
                                    libraryObject("operator", "methodcaller")};
  return reinterpret_cast<PyTypeObject*>(types[static_cast<size_t>(kind)]);
}

void GetterVariable::guard(Capture& capture) {
  if (!object) return;
  // It never changes, and what it holds is told by its way of being copied.
  Source* const at = source ? source : capture.guards.root(Access::kPinned, 0, object.get());
  capture.guards.add(at, {Check::Kind::kIdentity, object, 0, {}});
  const Object parts = Object::checked(PyObject_CallMethod(object.get(), "__reduce__", nullptr));
  PyObject* const callee = PyTuple_GET_ITEM(parts.get(), 0);
  if (callee != reinterpret_cast<PyObject*>(type())) {
    breakGraph("a methodcaller with keywords that exists");
  }
  PyObject* const arguments = PyTuple_GET_ITEM(parts.get(), 1);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments); ++i) {
    given_.positional.push_back(capture.pinned(PyTuple_GET_ITEM(arguments, i)));
  }
}

Variable* GetterVariable::get(Capture& capture, Variable* from, Variable* key) const {
  if (kind_ == Kind::kItem) return getItem(capture, from, key);
  const Object dot = Object::checked(PyUnicode_FromString("."));
  const Object names = Object::checked(PyUnicode_Split(key->constant(), dot.get(), -1));
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(names.get()); ++i) {
    from = getAttribute(capture, from, internedName(capture, PyList_GET_ITEM(names.get(), i)));
  }
  return from;
}

Variable* GetterVariable::call(Capture& capture, const Arguments& given) {
  if (given.positional.size() != 1 || !given.keywords.empty()) {
    breakGraph("a getter is called with arguments that do not fit");
  }
  Variable* const from = given.positional[0];
  if (kind_ == Kind::kMethod) {
    Variable* const method =
        getAttribute(capture, from, internedName(capture, given_.positional[0]->constant()));
    return callVariable(
        capture, method,
        {{given_.positional.begin() + 1, given_.positional.end()}, given_.keywords});
  }
  if (given_.positional.size() == 1) return get(capture, from, given_.positional[0]);
  std::vector<Variable*> all;
  for (Variable* each : given_.positional) all.push_back(get(capture, from, each));
  return capture.make<TupleVariable>(std::move(all), &PyTuple_Type);
}

int GetterVariable::build(Builder& builder) {
  return builder.buildCall(builder.constant(reinterpret_cast<PyObject*>(type())), given_);
}

}  // namespace wick::capture
