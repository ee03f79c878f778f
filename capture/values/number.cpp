#include "capture/values/number.h"

#include "capture/effects/builder.h"
#include "capture/evaluate/capture.h"
#include "capture/evaluate/protocol.h"
#include "capture/values/array.h"
#include "capture/values/tensor.h"

namespace wick::capture {
namespace {

constexpr const char* kReason = "the value of a tensor as a number";

TensorVariable* made(Capture& capture, Variable* variable) {
  auto* const tensor = capture.as<TensorVariable>(variable);
  if (!tensor) breakGraph(kReason);
  return tensor;
}

Variable* asBool(Capture& capture, Variable* tensor) {
  return capture.make<NumberVariable>(*made(capture, tensor), PyBool_Type);
}

// Returns the fake or the constant that stands for an operand in a comparison of doubles; null where there is none.
Object doubleOf(Capture& capture, Variable* operand) {
  if (auto* const number = dynamic_cast<NumberVariable*>(operand)) {
    if (!number->isFloat()) return {};
    Variable* const wide = callMethod(capture, &number->tensor(), "double");
    return Object::share(made(capture, wide)->fake());
  }
  if (operand->type() != &PyFloat_Type && operand->type() != &PyLong_Type) return {};
  PyObject* const constant = operand->constant();
  if (!constant || PyFloat_CheckExact(constant)) return Object::share(constant);
  constexpr int64_t kMostExact = int64_t{1} << 53;
  int overflow = 0;
  const int64_t value = PyLong_AsLongLongAndOverflow(constant, &overflow);
  if (overflow != 0 || value > kMostExact || value < -kMostExact) return {};
  return Object::checked(PyFloat_FromDouble(static_cast<double>(value)));
}

}  // namespace

PyObject* NumberVariable::constant() const {
  breakGraph(kReason);
}

Variable* NumberVariable::ownAttribute(Capture&, PyObject*) {
  breakGraph(kReason);
}

bool NumberVariable::truth(Capture&) {
  breakGraph("a branch on the value of a tensor");
}

int NumberVariable::build(Builder& builder) {
  const Object item =
      Object::checked(PyObject_GetAttrString(reinterpret_cast<PyObject*>(tensor_.type()), "item"));
  return builder.make(StepKind::kCall,
                      {builder.constant(item.get()), builder.output(tensor_.fake())});
}

Variable* numberIn(Capture& capture, Variable* variable) {
  if (Variable* const element = elementOf(capture, variable)) return element;
  auto* const tensor = capture.as<TensorVariable>(variable);
  PyTypeObject* const type = tensor ? capture.recording->numberType(tensor->fake()) : nullptr;
  if (!type || type == &PyLong_Type) return nullptr;
  // The program may write to the tensor afterwards.
  Variable* const alone = callMethod(capture, callMethod(capture, tensor, "detach"), "clone");
  return capture.make<NumberVariable>(*made(capture, alone), *type);
}

Variable* truthIn(Capture& capture, Variable* variable) {
  if (TensorVariable* const tensor = tensorOfTruth(variable)) variable = tensor;
  if (auto* const number = dynamic_cast<NumberVariable*>(variable)) {
    if (!number->isFloat()) return number;
    return asBool(capture, callMethod(capture, &number->tensor(), "bool"));
  }
  auto* const tensor = capture.as<TensorVariable>(variable);
  if (!tensor || !capture.recording->numberType(tensor->fake())) return nullptr;
  if (capture.recording->constantOf(tensor->fake())) return nullptr;
  return asBool(capture, callMethod(capture, callMethod(capture, tensor, "detach"), "bool"));
}

Variable* notNumber(Capture& capture, Variable* variable) {
  auto* const number = dynamic_cast<NumberVariable*>(variable);
  if (!number) return nullptr;
  return asBool(capture, callMethod(capture, &number->tensor(), "logical_not"));
}

Variable* compareNumbers(Capture& capture, int op, Variable* left, Variable* right) {
  if (!dynamic_cast<NumberVariable*>(left) && !dynamic_cast<NumberVariable*>(right)) return nullptr;
  const Object a = doubleOf(capture, left), b = doubleOf(capture, right);
  if (!a || !b) return nullptr;
  static constexpr const char* kNames[] = {"__lt__", "__le__", "__eq__",
                                           "__ne__", "__gt__", "__ge__"};
  // A constant stands on the right.
  static constexpr int kSwapped[] = {Py_GT, Py_GE, Py_EQ, Py_NE, Py_LT, Py_LE};
  const bool swaps = PyFloat_CheckExact(a.get());
  const auto [first, second] = swaps ? std::pair{b.get(), a.get()} : std::pair{a.get(), b.get()};
  return asBool(capture, capture.computed(kNames[swaps ? kSwapped[op] : op], {first, second}));
}

}  // namespace wick::capture
