#include "capture/values/array.h"

#include <fmt/format.h>

#include <string_view>

#include "capture/bytecode/instance.h"
#include "capture/effects/builder.h"
#include "capture/evaluate/arrays.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/guards/numpy.h"
#include "capture/values/constant.h"
#include "capture/values/number.h"
#include "capture/values/sequence.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

Object attribute(PyObject* object, const char* name) {
  return Object::checked(PyObject_GetAttrString(object, name));
}

// Returns a function of numpy's.
PyObject* numpyFunction(const char* name) {
  const Object numpy = Object::checked(PyImport_ImportModule("numpy"));
  PyObject* const found = attribute(numpy.get(), name).leak();
  return found;
}

// Attributes that say nothing of the elements, and are the same objects for equal arrays.
bool isOfLayout(std::string_view name) {
  return name == "shape" || name == "ndim" || name == "size" || name == "dtype" ||
         name == "strides" || name == "itemsize" || name == "nbytes";
}

}  // namespace

void ArrayVariable::guard(Capture& capture) {
  if (!source) source = capture.guards.root(Access::kPinned, 0, object.get());
  tensor_ = capture.addArray(source, object.get());
  shadow_ = shadowOf(object.get());
}

bool ArrayVariable::ownsMemory() const {
  const Object flags = attribute(shadow_.get(), "flags");
  return attribute(flags.get(), "owndata").get() == Py_True;
}

bool ArrayVariable::canJoin(const Capture& capture, const ArrayVariable& other) const {
  if (type() != other.type()) return false;
  // Which array it is can be seen, unlike that of numbers.
  for (const ArrayVariable* each : {this, &other}) {
    if (isNumber()) break;
    if (!capture.isMadeInSide(*each) || each->view_.function || each->lent_ || each->copied_) {
      return false;
    }
  }
  for (const char* name : {"dtype", "strides"}) {
    const Object a = attribute(shadow_.get(), name), b = attribute(other.shadow_.get(), name);
    const int same = PyObject_RichCompareBool(a.get(), b.get(), Py_EQ);
    if (same < 0) throw PythonError();
    if (same == 0) return false;
  }
  return isNumber() || ownsMemory() == other.ownsMemory();
}

bool ArrayVariable::isNumber() const {
  return type() != arrayClass();
}

Variable* ArrayVariable::ownAttribute(Capture& capture, PyObject* name) {
  const char* const text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError();
  if (isOfLayout(text)) {
    return wrapComputed(capture, Object::checked(PyObject_GetAttr(shadow_.get(), name)));
  }
  if (std::string_view(text) == "T") {
    static PyObject* const transpose = numpyFunction("transpose");
    return isNumber() ? this : callArrayFunction(capture, transpose, {{this}, {}});
  }
  // A real array is its own real part.
  if (std::string_view(text) == "real" && !isNumber()) return this;
  PyObject* const found = findTypeItem(type(), name);
  if (found && !PyObject_TypeCheck(found, &PyMethodDescr_Type) &&
      !PyObject_TypeCheck(found, &PyWrapperDescr_Type)) {
    breakGraph(fmt::format("'{}' of an array", text));
  }
  return nullptr;
}

void ArrayVariable::setAttribute(Capture&, PyObject* name, Variable*) {
  breakGraph(fmt::format("setting the attribute '{}' of an array", PyUnicode_AsUTF8(name)));
}

Variable* ArrayVariable::callMethod(Capture& capture, const std::string& name,
                                    const Arguments& given) {
  if (name == "item" && given.empty()) {
    Variable* const number = numberIn(capture, tensor_);
    if (!number) breakGraph("the element of an array as a number");
    return number;
  }
  const Object text = Object::checked(PyUnicode_InternFromString(name.c_str()));
  PyObject* const method = findTypeItem(type(), text.get());
  Arguments all{{this}, given.keywords};
  all.positional.insert(all.positional.end(), given.positional.begin(), given.positional.end());
  Variable* const found = method ? callArrayFunction(capture, method, all) : nullptr;
  if (!found) breakGraph(fmt::format("the method {}() of an array", name));
  return found;
}

Variable* ArrayVariable::item(Capture& capture, Variable* key) {
  return operateOnArrays(capture, "getitem", {this, key});
}

void ArrayVariable::setItem(Capture& capture, Variable* key, Variable* value) {
  if (!value) breakGraph("an item of an array is deleted");
  operateOnArrays(capture, "setitem", {this, key, value});
}

int64_t ArrayVariable::length(Capture&) {
  const Py_ssize_t found = PyObject_Size(shadow_.get());
  if (found >= 0) return found;
  PyErr_Clear();
  breakGraph("len() of an array without dimensions");
}

TensorVariable* tensorOfTruth(Variable* variable) {
  auto* const array = dynamic_cast<ArrayVariable*>(variable);
  if (!array) return nullptr;
  const Object size = attribute(array->shadow(), "size");
  return PyLong_AsLong(size.get()) == 1 ? &array->tensor() : nullptr;
}

bool ArrayVariable::truth(Capture& capture) {
  TensorVariable* const tensor = tensorOfTruth(this);
  if (!tensor) breakGraph("the truth of an array");
  return tensor->truth(capture);
}

Variable* ArrayVariable::iterate(Capture& capture) {
  std::vector<Variable*> elements;
  const int64_t count = length(capture);
  for (int64_t i = 0; i < count; ++i) {
    capture.step();
    elements.push_back(item(capture, capture.constantLong(i)));
  }
  return capture.make<ListVariable>(std::move(elements))->iterate(capture);
}

bool ArrayVariable::checkWrite(Capture& capture) {
  ArrayVariable& owner = root();
  // Backward passes would notice a write that they do not notice in plain Python.
  if (owner.view_.function || (owner.object && owner.lent_)) {
    breakGraph("a write to an array on the memory of a tensor");
  }
  if (owner.copied_) breakGraph("a write to an array whose elements were copied for a view");
  capture.changeInSide(owner);
  return static_cast<bool>(owner.object);
}

TensorVariable& ArrayVariable::lend() {
  if (view_.function || lent_) breakGraph("several tensors on the memory of an array");
  lent_ = true;
  return *tensor_;
}

int ArrayTensorVariable::build(Builder& builder) {
  return builder.make(StepKind::kCall, {builder.constant(function_.get()), builder.build(&array_)});
}

int ArrayVariable::build(Builder& builder) {
  if (view_.function) {
    std::vector<int> parts{builder.constant(view_.function.get())};
    for (const auto& [variable, constant] : view_.arguments) {
      parts.push_back(variable ? builder.build(variable) : builder.constant(constant.get()));
    }
    const int made = builder.make(StepKind::kCall, std::move(parts), view_.names, 1);
    if (view_.index < 0) return made;
    const Object index = Object::checked(PyLong_FromLongLong(view_.index));
    return builder.make(StepKind::kCall, {builder.constant(operatorFunction("getitem").get()), made,
                                          builder.constant(index.get())});
  }
  if (lent_) throw GraphBreak{"an array that shares its memory with a tensor", {}, born};
  static PyObject* const copy = numpyFunction("array");
  const Object lent = attribute(reinterpret_cast<PyObject*>(tensor_->type()), "numpy");
  const int array = builder.make(StepKind::kCall,
                                 {builder.constant(lent.get()), builder.output(tensor_->fake())});
  int made = array;
  if (!isNumber()) {
    static PyObject* const names = Py_BuildValue("(s)", "order");
    const Object order = orderOf(shadow_.get());
    made = builder.make(StepKind::kCall,
                        {builder.constant(copy), array, builder.constant(order.get())},
                        Object::share(names));
  }
  if (!isNumber() && ownsMemory()) return made;
  // A number, or an array that numpy makes as a view of a copy.
  const Object key = isNumber() ? Object::checked(PyTuple_New(0)) : Object::share(Py_Ellipsis);
  return builder.make(StepKind::kCall, {builder.constant(operatorFunction("getitem").get()), made,
                                        builder.constant(key.get())});
}

}  // namespace wick::capture
