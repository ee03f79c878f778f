#include "capture/values/tensor.h"

#include <fmt/format.h>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/sequence.h"

namespace wick::capture {

void TensorVariable::guard(Capture& capture) {
  if (fake_) return;
  if (!source) source = capture.guards.root(Access::kPinned, 0, object.get());
  fake_ = capture.addInput(source, object.get());
}

Variable* TensorVariable::ownAttribute(Capture& capture, PyObject* name) {
  PyObject* const found = findTypeItem(type_, name);
  // Python's own functions in the class, and properties, are evaluated like all others.
  if (found && capture.world.calleeOf(found) == Callee::kUnknown &&
      (PyFunction_Check(found) || Py_TYPE(found) == &PyProperty_Type ||
       Py_TYPE(found) == &PyStaticMethod_Type || Py_TYPE(found) == &PyClassMethod_Type)) {
    return nullptr;
  }
  return capture.attributeOf(this, fake_.get(), name);
}

void TensorVariable::setAttribute(Capture&, PyObject* name, Variable*) {
  breakGraph(fmt::format("setting the attribute '{}' of a tensor", PyUnicode_AsUTF8(name)));
}

Variable* TensorVariable::callMethod(Capture&, const std::string&, const Arguments&) {
  return nullptr;
}

namespace {

// Returns the subscript with the elements of tensors that are numbers there in place of them.
Variable* withNumbers(Capture& capture, Variable* key) {
  if (auto* const tensor = capture.as<TensorVariable>(key)) {
    if (!capture.recording->isIndexNumber(tensor->fake())) return key;
    Variable* const element = elementOf(capture, tensor);
    return element ? element : key;
  }
  auto* const tuple = capture.as<TupleVariable>(key);
  if (!tuple || tuple->type() != &PyTuple_Type) return key;
  std::vector<Variable*> parts;
  bool changed = false;
  for (int64_t i = 0; i < tuple->size(); ++i) {
    Variable* const part = tuple->at(capture, i);
    const bool is_tensor = capture.as<TensorVariable>(part) != nullptr;
    parts.push_back(is_tensor ? withNumbers(capture, part) : part);
    changed |= parts.back() != part;
  }
  return changed ? capture.make<TupleVariable>(std::move(parts), &PyTuple_Type) : key;
}

}  // namespace

Variable* TensorVariable::item(Capture& capture, Variable* key) {
  const Object at = capture.argumentFor(withNumbers(capture, key));
  return capture.computed("__getitem__", {fake_.get(), at.get()});
}

void TensorVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  if (!value) breakGraph("an item of a tensor is deleted");
  const Object at = capture.argumentFor(withNumbers(capture, key)),
               given = capture.argumentFor(value);
  capture.computed("__setitem__", {fake_.get(), at.get(), given.get()});
}

Variable* TensorVariable::firstSize(Capture& capture) {
  static const Object& kLength = forever(Object::share(builtinNamed("len")));
  return capture.recorded(kLength.get(), {fake_.get()});
}

int64_t TensorVariable::length(Capture& capture) {
  return PyLong_AsLongLong(firstSize(capture)->constant());
}

bool TensorVariable::truth(Capture& capture) {
  if (const Object number = capture.recording->constantOf(fake_.get())) {
    return PyObject_IsTrue(number.get()) == 1;
  }
  breakGraph("a branch on the value of a tensor");
}

Variable* TensorVariable::iterate(Capture& capture) {
  // The number of rows is one of this entry.
  length(capture);
  return capture.recorded(reinterpret_cast<PyObject*>(&PyTuple_Type), {fake_.get()})
      ->iterate(capture);
}

int TensorVariable::build(Builder& builder) {
  return builder.output(fake_.get());
}

}  // namespace wick::capture
