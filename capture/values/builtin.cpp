#include "capture/values/builtin.h"

#include <fmt/format.h>

#include "capture/compiled_call.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/builtins.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/opaque.h"
#include "capture/evaluate/protocol.h"

namespace wick::capture {

void BuiltinVariable::guard(Capture& capture) {
  if (source) capture.guards.add(source, {Check::Kind::kIdentity, object, 0, {}});
}

Variable* BuiltinVariable::ownAttribute(Capture& capture, PyObject* name) {
  return capture.concretely(
      [&] { return capture.pinned(Object::checked(PyObject_GetAttr(object.get(), name)).get()); });
}

Variable* BuiltinVariable::call(Capture& capture, const Arguments& given) {
  if (isAllowedInGraph(object.get())) return callOpaque(capture, object.get(), given);
  if (isCapturingQuestion(object.get())) return capture.constantBool(true);
  if (Variable* found = callArrayFunction(capture, object.get(), given)) return found;
  if (Variable* found = callBuiltin(capture, object.get(), given)) return found;
  if (capture.world.calleeOf(object.get()) != Callee::kUnknown) {
    return callWorld(capture, object.get(), given);
  }
  const bool method = PyObject_TypeCheck(object.get(), &PyMethodDescr_Type) ||
                      PyObject_TypeCheck(object.get(), &PyWrapperDescr_Type);
  if (method && !given.positional.empty()) {
    auto* const descriptor = reinterpret_cast<PyDescrObject*>(object.get());
    Variable* const self = capture.use(given.positional[0]);
    if (!PyType_IsSubtype(self->type(), descriptor->d_type)) {
      capture.raise(PyExc_TypeError,
                    fmt::format("descriptor '{}' for '{}' objects doesn't apply to a '{}' object",
                                PyUnicode_AsUTF8(descriptor->d_name), descriptor->d_type->tp_name,
                                self->type()->tp_name));
    }
    Arguments rest{{given.positional.begin() + 1, given.positional.end()}, given.keywords};
    return callBound(capture, self, descriptor->d_name, object.get(), rest);
  }
  const Object shown = Object::own(PyObject_Repr(object.get()));
  if (!shown) PyErr_Clear();
  breakGraph(fmt::format("a call of {}", shown ? PyUnicode_AsUTF8(shown.get()) : "a builtin"));
}

int BuiltinVariable::build(Builder& builder) {
  return builder.constant(object.get());
}

Variable* BoundVariable::ownAttribute(Capture& capture, PyObject* name) {
  if (PyUnicode_CompareWithASCIIString(name, "__self__") == 0) return self_;
  if (PyUnicode_CompareWithASCIIString(name, "__name__") == 0) return capture.constant(name_.get());
  breakGraph(fmt::format("'{}' of a built-in method", PyUnicode_AsUTF8(name)));
}

Variable* BoundVariable::call(Capture& capture, const Arguments& given) {
  return callBound(capture, self_, name_.get(), method_.get(), given);
}

int BoundVariable::build(Builder& builder) {
  const Object getter = Object::checked(PyObject_GetAttrString(method_.get(), "__get__"));
  const int self = builder.build(self_);
  if (PyObject_TypeCheck(method_.get(), &PyClassMethodDescr_Type)) {
    return builder.make(StepKind::kCall,
                        {builder.constant(getter.get()), builder.constant(Py_None), self});
  }
  // CPython 3.11 needs the class, or some methods crash.
  auto* const type = reinterpret_cast<PyObject*>(self_->type());
  return builder.make(StepKind::kCall,
                      {builder.constant(getter.get()), self, builder.constant(type)});
}

void OpaqueVariable::guard(Capture& capture) {
  if (!source) return;
  capture.guards.add(
      source, {Check::Kind::kType, Object::share(reinterpret_cast<PyObject*>(type())), 0, {}});
}

Variable* OpaqueVariable::ownAttribute(Capture&, PyObject* name) {
  breakGraph(fmt::format("'{}' of {}", PyUnicode_AsUTF8(name), describe(*this)));
}

int OpaqueVariable::build(Builder& builder) {
  return builder.constant(object.get());
}

int MarkVariable::build(Builder& builder) {
  if (kind == Kind::kPreviousException) {
    // The exception of the caller's handler is not known here.
    return previous ? builder.build(previous) : builder.make(StepKind::kHandled, {});
  }
  breakGraph("an entry of the stack that no program sees is kept");
}

}  // namespace wick::capture
